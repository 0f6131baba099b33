//! Dead letters.
//!
//! Each one awaits somebody, is acknowledged, or is linked to exactly one queue entry: the one it was requeued as, or
//! that of a newer dead letter of its manifest that it was folded into.

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::manifests;
use super::types::{DeadLetterStatus, row};
use crate::model::ids::{DeadLetterId, EntryId, ManifestId, RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described in the migration")]
pub struct DeadLetter {
    pub id: DeadLetterId,
    pub manifest_id: ManifestId,
    pub dead_lettered_at: Timestamp,
    pub status: DeadLetterStatus,
    pub resolved_at: Option<Timestamp>,
    pub resolution_note: Option<String>,
    pub reason: String,
    pub retry_count_at_dead_letter: i32,
    pub retry_metadata_id: Option<RunId>,
    pub work_queue_id: Option<EntryId>,
}

row!(DeadLetter {
    id,
    manifest_id,
    dead_lettered_at,
    status,
    resolved_at,
    resolution_note,
    reason,
    retry_count_at_dead_letter,
    retry_metadata_id,
    work_queue_id,
});

macro_rules! columns {
    () => {
        "id, manifest_id, dead_lettered_at, status, resolved_at, resolution_note, reason, \
         retry_count_at_dead_letter, retry_metadata_id, work_queue_id"
    };
}

/// Writes a dead letter for a manifest; it is not due until somebody resolves it.
pub async fn add(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    failures: i32,
    reason: &str,
) -> Result<DeadLetterId, StoreError> {
    let now = tx.now().await?;
    let sql = "INSERT INTO dead_letter
            (tenant_id, manifest_id, dead_lettered_at, reason, retry_count_at_dead_letter)
        VALUES ($1, $2, $3, $4, $5) RETURNING id";
    let id = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(tenant)
        .bind(manifest)
        .bind(now)
        .bind(reason)
        .bind(failures)
        .fetch_one(c))?;
    manifests::set_due(tx, manifest, None).await?;
    Ok(id)
}

/// The dead letter with that id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn detail(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    dead_letter: DeadLetterId,
) -> Result<DeadLetter, StoreError> {
    let sql = concat!("SELECT ", columns!(), " FROM dead_letter WHERE id = $2 AND tenant_id = $1");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(dead_letter).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "dead letter", id: dead_letter.to_string() })
}

/// A tenant's dead letters with ids below `before`, newest first, of a status if one is given.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    status: Option<DeadLetterStatus>,
    before: Option<DeadLetterId>,
    limit: u32,
) -> Result<Vec<DeadLetter>, StoreError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM dead_letter WHERE tenant_id = $1 AND id < $3 AND (CAST($2 AS TEXT) IS NULL
            OR status = $2)
        ORDER BY id DESC LIMIT $4"
    );
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(status)
        .bind(before.unwrap_or(DeadLetterId(i64::MAX)))
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// The same, of one manifest.
pub async fn list_of_manifest(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    status: Option<DeadLetterStatus>,
    before: Option<DeadLetterId>,
    limit: u32,
) -> Result<Vec<DeadLetter>, StoreError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM dead_letter WHERE tenant_id = $1 AND manifest_id = $5 AND id < $3
            AND (CAST($2 AS TEXT) IS NULL OR status = $2)
        ORDER BY id DESC LIMIT $4"
    );
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(status)
        .bind(before.unwrap_or(DeadLetterId(i64::MAX)))
        .bind(i64::from(limit))
        .bind(manifest)
        .fetch_all(c))
}

/// How many dead letters of a tenant await somebody.
pub async fn count_awaiting(tx: &mut Tx<'_>, tenant: TenantId) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM dead_letter WHERE tenant_id = $1
        AND status = 'awaiting_intervention'";
    on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).fetch_one(c))
}

/// Resolves one dead letter as requeued in an entry.
///
/// # Errors
/// [`StoreError::WrongState`] when it does not await anybody, [`StoreError::NotFound`] when this tenant has none.
pub async fn resolve_as_retried(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    dead_letter: DeadLetterId,
    entry: EntryId,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE dead_letter SET status = 'retried', resolved_at = $3, work_queue_id = $4,
        resolution_note = $5
        WHERE id = $2 AND tenant_id = $1 AND status = 'awaiting_intervention'";
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(tenant)
            .bind(dead_letter)
            .bind(now)
            .bind(entry)
            .bind(format!("Re-queued (WorkQueue {entry})"))
    )?;
    resolved(tx, tenant, dead_letter, rows).await
}

/// Resolves one dead letter as acknowledged.
///
/// # Errors
/// [`StoreError::WrongState`] when it does not await anybody, [`StoreError::NotFound`] when this tenant has none.
pub async fn acknowledge(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    dead_letter: DeadLetterId,
    note: &str,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql =
        "UPDATE dead_letter SET status = 'acknowledged', resolved_at = $3, resolution_note = $4
        WHERE id = $2 AND tenant_id = $1 AND status = 'awaiting_intervention'";
    let rows = execute!(tx, sqlx::query(sql).bind(tenant).bind(dead_letter).bind(now).bind(note))?;
    resolved(tx, tenant, dead_letter, rows).await
}

async fn resolved(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    dead_letter: DeadLetterId,
    rows: u64,
) -> Result<(), StoreError> {
    if rows == 1 {
        return Ok(());
    }
    detail(tx, tenant, dead_letter).await?;
    Err(StoreError::WrongState {
        what: "dead letter",
        id: dead_letter.to_string(),
        expected: "awaiting intervention",
    })
}

/// Deletes dead letters resolved before an instant, but none whose entry is still queued. Gives how many.
pub async fn purge(
    tx: &mut Tx<'_>,
    resolved_before: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = "SELECT d.id FROM dead_letter d
        WHERE d.resolved_at IS NOT NULL AND d.resolved_at < $1
            AND NOT EXISTS (SELECT 1 FROM work_queue w WHERE w.id = d.work_queue_id
            AND w.status = 'queued')
        ORDER BY d.resolved_at LIMIT $2";
    let ids: Vec<DeadLetterId> = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(resolved_before)
        .bind(i64::from(limit))
        .fetch_all(c))?;
    let mut deleted = 0;
    for id in ids {
        let sql = "UPDATE work_queue SET dead_letter_id = NULL WHERE dead_letter_id = $1";
        execute!(tx, sqlx::query(sql).bind(id))?;
        deleted += execute!(tx, sqlx::query("DELETE FROM dead_letter WHERE id = $1").bind(id))?;
    }
    Ok(deleted)
}
