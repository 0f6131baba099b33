//! Reads a component's structure before anything compiles it, and names everything that is wrong with it.

use std::fmt;

use wasmparser::{
    ComponentExternalKind, ComponentTypeRef, Encoding, Parser, Payload, Validator, WasmFeatures,
};

use crate::guest::engine::{MEMORIES_MAX, TABLES_MAX};
use crate::model::limits::COMPONENT_BYTES_MAX;

/// The most bytes of one function. Compiling takes more than linear time in this.
pub const FUNCTION_BYTES_MAX: usize = 1024 * 1024;

/// The most functions of a component's modules together.
pub const FUNCTIONS_MAX: usize = 200_000;

/// The most faults that are listed.
const FAULTS_MAX: usize = 20;

/// The contract's package and its version: what a component must be built for.
const CONTRACT: &str = "trax:train/";
const CONTRACT_VERSION: (u64, u64) = (1, 0);
/// The instance in which a component exports the contract.
pub const GUEST_EXPORT: &str = "trax:train/guest@1.0.0";

/// The interfaces of the contract that a component may import.
const IMPORTS: &[&str] = &[
    "types",
    "questions",
    "declaration",
    "access",
    "decisions",
    "run",
    "budget",
    "log",
    "config",
    "secrets",
    "files",
];

/// Why a file is not a component that this host runs: every reason found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Refused {}

/// Checks a file.
///
/// # Errors
/// [`Refused`] with every reason found.
pub fn precheck(bytes: &[u8]) -> Result<(), Refused> {
    if let Some(reason) = not_a_component(bytes) {
        return Err(Refused(vec![reason]));
    }
    let mut reader = Reader::default();
    if let Err(error) = reader.read(bytes) {
        reader.faults.push(format!(
            "the file is damaged at byte {}: {}; build it again",
            error.offset(),
            error.message()
        ));
    }
    reader.finish();
    if reader.faults.is_empty() {
        validate(bytes).map_err(|reason| Refused(vec![reason]))?;
        return Ok(());
    }
    let more = reader.faults.len().saturating_sub(FAULTS_MAX);
    reader.faults.truncate(FAULTS_MAX);
    if more > 0 {
        reader.faults.push(format!("and {more} more"));
    }
    Err(Refused(reader.faults))
}

fn not_a_component(bytes: &[u8]) -> Option<String> {
    if bytes.len() > COMPONENT_BYTES_MAX {
        return Some(format!(
            "the file has {} bytes; a component may have {COMPONENT_BYTES_MAX}",
            bytes.len()
        ));
    }
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        let reason =
            "the file is compiled code, which is never accepted; give the .wasm it was made from";
        return Some(reason.to_owned());
    }
    if !bytes.starts_with(b"\0asm") {
        return Some(
            "the file is not WebAssembly; give a component built for wasm32, such as the .wasm file \
             that `cargo build --target wasm32-unknown-unknown` makes"
                .to_owned(),
        );
    }
    if !Parser::is_component(bytes) {
        return Some(
            "the file is a core WebAssembly module, not a component; link it with \
             `wasm-component-ld`, or wrap it with `wasm-tools component new`"
                .to_owned(),
        );
    }
    None
}

fn validate(bytes: &[u8]) -> Result<(), String> {
    let features = WasmFeatures::default()
        .difference(WasmFeatures::THREADS | WasmFeatures::MEMORY64 | WasmFeatures::CM_ASYNC);
    match Validator::new_with_features(features).validate_all(bytes) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(format!("the file is not valid at byte {}: {}", error.offset(), error.message()))
        }
    }
}

#[derive(Default)]
struct Reader {
    depth: usize,
    functions: usize,
    memories: u32,
    tables: u32,
    exports_guest: bool,
    other_exports: Vec<String>,
    faults: Vec<String>,
}

impl Reader {
    fn read(&mut self, bytes: &[u8]) -> wasmparser::Result<()> {
        for payload in Parser::new(0).parse_all(bytes) {
            self.payload(payload?)?;
        }
        Ok(())
    }

