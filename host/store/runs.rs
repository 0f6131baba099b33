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

use super::db::{Sql, Tx, execute, held, on};
use super::error::StoreError;
use super::hosts::Host;
use super::queue::new_id;
use super::types::{TrainState, row};
use crate::model::failure::{Failure, FailureClass};
use crate::model::ids::{
    Claim, ClaimToken, GroupId, Incarnation, ManifestId, RunId, TenantId, VersionId,
};
use crate::model::timestamp::Timestamp;

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

/// Runs that nobody has started. Postgres leaves out what another host takes right now; SQLite has one writer.
const START: Sql = Sql {
    sqlite: "UPDATE metadata SET train_state = 'in_progress', start_time = $2,
        claim_token = claim_token + 1,
            host_incarnation = $3, host_name = $4, host_environment = $5, host_instance_id = $6,
            host_labels = $7
        WHERE id IN (SELECT id FROM metadata WHERE train_state IN ('pending', 'in_progress')
        AND parked_at IS NULL
            AND host_incarnation IS NULL AND train_state = 'pending' AND NOT cancel_requested
            ORDER BY id LIMIT $1)
        RETURNING id, claim_token",
    postgres: "UPDATE metadata SET train_state = 'in_progress', start_time = $2,
        claim_token = claim_token + 1,
            host_incarnation = $3, host_name = $4, host_environment = $5, host_instance_id = $6,
            host_labels = $7
        WHERE id IN (SELECT id FROM metadata WHERE train_state IN ('pending', 'in_progress')
        AND parked_at IS NULL
            AND host_incarnation IS NULL AND train_state = 'pending' AND NOT cancel_requested
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
        RETURNING id, claim_token",
};

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

/// An active run, as those who look for stuck ones see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveRun {
    /// The run.
    pub id: RunId,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// Which claim of it is the present one.
    pub claim_token: ClaimToken,
    /// Pending or in progress.
    pub train_state: TrainState,
    /// When it was made, or started.
    pub start_time: Timestamp,
    /// The manifest it is a run of.
    pub manifest_id: Option<ManifestId>,
    /// How long its manifest lets it run.
    pub timeout_seconds: Option<i32>,
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
    /// Whether a scheduler started it, or what started it.
    pub is_dispatched: bool,
}

row!(ActiveRun {
    id,
    tenant_id,
    claim_token,
    train_state,
    start_time,
    manifest_id,
    timeout_seconds,
    cancel_requested,
    is_dispatched,
});

impl ActiveRun {
    /// The claim it is under.
    pub const fn claim(&self) -> Claim {
        Claim { run: self.id, token: self.claim_token }
    }
}

/// Active runs that started before an instant, parked ones left out, with ids after `after`, by id. What a run may take
/// is its root's business: the run at the top of those that started it, at most 16 levels up.
pub async fn active_since(
    tx: &mut Tx<'_>,
    started_before: Timestamp,
    after: RunId,
    limit: u32,
) -> Result<Vec<ActiveRun>, StoreError> {
    let sql = "SELECT r.id, r.tenant_id, r.claim_token, r.train_state, r.start_time,
            r.manifest_id, m.timeout_seconds, r.cancel_requested,
            (root.manifest_id IS NOT NULL OR EXISTS (SELECT 1 FROM work_queue w
                WHERE w.metadata_id = root.id)) AS is_dispatched
        FROM metadata r
        LEFT JOIN metadata root ON root.id = CASE WHEN r.parent_id IS NULL THEN r.id ELSE (
            WITH RECURSIVE above (id, parent_id, level) AS (
                SELECT p.id, p.parent_id, 1 FROM metadata p WHERE p.id = r.parent_id
                UNION ALL SELECT p.id, p.parent_id, a.level + 1
                FROM above a JOIN metadata p ON p.id = a.parent_id WHERE a.level < 16)
            SELECT id FROM above WHERE parent_id IS NULL) END
        LEFT JOIN manifest m ON m.id = root.manifest_id
        WHERE r.train_state IN ('pending', 'in_progress') AND r.parked_at IS NULL
        AND r.start_time < $1 AND r.id > $2
        ORDER BY r.id LIMIT $3";
    on!(tx, |c| sqlx::query_as(sql)
        .bind(started_before)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// A run in progress, under its present claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// The run.
    pub id: RunId,
    /// Which claim of it is the present one.
    pub claim_token: ClaimToken,
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
}

row!(Claimed { id, claim_token, cancel_requested });

impl Claimed {
    /// The claim it is under.
    pub const fn claim(&self) -> Claim {
        Claim { run: self.id, token: self.claim_token }
    }
}

/// The ids come as one JSON text; each database has its own way to read it.
const CLAIMS_OF: Sql = Sql {
    sqlite: "SELECT id, claim_token, cancel_requested FROM metadata
        WHERE id IN (SELECT value FROM json_each($1))
            AND train_state = 'in_progress' AND parked_at IS NULL",
    postgres: "SELECT id, claim_token, cancel_requested FROM metadata
        WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($1 AS JSON)))
            AND train_state = 'in_progress' AND parked_at IS NULL",
};

