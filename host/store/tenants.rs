//! Tenants.

use super::db::{Tx, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::TenantId;
use crate::model::timestamp::Timestamp;

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Its name, unique in the store.
    pub name: String,
    /// Since when it exists.
    pub created_at: Timestamp,
}

row!(Tenant { id, name, created_at });

/// Adds a tenant.
///
/// # Errors
/// [`StoreError::Conflict`] when there is one of that name.
pub async fn add(tx: &mut Tx<'_>, name: &str) -> Result<TenantId, StoreError> {
    let now = tx.now().await?;
    let sql =
        "INSERT INTO tenant (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id";
    let id = on!(tx, |c| sqlx::query_scalar(sql).bind(name).bind(now).fetch_optional(c))?;
    id.ok_or_else(|| StoreError::Conflict {
        what: "tenant",
        name: name.to_owned(),
        problem: "exists already".to_owned(),
    })
}

/// The tenant of that name.
///
/// # Errors
/// [`StoreError::NotFound`] when there is none.
pub async fn of_name(tx: &mut Tx<'_>, name: &str) -> Result<TenantId, StoreError> {
    let sql = "SELECT id FROM tenant WHERE name = $1";
    let id = on!(tx, |c| sqlx::query_scalar(sql).bind(name).fetch_optional(c))?;
    id.ok_or_else(|| StoreError::NotFound { what: "tenant", id: format!("'{name}'") })
}

/// Every tenant, by id.
pub async fn list(tx: &mut Tx<'_>) -> Result<Vec<Tenant>, StoreError> {
    on!(tx, |c| sqlx::query_as("SELECT id, name, created_at FROM tenant ORDER BY id").fetch_all(c))
}