    fn payload(&mut self, payload: Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => {
                self.depth += 1;
            }
            Payload::End(_) => self.depth -= 1,
            Payload::ComponentImportSection(section) if self.depth == 1 => {
                for import in section {
                    let import = import?;
                    self.import(import.name.name, &import.ty);
                }
            }
            Payload::ComponentExportSection(section) if self.depth == 1 => {
                for export in section {
                    let export = export?;
                    self.export(export.name.name, export.kind);
                }
            }
            Payload::MemorySection(section) => {
                self.memories = self.memories.saturating_add(section.count());
            }
            Payload::TableSection(section) => {
                self.tables = self.tables.saturating_add(section.count());
            }
            Payload::CodeSectionEntry(body) => {
                self.functions += 1;
                let bytes = body.range().len();
                if bytes > FUNCTION_BYTES_MAX {
                    self.faults.push(format!(
                        "function {} has {bytes} bytes; a function may have {FUNCTION_BYTES_MAX}",
                        self.functions - 1
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn import(&mut self, name: &str, kind: &ComponentTypeRef) {
        if !matches!(kind, ComponentTypeRef::Instance(_)) {
            self.faults.push(format!(
                "imports '{name}', which is no interface of the contract; remove it"
            ));
        } else if let Some(rest) = name.strip_prefix(CONTRACT) {
            self.contract_import(name, rest);
        } else if let Some(rest) = name.strip_prefix("wasi:") {
            self.wasi_import(name, rest);
        } else {
            self.faults.push(format!(
                "imports '{name}'; a train may import trax:train@1.0 and WASI 0.2, nothing else"
            ));
        }
    }

    fn contract_import(&mut self, name: &str, rest: &str) {
        let (interface, version) = rest.split_once('@').unwrap_or((rest, ""));
        if !is_spoken(version) {
            self.faults.push(newer(name));
        } else if !IMPORTS.contains(&interface) {
            self.faults.push(format!("imports '{name}', which the contract does not have"));
        }
    }

    fn wasi_import(&mut self, name: &str, rest: &str) {
        if rest.starts_with("http/") {
            self.faults.push(format!(
                "imports '{name}'; this host grants no outbound HTTP yet, so remove it"
            ));
        } else if !rest.rsplit_once('@').is_some_and(|(_, version)| version.starts_with("0.2.")) {
            self.faults.push(format!(
                "imports '{name}'; this host has WASI 0.2, so build for wasm32-wasip2 or \
                 wasm32-unknown-unknown"
            ));
        }
    }

    fn export(&mut self, name: &str, kind: ComponentExternalKind) {
        if name == GUEST_EXPORT && kind == ComponentExternalKind::Instance {
            self.exports_guest = true;
        } else if name.starts_with("trax:train/guest@") {
            self.faults.push(newer(name));
            self.exports_guest = true;
        } else {
            self.other_exports.push(name.to_owned());
        }
    }

    fn finish(&mut self) {
        if !self.exports_guest {
            let instead = match self.other_exports.first() {
                Some(name) => format!("it exports '{name}'"),
                None => "it exports nothing".to_owned(),
            };
            self.faults.push(format!(
                "the component is not a train: {instead} instead of '{GUEST_EXPORT}'; build it \
                 with the Trax SDK or against wit/"
            ));
        }
        let counts = [
            ("functions", self.functions, FUNCTIONS_MAX),
            ("memories", self.memories as usize, MEMORIES_MAX as usize),
            ("tables", self.tables as usize, TABLES_MAX as usize),
        ];
        for (what, count, limit) in counts {
            if count > limit {
                self.faults.push(format!("the component has {count} {what}; it may have {limit}"));
            }
        }
    }
}

/// Whether this host speaks this version of the contract: the same major, and no newer minor.
fn is_spoken(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => major == CONTRACT_VERSION.0 && minor <= CONTRACT_VERSION.1,
        _ => false,
    }
}

fn newer(name: &str) -> String {
    let (major, minor) = CONTRACT_VERSION;
    format!(
        "needs '{name}', but this host speaks version {major}.{minor} of the contract; update the \
         host, or build the component with an SDK for {major}.{minor}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(wat: &str) -> Vec<String> {
        precheck(&wat::parse_str(wat).unwrap()).unwrap_err().0
    }

    #[test]
    fn files_that_are_no_components_are_told_apart() {
        let reason = |bytes: &[u8]| precheck(bytes).unwrap_err().to_string();
        assert!(reason(b"").starts_with("the file is not WebAssembly"));
        assert!(reason(b"#!/bin/sh").starts_with("the file is not WebAssembly"));
        assert!(reason(b"\0asm\x01\0\0\0").starts_with("the file is a core WebAssembly module"));
        assert!(reason(b"\0asm\x0d\0\x01\0\xff").starts_with("the file is damaged at byte 8"));
        let huge = vec![0; COMPONENT_BYTES_MAX + 1];
        assert!(reason(&huge).contains("a component may have 33554432"));
    }

    #[test]
    fn another_world_and_a_contract_from_the_future_are_named() {
        let other =
            reasons(r#"(component (instance $i) (export "acme:shop/api@1.0.0" (instance $i)))"#);
        assert_eq!(other.len(), 1, "{other:?}");
        assert!(
            other[0].contains("exports 'acme:shop/api@1.0.0' instead of 'trax:train/guest@1.0.0'")
        );

        let future = reasons(
            r#"(component
                (import "trax:train/log@1.1.0" (instance))
                (import "trax:train/run@2.0.0" (instance))
                (import "wasi:io/streams@0.3.0" (instance))
                (import "wasi:http/types@0.2.0" (instance))
                (import "env" (func))
                (import "trax:train/teleport@1.0.0" (instance))
                (instance $i) (export "trax:train/guest@2.0.0" (instance $i)))"#,
        );
        let expected = [
            "needs 'trax:train/log@1.1.0', but this host speaks version 1.0",
            "needs 'trax:train/run@2.0.0', but this host speaks version 1.0",
            "this host has WASI 0.2",
            "grants no outbound HTTP",
            "imports 'env', which is no interface",
            "imports 'trax:train/teleport@1.0.0', which the contract does not have",
            "needs 'trax:train/guest@2.0.0'",
        ];
        assert_eq!(future.len(), expected.len(), "{future:#?}");
        for (reason, part) in future.iter().zip(expected) {
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn too_many_memories_are_refused_before_compiling() {
        let memories = "(memory 1)".repeat(MEMORIES_MAX as usize + 1);
        let reasons = reasons(&format!(
            r#"(component (core module {memories})
                (instance $i) (export "trax:train/guest@1.0.0" (instance $i)))"#
        ));
        assert_eq!(reasons, ["the component has 9 memories; it may have 8"]);
    }
}
