//! How a tenant's trains are doing, in a few numbers.

use std::time::Duration;

use crate::model::ids::TenantId;
use crate::store::statistics::{self, Load};
use crate::store::{Db, StoreError};

/// The time over which failures are counted.
const LATELY: Duration = Duration::from_hours(1);

/// More failures than this in that time are no accident.
const FAILURES_MAX: i64 = 10;

/// How a tenant's trains are doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `Healthy` or `Degraded`.
    pub status: &'static str,
    /// Why.
    pub description: String,
    /// The numbers it is read from.
    pub load: Load,
}

/// Reads it.
///
/// # Errors
/// Those of the store.
pub async fn health(db: &Db, tenant: TenantId) -> Result<Health, StoreError> {
    let mut tx = db.read().await?;
    let since = tx.now().await?.saturating_sub(LATELY);
    let load = statistics::load(&mut tx, tenant, since).await?;
    let mut problems = Vec::new();
    if load.dead_letters > 0 {
        problems.push(format!("{} dead letter(s) await intervention", load.dead_letters));
    }
    if load.failed_lately > FAILURES_MAX {
        problems.push(format!("{} run(s) failed in the last hour", load.failed_lately));
    }
    let (status, description) = if problems.is_empty() {
        ("Healthy", "no dead letter awaits intervention, and few runs fail".to_owned())
    } else {
        ("Degraded", problems.join("; "))
    };
    Ok(Health { status, description, load })
}
