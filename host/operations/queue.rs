//! The queue: reading it, and withdrawing entries.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use crate::model::ids::{EntryId, ManifestId, TenantId};
use crate::model::message;
use crate::operations::batch;
use crate::operations::outcome::Outcome;
use crate::store::queue::{self, Entry};
use crate::store::{Db, EntryStatus, StoreError, manifests, resolve};

/// An entry with the name of its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The entry.
    pub entry: Entry,
    /// Its manifest's external id.
    pub manifest: Option<String>,
}

/// A page of a tenant's entries with ids below `before`, newest first, of a status if one is given.
///
/// # Errors
/// Those of the store.
pub async fn list(
    db: &Db,
    tenant: TenantId,
    status: Option<EntryStatus>,
    before: Option<EntryId>,
    limit: u32,
) -> Result<Vec<Listed>, StoreError> {
    let mut tx = db.read().await?;
    let mut known: BTreeMap<ManifestId, String> = BTreeMap::new();
    let mut listed = Vec::new();
    for entry in queue::list(&mut tx, tenant, status, before, limit).await? {
        let mut manifest = None;
        if let Some(id) = entry.manifest_id {
            manifest = Some(match known.entry(id) {
                Slot::Occupied(found) => found.get().clone(),
                Slot::Vacant(place) => {
                    let found = manifests::detail(&mut tx, tenant, id).await?;
                    place.insert(found.external_id).clone()
                }
            });
        }
        listed.push(Listed { entry, manifest });
    }
    Ok(listed)
}

/// Withdraws a queued entry.
///
/// # Errors
/// Those of the store.
pub async fn cancel(db: &Db, tenant: TenantId, id: EntryId) -> Result<Outcome, StoreError> {
    db.write(async |tx| {
        if resolve::cancel_entries(tx, tenant, &[id]).await? == 1 {
            return Ok(Outcome::done(message::entry_cancelled(id.0)).with_id(id.0).with_count(1));
        }
        match queue::detail(tx, tenant, id).await {
            Ok(entry) => {
                let status = entry.status.as_str();
                Ok(Outcome::refused(message::entry_not_cancelled(id.0, status)))
            }
            Err(StoreError::NotFound { .. }) => {
                Ok(Outcome::missing(message::entry_not_found(id.0)))
            }
            Err(error) => Err(error),
        }
    })
    .await
}

/// Withdraws those of these entries that are queued.
///
/// # Errors
/// Those of the store.
pub async fn cancel_batch(
    db: &Db,
    tenant: TenantId,
    ids: &[EntryId],
) -> Result<Outcome, StoreError> {
    if let Some(refusal) = batch::refusal(ids.len()) {
        return Ok(refusal);
    }
    let named = ids.iter().collect::<std::collections::BTreeSet<_>>().len();
    let count = db.write(async |tx| resolve::cancel_entries(tx, tenant, ids).await).await?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Ok(Outcome::done(message::entries_cancelled(count, named)).with_count(count))
}
