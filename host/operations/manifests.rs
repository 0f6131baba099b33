//! Manifests: reading them, switching them on and off, and cancelling what runs of them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::due;
use crate::model::ids::{EntryId, GroupId, ManifestId, RunId, TenantId};
use crate::model::message;
use crate::model::value::Shown;
use crate::operations::batch;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::runs::Secrecy;
use crate::store::manifests::{self, Manifest};
use crate::store::runs::{self, Run, RunFilter};
use crate::store::{Db, StoreError, TrainState, Tx, groups, queue};

/// How long a failure counts when a manifest does not say.
pub(in crate::operations) const FAILURE_COUNT_WINDOW: Duration = Duration::from_hours(24);

/// How many runs are looked through for those of a manifest that are active.
const ACTIVE_MAX: u32 = 1_000;

/// A manifest with the name of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The manifest.
    pub manifest: Manifest,
    /// Its group's name.
    pub group: String,
}

/// All of a manifest that operators see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The manifest, and its group.
    pub listed: Listed,
    /// The input of its runs.
    pub input: Option<Shown>,
    /// Failures that count.
    pub failures: i64,
    /// The entry it has queued.
    pub queued: Option<EntryId>,
    /// Whether a dead letter of it awaits somebody.
    pub has_awaiting_dead_letter: bool,
    /// Its newest run.
    pub latest: Option<Run>,
}

/// The id of the manifest stated under an external id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn id_of(db: &Db, tenant: TenantId, external_id: &str) -> Result<ManifestId, StoreError> {
    let mut tx = db.read().await?;
    Ok(manifests::of_external_id(&mut tx, tenant, external_id).await?.id)
}

