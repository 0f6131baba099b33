//! Decisions: answers to questions, as junctions take them and as rules give them.

use std::marker::PhantomData;

use crate::bindings::trax::train::questions::{
    AnswerKind, ChoiceAnswer, Meanings, QuestionKind, ScoreAnswer,
};
use crate::failure::Failure;
use crate::json::{ReadError, Reader};
use crate::question::{Choice, Question, Score, YesNo, criteria};
use crate::shape::Shape as _;

/// An answer that has been checked against its question. A junction takes decisions as inputs and cannot give any.
pub trait Decision: Sized {
    /// What was asked.
    type Question: Question;

    /// The name in Memory before the question's key, for example `ChoiceDecision`.
    const PREFIX: &'static str;

    /// What the question can be answered with.
    fn kind() -> QuestionKind;

    /// Reads an answer.
    fn from_answer(answer: AnswerKind) -> Result<Self, Failure>;

    /// Gives it as an answer.
    fn into_answer(self) -> AnswerKind;

    /// Reads it as it stands in Memory.
    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError>;
}

fn unfit<Q: Question>(problem: &str) -> Failure {
    Failure::transient("UnfitAnswer", format!("the answer to '{}' {problem}", Q::KEY))
}

/// One option was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceDecision<T> {
    /// The option.
    pub choice: T,
    /// How sure the decider is, from 0 to 1.
    pub confidence: f64,
    /// The probabilities of options, where the decider knows them.
    pub probabilities: Vec<(T, f64)>,
}

impl<T> ChoiceDecision<T> {
    /// This option, this sure.
    pub fn new(choice: T, confidence: f64) -> Self {
        Self { choice, confidence, probabilities: Vec::new() }
    }

    /// This option without a doubt.
    pub fn certain(choice: T) -> Self {
        Self::new(choice, 1.0)
    }
}

impl<T: Choice> Decision for ChoiceDecision<T> {
    type Question = T;
    const PREFIX: &'static str = "ChoiceDecision";

    fn kind() -> QuestionKind {
        QuestionKind::Choice(criteria::<T>())
    }

    fn from_answer(answer: AnswerKind) -> Result<Self, Failure> {
        let AnswerKind::Choice(answer) = answer else {
            return Err(unfit::<T>("is no choice"));
        };
        let option = |name: &str| T::named(name).ok_or_else(|| unfit::<T>("names no option"));
        let probabilities = answer.probabilities.iter();
        Ok(Self {
            choice: option(&answer.choice)?,
            confidence: answer.confidence,
            probabilities: probabilities
                .map(|(name, p)| Ok((option(name)?, *p)))
                .collect::<Result<_, Failure>>()?,
        })
    }

    fn into_answer(self) -> AnswerKind {
        let probabilities = self.probabilities.iter();
        AnswerKind::Choice(ChoiceAnswer {
            choice: self.choice.name().to_owned(),
            confidence: self.confidence,
            probabilities: probabilities
                .map(|(option, p)| (option.name().to_owned(), *p))
                .collect(),
        })
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        let (mut choice, mut confidence, mut probabilities) = (None, None, Vec::new());
        input.object(&mut |input, name| {
            match name {
                "choice" => {
                    let name = input.string()?;
                    choice = Some(T::named(&name).ok_or_else(|| input.unknown_variant(&name))?);
                }
                "confidence" => confidence = Some(f64::read(input)?),
                "probabilities" => input.object(&mut |input, name| {
                    let option = T::named(name).ok_or_else(|| input.unknown_variant(name))?;
                    probabilities.push((option, f64::read(input)?));
                    Ok(())
                })?,
                _ => return Err(input.unknown_member(name)),
            }
            Ok(())
        })?;
        let choice = choice.ok_or_else(|| input.error("the member 'choice' is missing"))?;
        Ok(Self {
            choice,
            confidence: input.member("confidence", confidence, f64::absent)?,
            probabilities,
        })
    }
}

/// A point on a scale.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreDecision<T> {
    /// From 0, the lowest level, to the number of levels less one.
    pub score: f64,
    /// How sure the decider is, from 0 to 1.
    pub confidence: f64,
    /// The probability of each level, lowest first, where the decider knows them.
    pub probabilities: Vec<f64>,
    question: PhantomData<T>,
}

impl<T: Score> ScoreDecision<T> {
    /// This point on the scale, this sure.
    pub fn new(score: f64, confidence: f64) -> Self {
        Self { score, confidence, probabilities: Vec::new(), question: PhantomData }
    }

