//! The integration tests: one binary, because each one links wasmtime again.
