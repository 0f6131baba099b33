//! Directories that the operator granted. Paths are relative, with `/`; none leads outside.

use crate::access::{self, AccessError};
use crate::bindings::trax::train::files;

pub use crate::bindings::trax::train::files::{FileInfo, FileKind};

/// The most bytes that one call moves, so that a big file stays within what a call may carry.
const PIECE_BYTES: u32 = 1024 * 1024;

/// A directory that is held by the host.
pub struct Directory(files::Directory);

/// The directory of this name, which the train wants with `wants(|wants| wants.writable_directory("..."))`.
pub fn open(name: &str) -> Result<Directory, AccessError> {
    files::open(name).map(Directory).map_err(access::of("directory", name))
}

impl Directory {
    /// What is at this path.
    pub fn info(&self, path: &str) -> Result<FileInfo, AccessError> {
        self.0.info(path).map_err(access::of("file", path))
    }

    /// What is in the directory at this path.
    pub fn entries(&self, path: &str) -> Result<Vec<FileInfo>, AccessError> {
        self.0.entries(path).map_err(access::of("directory", path))
    }

    /// Reads a whole file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, AccessError> {
        let mut bytes = Vec::new();
        loop {
            let piece = self.read_at(path, bytes.len() as u64, PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(piece);
        }
    }

    /// Reads at most `length` bytes from `offset`; fewer at the end of the file.
    pub fn read_at(&self, path: &str, offset: u64, length: u32) -> Result<Vec<u8>, AccessError> {
        self.0.read(path, offset, length).map_err(access::of("file", path))
    }

    /// Writes a whole file, in place of what was there.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), AccessError> {
        self.write_at(path, 0, &[])?;
        self.set_size(path, 0)?;
        let mut offset = 0;
        for piece in bytes.chunks(PIECE_BYTES as usize) {
            self.write_at(path, offset, piece)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// Writes at `offset`, creating the file if need be.
    pub fn write_at(&self, path: &str, offset: u64, bytes: &[u8]) -> Result<(), AccessError> {
        self.0.write(path, offset, bytes).map_err(access::of("file", path))
    }

    /// Cuts a file, or fills it up with zeros.
    pub fn set_size(&self, path: &str, size: u64) -> Result<(), AccessError> {
        self.0.set_size(path, size).map_err(access::of("file", path))
    }

    /// Creates a directory.
    pub fn create_directory(&self, path: &str) -> Result<(), AccessError> {
        self.0.create_directory(path).map_err(access::of("directory", path))
    }

    /// Moves a file or a directory.
    pub fn rename(&self, path: &str, to: &str) -> Result<(), AccessError> {
        self.0.rename(path, to).map_err(access::of("file", path))
    }

    /// Removes a file or an empty directory.
    pub fn remove(&self, path: &str) -> Result<(), AccessError> {
        self.0.remove(path).map_err(access::of("file", path))
    }
}
