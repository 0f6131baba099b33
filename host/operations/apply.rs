//! Stating manifests: what a file says is stored, all of it or nothing.

use std::collections::HashMap;
use std::time::Duration;

use crate::chain::declaration::Train;
use crate::chain::schema::Types;
use crate::engine::due;
use crate::model::ids::{GroupId, TenantId};
use crate::model::limits::Limits;
use crate::model::message;
use crate::model::schedule::cycle::in_cycle;
use crate::model::schedule::exclusion::Exclusion;
use crate::model::timestamp::Timestamp;
use crate::operations::error::OperationError;
use crate::operations::manifest_file::{
    ManifestFile, Scheduler, StatedManifest, StatedSchedule, StatedTimer,
};
use crate::operations::table::{Faults, unknown};
use crate::operations::trains;
use crate::store::groups::{self, GroupStatement};
use crate::store::manifests::{self, Manifest, Schedule, Setting, Statement};
use crate::store::runs::{self, RunFilter};
use crate::store::{
    LockKey, MisfirePolicy, ScheduleType, StoreError, Tx, components, due as due_store,
};

/// `max_retries` of a new manifest when neither it nor the scheduler's options say.
const MAX_RETRIES: i32 = 3;

/// How long a failure counts when neither a manifest nor the scheduler's options say.
const FAILURE_COUNT_WINDOW: Duration = Duration::from_hours(24);

/// What stating a manifest came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What is stored now.
    pub manifest: Manifest,
    /// What that is compared with what was stored.
    pub change: Change,
}

/// How what is stored changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// There was none.
    New,
    /// There was another.
    Changed,
    /// It was stored already.
    Unchanged,
}

impl Change {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }
}

