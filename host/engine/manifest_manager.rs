//! The manifest manager: queues what is due, and writes dead letters for what failed too often.
//!
//! One pass is one transaction of one leader:
//! 1. resolve entries that were staged and forgotten (M26);
//! 2. load the manifests that are due, by the index, and share the room among their groups (M22);
//! 3. leave out what is blocked (M9);
//! 4. write dead letters (M7);
//! 5. queue the others, retries with their delay and with the run whose answers they replay (M23, M24, R16 to R25,
//!    R35 to R51).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::config::Shared;
use crate::engine::due;
use crate::engine::error::{EngineError, causes};
use crate::engine::events::EngineEvent;
use crate::engine::service::Service;
use crate::engine::sources::Sources;
use crate::model::ids::{EntryId, GroupId};
use crate::model::retry::{Facts, Next};
use crate::model::schedule::share::shares;
use crate::store::due::Due;
use crate::store::manifests::{self, Manifest};
use crate::store::queue::{self, Enqueued, NewEntry, PRIORITY_MAX, When};
use crate::store::{
    LockKey, ScheduleType, StoreError, TrainState, Tx, dead_letters, due as due_store, runs, staged,
};

/// How many manifests that are due a pass shares its room among: those longest due. More than that wait their turn, so
/// that a pass costs the same however many are due.
const SHARED_OUT_MAX: u32 = 10_000;
/// How many staged entries a pass resolves.
const STAGED_MAX: u32 = 1_000;
/// How long a staged entry that was withdrawn is kept.
const WITHDRAWN_KEPT: Duration = Duration::from_hours(30 * 24);

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
    /// How many staged entries were withdrawn, dispatched or deleted.
    pub staged: u64,
    /// How many manifests could not be dealt with; the others were.
    pub failed: usize,
    /// Whether there may be more that is due.
    pub has_more: bool,
}

/// The manifest manager.
pub struct ManifestManager {
    shared: Arc<Shared>,
}

impl ManifestManager {
    /// The manager of an engine.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Deals with one manifest that the index calls due.
    async fn look_at(
        &self,
        tx: &mut Tx<'_>,
        due: &Due,
        sources: &Sources,
    ) -> Result<Option<EngineEvent>, EngineError> {
        let config = &self.shared.config;
        let now = tx.now().await?;
        let manifest = &manifests::locked(tx, due.tenant_id, due.id).await?;
        let history = due::history(tx, manifest, config.failure_count_window).await?;
        let due_at = due::next_due_at(manifest, &history, now);
        if due_at.is_none_or(|due_at| due_at > now) {
            manifests::set_due(tx, manifest.id, due_at).await?;
            return Ok(None);
        }
        let occurrence = due::occurrence(manifest, &history, now);
        let latest = due_store::latest_finished(tx, manifest.id).await?;
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
                let new = NewEntry { scheduled_time: occurrence, ..self.entry(manifest) };
                let entry = enqueue(tx, &new).await?;
                let manifest = manifest.external_id.clone();
                Ok(entry.map(|entry| EngineEvent::RunQueued { manifest, entry }))
            }
            Next::Retry { delay } => {
                let Some((last, _)) = latest else { return Ok(None) };
                let taken = sources.take_over(manifest.id, false);
                let last = runs::detail(tx, manifest.tenant_id, last).await?;
                let new = NewEntry {
                    when: When::After(delay),
                    // A triggered run stood for no occurrence; its retry stands for the one that made it due.
                    scheduled_time: last.scheduled_time.or(occurrence),
                    occurrence_id: Some(&last.occurrence_id),
                    replay_decisions_of: taken.replay_decisions_of,
                    resume_from: taken.resume_from,
                    ..self.entry(manifest)
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

    /// An entry for a run of a manifest, to run now.
    fn entry<'m>(&self, manifest: &'m Manifest) -> NewEntry<'m> {
        let boost = match manifest.schedule_type {
            ScheduleType::Dependent => self.shared.config.dependent_priority_boost,
            _ => 0,
        };
        NewEntry {
            input: manifest.properties.as_deref(),
            input_type: manifest.property_type.as_deref(),
            manifest: Some(manifest.id),
            priority: manifest.priority.saturating_add(boost).clamp(0, PRIORITY_MAX),
            ..NewEntry::new(manifest.tenant_id, &manifest.name)
        }
    }

