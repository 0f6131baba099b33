//! When a manifest is due, kept as an index: whatever blocks a manifest clears it, whatever unblocks it sets it again.
//!
//! Whoever changes something that this depends on calls [`settle`], or [`settle_group`], in the same transaction:
//! enabling and disabling, resolving a dead letter, withdrawing an entry, the end of a run.

use std::time::Duration;

use crate::clock;
use crate::engine::error::EngineError;
use crate::model::ids::{GroupId, ManifestId, RunId, TenantId};
use crate::model::retry::Facts;
use crate::model::schedule::cron::Cron;
use crate::model::schedule::exclusion::Exclusion;
use crate::model::schedule::zone::Zone;
use crate::model::schedule::{Anchors, Misfire, Schedule, Timer};
use crate::model::timestamp::Timestamp;
use crate::store::due::{self, History};
use crate::store::manifests::{self, Manifest};
use crate::store::{MisfirePolicy, ScheduleType, StoreError, Tx, runs};

/// How late an occurrence may be before it is missed, unless its manifest says so.
pub const MISFIRE_THRESHOLD: Duration = Duration::from_mins(1);

/// How many members of a group are looked up at a time.
const PAGE: u32 = 1_000;

/// Brings the index in line with the rules after something changed for a manifest, and gives the instant. Manifests
/// that depend on it come along.
pub async fn settle(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    failure_window: Duration,
) -> Result<Option<Timestamp>, EngineError> {
    let manifest = manifests::locked(tx, tenant, manifest).await?;
    settle_stored(tx, &manifest, failure_window).await
}

/// The same, for every member of a group.
pub async fn settle_group(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    group: GroupId,
    failure_window: Duration,
) -> Result<(), EngineError> {
    let mut after = ManifestId(0);
    loop {
        let members = due::of_group(tx, tenant, group, after, PAGE).await?;
        let Some(last) = members.last() else { return Ok(()) };
        after = *last;
        for member in members {
            settle(tx, tenant, member, failure_window).await?;
        }
    }
}

/// The same, after a manifest was stated: a cron that never ran gets its first occurrence after now.
pub async fn settle_stated(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    failure_window: Duration,
) -> Result<Option<Timestamp>, EngineError> {
    let mut manifest = manifests::locked(tx, tenant, manifest).await?;
    let is_new = manifest.next_scheduled_run.is_none() && manifest.last_successful_run.is_none();
    if is_new && let Ok(Some(Timer::Cron(cron))) = timer(&manifest) {
        manifest.next_scheduled_run = cron.next_after(tx.now().await?);
        let next = manifest.next_scheduled_run;
        manifests::set_next_scheduled_run(tx, manifest.id, next).await?;
    }
    settle_stored(tx, &manifest, failure_window).await
}

/// Records that a run of a manifest succeeded: its schedule goes on from here, and those that depend on it are due.
pub async fn succeed(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    run: RunId,
    failure_window: Duration,
) -> Result<(), EngineError> {
    let stored = manifests::locked(tx, tenant, manifest).await?;
    let occurrence = match stored.schedule_type {
        ScheduleType::Cron => runs::detail(tx, tenant, run).await?.scheduled_time,
        _ => None,
    };
    let now = tx.now().await?;
    let next = after_success(&stored, now, occurrence)?;
    let stored = manifests::record_success(tx, manifest, occurrence, next).await?;
    settle_stored(tx, &stored, failure_window).await?;
    Ok(())
}

/// Sets the index of a manifest that this transaction has locked, and those of its dependents.
async fn settle_stored(
    tx: &mut Tx<'_>,
    manifest: &Manifest,
    failure_window: Duration,
) -> Result<Option<Timestamp>, EngineError> {
    let (due_at, has_dependents) = settle_one(tx, manifest, failure_window).await?;
    if has_dependents {
        for dependent in due::dependents(tx, manifest.id).await? {
            let dependent = manifests::locked(tx, manifest.tenant_id, dependent).await?;
            // What depends on the dependent waits for its success, which did not change.
            settle_one(tx, &dependent, failure_window).await?;
        }
    }
    Ok(due_at)
}

async fn settle_one(
    tx: &mut Tx<'_>,
    manifest: &Manifest,
    failure_window: Duration,
) -> Result<(Option<Timestamp>, bool), EngineError> {
    let history = history(tx, manifest, failure_window).await?;
    let now = tx.now().await?;
    let due_at = next_due_at(manifest, &history, now);
    if due_at != manifest.next_due_at {
        manifests::set_due(tx, manifest.id, due_at).await?;
    }
    Ok((due_at, history.has_dependents))
}

/// What the manifest's runs came to, as far as it counts.
pub async fn history(
    tx: &mut Tx<'_>,
    manifest: &Manifest,
    failure_window: Duration,
) -> Result<History, EngineError> {
    let own = manifest.failure_window_seconds.map(seconds);
    let window_start = tx.now().await?.saturating_sub(own.unwrap_or(failure_window));
    Ok(due::history(tx, manifest.id, window_start).await?)
}

