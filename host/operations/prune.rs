//! Removing manifests that their owner no longer states.

use std::collections::BTreeSet;

use crate::model::ids::TenantId;
use crate::store::orphans::{self, Deleted};
use crate::store::{Db, StoreError};

/// How many runs one transaction deletes.
const RUNS_MAX: u32 = 500;

/// What pruning came to, by external ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Deleted, with their runs, entries and dead letters.
    pub deleted: Vec<String>,
    /// Not declared either, and kept for now: a run of theirs is pending or in progress.
    pub busy: Vec<String>,
}

/// Deletes what an owner stated once and does not declare now. An owner that declares nothing keeps everything: it is
/// taken for one that could not read what it declares.
///
/// # Errors
/// [`StoreError`]; what was deleted before it stays deleted.
pub async fn prune(
    db: &Db,
    tenant: TenantId,
    owner: &str,
    declared: &BTreeSet<&str>,
) -> Result<Pruned, StoreError> {
    let mut pruned = Pruned::default();
    if declared.is_empty() {
        return Ok(pruned);
    }
    let mut tx = db.read().await?;
    let stated = orphans::of_owner(&mut tx, tenant, owner).await?;
    drop(tx);
    for (id, name) in stated.into_iter().filter(|(_, name)| !declared.contains(name.as_str())) {
        loop {
            let deleted =
                db.write(async |tx| orphans::delete(tx, tenant, id, RUNS_MAX).await).await;
            match deleted {
                Ok(Deleted::Partly) => {}
                Ok(Deleted::Busy) => break pruned.busy.push(name),
                // Somebody else may have deleted it meanwhile.
                Ok(Deleted::Wholly) | Err(StoreError::NotFound { .. }) => {
                    break pruned.deleted.push(name);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(pruned)
}
