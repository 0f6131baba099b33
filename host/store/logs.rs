//! What guests wrote to the log.

use super::db::{Sql, Tx, execute, on};
use super::error::StoreError;
use super::runs::storable;
use super::types::{LogLevel, row};
use crate::model::ids::{RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// A line to append.
#[derive(Debug, Clone)]
pub struct NewLine<'a> {
    /// How much it matters.
    pub level: LogLevel,
    /// The junction that wrote it.
    pub category: &'a str,
    /// What it says.
    pub message: &'a str,
}

/// A line of a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described where lines are appended")]
pub struct Line {
    pub id: i64,
    pub level: LogLevel,
    pub category: String,
    pub message: String,
    pub logged_at: Timestamp,
}

row!(Line { id, level, category, message, logged_at });

/// The lines come as one JSON text, so that many are one round trip; each database has its own way to read it.
const APPEND: Sql = Sql {
    sqlite: "INSERT INTO log (metadata_id, level, category, message, logged_at)
        SELECT $1, value ->> 'level', value ->> 'category', value ->> 'message', $3
        FROM json_each($2) ORDER BY key",
    postgres: "INSERT INTO log (metadata_id, level, category, message, logged_at)
        SELECT $1, value ->> 'level', value ->> 'category', value ->> 'message', $3
        FROM json_array_elements(CAST($2 AS JSON)) WITH ORDINALITY AS line (value, position)
        ORDER BY position",
};

/// Appends lines to a run's log, in order. Logs are no part of a run's state: they are kept whoever owns the run.
pub async fn append(tx: &mut Tx<'_>, run: RunId, lines: &[NewLine<'_>]) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let lines: Vec<_> = lines
        .iter()
        .map(|line| {
            serde_json::json!({
                "level": line.level.as_str(),
                "category": storable(line.category),
                "message": storable(line.message),
            })
        })
        .collect();
    let sql = tx.pick(APPEND);
    let lines = serde_json::Value::Array(lines).to_string();
    execute!(tx, sqlx::query(sql).bind(run).bind(lines).bind(now))?;
    Ok(())
}

/// How many lines a run's log has.
pub async fn count(tx: &mut Tx<'_>, run: RunId) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM log WHERE metadata_id = $1";
    on!(tx, |c| sqlx::query_scalar(sql).bind(run).fetch_one(c))
}

/// A run's lines with ids after `after`, in the order they were written.
pub async fn of_run(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
    after: i64,
    limit: u32,
) -> Result<Vec<Line>, StoreError> {
    let sql = "SELECT l.id, l.level, l.category, l.message, l.logged_at FROM log l
        JOIN metadata r ON r.id = l.metadata_id
        WHERE l.metadata_id = $2 AND r.tenant_id = $1 AND l.id > $3 ORDER BY l.id LIMIT $4";
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(run)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// Deletes the oldest lines of all logs that were written before an instant, at most so many. Lines come in the order
/// of their ids, so it looks at no more than it may delete.
pub async fn forget(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    let sql = "DELETE FROM log WHERE logged_at < $1
        AND id IN (SELECT id FROM log ORDER BY id LIMIT $2)";
    execute!(tx, sqlx::query(sql).bind(before).bind(i64::from(limit)))
}