/// Those of these runs that are in progress, under whatever claim.
pub async fn claims_of(tx: &mut Tx<'_>, ids: &[RunId]) -> Result<Vec<Claimed>, StoreError> {
    let sql = tx.pick(CLAIMS_OF);
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let ids = format!("[{}]", ids.join(","));
    on!(tx, |c| sqlx::query_as(sql).bind(&ids).fetch_all(c))
}

/// What a host owns, with ids after `after`, by id.
pub async fn owned(
    tx: &mut Tx<'_>,
    host: &Incarnation,
    after: RunId,
    limit: u32,
) -> Result<Vec<Claimed>, StoreError> {
    let sql = "SELECT id, claim_token, cancel_requested FROM metadata
        WHERE train_state IN ('pending', 'in_progress') AND train_state = 'in_progress'
            AND parked_at IS NULL AND host_incarnation = $1 AND id > $2
        ORDER BY id LIMIT $3";
    on!(tx, |c| sqlx::query_as(sql).bind(host).bind(after).bind(i64::from(limit)).fetch_all(c))
}

/// Runs whose host is gone: it left, was declared dead, or was never entered.
pub async fn lost(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<ActiveRun>, StoreError> {
    let sql = "SELECT r.id, r.tenant_id, r.claim_token, r.train_state, r.start_time,
        r.manifest_id, m.timeout_seconds,
            r.cancel_requested, TRUE AS is_dispatched
        FROM metadata r LEFT JOIN manifest m ON m.id = r.manifest_id
        WHERE r.train_state IN ('pending', 'in_progress') AND r.parked_at IS NULL
        AND r.host_incarnation IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM host h WHERE h.incarnation = r.host_incarnation
            AND h.left_at IS NULL)
        ORDER BY r.id LIMIT $1";
    on!(tx, |c| sqlx::query_as(sql).bind(i64::from(limit)).fetch_all(c))
}

/// Fails a run on behalf of a host that does not: only while it is under the claim it was seen under. False: it moved
/// on meanwhile. The claim is spent, so that a host which was only slow writes nothing more.
pub async fn reap(
    tx: &mut Tx<'_>,
    seen: &ActiveRun,
    failure: &Failure,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let sql =
        "UPDATE metadata SET train_state = 'failed', end_time = $4, claim_token = claim_token + 1,
            failure_junction = currently_running_junction, currently_running_junction = NULL,
            failure_class = $5, failure_exception = $6, failure_reason = $7
        WHERE id = $1 AND claim_token = $2 AND train_state = $3 AND parked_at IS NULL";
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(seen.id)
            .bind(seen.claim_token)
            .bind(seen.train_state)
            .bind(now)
            .bind(failure.class)
            .bind(storable(&failure.name))
            .bind(storable(&failure.message))
    )?;
    if rows == 1 {
        keep_detail(tx, seen.id, failure).await?;
    }
    Ok(rows == 1)
}

/// Runs that are active per tenant and manifest group. The databases read a JSON array of names differently.
const ACTIVE: Sql = Sql {
    sqlite: "SELECT r.tenant_id, m.manifest_group_id, COUNT(*) FROM metadata r
        LEFT JOIN manifest m ON m.id = r.manifest_id
        WHERE r.train_state IN ('pending', 'in_progress') AND r.parked_at IS NULL
            AND r.name NOT IN (SELECT value FROM json_each($1))
        GROUP BY r.tenant_id, m.manifest_group_id",
    postgres: "SELECT r.tenant_id, m.manifest_group_id, COUNT(*) FROM metadata r
        LEFT JOIN manifest m ON m.id = r.manifest_id
        WHERE r.train_state IN ('pending', 'in_progress') AND r.parked_at IS NULL
            AND r.name NOT IN (SELECT value FROM json_array_elements_text(CAST($1 AS JSON)))
        GROUP BY r.tenant_id, m.manifest_group_id",
};

/// How many runs are active per tenant and manifest group, parked ones and those of some trains left out.
pub async fn active(
    tx: &mut Tx<'_>,
    excluded: &[String],
) -> Result<Vec<(TenantId, Option<GroupId>, i64)>, StoreError> {
    let sql = tx.pick(ACTIVE);
    let excluded = serde_json::Value::from(excluded).to_string();
    let mut counts: Vec<(TenantId, Option<GroupId>, i64)> =
        on!(tx, |c| sqlx::query_as(sql).bind(excluded).fetch_all(c))?;
    counts.sort_unstable();
    Ok(counts)
}

/// Under which claim a run is, and how it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The present claim.
    pub claim_token: ClaimToken,
    /// Its state.
    pub train_state: TrainState,
    /// Whether it is parked.
    pub is_parked: bool,
}

row!(Standing { claim_token, train_state, is_parked });

