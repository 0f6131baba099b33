//! A compiler for the guests made of Debian's packages, for machines where rustup cannot fetch one.
//!
//! Nothing is installed. apt runs over a state folder of its own, so no lists, locks or caches of the
//! machine are touched and no rights are needed; the packages are unpacked below `.toolchain`. The
//! standard library for the target is built there once from its source. That source builds with
//! Debian's compiler alone, and the compiler is used for the guests alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::project::cargo_program;
use crate::toolchain::TARGET;
use crate::{files, process};

/// The compiler, the standard library for proc macros, and the source of the standard library.
const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];

/// Packages of the machine's own runtime: mixed with its loader, another version of them breaks.
const RUNTIME: [&str; 6] =
    ["libc6", "libc6-dev", "libc-bin", "libgcc-s1", "libstdc++6", "gcc-12-base"];

/// Whether the compiler was made completely.
pub(crate) fn is_ready(folder: &Path) -> bool {
    folder.join("ready").is_file()
}

/// The compiler, which finds its own libraries.
pub(crate) fn rustc(folder: &Path) -> PathBuf {
    folder.join("rustc")
}

/// Makes the compiler: downloads, unpacks, and builds the standard library for the target.
///
/// `tools` are the linkers of the host's compiler; Debian's has none for components.
pub(crate) fn make(folder: &Path, host: &str, tools: &Path) -> Result<()> {
    let machine = host.split('-').next().unwrap_or_default();
    ensure!(
        host == format!("{machine}-unknown-linux-gnu") && Path::new("/usr/bin/apt-get").is_file(),
        "this machine ({host}) is no Debian"
    );
    eprintln!("making a compiler for the guests of Debian's packages: a minute, once");
    if folder.exists() {
        // What an earlier, interrupted try left.
        fs::remove_dir_all(folder)?;
    }
    for package in download(&folder.join("apt"))? {
        unpack(&package, folder)?;
    }
    fs::remove_dir_all(folder.join("apt"))?;

    let libraries = folder.join("usr/lib/rustlib");
    files::copy(tools, &libraries.join(host).join("bin"))?;
    write_wrapper(&rustc(folder), machine)?;
    build_standard_library(folder, &libraries.join(TARGET).join("lib"))?;
    fs::write(folder.join("ready"), "")?;
    Ok(())
}

/// Downloads the packages and what they need that this machine lacks.
fn download(apt: &Path) -> Result<Vec<PathBuf>> {
    for part in ["lists/partial", "cache/archives/partial", "log"] {
        fs::create_dir_all(apt.join(part))?;
    }
    let configuration = apt.join("apt.conf");
    fs::write(&configuration, apt_configuration(apt))?;
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.arg("-c").arg(&configuration).arg("-qq").args(arguments);
        process::read(&mut command)
    };

    // It also fails when a source that is not needed cannot be reached; then the download may do.
    let updated = apt_get(&["update"]);
    let only_download =
        ["install", "--download-only", "--reinstall", "--no-install-recommends", "-y"];
    if let Err(error) = apt_get(&[&only_download[..], &PACKAGES].concat()) {
        return Err(match updated {
            Ok(_) => error,
            Err(cause) => error.context(format!("{cause:#}")),
        });
    }
    let archives = apt.join("cache/archives");
    let packages = files::below(&archives, &|path| path.extension().is_some_and(|it| it == "deb"))?;
    Ok(packages.into_iter().filter(|path| !RUNTIME.contains(&package_name(path))).collect())
}

/// Everything apt would write lies in its own folder, and no hook of the machine runs.
fn apt_configuration(apt: &Path) -> String {
    let apt = apt.display();
    format!(
        "Dir::State \"{apt}\";\n\
         Dir::State::status \"/var/lib/dpkg/status\";\n\
         Dir::Cache \"{apt}/cache\";\n\
         Dir::Log \"{apt}/log\";\n\
         APT::Sandbox::User \"\";\n\
         Debug::NoLocking \"true\";\n\
         Acquire::Retries \"3\";\n\
         #clear APT::Update::Pre-Invoke;\n\
         #clear APT::Update::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n"
    )
}

/// The name in `name_version_architecture.deb`.
fn package_name(path: &Path) -> &str {
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    file.split('_').next().unwrap_or_default()
}

fn unpack(package: &Path, folder: &Path) -> Result<()> {
    if package_name(package) != "rust-web-src" {
        return process::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(folder));
    }
    // The source of the whole compiler is in there as well, and takes ten times as long.
    let all = folder.join("apt/source.tar");
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--fsys-tarfile").arg(package).stdout(fs::File::create(&all)?);
    process::run(&mut dpkg)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&all).arg("-C").arg(folder).arg("--wildcards");
    process::run(tar.args(["./usr/src/rustc-*/library", "./usr/lib/rustlib/src/*"]))
}

fn write_wrapper(rustc: &Path, machine: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let text = format!(
        "#!/bin/sh\n\
         usr=$(dirname \"$(readlink -f \"$0\")\")/usr\n\
         LD_LIBRARY_PATH=$usr/lib/{machine}-linux-gnu${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} \
         exec \"$usr/bin/rustc\" \"$@\"\n"
    );
    fs::write(rustc, text)?;
    fs::set_permissions(rustc, fs::Permissions::from_mode(0o755))?;
    process::read(Command::new(rustc).arg("-vV"))
        .context("the unpacked compiler does not start")?;
    Ok(())
}

/// Builds the standard library as cargo does for a target without one, and lays it beside the host's.
fn build_standard_library(folder: &Path, to: &Path) -> Result<()> {
    let package = folder.join("build");
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("src/lib.rs"), "#![no_std]\n")?;
    fs::write(
        package.join("Cargo.toml"),
        "[package]\nname = \"sysroot\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [workspace]\n\n[profile.release]\nopt-level = \"s\"\n",
    )?;
    let mut cargo = Command::new(cargo_program());
    cargo
        .current_dir(&package)
        .env("RUSTC", rustc(folder))
        // `-Zbuild-std` asks for it; no unstable feature reaches a guest.
        .env("RUSTC_BOOTSTRAP", "1")
        // The guests are built with link-time optimisation, which needs the bitcode.
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .args(["build", "--quiet", "--release", "--target", TARGET, "--target-dir", "target"])
        .arg("-Zbuild-std=std,panic_abort");
    process::run(&mut cargo).context("cannot build the standard library for the guests")?;

    fs::create_dir_all(to)?;
    let built = package.join("target").join(TARGET).join("release/deps");
    for entry in fs::read_dir(built)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".rlib") && !name.starts_with("libsysroot-") {
            files::copy(&path, &to.join(name.as_ref()))?;
        }
    }
    fs::remove_dir_all(package)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_known_by_its_file() {
        let path = Path::new("archives/libllvm22_1%3a22.1.8-1~deb12u1_amd64.deb");

        assert_eq!(package_name(path), "libllvm22");
    }

    #[test]
    fn apt_writes_into_its_own_folder_alone() {
        let text = apt_configuration(Path::new("/project/.toolchain/apt"));

        for setting in ["Dir::State ", "Dir::Cache ", "Dir::Log "] {
            let line = text.lines().find(|line| line.starts_with(setting)).unwrap();
            assert!(line.contains("\"/project/.toolchain/apt"), "{line}");
        }
    }
}
