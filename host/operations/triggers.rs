//! Triggers: runs of manifests that somebody asked for.

use std::time::Duration;

use crate::model::ids::{EntryId, GroupId, RunId, TenantId};
use crate::model::timestamp::Timestamp;
use crate::operations::duration;
use crate::operations::error::OperationError;
use crate::store::manifests::{self, Manifest};
use crate::store::queue::{self, NewEntry};
use crate::store::{Db, ScheduleType, StoreError, Tx, groups};

/// How a manifest is triggered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trigger {
    /// After this long, on the database's clock; zero: now.
    pub delay: Duration,
    /// Whether the run asks its deciders rather than replay what a failed run decided.
    pub asks_afresh: bool,
}

/// What a trigger did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggered {
    /// The manifest.
    pub external_id: String,
    /// The entry that runs it.
    pub work_queue_id: EntryId,
    /// Whether the trigger queued that entry.
    pub is_created: bool,
    /// When the entry may be dispatched; `None`: now.
    pub scheduled_at: Option<Timestamp>,
    /// Whether the entry was claimed as the trigger reached it; then nothing was changed.
    pub is_already_dispatched: bool,
    /// The run whose decisions the claimed entry replays, in spite of a trigger that asks afresh.
    pub replay_decisions_of: Option<RunId>,
    /// Whether an entry that was queued runs sooner than it would have.
    pub is_moved_forward: bool,
}

impl Triggered {
    /// What operators are told.
    pub fn message(&self) -> String {
        let (id, entry) = (&self.external_id, self.work_queue_id);
        let due = match self.scheduled_at {
            Some(at) => format!("due at {at}"),
            None => "due now".to_owned(),
        };
        let queued = format!("Manifest '{id}' already had a queued run (work queue entry {entry})");
        match self.replay_decisions_of {
            Some(run) => format!(
                "Manifest '{id}' triggered, but the dispatcher had already claimed its queued retry (work queue entry \
                 {entry}), so that run replays the decisions of execution {run} rather than asking its deciders afresh."
            ),
            None if self.is_already_dispatched => format!(
                "{queued} that the dispatcher claimed as the trigger reached it, so it is already running; nothing more \
                 was queued."
            ),
            None if self.is_created => format!(
                "Manifest '{id}' triggered: queued a new run (work queue entry {entry}), {due}."
            ),
            None if self.is_moved_forward => format!(
                "{queued}; the trigger brought it forward, now {due}, and queued nothing more."
            ),
            None => {
                format!("{queued}, {due}; it now runs as the trigger and nothing more was queued.")
            }
        }
    }
}

/// Runs a manifest now or after a delay, by way of the entry that is queued for it if there is one.
///
/// # Errors
/// [`OperationError::NotFound`] when there is no such manifest, [`OperationError::Invalid`] when the delay is too long.
pub async fn manifest(
    db: &Db,
    tenant: TenantId,
    external_id: &str,
    trigger: Trigger,
) -> Result<Triggered, OperationError> {
    let mut tx = db.begin().await?;
    let manifest = match manifests::of_external_id(&mut tx, tenant, external_id).await {
        Ok(manifest) => manifest,
        Err(StoreError::NotFound { .. }) => {
            return Err(OperationError::NotFound(format!("Manifest '{external_id}' not found.")));
        }
        Err(error) => return Err(error.into()),
    };
    let triggered = pull(&mut tx, tenant, &manifest, trigger).await?;
    tx.commit().await?;
    if let Some(run) = triggered.replay_decisions_of {
        tracing::warn!(manifest = external_id, %run, "a trigger came too late to ask afresh");
    }
    Ok(triggered)
}

/// What triggers of several manifests did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Manifests that were meant.
    pub matched: usize,
    /// New entries.
    pub queued: usize,
    /// Manifests whose queued entry now runs as the trigger.
    pub already_queued: usize,
    /// Manifests whose entry was claimed as the trigger reached it.
    pub already_dispatched: usize,
}

