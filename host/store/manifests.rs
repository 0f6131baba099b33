//! Manifests: what is stated, and when it is due. What that depends on is in [`due`](super::due).

use super::db::{Sql, Tx, execute, ids, on};
use super::error::StoreError;
use super::types::{MisfirePolicy, ScheduleType, row};
use crate::model::ids::{GroupId, ManifestId, TenantId};
use crate::model::timestamp::Timestamp;

/// A setting that may be stated as absent, which is not the same as not being stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting<T> {
    /// Not stated: what is stored stays.
    Keep,
    /// Stated, and none.
    Clear,
    /// Stated.
    Set(T),
}

impl<T> Setting<T> {
    /// Whether it is stated, and what.
    pub(super) fn into_parts(self) -> (bool, Option<T>) {
        match self {
            Self::Keep => (false, None),
            Self::Clear => (true, None),
            Self::Set(value) => (true, Some(value)),
        }
    }
}

/// What a manifest's schedule is. It always comes from whoever states the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What makes it due.
    pub schedule_type: ScheduleType,
    /// For a cron schedule.
    pub cron_expression: Option<String>,
    /// An IANA name.
    pub time_zone: String,
    /// For an interval.
    pub interval_seconds: Option<i32>,
    /// For one run at an instant.
    pub scheduled_at: Option<Timestamp>,
    /// For a dependent: its parent.
    pub depends_on: Option<ManifestId>,
    /// What happens to a missed occurrence.
    pub misfire_policy: MisfirePolicy,
    /// How late is not missed.
    pub misfire_threshold_seconds: Option<i32>,
    /// When it does not run, as JSON.
    pub exclusions: Option<String>,
    /// How much an occurrence may be moved at random.
    pub variance_seconds: Option<i32>,
}

impl Schedule {
    /// A schedule of a type with everything else left out.
    pub fn new(schedule_type: ScheduleType) -> Self {
        Self {
            schedule_type,
            cron_expression: None,
            time_zone: "UTC".to_owned(),
            interval_seconds: None,
            scheduled_at: None,
            depends_on: None,
            misfire_policy: MisfirePolicy::FireOnceNow,
            misfire_threshold_seconds: None,
            exclusions: None,
            variance_seconds: None,
        }
    }
}

/// A manifest as it is stated. What is `None` or [`Setting::Keep`] stays as it is, or gets its default when new.
#[derive(Debug, Clone)]
pub struct Statement<'a> {
    /// Whose it is.
    pub tenant: TenantId,
    /// The name by which it is stated again.
    pub external_id: &'a str,
    /// The train it runs.
    pub train: &'a str,
    /// The type of its input.
    pub input_type: Option<&'a str>,
    /// The input of its runs, as canonical JSON.
    pub input: Option<&'a str>,
    /// Its group.
    pub group: GroupId,
    /// When it runs.
    pub schedule: Schedule,
    /// Which application states it; only that one may remove it for no longer being stated.
    pub owner: Option<&'a str>,
    /// Whether it is scheduled. New: yes.
    pub is_enabled: Option<bool>,
    /// How many retries before a dead letter.
    pub max_retries: Option<i32>,
    /// `max_retries` of a new manifest that does not state it.
    pub default_max_retries: i32,
    /// How long a run may take.
    pub timeout_seconds: Setting<i32>,
    /// From 0 to 31. New: 0.
    pub priority: Option<i16>,
    /// How long a failure counts.
    pub failure_window_seconds: Setting<i32>,
    /// Whether a retry replays the answers of the run that failed. New: yes.
    pub replay_decisions_on_retry: Option<bool>,
    /// Whether a permanent failure becomes a dead letter at once.
    pub is_dead_letter_on_permanent: bool,
}

/// A stored manifest. Columns keep their names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the columns are described where they are stated and in the migration"
)]
pub struct Manifest {
    pub id: ManifestId,
    pub tenant_id: TenantId,
    pub external_id: String,
    pub name: String,
    pub property_type: Option<String>,
    pub properties: Option<String>,
    pub is_enabled: bool,
    pub schedule_type: ScheduleType,
    pub cron_expression: Option<String>,
    pub time_zone: String,
    pub interval_seconds: Option<i32>,
    pub max_retries: i32,
    pub timeout_seconds: Option<i32>,
    pub last_successful_run: Option<Timestamp>,
    pub depends_on_manifest_id: Option<ManifestId>,
    pub priority: i16,
    pub manifest_group_id: GroupId,
    pub misfire_policy: MisfirePolicy,
    pub misfire_threshold_seconds: Option<i32>,
    pub scheduled_at: Option<Timestamp>,
    pub exclusions: Option<String>,
    pub variance_seconds: Option<i32>,
    pub next_scheduled_run: Option<Timestamp>,
    pub failure_window_seconds: Option<i32>,
    pub owner: Option<String>,
    pub replay_decisions_on_retry: bool,
    pub dead_letter_on: Option<String>,
    pub next_due_at: Option<Timestamp>,
    pub last_successful_occurrence: Option<Timestamp>,
}

