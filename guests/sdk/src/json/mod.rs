//! JSON between host and guest: schema text, writing and reading.
//!
//! The SDK has a small JSON of its own because a guest is loaded and called often: it keeps components small, reads
//! straight into the author's types, and needs one trait per type, so that a mistake is one error. The host checks
//! every value against its schema before a guest sees it and after a guest has given it.

mod reader;
mod schema;
mod writer;

pub use self::reader::{ReadError, Reader};
pub use self::schema::{Schema, Types};
pub use self::writer::Writer;

use crate::shape::Shape;

/// Writes a value as JSON text.
///
/// # Errors
/// A number that JSON does not have: not-a-number or an infinity.
pub fn to_string<T: Shape>(value: &T) -> Result<String, WriteError> {
    let mut writer = Writer::default();
    value.write(&mut writer);
    writer.finish()
}

/// Reads a value from JSON text.
///
/// # Errors
/// Text that is not JSON, or that does not fit the type.
pub fn from_str<T: Shape>(text: &str) -> Result<T, ReadError> {
    let mut reader = Reader::new(text);
    let value = T::read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Why a value cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteError;

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number is not finite, and JSON has no text for it")
    }
}

impl std::error::Error for WriteError {}