/// A page of a tenant's manifests after one of them, in the order in which they were first stated.
///
/// # Errors
/// [`StoreError::NotFound`] when there is no manifest `after`.
pub async fn list(
    db: &Db,
    tenant: TenantId,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Listed>, StoreError> {
    let mut tx = db.read().await?;
    let after = match after {
        Some(id) => manifests::of_external_id(&mut tx, tenant, id).await?.id,
        None => ManifestId(0),
    };
    let groups = groups::list(&mut tx, tenant).await?;
    let name = |id: GroupId| {
        let found = groups.iter().find(|group| group.id == id);
        found.map(|group| group.name.clone()).unwrap_or_default()
    };
    let found = manifests::list(&mut tx, tenant, after, limit).await?;
    let listed = |manifest: Manifest| Listed { group: name(manifest.manifest_group_id), manifest };
    Ok(found.into_iter().map(listed).collect())
}

/// All of one manifest.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none of that external id.
pub async fn detail(
    db: &Db,
    tenant: TenantId,
    external_id: &str,
) -> Result<Detail, OperationError> {
    let mut tx = db.read().await?;
    let manifest = manifests::of_external_id(&mut tx, tenant, external_id).await?;
    let groups = groups::list(&mut tx, tenant).await?;
    let group = groups.into_iter().find(|group| group.id == manifest.manifest_group_id);
    let history = due::history(&mut tx, &manifest, FAILURE_COUNT_WINDOW).await?;
    let secrecy = Secrecy::of_train(&mut tx, tenant, &manifest.name).await?;
    let of_it = RunFilter { manifest: Some(manifest.id), ..RunFilter::default() };
    Ok(Detail {
        input: manifest
            .properties
            .clone()
            .map(|text| secrecy.value(manifest.property_type.as_deref(), text)),
        failures: history.failed_count,
        queued: queue::queued_of(&mut tx, manifest.id).await?,
        has_awaiting_dead_letter: history.has_awaiting_dead_letter,
        latest: runs::list(&mut tx, tenant, of_it, 1).await?.pop(),
        listed: Listed { manifest, group: group.map(|group| group.name).unwrap_or_default() },
    })
}

/// Switches manifests on or off. Those that are so already are not counted; if one does not exist, nothing is done.
///
/// # Errors
/// Those of the store.
pub async fn set_enabled(
    db: &Db,
    tenant: TenantId,
    external_ids: &[String],
    is_enabled: bool,
) -> Result<Outcome, OperationError> {
    if let Some(refusal) = batch::refusal(external_ids.len()) {
        return Ok(refusal);
    }
    db.write(async |tx| {
        let found = match named(tx, tenant, external_ids).await? {
            Ok(found) => found,
            Err(missing) => return Ok(missing),
        };
        let named = found.len();
        let mut changed = 0;
        for manifest in found.into_values().filter(|found| found.is_enabled != is_enabled) {
            manifests::set_enabled(tx, tenant, manifest.id, is_enabled).await?;
            due::settle(tx, tenant, manifest.id, FAILURE_COUNT_WINDOW).await?;
            changed += 1;
        }
        let text = message::manifests_enabled(changed, named, is_enabled);
        Ok(Outcome::done(text).with_count(changed))
    })
    .await
}

async fn of_external_id(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    external_id: &str,
) -> Result<Option<Manifest>, StoreError> {
    match manifests::of_external_id(tx, tenant, external_id).await {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets whether retries of manifests replay what the failed run decided. Retries that are queued no longer do, when
/// theirs no longer may. Manifests that are so already are not counted; if one does not exist, nothing is done.
///
/// # Errors
/// Those of the store.
pub async fn set_replay_decisions_on_retry(
    db: &Db,
    tenant: TenantId,
    external_ids: &[String],
    replays: bool,
) -> Result<Outcome, OperationError> {
    if let Some(refusal) = batch::refusal(external_ids.len()) {
        return Ok(refusal);
    }
    db.write(async |tx| {
        let found = match named(tx, tenant, external_ids).await? {
            Ok(found) => found,
            Err(missing) => return Ok(missing),
        };
        let (named, mut changed, mut cleared) = (found.len(), 0, 0);
        for manifest in found.into_values() {
            changed += i64::from(manifest.replay_decisions_on_retry != replays);
            let id = manifest.id;
            cleared += manifests::set_replay_decisions_on_retry(tx, tenant, id, replays).await?;
        }
        let text = message::manifests_replay(changed, named, replays, cleared);
        Ok(Outcome::done(text).with_count(changed))
    })
    .await
}

/// The manifests with these ids, by their numbers; what is told when one does not exist.
async fn named(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    external_ids: &[String],
) -> Result<Result<BTreeMap<ManifestId, Manifest>, Outcome>, StoreError> {
    let mut found = BTreeMap::new();
    for id in external_ids {
        let Some(manifest) = of_external_id(tx, tenant, id).await? else {
            let missing = Outcome::missing(message::manifest_not_found(id));
            return Ok(Err(missing.with_count(0)));
        };
        found.insert(manifest.id, manifest);
    }
    Ok(Ok(found))
}

/// Asks that the active runs of a manifest end as cancelled.
///
/// # Errors
/// Those of the store.
pub async fn cancel(
    db: &Db,
    tenant: TenantId,
    external_id: &str,
) -> Result<Outcome, OperationError> {
    let mut tx = db.read().await?;
    let Some(manifest) = of_external_id(&mut tx, tenant, external_id).await? else {
        return Ok(Outcome::missing(message::manifest_not_found(external_id)));
    };
    let mut active: Vec<RunId> = Vec::new();
    for state in [TrainState::Pending, TrainState::InProgress] {
        let filter =
            RunFilter { state: Some(state), manifest: Some(manifest.id), ..RunFilter::default() };
        let found = runs::list(&mut tx, tenant, filter, ACTIVE_MAX).await?;
        active.extend(found.into_iter().map(|run| run.id));
    }
    drop(tx);
    let flagged = crate::operations::runs::flag(db, tenant, &active).await?;
    let text = message::manifest_cancelled(flagged);
    Ok(Outcome::done(text).with_count(flagged))
}