/// Runs every enabled manifest of a group that runs on its own schedule, now. What is queued already is released.
///
/// # Errors
/// [`OperationError::NotFound`] when this tenant has no such group.
pub async fn group(db: &Db, tenant: TenantId, group: GroupId) -> Result<Counts, OperationError> {
    let mut tx = db.begin().await?;
    let groups = groups::list(&mut tx, tenant).await?;
    if !groups.iter().any(|it| it.id == group) {
        return Err(OperationError::NotFound(format!("Manifest group {group} not found.")));
    }
    let mut counts = Counts::default();
    for manifest in manifests::of_group(&mut tx, tenant, group).await? {
        if !manifest.is_enabled || !runs_by_itself(manifest.schedule_type) {
            continue;
        }
        counts.matched += 1;
        let triggered = pull(&mut tx, tenant, &manifest, Trigger::default()).await?;
        if triggered.is_created {
            counts.queued += 1;
        } else if triggered.is_already_dispatched {
            counts.already_dispatched += 1;
        } else {
            counts.already_queued += 1;
        }
    }
    tx.commit().await?;
    Ok(counts)
}

const fn runs_by_itself(schedule: ScheduleType) -> bool {
    match schedule {
        ScheduleType::None
        | ScheduleType::Cron
        | ScheduleType::Interval
        | ScheduleType::OnDemand
        | ScheduleType::Once => true,
        ScheduleType::Dependent | ScheduleType::DormantDependent => false,
    }
}

async fn pull(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: &Manifest,
    trigger: Trigger,
) -> Result<Triggered, OperationError> {
    let Trigger { delay, asks_afresh } = trigger;
    if tx.now().await?.checked_add(delay).is_none() {
        return Err(OperationError::Invalid(format!(
            "A delay of {} puts the run past the latest time that can be stored. Nothing was queued.",
            duration::written(delay)
        )));
    }
    let new = NewEntry {
        input: manifest.properties.as_deref(),
        input_type: manifest.property_type.as_deref(),
        priority: manifest.priority,
        ..NewEntry::new(tenant, &manifest.name)
    };
    let pulled = queue::trigger(tx, manifest.id, delay, asks_afresh, &new).await?;
    let mut triggered = Triggered {
        external_id: manifest.external_id.clone(),
        work_queue_id: pulled.entry(),
        is_created: false,
        scheduled_at: None,
        is_already_dispatched: false,
        replay_decisions_of: None,
        is_moved_forward: false,
    };
    match pulled {
        queue::Triggered::Created { scheduled_at, .. } => {
            triggered.is_created = true;
            triggered.scheduled_at = scheduled_at;
        }
        queue::Triggered::Joined { scheduled_at, is_moved_forward, .. } => {
            triggered.scheduled_at = scheduled_at;
            triggered.is_moved_forward = is_moved_forward;
        }
        queue::Triggered::AlreadyDispatched { replay_decisions_of, .. } => {
            triggered.is_already_dispatched = true;
            triggered.replay_decisions_of = replay_decisions_of.filter(|_| asks_afresh);
        }
    }
    Ok(triggered)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M36: each outcome has its words.
    #[test]
    fn each_outcome_has_its_words() {
        let created = Triggered {
            external_id: "nightly".to_owned(),
            work_queue_id: EntryId(7),
            is_created: true,
            scheduled_at: None,
            is_already_dispatched: false,
            replay_decisions_of: None,
            is_moved_forward: false,
        };
        let joined = Triggered { is_created: false, ..created.clone() };
        let at = Timestamp::from_micros(1_767_225_600_000_000);
        let claimed = Triggered { is_already_dispatched: true, ..joined.clone() };
        let cases = [
            (
                created.clone(),
                "Manifest 'nightly' triggered: queued a new run (work queue entry 7), due now.",
            ),
            (
                Triggered { scheduled_at: at, ..created },
                "Manifest 'nightly' triggered: queued a new run (work queue entry 7), due at 2026-01-01T00:00:00Z.",
            ),
            (
                Triggered { is_moved_forward: true, ..joined.clone() },
                "Manifest 'nightly' already had a queued run (work queue entry 7); the trigger brought it forward, now due \
                 now, and queued nothing more.",
            ),
            (
                joined,
                "Manifest 'nightly' already had a queued run (work queue entry 7), due now; it now runs as the trigger and \
                 nothing more was queued.",
            ),
            (
                claimed.clone(),
                "Manifest 'nightly' already had a queued run (work queue entry 7) that the dispatcher claimed as the \
                 trigger reached it, so it is already running; nothing more was queued.",
            ),
            (
                Triggered { replay_decisions_of: Some(RunId(42)), ..claimed },
                "Manifest 'nightly' triggered, but the dispatcher had already claimed its queued retry (work queue entry \
                 7), so that run replays the decisions of execution 42 rather than asking its deciders afresh.",
            ),
        ];
        for (triggered, text) in cases {
            assert_eq!(triggered.message(), text);
        }
    }
}
