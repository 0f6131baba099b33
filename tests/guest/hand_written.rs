//! Components written by hand, instruction by instruction: what no toolchain would make.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A component around a core module that exports the contract's functions. `parts` are the module's other definitions;
/// `declare` is the body of the function that `declare` calls, which returns a pointer to a list.
pub(crate) fn component(parts: &str, declare: &str) -> Vec<u8> {
    component_that_imports("", parts, declare)
}

/// The same, of a world that also imports these functions of `wasi:cli/environment@0.2.0`.
pub(crate) fn component_that_imports(environment: &str, parts: &str, declare: &str) -> Vec<u8> {
    let module = format!(
        r#"(module
            {parts}
            (memory (export "memory") 1)
            (func (export "trax:train/guest@1.0.0#declare") (result i32) {declare})
            (func (export "trax:train/guest@1.0.0#run-junction")
                (param i32 i32 i32 i32 i32 i32) (result i32) unreachable)
            (func (export "trax:train/guest@1.0.0#decide")
                (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024))"#
    );
    let mut module = wat::parse_str(module).unwrap();
    let mut resolve = Resolve::default();
    let (mut package, _) = resolve.push_path(Path::new("wit")).unwrap();
    let mut name = "trains";
    if !environment.is_empty() {
        let wasi = format!("package wasi:cli@0.2.0; interface environment {{ {environment} }}");
        resolve.push_str("wasi.wit", &wasi).unwrap();
        let world = "package test:guest; world with-wasi {
            include trax:train/trains@1.0.0; import wasi:cli/environment@0.2.0; }";
        package = resolve.push_str("world.wit", world).unwrap();
        name = "with-wasi";
    }
    let world = resolve.select_world(&[package], Some(name)).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

/// A component with one function whose compilation takes very long: many blocks that all use many locals.
pub(crate) fn slow_to_compile(blocks: usize) -> Vec<u8> {
    let locals = "i64 ".repeat(200);
    let block = |block: usize| {
        let (a, b, c) = (block % 200, (block * 7 + 3) % 200, (block * 13 + 5) % 200);
        format!(
            "(if (i64.eqz (local.get {a}))
                (then (local.set {b} (i64.add (local.get {c}) (local.get {a}))))
                (else (local.set {c} (i64.mul (local.get {b}) (i64.const {block})))))"
        )
    };
    let body: Vec<String> = (0..blocks).map(block).collect();
    let body = body.join("\n");
    component(
        &format!(r#"(func (export "slow") (result i64) (local {locals}) {body} (local.get 0))"#),
        "i32.const 0",
    )
}
