//! Runs as operators see them: a run, its wide values, and lists.

use crate::model::failure::FailureClass;
use crate::model::ids::{ManifestId, RunId, TenantId, VersionId};
use crate::model::timestamp::Timestamp;
use crate::store::db::{Tx, on};
use crate::store::error::StoreError;
use crate::store::types::{TrainState, row};

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the columns are described where runs are made and in the migration"
)]
pub struct Run {
    pub id: RunId,
    pub parent_id: Option<RunId>,
    pub external_id: String,
    pub name: String,
    pub train_state: TrainState,
    pub failure_class: FailureClass,
    pub failure_junction: Option<String>,
    pub failure_exception: Option<String>,
    pub failure_reason: Option<String>,
    pub start_time: Timestamp,
    pub end_time: Option<Timestamp>,
    pub manifest_id: Option<ManifestId>,
    pub scheduled_time: Option<Timestamp>,
    pub occurrence_id: String,
    pub component_version_id: Option<VersionId>,
    pub subject_key: Option<String>,
    pub cancel_requested: bool,
    pub currently_running_junction: Option<String>,
    pub host_name: Option<String>,
    pub parked_at: Option<Timestamp>,
    pub decisions_recorded: bool,
    pub replay_decisions_of: Option<RunId>,
    pub replay_abandoned: bool,
    pub resume_from: Option<RunId>,
    pub resume_at: Option<String>,
    pub invoking_machine: Option<String>,
}

row!(Run {
    id,
    parent_id,
    external_id,
    name,
    train_state,
    failure_class,
    failure_junction,
    failure_exception,
    failure_reason,
    start_time,
    end_time,
    manifest_id,
    scheduled_time,
    occurrence_id,
    component_version_id,
    subject_key,
    cancel_requested,
    currently_running_junction,
    host_name,
    parked_at,
    decisions_recorded,
    replay_decisions_of,
    replay_abandoned,
    resume_from,
    resume_at,
    invoking_machine,
});

macro_rules! columns {
    () => {
        "id, parent_id, external_id, name, train_state, failure_class, failure_junction, \
         failure_exception, failure_reason, start_time, end_time, manifest_id, scheduled_time, \
         occurrence_id, component_version_id, subject_key, cancel_requested, \
         currently_running_junction, host_name, parked_at, decisions_recorded, \
         replay_decisions_of, replay_abandoned, resume_from, resume_at, invoking_machine"
    };
}

/// The run with that id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn detail(tx: &mut Tx<'_>, tenant: TenantId, run: RunId) -> Result<Run, StoreError> {
    let sql = concat!("SELECT ", columns!(), " FROM metadata WHERE id = $2 AND tenant_id = $1");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(run).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "run", id: run.to_string() })
}

/// The wide values of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Canonical JSON.
    pub input: Option<String>,
    /// The input's type.
    pub input_type_name: Option<String>,
    /// Canonical JSON, of a completed run.
    pub output: Option<String>,
    /// Of a failed run.
    pub stack_trace: Option<String>,
}

row!(Payload { input, input_type_name, output, stack_trace });

/// The wide values of a run: its input is the queue entry's where it came out of one.
pub async fn payload(tx: &mut Tx<'_>, tenant: TenantId, run: RunId) -> Result<Payload, StoreError> {
    let sql =
        "SELECT COALESCE(p.input, w.input) AS input, COALESCE(p.input_type_name, w.input_type_name)
            AS input_type_name, p.output, p.stack_trace
        FROM metadata r LEFT JOIN metadata_payload p ON p.metadata_id = r.id
        LEFT JOIN work_queue w ON w.metadata_id = r.id
        WHERE r.id = $2 AND r.tenant_id = $1";
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(run).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "run", id: run.to_string() })
}

/// Which runs a list shows. What is `None` does not matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    /// In this state.
    pub state: Option<TrainState>,
    /// Of this train.
    pub train: Option<&'a str>,
    /// Of this manifest.
    pub manifest: Option<ManifestId>,
    /// With ids below this one: the last of the page before.
    pub before: Option<RunId>,
}

/// A tenant's runs, newest first.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    filter: RunFilter<'_>,
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM metadata WHERE tenant_id = $1 AND id < $2
            AND (CAST($3 AS TEXT) IS NULL OR train_state = $3) AND (CAST($4 AS TEXT) IS NULL
            OR name = $4)
            AND (CAST($5 AS BIGINT) IS NULL OR manifest_id = $5)
        ORDER BY id DESC LIMIT $6"
    );
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(filter.before.unwrap_or(RunId(i64::MAX)))
        .bind(filter.state)
        .bind(filter.train)
        .bind(filter.manifest)
        .bind(i64::from(limit))
        .fetch_all(c))
}
