//! Tenants.

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::manifests::Setting;
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
    /// Its share of what hosts can do, beside that of others who wait.
    pub weight: i32,
    /// How many of its runs may be active; `None`: any number.
    pub max_active_jobs: Option<i32>,
    /// How many of its entries may be queued; `None`: any number.
    pub max_queued_jobs: Option<i32>,
}

row!(Tenant { id, name, created_at, weight, max_active_jobs, max_queued_jobs });

/// What is stated of a tenant. What is not stated stays as it is.
#[derive(Debug, Clone, Copy)]
pub struct TenantStatement {
    /// Its share, at least 1.
    pub weight: Option<i32>,
    /// How many of its runs may be active.
    pub max_active_jobs: Setting<i32>,
    /// How many of its entries may be queued.
    pub max_queued_jobs: Setting<i32>,
}

macro_rules! columns {
    () => {
        "id, name, created_at, weight, max_active_jobs, max_queued_jobs"
    };
}

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

/// Changes what a tenant may use.
///
/// # Errors
/// [`StoreError::NotFound`] when there is none.
pub async fn set(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    stated: TenantStatement,
) -> Result<(), StoreError> {
    let (is_active_stated, max_active_jobs) = stated.max_active_jobs.into_parts();
    let (is_queued_stated, max_queued_jobs) = stated.max_queued_jobs.into_parts();
    let sql = "UPDATE tenant SET weight = COALESCE($2, weight),
            max_active_jobs = CASE WHEN $3 THEN $4 ELSE max_active_jobs END,
            max_queued_jobs = CASE WHEN $5 THEN $6 ELSE max_queued_jobs END
        WHERE id = $1";
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(tenant)
            .bind(stated.weight)
            .bind(is_active_stated)
            .bind(max_active_jobs)
            .bind(is_queued_stated)
            .bind(max_queued_jobs)
    )?;
    if rows == 1 { Ok(()) } else { Err(none(tenant.to_string())) }
}

/// All of a tenant.
///
/// # Errors
/// [`StoreError::NotFound`] when there is none.
pub async fn detail(tx: &mut Tx<'_>, tenant: TenantId) -> Result<Tenant, StoreError> {
    let sql = concat!("SELECT ", columns!(), " FROM tenant WHERE id = $1");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).fetch_optional(c))?;
    found.ok_or_else(|| none(tenant.to_string()))
}

/// The tenant of that name.
///
/// # Errors
/// [`StoreError::NotFound`] when there is none.
pub async fn of_name(tx: &mut Tx<'_>, name: &str) -> Result<TenantId, StoreError> {
    let sql = "SELECT id FROM tenant WHERE name = $1";
    let id = on!(tx, |c| sqlx::query_scalar(sql).bind(name).fetch_optional(c))?;
    id.ok_or_else(|| none(format!("'{name}'")))
}

/// The name of a tenant.
///
/// # Errors
/// [`StoreError::NotFound`] when there is none of that id.
pub async fn name_of(tx: &mut Tx<'_>, tenant: TenantId) -> Result<String, StoreError> {
    let sql = "SELECT name FROM tenant WHERE id = $1";
    let name = on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).fetch_optional(c))?;
    name.ok_or_else(|| StoreError::NotFound { what: "tenant", id: tenant.to_string() })
}

/// Every tenant, by id.
pub async fn list(tx: &mut Tx<'_>) -> Result<Vec<Tenant>, StoreError> {
    let sql = concat!("SELECT ", columns!(), " FROM tenant ORDER BY id");
    on!(tx, |c| sqlx::query_as(sql).fetch_all(c))
}

fn none(id: String) -> StoreError {
    StoreError::NotFound { what: "tenant", id }
}