/// States what a file says.
///
/// # Errors
/// [`OperationError::Stated`] with every manifest whose train or input does not fit what is deployed.
pub async fn apply(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    file: &ManifestFile,
) -> Result<Vec<Applied>, OperationError> {
    let fitted = fit_all(tx, tenant, file).await?;
    // The manager changes many manifests in one transaction too, in another order: both at once would be a deadlock.
    tx.lock(LockKey::ManifestManager).await?;
    let order = parents_first(tx, tenant, file).await?;
    let mut groups = Groups::load(tx, tenant).await?;
    let mut switched = Vec::new();
    for stated in &file.groups {
        let statement = GroupStatement {
            tenant,
            name: &stated.name,
            max_active_jobs: stated.max_active_jobs,
            priority: stated.priority,
            is_enabled: stated.is_enabled,
        };
        let group = groups.state(tx, &statement).await?;
        if stated.is_enabled.is_some() {
            switched.push(group);
        }
    }
    let window = file.scheduler.failure_count_window.unwrap_or(FAILURE_COUNT_WINDOW);
    let mut applied = Vec::new();
    for index in order {
        let (stated, fitted) = (&file.manifests[index], &fitted[index]);
        let group = groups.of(tx, tenant, stated).await?;
        let before = match manifests::of_external_id(tx, tenant, &stated.id).await {
            Ok(before) => Some(before),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let parent = match &stated.schedule.timer {
            StatedTimer::After { parent, .. } => {
                Some(manifests::of_external_id(tx, tenant, parent).await?.id)
            }
            _ => None,
        };
        let scheduled_at = scheduled_at(tx, stated, before.as_ref()).await?;
        let schedule =
            Schedule { scheduled_at, depends_on: parent, ..schedule(stated, &file.scheduler) };
        let statement = Statement { schedule, ..statement(tenant, stated, fitted, group, file) };
        let id = manifests::upsert(tx, &statement).await?;
        let due = due::settle_stated(tx, tenant, id, window).await?;
        let manifest = Manifest { next_due_at: due, ..manifests::detail(tx, tenant, id).await? };
        let change = match before {
            None => Change::New,
            Some(before) if is_same(&before, &manifest) => Change::Unchanged,
            Some(_) => Change::Changed,
        };
        applied.push((index, Applied { manifest, change }));
    }
    refuse_cycles(tx, tenant).await?;
    for group in switched {
        due::settle_group(tx, tenant, group, window).await?;
    }
    applied.sort_by_key(|(index, _)| *index);
    Ok(applied.into_iter().map(|(_, applied)| applied).collect())
}

/// The manifests of a file by their places in it, parents before those that depend on them.
async fn parents_first(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    file: &ManifestFile,
) -> Result<Vec<usize>, OperationError> {
    let mut faults = Faults::new(&file.path, &file.text);
    let places: HashMap<&str, usize> = file
        .manifests
        .iter()
        .enumerate()
        .map(|(index, stated)| (stated.id.as_str(), index))
        .collect();
    let mut order = Vec::with_capacity(file.manifests.len());
    let mut waiting = Vec::new();
    for (index, stated) in file.manifests.iter().enumerate() {
        let StatedTimer::After { parent, place, .. } = &stated.schedule.timer else {
            order.push(index);
            continue;
        };
        if let Some(parent) = places.get(parent.as_str()) {
            waiting.push((index, *parent));
            continue;
        }
        match manifests::of_external_id(tx, tenant, parent).await {
            Ok(_) => order.push(index),
            Err(StoreError::NotFound { .. }) => {
                let title = format!("manifest '{}': after", stated.id.escape_debug());
                faults.add(place, title, message::parent_missing(parent));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let mut is_placed = vec![false; file.manifests.len()];
    for index in &order {
        is_placed[*index] = true;
    }
    loop {
        let (ready, rest): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, parent)| is_placed[*parent]);
        waiting = rest;
        if ready.is_empty() {
            break;
        }
        for (index, _) in ready {
            is_placed[index] = true;
            order.push(index);
        }
    }
    // Those that wait for a parent that is missing have had their fault above.
    if let Some(text) = faults.into_text() {
        return Err(OperationError::Stated(text));
    }
    let mut faults = Faults::new(&file.path, &file.text);
    for (index, _) in waiting {
        let stated = &file.manifests[index];
        let StatedTimer::After { place, .. } = &stated.schedule.timer else { continue };
        let title = format!("manifest '{}': after", stated.id.escape_debug());
        faults.add(
            place,
            title,
            "waits for itself, through those it is after; leave one `after` out",
        );
    }
    faults.into_text().map_or(Ok(order), |text| Err(OperationError::Stated(text)))
}

/// Refuses groups that wait for each other, of whatever file.
async fn refuse_cycles(tx: &mut Tx<'_>, tenant: TenantId) -> Result<(), OperationError> {
    let dependencies = due_store::group_dependencies(tx, tenant).await?;
    let arrows: Vec<(&str, &str)> =
        dependencies.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let groups = in_cycle(&arrows);
    if groups.is_empty() {
        return Ok(());
    }
    Err(OperationError::Stated(message::group_cycle(&groups)))
}

/// The instant of a one-off. A delay counts from now as long as the one-off has not run.
async fn scheduled_at(
    tx: &mut Tx<'_>,
    stated: &StatedManifest,
    before: Option<&Manifest>,
) -> Result<Option<Timestamp>, OperationError> {
    match stated.schedule.timer {
        StatedTimer::OnceAt(at) => Ok(Some(at)),
        StatedTimer::OnceIn(delay) => {
            if let Some(before) = before.filter(|before| before.scheduled_at.is_some()) {
                let filter = RunFilter { manifest: Some(before.id), ..RunFilter::default() };
                if !runs::list(tx, before.tenant_id, filter, 1).await?.is_empty() {
                    return Ok(before.scheduled_at);
                }
            }
            Ok(Some(tx.now().await?.saturating_add(delay)))
        }
        _ => Ok(None),
    }
}

/// A schedule as it is stored, but for what depends on the store.
fn schedule(stated: &StatedManifest, scheduler: &Scheduler) -> Schedule {
    let StatedSchedule { timer, zone, exclusions, variance_seconds } = &stated.schedule;
    let schedule_type = match timer {
        StatedTimer::OnDemand => ScheduleType::OnDemand,
        StatedTimer::Every(_) => ScheduleType::Interval,
        StatedTimer::Cron(_) => ScheduleType::Cron,
        StatedTimer::OnceAt(_) | StatedTimer::OnceIn(_) => ScheduleType::Once,
        StatedTimer::After { is_dormant: true, .. } => ScheduleType::DormantDependent,
        StatedTimer::After { is_dormant: false, .. } => ScheduleType::Dependent,
    };
    let policy = stated.misfire.or(scheduler.default_misfire_policy);
    Schedule {
        cron_expression: match timer {
            StatedTimer::Cron(expression) => Some(expression.clone()),
            _ => None,
        },
        time_zone: zone.name().to_owned(),
        // At most ten years, which fit.
        interval_seconds: match timer {
            StatedTimer::Every(every) => i32::try_from(every.as_secs()).ok(),
            _ => None,
        },
        misfire_policy: policy.unwrap_or(MisfirePolicy::FireOnceNow),
        misfire_threshold_seconds: stated
            .misfire_threshold_seconds
            .or(scheduler.default_misfire_threshold_seconds),
        exclusions: (!exclusions.is_empty()).then(|| Exclusion::write_all(exclusions)),
        variance_seconds: *variance_seconds,
        ..Schedule::new(schedule_type)
    }
}

/// Whether nothing that can be stated differs.
fn is_same(before: &Manifest, after: &Manifest) -> bool {
    *before == Manifest { next_due_at: before.next_due_at, ..after.clone() }
}

/// An input as its train takes it.
struct Fitted {
    type_name: String,
    input: String,
}

async fn fit_all(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    file: &ManifestFile,
) -> Result<Vec<Fitted>, OperationError> {
    let mut faults = Faults::new(&file.path, &file.text);
    let mut known: HashMap<&str, (Train, Types)> = HashMap::new();
    let mut fitted = Vec::new();
    for stated in &file.manifests {
        let title = format!("manifest '{}'", stated.id.escape_debug());
        if !known.contains_key(stated.train.as_str()) {
            if let Some(found) = types_of(tx, tenant, &stated.train).await? {
                known.insert(&stated.train, found);
            } else {
                let names = trains::names(tx, tenant).await?;
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let problem = unknown("train", &stated.train, &names);
                let problem = format!("{problem}; deploy its component first");
                faults.add(&stated.train_place, format_args!("{title}: train"), problem);
            }
        }
        let Some((train, types)) = known.get(stated.train.as_str()) else { continue };
        match fit(stated, train, types) {
            Ok(value) => fitted.push(value),
            Err(problem) => {
                faults.add(&stated.input_place, format_args!("{title}: input"), problem);
            }
        }
    }
    faults.into_text().map_or(Ok(fitted), |text| Err(OperationError::Stated(text)))
}

/// What an active train declares, and its types.
async fn types_of(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    name: &str,
) -> Result<Option<(Train, Types)>, OperationError> {
    let stored = match components::active_train(tx, tenant, name).await {
        Ok(stored) => stored,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let declared = trains::declared(&stored)?;
    let types = Types::compile(&declared.types).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        OperationError::Stated(format!(
            "train '{name}' was accepted by another trax, and this one finds its types wrong; deploy its component \
             again:\n{}",
            faults.join("\n")
        ))
    })?;
    Ok(Some((declared, types)))
}

fn fit(stated: &StatedManifest, train: &Train, types: &Types) -> Result<Fitted, String> {
    let limit = Limits::default().input_bytes;
    let bytes = stated.input.to_string().len();
    if bytes > limit {
        return Err(format!("has {bytes} bytes; an input may have {limit}"));
    }
    let value = types
        .admit_json(&train.input, &stated.input)
        .map_err(|fault| format!("does not fit train '{}': {fault}", train.name))?;
    Ok(Fitted { type_name: value.type_name.to_string(), input: value.json.to_string() })
}

fn statement<'a>(
    tenant: TenantId,
    stated: &'a StatedManifest,
    fitted: &'a Fitted,
    group: GroupId,
    file: &'a ManifestFile,
) -> Statement<'a> {
    let scheduler = &file.scheduler;
    Statement {
        tenant,
        external_id: &stated.id,
        train: &stated.train,
        input_type: Some(&fitted.type_name),
        input: Some(&fitted.input),
        group,
        schedule: Schedule::new(ScheduleType::OnDemand),
        owner: file.owner.as_deref(),
        is_enabled: stated.is_enabled,
        max_retries: stated.max_retries,
        default_max_retries: scheduler.default_max_retries.unwrap_or(MAX_RETRIES),
        timeout_seconds: stated.timeout_seconds,
        priority: stated.priority,
        failure_window_seconds: stated.failure_window_seconds,
        replay_decisions_on_retry: stated.replay_decisions_on_retry,
        is_dead_letter_on_permanent: false,
    }
}

