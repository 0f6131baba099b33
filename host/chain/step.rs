//! What the kinds of steps have in common, so that verification, numbering and walking read a declaration the same way.

use crate::chain::Chain;
use crate::chain::declaration::{Asking, Gate, Scale, Step, Switch};
use crate::model::question::{Question, QuestionKind};

/// A question with the words that a step asks it with, if they are its own.
pub(super) struct AskedKey<'a> {
    pub(super) key: &'a str,
    pub(super) instructions: Option<&'a str>,
}

/// What a step asks, whether it only asks or routes as well.
pub(super) struct Asked<'a> {
    pub(super) state: &'a str,
    pub(super) questions: Vec<AskedKey<'a>>,
    pub(super) decider: Option<&'a str>,
    pub(super) shadows: &'a [String],
    pub(super) wait_for_shadows_ms: Option<u64>,
}

/// A step that routes by a decision.
#[derive(Debug, Clone, Copy)]
pub enum Routing<'a> {
    /// By a choice.
    Switch(&'a Switch),
    /// By a yes/no question.
    Gate(&'a Gate),
    /// By a score.
    Scale(&'a Scale),
}

/// A track as a step names it.
pub(super) struct TrackUse {
    pub(super) track: u32,
    /// Whether it is taken because the decision is not followed.
    pub(super) is_fallback: bool,
}

impl AskedKey<'_> {
    /// The question in the step's words, where it has its own.
    pub(super) fn question(&self, chain: &Chain) -> Option<Question> {
        let mut question = chain.question(self.key)?.clone();
        if let Some(words) = self.instructions {
            question.instructions = words.to_string();
        }
        Some(question)
    }
}

/// The scope of a track's nodes: as [`super::node::Node::scope`], 0 is the train's own chain.
pub(super) const fn home(track: u32) -> usize {
    track as usize + 1
}

impl Step {
    /// The step as one that routes.
    pub fn routing(&self) -> Option<Routing<'_>> {
        match self {
            Self::Switch(switch) => Some(Routing::Switch(switch)),
            Self::Gate(gate) => Some(Routing::Gate(gate)),
            Self::Scale(scale) => Some(Routing::Scale(scale)),
            Self::Junction(_)
            | Self::ShortCircuit(_)
            | Self::Extract(_)
            | Self::Decide(_)
            | Self::Checkpoint(_)
            | Self::Parallel(_) => None,
        }
    }

    /// What the step asks, if it asks.
    pub(super) fn asked(&self) -> Option<Asked<'_>> {
        if let Self::Decide(decide) = self {
            let questions = decide.questions.iter().map(|question| AskedKey {
                key: &question.key,
                instructions: question.instructions.as_deref(),
            });
            return Some(Asked {
                state: &decide.state,
                questions: questions.collect(),
                decider: decide.decider.as_deref(),
                shadows: &decide.shadows,
                wait_for_shadows_ms: decide.wait_for_shadows_ms,
            });
        }
        let routing = self.routing()?;
        let asking = routing.asking()?;
        let instructions = asking.instructions.as_deref();
        Some(Asked {
            state: &asking.state,
            questions: vec![AskedKey { key: routing.question(), instructions }],
            decider: asking.decider.as_deref(),
            shadows: &asking.shadows,
            wait_for_shadows_ms: asking.wait_for_shadows_ms,
        })
    }

    /// The tracks of the step in declared order.
    pub(super) fn tracks(&self) -> Vec<TrackUse> {
        let followed = |track: u32| TrackUse { track, is_fallback: false };
        let fallback = |track: u32| TrackUse { track, is_fallback: true };
        match self {
            Self::Switch(switch) => {
                let tracks = switch.tracks.iter().map(|when| followed(when.track));
                tracks.chain(switch.otherwise.map(fallback)).collect()
            }
            Self::Scale(scale) => {
                let tracks = scale.tracks.iter().map(|at_least| followed(at_least.track));
                tracks.chain(scale.otherwise.map(fallback)).collect()
            }
            Self::Gate(gate) => [Some(gate.yes), Some(gate.no), gate.unsure]
                .into_iter()
                .flatten()
                .map(followed)
                .collect(),
            Self::Parallel(parallel) => parallel.branches.iter().copied().map(followed).collect(),
            Self::Junction(_)
            | Self::ShortCircuit(_)
            | Self::Extract(_)
            | Self::Decide(_)
            | Self::Checkpoint(_) => Vec::new(),
        }
    }
}

impl<'a> Routing<'a> {
    /// The key of the question it routes by.
    pub fn question(self) -> &'a str {
        match self {
            Self::Switch(switch) => &switch.question,
            Self::Gate(gate) => &gate.question,
            Self::Scale(scale) => &scale.question,
        }
    }

    /// How it asks that question itself, if it does.
    pub fn asking(self) -> Option<&'a Asking> {
        match self {
            Self::Switch(switch) => switch.asking.as_ref(),
            Self::Gate(gate) => gate.asking.as_ref(),
            Self::Scale(scale) => scale.asking.as_ref(),
        }
    }

    /// Its key in node ids, for example `Switch<Team>`.
    pub fn key(self) -> String {
        let kind = match self {
            Self::Switch(_) => "Switch",
            Self::Gate(_) => "Gate",
            Self::Scale(_) => "Scale",
        };
        format!("{kind}<{}>", self.question())
    }

    /// The type of the decision it routes by, for example `ChoiceDecision<Team>`.
    pub(super) fn decision_type(self) -> String {
        let kind = match self {
            Self::Switch(_) => "ChoiceDecision",
            Self::Gate(_) => "YesNoDecision",
            Self::Scale(_) => "ScoreDecision",
        };
        format!("{kind}<{}>", self.question())
    }

    /// Whether questions of this kind are what it routes by.
    pub(super) fn fits(self, kind: &QuestionKind) -> bool {
        matches!(
            (self, kind),
            (Self::Switch(_), QuestionKind::Choice(_))
                | (Self::Gate(_), QuestionKind::YesNo { .. })
                | (Self::Scale(_), QuestionKind::Score(_))
        )
    }
}
