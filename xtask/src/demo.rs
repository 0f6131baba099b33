//! `cargo xtask demo`: the main job on the examples: builds guests and host, and runs every example train.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::project::Project;
use crate::{guests, process};

/// One run of an example: component, train, input file, more arguments, and the exit code it must end with.
struct Example {
    guest: &'static str,
    train: &'static str,
    input: &'static str,
    more: &'static [&'static str],
    exit_code: i32,
}

const COMPLETES: i32 = 0;
const FAILS: i32 = 1;

const fn example(guest: &'static str, input: &'static str) -> Example {
    Example { guest, train: guest, input, more: &[], exit_code: COMPLETES }
}

const EXAMPLES: [Example; 6] = [
    example("hello", "hello/person.json"),
    example("support-triage", "support-triage/ticket.json"),
    example("support-triage", "support-triage/unclear-ticket.json"),
    example("score-leads", "score-leads/lead.json"),
    Example { exit_code: FAILS, ..example("flaky", "flaky/input.json") },
    Example { more: &["--attempt", "3"], ..example("flaky", "flaky/input.json") },
];

/// Builds what is needed and runs the examples one after the other.
pub(crate) fn run(project: &Project) -> Result<ExitCode> {
    guests::build(project)?;
    process::run(project.cargo().args(["build", "--locked", "--bin", "trax"]))?;
    for example in &EXAMPLES {
        let arguments = arguments(example);
        println!("\n$ trax {}", arguments.join(" "));
        let mut trax = Command::new(project.root().join("target/debug/trax"));
        let status = trax.current_dir(project.root()).args(&arguments).status();
        let status = status.context("cannot start target/debug/trax")?;
        let expected = example.exit_code;
        ensure!(status.code() == Some(expected), "expected exit code {expected}, got {status}");
    }
    println!("\nThe fifth run failed on purpose: attempt 3 of the same work completed.");
    Ok(ExitCode::SUCCESS)
}

fn arguments(example: &Example) -> Vec<String> {
    let component = format!("target/guests/{}.wasm", example.guest);
    let input = format!("@guests/examples/{}", example.input);
    let mut words = vec!["run".to_owned(), component, example.train.to_owned()];
    words.extend(["--input".to_owned(), input]);
    words.extend(example.more.iter().map(|&word| word.to_owned()));
    words
}
