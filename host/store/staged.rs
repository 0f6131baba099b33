//! Entries that were staged and never confirmed: whoever staged them is gone.

use super::db::{Sql, Tx, execute, on};
use super::error::StoreError;
use crate::model::ids::{EntryId, ManifestId, TenantId};
use crate::model::timestamp::Timestamp;

/// A staged entry that was withdrawn: its id, whose it is, and the manifest that may be due again.
pub type Withdrawn = (EntryId, TenantId, Option<ManifestId>);

/// A statement about entries that were staged before `$1`, the oldest `$2` of them. Postgres leaves out what somebody
/// holds, so that one entry keeps no other waiting; SQLite has one writer.
macro_rules! staged {
    ($change:literal, $status:literal, $after:literal) => {
        Sql {
            sqlite: staged!($change, $status, "", $after),
            postgres: staged!($change, $status, " FOR UPDATE SKIP LOCKED", $after),
        }
    };
    ($change:literal, $status:literal, $lock:literal, $after:literal) => {
        concat!(
            $change,
            " WHERE status = '",
            $status,
            "' AND confirmed_at IS NULL AND id IN
            (SELECT id FROM work_queue WHERE status = '",
            $status,
            "' AND confirmed_at IS NULL
                AND created_at < $1 ORDER BY created_at LIMIT $2",
            $lock,
            ")",
            $after
        )
    };
}

const CANCEL: Sql = staged!(
    "UPDATE work_queue SET status = 'cancelled'",
    "queued",
    " RETURNING id, tenant_id, manifest_id"
);
const PROMOTE: Sql = staged!("UPDATE work_queue SET confirmed_at = $3", "queued", "");
const DELETE: Sql = staged!("DELETE FROM work_queue", "cancelled", "");

/// Withdraws entries that were staged before an instant and are still neither confirmed nor withdrawn.
pub async fn cancel(
    tx: &mut Tx<'_>,
    staged_before: Timestamp,
    limit: u32,
) -> Result<Vec<Withdrawn>, StoreError> {
    let sql = tx.pick(CANCEL);
    let mut withdrawn: Vec<Withdrawn> =
        on!(tx, |c| sqlx::query_as(sql).bind(staged_before).bind(i64::from(limit)).fetch_all(c))?;
    withdrawn.sort_unstable();
    Ok(withdrawn)
}

/// Lets entries be dispatched that were staged before an instant and are still neither confirmed nor withdrawn. Gives
/// how many.
pub async fn promote(
    tx: &mut Tx<'_>,
    staged_before: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    let now = tx.now().await?;
    let sql = tx.pick(PROMOTE);
    execute!(tx, sqlx::query(sql).bind(staged_before).bind(i64::from(limit)).bind(now))
}

/// Deletes withdrawn entries that were staged before an instant. Gives how many.
pub async fn delete(
    tx: &mut Tx<'_>,
    staged_before: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    let sql = tx.pick(DELETE);
    execute!(tx, sqlx::query(sql).bind(staged_before).bind(i64::from(limit)))
}
