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

/// How many dead letters of a tenant await somebody.
pub async fn count_awaiting(tx: &mut Tx<'_>, tenant: TenantId) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM dead_letter WHERE tenant_id = $1
        AND status = 'awaiting_intervention'";
    on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).fetch_one(c))
}

/// A manifest whose dead letters await somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaiting {
    /// The manifest.
    pub manifest_id: ManifestId,
    /// Its newest dead letter that awaits: the one that carries the entry when they are requeued.
    pub newest: DeadLetterId,
    /// How many there are.
    pub count: i64,
    /// The entry the manifest has queued: then its dead letters stay.
    pub queued: Option<EntryId>,
}

row!(Awaiting { manifest_id, newest, count, queued });

/// A tenant's manifests with dead letters that await somebody, with ids after `after`, by id.
pub async fn awaiting_by_manifest(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    after: ManifestId,
    limit: u32,
) -> Result<Vec<Awaiting>, StoreError> {
    let sql = "SELECT d.manifest_id, MAX(d.id) AS newest, COUNT(*) AS count,
            (SELECT w.id FROM work_queue w WHERE w.manifest_id = d.manifest_id
            AND w.status = 'queued') AS queued
        FROM dead_letter d
        WHERE d.tenant_id = $1 AND d.status = 'awaiting_intervention' AND d.manifest_id > $2
        GROUP BY d.manifest_id ORDER BY d.manifest_id LIMIT $3";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(after).bind(i64::from(limit)).fetch_all(c))
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

/// Resolves every awaiting dead letter of a manifest as requeued in the entry that the newest of them carries, and says
/// how many that were.
pub async fn fold(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    carrier: DeadLetterId,
    entry: EntryId,
) -> Result<u64, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE dead_letter SET status = 'retried', resolved_at = $3, work_queue_id = $4,
            resolution_note = CASE WHEN id = $5 THEN $6 ELSE $7 END
        WHERE tenant_id = $1 AND manifest_id = $2 AND status = 'awaiting_intervention'
        AND id <= $5";
    execute!(
        tx,
        sqlx::query(sql)
            .bind(tenant)
            .bind(manifest)
            .bind(now)
            .bind(entry)
            .bind(carrier)
            .bind(format!("Re-queued (WorkQueue {entry})"))
            .bind(format!("Re-queued with dead letter {carrier} (WorkQueue {entry})"))
    )
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

/// Acknowledges a page of a tenant's awaiting dead letters with ids up to `up_to`, and says how many that were: 0 when
/// there are no more.
pub async fn acknowledge_page(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    up_to: DeadLetterId,
    note: &str,
    limit: u32,
) -> Result<u64, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE dead_letter SET status = 'acknowledged', resolved_at = $3,
        resolution_note = $4
        WHERE id IN (SELECT id FROM dead_letter WHERE tenant_id = $1
        AND status = 'awaiting_intervention' AND id <= $2
            ORDER BY manifest_id, id LIMIT $5)
            AND status = 'awaiting_intervention'";
    execute!(
        tx,
        sqlx::query(sql).bind(tenant).bind(up_to).bind(now).bind(note).bind(i64::from(limit))
    )
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
