//! Entries that could not be handed to a worker: they are queued again, or their run has failed before it started.

use std::time::Duration;

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::queue;
use super::runs::storable;
use super::types::row;
use crate::model::dispatch::DispatchPolicy;
use crate::model::failure::Failure;
use crate::model::ids::{Claim, EntryId, ManifestId, RunId};
use crate::model::message;
use crate::model::timestamp::Timestamp;

/// What stands for the junction of a run that failed before it started.
pub const DISPATCH_JUNCTION: &str = "DispatchJobsJunction";

/// The exception of an attempt that was put back into the queue. It counts as nobody's failure.
pub const DISPATCH_REQUEUED: &str = "DispatchRequeued";

/// How often an entry is put back whose links others take just then: one time for each of its unique indexes.
const PUT_BACK_TRIES: u32 = 3;

/// What became of a run that could not be handed to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchFailed {
    /// Somebody has started it after all: nothing was changed.
    Started,
    /// Its entry is queued again.
    Requeued {
        /// How often it has been tried.
        attempt: i32,
    },
    /// That was the last attempt, and the run has failed.
    GivenUp,
}

/// A run that could not be handed to a worker.
#[derive(Debug, Clone)]
pub struct DispatchFailure<'a> {
    /// The entry.
    pub entry: EntryId,
    /// Its run, as it was claimed.
    pub claim: Claim,
    /// Why.
    pub failure: &'a Failure,
    /// How often it is tried, and after which waits.
    pub policy: DispatchPolicy,
}

/// Puts an entry back whose run could not be handed to a worker, unless that was its last attempt. Nothing is changed
/// when the run is under another claim by now: somebody has it, and it is no attempt that failed.
pub async fn dispatch_failed(
    tx: &mut Tx<'_>,
    failed: &DispatchFailure<'_>,
) -> Result<DispatchFailed, StoreError> {
    let now = tx.now().await?;
    let sql = "SELECT dispatch_attempts + 1 FROM work_queue WHERE id = $1 AND metadata_id = $2";
    let attempt: Option<i32> = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(failed.entry)
        .bind(failed.claim.run)
        .fetch_optional(c))?;
    let Some(attempt) = attempt else { return Ok(DispatchFailed::Started) };
    let max = failed.policy.attempts_max;
    let is_last = attempt >= max;
    let failure = failed.failure;
    let failure = if is_last {
        failure.clone()
    } else {
        let reason = message::dispatch_requeued(attempt, max, &failure.name, &failure.message);
        Failure::new(failure.class, DISPATCH_REQUEUED, reason)
    };
    let sql = "UPDATE metadata SET train_state = 'failed', end_time = $3, failure_junction = $4,
            failure_class = $5, failure_exception = $6, failure_reason = $7
        WHERE id = $1 AND claim_token = $2 AND train_state IN ('pending', 'in_progress')
            AND parked_at IS NULL";
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(failed.claim.run)
            .bind(failed.claim.token)
            .bind(now)
            .bind(DISPATCH_JUNCTION)
            .bind(failure.class)
            .bind(storable(&failure.name))
            .bind(storable(&failure.message))
    )?;
    if rows == 0 {
        return Ok(DispatchFailed::Started);
    }
    if is_last {
        return Ok(DispatchFailed::GivenUp);
    }
    let at = now.saturating_add(failed.policy.wait_after(attempt));
    put_back(tx, failed.entry, attempt, at).await?;
    Ok(DispatchFailed::Requeued { attempt })
}

