//! The manifests that are simulated: those of files as if they were stated now, or those of a database as they stand.

use std::time::Duration;

use crate::engine::due;
use crate::model::ids::{ManifestId, TenantId};
use crate::model::schedule::cron::Cron;
use crate::model::schedule::zone::Zone;
use crate::model::schedule::{Anchors, Misfire, Schedule, Timer};
use crate::model::timestamp::Timestamp;
use crate::operations::error::OperationError;
use crate::operations::manifest_file::{ManifestFile, StatedManifest, StatedTimer};
use crate::operations::sim::Plan;
use crate::store::manifests::{self, Manifest, Setting};
use crate::store::{Db, MisfirePolicy, ScheduleType, TrainState, Tx, due as due_store};

/// How long a failure counts when neither a manifest nor its file says.
const FAILURE_COUNT_WINDOW: Duration = Duration::from_hours(24);

/// `max_retries` when neither a manifest nor its file says.
const MAX_RETRIES: i32 = 3;

/// How many manifests are read at a time.
const PAGE: u32 = 1_000;

/// The manifests of files, stated at an instant.
pub fn of_files(files: &[ManifestFile], now: Timestamp) -> Vec<Plan> {
    let plans = files
        .iter()
        .flat_map(|file| file.manifests.iter().map(move |stated| of_statement(file, stated, now)));
    plans.collect()
}

fn of_statement(file: &ManifestFile, stated: &StatedManifest, now: Timestamp) -> Plan {
    let scheduler = &file.scheduler;
    let zone = stated.schedule.zone.clone();
    let (timer, parent) = match &stated.schedule.timer {
        StatedTimer::Every(every) => (Some(Timer::Interval(*every)), None),
        // It was read by the same parser.
        StatedTimer::Cron(text) => (Cron::parse(text, zone.clone()).ok().map(Timer::Cron), None),
        StatedTimer::OnceAt(at) => (Some(Timer::Once(*at)), None),
        StatedTimer::OnceIn(delay) => (Some(Timer::Once(now.saturating_add(*delay))), None),
        StatedTimer::OnDemand | StatedTimer::After { is_dormant: true, .. } => (None, None),
        StatedTimer::After { parent, .. } => (None, Some(parent.clone())),
    };
    let threshold =
        stated.misfire_threshold_seconds.or(scheduler.default_misfire_threshold_seconds);
    let policy = stated.misfire.or(scheduler.default_misfire_policy);
    let next = match &timer {
        Some(Timer::Cron(cron)) => cron.next_after(now),
        _ => None,
    };
    let schedule = timer.map(|timer| Schedule {
        timer,
        misfire: match policy.unwrap_or(MisfirePolicy::FireOnceNow) {
            MisfirePolicy::FireOnceNow => Misfire::FireOnceNow,
            MisfirePolicy::DoNothing => {
                Misfire::DoNothing(threshold.map_or(due::MISFIRE_THRESHOLD, seconds))
            }
        },
        exclusions: stated.schedule.exclusions.clone(),
        zone: zone.clone(),
    });
    let group = stated.group.as_deref().unwrap_or(&stated.id);
    let is_group_on =
        file.groups.iter().all(|it| it.name != group || it.is_enabled.unwrap_or(true));
    let file_window = scheduler.failure_count_window.unwrap_or(FAILURE_COUNT_WINDOW);
    Plan {
        id: stated.id.clone(),
        zone,
        schedule,
        anchors: Anchors { next, ..Anchors::default() },
        parent,
        parent_succeeded_at: None,
        failures: Vec::new(),
        has_last_failed: false,
        max_retries: stated.max_retries.or(scheduler.default_max_retries).unwrap_or(MAX_RETRIES),
        window: match stated.failure_window_seconds {
            Setting::Set(window) => seconds(window),
            Setting::Keep | Setting::Clear => file_window,
        },
        is_held: held(stated.is_enabled.unwrap_or(true), is_group_on, false),
    }
}

/// The manifests of a tenant as they stand, and now on the database's clock.
///
/// # Errors
/// Those of the store.
pub async fn of_database(
    db: &Db,
    tenant: TenantId,
) -> Result<(Vec<Plan>, Timestamp), OperationError> {
    let mut tx = db.read().await?;
    let now = tx.now().await?;
    let mut stored: Vec<Manifest> = Vec::new();
    loop {
        let after = stored.last().map_or(ManifestId(0), |last| last.id);
        let page = manifests::list(&mut tx, tenant, after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        stored.extend(page);
        if is_last {
            break;
        }
    }
    let mut plans = Vec::with_capacity(stored.len());
    for manifest in &stored {
        let parent = manifest.depends_on_manifest_id;
        let parent =
            stored.iter().find(|it| Some(it.id) == parent).map(|it| it.external_id.clone());
        plans.push(of_manifest(&mut tx, manifest, parent, now).await?);
    }
    Ok((plans, now))
}

async fn of_manifest(
    tx: &mut Tx<'_>,
    manifest: &Manifest,
    parent: Option<String>,
    now: Timestamp,
) -> Result<Plan, OperationError> {
    let window = manifest.failure_window_seconds.map_or(FAILURE_COUNT_WINDOW, seconds);
    let history = due::history(tx, manifest, FAILURE_COUNT_WINDOW).await?;
    let latest = due_store::latest_finished(tx, manifest.id).await?;
    let is_dependent = manifest.schedule_type == ScheduleType::Dependent;
    let failed = usize::try_from(history.failed_count).unwrap_or(0);
    Ok(Plan {
        id: manifest.external_id.clone(),
        zone: Zone::of_name(&manifest.time_zone).unwrap_or(Zone::UTC),
        schedule: due::schedule(manifest),
        anchors: due::anchors(manifest, &history),
        parent: parent.filter(|_| is_dependent),
        parent_succeeded_at: due::next_due_at(manifest, &history, now).filter(|_| is_dependent),
        // When each of them began is not read: they are taken to count for the whole window.
        failures: vec![now; failed],
        has_last_failed: latest.is_some_and(|(_, state)| state == TrainState::Failed),
        max_retries: manifest.max_retries,
        window,
        is_held: held(
            manifest.is_enabled,
            history.is_group_enabled,
            history.has_awaiting_dead_letter,
        ),
    })
}

fn held(is_enabled: bool, is_group_enabled: bool, is_dead: bool) -> Option<&'static str> {
    match (is_enabled, is_group_enabled, is_dead) {
        (false, ..) => Some("it is disabled"),
        (_, false, _) => Some("its group is disabled"),
        (.., true) => Some("a dead letter of it awaits somebody"),
        _ => None,
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
