//! Tokens of the API: what is kept of them, which is not the tokens themselves.

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::types::row;
use crate::model::access::Role;
use crate::model::ids::{TenantId, TokenId};
use crate::model::timestamp::Timestamp;

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// Its id.
    pub id: TokenId,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// Its name, unique among the tenant's that are not revoked.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// Since when it exists.
    pub created_at: Timestamp,
    /// From when on it is not accepted.
    pub expires_at: Option<Timestamp>,
    /// Since when it is not accepted.
    pub revoked_at: Option<Timestamp>,
    /// When it was last accepted, to the minute.
    pub last_used_at: Option<Timestamp>,
}

row!(ApiToken { id, tenant_id, name, role, created_at, expires_at, revoked_at, last_used_at });

macro_rules! columns {
    () => {
        "id, tenant_id, name, role, created_at, expires_at, revoked_at, last_used_at"
    };
}

/// Adds a token, given by its hash.
///
/// # Errors
/// [`StoreError::Conflict`] when the tenant has one of that name.
pub async fn add(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    name: &str,
    role: Role,
    hash: &str,
    expires_at: Option<Timestamp>,
) -> Result<TokenId, StoreError> {
    let now = tx.now().await?;
    let sql = "INSERT INTO api_token (tenant_id, name, role, hash, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING id";
    let id = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(tenant)
        .bind(name)
        .bind(role)
        .bind(hash)
        .bind(now)
        .bind(expires_at)
        .fetch_optional(c))?;
    id.ok_or_else(|| StoreError::Conflict {
        what: "token",
        name: name.to_owned(),
        problem: "exists already; revoke it first, or choose another name".to_owned(),
    })
}

/// The token with that hash, if it is accepted now.
pub async fn accepted(tx: &mut Tx<'_>, hash: &str) -> Result<Option<ApiToken>, StoreError> {
    let now = tx.now().await?;
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM api_token WHERE hash = $1 AND revoked_at IS NULL
            AND (expires_at IS NULL OR expires_at > $2)"
    );
    on!(tx, |c| sqlx::query_as(sql).bind(hash).bind(now).fetch_optional(c))
}

/// Notes that a token was accepted now.
pub async fn used(tx: &mut Tx<'_>, token: TokenId) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE api_token SET last_used_at = $2 WHERE id = $1";
    execute!(tx, sqlx::query(sql).bind(token).bind(now))?;
    Ok(())
}

/// Revokes a tenant's token, by name; whether there was one that was not revoked.
pub async fn revoke(tx: &mut Tx<'_>, tenant: TenantId, name: &str) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE api_token SET revoked_at = $3
        WHERE tenant_id = $1 AND name = $2 AND revoked_at IS NULL";
    let rows = execute!(tx, sqlx::query(sql).bind(tenant).bind(name).bind(now))?;
    Ok(rows > 0)
}

/// A tenant's tokens, newest first.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: Option<TokenId>,
    limit: u32,
) -> Result<Vec<ApiToken>, StoreError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM api_token WHERE tenant_id = $1 AND ($2 IS NULL OR id < $2) ORDER BY id DESC LIMIT $3"
    );
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(before).bind(i64::from(limit)).fetch_all(c))
}
