//! `cargo xtask dist`: the release binary, packed with what a user needs beside it.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::files::copy;
use crate::process;
use crate::project::{Project, host_triple};

/// What lies beside the binary in the archive.
const BESIDE: [&str; 3] = ["LICENSE", "README.md", "wit"];

/// Writes target/dist/trax-VERSION-TRIPLE.tar.gz and a file with its SHA-256.
pub(crate) fn run(project: &Project) -> Result<ExitCode> {
    let name = format!("trax-{}-{}", env!("CARGO_PKG_VERSION"), host_triple()?);
    // The folder is named, because CARGO_TARGET_DIR would put the binary elsewhere.
    let build = ["build", "--release", "--locked", "--bin", "trax", "--target-dir", "target"];
    process::run(project.cargo().args(build))?;

    let dist = project.path("target/dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let binary = format!("trax{}", std::env::consts::EXE_SUFFIX);
    copy(&project.path("target/release").join(&binary), &folder.join(&binary))?;
    for item in BESIDE {
        copy(&project.path(item), &folder.join(item))?;
    }

    let archive = format!("{name}.tar.gz");
    process::run(Command::new("tar").current_dir(&dist).args(["-czf", &archive, &name]))?;
    let digest = process::read(Command::new("sha256sum").current_dir(&dist).arg(&archive))?;
    fs::write(dist.join(format!("{archive}.sha256")), &digest)?;
    fs::remove_dir_all(&folder)?;
    println!("target/dist/{archive}\n{}", digest.trim_end());
    Ok(ExitCode::SUCCESS)
}