row!(Manifest {
    id,
    tenant_id,
    external_id,
    name,
    property_type,
    properties,
    is_enabled,
    schedule_type,
    cron_expression,
    time_zone,
    interval_seconds,
    max_retries,
    timeout_seconds,
    last_successful_run,
    depends_on_manifest_id,
    priority,
    manifest_group_id,
    misfire_policy,
    misfire_threshold_seconds,
    scheduled_at,
    exclusions,
    variance_seconds,
    next_scheduled_run,
    failure_window_seconds,
    owner,
    replay_decisions_on_retry,
    dead_letter_on,
    next_due_at,
    last_successful_occurrence,
});

/// Named one by one: a newer trax may add columns while this one runs.
macro_rules! columns {
    () => {
        "id, tenant_id, external_id, name, property_type, properties, is_enabled, \
         schedule_type, cron_expression, time_zone, interval_seconds, max_retries, \
         timeout_seconds, last_successful_run, depends_on_manifest_id, priority, \
         manifest_group_id, misfire_policy, misfire_threshold_seconds, scheduled_at, \
         exclusions, variance_seconds, next_scheduled_run, failure_window_seconds, owner, \
         replay_decisions_on_retry, dead_letter_on, next_due_at, last_successful_occurrence"
    };
}

/// Stores a manifest under its external id, and gives its id. When it is due is for the caller to say.
pub async fn upsert(tx: &mut Tx<'_>, stated: &Statement<'_>) -> Result<ManifestId, StoreError> {
    let (is_timeout_stated, timeout_seconds) = stated.timeout_seconds.into_parts();
    let (is_window_stated, failure_window_seconds) = stated.failure_window_seconds.into_parts();
    let dead_letter_on = stated.is_dead_letter_on_permanent.then_some("permanent");
    let schedule = &stated.schedule;
    let sql = "INSERT INTO manifest
            (tenant_id, external_id, name, property_type, properties, manifest_group_id,
             schedule_type, cron_expression, time_zone, interval_seconds, scheduled_at,
             depends_on_manifest_id, misfire_policy, misfire_threshold_seconds, exclusions,
             variance_seconds, owner, dead_letter_on, is_enabled, max_retries,
             timeout_seconds, priority, failure_window_seconds, replay_decisions_on_retry)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
            COALESCE($19, TRUE), COALESCE($20, $21), $22, COALESCE($23, 0), $24, COALESCE($25, TRUE))
        ON CONFLICT (tenant_id, external_id) DO UPDATE SET
            name = excluded.name, property_type = excluded.property_type,
            properties = excluded.properties,
            manifest_group_id = excluded.manifest_group_id, schedule_type = excluded.schedule_type,
            cron_expression = excluded.cron_expression, time_zone = excluded.time_zone,
            interval_seconds = excluded.interval_seconds, scheduled_at = excluded.scheduled_at,
            depends_on_manifest_id = excluded.depends_on_manifest_id,
            misfire_policy = excluded.misfire_policy,
            misfire_threshold_seconds = excluded.misfire_threshold_seconds,
            exclusions = excluded.exclusions,
            variance_seconds = excluded.variance_seconds, owner = excluded.owner,
            dead_letter_on = excluded.dead_letter_on,
            -- What was computed for another schedule says nothing about this one.
            next_scheduled_run = CASE WHEN manifest.schedule_type = excluded.schedule_type
                AND manifest.cron_expression IS NOT DISTINCT FROM excluded.cron_expression
                AND manifest.time_zone = excluded.time_zone
                AND manifest.interval_seconds IS NOT DISTINCT FROM excluded.interval_seconds
                AND manifest.variance_seconds IS NOT DISTINCT FROM excluded.variance_seconds
                THEN manifest.next_scheduled_run END,
            is_enabled = COALESCE($19, manifest.is_enabled),
            max_retries = COALESCE($20, manifest.max_retries),
            timeout_seconds = CASE WHEN $26 THEN $22 ELSE manifest.timeout_seconds END,
            priority = COALESCE($23, manifest.priority),
            failure_window_seconds = CASE WHEN $27 THEN $24
            ELSE manifest.failure_window_seconds END,
            replay_decisions_on_retry = COALESCE($25, manifest.replay_decisions_on_retry)
        RETURNING id";
    on!(tx, |c| sqlx::query_scalar(sql)
        .bind(stated.tenant)
        .bind(stated.external_id)
        .bind(stated.train)
        .bind(stated.input_type)
        .bind(stated.input)
        .bind(stated.group)
        .bind(schedule.schedule_type)
        .bind(&schedule.cron_expression)
        .bind(&schedule.time_zone)
        .bind(schedule.interval_seconds)
        .bind(schedule.scheduled_at)
        .bind(schedule.depends_on)
        .bind(schedule.misfire_policy)
        .bind(schedule.misfire_threshold_seconds)
        .bind(&schedule.exclusions)
        .bind(schedule.variance_seconds)
        .bind(stated.owner)
        .bind(dead_letter_on)
        .bind(stated.is_enabled)
        .bind(stated.max_retries)
        .bind(stated.default_max_retries)
        .bind(timeout_seconds)
        .bind(stated.priority)
        .bind(failure_window_seconds)
        .bind(stated.replay_decisions_on_retry)
        .bind(is_timeout_stated)
        .bind(is_window_stated)
        .fetch_one(c))
}

