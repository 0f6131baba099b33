//! What can go wrong with the engine itself. What goes wrong in a run is the run's end, and recorded.

use thiserror::Error;

use crate::guest::GuestError;
use crate::model::ids::RunId;
use crate::store::StoreError;

/// A pass that failed. It is made again after a while.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The store did not do what it was asked.
    #[error("failed to use the store")]
    Store(#[from] StoreError),
    /// The host could not ask a guest.
    #[error("failed to ask a guest")]
    Guest(#[from] GuestError),
    /// The host went while the store was away.
    #[error("the end of run {0} was not written: the host stopped while the store was away")]
    GivenUp(RunId),
    /// What was kept of a parked run cannot be used.
    #[error("failed to continue run {run}: {problem}")]
    Continue {
        /// The run.
        run: RunId,
        /// What is wrong.
        problem: String,
    },
}

impl EngineError {
    /// Whether nobody is to blame, and the same may succeed later: the database is away, or there is no room.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
            Self::Guest(error) => matches!(error, GuestError::Capacity(_)),
            Self::GivenUp(_) | Self::Continue { .. } => false,
        }
    }
}

/// An error with what caused it, in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
