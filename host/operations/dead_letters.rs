//! Reading dead letters.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::model::ids::{DeadLetterId, ManifestId, TenantId};
use crate::store::dead_letters::{self, DeadLetter};
use crate::store::{Db, DeadLetterStatus, StoreError, manifests};

/// A dead letter with the name of its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The dead letter.
    pub dead_letter: DeadLetter,
    /// Its manifest's external id.
    pub manifest: String,
    /// The train that its manifest runs.
    pub train: String,
}

/// A page of a tenant's dead letters, newest first.
pub async fn list(
    db: &Db,
    tenant: TenantId,
    status: Option<DeadLetterStatus>,
    before: Option<DeadLetterId>,
    limit: u32,
) -> Result<Vec<Listed>, StoreError> {
    let mut tx = db.read().await?;
    let mut known: BTreeMap<ManifestId, (String, String)> = BTreeMap::new();
    let mut listed = Vec::new();
    for dead_letter in dead_letters::list(&mut tx, tenant, status, before, limit).await? {
        let id = dead_letter.manifest_id;
        let (manifest, train) = match known.entry(id) {
            Entry::Occupied(found) => found.get().clone(),
            Entry::Vacant(place) => {
                let manifest = manifests::detail(&mut tx, tenant, id).await?;
                place.insert((manifest.external_id, manifest.name)).clone()
            }
        };
        listed.push(Listed { dead_letter, manifest, train });
    }
    Ok(listed)
}
