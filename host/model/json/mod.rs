//! JSON as Trax keeps it: a tree whose numbers are kept to the letter, and its one canonical text.
//!
//! Canonical text has no space, members sorted by the UTF-8 bytes of their names, the shortest escapes, and every
//! number exactly as it was written, so that no integer ever passes through a float. Equal values of equal types have
//! equal text, whichever language wrote them; recording, replay and resume compare that text.

mod reader;

use std::fmt;

use thiserror::Error;

use self::reader::Reader;

/// How deep arrays and objects may nest. A deeper value is almost always an attack on a recursive reader.
pub const DEPTH_MAX: usize = 64;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(String),
    /// Text, without its escapes.
    String(String),
    /// A list.
    Array(Vec<Self>),
    /// Members sorted by the UTF-8 bytes of their names.
    Object(Vec<(String, Self)>),
}

/// Text that is not JSON as Trax takes it: what, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem} at line {line}, column {column}")]
pub struct JsonError {
    /// What is wrong.
    pub problem: Problem,
    /// Line of the first byte that is wrong, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

/// What can be wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The text ends too early.
    #[error("the text ends in the middle of a value")]
    Ended,
    /// A byte that cannot stand here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// More text after the value.
    #[error("more text after the value")]
    Trailing,
    /// A member named twice.
    #[error("the member '{0}' stands twice in one object; keep one of them")]
    Duplicate(String),
    /// Arrays and objects nested too deep.
    #[error("nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// NUL, which neither C guests nor Postgres can hold in text.
    #[error("text holds NUL (U+0000), which cannot be stored; remove it")]
    Nul,
    /// A surrogate without its other half.
    #[error("text holds half of a surrogate pair")]
    Surrogate,
    /// A control character that is not escaped.
    #[error("text holds a control character that is not escaped")]
    Control,
    /// An escape that JSON does not have.
    #[error("text holds an escape that JSON does not have")]
    Escape,
}

impl Json {
    /// Reads one JSON value and nothing after it.
    ///
    /// # Errors
    /// [`JsonError`] says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut reader = Reader::new(text);
        let value = reader.document();
        value.map_err(|problem| {
            let before = &text.as_bytes()[..reader.at().min(text.len())];
            let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1);
            let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
            JsonError { problem, line, column: 1 + before.len() - line_start }
        })
    }

    /// The member of an object, if this is one and has it.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let at = members.binary_search_by(|(n, _)| n.as_bytes().cmp(name.as_bytes())).ok()?;
        Some(&members[at].1)
    }

    /// What stands where a JSON pointer points.
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |json, token| {
            let token = token.replace("~1", "/").replace("~0", "~");
            match json {
                Self::Object(_) => json.member(&token),
                Self::Array(items) => {
                    let is_index = token == "0" || !token.starts_with(['0', '+']);
                    token.parse::<usize>().ok().filter(|_| is_index).and_then(|at| items.get(at))
                }
                Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
            }
        })
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// An object of these members, sorted. Later members of the same name are dropped.
    pub fn object(members: impl IntoIterator<Item = (String, Self)>) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        members.dedup_by(|later, kept| later.0 == kept.0);
        Self::Object(members)
    }

    /// The value as `serde_json` has it, for libraries. Numbers beyond 64 bits lose digits there; nothing that is
    /// stored or compared goes through it.
    pub fn to_serde(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(*b),
            Self::Number(text) => number_to_serde(text),
            Self::String(text) => Value::String(text.clone()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_serde).collect()),
            Self::Object(members) => {
                Value::Object(members.iter().map(|(n, v)| (n.clone(), v.to_serde())).collect())
            }
        }
    }
}

fn number_to_serde(text: &str) -> serde_json::Value {
    if let Ok(n) = text.parse::<u64>() {
        return n.into();
    }
    if let Ok(n) = text.parse::<i64>() {
        return n.into();
    }
    let float = text.parse::<f64>().unwrap_or(f64::MAX);
    let finite = float.clamp(f64::MIN, f64::MAX);
    serde_json::Number::from_f64(finite).map_or(serde_json::Value::Null, Into::into)
}

/// Writes the canonical text.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => write_string(f, text),
            Self::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    write_string(f, name)?;
                    f.write_str(":")?;
                    value.fmt(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Writes text as a JSON string with the shortest escapes.
pub fn write_string(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        f.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'"' => f.write_str("\\\"")?,
            b'\\' => f.write_str("\\\\")?,
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\t' => f.write_str("\\t")?,
            8 => f.write_str("\\b")?,
            12 => f.write_str("\\f")?,
            other => write!(f, "\\u{other:04x}")?,
        }
        rest = &rest[at + 1..];
    }
    f.write_str(rest)?;
    f.write_str("\"")
}

#[cfg(test)]
mod tests;
