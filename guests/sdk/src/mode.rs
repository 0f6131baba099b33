//! What a train's function is run for: to declare the train, to run a junction, or to answer for a decider.
//!
//! Finding a junction makes no declaration: steps compare names and do nothing else.

use crate::bindings::trax::train::questions::{Answer, DecisionRequest};
use crate::bindings::trax::train::types::Value;
use crate::declaration::Declaration;
use crate::failure::Failure;

/// What a train's function is run for.
pub(crate) enum Mode {
    Declare(Box<Declaration>),
    Run(JunctionCall),
    Answer(DeciderCall),
}

/// A call of a junction, until it is found.
pub(crate) struct JunctionCall {
    pub(crate) train: String,
    pub(crate) junction: String,
    pub(crate) inputs: Vec<Value>,
    pub(crate) is_here: bool,
    pub(crate) outcome: Option<Result<Vec<Value>, Failure>>,
}

/// A call of a decider, until it is found.
pub(crate) struct DeciderCall {
    pub(crate) request: DecisionRequest,
    pub(crate) is_here: bool,
    pub(crate) outcome: Option<Result<Vec<Answer>, Failure>>,
}

impl Mode {
    /// The train of this name begins.
    #[inline(never)]
    pub(crate) fn enter(&mut self, train: &str) {
        match self {
            Self::Declare(_) => {}
            Self::Run(call) => call.is_here = call.train == train,
            Self::Answer(call) => call.is_here = call.request.train == train,
        }
    }

    pub(crate) fn declaring(&mut self) -> Option<&mut Declaration> {
        match self {
            Self::Declare(declaration) => Some(declaration),
            Self::Run(_) | Self::Answer(_) => None,
        }
    }

    /// The call of this junction, if that is what is looked for.
    #[inline(never)]
    pub(crate) fn running(&mut self, junction: &str) -> Option<&mut JunctionCall> {
        match self {
            Self::Run(call) if call.is_here && call.outcome.is_none() => {
                (call.junction == junction).then_some(call)
            }
            Self::Declare(_) | Self::Run(_) | Self::Answer(_) => None,
        }
    }

    /// The call of this decider, if that is what is looked for.
    #[inline(never)]
    pub(crate) fn answering(&mut self, decider: &str) -> Option<&mut DeciderCall> {
        match self {
            Self::Answer(call) if call.is_here && call.outcome.is_none() => {
                (call.request.decider == decider).then_some(call)
            }
            Self::Declare(_) | Self::Run(_) | Self::Answer(_) => None,
        }
    }
}
