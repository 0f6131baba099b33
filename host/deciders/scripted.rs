//! The scripted decider: answers from a file, for tests and local runs.
//!
//! The file is one JSON object: per question key an answer, or a list of answers for the first, second, ... asking.
//! The last of a list answers all later askings.
//!
//! ```json
//! {
//!   "Team": {"choice": "Billing", "confidence": 0.9},
//!   "Interest": [{"score": 2.4}, {"score": 0, "confidence": 0.3}],
//!   "IsSpam": {"probability": 0.1},
//!   "Mood": {"throws": "the model is away", "class": "transient"}
//! }
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use thiserror::Error;

use crate::deciders::Request;
use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::{Failure, FailureClass};

/// What it answers to one asking.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Choice {
        choice: String,
        #[serde(default = "certain")]
        confidence: f64,
    },
    Score {
        score: f64,
        #[serde(default = "certain")]
        confidence: f64,
    },
    YesNo {
        probability: f64,
    },
    Throws {
        throws: String,
        #[serde(default = "unclassified")]
        class: FailureClass,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Lines {
    Always(Line),
    InTurn(Vec<Line>),
}

const fn certain() -> f64 {
    1.0
}

const fn unclassified() -> FailureClass {
    FailureClass::Unclassified
}

/// The file is not a script.
#[derive(Debug, Error)]
#[error(
    "the answers cannot be read: {0}; expected an object from question keys to answers such as \
     {{\"choice\":\"Billing\",\"confidence\":0.9}}, {{\"score\":2}} or {{\"probability\":0.1}}"
)]
pub struct ScriptError(serde_json::Error);

/// Gives canned answers, and counts what it was asked.
#[derive(Debug)]
pub struct ScriptedDecider {
    script: BTreeMap<String, Lines>,
    asked: Mutex<BTreeMap<String, usize>>,
}

impl ScriptedDecider {
    /// Reads a script.
    ///
    /// # Errors
    /// [`ScriptError`] says what is expected.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let script = serde_json::from_str(text).map_err(ScriptError)?;
        Ok(Self { script, asked: Mutex::default() })
    }

    /// Answers from the script; questions that it does not know are left unanswered.
    ///
    /// # Errors
    /// What the script says it throws.
    pub fn decide(&self, request: Request<'_>) -> Result<Vec<Answer>, Failure> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = Vec::new();
        for question in request.questions {
            let count = asked.entry(question.key.clone()).or_default();
            let turn = *count;
            *count += 1;
            if let Some(line) = self.line(&question.key, turn) {
                answers.push(answer(&question.key, line)?);
            }
        }
        Ok(answers)
    }

    fn line(&self, key: &str, turn: usize) -> Option<&Line> {
        match self.script.get(key)? {
            Lines::Always(line) => Some(line),
            Lines::InTurn(lines) => lines.get(turn).or_else(|| lines.last()),
        }
    }

    /// How often a question was asked.
    pub fn times_asked(&self, key: &str) -> usize {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(key).copied().unwrap_or(0)
    }
}

fn answer(key: &str, line: &Line) -> Result<Answer, Failure> {
    let kind = match line.clone() {
        Line::Choice { choice, confidence } => {
            AnswerKind::Choice { choice, confidence, probabilities: Vec::new() }
        }
        Line::Score { score, confidence } => {
            AnswerKind::Score { score, confidence, probabilities: Vec::new() }
        }
        Line::YesNo { probability } => AnswerKind::YesNo { probability },
        Line::Throws { throws, class } => return Err(Failure::new(class, "Scripted", throws)),
    };
    Ok(Answer { key: key.to_owned(), kind, model: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::question::{Question, QuestionKind};
    use crate::model::value::Value;

    fn ask(decider: &ScriptedDecider, keys: &[&str]) -> Result<Vec<Answer>, Failure> {
        let question = |key: &&str| Question {
            key: (*key).to_owned(),
            instructions: "?".to_owned(),
            kind: QuestionKind::YesNo { yes: None, no: None },
            sensitive: false,
        };
        let questions: Vec<_> = keys.iter().map(question).collect();
        let questions: Vec<_> = questions.iter().collect();
        let state = Value::new("State", "{}");
        decider.decide(Request { train: "t", state: &state, questions: &questions })
    }

    /// Q20: canned answers, in turn where there are several; unknown questions are left out.
    #[test]
    fn answers_come_from_the_script() {
        let script = r#"{"A":{"choice":"x"},"B":[{"score":1,"confidence":0.5},{"score":2}],
                         "C":{"throws":"away","class":"transient"}}"#;
        let decider = ScriptedDecider::from_json(script).unwrap();

        let first = ask(&decider, &["A", "B", "Z"]).unwrap();
        let second = ask(&decider, &["B"]).unwrap();
        let third = ask(&decider, &["B"]).unwrap();

        let choice = "x".to_owned();
        let chosen = AnswerKind::Choice { choice, confidence: 1.0, probabilities: vec![] };
        let score =
            |score, confidence| AnswerKind::Score { score, confidence, probabilities: vec![] };
        assert_eq!(first.len(), 2);
        assert_eq!(first[0].kind, chosen);
        assert_eq!(first[1].kind, score(1.0, 0.5));
        assert_eq!(second[0].kind, score(2.0, 1.0));
        assert_eq!(third[0].kind, score(2.0, 1.0));
        let thrown = ask(&decider, &["C"]).unwrap_err();
        assert_eq!((thrown.message.as_str(), thrown.class), ("away", FailureClass::Transient));
        assert_eq!(decider.times_asked("B"), 3);
        assert_eq!(decider.times_asked("Y"), 0);
    }

    #[test]
    fn a_script_that_is_none_says_what_is_expected() {
        for text in ["", "[]", r#"{"A":1}"#, r#"{"A":{"choice":"x","extra":1}}"#] {
            let error = ScriptedDecider::from_json(text).unwrap_err().to_string();
            assert!(error.starts_with("the answers cannot be read: "), "{error}");
            assert!(error.contains("expected an object from question keys"), "{error}");
        }
    }
}
