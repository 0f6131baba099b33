//! `cargo xtask guests`: builds the guests and lays the components where the tests look for them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::project::Project;
use crate::toolchain::TARGET;
use crate::{files, process, toolchain};

/// Builds every guest and copies each component to `target/guests/<crate>.wasm`.
///
/// Whether anything must be built is cargo's to say; a copy is touched only when its bytes changed.
pub(crate) fn build(project: &Project) -> Result<()> {
    let guests = project.path("guests");
    ensure!(guests.join("Cargo.toml").is_file(), "there is no workspace of guests at guests/");
    let components = project.path("target/guests");
    fs::create_dir_all(&components)?;
    // Held until the end: two builds at once must not lay out one toolchain.
    let lock = fs::File::create(components.join(".lock"))?;
    lock.lock()?;

    let mut cargo = project.cargo_of_guests();
    if let Some(rustc) = toolchain::find(project)? {
        cargo.env("RUSTC", rustc);
    }
    let build = ["build", "--workspace", "--release", "--locked", "--target-dir", "target"];
    process::run(cargo.args(build))?;

    let release = guests.join("target").join(TARGET).join("release");
    let mut changed = Vec::new();
    for component in components_below(&guests)? {
        let to = components.join(format!("{}.wasm", component.package));
        if files::copy_if_changed(&release.join(&component.artefact), &to)? {
            changed.push(component.package);
        }
    }
    if !changed.is_empty() {
        eprintln!("target/guests: {} changed", changed.join(", "));
    }
    Ok(())
}

/// A crate that becomes a component.
#[derive(Debug, PartialEq, Eq)]
struct Component {
    package: String,
    artefact: String,
}

fn components_below(guests: &Path) -> Result<Vec<Component>> {
    let manifests = files::below(guests, &|path| path.ends_with("Cargo.toml"))?;
    let mut components = Vec::new();
    for manifest in manifests {
        let text = fs::read_to_string(&manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        components.extend(component(&text));
    }
    ensure!(!components.is_empty(), "no crate below guests/ has the crate type `cdylib`");
    Ok(components)
}

/// The component that a crate's manifest describes: only a `cdylib` becomes one.
fn component(manifest: &str) -> Option<Component> {
    let mut section = "";
    let mut package = None;
    let mut library = None;
    let mut is_cdylib = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        match (section, key.trim()) {
            ("[package]", "name") => package = Some(unquoted(value)),
            ("[lib]", "name") => library = Some(unquoted(value)),
            ("[lib]", "crate-type") => is_cdylib = value.contains("\"cdylib\""),
            _ => {}
        }
    }
    let package = package.filter(|_| is_cdylib)?;
    let library = library.map_or_else(|| package.replace('-', "_"), str::to_owned);
    Some(Component { package: package.to_owned(), artefact: format!("{library}.wasm") })
}

fn unquoted(value: &str) -> &str {
    value.trim().trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cdylib_is_a_component() {
        let cases = [
            (
                "[package]\nname = \"support-triage\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n",
                Some(("support-triage", "support_triage.wasm")),
            ),
            (
                "[package]\nname=\"probe\"\n[lib]\nname = \"scripted\"\ncrate-type=[\"rlib\", \"cdylib\"]\n",
                Some(("probe", "scripted.wasm")),
            ),
            ("[package]\nname = \"trax-sdk\"\n[lib]\npath = \"src/lib.rs\"\n", None),
            ("[package]\nname = \"trax-sdk-macros\"\n[lib]\nproc-macro = true\n", None),
            ("[workspace]\nmembers = [\"sdk\"]\n", None),
        ];

        for (manifest, expected) in cases {
            let expected = expected.map(|(package, artefact): (&str, &str)| Component {
                package: package.to_owned(),
                artefact: artefact.to_owned(),
            });
            assert_eq!(component(manifest), expected, "{manifest}");
        }
    }
}
