//! `cargo xtask test`: every test of the project.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::project::{Project, host_triple};
use crate::steps::Steps;
use crate::{guests, process};

/// The packages of the guests whose tests run on the host.
pub(crate) const NATIVE: [&str; 4] = ["-p", "trax-sdk", "-p", "trax-sdk-macros"];

/// What to test.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Handed to `cargo nextest run` (or `cargo test` where nextest is missing). With any, only the
    /// tests they select run, without those of the documentation and of the SDK.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    rest: Vec<String>,
}

/// Runs the tests; the last line says passed or failed.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<ExitCode> {
    let host = host_triple()?;
    let mut steps = Steps::of("test");
    // Without the guests most tests could only say that a file is missing.
    if !steps.run("guests", || guests::build(project)) {
        return Ok(steps.finish());
    }
    steps.run("tests", || process::run(workspace(project).args(&arguments.rest)));
    if arguments.rest.is_empty() {
        steps.run("documentation tests", || {
            process::run(project.cargo().args(["test", "--doc", "--workspace", "--locked"]))
        });
        steps.run("SDK tests", || process::run(&mut sdk(project, &host)));
    }
    Ok(steps.finish())
}

/// The runner of the workspace's tests. Cargo's own does as well, only slower and less clearly.
fn workspace(project: &Project) -> Command {
    let mut cargo = project.cargo();
    if process::succeeds(project.cargo().args(["nextest", "--version"])) {
        cargo.args(["nextest", "run", "--workspace", "--locked"]);
    } else {
        eprintln!("cargo-nextest is not installed: running `cargo test`");
        cargo.args(["test", "--workspace", "--locked", "--lib", "--bins", "--tests"]);
    }
    // The databases of the tests last for seconds. In memory they do not wait for the disk to keep them.
    if env::var_os("TMPDIR").is_none() && is_writable(Path::new(IN_MEMORY)) {
        cargo.env("TMPDIR", IN_MEMORY);
    }
    cargo
}

/// Where Linux has files that are kept in memory.
const IN_MEMORY: &str = "/dev/shm";

fn is_writable(folder: &Path) -> bool {
    let probe = folder.join(format!("trax-test-{}", std::process::id()));
    fs::write(&probe, []).and_then(|()| fs::remove_file(&probe)).is_ok()
}

/// The SDK's tests, with the host's own compiler and a target folder of their own.
fn sdk(project: &Project, host: &str) -> Command {
    let mut cargo = project.cargo_of_guests();
    cargo
        .args(["test", "--locked", "--target", host, "--target-dir", "target/native"])
        .args(NATIVE);
    cargo
}
