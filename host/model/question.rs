//! Typed questions, as a train declares them.

use serde::{Deserialize, Serialize};

/// One thing a question can be answered with: an option of a choice, or a level of a scale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// The option's or level's name.
    pub name: String,
    /// What it stands for, in words for the decider.
    pub description: Option<String>,
}

/// What a question can be answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// One of these options.
    Choice(Vec<Criterion>),
    /// A point on this scale, lowest level first.
    Score(Vec<Criterion>),
    /// The probability that the answer is yes.
    YesNo {
        /// What yes means.
        yes: Option<String>,
        /// What no means.
        no: Option<String>,
    },
}

impl QuestionKind {
    /// The name in rows and output: `choice`, `score` or `yes_no`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Choice(_) => "choice",
            Self::Score(_) => "score",
            Self::YesNo { .. } => "yes_no",
        }
    }
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Unique in the train.
    pub key: String,
    /// What is asked, in words.
    pub instructions: String,
    /// What it can be answered with.
    pub kind: QuestionKind,
    /// Whether its answers and tracks are withheld from everything but the run.
    pub sensitive: bool,
}

impl Question {
    /// The type of the decision in Memory, for example `ChoiceDecision<Team>`.
    pub fn decision_type(&self) -> String {
        let kind = match self.kind {
            QuestionKind::Choice(_) => "ChoiceDecision",
            QuestionKind::Score(_) => "ScoreDecision",
            QuestionKind::YesNo { .. } => "YesNoDecision",
        };
        format!("{kind}<{}>", self.key)
    }
}