/// When the manager has to look at a manifest: when its schedule makes it due, or at once when it failed too often.
/// `None` while something blocks it.
pub fn next_due_at(manifest: &Manifest, history: &History, now: Timestamp) -> Option<Timestamp> {
    let is_blocked = !manifest.is_enabled
        || history.has_awaiting_dead_letter
        || history.has_queued_work
        || history.has_active_run;
    if is_blocked {
        return None;
    }
    let facts = Facts {
        failures: history.failed_count,
        has_last_failed: true,
        max_retries: manifest.max_retries,
    };
    if facts.is_exhausted() {
        return Some(now);
    }
    // A group that is disabled queues nothing, and its members become dead letters all the same.
    if !history.is_group_enabled {
        return None;
    }
    if manifest.schedule_type == ScheduleType::Dependent {
        // Later than what it has used up; its own last success counts only where its runs are gone.
        let used_up = history.consumed_at.or(manifest.last_successful_run);
        return history.parent_succeeded_at.filter(|at| Some(*at) > used_up);
    }
    schedule(manifest)?.due_at(&anchors(manifest, history), now)
}

/// The occurrence of the schedule that a run queued now stands for, if the schedule makes it run.
pub fn occurrence(manifest: &Manifest, history: &History, now: Timestamp) -> Option<Timestamp> {
    if manifest.schedule_type == ScheduleType::Dependent {
        return history.parent_succeeded_at;
    }
    schedule(manifest)?.occurrence(&anchors(manifest, history), now)
}

/// The next occurrence after a success, to be stored; `None` when it follows from the success alone.
fn after_success(
    manifest: &Manifest,
    success: Timestamp,
    occurrence: Option<Timestamp>,
) -> Result<Option<Timestamp>, EngineError> {
    let variance = manifest.variance_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let Some(variance) = variance.filter(|variance| *variance > 0) else { return Ok(None) };
    let random = clock::random::<8>().map(u64::from_le_bytes).map_err(StoreError::Random)?;
    let extra = Duration::from_secs(random % variance.saturating_add(1));
    let schedule = schedule(manifest);
    Ok(schedule.and_then(|schedule| schedule.after_success(success, occurrence, extra)))
}

/// What a manifest's schedule is measured from.
pub fn anchors(manifest: &Manifest, history: &History) -> Anchors {
    Anchors {
        last_success: manifest.last_successful_run,
        last_occurrence: manifest.last_successful_occurrence,
        last_cancelled: history.last_cancelled_at,
        next: manifest.next_scheduled_run,
    }
}

/// A manifest's schedule; `None` when time never makes it due, also because what is stored cannot be read.
pub fn schedule(manifest: &Manifest) -> Option<Schedule> {
    read_schedule(manifest).unwrap_or_else(|problem| {
        let manifest = manifest.external_id.as_str();
        tracing::warn!(manifest, problem, "a manifest is never due: its schedule cannot be read");
        None
    })
}

fn read_schedule(manifest: &Manifest) -> Result<Option<Schedule>, String> {
    let Some(timer) = timer(manifest)? else { return Ok(None) };
    let threshold = manifest.misfire_threshold_seconds.map_or(MISFIRE_THRESHOLD, seconds);
    let exclusions = manifest.exclusions.as_deref().map_or(Ok(Vec::new()), Exclusion::read_all);
    Ok(Some(Schedule {
        timer,
        misfire: match manifest.misfire_policy {
            MisfirePolicy::FireOnceNow => Misfire::FireOnceNow,
            MisfirePolicy::DoNothing => Misfire::DoNothing(threshold),
        },
        exclusions: exclusions.map_err(|problem| format!("what it leaves out {problem}"))?,
        zone: zone(manifest)?,
    }))
}

fn timer(manifest: &Manifest) -> Result<Option<Timer>, String> {
    Ok(match manifest.schedule_type {
        ScheduleType::Interval => {
            let every = manifest.interval_seconds.filter(|seconds| *seconds > 0);
            Some(Timer::Interval(seconds(every.ok_or("it has no interval")?)))
        }
        ScheduleType::Cron => {
            let expression = manifest.cron_expression.as_deref().ok_or("it has no expression")?;
            let cron = Cron::parse(expression, zone(manifest)?);
            Some(Timer::Cron(cron.map_err(|fault| format!("'{expression}' {fault}"))?))
        }
        ScheduleType::Once => manifest.scheduled_at.map(Timer::Once),
        ScheduleType::None
        | ScheduleType::OnDemand
        | ScheduleType::Dependent
        | ScheduleType::DormantDependent => None,
    })
}

fn zone(manifest: &Manifest) -> Result<Zone, String> {
    let name = &manifest.time_zone;
    Zone::of_name(name).ok_or_else(|| format!("there is no time zone '{name}'"))
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