    /// This level without a doubt.
    pub fn certain(level: &T) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "an enum has few variants")]
        Self::new(level.position() as f64, 1.0)
    }

    /// The nearest level, halves up: the one that a scale routes by.
    ///
    /// # Panics
    /// Never: a scale has levels.
    pub fn level(&self) -> T {
        let top = T::CRITERIA.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float becomes the nearest integer there is"
        )]
        let position = ((self.score + 0.5).floor() as usize).min(top);
        T::at(position).expect("a position on the scale")
    }
}

impl<T: Score> Decision for ScoreDecision<T> {
    type Question = T;
    const PREFIX: &'static str = "ScoreDecision";

    fn kind() -> QuestionKind {
        QuestionKind::Score(criteria::<T>())
    }

    fn from_answer(answer: AnswerKind) -> Result<Self, Failure> {
        let AnswerKind::Score(answer) = answer else {
            return Err(unfit::<T>("is no score"));
        };
        let ScoreAnswer { score, confidence, probabilities } = answer;
        Ok(Self { score, confidence, probabilities, question: PhantomData })
    }

    fn into_answer(self) -> AnswerKind {
        let Self { score, confidence, probabilities, .. } = self;
        AnswerKind::Score(ScoreAnswer { score, confidence, probabilities })
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        let (mut score, mut confidence, mut probabilities) = (None, None, Vec::new());
        input.object(&mut |input, name| {
            match name {
                "score" => score = Some(f64::read(input)?),
                "confidence" => confidence = Some(f64::read(input)?),
                "probabilities" => probabilities = Vec::read(input)?,
                _ => return Err(input.unknown_member(name)),
            }
            Ok(())
        })?;
        Ok(Self {
            score: input.member("score", score, f64::absent)?,
            confidence: input.member("confidence", confidence, f64::absent)?,
            probabilities,
            question: PhantomData,
        })
    }
}

/// How likely the answer is yes.
#[derive(Debug, Clone, PartialEq)]
pub struct YesNoDecision<T> {
    /// From 0 to 1.
    pub probability: f64,
    question: PhantomData<T>,
}

impl<T: YesNo> YesNoDecision<T> {
    /// This likely yes.
    pub fn new(probability: f64) -> Self {
        Self { probability, question: PhantomData }
    }

    /// Yes or no without a doubt.
    pub fn certain(is_yes: bool) -> Self {
        Self::new(if is_yes { 1.0 } else { 0.0 })
    }
}

impl<T: YesNo> Decision for YesNoDecision<T> {
    type Question = T;
    const PREFIX: &'static str = "YesNoDecision";

    fn kind() -> QuestionKind {
        QuestionKind::YesNo(Meanings {
            yes: T::YES.map(str::to_owned),
            no: T::NO.map(str::to_owned),
        })
    }

    fn from_answer(answer: AnswerKind) -> Result<Self, Failure> {
        match answer {
            AnswerKind::YesNo(probability) => Ok(Self::new(probability)),
            AnswerKind::Choice(_) | AnswerKind::Score(_) => Err(unfit::<T>("is no probability")),
        }
    }

    fn into_answer(self) -> AnswerKind {
        AnswerKind::YesNo(self.probability)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        let mut probability = None;
        input.object(&mut |input, name| match name {
            "probability" => {
                probability = Some(f64::read(input)?);
                Ok(())
            }
            _ => Err(input.unknown_member(name)),
        })?;
        Ok(Self::new(input.member("probability", probability, f64::absent)?))
    }
}

/// Which track a routing step took by a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackTaken<T> {
    /// The track's name.
    pub track: String,
    /// Why the decision was not followed, where it was not.
    pub fallback_reason: Option<String>,
    question: PhantomData<T>,
}

impl<T: Question> TrackTaken<T> {
    /// For tests of junctions that take one.
    pub fn new(track: impl Into<String>, fallback_reason: Option<String>) -> Self {
        Self { track: track.into(), fallback_reason, question: PhantomData }
    }

    /// Reads it as it stands in Memory.
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        let (mut track, mut fallback_reason) = (None, None);
        input.object(&mut |input, name| {
            match name {
                "track" => track = Some(String::read(input)?),
                "fallbackReason" => fallback_reason = Option::read(input)?,
                _ => return Err(input.unknown_member(name)),
            }
            Ok(())
        })?;
        Ok(Self::new(input.member("track", track, String::absent)?, fallback_reason))
    }
}
