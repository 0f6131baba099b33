//! Guests: check, compile, limit and call components. Only this room names wasmtime.
//!
//! A component is untrusted. [`precheck`] reads it before anything compiles it; [`compiler`] compiles it in a child
//! process that can be killed; [`component`] links it against the contract and a sealed WASI and reads its declaration;
//! [`call`] calls it under limits and turns whatever it does into an outcome. Host errors are told from guest faults by
//! type.
//!
//! The room does not know who answers a guest's questions: a caller that lets a junction ask hands in an
//! [`context::Ask`].

pub mod bindings;
pub mod call;
pub mod code_cache;
pub mod compiler;
pub mod component;
pub mod context;
pub mod convert;
pub mod engine;
pub mod imports;
pub mod outcome;
pub mod precheck;
pub mod run_log;
pub mod state;

use thiserror::Error;

/// Why the host could not ask a guest. The guest is not to blame for any of these.
#[derive(Debug, Error)]
pub enum GuestError {
    /// This machine cannot run an engine.
    #[error("cannot start the WebAssembly engine: {0}")]
    Engine(String),
    /// No more instances fit at the moment; to be tried again, and counted as nothing.
    #[error("no instance is free at the moment: {0}")]
    Capacity(String),
    /// A bug of the host: a host function panicked or failed.
    #[error("the host failed while it called the guest: {0}")]
    Host(String),
}