/// Queues an entry again, without the links that other queued entries have taken meanwhile. An entry whose manifest has
/// another queued entry by now is cancelled: that other one stands for it.
async fn put_back(
    tx: &mut Tx<'_>,
    entry: EntryId,
    attempt: i32,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE work_queue SET dispatch_attempts = $2, scheduled_at = $3, metadata_id = NULL,
            dispatched_at = NULL,
            status = CASE WHEN EXISTS (SELECT 1 FROM work_queue q
                WHERE q.manifest_id = work_queue.manifest_id AND q.status = 'queued')
                THEN 'cancelled' ELSE 'queued' END,
            replay_decisions_of = CASE WHEN EXISTS (SELECT 1 FROM work_queue q
                WHERE q.replay_decisions_of = work_queue.replay_decisions_of
                AND q.status = 'queued')
                THEN NULL ELSE replay_decisions_of END,
            resume_from = CASE WHEN EXISTS (SELECT 1 FROM work_queue q
                WHERE q.resume_from = work_queue.resume_from AND q.status = 'queued')
                THEN NULL ELSE resume_from END
        WHERE id = $1 AND status = 'dispatched'";
    let mut tries = 0;
    loop {
        let mut part = tx.savepoint().await?;
        match execute!(&mut part, sqlx::query(sql).bind(entry).bind(attempt).bind(at)) {
            Ok(_) => return part.commit().await,
            // Somebody else's entry came into being while this looked for one. Now it can be seen.
            Err(error) if error.is_taken() && tries < PUT_BACK_TRIES => {
                part.rollback().await?;
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// What became of an entry whose train no active component declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// It stays queued and is tried again.
    Postponed {
        /// The entry.
        entry: EntryId,
        /// The train.
        train: String,
        /// How often it has been tried.
        attempt: i32,
        /// After how long it is tried again.
        wait: Duration,
    },
    /// That was the last attempt: a run that never started has failed.
    Failed {
        /// The run.
        run: RunId,
        /// The train.
        train: String,
        /// The manifest it is a run of.
        manifest: Option<ManifestId>,
    },
}

struct Entry {
    dispatch_attempts: i32,
    train_name: String,
    input_type_name: Option<String>,
    manifest_id: Option<ManifestId>,
}

row!(Entry { dispatch_attempts, train_name, input_type_name, manifest_id });

/// Lets a queued entry wait whose train no active component declares, unless that was its last attempt.
pub(super) async fn unknown(
    tx: &mut Tx<'_>,
    entry: EntryId,
    policy: DispatchPolicy,
) -> Result<Unknown, StoreError> {
    let sql = "SELECT dispatch_attempts, train_name, input_type_name, manifest_id
        FROM work_queue WHERE id = $1";
    let stored: Entry = on!(tx, |c| sqlx::query_as(sql).bind(entry).fetch_one(c))?;
    let attempt = stored.dispatch_attempts.saturating_add(1);
    let train = stored.train_name;
    if attempt < policy.unknown_attempts_max {
        let wait = policy.wait_after(attempt);
        queue::postpone(tx, entry, wait).await?;
        return Ok(Unknown::Postponed { entry, train, attempt, wait });
    }
    let input_type = stored.input_type_name.as_deref().unwrap_or("the input of its train");
    let reason = message::unreadable_input(
        &format!("work queue entry {entry}"),
        input_type,
        &message::unknown_train(&train),
    );
    let run = fail_unstarted(tx, entry, &Failure::permanent("UnknownTrain", reason)).await?;
    Ok(Unknown::Failed { run, train, manifest: stored.manifest_id })
}

/// Takes an entry out of the queue as a run that failed before it started.
async fn fail_unstarted(
    tx: &mut Tx<'_>,
    entry: EntryId,
    failure: &Failure,
) -> Result<RunId, StoreError> {
    let now = tx.now().await?;
    let sql = "INSERT INTO metadata (tenant_id, external_id, name, train_state, start_time,
            end_time, manifest_id, scheduled_time, occurrence_id, subject_key,
            replay_decisions_of, resume_from, resume_at, invoking_machine, failure_junction,
            failure_class, failure_exception, failure_reason)
        SELECT tenant_id, external_id, train_name, 'failed', $2, $2, manifest_id, scheduled_time,
            occurrence_id, subject_key, replay_decisions_of, resume_from, resume_at,
            invoking_machine, $3, $4, $5, $6
        FROM work_queue WHERE id = $1 RETURNING id";
    let run: RunId = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(entry)
        .bind(now)
        .bind(DISPATCH_JUNCTION)
        .bind(failure.class)
        .bind(storable(&failure.name))
        .bind(storable(&failure.message))
        .fetch_one(c))?;
    let sql = "UPDATE work_queue SET status = 'dispatched', dispatched_at = $3, metadata_id = $2,
        dispatch_attempts = dispatch_attempts + 1 WHERE id = $1";
    execute!(tx, sqlx::query(sql).bind(entry).bind(run).bind(now))?;
    let sql = "UPDATE dead_letter SET retry_metadata_id = $2
        WHERE id IN (SELECT dead_letter_id FROM work_queue WHERE id = $1)";
    execute!(tx, sqlx::query(sql).bind(entry).bind(run))?;
    Ok(run)
}
