//! What can be wrong with a type or with a value, as people read it.
//!
//! No text here quotes a value: faults reach logs, rows and pages, and a value may be anybody's secret.

use std::fmt;

use thiserror::Error;

/// The most faults of a train's types that are named; the rest is counted. More is not read by anyone.
const TYPE_FAULTS_MAX: usize = 100;
/// The most characters of a guest's own name that a message repeats.
const SHOWN_MAX: usize = 64;

/// Why a type cannot be used: which type, where in its schema, what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct TypeFault {
    /// The type's name, as declared.
    pub type_name: String,
    /// JSON pointer into its schema; empty for the whole.
    pub pointer: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

impl fmt::Display for TypeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type '{}'", shown(&self.type_name))?;
        if !self.pointer.is_empty() {
            write!(f, ", at {}", self.pointer)?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// Why a value is not taken. The text completes a sentence that begins with whose value it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueFault {
    /// The train declares no such type.
    #[error("has the type '{}', which the train does not declare", shown(.type_name))]
    UnknownType {
        /// The type that was named.
        type_name: String,
    },
    /// The text is not JSON as values are kept.
    #[error("is not JSON that '{type_name}' can be kept as: {problem}")]
    NotJson {
        /// The type it was to be of.
        type_name: String,
        /// What is wrong, and where in the text.
        problem: String,
    },
    /// The value does not fit.
    #[error("does not match the schema of '{type_name}'{}", listed(.mismatches))]
    Mismatch {
        /// The type it was to be of.
        type_name: String,
        /// What does not fit: at least one, at most [`MISMATCHES_MAX`].
        mismatches: Vec<Mismatch>,
    },
}

/// The most places of one value that are named.
pub const MISMATCHES_MAX: usize = 5;

/// One place where a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON pointer into the value; empty for the whole.
    pub pointer: String,
    /// What was expected.
    pub problem: String,
}

fn listed(mismatches: &[Mismatch]) -> String {
    let mut text = String::new();
    for (i, mismatch) in mismatches.iter().enumerate() {
        text.push_str(if i == 0 { "" } else { ";" });
        if !mismatch.pointer.is_empty() {
            text.push_str(" at ");
            text.push_str(&mismatch.pointer);
        }
        text.push_str(if i == 0 || !mismatch.pointer.is_empty() { ": " } else { " " });
        text.push_str(&mismatch.problem);
    }
    text
}

/// Collects faults of types, and counts those past the bound.
#[derive(Debug, Default)]
pub(super) struct TypeFaults {
    named: Vec<TypeFault>,
    others: usize,
}

impl TypeFaults {
    pub(super) fn add(
        &mut self,
        type_name: &str,
        pointer: impl FnOnce() -> String,
        problem: impl FnOnce() -> String,
    ) {
        if self.named.len() < TYPE_FAULTS_MAX {
            let (type_name, pointer, problem) = (type_name.to_owned(), pointer(), problem());
            self.named.push(TypeFault { type_name, pointer, problem });
        } else {
            self.others += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// All that are named; the last one says how many are not.
    pub(super) fn into_faults(mut self) -> Vec<TypeFault> {
        if self.others > 0
            && let Some(last) = self.named.last_mut()
        {
            last.problem = format!("{} (and {} more faults of types)", last.problem, self.others);
        }
        self.named
    }
}

/// A guest's own name as a message may repeat it: short, and on one line.
pub(super) fn shown(name: &str) -> String {
    let mut text = String::with_capacity(name.len().min(SHOWN_MAX));
    for (i, c) in name.chars().enumerate() {
        if i == SHOWN_MAX {
            text.push('…');
            break;
        }
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

/// One segment of a JSON pointer, with its slash.
pub(super) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    pointer.push_str(&shown(segment).replace('~', "~0").replace('/', "~1"));
}

/// Texts in quotes, the first few of them, as a message lists what would have been right.
pub(super) fn choices<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const NAMED_MAX: usize = 8;
    let count = names.len();
    let quoted: Vec<_> = names.take(NAMED_MAX).map(|name| format!("\"{}\"", shown(name))).collect();
    let more =
        if count > NAMED_MAX { format!(" or {} more", count - NAMED_MAX) } else { String::new() };
    quoted.join(", ") + &more
}
