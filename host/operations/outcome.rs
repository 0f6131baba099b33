//! What came of something that an operator asked for.

/// What came of something that an operator asked for. What cannot be done is no error: it says why, and nothing was
/// changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it was done.
    pub is_done: bool,
    /// The id of what it made or changed, when that is one thing.
    pub id: Option<i64>,
    /// How many things it changed.
    pub count: Option<i64>,
    /// What was done or why not, for the operator.
    pub message: String,
    /// Whether it was not done because what was named does not exist.
    pub is_missing: bool,
}

impl Outcome {
    /// It was done.
    pub fn done(message: impl Into<String>) -> Self {
        Self { is_done: true, id: None, count: None, message: message.into(), is_missing: false }
    }

    /// It was not done.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { is_done: false, ..Self::done(message) }
    }

    /// It was not done: there is no such thing.
    pub fn missing(message: impl Into<String>) -> Self {
        Self { is_missing: true, ..Self::refused(message) }
    }

    /// The same, about this thing.
    #[must_use]
    pub fn with_id(self, id: i64) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The same, with the number of things changed.
    #[must_use]
    pub fn with_count(self, count: i64) -> Self {
        Self { count: Some(count), ..self }
    }
}
