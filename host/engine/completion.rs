//! The ends of runs, written together: as many as are ready go into one transaction, each undone by itself if it fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::engine::config::Shared;
use crate::engine::due;
use crate::engine::error::{EngineError, causes};
use crate::engine::pauses::Pauses;
use crate::engine::run_journal::RunJournal;
use crate::engine::seal::Sealed;
use crate::model::failure::Failure;
use crate::model::ids::{Claim, EntryId, ManifestId, TenantId};
use crate::store::dispatch::{self, DispatchFailed, DispatchFailure};
use crate::store::parked::{self, Stop};
use crate::store::runs::Standing;
use crate::store::{
    ParkReason, StoreError, TrainState, Tx, endings, junction_runs, manifests, runs,
};

/// The most ends in one transaction.
const BATCH_MAX: usize = 64;
/// How long a run waits that was put back because this host could not run it.
const CAPACITY_PAUSE: Duration = Duration::from_secs(1);

/// How a run leaves this host.
#[derive(Debug, Clone)]
pub(in crate::engine) enum Outcome {
    Completed {
        output: String,
    },
    Failed {
        junction: Option<String>,
        failure: Failure,
    },
    /// It never started. With an entry: that is queued again if it may be; without: no other host can start it either.
    Undelivered {
        entry: Option<EntryId>,
        failure: Failure,
    },
    Cancelled,
    Parked {
        reason: ParkReason,
        memory: Option<Sealed>,
    },
}

/// A run that leaves this host.
pub(in crate::engine) struct Finish {
    pub(in crate::engine) claim: Claim,
    pub(in crate::engine) tenant: TenantId,
    pub(in crate::engine) manifest: Option<ManifestId>,
    pub(in crate::engine) journal: Option<Arc<RunJournal>>,
    pub(in crate::engine) outcome: Outcome,
}

/// Whether the run has ended or is parked, so that it is told; an attempt that is made again is not.
type IsTold = bool;

type Written = Result<IsTold, EngineError>;

type Reply = oneshot::Sender<Written>;

/// Takes the ends of runs.
#[derive(Clone)]
pub(in crate::engine) struct Completions(mpsc::Sender<(Finish, Reply)>);

impl Completions {
    /// Starts writing. It ends when nobody can send any more.
    pub(in crate::engine) fn start(shared: Arc<Shared>) -> Self {
        let (sender, mut receiver) = mpsc::channel(BATCH_MAX);
        tokio::spawn(async move {
            let mut batch: Vec<(Finish, Reply)> = Vec::new();
            while receiver.recv_many(&mut batch, BATCH_MAX).await > 0 {
                let ends = std::mem::take(&mut batch);
                let (ends, replies): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
                let results = write_all(&shared, &ends).await;
                for ((end, reply), result) in ends.into_iter().zip(replies).zip(results) {
                    if is_held_up(&result) {
                        // Somebody holds what this one needs. The others do not wait for it.
                        let shared = Arc::clone(&shared);
                        tokio::spawn(async move { reply.send(insist(&shared, end).await).ok() });
                    } else {
                        // Whoever waited may have given up.
                        reply.send(result).ok();
                    }
                }
            }
        });
        Self(sender)
    }

    /// Writes an end, and waits until it is durable, for as long as the store may come back. True: it is told; false:
    /// the run's entry is queued again.
    pub(in crate::engine) async fn write(&self, finish: Finish) -> Written {
        let run = finish.claim.run;
        let gone = || EngineError::Continue {
            run,
            problem: "nothing writes the ends of runs any more".to_owned(),
        };
        let (reply, result) = oneshot::channel();
        self.0.send((finish, reply)).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }
}

fn is_held_up(result: &Written) -> bool {
    matches!(result, Err(EngineError::Store(error)) if error.is_transient())
}