    /// Resolves what was staged and forgotten.
    async fn resolve_staged(&self, tx: &mut Tx<'_>) -> Result<u64, EngineError> {
        let config = &self.shared.config;
        let now = tx.now().await?;
        let since = now.saturating_sub(config.stale_staged_entry_timeout);
        let mut resolved =
            staged::delete(tx, now.saturating_sub(WITHDRAWN_KEPT), STAGED_MAX).await?;
        if config.promotes_stale_staged_entries {
            return Ok(resolved + staged::promote(tx, since, STAGED_MAX).await?);
        }
        for (entry, tenant, manifest) in staged::cancel(tx, since, STAGED_MAX).await? {
            tracing::warn!(%entry, "an entry was staged and never confirmed; it is withdrawn");
            if let Some(manifest) = manifest {
                due::settle(tx, tenant, manifest, config.failure_count_window).await?;
            }
            resolved += 1;
        }
        Ok(resolved)
    }
}

/// Queues an entry; nothing when a trigger got in first.
async fn enqueue(tx: &mut Tx<'_>, new: &NewEntry<'_>) -> Result<Option<EntryId>, EngineError> {
    match queue::enqueue(tx, new).await {
        Ok(Enqueued::Created { entry, asks_afresh, starts_at_the_top }) => {
            if asks_afresh || starts_at_the_top {
                let train = new.train;
                tracing::info!(%entry, train, asks_afresh, starts_at_the_top, "another took over first");
            }
            Ok(Some(entry))
        }
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

/// Those whose turn it is: groups of a higher priority first, and in each what is longest due.
fn turn(due: Vec<Due>, limit: Option<u32>) -> Vec<Due> {
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if due.len() <= limit {
        return due;
    }
    let mut groups: BTreeMap<(Reverse<i16>, GroupId), Vec<Due>> = BTreeMap::new();
    for manifest in due {
        let group = (Reverse(manifest.group_priority), manifest.manifest_group_id);
        groups.entry(group).or_default().push(manifest);
    }
    let counts: Vec<usize> = groups.values().map(Vec::len).collect();
    let shares = shares(&counts, limit);
    groups.into_values().zip(shares).flat_map(|(due, share)| due.into_iter().take(share)).collect()
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
        let staged = self.resolve_staged(&mut tx).await?;
        let found = due_store::due(&mut tx, SHARED_OUT_MAX).await?;
        let count = found.len();
        let due = turn(found, limit);
        let is_window_full = u32::try_from(count).is_ok_and(|count| count == SHARED_OUT_MAX);
        let mut report = Report {
            looked_at: due.len(),
            staged,
            has_more: due.len() < count || is_window_full,
            ..Report::default()
        };
        let mut events = Vec::new();
        let ids: Vec<_> = due.iter().map(|due| due.id).collect();
        manifests::hold_all(&mut tx, &ids).await?;
        let sources = Sources::look_up(
            &mut tx,
            &ids,
            self.shared.config.failure_count_window,
            &self.shared.chains,
        )
        .await?;
        for manifest in &due {
            let mut part = tx.savepoint().await?;
            match self.look_at(&mut part, manifest, &sources).await {
                Ok(event) => {
                    part.commit().await?;
                    events.extend(event);
                }
                Err(error) => {
                    part.rollback().await?;
                    let error = causes(&error);
                    tracing::error!(manifest = %manifest.id, error, "a manifest is left out");
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
        if report.queued > 0 || report.staged > 0 {
            self.shared.dispatcher_nudge.notify_one();
        }
        Ok(report)
    }

    fn has_more(report: &Report) -> bool {
        report.has_more
    }
}
