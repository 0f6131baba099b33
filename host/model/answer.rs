//! Answers to questions, as deciders give them and Memory keeps them.

use serde::{Deserialize, Serialize};

/// What a decider answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// One option.
    Choice {
        /// The option's name.
        choice: String,
        /// From 0 to 1.
        confidence: f64,
        /// Per option, where the decider knows it.
        probabilities: Vec<(String, f64)>,
    },
    /// A point on the scale.
    Score {
        /// From 0 to the number of levels less one.
        score: f64,
        /// From 0 to 1.
        confidence: f64,
        /// Per level, lowest first, or empty.
        probabilities: Vec<f64>,
    },
    /// Yes or no.
    YesNo {
        /// The probability of yes, from 0 to 1.
        probability: f64,
    },
}

impl AnswerKind {
    /// The kind of question it answers: `choice`, `score` or `yes_no`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Choice { .. } => "choice",
            Self::Score { .. } => "score",
            Self::YesNo { .. } => "yes_no",
        }
    }
}

/// The answer to the question with this key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The question's key.
    pub key: String,
    /// What was answered.
    pub kind: AnswerKind,
    /// The model that answered, where one did.
    pub model: Option<String>,
}
