//! What came of a call, and how whatever wasmtime reports becomes that.

use std::time::Duration;

use serde::Serialize;
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::guest::GuestError;
use crate::guest::run_log::{RunLog, escape_controls};
use crate::guest::state::Stop;
use crate::model::failure::Failure;
use crate::model::limits::Limits;

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended<T> {
    /// It returned.
    Returned(T),
    /// It returned a failure, or did something that is one.
    Failed(Failure),
    /// The host ended it because the run was asked to stop.
    Cancelled,
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// Time it computed.
    #[serde(rename = "own_time_us", serialize_with = "micros")]
    pub own_time: Duration,
    /// Time it took, waiting included.
    #[serde(rename = "wall_time_us", serialize_with = "micros")]
    pub wall_time: Duration,
    /// Fuel it used.
    pub fuel: u64,
    /// The most memory it had, in bytes.
    pub memory_bytes: u64,
}

fn micros<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

/// What wasmtime says when a guest hands over too much at once. The error's type is private (48.0.8), so this text is
/// the only sign; `a_giant_result_is_told_apart` fails when it changes.
const HOSTCALL_FUEL_TEXT: &str = "fuel allocated for hostcalls has been exhausted";

/// A Rust guest's stack grows down from its first memory page, so that overflowing it touches the last addresses.
const STACK_OVERFLOW_TEXT: &str = "memory fault at wasm address 0xffff";

/// Turns an error of a call into what came of it.
///
/// # Errors
/// [`GuestError`] when the guest is not to blame.
pub fn from_error<T>(
    error: &wasmtime::Error,
    limits: &Limits,
    log: &RunLog,
) -> Result<Ended<T>, GuestError> {
    if error.is::<PoolConcurrencyLimitError>() {
        return Err(GuestError::Capacity(reason(error)));
    }
    if let Some(stop) = error.downcast_ref::<Stop>() {
        let name = match stop {
            Stop::Cancelled => return Ok(Ended::Cancelled),
            Stop::OwnTime(_) => "OwnTimeLimit",
            Stop::Memory { .. } => "MemoryLimit",
            Stop::Table { .. } => "TableLimit",
        };
        return Ok(Ended::Failed(failed(name, stop.to_string(), error)));
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return Ok(Ended::Failed(trapped(*trap, error, limits, log)));
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        let message = format!("the guest ended itself with exit code {}", exit.0);
        return Ok(Ended::Failed(failed("Exit", message, error)));
    }
    if error.is::<ResourceTableError>() {
        let message =
            format!("holds more than {} handles, or one that is not its own", limits.handles);
        return Ok(Ended::Failed(failed("HandleLimit", message, error)));
    }
    let reason = reason(error);
    if reason.contains(HOSTCALL_FUEL_TEXT) {
        let message = format!(
            "handed more than {} bytes to the host, the limit of one call's output",
            limits.output_bytes
        );
        return Ok(Ended::Failed(failed("OutputLimit", message, error)));
    }
    Ok(Ended::Failed(failed("BadCall", format!("broke the contract: {reason}"), error)))
}

fn trapped(trap: Trap, error: &wasmtime::Error, limits: &Limits, log: &RunLog) -> Failure {
    match trap {
        Trap::OutOfFuel => {
            let message = format!("used more than {} units of fuel, its limit", limits.fuel);
            failed("FuelLimit", message, error)
        }
        Trap::StackOverflow => failed("StackOverflow", "the stack overflowed".to_owned(), error),
        Trap::MemoryOutOfBounds if reason(error).contains(STACK_OVERFLOW_TEXT) => {
            failed("StackOverflow", "the stack overflowed into no memory".to_owned(), error)
        }
        Trap::UnreachableCodeReached => match last_panic(log) {
            Some(message) => failed("Panic", message, error),
            None => failed("Trap", trap_text(trap), error),
        },
        _ => failed("Trap", trap_text(trap), error),
    }
}

fn trap_text(trap: Trap) -> String {
    let text = trap.to_string();
    format!("trapped: {}", text.strip_prefix("wasm trap: ").unwrap_or(&text))
}

/// What a guest's panic hook logged just before it trapped.
fn last_panic(log: &RunLog) -> Option<String> {
    let line = log.lines().pop()?;
    line.message.starts_with("panicked at").then_some(line.message)
}

fn failed(name: &str, message: String, error: &wasmtime::Error) -> Failure {
    let failure = Failure::unclassified(name, message);
    match error.downcast_ref::<WasmBacktrace>() {
        Some(backtrace) => failure.with_detail(escape_controls(&backtrace.to_string())),
        None => failure,
    }
}

/// The error's chain as one line for people, without the backtrace that is its first link.
pub fn reason(error: &wasmtime::Error) -> String {
    let links: Vec<String> = error
        .chain()
        .map(ToString::to_string)
        .filter(|link| !link.starts_with("error while executing at wasm backtrace"))
        .collect();
    escape_controls(&links.join(": "))
}