/// The manifest that a filter names, if it names one.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none of that name.
pub async fn named_by(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    external_id: Option<&str>,
) -> Result<Option<ManifestId>, StoreError> {
    match external_id {
        Some(id) => Ok(Some(of_external_id(tx, tenant, id).await?.id)),
        None => Ok(None),
    }
}

/// The manifest stated under that external id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn of_external_id(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    external_id: &str,
) -> Result<Manifest, StoreError> {
    let sql =
        concat!("SELECT ", columns!(), " FROM manifest WHERE tenant_id = $1 AND external_id = $2");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(external_id).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "manifest", id: format!("'{external_id}'") })
}

/// The manifests of a group, by id.
pub async fn of_group(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    group: GroupId,
) -> Result<Vec<Manifest>, StoreError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM manifest WHERE tenant_id = $1 AND manifest_group_id = $2 ORDER BY id"
    );
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(group).fetch_all(c))
}

/// The manifest with that id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn detail(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
) -> Result<Manifest, StoreError> {
    let sql = concat!("SELECT ", columns!(), " FROM manifest WHERE tenant_id = $1 AND id = $2");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(manifest).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "manifest", id: manifest.to_string() })
}

/// Postgres holds the row until the transaction ends, without keeping runs and entries from referring to it; SQLite has
/// one writer.
const LOCKED: Sql = Sql {
    sqlite: concat!("SELECT ", columns!(), " FROM manifest WHERE tenant_id = $1 AND id = $2"),
    postgres: concat!(
        "SELECT ",
        columns!(),
        " FROM manifest WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE"
    ),
};

/// The same, and nobody else who asks in this way gets it before this transaction ends. Whoever says when a manifest is
/// due asks so, before it reads what that depends on: of two who do, the later one sees what the earlier one did.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn locked(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
) -> Result<Manifest, StoreError> {
    let sql = tx.pick(LOCKED);
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(manifest).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "manifest", id: manifest.to_string() })
}

/// Keeps others from saying when a manifest is due until this transaction ends. Whoever writes an entry or a run of it
/// does so first, in the order in which those do who look whether there is one.
pub(super) async fn hold(tx: &mut Tx<'_>, manifest: ManifestId) -> Result<(), StoreError> {
    if tx.is_postgres() {
        let sql = "SELECT id FROM manifest WHERE id = $1 FOR NO KEY UPDATE";
        execute!(tx, sqlx::query(sql).bind(manifest))?;
    }
    Ok(())
}

/// The same for many, in one order everywhere, so that two who do so never wait for each other.
pub(crate) async fn hold_all(tx: &mut Tx<'_>, manifests: &[ManifestId]) -> Result<(), StoreError> {
    if tx.is_postgres() {
        let sql = "SELECT id FROM manifest WHERE id IN
            (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($1 AS JSON)))
            ORDER BY id FOR NO KEY UPDATE";
        execute!(tx, sqlx::query(sql).bind(ids(manifests.iter().map(|id| id.0))))?;
    }
    Ok(())
}

