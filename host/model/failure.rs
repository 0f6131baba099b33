//! Failures of junctions, deciders and runs, as they are recorded and shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of failure this is. Retries do not depend on it; operators filter by it.
///
/// The order is by how bad a class is: of several failures of parallel branches the worst class is recorded (C21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Trying again may help.
    Transient,
    /// Somebody else changed what the run worked on.
    Conflict,
    /// Nothing is known about it.
    Unclassified,
    /// Trying again the same way will not help.
    Permanent,
}

impl FailureClass {
    /// The name in rows and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Conflict => "conflict",
            Self::Unclassified => "unclassified",
            Self::Permanent => "permanent",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why something failed: what a run's row records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind it is.
    pub class: FailureClass,
    /// The kind of error as an operator searches for it, for example `PaymentDeclined` or `OwnTimeLimit`.
    pub name: String,
    /// One sentence for a person.
    pub message: String,
    /// More: a guest's stack or a trap's backtrace.
    pub detail: Option<String>,
}

impl Failure {
    /// A failure without detail.
    pub fn new(class: FailureClass, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class, name: name.into(), message: message.into(), detail: None }
    }

    /// A failure that the same run would meet again.
    pub fn permanent(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Permanent, name, message)
    }

    /// A failure that may pass.
    pub fn transient(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Transient, name, message)
    }

    /// A failure of which nothing more is known.
    pub fn unclassified(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Unclassified, name, message)
    }

    /// The failure of a guest that nobody told to stop: one that is named like a time-out or a cancellation is the
    /// guest's own giving up, which may pass, unless it says more itself.
    #[must_use]
    pub fn of_its_own(self) -> Self {
        let name = self.name.to_ascii_lowercase();
        let gave_up =
            ["timeout", "timedout", "timed_out", "cancel"].iter().any(|it| name.contains(it));
        let class = if gave_up && self.class == FailureClass::Unclassified {
            FailureClass::Transient
        } else {
            self.class
        };
        Self { class, ..self }
    }

    /// The same failure with more to read.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R14, Q15: a guest's own time-out may pass, whatever it is called, unless the guest says otherwise.
    #[test]
    fn giving_up_by_oneself_is_transient() {
        for (class, name, expected) in [
            (FailureClass::Unclassified, "TimeoutException", FailureClass::Transient),
            (FailureClass::Unclassified, "TaskCanceledException", FailureClass::Transient),
            (FailureClass::Unclassified, "TimedOut", FailureClass::Transient),
            (FailureClass::Permanent, "Timeout", FailureClass::Permanent),
            (FailureClass::Unclassified, "OwnTimeLimit", FailureClass::Unclassified),
            (FailureClass::Unclassified, "Lost", FailureClass::Unclassified),
        ] {
            assert_eq!(Failure::new(class, name, "").of_its_own().class, expected, "{name}");
        }
    }
}
