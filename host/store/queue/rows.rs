//! Entries as operators see them: an entry, lists, and how many wait.

use crate::model::ids::{DeadLetterId, EntryId, ManifestId, RunId, TenantId};
use crate::model::timestamp::Timestamp;
use crate::store::db::{Tx, on};
use crate::store::error::StoreError;
use crate::store::types::{EntryStatus, row};

/// An entry as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the columns are described where entries are made and in the migration"
)]
pub struct Entry {
    pub id: EntryId,
    pub external_id: String,
    pub train_name: String,
    pub status: EntryStatus,
    pub manifest_id: Option<ManifestId>,
    pub metadata_id: Option<RunId>,
    pub created_at: Timestamp,
    pub dispatched_at: Option<Timestamp>,
    pub priority: i16,
    pub scheduled_at: Option<Timestamp>,
    pub occurrence_id: String,
    pub dispatch_attempts: i32,
    pub dead_letter_id: Option<DeadLetterId>,
    pub confirmed_at: Option<Timestamp>,
    pub subject_key: Option<String>,
    pub is_explicit_trigger: bool,
    pub replay_decisions_of: Option<RunId>,
    pub resume_from: Option<RunId>,
    pub resume_at: Option<String>,
}

row!(Entry {
    id,
    external_id,
    train_name,
    status,
    manifest_id,
    metadata_id,
    created_at,
    dispatched_at,
    priority,
    scheduled_at,
    occurrence_id,
    dispatch_attempts,
    dead_letter_id,
    confirmed_at,
    subject_key,
    is_explicit_trigger,
    replay_decisions_of,
    resume_from,
    resume_at,
});

macro_rules! columns {
    () => {
        "id, external_id, train_name, status, manifest_id, metadata_id, created_at, dispatched_at, \
         priority, scheduled_at, occurrence_id, dispatch_attempts, dead_letter_id, confirmed_at, \
         subject_key, is_explicit_trigger, replay_decisions_of, resume_from, resume_at"
    };
}

/// The entry with that id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn detail(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    entry: EntryId,
) -> Result<Entry, StoreError> {
    let sql = concat!("SELECT ", columns!(), " FROM work_queue WHERE id = $2 AND tenant_id = $1");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(entry).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "work queue entry", id: entry.to_string() })
}

/// A tenant's entries with ids below `before`, newest first, of a status if one is given.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    status: Option<EntryStatus>,
    before: Option<EntryId>,
    limit: u32,
) -> Result<Vec<Entry>, StoreError> {
    let before = before.unwrap_or(EntryId(i64::MAX));
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM work_queue WHERE tenant_id = $1 AND id < $3 AND (CAST($2 AS TEXT) IS NULL
            OR status = $2)
        ORDER BY id DESC LIMIT $4"
    );
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(status)
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// How many entries a tenant has queued, counted up to a limit; staged ones are not queued yet.
pub async fn depth(tx: &mut Tx<'_>, tenant: TenantId, limit: u32) -> Result<i64, StoreError> {
    // One part for each index that queued entries are in.
    let sql = "SELECT
        (SELECT COUNT(*) FROM (SELECT 1 AS one FROM work_queue WHERE tenant_id = $1
            AND status = 'queued' AND confirmed_at IS NOT NULL AND scheduled_at IS NULL
            AND NOT waits_for_subject LIMIT $2) dispatchable)
        + (SELECT COUNT(*) FROM (SELECT 1 AS one FROM work_queue WHERE tenant_id = $1
            AND waits_for_subject = TRUE AND status = 'queued' AND subject_key IS NOT NULL
            AND scheduled_at IS NULL LIMIT $2) waiting)
        + (SELECT COUNT(*) FROM (SELECT 1 AS one FROM work_queue WHERE tenant_id = $1
            AND status = 'queued' AND scheduled_at IS NOT NULL LIMIT $2) scheduled)";
    let depth: i64 =
        on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(i64::from(limit)).fetch_one(c))?;
    Ok(depth.min(i64::from(limit)))
}
