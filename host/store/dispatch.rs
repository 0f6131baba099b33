//! Runs that could not be handed to a worker: their entries are queued again, or the run has failed.

use std::time::Duration;

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::runs::storable;
use crate::model::failure::Failure;
use crate::model::ids::{EntryId, RunId};
use crate::model::timestamp::Timestamp;

/// The exception of an attempt that was put back into the queue. It counts as nobody's failure.
pub const DISPATCH_REQUEUED: &str = "DispatchRequeued";

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
    /// Its run.
    pub run: RunId,
    /// Why.
    pub failure: &'a Failure,
    /// After how many attempts it is given up; 0: at once.
    pub attempts_max: i32,
    /// The wait after the first attempt. It doubles with each, up to `wait_max`.
    pub wait: Duration,
    /// The longest wait.
    pub wait_max: Duration,
}

/// Puts an entry back whose run could not be handed to a worker, unless that was its last attempt.
pub async fn dispatch_failed(
    tx: &mut Tx<'_>,
    failed: &DispatchFailure<'_>,
) -> Result<DispatchFailed, StoreError> {
    let now = tx.now().await?;
    let sql = "SELECT dispatch_attempts + 1 FROM work_queue WHERE id = $1 AND metadata_id = $2";
    let attempt: Option<i32> =
        on!(tx, |c| sqlx::query_scalar(sql).bind(failed.entry).bind(failed.run).fetch_optional(c))?;
    let Some(attempt) = attempt else { return Ok(DispatchFailed::Started) };
    let is_last = attempt >= failed.attempts_max;
    let max = failed.attempts_max;
    let failure = failed.failure;
    let failure = if is_last {
        failure.clone()
    } else {
        let reason = format!(
            "Dispatch attempt {attempt} of {max} failed and the job was requeued: {}: {}",
            failure.name, failure.message
        );
        Failure::new(failure.class, DISPATCH_REQUEUED, reason)
    };
    let sql = "UPDATE metadata SET train_state = 'failed', end_time = $2,
        failure_junction = 'DispatchJobsJunction',
            failure_class = $3, failure_exception = $4, failure_reason = $5
        WHERE id = $1 AND train_state = 'pending'";
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(failed.run)
            .bind(now)
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
    let doublings = u32::try_from(attempt - 1).unwrap_or(0).min(30);
    let wait = failed.wait.saturating_mul(1 << doublings).min(failed.wait_max);
    put_back(tx, failed.entry, attempt, now.saturating_add(wait)).await?;
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
    execute!(tx, sqlx::query(sql).bind(entry).bind(attempt).bind(at))?;
    Ok(())
}
