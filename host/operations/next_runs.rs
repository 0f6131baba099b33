//! When a manifest will run next, if each of its runs succeeds at once and nobody triggers any.

use std::time::Duration;

use crate::engine::due;
use crate::model::ids::TenantId;
use crate::model::schedule::zone::Zone;
use crate::model::timestamp::Timestamp;
use crate::operations::error::OperationError;
use crate::store::manifests::{self, Manifest};
use crate::store::{Db, ScheduleType};

/// How long a failure counts when a manifest does not say; the schedule does not depend on it.
const FAILURE_COUNT_WINDOW: Duration = Duration::from_hours(24);

/// What comes next for a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRuns {
    /// The manifest.
    pub manifest: Manifest,
    /// Its zone.
    pub zone: Zone,
    /// When it is due, without the variance, which is drawn after each success.
    pub occurrences: Vec<Timestamp>,
    /// Why there are none, or why they will not run as things are.
    pub note: Option<String>,
}

/// The next occurrences of a manifest, at most so many.
///
/// # Errors
/// When this tenant has no such manifest, and those of the store.
pub async fn next(
    db: &Db,
    tenant: TenantId,
    external_id: &str,
    count: usize,
) -> Result<NextRuns, OperationError> {
    let mut tx = db.read().await?;
    let manifest = manifests::of_external_id(&mut tx, tenant, external_id).await?;
    let history = due::history(&mut tx, &manifest, FAILURE_COUNT_WINDOW).await?;
    let mut now = tx.now().await?;
    let mut occurrences = Vec::new();
    let mut anchors = due::anchors(&manifest, &history);
    if let Some(schedule) = due::schedule(&manifest) {
        while occurrences.len() < count {
            let Some(due_at) = schedule.due_at(&anchors, now) else { break };
            let runs_at = due_at.max(now);
            if schedule.due_at(&anchors, runs_at).is_some_and(|due_at| due_at <= runs_at) {
                occurrences.push(runs_at);
                anchors.last_occurrence = schedule.occurrence(&anchors, runs_at);
                anchors.last_success = Some(runs_at);
                anchors.last_cancelled = None;
                anchors.next = None;
            } else if due_at <= now {
                break;
            }
            now = runs_at;
        }
    }
    let note = note(&manifest, history.is_group_enabled, history.has_awaiting_dead_letter);
    let zone = Zone::of_name(&manifest.time_zone).unwrap_or(Zone::UTC);
    Ok(NextRuns { manifest, zone, occurrences, note })
}

fn note(manifest: &Manifest, is_group_enabled: bool, is_dead: bool) -> Option<String> {
    let note = match manifest.schedule_type {
        _ if !manifest.is_enabled => "the manifest is disabled",
        _ if !is_group_enabled => "its group is disabled",
        _ if is_dead => "a dead letter of it awaits somebody",
        ScheduleType::Dependent => "it runs after each success of the manifest it depends on",
        ScheduleType::DormantDependent => {
            "it runs when a run of the manifest it depends on asks for it"
        }
        ScheduleType::None | ScheduleType::OnDemand => "it runs on demand",
        ScheduleType::Cron | ScheduleType::Interval | ScheduleType::Once => return None,
    };
    Some(note.to_owned())
}
