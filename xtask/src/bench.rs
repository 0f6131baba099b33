//! `cargo xtask bench`: the benchmarks, over guests that are up to date.

use std::process::ExitCode;

use anyhow::Result;

use crate::project::Project;
use crate::{guests, process};

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Handed to `cargo bench`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(crate) rest: Vec<String>,
}

/// Builds the guests and runs the benchmarks.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<ExitCode> {
    guests::build(project)?;
    let mut cargo = project.cargo();
    cargo.args(["bench", "--locked"]);
    if !arguments.rest.iter().any(|argument| argument == "--bench") {
        // Unit tests have a benchmark mode as well, which knows none of the options of ours.
        cargo.args(["--bench", "*"]);
    }
    process::run(cargo.args(&arguments.rest))?;
    Ok(ExitCode::SUCCESS)
}
