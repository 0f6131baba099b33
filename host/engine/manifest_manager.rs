//! The manifest manager: queues what is due, and writes dead letters for what failed too often.
//!
//! One pass is one transaction of one leader:
//! 1. load the manifests that are due, by the index;
//! 2. leave out what is blocked (M9);
//! 3. write dead letters (M7);
//! 4. queue the others, retries with their delay (M22 to M24, R16 to R25).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::engine::config::Shared;
use crate::engine::due;
use crate::engine::error::{EngineError, causes};
use crate::engine::events::EngineEvent;
use crate::engine::service::Service;
use crate::model::ids::{EntryId, GroupId, TenantId};
use crate::model::retry::{Facts, Next};
use crate::store::manifests::{self, Manifest};
use crate::store::queue::{self, Enqueued, NewEntry, When};
use crate::store::{LockKey, StoreError, TrainState, Tx, dead_letters, groups, runs};

/// What a pass did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether another host was at it.
    pub is_skipped: bool,
    /// How many manifests were looked at.
    pub looked_at: usize,
    /// How many entries were queued.
    pub queued: usize,
    /// How many dead letters were written.
    pub dead_lettered: usize,
    /// How many manifests could not be dealt with; the others were.
    pub failed: usize,
    /// Whether there may be more that is due.
    pub has_more: bool,
}

/// The manifest manager.
pub struct ManifestManager {
    shared: Arc<Shared>,
}

/// The groups of a tenant that dispatch nothing.
type DisabledGroups = BTreeMap<TenantId, Vec<GroupId>>;

impl ManifestManager {
    /// The manager of an engine.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Deals with one manifest that the index calls due.
    async fn look_at(
        &self,
        tx: &mut Tx<'_>,
        manifest: &Manifest,
        disabled: &DisabledGroups,
    ) -> Result<Option<EngineEvent>, EngineError> {
        let config = &self.shared.config;
        let now = tx.now().await?;
        let history = due::history(tx, manifest, config.failure_count_window).await?;
        let is_held = disabled
            .get(&manifest.tenant_id)
            .is_some_and(|groups| groups.contains(&manifest.manifest_group_id));
        let due_at = due::next_due_at(manifest, &history, now).filter(|_| !is_held);
        if due_at.is_none_or(|due_at| due_at > now) {
            manifests::set_due(tx, manifest.id, due_at).await?;
            return Ok(None);
        }
        let latest = manifests::latest_finished(tx, manifest.id).await?;
        let facts = Facts {
            failures: history.failed_count,
            has_last_failed: latest.is_some_and(|(_, state)| state == TrainState::Failed),
            max_retries: manifest.max_retries,
        };
        match facts.next(&config.retry) {
            Next::DeadLetter { reason } => {
                let failures = i32::try_from(facts.failures).unwrap_or(i32::MAX);
                dead_letters::add(tx, manifest.tenant_id, manifest.id, failures, &reason).await?;
                Ok(Some(EngineEvent::DeadLettered {
                    manifest: manifest.external_id.clone(),
                    reason,
                }))
            }
            Next::Run => {
                let new = NewEntry { scheduled_time: due_at, ..entry(manifest) };
                let entry = enqueue(tx, &new).await?;
                let manifest = manifest.external_id.clone();
                Ok(entry.map(|entry| EngineEvent::RunQueued { manifest, entry }))
            }
            Next::Retry { delay } => {
                let Some((last, _)) = latest else { return Ok(None) };
                let last = runs::detail(tx, manifest.tenant_id, last).await?;
                let new = NewEntry {
                    when: When::After(delay),
                    scheduled_time: last.scheduled_time,
                    occurrence_id: Some(&last.occurrence_id),
                    ..entry(manifest)
                };
                let entry = enqueue(tx, &new).await?;
                Ok(entry.map(|entry| EngineEvent::RetryQueued {
                    manifest: manifest.external_id.clone(),
                    entry,
                    failures: facts.failures,
                    delay,
                    due: (!delay.is_zero()).then(|| now.saturating_add(delay)),
                }))
            }
        }
    }
}

/// An entry for a run of a manifest, to run now.
fn entry(manifest: &Manifest) -> NewEntry<'_> {
    NewEntry {
        input: manifest.properties.as_deref(),
        input_type: manifest.property_type.as_deref(),
        manifest: Some(manifest.id),
        priority: manifest.priority,
        ..NewEntry::new(manifest.tenant_id, &manifest.name)
    }
}

/// Queues an entry; nothing when a trigger got in first.
async fn enqueue(tx: &mut Tx<'_>, new: &NewEntry<'_>) -> Result<Option<EntryId>, EngineError> {
    match queue::enqueue(tx, new).await {
        Ok(Enqueued::Created { entry, .. }) => Ok(Some(entry)),
        Ok(Enqueued::ManifestQueued(entry) | Enqueued::ExternalIdTaken(entry)) => {
            tracing::debug!(%entry, "the manifest has a queued entry already");
            Ok(None)
        }
        // It stays due.
        Err(error @ StoreError::QueueFull(_)) => {
            tracing::warn!(tenant = %new.tenant, train = new.train, "not queued: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

async fn disabled_groups(tx: &mut Tx<'_>, due: &[Manifest]) -> Result<DisabledGroups, EngineError> {
    let mut disabled = DisabledGroups::new();
    for manifest in due {
        if let Entry::Vacant(unknown) = disabled.entry(manifest.tenant_id) {
            let groups = groups::list(tx, manifest.tenant_id).await?;
            let held = groups.into_iter().filter(|group| !group.is_enabled).map(|group| group.id);
            unknown.insert(held.collect());
        }
    }
    Ok(disabled)
}

impl Service for ManifestManager {
    type Report = Report;

    const NAME: &'static str = "manifest manager";

    async fn pass(&mut self) -> Result<Report, EngineError> {
        let limit = self.shared.config.max_work_queue_entries_per_cycle;
        let mut tx = self.shared.db.begin().await?;
        if !tx.try_lock(LockKey::ManifestManager).await? {
            return Ok(Report { is_skipped: true, ..Report::default() });
        }
        let due = manifests::due(&mut tx, limit).await?;
        let disabled = disabled_groups(&mut tx, &due).await?;
        let mut report = Report {
            looked_at: due.len(),
            has_more: u32::try_from(due.len()).is_ok_and(|count| count == limit),
            ..Report::default()
        };
        let mut events = Vec::new();
        for manifest in &due {
            let mut part = tx.savepoint().await?;
            match self.look_at(&mut part, manifest, &disabled).await {
                Ok(event) => {
                    part.commit().await?;
                    events.extend(event);
                }
                Err(error) => {
                    part.rollback().await?;
                    let error = causes(&error);
                    tracing::error!(
                        manifest = manifest.external_id,
                        error,
                        "a manifest is left out"
                    );
                    report.failed += 1;
                }
            }
        }
        tx.commit().await?;
        for event in events {
            match event {
                EngineEvent::DeadLettered { .. } => report.dead_lettered += 1,
                _ => report.queued += 1,
            }
            self.shared.events.publish(event);
        }
        report.has_more &= report.failed == 0;
        if report.queued > 0 {
            self.shared.dispatcher_nudge.notify_one();
        }
        Ok(report)
    }

    fn has_more(report: &Report) -> bool {
        report.has_more
    }
}
