//! The run that a junction is called in.

use crate::bindings::trax::train::run;

pub use crate::bindings::trax::train::run::RunInfo;

/// Facts about the run.
pub fn info() -> RunInfo {
    run::info()
}

/// A key for outside services: the same for this visit of this junction in every run that stands for the same work,
/// retries, resumes and requeues included.
pub fn idempotency_key() -> String {
    run::idempotency_key()
}

/// Says how far the junction has come, for people. `fraction` is from 0 to 1.
pub fn progress(fraction: impl Into<Option<f64>>, message: &str) {
    run::progress(fraction.into(), message);
}

/// Whether the run has been asked to stop. A junction that goes on is interrupted at its limit.
pub fn cancelled() -> bool {
    run::cancelled()
}
