//! When a manifest is due, kept as an index: whatever blocks a manifest clears it, whatever unblocks it sets it again.

use std::time::Duration;

use crate::engine::error::EngineError;
use crate::model::ids::{ManifestId, TenantId};
use crate::model::retry::Facts;
use crate::model::schedule::{Anchors, Interval, Misfire};
use crate::model::timestamp::Timestamp;
use crate::store::manifests::{self, History, Manifest};
use crate::store::{MisfirePolicy, ScheduleType, Tx};

/// How late an occurrence may be before it is missed, unless its manifest says so.
const MISFIRE_THRESHOLD: Duration = Duration::from_mins(1);

/// Brings the index in line with the rules after something changed for a manifest, and gives the instant.
pub async fn settle(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    failure_window: Duration,
) -> Result<Option<Timestamp>, EngineError> {
    let manifest = manifests::detail(tx, tenant, manifest).await?;
    let history = history(tx, &manifest, failure_window).await?;
    let now = tx.now().await?;
    let due = next_due_at(&manifest, &history, now);
    manifests::set_due(tx, manifest.id, due).await?;
    Ok(due)
}

/// What the manifest's runs came to, as far as it counts.
pub async fn history(
    tx: &mut Tx<'_>,
    manifest: &Manifest,
    failure_window: Duration,
) -> Result<History, EngineError> {
    let own = manifest.failure_window_seconds.map(seconds);
    let window_start = tx.now().await?.saturating_sub(own.unwrap_or(failure_window));
    Ok(manifests::history(tx, manifest.id, window_start).await?)
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
    if facts.is_exhausted() { Some(now) } else { scheduled_at(manifest, history, now) }
}

/// When the schedule makes a manifest due, whatever blocks it.
pub fn scheduled_at(manifest: &Manifest, history: &History, now: Timestamp) -> Option<Timestamp> {
    let anchors = Anchors {
        last_success: manifest.last_successful_run,
        last_cancelled: history.last_cancelled_at,
        next: manifest.next_scheduled_run,
    };
    interval(manifest)?.due_at(&anchors, now)
}

/// The next occurrence after a success now, to be stored; `None` when it follows from the success alone.
pub fn after_success(manifest: &Manifest, now: Timestamp, random: u64) -> Option<Timestamp> {
    let variance = u64::try_from(manifest.variance_seconds?).ok()?;
    let extra = Duration::from_secs(random % variance.saturating_add(1));
    Some(interval(manifest)?.after(now, extra))
}

fn interval(manifest: &Manifest) -> Option<Interval> {
    let threshold = manifest.misfire_threshold_seconds.map_or(MISFIRE_THRESHOLD, seconds);
    match manifest.schedule_type {
        ScheduleType::Interval => Some(Interval {
            every: seconds(manifest.interval_seconds?),
            misfire: match manifest.misfire_policy {
                MisfirePolicy::FireOnceNow => Misfire::FireOnceNow,
                MisfirePolicy::DoNothing => Misfire::DoNothing(threshold),
            },
        }),
        ScheduleType::None
        | ScheduleType::Cron
        | ScheduleType::OnDemand
        | ScheduleType::Dependent
        | ScheduleType::DormantDependent
        | ScheduleType::Once => None,
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
