//! Why something that needs a grant was not given.

use std::error::Error;
use std::fmt;

pub use crate::bindings::trax::train::access::AccessError as AccessProblem;

/// A configuration value, secret or file that was not given, and why.
#[derive(Debug, Clone)]
pub struct AccessError {
    /// What was wanted, for example `the secret 'stripe'`.
    pub what: String,
    /// Why it was not given.
    pub problem: AccessProblem,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.problem {
            AccessProblem::NotGranted => {
                write!(f, "{what} is not granted: the train must want it and an operator grant it")
            }
            AccessProblem::NotFound => write!(f, "{what} is granted, and there is none"),
            AccessProblem::Limit(limit) => write!(f, "{what} is over a limit: {limit}"),
            AccessProblem::Other(problem) => write!(f, "{what}: {problem}"),
        }
    }
}

impl Error for AccessError {}

/// Says what was wanted.
pub(crate) fn of(what: &str, name: &str) -> impl FnOnce(AccessProblem) -> AccessError {
    move |problem| AccessError { what: format!("the {what} '{name}'"), problem }
}
