//! What happens in a run, as it is recorded.
//!
//! An event is recorded before the run acts on it: when [`Journal::record`] returns, it is as durable as it will be.

use std::time::Duration;

use crate::chain::next::Routed;
use crate::decide::replay::{Earlier, Key};
use crate::engine::shadows::ShadowAnswer;
use crate::guest::context::BoxFuture;
use crate::guest::outcome::Receipt;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::question::Question;
use crate::model::value::Value;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A junction is about to be called.
    JunctionStarted {
        /// The node, for example `ParseTicket#0`.
        node: String,
        /// The junction's name.
        junction: String,
    },
    /// A junction has ended.
    JunctionEnded {
        /// The node.
        node: String,
        /// The junction's name.
        junction: String,
        /// What it used.
        receipt: Receipt,
        /// Why it failed, if it did.
        failure: Option<Failure>,
    },
    /// A question was answered.
    Decided(Box<Decided>),
    /// Shadows have answered a question, or had the time to.
    Shadowed(Box<Shadowed>),
    /// A routing step took a track.
    Routed {
        /// The routing step's node.
        node: String,
        /// The question's key.
        question_key: String,
        /// The track.
        track: String,
        /// Why the decision was not followed, if it was not.
        fallback_reason: Option<String>,
    },
    /// A checkpoint was reached.
    Checkpoint {
        /// The checkpoint's node.
        node: String,
        /// What is stored.
        state: Value,
        /// The tracks taken so far, those of sensitive questions left out.
        tracks: Vec<Routed>,
    },
}

/// A question and what came of asking it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The node that asked.
    pub node: String,
    /// The branch it asked in, or empty.
    pub branch: String,
    /// The question, in the words of the step that asked.
    pub question: Question,
    /// Whether a junction asked while it ran. Such askings are counted apart, per node.
    pub is_inside_junction: bool,
    /// The n-th asking of this question in the run and branch, from 0.
    pub occurrence: u32,
    /// Identifies the asking as it was declared.
    pub fingerprint: String,
    /// Identifies the state it was about, unless states like it are not hashed.
    pub state_hash: Option<String>,
    /// Who answered; nobody, when the answer is an earlier run's.
    pub decider: Option<String>,
    /// Why the answer of an earlier run was not given again, if there was one.
    pub replay_refused: Option<String>,
    /// What was answered; none when nothing was.
    pub answer: Option<Answer>,
    /// Why the answer is not acted on, if it is not.
    pub refused: Option<String>,
}

/// What shadows answered to a question that was answered before.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadowed {
    /// The node that asked.
    pub node: String,
    /// The branch it asked in, or empty.
    pub branch: String,
    /// The question's key.
    pub key: String,
    /// Whether its answers are withheld from everything but the run.
    pub is_sensitive: bool,
    /// Whether a junction asked while it ran.
    pub is_inside_junction: bool,
    /// The n-th asking of this question in the run and branch, from 0.
    pub occurrence: u32,
    /// What each answered.
    pub answers: Vec<ShadowAnswer>,
}

/// Where events go.
pub trait Journal: Send + Sync {
    /// Records an event.
    ///
    /// An error fails the node that the event belongs to.
    fn record(&self, event: Event) -> BoxFuture<'_, Result<(), Failure>>;

    /// What this same run has recorded for an asking before it stopped and continued.
    fn recall(&self, asking: Asking<'_>) -> Option<Recalled> {
        let _ = asking;
        None
    }

    /// What an earlier run answered to an asking, which this run may be given again.
    fn earlier(&self, asking: Asking<'_>) -> Option<&Earlier> {
        let _ = asking;
        None
    }

    /// Waits until what is only for people has waited for long enough, and records it. Whoever calls a junction waits
    /// for this beside it, and drops it when the junction has ended.
    fn overdue(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// How long recording has waited in all for a store that was away: that time is not the guest's.
    fn stalled(&self) -> Duration {
        Duration::ZERO
    }
}

/// Which asking of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asking<'a> {
    /// The branch, or empty.
    pub branch: &'a str,
    /// The question's key.
    pub key: &'a str,
    /// The node whose junction asked; empty when the chain did.
    pub asked_by: &'a str,
    /// The n-th one, from 0.
    pub occurrence: u32,
}

impl Asking<'_> {
    /// The same, to look it up by.
    pub fn key(&self) -> Key {
        let Self { branch, key, asked_by, occurrence } = *self;
        (branch.to_owned(), key.to_owned(), asked_by.to_owned(), occurrence)
    }
}

/// What a run recorded for an asking.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// Identifies the asking as it was declared.
    pub fingerprint: String,
    /// Identifies the state it was about.
    pub state_hash: Option<String>,
    /// The answer; none when it cannot be acted on.
    pub answer: Option<Answer>,
}
