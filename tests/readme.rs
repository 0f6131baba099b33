//! The README is true: its commands work and print what it says, and its guest is the example it names.

use std::process::Command;

use crate::world::TRAX;

/// A fenced block: its language and its text.
struct Block {
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block { language: language.to_owned(), text: body.join("\n") });
        }
    }
    blocks
}

/// Whether a line is what the pattern says; `[..]` stands for anything.
fn is_like(pattern: &str, line: &str) -> bool {
    match pattern.split_once("[..]") {
        None => pattern == line,
        Some((before, after)) => {
            line.strip_prefix(before).is_some_and(|rest| after.is_empty() || rest.ends_with(after))
        }
    }
}

#[test]
fn every_command_works_and_prints_what_the_readme_says() {
    let ci = std::fs::read_to_string(".ci/run").unwrap();
    let blocks = blocks();
    let mut commands = 0;
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        commands += 1;
        let Some(arguments) = block.text.strip_prefix("cargo run -- ") else {
            assert!(ci.contains(&block.text), "`{}` is not run by .ci/run", block.text);
            continue;
        };
        let output =
            Command::new("sh").args(["-c", &format!("{TRAX} {arguments}")]).output().unwrap();
        assert!(output.status.success(), "{}: {}", block.text, output.status);
        let printed = String::from_utf8(output.stdout).unwrap();
        let Some(promised) = blocks.get(index + 1).filter(|next| next.language == "text") else {
            continue;
        };
        for (pattern, line) in promised.text.lines().zip(printed.lines()) {
            assert!(is_like(pattern, line), "promised: {pattern}\nprinted:  {line}");
        }
        assert!(promised.text.lines().count() <= printed.lines().count());
    }
    assert!(commands >= 5, "the README has commands");
}

#[test]
fn the_guest_of_the_readme_is_the_example() {
    let shown = blocks().into_iter().find(|block| block.language == "rust").unwrap();
    let example = std::fs::read_to_string("guests/examples/hello/src/lib.rs").unwrap();
    assert_eq!(shown.text.trim(), example.trim());
}

#[test]
fn the_limits_of_the_readme_are_the_defaults() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let limits = trax::model::limits::Limits::default();
    let megabytes = |bytes: usize| format!("{} MiB", bytes >> 20);
    for (what, value) in [
        ("memory of an instance", megabytes(limits.memory_bytes)),
        ("time a junction computes", format!("{} s", limits.own_time.as_secs())),
        ("time a junction takes", format!("{} min", limits.wall_time.as_secs() / 60)),
        ("output of a junction", megabytes(limits.output_bytes)),
        ("input of a run", format!("{} KiB", limits.input_bytes >> 10)),
        ("component", megabytes(trax::model::limits::COMPONENT_BYTES_MAX)),
    ] {
        let row = readme.lines().find(|line| line.starts_with(&format!("| {what}"))).unwrap();
        assert!(row.contains(&value), "{row}: {value}");
    }
}
