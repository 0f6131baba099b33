//! Changes of single settings of a manifest or a group, until somebody states them again.

use std::time::Duration;

use crate::engine::due;
use crate::model::ids::TenantId;
use crate::model::message;
use crate::model::schedule::cron::Cron;
use crate::model::schedule::zone::Zone;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::store::groups::{self, GroupStatement};
use crate::store::manifests::{self, Manifest, Setting};
use crate::store::{Db, ScheduleType, StoreError};

/// How long a failure counts when a manifest does not say.
const FAILURE_COUNT_WINDOW: Duration = Duration::from_hours(24);

/// The highest priority.
const PRIORITY_MAX: i16 = 31;

/// What changes about a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestPatch {
    /// How many retries before a dead letter.
    pub max_retries: Option<i32>,
    /// From 0 to 31.
    pub priority: Option<i16>,
    /// How long a run may take; `Some(None)`: no limit of its own.
    pub timeout_seconds: Option<Option<i32>>,
    /// The time from a success to the next run; the manifest runs at intervals from now on.
    pub interval_seconds: Option<i32>,
    /// When it runs; the manifest runs by the clock from now on.
    pub cron_expression: Option<String>,
}

/// What changes about a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupPatch {
    /// How many of its runs may be active; `Some(None)`: any number.
    pub max_active_jobs: Option<Option<i32>>,
    /// From 0 to 31.
    pub priority: Option<i16>,
    /// Whether anything of it is dispatched.
    pub is_enabled: Option<bool>,
}

/// Changes a manifest. Everything is looked at before anything is written.
///
/// # Errors
/// Those of the store.
pub async fn manifest(
    db: &Db,
    tenant: TenantId,
    external_id: &str,
    patch: &ManifestPatch,
) -> Result<Outcome, OperationError> {
    db.write(async |tx| {
        let found = match manifests::of_external_id(tx, tenant, external_id).await {
            Ok(found) => manifests::locked(tx, tenant, found.id).await?,
            Err(StoreError::NotFound { .. }) => {
                return Ok(Outcome::missing(message::manifest_not_found(external_id)));
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(why) = refusal(patch, &found) {
            let text = format!("Manifest '{external_id}' was not updated: {why}");
            return Ok(Outcome::refused(text));
        }
        let mut changed = found.clone();
        changed.max_retries = patch.max_retries.unwrap_or(found.max_retries);
        changed.priority = patch.priority.unwrap_or(found.priority);
        changed.timeout_seconds = patch.timeout_seconds.unwrap_or(found.timeout_seconds);
        if let Some(seconds) = patch.interval_seconds {
            changed.schedule_type = ScheduleType::Interval;
            changed.interval_seconds = Some(seconds);
            changed.cron_expression = None;
        }
        if let Some(expression) = &patch.cron_expression {
            changed.schedule_type = ScheduleType::Cron;
            changed.cron_expression = Some(expression.clone());
            changed.interval_seconds = None;
        }
        if changed.interval_seconds != found.interval_seconds
            || changed.cron_expression != found.cron_expression
        {
            // What was computed from another schedule says nothing of this one.
            changed.next_scheduled_run = None;
        }
        manifests::change(tx, &changed).await?;
        due::settle_stated(tx, tenant, found.id, FAILURE_COUNT_WINDOW).await?;
        Ok(Outcome::done("Manifest updated.".to_owned()).with_count(1))
    })
    .await
}

/// Why a patch is not what a manifest can be.
fn refusal(patch: &ManifestPatch, manifest: &Manifest) -> Option<String> {
    let told = |text: &str| Some(text.to_owned());
    if patch.max_retries.is_some_and(|retries| retries < 0) {
        return told("maxRetries may not be negative.");
    }
    if patch.priority.is_some_and(|priority| !(0..=PRIORITY_MAX).contains(&priority)) {
        return told("priority must be between 0 and 31.");
    }
    if patch.timeout_seconds.flatten().is_some_and(|seconds| seconds < 1) {
        return told(
            "timeoutSeconds must be greater than 0; set clearTimeout to remove the timeout.",
        );
    }
    if patch.interval_seconds.is_some_and(|seconds| seconds < 1) {
        return told("intervalSeconds must be greater than 0.");
    }
    if patch.interval_seconds.is_some() && patch.cron_expression.is_some() {
        return told("a manifest runs at intervals or by a cron; give one of them.");
    }
    let expression = patch.cron_expression.as_deref()?;
    let zone = Zone::of_name(&manifest.time_zone).unwrap_or(Zone::UTC);
    Cron::parse(expression, zone).err().map(|fault| format!("'{expression}' {fault}."))
}

/// Changes a group. Settings that are so already are not counted.
///
/// # Errors
/// Those of the store.
pub async fn group(
    db: &Db,
    tenant: TenantId,
    name: &str,
    patch: GroupPatch,
) -> Result<Outcome, OperationError> {
    db.write(async |tx| {
        let all = groups::list(tx, tenant).await?;
        let Some(found) = all.into_iter().find(|group| group.name == name) else {
            return Ok(Outcome::missing(message::group_not_found(name)));
        };
        let mut problems = Vec::new();
        if patch.priority.is_some_and(|priority| !(0..=PRIORITY_MAX).contains(&priority)) {
            problems.push("Priority must be between 0 and 31.");
        }
        if patch.max_active_jobs.flatten().is_some_and(|most| most < 1) {
            problems.push("MaxActiveJobs must be at least 1; clear it to remove the limit.");
        }
        if !problems.is_empty() {
            let text = format!("Manifest group '{name}' not updated: {}", problems.join(" "));
            return Ok(Outcome::refused(text));
        }
        let priority = patch.priority.filter(|priority| *priority != found.priority);
        let is_enabled = patch.is_enabled.filter(|is_enabled| *is_enabled != found.is_enabled);
        let most = patch.max_active_jobs.filter(|most| *most != found.max_active_jobs);
        let changes = [priority.is_some(), is_enabled.is_some(), most.is_some()];
        let count = changes.into_iter().map(i64::from).sum();
        if count == 0 {
            let text = format!("Manifest group '{name}': no changes.");
            return Ok(Outcome::done(text).with_count(0));
        }
        let stated = GroupStatement {
            tenant,
            name,
            max_active_jobs: match most {
                None => Setting::Keep,
                Some(None) => Setting::Clear,
                Some(Some(most)) => Setting::Set(most),
            },
            priority,
            is_enabled,
        };
        groups::upsert(tx, &stated).await?;
        if is_enabled.is_some() {
            due::settle_group(tx, tenant, found.id, FAILURE_COUNT_WINDOW).await?;
        }
        let text = format!("Manifest group '{name}': {count} field(s) updated.");
        Ok(Outcome::done(text).with_count(count))
    })
    .await
}