/// Writes ends together once the store takes them. If it refuses the transaction as such, each is written by itself.
async fn write_all(shared: &Shared, ends: &[Finish]) -> Vec<Written> {
    let mut pauses = Pauses::new();
    loop {
        match write(shared, ends).await {
            Ok(results) => return results,
            Err(error) if error.is_transient() => {
                let error = causes(&error);
                tracing::warn!(error, "the ends of runs wait for the store");
                if !shared.pause(pauses.longer()).await {
                    return ends
                        .iter()
                        .map(|end| Err(EngineError::GivenUp(end.claim.run)))
                        .collect();
                }
            }
            Err(error) => {
                let error = causes(&error);
                tracing::warn!(error, "the ends of runs were not written together");
                return each(shared, ends).await;
            }
        }
    }
}

/// Writes one end for as long as the store does not take it.
async fn insist(shared: &Shared, end: Finish) -> Written {
    let mut pauses = Pauses::new();
    loop {
        let mut results = write_all(shared, std::slice::from_ref(&end)).await;
        match results.pop() {
            Some(result) if is_held_up(&result) => {}
            result => return result.unwrap_or(Ok(true)),
        }
        tracing::warn!(run = %end.claim.run, "the end of a run waits for what somebody else holds");
        if !shared.pause(pauses.longer()).await {
            return Err(EngineError::GivenUp(end.claim.run));
        }
    }
}

async fn write(shared: &Shared, ends: &[Finish]) -> Result<Vec<Written>, StoreError> {
    let mut tx = shared.db.begin().await?;
    let together = together(&mut tx, shared, ends).await?;
    let mut results = Vec::with_capacity(ends.len());
    for (index, end) in ends.iter().enumerate() {
        let is_written = together.contains(&index);
        results.push(if is_written { Ok(true) } else { by_itself(&mut tx, shared, end).await? });
    }
    tx.commit().await?;
    Ok(results)
}

/// Writes an end so that nothing else is undone if that fails.
async fn by_itself(tx: &mut Tx<'_>, shared: &Shared, end: &Finish) -> Result<Written, StoreError> {
    let mut part = tx.savepoint().await?;
    match one(&mut part, shared, end).await {
        Ok(is_told) => {
            part.commit().await?;
            Ok(Ok(is_told))
        }
        Err(EngineError::Store(StoreError::LostClaim(run))) => {
            part.rollback().await?;
            let standing = runs::standing(tx, run).await?;
            let is_written = standing.is_some_and(|standing| has_left(end, standing));
            Ok(if is_written { Ok(true) } else { Err(StoreError::LostClaim(run).into()) })
        }
        Err(error) => {
            part.rollback().await?;
            Ok(Err(error))
        }
    }
}

