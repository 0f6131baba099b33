//! What the database says of itself, and what is left to do in it: for benchmarks and for people.

use super::db::{Sql, Tx, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::TenantId;
use crate::model::timestamp::Timestamp;

/// How much was written since the database was made. What a database does not count is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of write-ahead log, of all databases of the server.
    pub log_bytes: Option<i64>,
    /// Versions of rows that updates and deletes left behind.
    pub dead_rows: Option<i64>,
}

row!(Written { log_bytes, dead_rows });

/// How much was written. A connection tells the server what it did when it has been idle for a while or is closed.
pub async fn written(tx: &mut Tx<'_>) -> Result<Written, StoreError> {
    let sql = tx.pick(Sql {
        sqlite: "SELECT NULL AS log_bytes, NULL AS dead_rows",
        postgres: "SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT) AS log_bytes,
            (SELECT CAST(COALESCE(SUM(n_tup_upd + n_tup_del), 0) AS BIGINT) FROM pg_stat_user_tables
                WHERE schemaname = 'trax') AS dead_rows",
    });
    on!(tx, |c| sqlx::query_as(sql).fetch_one(c))
}

/// How the database runs, as far as its speed depends on it: names and values.
pub async fn settings(tx: &mut Tx<'_>) -> Result<Vec<(String, String)>, StoreError> {
    let sql = tx.pick(Sql {
        sqlite: "SELECT 'sqlite', sqlite_version()
            UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
            UNION ALL SELECT 'synchronous', CASE synchronous WHEN 2 THEN 'full' WHEN 1 THEN 'normal'
                ELSE CAST(synchronous AS TEXT) END FROM pragma_synchronous
            UNION ALL SELECT 'page_size', CAST(page_size AS TEXT) FROM pragma_page_size",
        postgres: "SELECT CAST(name AS TEXT), CAST(current_setting(name) AS TEXT) FROM pg_settings
            WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes',
                'shared_buffers', 'max_wal_size', 'wal_level', 'wal_sync_method', 'autovacuum')
            ORDER BY name = 'server_version' DESC, name",
    });
    on!(tx, |c| sqlx::query_as(sql).fetch_all(c))
}

/// Whether anything may run now, or runs, in any tenant. What waits for a time, for a person or to be confirmed does
/// not count.
pub async fn is_busy(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tenant t JOIN work_queue w ON w.tenant_id = t.id
            WHERE w.status = 'queued' AND w.confirmed_at IS NOT NULL AND w.scheduled_at IS NULL
                AND NOT w.waits_for_subject)
        OR EXISTS (SELECT 1 FROM tenant t JOIN work_queue w ON w.tenant_id = t.id
            WHERE w.waits_for_subject = TRUE AND w.status = 'queued' AND w.subject_key IS NOT NULL)
        OR EXISTS (SELECT 1 FROM metadata WHERE train_state IN ('pending', 'in_progress')
            AND parked_at IS NULL)";
    on!(tx, |c| sqlx::query_scalar(sql).fetch_one(c))
}

/// What waits, runs and went wrong, of a tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Entries that are queued.
    pub queue_depth: i64,
    /// Runs in progress.
    pub in_progress: i64,
    /// Runs that failed since the instant; attempts that were never delivered do not count.
    pub failed_lately: i64,
    /// Dead letters that await somebody.
    pub dead_letters: i64,
}

row!(Load { queue_depth, in_progress, failed_lately, dead_letters });

/// What waits, runs and went wrong, of a tenant. Failures count from an instant on.
pub async fn load(tx: &mut Tx<'_>, tenant: TenantId, since: Timestamp) -> Result<Load, StoreError> {
    let sql = "SELECT
        (SELECT COUNT(*) FROM work_queue WHERE tenant_id = $1 AND status = 'queued') AS queue_depth,
        (SELECT COUNT(*) FROM metadata WHERE tenant_id = $1 AND train_state = 'in_progress')
            AS in_progress,
        (SELECT COUNT(*) FROM metadata WHERE tenant_id = $1 AND train_state = 'failed'
            AND end_time >= $2 AND COALESCE(failure_exception, '') <> 'DispatchRequeued')
            AS failed_lately,
        (SELECT COUNT(*) FROM dead_letter WHERE tenant_id = $1 AND status = 'awaiting_intervention')
            AS dead_letters";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(since).fetch_one(c))
}

/// How many runs there are, and how many of them completed.
pub async fn runs(tx: &mut Tx<'_>) -> Result<(i64, i64), StoreError> {
    let sql =
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN train_state = 'completed' THEN 1 ELSE 0 END), 0)
        FROM metadata";
    on!(tx, |c| sqlx::query_as(sql).fetch_one(c))
}

/// Keeps old versions of rows from being cleaned up for as long as the transaction is open, as a forgotten one does.
pub async fn hold(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = tx.pick(Sql {
        sqlite: "SELECT COUNT(*) FROM tenant",
        // A transaction with an id of its own holds the horizon of all.
        postgres: "SELECT CAST(CAST(txid_current() AS TEXT) AS BIGINT)",
    });
    let _: i64 = on!(tx, |c| sqlx::query_scalar(sql).fetch_one(c))?;
    Ok(())
}
