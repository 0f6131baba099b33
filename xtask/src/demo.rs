//! `cargo xtask demo`: the main job on the examples: builds guests and host, runs every example train once, and then
//! `trax dev`, which runs them on their schedules with a database, retries and dead letters.

use std::fs;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::project::Project;
use crate::{guests, process};

/// How long `trax dev` runs when nobody is there to end it: long enough for the examples' retries, which wait seconds.
const UNWATCHED: u64 = 20;

/// What the demo may be told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// End `trax dev` after this many seconds; without a terminal it ends by itself anyway.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

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

/// Builds what is needed, runs the examples one after the other, and then all of them together.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<ExitCode> {
    guests::build(project)?;
    process::run(project.cargo().args(["build", "--locked", "--bin", "trax"]))?;
    for example in &EXAMPLES {
        let words = words(example);
        let status = trax(project, &words).status().context("cannot start target/debug/trax")?;
        let expected = example.exit_code;
        ensure!(status.code() == Some(expected), "expected exit code {expected}, got {status}");
    }
    println!("\nThe fifth run failed on purpose: attempt 3 of the same work completed.");
    let folder = folder(project)?;
    let mut dev = trax(project, &["dev", &folder]);
    let limit = match arguments.seconds {
        None if std::io::stdin().is_terminal() => {
            // In this process's place, so that Ctrl-C means `trax dev`.
            let error = dev.exec();
            return Err(error).context("cannot start target/debug/trax");
        }
        seconds => Duration::from_secs(seconds.unwrap_or(UNWATCHED)),
    };
    process::run_until(&mut dev, limit)?;
    let database = format!("sqlite:{folder}/.trax/trax.db");
    for command in ["runs", "dead-letters"] {
        process::run(&mut trax(project, &[command, "--database", &database]))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A fresh folder of the examples, as `trax dev` takes it.
fn folder(project: &Project) -> Result<String> {
    let name = "target/demo";
    let folder = project.root().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {name}"))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {name}"))?;
    let copy = |from: &Path, to: &str| {
        let copied = fs::copy(project.root().join(from), folder.join(to));
        copied.with_context(|| format!("cannot copy {}", from.display()))
    };
    copy(Path::new("guests/examples/manifests.toml"), "manifests.toml")?;
    for guest in ["hello", "support-triage", "score-leads", "flaky"] {
        let file = format!("{guest}.wasm");
        copy(&Path::new("target/guests").join(&file), &file)?;
    }
    Ok(name.to_owned())
}

/// The built binary, announced as one would type it.
fn trax<W: AsRef<str>>(project: &Project, words: &[W]) -> Command {
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    println!("\n$ trax {}", words.join(" "));
    let mut trax = Command::new(project.root().join("target/debug/trax"));
    trax.current_dir(project.root()).args(words);
    trax
}

fn words(example: &Example) -> Vec<String> {
    let component = format!("target/guests/{}.wasm", example.guest);
    let input = format!("@guests/examples/{}", example.input);
    let mut words = vec!["run".to_owned(), component, example.train.to_owned()];
    words.extend(["--input".to_owned(), input]);
    words.extend(example.more.iter().map(|&word| word.to_owned()));
    words
}
