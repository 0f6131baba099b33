//! Subject keys: no two runs of one subject at once, whichever trains they are of.

use std::fmt;

/// The longest key, in characters.
pub const LENGTH_MAX: usize = 512;

/// Why a text is no subject key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSubject {
    /// It is empty, or nothing but white space.
    Empty,
    /// It is longer than [`LENGTH_MAX`] characters.
    TooLong(usize),
    /// It contains NUL, which a database does not keep.
    Nul,
}

impl fmt::Display for NoSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the subject key is empty; leave it out, or name a subject"),
            Self::TooLong(length) => write!(
                f,
                "the subject key has {length} characters, and at most {LENGTH_MAX} are kept; use a shorter one, or a \
                 hash of it"
            ),
            Self::Nul => write!(f, "the subject key contains NUL; use another character"),
        }
    }
}

/// Says whether a text can be a subject key. Keys are compared as they are: `a` and `A` are two subjects. A Rust text
/// has no unpaired surrogate.
///
/// # Errors
/// [`NoSubject`] when it cannot.
pub fn check(key: &str) -> Result<(), NoSubject> {
    if key.trim().is_empty() {
        return Err(NoSubject::Empty);
    }
    if key.contains('\0') {
        return Err(NoSubject::Nul);
    }
    match key.chars().count() {
        length if length > LENGTH_MAX => Err(NoSubject::TooLong(length)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J18: up to 512 characters, not only white space, without NUL.
    #[test]
    fn a_subject_key_is_a_short_text() {
        let longest = "\u{1F680}".repeat(LENGTH_MAX);
        assert_eq!(check("customer 7"), Ok(()));
        assert_eq!(check(&longest), Ok(()));
        assert_eq!(check(&format!("{longest}x")), Err(NoSubject::TooLong(513)));
        assert_eq!(check(""), Err(NoSubject::Empty));
        assert_eq!(check(" \t\u{a0}"), Err(NoSubject::Empty));
        assert_eq!(check("a\0b"), Err(NoSubject::Nul));
    }
}
