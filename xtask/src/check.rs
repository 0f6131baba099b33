//! `cargo xtask check`: the form of the code, without a warning.

use std::process::ExitCode;

use anyhow::Result;

use crate::process;
use crate::project::{Project, host_triple};
use crate::steps::Steps;
use crate::test::NATIVE;

/// Runs every check, also after one failed.
pub(crate) fn run(project: &Project) -> Result<ExitCode> {
    let host = host_triple()?;
    let native = ["--target", &host, "--target-dir", "target/native"];
    let deny = ["--", "-D", "warnings"];
    let mut steps = Steps::of("check");
    steps.run("format", || process::run(project.cargo().args(["fmt", "--all", "--check"])));
    steps.run("format of the guests", || {
        process::run(project.cargo_of_guests().args(["fmt", "--all", "--check"]))
    });
    steps.run("clippy", || {
        let clippy = ["clippy", "--workspace", "--all-targets", "--locked"];
        process::run(project.cargo().args(clippy).args(deny))
    });
    steps.run("clippy of the SDK", || {
        let clippy = ["clippy", "--all-targets", "--locked"];
        let mut cargo = project.cargo_of_guests();
        process::run(cargo.args(clippy).args(native).args(NATIVE).args(deny))
    });
    steps.run("documentation", || {
        let mut cargo = project.cargo();
        cargo.env("RUSTDOCFLAGS", "-D warnings -D rustdoc::broken_intra_doc_links");
        process::run(cargo.args(["doc", "--no-deps", "--workspace", "--locked"]))
    });
    Ok(steps.finish())
}