/// The groups there are, by name.
struct Groups(HashMap<String, GroupId>);

impl Groups {
    async fn load(tx: &mut Tx<'_>, tenant: TenantId) -> Result<Self, StoreError> {
        let groups = groups::list(tx, tenant).await?;
        Ok(Self(groups.into_iter().map(|group| (group.name, group.id)).collect()))
    }

    async fn state(
        &mut self,
        tx: &mut Tx<'_>,
        statement: &GroupStatement<'_>,
    ) -> Result<GroupId, StoreError> {
        let id = groups::upsert(tx, statement).await?;
        self.0.insert(statement.name.to_owned(), id);
        Ok(id)
    }

    /// The group of a manifest. One of its own follows its priority; another one gets it only when it is new.
    async fn of(
        &mut self,
        tx: &mut Tx<'_>,
        tenant: TenantId,
        stated: &StatedManifest,
    ) -> Result<GroupId, StoreError> {
        let name = stated.group.as_deref().unwrap_or(&stated.id);
        let found = self.0.get(name).copied();
        let is_own = name == stated.id;
        match found {
            Some(id) if !is_own || stated.priority.is_none() => Ok(id),
            _ => {
                let statement = GroupStatement {
                    tenant,
                    name,
                    max_active_jobs: Setting::Keep,
                    priority: stated.priority,
                    is_enabled: None,
                };
                self.state(tx, &statement).await
            }
        }
    }
}
