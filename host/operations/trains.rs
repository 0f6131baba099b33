//! The trains that new runs use.

use crate::chain::declaration;
use crate::model::ids::TenantId;
use crate::operations::error::OperationError;
use crate::store::components::{self, Train};
use crate::store::{Db, StoreError, Tx};

/// How many trains are read at once.
const PAGE: u32 = 500;

/// A train with its declaration.
#[derive(Debug, Clone)]
pub struct DeployedTrain {
    /// What is stored.
    pub stored: Train,
    /// What it declares.
    pub declared: declaration::Train,
}

/// A tenant's active trains, by name.
pub async fn list(db: &Db, tenant: TenantId) -> Result<Vec<DeployedTrain>, OperationError> {
    let mut tx = db.read().await?;
    let mut trains: Vec<DeployedTrain> = Vec::new();
    loop {
        let after = trains.last().map_or("", |train| &train.stored.name);
        let page = components::active_trains(&mut tx, tenant, after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        for stored in page {
            let declared = declared(&stored)?;
            trains.push(DeployedTrain { stored, declared });
        }
        if is_last {
            return Ok(trains);
        }
    }
}

/// The names of a tenant's active trains, as many as a message can show.
pub async fn names(tx: &mut Tx<'_>, tenant: TenantId) -> Result<Vec<String>, StoreError> {
    let trains = components::active_trains(tx, tenant, "", PAGE).await?;
    Ok(trains.into_iter().map(|train| train.name).collect())
}

/// What a stored train declares.
///
/// # Errors
/// [`OperationError::Declaration`] when this trax cannot read it.
pub fn declared(stored: &Train) -> Result<declaration::Train, OperationError> {
    serde_json::from_str(&stored.declaration)
        .map_err(|source| OperationError::Declaration { train: stored.name.clone(), source })
}
