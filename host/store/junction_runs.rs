//! What each run did, node by node, for people who look at it.

use std::time::Duration;

use super::db::{Sql, Tx, execute, on};
use super::error::StoreError;
use super::runs::storable;
use super::types::{JunctionRunKind, JunctionRunState, row};
use crate::model::failure::FailureClass;
use crate::model::ids::{Claim, RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// A step as it stands, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRow {
    /// Counts from 0 in a run.
    pub position: i32,
    /// What it is.
    pub kind: JunctionRunKind,
    /// The junction's or track's name.
    pub name: String,
    /// The node.
    pub node_id: Option<String>,
    /// The branch it is in, if any.
    pub branch_path: Option<String>,
    /// The question it asks.
    pub question_key: Option<String>,
    /// Whether it goes on, or how it ended.
    pub state: JunctionRunState,
    /// How long ago it began.
    pub started_before: Duration,
    /// How long ago it ended; `None`: it goes on.
    pub ended_before: Option<Duration>,
    /// Of a failed one: the class and the name of the failure.
    pub failure: Option<(FailureClass, String)>,
}

/// A recorded step.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the columns are described where steps are recorded")]
pub struct Step {
    pub position: i32,
    pub kind: JunctionRunKind,
    pub name: String,
    pub state: JunctionRunState,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub failure_class: Option<FailureClass>,
    pub failure_exception: Option<String>,
    pub question_key: Option<String>,
    pub answer: Option<String>,
    pub confidence: Option<f64>,
    pub replayed: bool,
    pub node_id: Option<String>,
    pub branch_path: Option<String>,
}

row!(Step {
    position,
    kind,
    name,
    state,
    started_at,
    ended_at,
    failure_class,
    failure_exception,
    question_key,
    answer,
    confidence,
    replayed,
    node_id,
    branch_path,
});

/// A statement that writes steps.
macro_rules! writing {
    ($instants:literal, $rows:literal, $lock:literal) => {
        concat!(
            "INSERT INTO junction_run (metadata_id, position, kind, name, state, node_id,
                branch_path, question_key, failure_class, failure_exception,
                started_at, ended_at)
            SELECT r.id, CAST(s.value ->> 'position' AS INTEGER), s.value ->> 'kind',
                s.value ->> 'name', s.value ->> 'state', s.value ->> 'node',
                s.value ->> 'branch', s.value ->> 'question', s.value ->> 'class',
                s.value ->> 'exception', ",
            $instants,
            " FROM ",
            $rows,
            " AS s JOIN metadata r ON r.id = CAST(s.value ->> 'run' AS BIGINT)
            WHERE r.claim_token = CAST(s.value ->> 'token' AS BIGINT)
                AND r.train_state = 'in_progress' AND r.parked_at IS NULL",
            $lock,
            " ON CONFLICT (metadata_id, position) DO UPDATE SET kind = excluded.kind,
                name = excluded.name, state = excluded.state, started_at = excluded.started_at,
                ended_at = excluded.ended_at, node_id = excluded.node_id,
                branch_path = excluded.branch_path, question_key = excluded.question_key,
                failure_class = excluded.failure_class,
                failure_exception = excluded.failure_exception"
        )
    };
}
/// The steps come as one JSON text, so that many are one round trip; each database has its own way to read it, and to
/// count time. Postgres holds the run's row until the transaction ends, so that nobody claims the run in between.
const WRITE: Sql = Sql {
    sqlite: writing!(
        "$1 - CAST(s.value ->> 'started' AS INTEGER), $1 - CAST(s.value ->> 'ended' AS INTEGER)",
        "json_each($2)",
        ""
    ),
    postgres: writing!(
        "$1 - CAST(s.value ->> 'started' AS BIGINT) * INTERVAL '1 microsecond',
            $1 - CAST(s.value ->> 'ended' AS BIGINT) * INTERVAL '1 microsecond'",
        "json_array_elements(CAST($2 AS JSON))",
        " FOR SHARE OF r"
    ),
};

/// Writes how steps of a run stand, by their positions. A run that continues begins the one it stood at again.
pub async fn write(tx: &mut Tx<'_>, claim: Claim, steps: &[StepRow]) -> Result<(), StoreError> {
    let steps: Vec<_> = steps.iter().map(|step| (claim, step)).collect();
    if write_all(tx, &steps).await? { Ok(()) } else { Err(StoreError::LostClaim(claim.run)) }
}

/// The same for several runs. False: a claim was lost, and what is written has to be undone.
pub async fn write_all(tx: &mut Tx<'_>, steps: &[(Claim, &StepRow)]) -> Result<bool, StoreError> {
    if steps.is_empty() {
        return Ok(true);
    }
    let now = tx.now().await?;
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    let row = |(claim, step): &(Claim, &StepRow)| {
        serde_json::json!({
            "run": claim.run.0, "token": claim.token.0,
            "position": step.position, "kind": step.kind.as_str(), "name": storable(&step.name),
            "state": step.state.as_str(), "node": step.node_id, "branch": step.branch_path,
            "question": step.question_key,
            "class": step.failure.as_ref().map(|(class, _)| class.as_str()),
            "exception": step.failure.as_ref().map(|(_, name)| storable(name)),
            "started": micros(step.started_before), "ended": step.ended_before.map(micros),
        })
    };
    let rows = serde_json::Value::Array(steps.iter().map(row).collect()).to_string();
    let sql = tx.pick(WRITE);
    let written = execute!(tx, sqlx::query(sql).bind(now).bind(&rows))?;
    Ok(usize::try_from(written) == Ok(steps.len()))
}

/// The steps of a run, in order.
pub async fn of_run(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
) -> Result<Vec<Step>, StoreError> {
    let sql = "SELECT j.position, j.kind, j.name, j.state, j.started_at, j.ended_at,
        j.failure_class,
            j.failure_exception, j.question_key, j.answer, j.confidence, j.replayed, j.node_id,
            j.branch_path
        FROM junction_run j JOIN metadata r ON r.id = j.metadata_id
        WHERE j.metadata_id = $2 AND r.tenant_id = $1 ORDER BY j.position";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(run).fetch_all(c))
}
