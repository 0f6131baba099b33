//! Tenants: whom a store serves, and how much of it each may use.

use crate::model::ids::TenantId;
use crate::model::name;
use crate::operations::error::OperationError;
use crate::store::manifests::Setting;
use crate::store::tenants::{self, Tenant, TenantStatement};
use crate::store::{Db, StoreError, Tx};

/// The largest weight. A tenant of it gets as many runs in a turn.
pub const WEIGHT_MAX: i32 = 1_000;

/// What is stated of a tenant. What is not stated stays as it is; a new tenant has weight 1 and no limits.
#[derive(Debug, Clone, Copy)]
pub struct Stated {
    /// Its share beside that of others who wait.
    pub weight: Option<i32>,
    /// How many of its runs may be active.
    pub max_active_jobs: Setting<i32>,
    /// How many of its entries may be queued.
    pub max_queued_jobs: Setting<i32>,
}

/// Every tenant, by id.
pub async fn list(db: &Db) -> Result<Vec<Tenant>, StoreError> {
    let mut tx = db.read().await?;
    tenants::list(&mut tx).await
}

/// The id of the tenant of that name.
///
/// # Errors
/// [`StoreError::NotFound`] when there is none.
pub async fn id_of(db: &Db, name: &str) -> Result<TenantId, StoreError> {
    let mut tx = db.read().await?;
    tenants::of_name(&mut tx, name).await
}

/// Adds a tenant.
///
/// # Errors
/// [`OperationError::Invalid`] when the name or a number cannot be, [`StoreError::Conflict`] when the name is taken.
pub async fn add(db: &Db, name: &str, stated: Stated) -> Result<Tenant, OperationError> {
    if !name::is_identifier(name) {
        return Err(OperationError::Invalid(format!(
            "'{}' is no name of a tenant: it is 1 to 100 letters, digits, '_', '-' and '.'",
            name.escape_debug()
        )));
    }
    let statement = statement(stated)?;
    let mut tx = db.begin().await?;
    let tenant = tenants::add(&mut tx, name).await?;
    changed(tx, tenant, statement).await
}

/// Changes what a tenant may use. It holds from the next pass of every dispatcher.
///
/// # Errors
/// [`OperationError::Invalid`] when a number cannot be, [`StoreError::NotFound`] when there is no such tenant.
pub async fn set(db: &Db, name: &str, stated: Stated) -> Result<Tenant, OperationError> {
    let statement = statement(stated)?;
    let mut tx = db.begin().await?;
    let tenant = tenants::of_name(&mut tx, name).await?;
    changed(tx, tenant, statement).await
}

async fn changed(
    mut tx: Tx<'_>,
    tenant: TenantId,
    statement: TenantStatement,
) -> Result<Tenant, OperationError> {
    tenants::set(&mut tx, tenant, statement).await?;
    let stored = tenants::detail(&mut tx, tenant).await?;
    tx.commit().await?;
    Ok(stored)
}

fn statement(stated: Stated) -> Result<TenantStatement, OperationError> {
    if let Some(weight) = stated.weight.filter(|weight| !(1..=WEIGHT_MAX).contains(weight)) {
        return Err(OperationError::Invalid(format!(
            "a weight is a whole number from 1 to {WEIGHT_MAX}, and {weight} is none"
        )));
    }
    let limits = [("active", stated.max_active_jobs), ("queued", stated.max_queued_jobs)];
    for (what, limit) in limits {
        if let Setting::Set(max) = limit
            && max < 0
        {
            return Err(OperationError::Invalid(format!(
                "a limit on {what} jobs is a whole number from 0 on, and {max} is none"
            )));
        }
    }
    Ok(TenantStatement {
        weight: stated.weight,
        max_active_jobs: stated.max_active_jobs,
        max_queued_jobs: stated.max_queued_jobs,
    })
}
