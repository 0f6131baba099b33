//! Why an operator's action was not done.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::engine::error::EngineError;
use crate::guest::GuestError;
use crate::guest::component::LoadError;
use crate::store::StoreError;

/// Why an operator's action was not done. Nothing of it was written.
#[derive(Debug, Error)]
pub enum OperationError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A component is refused: every reason, one per line.
    #[error("{} is refused:\n{reasons}", .path.display())]
    Refused {
        /// The component's file.
        path: PathBuf,
        /// Why, one reason per line.
        reasons: String,
    },
    /// What a manifest file states is wrong: every fault with its place, one per line.
    #[error("{0}")]
    Stated(String),
    /// There is no such thing: what operators are told.
    #[error("{0}")]
    NotFound(String),
    /// Something the caller gave cannot be: what operators are told.
    #[error("{0}")]
    Invalid(String),
    /// Whoever asked may not.
    #[error("Not authorized.")]
    Forbidden,
    /// A stored declaration cannot be read by this trax.
    #[error("the stored declaration of train '{train}' cannot be read; deploy its component again")]
    Declaration {
        /// The train.
        train: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine's part of it failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] GuestError),
}

impl OperationError {
    /// The error of a component that was not loaded from this file.
    pub fn load(path: PathBuf, error: LoadError) -> Self {
        match error {
            LoadError::Host(error) => Self::Host(error),
            other => Self::Refused { path, reasons: other.to_string() },
        }
    }
}
