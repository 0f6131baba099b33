//! Why a command did not do what was asked, and the exit code that says so.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::cli::exit;
use crate::guest::GuestError;
use crate::guest::component::LoadError;

/// Why a command did not do what was asked.
#[derive(Debug, Error)]
pub enum CliError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    File {
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
    /// A component is refused: every reason, one per line.
    #[error("{} is refused:\n{reasons}", .path.display())]
    Refused {
        /// The component's file.
        path: PathBuf,
        /// Why, one reason per line.
        reasons: String,
    },
    /// The host failed.
    #[error(transparent)]
    Host(#[from] GuestError),
    /// What was to be printed cannot be printed.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

impl CliError {
    /// The error of a component that was not loaded from this file.
    pub fn load(path: PathBuf, error: LoadError) -> Self {
        match error {
            LoadError::Host(error) => Self::Host(error),
            other => Self::Refused { path, reasons: other.to_string() },
        }
    }

    /// The exit code that says so.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                exit::NOT_FOUND
            }
            Self::File { .. } | Self::Usage(_) => exit::USAGE,
            Self::NotFound(_) => exit::NOT_FOUND,
            Self::Refused { .. } => exit::REFUSED,
            Self::Host(_) => exit::BUG,
            Self::Print(_) => exit::FAILED,
        }
    }

    /// Whether nobody reads what is printed any more.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
