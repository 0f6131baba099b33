//! Runs that have not ended, as those see them who count them, cancel them and look for stuck ones.

use super::{keep_detail, storable};
use crate::model::failure::Failure;
use crate::model::ids::{Claim, ClaimToken, GroupId, Incarnation, ManifestId, RunId, TenantId};
use crate::model::timestamp::Timestamp;
use crate::store::db::{Sql, Tx, execute, on};
use crate::store::error::StoreError;
use crate::store::types::{TrainState, row};

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
