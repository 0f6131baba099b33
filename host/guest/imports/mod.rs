//! What guests may import: one file per interface of the contract, and WASI, sealed.

pub mod budget;
pub mod config;
pub mod decisions;
pub mod files;
pub mod log;
pub mod run;
pub mod secrets;
pub mod wasi;

use wasmtime::component::{HasSelf, Linker};

use crate::guest::bindings;
use crate::guest::state::State;

/// Links everything a guest may import.
///
/// # Errors
/// wasmtime's error when two interfaces collide, which is a bug.
pub fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    bindings::Trains::add_to_linker::<_, HasSelf<State>>(linker, |state| state)
}
