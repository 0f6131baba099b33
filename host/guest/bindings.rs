//! The contract of `wit/` as Rust types and traits, generated.

#![expect(missing_docs, reason = "generated; the contract is documented in wit/")]

wasmtime::component::bindgen!({
    path: "wit",
    world: "trax:train/trains",
    imports: {
        default: trappable,
        "trax:train/decisions.decide": async | trappable,
    },
    exports: { default: async },
    with: {
        "trax:train/secrets.secret": crate::guest::imports::secrets::Secret,
        "trax:train/files.directory": crate::guest::imports::files::Directory,
    },
});
