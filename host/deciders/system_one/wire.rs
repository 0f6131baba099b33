//! What is sent to a System One model, and how its answers are read.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::deciders::Request;
use crate::deciders::model_client::{self, MODEL_FAILED};
use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::Failure;
use crate::model::question::{Criterion, Question, QuestionKind};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    state: &'a RawValue,
    questions: Questions<'a>,
}

struct Questions<'a>(&'a [&'a Question]);

/// In the order in which they are asked.
impl Serialize for Questions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for question in self.0 {
            map.serialize_entry(&question.key, &Asked::of(question))?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Asked<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    instructions: &'a str,
    criteria: Criteria<'a>,
}

enum Criteria<'a> {
    Options(&'a [Criterion]),
    Levels(&'a [Criterion]),
    YesNo { yes: &'a str, no: &'a str },
}

impl<'a> Asked<'a> {
    fn of(question: &'a Question) -> Self {
        let (kind, criteria) = match &question.kind {
            QuestionKind::Choice(options) => ("choice", Criteria::Options(options)),
            QuestionKind::Score(levels) => ("score", Criteria::Levels(levels)),
            QuestionKind::YesNo { yes, no } => {
                let (yes, no) = (yes.as_deref().unwrap_or("Yes"), no.as_deref().unwrap_or("No"));
                ("noul", Criteria::YesNo { yes, no })
            }
        };
        Self { kind, instructions: &question.instructions, criteria }
    }
}

fn described(criterion: &Criterion) -> &str {
    criterion.description.as_deref().unwrap_or(&criterion.name)
}

impl Serialize for Criteria<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Options(options) => serializer
                .collect_map(options.iter().map(|option| (&option.name, described(option)))),
            Self::Levels(levels) => serializer.collect_seq(levels.iter().map(described)),
            Self::YesNo { yes, no } => serializer.collect_map([("true", yes), ("false", no)]),
        }
    }
}

/// The body of a request. The state is sent as the run holds it.
pub(super) fn request(model: &str, request: &Request<'_>) -> Result<String, Failure> {
    let body = |state| Body { model, state, questions: Questions(request.questions) };
    serde_json::from_str(&request.state.json)
        .and_then(|state: &RawValue| serde_json::to_string(&body(state)))
        .map_err(|_| {
            let reason = "the state cannot be written as JSON";
            Failure::permanent(MODEL_FAILED, model_client::told(request.train, reason, 1))
        })
}

/// The answers to these questions in the body of an answer, without those that cannot be read.
///
/// # Errors
/// What is wrong with a body that has no answers at all.
pub(super) fn answers(body: &[u8], questions: &[&Question]) -> Result<Vec<Answer>, &'static str> {
    let body: Value = serde_json::from_slice(body).map_err(|_| "is not JSON")?;
    let body = body.as_object().ok_or("is not an object")?;
    let model = match body.get("model") {
        None => None,
        Some(Value::String(model)) => Some(model.clone()),
        Some(_) => return Err("has a model that is not a text"),
    };
    let given = body.get("answers").and_then(Value::as_object).ok_or("has no answers")?;
    let answer = |question: &&Question| {
        let kind = read(given.get(&question.key)?, &question.kind)?;
        Some(Answer { key: question.key.clone(), kind, model: model.clone() })
    };
    Ok(questions.iter().filter_map(answer).collect())
}

fn read(given: &Value, asked: &QuestionKind) -> Option<AnswerKind> {
    match (given.get("type")?.as_str()?, asked) {
        ("choice", QuestionKind::Choice(_)) => choice(given),
        ("score", QuestionKind::Score(levels)) => score(given, levels.len()),
        ("noul", QuestionKind::YesNo { .. }) => {
            Some(AnswerKind::YesNo { probability: given.get("noul")?.as_f64()? })
        }
        _ => None,
    }
}

/// The confidence that is given, or else the probability; `None` when there is neither, or what is given is no number.
fn confidence(given: &Value, probability: Option<f64>) -> Option<f64> {
    match given.get("confidence") {
        None | Some(Value::Null) => probability,
        Some(number) => number.as_f64(),
    }
}

/// Probabilities by name, in no order; empty when there are none, `None` when they cannot be read.
fn probabilities(given: &Value) -> Option<BTreeMap<&str, f64>> {
    match given.get("probabilities") {
        None | Some(Value::Null) => Some(BTreeMap::new()),
        Some(Value::Object(given)) => {
            given.iter().map(|(name, p)| Some((name.as_str(), p.as_f64()?))).collect()
        }
        Some(_) => None,
    }
}

fn choice(given: &Value) -> Option<AnswerKind> {
    let choice = given.get("choice")?.as_str()?;
    let probabilities = probabilities(given)?;
    let confidence = confidence(given, probabilities.get(choice).copied())?;
    let probabilities = probabilities.into_iter().map(|(name, p)| (name.to_owned(), p)).collect();
    Some(AnswerKind::Choice { choice: choice.to_owned(), confidence, probabilities })
}

fn score(given: &Value, levels: usize) -> Option<AnswerKind> {
    let score = given.get("score")?.as_f64()?;
    let by_level = probabilities(given)?;
    let probabilities: Vec<f64> =
        if by_level.is_empty() && given.get("probabilities").is_none_or(Value::is_null) {
            Vec::new()
        } else if by_level.len() == levels {
            (0..levels)
                .map(|level| by_level.get(level.to_string().as_str()).copied())
                .collect::<Option<_>>()?
        } else {
            return None;
        };
    let confidence = confidence(given, nearest(score, &probabilities).copied())?;
    Some(AnswerKind::Score { score, confidence, probabilities })
}

/// The probability of the level nearest to a score. Halves are rounded away from zero.
fn nearest(score: f64, probabilities: &[f64]) -> Option<&f64> {
    let last = probabilities.len().checked_sub(1)?;
    let rounded = score.round();
    // The first level that is not below: counted up, no number is cast.
    let mut level = 0.0;
    let mut index = 0;
    while index < last && level < rounded {
        level += 1.0;
        index += 1;
    }
    probabilities.get(index)
}
