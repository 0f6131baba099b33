//! The contract in `wit/`, bound to Rust by wit-bindgen.
//!
//! Where this is not compiled to WebAssembly the imports compile and are never called.

#![expect(clippy::same_length_and_capacity, reason = "generated")]

wit_bindgen::generate!({
    path: "wit",
    world: "trains",
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "trax_sdk::bindings",
});
