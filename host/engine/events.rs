//! What happens in the engine, for whoever watches it: a command that prints it, a page that shows it.
//!
//! Events are news, no record: a watcher that is too slow misses some, and nothing waits for it.

use std::time::Duration;

use tokio::sync::broadcast;

use crate::model::failure::Failure;
use crate::model::ids::{EntryId, Incarnation, RunId};
use crate::model::message;
use crate::model::timestamp::Timestamp;
use crate::model::value::Shown;
use crate::store::dispatch::DISPATCH_JUNCTION;

/// How many events a watcher may lag behind.
const BACKLOG: usize = 1_024;

/// Something that happened. Manifests are named by their external ids.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineEvent {
    /// A manifest was due and has been queued.
    RunQueued {
        /// The manifest.
        manifest: String,
        /// Its entry.
        entry: EntryId,
    },
    /// A manifest was due after a failure and has been queued.
    RetryQueued {
        /// The manifest.
        manifest: String,
        /// Its entry.
        entry: EntryId,
        /// The failures that count.
        failures: i64,
        /// How long it waits.
        delay: Duration,
        /// When it may be dispatched; `None`: now.
        due: Option<Timestamp>,
    },
    /// A manifest failed too often.
    DeadLettered {
        /// The manifest.
        manifest: String,
        /// Why.
        reason: String,
    },
    /// A run has started.
    RunStarted {
        /// The run.
        run: RunId,
        /// Its train.
        train: String,
        /// The manifest it is a run of.
        manifest: Option<String>,
        /// 1 for the first run of an occurrence.
        attempt: u32,
    },
    /// A run that was parked goes on, on this host.
    RunContinued {
        /// The run.
        run: RunId,
        /// Its train.
        train: String,
    },
    /// A question was answered.
    Decided {
        /// The run.
        run: RunId,
        /// The question's key.
        question: String,
        /// The answer as JSON, or why it was refused. Withheld for a sensitive question.
        answer: String,
        /// Who answered; nobody, when the answer is an earlier run's.
        decider: Option<String>,
    },
    /// A run has ended, or left this host.
    RunEnded {
        /// The run.
        run: RunId,
        /// Its train.
        train: String,
        /// The manifest it is a run of.
        manifest: Option<String>,
        /// How.
        ending: Ending,
    },
    /// A host gave no sign of life for too long.
    HostLost {
        /// That start of it.
        incarnation: Incarnation,
    },
    /// A run has failed because its host is gone.
    RunLost {
        /// The run.
        run: RunId,
    },
}

/// How a run ended on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It gave its result.
    Completed {
        /// Canonical JSON, unless its type is sensitive.
        output: Shown,
    },
    /// It failed.
    Failed {
        /// Where.
        junction: String,
        /// Why.
        failure: Failure,
    },
    /// Somebody cancelled it, or it took too long.
    Cancelled,
    /// It is parked, and goes on here or elsewhere.
    Parked,
    /// Another host owns it by now; what it did here since counts for nothing.
    ClaimLost,
}

impl Ending {
    /// What everybody is told of a run that failed before it started: its record alone says why.
    pub fn never_started() -> Self {
        Self::Failed {
            junction: DISPATCH_JUNCTION.to_owned(),
            failure: Failure::unclassified("DispatchFailed", message::DISPATCH_FAILED.to_owned()),
        }
    }
}

/// Where events go.
#[derive(Debug, Clone)]
pub struct Events(broadcast::Sender<EngineEvent>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }
}

impl Events {
    /// Everything that happens from now on.
    pub fn watch(&self) -> broadcast::Receiver<EngineEvent> {
        self.0.subscribe()
    }

    /// Tells whoever watches.
    pub(in crate::engine) fn publish(&self, event: EngineEvent) {
        // Nobody watching is fine.
        self.0.send(event).ok();
    }
}
