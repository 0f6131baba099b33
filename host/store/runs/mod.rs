//! Runs: who owns them, how they end, and what operators see of them.
//!
//! ```text
//!            claim, start                  complete, fail, cancel
//! (pending) --------------> (in progress) ------------------------> (completed | failed | cancelled)
//!     ^         release          |   ^
//!     '--------------------------'   '--- parked and continued: see `parked`
//! ```
//!
//! Invariant: every change of a run names the claim or the state that it expects, and looks at whether a row changed.

mod active;
mod rows;

pub use active::{
    ActiveRun, Claimed, Standing, active, active_since, claims_of, lost, owned, reap, standing,
};
pub use rows::{Payload, Run, RunFilter, detail, list, payload};

use super::db::{Sql, Tx, execute, held, on};
use super::error::StoreError;
use super::hosts::Host;
use super::queue::new_id;
use crate::model::failure::Failure;
use crate::model::ids::{Claim, ClaimToken, RunId, TenantId, VersionId};

/// A run that no queue entry stands for.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    /// Whose it is.
    pub tenant: TenantId,
    /// The train.
    pub train: &'a str,
    /// Canonical JSON.
    pub input: &'a str,
    /// The input's type.
    pub input_type: &'a str,
    /// The version of the component it runs.
    pub version: Option<VersionId>,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The host it runs on.
    pub host: &'a Host,
}

/// Starts a run that no queue entry stands for.
pub async fn start_direct(tx: &mut Tx<'_>, new: &NewRun<'_>) -> Result<Claim, StoreError> {
    let now = tx.now().await?;
    let sql = "INSERT INTO metadata (tenant_id, parent_id, external_id, name, train_state,
        start_time, occurrence_id,
            component_version_id, claim_token, host_incarnation, host_name, host_environment,
            host_instance_id,
            host_labels)
        VALUES ($1, $2, $3, $4, 'in_progress', $5, $6, $7, 1, $8, $9, $10, $11, $12) RETURNING id";
    let run = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(new.tenant)
        .bind(new.parent)
        .bind(new_id()?)
        .bind(new.train)
        .bind(now)
        .bind(new_id()?)
        .bind(new.version)
        .bind(&new.host.incarnation)
        .bind(&new.host.name)
        .bind(&new.host.environment)
        .bind(&new.host.instance_id)
        .bind(&new.host.labels)
        .fetch_one(c))?;
    let sql =
        "INSERT INTO metadata_payload (metadata_id, input, input_type_name) VALUES ($1, $2, $3)";
    execute!(tx, sqlx::query(sql).bind(run).bind(new.input).bind(new.input_type))?;
    Ok(Claim { run, token: ClaimToken(1) })
}

macro_rules! started {
    ($locked:literal) => {
        concat!(
            "UPDATE metadata SET train_state = 'in_progress', start_time = $2,
                claim_token = claim_token + 1, host_incarnation = $3, host_name = $4,
                host_environment = $5, host_instance_id = $6, host_labels = $7
            WHERE id IN (SELECT id FROM metadata WHERE train_state IN ('pending', 'in_progress')
                AND parked_at IS NULL AND host_incarnation IS NULL AND train_state = 'pending'
                AND NOT cancel_requested ORDER BY id LIMIT $1",
            $locked,
            ") RETURNING id, claim_token"
        )
    };
}

/// Runs that nobody has started. Postgres leaves out what another host takes right now; SQLite has one writer.
const START: Sql = Sql { sqlite: started!(""), postgres: started!(" FOR UPDATE SKIP LOCKED") };

/// Starts pending runs on a host, oldest first. Those that were cancelled before end as cancelled instead.
pub async fn start(tx: &mut Tx<'_>, host: &Host, limit: u32) -> Result<Vec<Claim>, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE metadata SET train_state = 'cancelled', end_time = $1
        WHERE train_state IN ('pending', 'in_progress') AND parked_at IS NULL
        AND host_incarnation IS NULL
            AND train_state = 'pending' AND cancel_requested";
    execute!(tx, sqlx::query(sql).bind(now))?;
    let sql = tx.pick(START);
    let mut started: Vec<(RunId, ClaimToken)> = on!(tx, |c| sqlx::query_as(sql)
        .bind(i64::from(limit))
        .bind(now)
        .bind(&host.incarnation)
        .bind(&host.name)
        .bind(&host.environment)
        .bind(&host.instance_id)
        .bind(&host.labels)
        .fetch_all(c))?;
    started.sort_unstable();
    Ok(started.into_iter().map(|(run, token)| Claim { run, token }).collect())
}

/// Gives back a run that has done nothing yet: it is pending again, for any host.
pub async fn release(tx: &mut Tx<'_>, claim: Claim) -> Result<(), StoreError> {
    let sql = "UPDATE metadata SET train_state = 'pending', host_incarnation = NULL,
        claim_token = claim_token + 1
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    held(claim, execute!(tx, sqlx::query(sql).bind(claim.run).bind(claim.token))?)
}

/// Notes which junction runs now, and says whether somebody asked to cancel the run.
pub async fn at_junction(
    tx: &mut Tx<'_>,
    claim: Claim,
    junction: &str,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE metadata SET currently_running_junction = $3, junction_started_at = $4
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL
        RETURNING cancel_requested";
    let cancelled = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(claim.run)
        .bind(claim.token)
        .bind(junction)
        .bind(now)
        .fetch_optional(c))?;
    cancelled.ok_or(StoreError::LostClaim(claim.run))
}

