//! The integration tests: one binary, because each one links wasmtime again.

#![expect(clippy::unwrap_used, reason = "a test that cannot unwrap something has failed")]

mod world;
mod tidy;
mod guest;
mod cli;
mod readme;
