//! Values of a run's Memory, and the names of the types that only the host makes.

use std::sync::Arc;

/// A value that fits its type, as canonical JSON text.
///
/// Invariant: whoever makes one has checked the text against the type's schema and brought it into canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The type's name.
    pub type_name: Arc<str>,
    /// Canonical JSON text.
    pub json: Arc<str>,
}

impl Value {
    /// A value of text that is known to fit and to be canonical.
    pub fn new(type_name: impl Into<Arc<str>>, json: impl Into<Arc<str>>) -> Self {
        Self { type_name: type_name.into(), json: json.into() }
    }
}

/// A value that operators see, or that one is there and they do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The value as JSON.
    Plain(String),
    /// Its type, or its question, is declared sensitive.
    Sensitive,
}

/// The type of the value that a routing step leaves in Memory: the track taken, and why the decision was not followed
/// if it was not.
pub fn track_taken_type(question_key: &str) -> String {
    format!("TrackTaken<{question_key}>")
}
