//! Which compiler builds the guests: the host's own where it can, else one of the project's own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::project::{Project, host_triple, sysroot};
use crate::{debian, process};

/// What the guests are built for. It has no clock, no files and no randomness.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The linker that makes a component. rustup ships it beside its own linker.
pub(crate) const LINKER: &str = "wasm-component-ld";

/// How long rustup may take; where it cannot fetch, it often waits instead of failing.
const RUSTUP_TIME: Duration = Duration::from_secs(20);

/// Where a compiler for the guests comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// The host's compiler knows the target.
    Installed,
    /// The project's own compiler lies ready.
    Ready,
    /// rustup may add the target, else the project's own compiler is made.
    Fetch,
    /// The project's own compiler is made without asking rustup.
    Make,
}

impl Source {
    fn choose(is_forced: bool, is_installed: bool, is_ready: bool) -> Self {
        match (is_forced, is_installed, is_ready) {
            (false, true, _) => Self::Installed,
            (_, _, true) => Self::Ready,
            (false, false, false) => Self::Fetch,
            (true, _, false) => Self::Make,
        }
    }
}

/// The compiler to name in `RUSTC`; none where the host's own will do.
///
/// `TRAX_FORCE_DEBIAN=1` forces the project's own.
pub(crate) fn find(project: &Project) -> Result<Option<PathBuf>> {
    let sysroot = sysroot()?;
    let host = host_triple()?;
    let tools = sysroot.join("lib/rustlib").join(&host).join("bin");
    check_linker(&tools)?;

    let is_forced = env::var_os("TRAX_FORCE_DEBIAN").is_some_and(|value| value == "1");
    let folder = project.path(".toolchain");
    match Source::choose(is_forced, has_target(&sysroot), debian::is_ready(&folder)) {
        Source::Installed => return Ok(None),
        Source::Ready => return Ok(Some(debian::rustc(&folder))),
        Source::Fetch => {
            eprintln!("adding the target {TARGET} with rustup");
            match add_target(&sysroot) {
                Ok(()) => return Ok(None),
                Err(error) => eprintln!("{error:#}"),
            }
        }
        Source::Make => {}
    }
    debian::make(&folder, &host, &tools).with_context(|| {
        format!(
            "no compiler for {TARGET}: where the network allows it, type \
             `rustup target add {TARGET}`; the way over Debian's packages failed"
        )
    })?;
    Ok(Some(debian::rustc(&folder)))
}

fn has_target(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir()
}

fn add_target(sysroot: &Path) -> Result<()> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]).stdout(Stdio::null());
    process::run_within(&mut rustup, RUSTUP_TIME)?;
    // rustup adds it to its active toolchain, which need not be the one that runs.
    ensure!(has_target(sysroot), "rustup added {TARGET}, but not to {}", sysroot.display());
    Ok(())
}

/// The linker must be where rustc looks for it: beside its own tools, or in `PATH`.
fn check_linker(tools: &Path) -> Result<()> {
    let program = format!("{LINKER}{}", env::consts::EXE_SUFFIX);
    let path = env::var_os("PATH").unwrap_or_default();
    let is_found = env::split_paths(&path)
        .chain([tools.to_path_buf()])
        .any(|folder| folder.join(&program).is_file());
    ensure!(
        is_found,
        "{LINKER}, which links the guests, is neither in {} nor in PATH: rustup's toolchains have \
         it since 1.80; for another one type `cargo install --locked {LINKER}`",
        tools.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_compiler_comes_first_and_rustup_is_asked_only_when_nothing_is_ready() {
        // forced, installed, ready
        let cases = [
            ((false, true, true), Source::Installed),
            ((false, true, false), Source::Installed),
            ((false, false, true), Source::Ready),
            ((false, false, false), Source::Fetch),
            ((true, true, true), Source::Ready),
            ((true, true, false), Source::Make),
            ((true, false, true), Source::Ready),
            ((true, false, false), Source::Make),
        ];

        for ((is_forced, is_installed, is_ready), expected) in cases {
            assert_eq!(Source::choose(is_forced, is_installed, is_ready), expected);
        }
    }
}
