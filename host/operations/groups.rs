//! Groups of manifests: reading them, switching them on and off, and running them now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::engine::due;
use crate::model::ids::{GroupId, TenantId};
use crate::model::message;
use crate::operations::batch;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::triggers::{self, Counts};
use crate::store::groups::{self, Group, GroupStatement};
use crate::store::manifests::{self, Setting};
use crate::store::{Db, StoreError, Tx};

/// How long a failure counts when a manifest does not say.
const FAILURE_COUNT_WINDOW: Duration = Duration::from_hours(24);

/// A tenant's groups after the one of that name, by name.
///
/// # Errors
/// Those of the store.
pub async fn list(
    db: &Db,
    tenant: TenantId,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Group>, StoreError> {
    let mut tx = db.read().await?;
    let groups = groups::list(&mut tx, tenant).await?;
    let later = groups.into_iter().filter(|group| after.is_none_or(|after| *group.name > *after));
    Ok(later.take(limit as usize).collect())
}

/// The groups of these names, or the refusal that says which name is none.
async fn named(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    names: &[String],
) -> Result<Result<BTreeMap<String, Group>, Outcome>, StoreError> {
    let groups = groups::list(tx, tenant).await?;
    let mut known: BTreeMap<String, Group> =
        groups.into_iter().map(|group| (group.name.clone(), group)).collect();
    let wanted: BTreeSet<&String> = names.iter().collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains_key(*name)) {
        return Ok(Err(Outcome::missing(message::group_not_found(unknown)).with_count(0)));
    }
    known.retain(|name, _| wanted.contains(name));
    Ok(Ok(known))
}

/// Switches groups on or off. Those that are so already are not counted; if one does not exist, nothing is done.
///
/// # Errors
/// Those of the store.
pub async fn set_enabled(
    db: &Db,
    tenant: TenantId,
    names: &[String],
    is_enabled: bool,
) -> Result<Outcome, OperationError> {
    if let Some(refusal) = batch::refusal(names.len()) {
        return Ok(refusal);
    }
    db.write(async |tx| {
        let found = match named(tx, tenant, names).await? {
            Ok(found) => found,
            Err(missing) => return Ok(missing),
        };
        let all = found.len();
        let mut changed = 0;
        for group in found.into_values().filter(|group| group.is_enabled != is_enabled) {
            let stated = GroupStatement {
                tenant,
                name: &group.name,
                max_active_jobs: Setting::Keep,
                priority: None,
                is_enabled: Some(is_enabled),
            };
            groups::upsert(tx, &stated).await?;
            for member in manifests::of_group(tx, tenant, group.id).await? {
                due::settle(tx, tenant, member.id, FAILURE_COUNT_WINDOW).await?;
            }
            changed += 1;
        }
        let text = message::groups_enabled(changed, all, is_enabled);
        Ok(Outcome::done(text).with_count(changed))
    })
    .await
}

/// Runs every enabled manifest of groups that runs on its own schedule, now. What is queued already is released.
///
/// # Errors
/// Those of the store.
pub async fn trigger(
    db: &Db,
    tenant: TenantId,
    names: &[String],
) -> Result<Outcome, OperationError> {
    if let Some(refusal) = batch::refusal(names.len()) {
        return Ok(refusal);
    }
    let mut tx = db.read().await?;
    let found = match named(&mut tx, tenant, names).await? {
        Ok(found) => found,
        Err(missing) => return Ok(missing),
    };
    drop(tx);
    let ids: Vec<GroupId> = found.values().map(|group| group.id).collect();
    let mut total = Counts::default();
    for id in &ids {
        let counts = triggers::group(db, tenant, *id).await?;
        total.queued += counts.queued;
        total.already_queued += counts.already_queued;
        total.already_dispatched += counts.already_dispatched;
    }
    let text = message::groups_triggered(
        total.queued,
        total.already_queued,
        total.already_dispatched,
        ids.len(),
    );
    let queued = i64::try_from(total.queued).unwrap_or(i64::MAX);
    Ok(Outcome::done(text).with_count(queued))
}

/// Asks that the active runs of groups end as cancelled.
///
/// # Errors
/// Those of the store.
pub async fn cancel(
    db: &Db,
    tenant: TenantId,
    names: &[String],
) -> Result<Outcome, OperationError> {
    if let Some(refusal) = batch::refusal(names.len()) {
        return Ok(refusal);
    }
    let mut tx = db.read().await?;
    let found = match named(&mut tx, tenant, names).await? {
        Ok(found) => found,
        Err(missing) => return Ok(missing),
    };
    let mut members = Vec::new();
    for group in found.values() {
        members.extend(manifests::of_group(&mut tx, tenant, group.id).await?);
    }
    drop(tx);
    let mut flagged = 0;
    for member in members {
        let done = crate::operations::manifests::cancel(db, tenant, &member.external_id).await?;
        flagged += done.count.unwrap_or(0);
    }
    let text = message::groups_cancelled(flagged, found.len(), names.len());
    Ok(Outcome::done(text).with_count(flagged))
}
