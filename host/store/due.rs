//! What a manifest's being due depends on, and which manifests are due.

use super::db::{Sql, Tx, on};
use super::error::StoreError;
use super::types::{TrainState, row};
use crate::model::ids::{GroupId, ManifestId, RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// A manifest that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The manifest.
    pub id: ManifestId,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// Its group.
    pub manifest_group_id: GroupId,
    /// The group's priority.
    pub group_priority: i16,
}

row!(Due { id, tenant_id, manifest_group_id, group_priority });

/// The manifests that are due, longest first. Nothing blocks them: whatever does, clears when they are due.
pub async fn due(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<Due>, StoreError> {
    let now = tx.now().await?;
    let sql = "SELECT m.id, m.tenant_id, m.manifest_group_id, g.priority AS group_priority
        FROM manifest m JOIN manifest_group g ON g.id = m.manifest_group_id
        WHERE m.next_due_at IS NOT NULL AND m.next_due_at <= $1
        ORDER BY m.next_due_at, m.id LIMIT $2";
    on!(tx, |c| sqlx::query_as(sql).bind(now).bind(i64::from(limit)).fetch_all(c))
}

/// The manifests that become due when this one succeeds, by id.
pub async fn dependents(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
) -> Result<Vec<ManifestId>, StoreError> {
    let sql = "SELECT id FROM manifest
        WHERE depends_on_manifest_id = $1 AND schedule_type = 'dependent' ORDER BY id";
    on!(tx, |c| sqlx::query_scalar(sql).bind(manifest).fetch_all(c))
}

/// Which groups of a tenant have manifests that depend on manifests of another group: the names of both, the one that
/// is waited for first.
pub async fn group_dependencies(
    tx: &mut Tx<'_>,
    tenant: TenantId,
) -> Result<Vec<(String, String)>, StoreError> {
    let sql = "SELECT DISTINCT pg.name, cg.name FROM manifest c
        JOIN manifest p ON p.id = c.depends_on_manifest_id
        JOIN manifest_group pg ON pg.id = p.manifest_group_id
        JOIN manifest_group cg ON cg.id = c.manifest_group_id
        WHERE c.tenant_id = $1 AND c.depends_on_manifest_id IS NOT NULL
            AND c.manifest_group_id <> p.manifest_group_id
        ORDER BY 1, 2";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).fetch_all(c))
}

/// The manifests of a group with ids after `after`, by id.
pub async fn of_group(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    group: GroupId,
    after: ManifestId,
    limit: u32,
) -> Result<Vec<ManifestId>, StoreError> {
    let sql = "SELECT id FROM manifest WHERE manifest_group_id = $2 AND tenant_id = $1 AND id > $3
        ORDER BY id LIMIT $4";
    on!(tx, |c| sqlx::query_scalar(sql)
        .bind(tenant)
        .bind(group)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// The facts about a manifest's runs that decide what happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each of which some rule asks for"
)]
pub struct History {
    /// Failures that count: in the window, dispatched, and later than the last resolved dead letter.
    pub failed_count: i64,
    /// When it was last cancelled.
    pub last_cancelled_at: Option<Timestamp>,
    /// Whether a dead letter awaits somebody.
    pub has_awaiting_dead_letter: bool,
    /// Whether an entry is queued.
    pub has_queued_work: bool,
    /// Whether a run is pending, in progress or parked.
    pub has_active_run: bool,
    /// Whether it ever succeeded.
    pub has_succeeded: bool,
    /// Whether its group dispatches anything.
    pub is_group_enabled: bool,
    /// Whether others depend on it.
    pub has_dependents: bool,
    /// The last success of the manifest it depends on, if that one counts: it is enabled, or a one-off, which its
    /// success disabled.
    pub parent_succeeded_at: Option<Timestamp>,
    /// When the run was dispatched that last used up a success of the manifest it depends on: one that succeeded
    /// itself, or was cancelled.
    pub consumed_at: Option<Timestamp>,
}

row!(History {
    failed_count,
    last_cancelled_at,
    has_awaiting_dead_letter,
    has_queued_work,
    has_active_run,
    has_succeeded,
    is_group_enabled,
    has_dependents,
    parent_succeeded_at,
    consumed_at,
});

/// The facts about a manifest's runs, counting failures that started at or after `window_start`.
pub async fn history(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
    window_start: Timestamp,
) -> Result<History, StoreError> {
    let sql = "SELECT
        (SELECT COUNT(*) FROM metadata r
            WHERE r.manifest_id = $1 AND r.train_state = 'failed' AND r.start_time >= $2
                -- An attempt that was never delivered is nobody's failure.
                AND COALESCE(r.failure_exception, '') <> 'DispatchRequeued'
                AND NOT EXISTS (SELECT 1 FROM dead_letter d
                    WHERE d.manifest_id = $1 AND d.resolved_at IS NOT NULL
                    AND d.resolved_at >= r.start_time)
        ) AS failed_count,
        (SELECT MAX(end_time) FROM metadata
            WHERE manifest_id = $1 AND train_state = 'cancelled') AS last_cancelled_at,
        EXISTS (SELECT 1 FROM dead_letter WHERE manifest_id = $1
        AND status = 'awaiting_intervention')
            AS has_awaiting_dead_letter,
        EXISTS (SELECT 1 FROM work_queue WHERE manifest_id = $1
        AND status = 'queued') AS has_queued_work,
        EXISTS (SELECT 1 FROM metadata WHERE manifest_id = $1
        AND train_state IN ('pending', 'in_progress'))
            AS has_active_run,
        EXISTS (SELECT 1 FROM metadata
            WHERE manifest_id = $1 AND train_state IN ('completed', 'failed', 'cancelled')
                AND train_state = 'completed') AS has_succeeded,
        g.is_enabled AS is_group_enabled,
        EXISTS (SELECT 1 FROM manifest d WHERE d.depends_on_manifest_id = $1
            AND d.schedule_type = 'dependent') AS has_dependents,
        CASE WHEN m.schedule_type = 'dependent' THEN
            (SELECT p.last_successful_run FROM manifest p WHERE p.id = m.depends_on_manifest_id
                AND (p.is_enabled OR p.schedule_type = 'once')
                AND EXISTS (SELECT 1 FROM metadata r WHERE r.manifest_id = p.id
                    AND r.train_state IN ('completed', 'failed', 'cancelled')
                    AND r.train_state = 'completed'))
            END AS parent_succeeded_at,
        -- One run of a manifest is active at a time, so that the latest to start is the latest to be dispatched.
        CASE WHEN m.schedule_type = 'dependent' THEN
            (SELECT COALESCE(w.dispatched_at, r.start_time) FROM metadata r
                LEFT JOIN work_queue w ON w.metadata_id = r.id
                WHERE r.manifest_id = $1 AND r.train_state IN ('completed', 'failed', 'cancelled')
                    AND r.train_state <> 'failed'
                ORDER BY r.start_time DESC, r.id DESC LIMIT 1)
            END AS consumed_at
        FROM manifest m JOIN manifest_group g ON g.id = m.manifest_group_id WHERE m.id = $1";
    on!(tx, |c| sqlx::query_as(sql).bind(manifest).bind(window_start).fetch_one(c))
}

/// SQLite is told the index: left to itself it sorts every run of the manifest.
const LATEST_FINISHED: Sql = Sql {
    sqlite: "SELECT id, train_state FROM metadata INDEXED BY ix_metadata_manifest_state
        WHERE manifest_id = $1 AND train_state IN ('completed', 'failed', 'cancelled')
            AND COALESCE(failure_exception, '') <> 'DispatchRequeued'
        ORDER BY start_time DESC, id DESC LIMIT 1",
    postgres: "SELECT id, train_state FROM metadata
        WHERE manifest_id = $1 AND train_state IN ('completed', 'failed', 'cancelled')
            AND COALESCE(failure_exception, '') <> 'DispatchRequeued'
        ORDER BY start_time DESC, id DESC LIMIT 1",
};

/// The newest run of a manifest that finished, undelivered attempts left out.
pub async fn latest_finished(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
) -> Result<Option<(RunId, TrainState)>, StoreError> {
    let sql = tx.pick(LATEST_FINISHED);
    on!(tx, |c| sqlx::query_as(sql).bind(manifest).fetch_optional(c))
}
