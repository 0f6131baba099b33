//! Trax: a host that runs durable trains shipped as WebAssembly components.
//!
//! # The rooms
//!
//! Rooms are listed in reading order; each names only rooms above it, and `tests/tidy.rs` proves it.
//!
//! | room | holds | may name |
//! |---|---|---|
//! | [`clock`] | host time and entropy, the only readers of either | - |
//! | [`model`] | what exists and what may follow what; pure | - |
//! | [`chain`] | a train as data: declaration, verification, walk; pure | model |
//! | [`decide`] | questions and answers: checks, fingerprints, hashes; pure | model, chain |
//! | [`store`] | all SQL, for SQLite and Postgres alike | clock, model, chain, decide |
//! | [`guest`] | wasmtime: check, compile, limit and call components | clock, model, chain |
//! | [`deciders`] | who answers questions | clock, model, chain, decide, guest |
//! | [`engine`] | the life of a run | all above |
//! | [`operations`] | what operators do, one function per action | all above |
//! | [`api`] | HTTP: GraphQL over the operations, health and metrics | all above |
//! | [`cli`] | one file per command, and all printing | all above |
//!
//! # Invariants
//!
//! 1. `model`, `chain` and `decide` never await, read no clock and hold no handle.
//! 2. Only `guest` names wasmtime. Only `cli` prints. Only `clock` reads host time or randomness.
//! 3. `guest` does not know who answers questions: whoever calls it, answers it.
//! 4. A chain is read without running it; the host owns the values between junctions.
//! 5. A decision is recorded before the run acts on it.
//! 6. Every queue, batch and guest (time, memory, output) has a named limit.

pub mod clock;
pub mod model;
pub mod chain;
pub mod decide;
pub mod store;
pub mod guest;
pub mod deciders;
pub mod engine;
pub mod operations;
pub mod api;
pub mod cli;
