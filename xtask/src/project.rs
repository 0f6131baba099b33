//! Where the project lies, and the cargo that builds it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The root folder of the project.
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    /// The project this tool was built in.
    pub(crate) fn here() -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self { root: own.parent().unwrap_or(own).to_path_buf() }
    }

    /// A path inside the project.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The root folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The cargo that runs this tool, about to run in the root folder.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(cargo_program());
        cargo.current_dir(&self.root);
        cargo
    }

    /// The same cargo, about to run in the workspace of the guests.
    ///
    /// Flags meant for the host would reach the linker of the guests, which knows none of them.
    pub(crate) fn cargo_of_guests(&self) -> Command {
        let mut cargo = Command::new(cargo_program());
        cargo.current_dir(self.path("guests"));
        for flags in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            cargo.env_remove(flags);
        }
        cargo
    }
}

/// The host's target triple, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host_triple() -> Result<String> {
    let version = process::read(Command::new(rustc_program()).arg("-vV"))?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("`rustc -vV` names no host")
}

/// The folder that holds the compiler's libraries and tools.
pub(crate) fn sysroot() -> Result<PathBuf> {
    let sysroot = process::read(Command::new(rustc_program()).args(["--print", "sysroot"]))?;
    Ok(PathBuf::from(sysroot.trim()))
}

pub(crate) fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn rustc_program() -> std::ffi::OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}
