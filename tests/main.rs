//! The integration tests: one binary, because each one links wasmtime again.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are not tests to clippy, and may stop one"
)]

mod world;
mod postgres;
mod tidy;
#[macro_use]
mod store;
mod invariants;
#[macro_use]
mod engine;
mod api;
mod guest;
mod cli;
mod cli_dev;
mod cli_store;
mod cli_tenants;
mod cli_operate;
mod bad_databases;
#[macro_use]
mod processes;
mod simulation;
mod readme;
