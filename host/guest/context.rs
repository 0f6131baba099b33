//! What a call into a guest is given by its caller: who it is for, what it may use, and who answers its questions.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::guest::run_log::RunLog;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::limits::Limits;
use crate::model::value::Value;

/// The run a junction is called for, as the guest may learn it.
#[derive(Debug, Clone, Default)]
pub struct RunInfo {
    /// The tenant the run belongs to.
    pub tenant: String,
    /// The train's name.
    pub train: String,
    /// Identifies the run.
    pub run_id: String,
    /// Shared by all runs that stand for the same work.
    pub occurrence_id: String,
    /// SHA-256 of the component in hex.
    pub component: String,
    /// 1 for the first run of an occurrence.
    pub attempt: u32,
    /// The manifest that scheduled the run.
    pub manifest: Option<String>,
    /// The instant the run was scheduled for, in microseconds since 1970 UTC.
    pub scheduled_at: Option<i64>,
}

/// The node a junction is called for.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The node that is running.
    pub node_id: String,
    /// How often this node has started in this run, from 0.
    pub visit: u32,
    /// The input of the run, as canonical JSON.
    pub run_input: Arc<str>,
}

impl Visit {
    /// No node: for calls outside a run.
    fn none() -> Self {
        Self { node_id: String::new(), visit: 0, run_input: Arc::from("") }
    }
}

/// How far a junction says it has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// From 0 to 1, if it can be told.
    pub fraction: Option<f64>,
    /// For people.
    pub message: String,
}

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers questions that a junction asks while it runs.
pub trait Ask: Send + Sync {
    /// Answers the questions with these keys about this state, in this order, and has recorded the answers when it
    /// returns.
    fn ask(&self, state: Value, keys: Vec<String>) -> BoxFuture<'_, Result<Vec<Answer>, Failure>>;

    /// How long askings have waited in all for what is the host's own business: that time is not the junction's.
    fn stalled(&self) -> Duration {
        Duration::ZERO
    }
}

/// Everything a call is given.
#[derive(Clone)]
pub struct CallContext {
    /// Who the call is for.
    pub run: Arc<RunInfo>,
    /// Where in the run it is.
    pub visit: Visit,
    /// What it may use.
    pub limits: Limits,
    /// Where its lines go.
    pub log: Arc<RunLog>,
    /// Set when the run is asked to stop.
    pub cancel: CancellationToken,
    /// Who answers; a junction that asks without one fails.
    pub asker: Option<Arc<dyn Ask>>,
    /// The junction's latest word on how far it is.
    pub progress: Arc<Mutex<Progress>>,
}

impl CallContext {
    /// A context without grants or questions, for `declare` and `answer`.
    pub fn bare(limits: Limits) -> Self {
        let log = Arc::new(RunLog::new(&limits));
        Self {
            run: Arc::default(),
            visit: Visit::none(),
            limits,
            log,
            cancel: CancellationToken::new(),
            asker: None,
            progress: Arc::default(),
        }
    }

    /// The same for this visit of this node in every run of the occurrence on the same input, in hex. Few junctions ask
    /// for it, so it is computed then.
    pub(in crate::guest) fn idempotency_key(&self) -> String {
        let Visit { node_id, visit, run_input } = &self.visit;
        let input_hash = hex::encode(Sha256::digest(run_input.as_bytes()));
        let mut hash = Sha256::new();
        let visit = visit.to_string();
        for part in [&*self.run.occurrence_id, &input_hash, node_id, &visit] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(hash.finalize())
    }

    /// How long the host has kept the junction waiting for its own reasons.
    pub(in crate::guest) fn stalled(&self) -> Duration {
        self.asker.as_ref().map_or(Duration::ZERO, |asker| asker.stalled())
    }

    /// Notes how far the junction is.
    pub(in crate::guest) fn set_progress(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}
