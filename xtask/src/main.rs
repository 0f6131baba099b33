//! Runs the tasks of the project: `cargo xtask help` lists them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool of the command line speaks to whoever typed the command"
)]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod check;
mod debian;
mod demo;
mod dist;
mod files;
mod guests;
mod process;
mod project;
mod rules;
mod steps;
mod test;
mod toolchain;

/// The tasks of the project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Builds the guests into target/guests, one component per crate.
    Guests,
    /// Builds guests and host, runs the example trains once each, and then `trax dev` on them.
    Demo(demo::Arguments),
    /// Runs every test: the host's, the documentation's and the SDK's.
    Test(test::Arguments),
    /// Checks the form: rustfmt, clippy and the documentation, without a warning.
    Check,
    /// Prints which tests cite which rules, and fails for a rule of the ranges that has none.
    Rules(rules::Arguments),
    /// Builds the guests and runs the benchmarks.
    Bench(bench::Arguments),
    /// Builds the release binary and packs it into target/dist.
    Dist,
}

fn main() -> ExitCode {
    let project = project::Project::here();
    let result = match Arguments::parse_from(with_dashes_kept(std::env::args_os())).task {
        Task::Guests => guests::build(&project).map(|()| ExitCode::SUCCESS),
        Task::Demo(arguments) => demo::run(&project, &arguments),
        Task::Test(arguments) => test::run(&project, &arguments),
        Task::Check => check::run(&project),
        Task::Rules(arguments) => rules::run(&project, &arguments),
        Task::Bench(arguments) => bench::run(&project, &arguments),
        Task::Dist => dist::run(&project),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// clap takes a `--` that comes first for its own; a second one is left to the program it is meant for,
/// as in `cargo xtask bench -- --quick`.
fn with_dashes_kept(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = words.collect();
    if words.get(2).is_some_and(|word| word == "--") {
        words.insert(2, "--".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_reach_the_program_they_are_meant_for() {
        let cases = [
            ("xtask bench -- --quick", "-- --quick"),
            ("xtask bench --bench guest -- --quick", "--bench guest -- --quick"),
            ("xtask bench call", "call"),
            ("xtask bench", ""),
        ];

        for (line, expected) in cases {
            let words = line.split(' ').map(OsString::from);
            let arguments = Arguments::try_parse_from(with_dashes_kept(words)).unwrap();
            let Task::Bench(bench) = arguments.task else { panic!("another task: {line}") };
            assert_eq!(bench.rest.join(" "), expected, "{line}");
        }
    }
}
