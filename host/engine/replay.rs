//! Loading a replay, once, before a run's first junction.

use crate::decide::replay::{Broken, Link, Recorded, Replay, line};
use crate::engine::config::Shared;
use crate::model::failure::Failure;
use crate::model::ids::{DecisionId, RunId, TenantId};
use crate::model::message;
use crate::store::decisions::{self, Decision};
use crate::store::runs::Run;
use crate::store::{StoreError, Tx};

/// The name of the failure of a run that was to replay decisions and cannot.
pub const NOT_REPLAYED: &str = "NotReplayed";

/// How many decisions are read at once.
const PAGE: u32 = 1_000;

/// What a run is given of the answers of earlier runs.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The answers; none when it replays no run.
    pub replay: Replay,
    /// Whether it should have replayed and asks its deciders after all.
    pub is_abandoned: bool,
}

/// Why a run does not start.
#[derive(Debug)]
pub enum Unloaded {
    /// It was to replay decisions that cannot be had.
    Failed(Failure),
    /// The store could not be read.
    Store(StoreError),
}

impl From<StoreError> for Unloaded {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Loads what a run replays. A manifest's run that cannot have it asks its deciders afresh; any other fails.
///
/// # Errors
/// [`Unloaded`] when the run does not start.
pub async fn load(shared: &Shared, tenant: TenantId, run: &Run) -> Result<Loaded, Unloaded> {
    let Some(replayed) = run.replay_decisions_of.filter(|_| !run.replay_abandoned) else {
        return Ok(Loaded::default());
    };
    let mut tx = shared.db.read().await?;
    let read = if shared.config.records_decisions {
        read(&mut tx, shared, tenant, run).await?
    } else {
        Err(Broken::HostRecordsNothing.to_string())
    };
    drop(tx);
    let is_manifests = run.manifest_id.is_some();
    let problem = match read {
        Ok(replay) => match replay.unreadable.first() {
            Some(unreadable) if !is_manifests => unreadable.clone(),
            _ => {
                tell(run.id, &replay);
                return Ok(Loaded { replay, is_abandoned: false });
            }
        },
        Err(problem) => problem,
    };
    if is_manifests {
        tracing::warn!(
            run = %run.id,
            "the decisions of run {replayed} are not replayed, and the deciders are asked afresh: {problem}"
        );
        return Ok(Loaded { replay: Replay::default(), is_abandoned: true });
    }
    let message = message::not_replayed(replayed.0, &problem);
    Err(Unloaded::Failed(Failure::permanent(NOT_REPLAYED, message)))
}

fn tell(run: RunId, replay: &Replay) {
    for left_out in &replay.left_out {
        tracing::info!(%run, "asked afresh: {left_out}");
    }
    for unreadable in &replay.unreadable {
        tracing::warn!(%run, "asked afresh: {unreadable}");
    }
}

async fn read(
    tx: &mut Tx<'_>,
    shared: &Shared,
    tenant: TenantId,
    run: &Run,
) -> Result<Result<Replay, String>, StoreError> {
    let known = decisions::line(tx, tenant, run.id).await?;
    let known = known.into_iter().map(|link| (link.run, link)).collect();
    let start = Link {
        run: run.id,
        train: run.name.clone(),
        replay_decisions_of: run.replay_decisions_of,
        replay_abandoned: run.replay_abandoned,
        decisions_recorded: run.decisions_recorded,
    };
    let line = match line(&start, &known) {
        Ok(line) => line,
        Err(broken) => return Ok(Err(broken.to_string())),
    };
    let mut answers = Vec::new();
    for earlier in &line {
        let mut after = DecisionId(0);
        loop {
            let page = decisions::of_run(tx, tenant, *earlier, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            answers.extend(page.into_iter().filter_map(|row| recorded(*earlier, row)));
        }
    }
    let now = tx.now().await?;
    Ok(Ok(Replay::of(&line, answers, now, shared.config.replay_answers_for)))
}

/// A decision that was acted on.
fn recorded(run: RunId, row: Decision) -> Option<Recorded> {
    if row.refused.is_some() {
        return None;
    }
    let occurrence = u32::try_from(row.occurrence).unwrap_or(0);
    Some(Recorded {
        run,
        key: (row.branch_path, row.question_key, row.asked_by, occurrence),
        kind: row.kind,
        answer: row.answer.unwrap_or_default(),
        model: row.model,
        fingerprint: row.fingerprint,
        state_hash: row.state_hash,
        is_replayed: row.replayed,
        decided_at: row.decided_at,
    })
}
