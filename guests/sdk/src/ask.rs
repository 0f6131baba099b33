//! Questions asked from inside a junction.

use std::marker::PhantomData;

use crate::bindings::trax::train::decisions;
use crate::bindings::trax::train::questions::Answer;
use crate::decision::Decision as _;
use crate::declaration::JunctionDeclaration;
use crate::failure::Failure;
use crate::junction::{Inputs, Parameter};
use crate::question::Question;
use crate::value::{self, Value};

/// The right to ask `Q` about values of type `S` while a junction runs. A junction that has it as a parameter declares
/// that it asks; it is no input.
///
/// ```no_run
/// # use trax_sdk::prelude::*;
/// #[derive(Value)]
/// struct Draft {
///     text: String,
/// }
///
/// #[derive(YesNo)]
/// #[asks("Is this letter friendly?")]
/// struct IsFriendly;
///
/// fn refine(draft: Draft, friendly: Ask<IsFriendly, Draft>) -> Result<Draft, Failure> {
///     if friendly.about(&draft)?.probability >= 0.5 {
///         return Ok(draft);
///     }
///     Ok(Draft { text: format!("{}\n\nKind regards", draft.text) })
/// }
/// ```
///
/// `Q` is one question or a tuple of them, which are then asked in one call.
pub struct Ask<Q, S>(PhantomData<fn(S) -> Q>);

impl<Q: Questions, S: Value> Ask<Q, S> {
    /// Asks. The host records the answers before it returns them.
    ///
    /// # Errors
    /// The decider failed, or its answer does not fit the question.
    pub fn about(&self, state: &S) -> Result<Q::Decisions, Failure> {
        let state = value::give(state)?;
        let answers = decisions::decide(&state, &Q::keys()).map_err(Failure::from_host)?;
        Q::read(answers)
    }
}

impl<Q: Questions, S: Value> Parameter for Ask<Q, S> {
    fn declare(junction: &mut JunctionDeclaration<'_>) {
        Q::declare(junction);
        junction.asks_about::<S>();
    }

    fn take(_: &mut Inputs) -> Result<Self, Failure> {
        Ok(Self(PhantomData))
    }
}

/// One question, or a tuple of questions.
pub trait Questions {
    /// The decision, or a tuple of decisions.
    type Decisions;

    /// Says that they are asked.
    fn declare(junction: &mut JunctionDeclaration<'_>);

    /// Their keys, in order.
    fn keys() -> Vec<String>;

    /// Reads their answers, which stand in the same order.
    fn read(answers: Vec<Answer>) -> Result<Self::Decisions, Failure>;
}

impl<Q: Question> Questions for Q {
    type Decisions = Q::Decision;

    fn declare(junction: &mut JunctionDeclaration<'_>) {
        junction.asks::<Q>();
    }

    fn keys() -> Vec<String> {
        vec![Q::KEY.to_owned()]
    }

    fn read(answers: Vec<Answer>) -> Result<Q::Decision, Failure> {
        read_next::<Q>(&mut answers.into_iter())
    }
}

macro_rules! questions {
    ($(($($question:ident)+))+) => {$(
        impl<$($question: Question),+> Questions for ($($question,)+) {
            type Decisions = ($($question::Decision,)+);

            fn declare(junction: &mut JunctionDeclaration<'_>) {
                $(junction.asks::<$question>();)+
            }

            fn keys() -> Vec<String> {
                vec![$($question::KEY.to_owned()),+]
            }

            fn read(answers: Vec<Answer>) -> Result<Self::Decisions, Failure> {
                let mut answers = answers.into_iter();
                Ok(($(read_next::<$question>(&mut answers)?,)+))
            }
        }
    )+};
}

questions! { (Q1 Q2) (Q1 Q2 Q3) (Q1 Q2 Q3 Q4) (Q1 Q2 Q3 Q4 Q5) (Q1 Q2 Q3 Q4 Q5 Q6) }

fn read_next<Q: Question>(
    answers: &mut impl Iterator<Item = Answer>,
) -> Result<Q::Decision, Failure> {
    let answer = answers.next().filter(|answer| answer.key == Q::KEY).ok_or_else(|| {
        Failure::permanent("MissingAnswer", format!("the host did not answer '{}'", Q::KEY))
    })?;
    Q::Decision::from_answer(answer.kind)
}
