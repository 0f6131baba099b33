//! Which checkpoints count for a run that resumes: those of the run it resumes, and of the runs that one resumed.

use std::collections::BTreeSet;

use crate::chain::Chain;
use crate::chain::resume::Stored;
use crate::model::ids::RunId;

/// The most runs that are followed back.
pub const RUNS_MAX: usize = 64;

/// A run and what it stored.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The run.
    pub run: RunId,
    /// The node it resumed at itself, if it was told one.
    pub resume_at: Option<String>,
    /// Its own checkpoints.
    pub checkpoints: Vec<Stored>,
}

/// The checkpoints that count, of runs from the nearest back, each resumed by the one before it.
///
/// Of one node the nearest run's counts. Where a run resumed at a named node, what older runs stored at that node and
/// after it does not.
pub fn stored(chain: &Chain, attempts: impl IntoIterator<Item = Attempt>) -> Vec<Stored> {
    let (mut runs, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    let mut stored = Vec::new();
    let mut first_repeated = None;
    for attempt in attempts.into_iter().take(RUNS_MAX) {
        if !runs.insert(attempt.run) {
            break;
        }
        for row in attempt.checkpoints {
            let node = chain.find(&row.node_id);
            let is_repeated = node.is_some() && first_repeated.is_some() && node >= first_repeated;
            if !is_repeated && nodes.insert(row.node_id.clone()) {
                stored.push(row);
            }
        }
        let at = attempt.resume_at.and_then(|id| chain.find(&id));
        first_repeated = first_repeated.into_iter().chain(at).min();
    }
    stored
}
