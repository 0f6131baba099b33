//! The audit: who asked for which change, and what came of it.

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::{AuditId, TenantId};
use crate::model::timestamp::Timestamp;

/// Something that somebody asked for.
#[derive(Debug, Clone)]
pub struct NewRecord<'a> {
    /// Whose it is about.
    pub tenant: TenantId,
    /// Who asked.
    pub who: &'a str,
    /// The address or the machine they asked from.
    pub origin: &'a str,
    /// What they asked for.
    pub action: &'a str,
    /// What it was about: ids or names.
    pub target: &'a str,
    /// `done`, `refused`, `forbidden` or `failed`.
    pub outcome: &'a str,
    /// What they were told.
    pub message: &'a str,
}

/// Something that somebody asked for, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described where records are made")]
pub struct Record {
    pub id: AuditId,
    pub at: Timestamp,
    pub who: String,
    pub origin: String,
    pub action: String,
    pub target: String,
    pub outcome: String,
    pub message: String,
}

row!(Record { id, at, who, origin, action, target, outcome, message });

/// Adds a record.
pub async fn add(tx: &mut Tx<'_>, new: &NewRecord<'_>) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "INSERT INTO audit (tenant_id, at, who, origin, action, target, outcome, message)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    execute!(
        tx,
        sqlx::query(sql)
            .bind(new.tenant)
            .bind(now)
            .bind(new.who)
            .bind(new.origin)
            .bind(new.action)
            .bind(new.target)
            .bind(new.outcome)
            .bind(new.message)
    )?;
    Ok(())
}

/// A tenant's records, newest first.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: Option<AuditId>,
    limit: u32,
) -> Result<Vec<Record>, StoreError> {
    let sql = "SELECT id, at, who, origin, action, target, outcome, message FROM audit
        WHERE tenant_id = $1 AND ($2 IS NULL OR id < $2) ORDER BY id DESC LIMIT $3";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(before).bind(i64::from(limit)).fetch_all(c))
}