/// How a run stands; `None`: it is gone. Whoever was not told whether a write came through finds out by this.
pub async fn standing(tx: &mut Tx<'_>, run: RunId) -> Result<Option<Standing>, StoreError> {
    let sql = "SELECT claim_token, train_state, parked_at IS NOT NULL AS is_parked
        FROM metadata WHERE id = $1";
    on!(tx, |c| sqlx::query_as(sql).bind(run).fetch_optional(c))
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the columns are described where runs are made and in the migration"
)]
pub struct Run {
    pub id: RunId,
    pub parent_id: Option<RunId>,
    pub external_id: String,
    pub name: String,
    pub train_state: TrainState,
    pub failure_class: FailureClass,
    pub failure_junction: Option<String>,
    pub failure_exception: Option<String>,
    pub failure_reason: Option<String>,
    pub start_time: Timestamp,
    pub end_time: Option<Timestamp>,
    pub manifest_id: Option<ManifestId>,
    pub scheduled_time: Option<Timestamp>,
    pub occurrence_id: String,
    pub component_version_id: Option<VersionId>,
    pub subject_key: Option<String>,
    pub cancel_requested: bool,
    pub currently_running_junction: Option<String>,
    pub host_name: Option<String>,
    pub parked_at: Option<Timestamp>,
    pub decisions_recorded: bool,
    pub replay_decisions_of: Option<RunId>,
    pub replay_abandoned: bool,
    pub resume_from: Option<RunId>,
    pub resume_at: Option<String>,
    pub invoking_machine: Option<String>,
}

row!(Run {
    id,
    parent_id,
    external_id,
    name,
    train_state,
    failure_class,
    failure_junction,
    failure_exception,
    failure_reason,
    start_time,
    end_time,
    manifest_id,
    scheduled_time,
    occurrence_id,
    component_version_id,
    subject_key,
    cancel_requested,
    currently_running_junction,
    host_name,
    parked_at,
    decisions_recorded,
    replay_decisions_of,
    replay_abandoned,
    resume_from,
    resume_at,
    invoking_machine,
});

macro_rules! columns {
    () => {
        "id, parent_id, external_id, name, train_state, failure_class, failure_junction, \
         failure_exception, failure_reason, start_time, end_time, manifest_id, scheduled_time, \
         occurrence_id, component_version_id, subject_key, cancel_requested, \
         currently_running_junction, host_name, parked_at, decisions_recorded, \
         replay_decisions_of, replay_abandoned, resume_from, resume_at, invoking_machine"
    };
}

/// The run with that id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn detail(tx: &mut Tx<'_>, tenant: TenantId, run: RunId) -> Result<Run, StoreError> {
    let sql = concat!("SELECT ", columns!(), " FROM metadata WHERE id = $2 AND tenant_id = $1");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(run).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "run", id: run.to_string() })
}

/// The wide values of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Canonical JSON.
    pub input: Option<String>,
    /// The input's type.
    pub input_type_name: Option<String>,
    /// Canonical JSON, of a completed run.
    pub output: Option<String>,
    /// Of a failed run.
    pub stack_trace: Option<String>,
}

row!(Payload { input, input_type_name, output, stack_trace });

/// The wide values of a run: its input is the queue entry's where it came out of one.
pub async fn payload(tx: &mut Tx<'_>, tenant: TenantId, run: RunId) -> Result<Payload, StoreError> {
    let sql =
        "SELECT COALESCE(p.input, w.input) AS input, COALESCE(p.input_type_name, w.input_type_name)
            AS input_type_name, p.output, p.stack_trace
        FROM metadata r LEFT JOIN metadata_payload p ON p.metadata_id = r.id
        LEFT JOIN work_queue w ON w.metadata_id = r.id
        WHERE r.id = $2 AND r.tenant_id = $1";
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(run).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "run", id: run.to_string() })
}

/// Which runs a list shows. What is `None` does not matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    /// In this state.
    pub state: Option<TrainState>,
    /// Of this train.
    pub train: Option<&'a str>,
    /// Of this manifest.
    pub manifest: Option<ManifestId>,
    /// With ids below this one: the last of the page before.
    pub before: Option<RunId>,
}

/// A tenant's runs, newest first.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    filter: RunFilter<'_>,
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM metadata WHERE tenant_id = $1 AND id < $2
            AND (CAST($3 AS TEXT) IS NULL OR train_state = $3) AND (CAST($4 AS TEXT) IS NULL
            OR name = $4)
            AND (CAST($5 AS BIGINT) IS NULL OR manifest_id = $5)
        ORDER BY id DESC LIMIT $6"
    );
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(filter.before.unwrap_or(RunId(i64::MAX)))
        .bind(filter.state)
        .bind(filter.train)
        .bind(filter.manifest)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// Text as Postgres can hold it: without NUL, which a guest may write into a message.
pub(super) fn storable(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\\u0000").into() } else { text.into() }
}