/// Notes, on the run's first write, whether its decisions are recorded.
pub async fn set_decisions_recorded(tx: &mut Tx<'_>, claim: Claim) -> Result<(), StoreError> {
    let sql = "UPDATE metadata SET decisions_recorded = TRUE
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    held(claim, execute!(tx, sqlx::query(sql).bind(claim.run).bind(claim.token))?)
}

/// Notes that the run could not replay what it should have, and asks its deciders afresh.
pub async fn abandon_replay(tx: &mut Tx<'_>, claim: Claim) -> Result<(), StoreError> {
    let sql = "UPDATE metadata SET replay_abandoned = TRUE
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    held(claim, execute!(tx, sqlx::query(sql).bind(claim.run).bind(claim.token))?)
}

/// Ends a run as completed. Its checkpoints are no longer needed.
pub async fn complete(tx: &mut Tx<'_>, claim: Claim, output: &str) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE metadata SET train_state = 'completed', end_time = $3,
        currently_running_junction = NULL
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    held(claim, execute!(tx, sqlx::query(sql).bind(claim.run).bind(claim.token).bind(now))?)?;
    let sql = "INSERT INTO metadata_payload (metadata_id, output) VALUES ($1, $2)
        ON CONFLICT (metadata_id) DO UPDATE SET output = excluded.output";
    execute!(tx, sqlx::query(sql).bind(claim.run).bind(output))?;
    super::checkpoints::delete(tx, claim.run).await
}

/// Ends a run as failed, at a junction if one was running. Its checkpoints stay, for a resume.
pub async fn fail(
    tx: &mut Tx<'_>,
    claim: Claim,
    junction: Option<&str>,
    failure: &Failure,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE metadata SET train_state = 'failed', end_time = $3,
        currently_running_junction = NULL,
            failure_junction = $4, failure_class = $5, failure_exception = $6, failure_reason = $7
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(claim.run)
            .bind(claim.token)
            .bind(now)
            .bind(junction)
            .bind(failure.class)
            .bind(storable(&failure.name))
            .bind(storable(&failure.message))
    )?;
    held(claim, rows)?;
    keep_detail(tx, claim.run, failure).await
}

async fn keep_detail(tx: &mut Tx<'_>, run: RunId, failure: &Failure) -> Result<(), StoreError> {
    let Some(detail) = &failure.detail else { return Ok(()) };
    let sql = "INSERT INTO metadata_payload (metadata_id, stack_trace) VALUES ($1, $2)
        ON CONFLICT (metadata_id) DO UPDATE SET stack_trace = excluded.stack_trace";
    execute!(tx, sqlx::query(sql).bind(run).bind(storable(detail)))?;
    Ok(())
}

/// Ends a run as cancelled.
pub async fn cancel(tx: &mut Tx<'_>, claim: Claim) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE metadata SET train_state = 'cancelled', end_time = $3,
        currently_running_junction = NULL
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    held(claim, execute!(tx, sqlx::query(sql).bind(claim.run).bind(claim.token).bind(now))?)
}

/// Asks that a run end as cancelled. Its host sees it at the next boundary; a parked one ends at once.
///
/// # Errors
/// [`StoreError::WrongState`] when it has ended, [`StoreError::NotFound`] when this tenant has none.
pub async fn request_cancel(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE metadata SET cancel_requested = TRUE, claim_token = claim_token
                + CASE WHEN parked_at IS NULL THEN 0 ELSE 1 END,
            end_time = CASE WHEN parked_at IS NULL THEN NULL ELSE $3 END,
            train_state = CASE WHEN parked_at IS NULL THEN train_state
            ELSE 'cancelled' END, parked_at = NULL
        WHERE id = $2 AND tenant_id = $1 AND train_state IN ('pending', 'in_progress')";
    if execute!(tx, sqlx::query(sql).bind(tenant).bind(run).bind(now))? == 0 {
        detail(tx, tenant, run).await?;
        return Err(StoreError::WrongState {
            what: "run",
            id: run.to_string(),
            expected: "pending or in progress",
        });
    }
    let sql = "DELETE FROM parked_run WHERE metadata_id IN
        (SELECT id FROM metadata WHERE id = $1 AND train_state = 'cancelled')";
    execute!(tx, sqlx::query(sql).bind(run))?;
    Ok(())
}
/// Text as Postgres can hold it: without NUL, which a guest may write into a message.
pub(in crate::store) fn storable(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\\u0000").into() } else { text.into() }
}
