//! What each run did, node by node, for people who look at it.

use super::db::{Tx, execute, fenced, held, on};
use super::error::StoreError;
use super::types::{JunctionRunKind, JunctionRunState, row};
use crate::model::failure::FailureClass;
use crate::model::ids::{Claim, RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// A step that begins.
#[derive(Debug, Clone)]
pub struct NewStep<'a> {
    /// Counts from 0 in a run.
    pub position: i32,
    /// What it is.
    pub kind: JunctionRunKind,
    /// The junction's or track's name.
    pub name: &'a str,
    /// The node.
    pub node_id: Option<&'a str>,
    /// The branch it is in, if any.
    pub branch_path: Option<&'a str>,
    /// The question it asks.
    pub question_key: Option<&'a str>,
}

/// How a step ended.
#[derive(Debug, Clone)]
pub struct StepEnd<'a> {
    /// Completed, failed or cancelled.
    pub state: JunctionRunState,
    /// Of a failed one: the class and the name of the failure.
    pub failure: Option<(FailureClass, &'a str)>,
    /// What was answered.
    pub answer: Option<&'a str>,
    /// From 0 to 1.
    pub confidence: Option<f64>,
    /// Whether the answer is an earlier run's.
    pub is_replayed: bool,
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

/// Records that a step begins. A run that continues begins the one it stood at again.
pub async fn begin(tx: &mut Tx<'_>, claim: Claim, new: &NewStep<'_>) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = tx.pick(fenced!(
        "INSERT INTO junction_run (metadata_id, position, kind, name, state, started_at, node_id,
            branch_path,
            question_key)
        SELECT id, $3, $4, $5, 'in_progress', $6, $7, $8, $9",
        "ON CONFLICT (metadata_id, position) DO UPDATE
            SET kind = excluded.kind, name = excluded.name,
            state = excluded.state, started_at = excluded.started_at, ended_at = NULL,
            node_id = excluded.node_id,
            branch_path = excluded.branch_path, question_key = excluded.question_key,
            failure_class = NULL,
            failure_exception = NULL, answer = NULL, confidence = NULL, replayed = FALSE"
    ));
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(claim.run)
            .bind(claim.token)
            .bind(new.position)
            .bind(new.kind)
            .bind(new.name)
            .bind(now)
            .bind(new.node_id)
            .bind(new.branch_path)
            .bind(new.question_key)
    )?;
    held(claim, rows)
}

/// Records how a step ended. It is for people only, so it may come after the run itself has ended.
pub async fn end(
    tx: &mut Tx<'_>,
    run: RunId,
    position: i32,
    end: &StepEnd<'_>,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE junction_run SET state = $3, ended_at = $4, failure_class = $5,
        failure_exception = $6,
            answer = $7, confidence = $8, replayed = $9
        WHERE metadata_id = $1 AND position = $2 AND state = 'in_progress'";
    execute!(
        tx,
        sqlx::query(sql)
            .bind(run)
            .bind(position)
            .bind(end.state)
            .bind(now)
            .bind(end.failure.map(|(class, _)| class))
            .bind(end.failure.map(|(_, name)| super::runs::storable(name)))
            .bind(end.answer)
            .bind(end.confidence)
            .bind(end.is_replayed)
    )?;
    Ok(())
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