/// Writes the runs that completed and have nothing else to write than their steps, in as many statements as one of them
/// takes, and says which they are. If one cannot be written so, none is.
async fn together(
    tx: &mut Tx<'_>,
    shared: &Shared,
    ends: &[Finish],
) -> Result<Vec<usize>, StoreError> {
    let (mut indexes, mut completed, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for (index, end) in ends.iter().enumerate() {
        let Outcome::Completed { output } = &end.outcome else { continue };
        let Some(rows) = end.journal.as_ref().map_or(Some(Vec::new()), |it| it.only_steps()) else {
            continue;
        };
        indexes.push(index);
        completed.push((end.claim, output.as_str()));
        steps.extend(rows.into_iter().map(|row| (end.claim, row)));
    }
    if indexes.len() < 2 {
        return Ok(Vec::new());
    }
    let mut part = tx.savepoint().await?;
    let steps: Vec<_> = steps.iter().map(|(claim, row)| (*claim, row)).collect();
    let mut held: Vec<ManifestId> =
        indexes.iter().filter_map(|index| ends[*index].manifest).collect();
    held.sort_unstable();
    held.dedup();
    let is_written = async {
        // Before any run of them and in one order, so that two hosts never wait for each other.
        manifests::hold_all(&mut part, &held).await?;
        if !junction_runs::write_all(&mut part, &steps).await?
            || !endings::complete_all(&mut part, &completed).await?
        {
            return Ok(false);
        }
        for index in &indexes {
            let end = &ends[*index];
            if let Some(manifest) = end.manifest {
                let window = shared.config.failure_count_window;
                due::succeed(&mut part, end.tenant, manifest, end.claim.run, window).await?;
            }
        }
        Ok::<_, EngineError>(true)
    };
    match is_written.await {
        Ok(true) => {
            part.commit().await?;
            return Ok(indexes);
        }
        Ok(false) => {}
        Err(error) => {
            let error = causes(&error);
            tracing::debug!(error, "runs are not ended together");
        }
    }
    part.rollback().await?;
    Ok(Vec::new())
}

/// Whether the run stands as this end leaves it, under the end's own claim: then a commit whose answer was lost was
/// durable. Whoever else ends or takes up a run spends its claim.
fn has_left(end: &Finish, standing: Standing) -> bool {
    let state = match end.outcome {
        Outcome::Completed { .. } => TrainState::Completed,
        Outcome::Failed { .. } | Outcome::Undelivered { .. } => TrainState::Failed,
        Outcome::Cancelled => TrainState::Cancelled,
        Outcome::Parked { .. } => {
            return standing.is_parked && standing.claim_token.0 == end.claim.token.0 + 1;
        }
    };
    standing.train_state == state && standing.claim_token == end.claim.token
}

/// The same, each in a transaction of its own.
async fn each(shared: &Shared, ends: &[Finish]) -> Vec<Written> {
    let mut results = Vec::with_capacity(ends.len());
    for end in ends {
        let result = write(shared, std::slice::from_ref(end)).await;
        results.push(result.map_err(EngineError::from).and_then(|mut one| one.remove(0)));
    }
    results
}

async fn one(tx: &mut Tx<'_>, shared: &Shared, end: &Finish) -> Written {
    let mut is_told = true;
    if let Some(journal) = &end.journal {
        journal.flush(tx).await?;
    }
    match &end.outcome {
        Outcome::Completed { output } => runs::complete(tx, end.claim, output).await?,
        Outcome::Failed { junction, failure } => {
            runs::fail(tx, end.claim, junction.as_deref(), failure).await?;
        }
        Outcome::Undelivered { entry: Some(entry), failure } => {
            let policy = shared.config.dispatch;
            let failed = DispatchFailure { entry: *entry, claim: end.claim, failure, policy };
            is_told = match dispatch::dispatch_failed(tx, &failed).await? {
                DispatchFailed::Started => return Err(StoreError::LostClaim(end.claim.run).into()),
                DispatchFailed::Requeued { .. } => false,
                DispatchFailed::GivenUp => true,
            };
        }
        Outcome::Undelivered { entry: None, failure } => {
            runs::fail(tx, end.claim, Some(dispatch::DISPATCH_JUNCTION), failure).await?;
        }
        Outcome::Cancelled => runs::cancel(tx, end.claim).await?,
        Outcome::Parked { reason, memory } => {
            let pause = match reason {
                // What this host could not do now it could not do at once either.
                ParkReason::Capacity => CAPACITY_PAUSE,
                ParkReason::HandOver | ParkReason::Person => Duration::ZERO,
            };
            let wake_at = Some(tx.now().await?.saturating_add(pause));
            let memory = memory.as_ref().map(|(memory, key_id)| (&memory[..], &key_id[..]));
            let stop = Stop { reason: *reason, node_id: None, memory, wake_at };
            parked::park(tx, end.claim, &stop).await?;
        }
    }
    let Some(manifest) = end.manifest else { return Ok(is_told) };
    if matches!(end.outcome, Outcome::Parked { .. }) {
        return Ok(is_told);
    }
    let window = shared.config.failure_count_window;
    if matches!(end.outcome, Outcome::Completed { .. }) {
        due::succeed(tx, end.tenant, manifest, end.claim.run, window).await?;
    } else {
        due::settle(tx, end.tenant, manifest, window).await?;
    }
    Ok(is_told)
}
