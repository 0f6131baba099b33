//! Failures: what a junction returns when it could not do its work.

use std::error::Error;
use std::fmt;

use crate::bindings::trax::train::types;

pub use crate::bindings::trax::train::types::FailureClass;

/// Why a junction could not do its work, for operators.
///
/// `?` turns every standard error into one, unclassified and named after the error's type; [`Classify`] turns an error
/// into one of a known class.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What kind of failure this is.
    pub class: FailureClass,
    /// The kind of error as an operator searches for it, for example `PaymentDeclined`.
    pub name: String,
    /// One sentence for a person.
    pub message: String,
    /// More, for example what caused it.
    pub detail: Option<String>,
}

impl Failure {
    /// A failure of this class.
    pub fn new(class: FailureClass, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class, name: name.into(), message: message.into(), detail: None }
    }

    /// Nothing is known about it.
    pub fn unclassified(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Unclassified, name, message)
    }

    /// Trying again may help.
    pub fn transient(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Transient, name, message)
    }

    /// Somebody else changed what this run worked on.
    pub fn conflict(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Conflict, name, message)
    }

    /// Trying again the same way will not help.
    pub fn permanent(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Permanent, name, message)
    }

    /// A failure that the host gave.
    pub(crate) fn from_host(failure: types::Failure) -> Self {
        let types::Failure { class, name, message, detail } = failure;
        Self { class, name, message, detail }
    }

    /// Says more.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

/// A failure is no [`Error`] itself: that is what lets `?` turn every error into one.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(format!("caused by: {cause}"));
            next = cause.source();
        }
        Self {
            class: FailureClass::Unclassified,
            name: short_name(std::any::type_name::<E>()).to_owned(),
            message: error.to_string(),
            detail: (!causes.is_empty()).then(|| causes.join("\n")),
        }
    }
}

/// The last part of a type's path, without what stands in angle brackets.
fn short_name(path: &str) -> &str {
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

impl From<Failure> for types::Failure {
    fn from(failure: Failure) -> Self {
        let Failure { class, name, message, detail } = failure;
        Self { class, name, message, detail }
    }
}

/// Gives the failure of a result a class: `client.send(order).transient()?`.
pub trait Classify<T> {
    /// Trying again may help.
    fn transient(self) -> Result<T, Failure>;
    /// Somebody else changed what this run worked on.
    fn conflict(self) -> Result<T, Failure>;
    /// Trying again the same way will not help.
    fn permanent(self) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> Classify<T> for Result<T, E> {
    fn transient(self) -> Result<T, Failure> {
        self.map_err(|error| Failure { class: FailureClass::Transient, ..error.into() })
    }

    fn conflict(self) -> Result<T, Failure> {
        self.map_err(|error| Failure { class: FailureClass::Conflict, ..error.into() })
    }

    fn permanent(self) -> Result<T, Failure> {
        self.map_err(|error| Failure { class: FailureClass::Permanent, ..error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_error_becomes_an_unclassified_failure_named_after_its_type() {
        fn parse() -> Result<u8, Failure> {
            Ok("many".parse::<u8>()?)
        }

        let failure = parse().expect_err("'many' is no number");

        assert_eq!(failure.class, FailureClass::Unclassified);
        assert_eq!(failure.to_string(), "ParseIntError: invalid digit found in string");
        assert_eq!(
            "x".parse::<u8>().transient().expect_err("no number").class,
            FailureClass::Transient
        );
        assert_eq!(short_name("a::Wrapped<b::Inner>"), "Wrapped");
    }
}