/// A tenant's manifests whose ids come after `after`, by id.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    after: ManifestId,
    limit: u32,
) -> Result<Vec<Manifest>, StoreError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM manifest WHERE tenant_id = $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(after).bind(i64::from(limit)).fetch_all(c))
}

/// Says when a manifest is next due; `None` while something blocks it.
pub async fn set_due(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
    next_due_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    let sql = "UPDATE manifest SET next_due_at = $2 WHERE id = $1";
    execute!(tx, sqlx::query(sql).bind(manifest).bind(next_due_at))?;
    Ok(())
}

/// Stores the next occurrence of a schedule.
pub async fn set_next_scheduled_run(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
    next: Option<Timestamp>,
) -> Result<(), StoreError> {
    let sql = "UPDATE manifest SET next_scheduled_run = $2 WHERE id = $1";
    execute!(tx, sqlx::query(sql).bind(manifest).bind(next))?;
    Ok(())
}

/// Records that a run of the manifest succeeded: the anchors move to now and to what the run ran for, and a one-off is
/// disabled. Gives the manifest as it is then.
pub async fn record_success(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
    occurrence: Option<Timestamp>,
    next_scheduled_run: Option<Timestamp>,
) -> Result<Manifest, StoreError> {
    let now = tx.now().await?;
    let sql = concat!(
        "UPDATE manifest SET last_successful_run = $2, last_successful_occurrence = $3,
            next_scheduled_run = $4, is_enabled = is_enabled AND schedule_type <> 'once'
        WHERE id = $1 RETURNING ",
        columns!()
    );
    on!(tx, |c| sqlx::query_as(sql)
        .bind(manifest)
        .bind(now)
        .bind(occurrence)
        .bind(next_scheduled_run)
        .fetch_one(c))
}

/// Enables or disables a manifest. Disabled, it is not due; enabled, the caller says when it is.
pub async fn set_enabled(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    is_enabled: bool,
) -> Result<(), StoreError> {
    let sql = "UPDATE manifest SET is_enabled = $3, next_due_at = CASE WHEN $3 THEN next_due_at END
        WHERE tenant_id = $1 AND id = $2";
    let rows = execute!(tx, sqlx::query(sql).bind(tenant).bind(manifest).bind(is_enabled))?;
    if rows == 0 {
        return Err(StoreError::NotFound { what: "manifest", id: manifest.to_string() });
    }
    Ok(())
}

/// Writes what operators change about a manifest that this transaction has locked: its limits, and when it runs.
pub async fn change(tx: &mut Tx<'_>, manifest: &Manifest) -> Result<(), StoreError> {
    let sql = "UPDATE manifest SET max_retries = $2, priority = $3, timeout_seconds = $4,
            schedule_type = $5, interval_seconds = $6, cron_expression = $7, next_scheduled_run = $8
        WHERE id = $1";
    execute!(
        tx,
        sqlx::query(sql)
            .bind(manifest.id)
            .bind(manifest.max_retries)
            .bind(manifest.priority)
            .bind(manifest.timeout_seconds)
            .bind(manifest.schedule_type)
            .bind(manifest.interval_seconds)
            .bind(&manifest.cron_expression)
            .bind(manifest.next_scheduled_run)
    )?;
    Ok(())
}

/// Sets whether retries replay, and takes the link from a queued retry that no longer may. Gives how many links that
/// were.
pub async fn set_replay_decisions_on_retry(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    replays: bool,
) -> Result<u64, StoreError> {
    let sql = "UPDATE manifest SET replay_decisions_on_retry = $3 WHERE tenant_id = $1 AND id = $2";
    let rows = execute!(tx, sqlx::query(sql).bind(tenant).bind(manifest).bind(replays))?;
    if rows == 0 {
        return Err(StoreError::NotFound { what: "manifest", id: manifest.to_string() });
    }
    if replays {
        return Ok(0);
    }
    let sql = "UPDATE work_queue SET replay_decisions_of = NULL
        WHERE manifest_id = $1 AND status = 'queued' AND replay_decisions_of IS NOT NULL";
    execute!(tx, sqlx::query(sql).bind(manifest))
}
