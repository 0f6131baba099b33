//! Why a command did not do what was asked, and the exit code that says so.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::cli::exit;
use crate::engine::error::EngineError;
use crate::guest::GuestError;
use crate::operations::error::OperationError;
use crate::store::StoreError;

/// Why a command did not do what was asked.
#[derive(Debug, Error)]
pub enum CliError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file or a folder cannot be written.
    #[error("cannot write {}", .path.display())]
    Written {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Something the caller gave is wrong: what, and what to do.
    #[error("{0}")]
    Usage(String),
    /// There is no such thing: what, and what there is instead.
    #[error("{0}")]
    NotFound(String),
    /// Something is in the way: what, and what to do.
    #[error("{0}")]
    Conflict(String),
    /// A component is refused: every reason, one per line.
    #[error("{} is refused:\n{reasons}", .path.display())]
    Refused {
        /// The component's file.
        path: PathBuf,
        /// Why, one reason per line.
        reasons: String,
    },
    /// An operation was not done.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] GuestError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}; is another server there?")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// What was to be printed cannot be printed.
    #[error("cannot print")]
    Print(#[from] io::Error),
}

impl CliError {
    /// The exit code that says so.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::File { source, .. } | Self::Operation(OperationError::File { source, .. }) => {
                if source.kind() == io::ErrorKind::NotFound {
                    exit::NOT_FOUND
                } else {
                    exit::USAGE
                }
            }
            Self::Usage(_)
            | Self::Written { .. }
            | Self::Operation(OperationError::Stated(_) | OperationError::Invalid(_)) => {
                exit::USAGE
            }
            Self::NotFound(_) | Self::Operation(OperationError::NotFound(_)) => exit::NOT_FOUND,
            Self::Conflict(_)
            | Self::Refused { .. }
            | Self::Operation(OperationError::Refused { .. } | OperationError::Forbidden) => {
                exit::REFUSED
            }
            Self::Store(error)
            | Self::Operation(
                OperationError::Store(error) | OperationError::Engine(EngineError::Store(error)),
            )
            | Self::Engine(EngineError::Store(error)) => of_store(error),
            Self::Engine(_)
            | Self::Host(_)
            | Self::Operation(
                OperationError::Engine(_)
                | OperationError::Host(_)
                | OperationError::Declaration { .. },
            ) => exit::BUG,
            Self::Print(_) => exit::FAILED,
            Self::Listen { .. } => exit::REFUSED,
        }
    }

    /// Whether nobody reads what is printed any more.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What went wrong, and what that came of.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        text
    }
}

const fn of_store(error: &StoreError) -> u8 {
    match error {
        StoreError::Url(_) => exit::USAGE,
        StoreError::NotFound { .. } => exit::NOT_FOUND,
        StoreError::WrongState { .. }
        | StoreError::Conflict { .. }
        | StoreError::QueueFull(_)
        | StoreError::LostClaim(_) => exit::REFUSED,
        StoreError::Unreachable { .. }
        | StoreError::Refused { .. }
        | StoreError::NotOpened { .. }
        | StoreError::Foreign(_)
        | StoreError::Disk { .. }
        | StoreError::ReadOnly(_)
        | StoreError::Damaged(_)
        | StoreError::Full(_)
        | StoreError::Busy(_)
        | StoreError::NoConnection(_)
        | StoreError::Newer { .. }
        | StoreError::Older { .. }
        | StoreError::Migration { .. }
        | StoreError::Driver { .. } => exit::UNAVAILABLE,
        StoreError::Random(_) | StoreError::Injected => exit::BUG,
    }
}
