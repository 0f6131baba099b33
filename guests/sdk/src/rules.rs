//! Deciders made of rules that a train ships.

use crate::bindings::trax::train::questions::{Answer, DecisionRequest};
use crate::decision::Decision;
use crate::failure::Failure;
use crate::question::Question as _;
use crate::value::{self, Value};

/// The rules of one decider. A question without a rule stays unanswered.
pub struct Rules<'a> {
    request: &'a DecisionRequest,
    answers: Vec<Answer>,
    failure: Option<Failure>,
}

impl<'a> Rules<'a> {
    pub(crate) fn new(request: &'a DecisionRequest) -> Self {
        Self { request, answers: Vec::new(), failure: None }
    }

    /// Answers the question that `rule` gives a decision of, about the states that it takes. The first rule for a
    /// question and a state answers.
    pub fn rule<S, R>(mut self, rule: impl Fn(&S) -> R) -> Self
    where
        S: Value,
        R: RuleOutcome,
    {
        let key = <R::Decision as Decision>::Question::KEY;
        let is_asked = self.request.state.type_name == S::NAME
            && self.request.questions.iter().any(|question| question.key == key)
            && self.answers.iter().all(|answer| answer.key != key);
        if is_asked && self.failure.is_none() {
            let decided = value::take(&self.request.state).and_then(|state| rule(&state).outcome());
            match decided {
                Ok(decision) => self.answers.push(Answer {
                    key: key.to_owned(),
                    kind: decision.into_answer(),
                    model: None,
                }),
                Err(failure) => self.failure = Some(failure),
            }
        }
        self
    }

    pub(crate) fn into_answers(self) -> Result<Vec<Answer>, Failure> {
        self.failure.map_or(Ok(self.answers), Err)
    }
}

/// What a rule returns: a decision, or a `Result` of one.
#[diagnostic::on_unimplemented(
    message = "a rule cannot return `{Self}`",
    label = "not a decision",
    note = "a rule returns `ChoiceDecision`, `ScoreDecision` or `YesNoDecision` of its question, or a `Result` of one"
)]
pub trait RuleOutcome {
    /// The decision.
    type Decision: Decision;

    /// What became of the rule.
    fn outcome(self) -> Result<Self::Decision, Failure>;
}

impl<D: Decision> RuleOutcome for D {
    type Decision = D;

    fn outcome(self) -> Result<D, Failure> {
        Ok(self)
    }
}

impl<D: Decision, E: Into<Failure>> RuleOutcome for Result<D, E> {
    type Decision = D;

    fn outcome(self) -> Result<D, Failure> {
        self.map_err(Into::into)
    }
}
