//! Questions as types: choices, scores, and yes or no.

use crate::bindings::trax::train::questions as wit;
use crate::decision::{ChoiceDecision, Decision, ScoreDecision, YesNoDecision};

/// A question that a train asks. Implemented by `#[derive(Choice)]`, `#[derive(Score)]` and `#[derive(YesNo)]`, with
/// `#[asks("...", key = "...", sensitive)]` above the type: the words of the question, its key where it is not the
/// type's name, and whether its answers are withheld from operators.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a question",
    label = "not a question",
    note = "add `#[derive(Choice)]`, `#[derive(Score)]` or `#[derive(YesNo)]`, and `#[asks(\"...\")]`"
)]
pub trait Question: Sized + 'static {
    /// Unique in a train.
    const KEY: &'static str;
    /// What is asked, in words.
    const INSTRUCTIONS: &'static str;
    /// Whether its answers are withheld from everything but the run.
    const IS_SENSITIVE: bool;
    /// What the answer is read as.
    type Decision: Decision<Question = Self>;
}

/// One thing a question can be answered with.
pub struct Criterion {
    /// The option's or level's name.
    pub name: &'static str,
    /// What it stands for, in words for the decider.
    pub description: Option<&'static str>,
}

/// The variants of an enum that is asked for.
pub trait Criteria: Sized + 'static {
    /// The variants, in the order in which they are written.
    const CRITERIA: &'static [Criterion];

    /// Which variant this is, from 0.
    fn position(&self) -> usize;

    /// The variant at this position.
    fn at(position: usize) -> Option<Self>;

    /// The variant's name.
    fn name(&self) -> &'static str {
        Self::CRITERIA[self.position()].name
    }

    /// The variant of this name.
    fn named(name: &str) -> Option<Self> {
        Self::at(Self::CRITERIA.iter().position(|criterion| criterion.name == name)?)
    }
}

/// A question that is answered with one of an enum's variants. Implemented by `#[derive(Choice)]`;
/// `#[describe("...")]` above a variant says what it stands for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a choice",
    label = "not a choice",
    note = "a switch routes by an enum with `#[derive(Choice)]` and `#[asks(\"...\")]`"
)]
pub trait Choice: Question<Decision = ChoiceDecision<Self>> + Criteria {}

/// A question that is answered with a point on a scale of an enum's variants, lowest first. Implemented by
/// `#[derive(Score)]`; `#[describe("...")]` above a variant says what it stands for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a score",
    label = "not a score",
    note = "a scale routes by an enum with `#[derive(Score)]` and `#[asks(\"...\")]`"
)]
pub trait Score: Question<Decision = ScoreDecision<Self>> + Criteria {}

/// A question that is answered with yes or no. Implemented by `#[derive(YesNo)]` on a struct without members;
/// `#[asks("...", yes = "...", no = "...")]` says what the two mean.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a yes/no question",
    label = "not a yes/no question",
    note = "a gate routes by a struct without members with `#[derive(YesNo)]` and `#[asks(\"...\")]`"
)]
pub trait YesNo: Question<Decision = YesNoDecision<Self>> {
    /// What yes means.
    const YES: Option<&'static str>;
    /// What no means.
    const NO: Option<&'static str>;
}

/// The question as it is declared.
pub(crate) fn declare<Q: Question>() -> wit::Question {
    wit::Question {
        key: Q::KEY.to_owned(),
        instructions: Q::INSTRUCTIONS.to_owned(),
        kind: Q::Decision::kind(),
        sensitive: Q::IS_SENSITIVE,
    }
}

pub(crate) fn criteria<T: Criteria>() -> Vec<wit::Criterion> {
    let declare = |criterion: &Criterion| wit::Criterion {
        name: criterion.name.to_owned(),
        description: criterion.description.map(str::to_owned),
    };
    T::CRITERIA.iter().map(declare).collect()
}
