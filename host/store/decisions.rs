//! Recorded decisions: durable before the run acts on them.

use super::db::{Tx, execute, fenced, on};
use super::error::StoreError;
use super::types::row;
use crate::decide::replay::{Link, RUNS_MAX};
use crate::model::ids::{Claim, DecisionId, RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// A decision to record.
#[derive(Debug, Clone)]
pub struct NewDecision<'a> {
    /// Empty outside a parallel branch.
    pub branch_path: &'a str,
    /// The question.
    pub question_key: &'a str,
    /// How often the run has asked it before, in this branch.
    pub occurrence: i32,
    /// The node whose junction asked; empty when the chain did.
    pub asked_by: &'a str,
    /// Of the asking.
    pub fingerprint: &'a str,
    /// `choice`, `score` or `yes_no`.
    pub kind: &'a str,
    /// Instructions and criteria, as JSON.
    pub question: &'a str,
    /// The answer acted on, or what was given and refused.
    pub answer: Option<&'a str>,
    /// Why it was not acted on.
    pub refused: Option<&'a str>,
    /// The model asked for.
    pub model: Option<&'a str>,
    /// Who answered; `None` when replayed.
    pub decider: Option<&'a str>,
    /// Whether the answer is an earlier run's.
    pub is_replayed: bool,
    /// Of the state it was asked about.
    pub state_hash: Option<&'a str>,
}

/// A recorded decision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described where decisions are recorded")]
pub struct Decision {
    pub id: DecisionId,
    pub branch_path: String,
    pub question_key: String,
    pub occurrence: i32,
    pub asked_by: String,
    pub fingerprint: String,
    pub kind: String,
    pub question: String,
    pub answer: Option<String>,
    pub refused: Option<String>,
    pub model: Option<String>,
    pub decider: Option<String>,
    pub replayed: bool,
    pub shadows: Option<String>,
    pub routes: Option<String>,
    pub state_hash: Option<String>,
    pub decided_at: Timestamp,
}

row!(Decision {
    id,
    branch_path,
    question_key,
    occurrence,
    asked_by,
    fingerprint,
    kind,
    question,
    answer,
    refused,
    model,
    decider,
    replayed,
    shadows,
    routes,
    state_hash,
    decided_at,
});

/// Records a decision of a run. A run that continues may give the same decision again: then nothing changes, and the
/// first one's id is given.
pub async fn record(
    tx: &mut Tx<'_>,
    claim: Claim,
    new: &NewDecision<'_>,
) -> Result<DecisionId, StoreError> {
    let now = tx.now().await?;
    let sql = tx.pick(fenced!(
        "INSERT INTO decision (metadata_id, branch_path, question_key, occurrence, asked_by,
            fingerprint, kind, question,
            answer, refused, model, decider, replayed, state_hash, decided_at)
        SELECT id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16",
        // A column that is written to itself makes the present row's id known.
        "ON CONFLICT (metadata_id, branch_path, question_key, occurrence, asked_by)
            DO UPDATE SET metadata_id = decision.metadata_id RETURNING id"
    ));
    let id = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(claim.run)
        .bind(claim.token)
        .bind(new.branch_path)
        .bind(new.question_key)
        .bind(new.occurrence)
        .bind(new.asked_by)
        .bind(new.fingerprint)
        .bind(new.kind)
        .bind(new.question)
        .bind(new.answer)
        .bind(new.refused)
        .bind(new.model)
        .bind(new.decider)
        .bind(new.is_replayed)
        .bind(new.state_hash)
        .bind(now)
        .fetch_optional(c))?;
    id.ok_or(StoreError::LostClaim(claim.run))
}

/// Replaces what is recorded of the tracks taken after a decision: a JSON list, in order.
pub async fn set_routes(
    tx: &mut Tx<'_>,
    claim: Claim,
    decision: DecisionId,
    routes: &str,
) -> Result<(), StoreError> {
    guard(tx, claim).await?;
    let sql = "UPDATE decision SET routes = $3 WHERE id = $1 AND metadata_id = $2";
    execute!(tx, sqlx::query(sql).bind(decision).bind(claim.run).bind(routes))?;
    Ok(())
}

/// Which asking of a run.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Empty outside a parallel branch.
    pub branch_path: &'a str,
    /// The question.
    pub question_key: &'a str,
    /// How often the run has asked it before, in this branch.
    pub occurrence: i32,
    /// The node whose junction asked; empty when the chain did.
    pub asked_by: &'a str,
}

/// Replaces what is recorded of the shadows of a decision: a JSON list.
pub async fn set_shadows(
    tx: &mut Tx<'_>,
    claim: Claim,
    asking: &Asking<'_>,
    shadows: &str,
) -> Result<(), StoreError> {
    guard(tx, claim).await?;
    let sql = "UPDATE decision SET shadows = $6 WHERE metadata_id = $1 AND branch_path = $2
        AND question_key = $3 AND occurrence = $4 AND asked_by = $5";
    execute!(
        tx,
        sqlx::query(sql)
            .bind(claim.run)
            .bind(asking.branch_path)
            .bind(asking.question_key)
            .bind(asking.occurrence)
            .bind(asking.asked_by)
            .bind(shadows)
    )?;
    Ok(())
}

/// Holds a claim until the transaction ends.
///
/// # Errors
/// [`StoreError::LostClaim`] when it is no longer held.
async fn guard(tx: &mut Tx<'_>, claim: Claim) -> Result<(), StoreError> {
    let sql = tx.pick(fenced!("SELECT id"));
    let held: Option<RunId> =
        on!(tx, |c| sqlx::query_scalar(sql).bind(claim.run).bind(claim.token).fetch_optional(c))?;
    held.map(|_| ()).ok_or(StoreError::LostClaim(claim.run))
}

/// A run's decisions with ids after `after`, in the order they were made.
pub async fn of_run(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
    after: DecisionId,
    limit: u32,
) -> Result<Vec<Decision>, StoreError> {
    let sql = "SELECT d.id, d.branch_path, d.question_key, d.occurrence, d.asked_by,
        d.fingerprint, d.kind, d.question,
            d.answer, d.refused, d.model, d.decider, d.replayed, d.shadows, d.routes,
            d.state_hash, d.decided_at
        FROM decision d JOIN metadata r ON r.id = d.metadata_id
        WHERE d.metadata_id = $2 AND r.tenant_id = $1 AND d.id > $3 ORDER BY d.id LIMIT $4";
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(run)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// A run of a line of replays.
struct LineRow {
    run: RunId,
    train: String,
    replay_decisions_of: Option<RunId>,
    replay_abandoned: bool,
    decisions_recorded: bool,
}

row!(LineRow { run, train, replay_decisions_of, replay_abandoned, decisions_recorded });

/// A run and the runs behind it that replay each other, as far as a replay goes back. What is not there is missing;
/// another tenant's run is not there.
pub async fn line(tx: &mut Tx<'_>, tenant: TenantId, run: RunId) -> Result<Vec<Link>, StoreError> {
    let sql = "WITH RECURSIVE line (run, train, replay_decisions_of, replay_abandoned,
            decisions_recorded, hops) AS (
        SELECT r.id, r.name, r.replay_decisions_of, r.replay_abandoned, r.decisions_recorded, 0
            FROM metadata r WHERE r.id = $2 AND r.tenant_id = $1
        UNION ALL
        SELECT r.id, r.name, r.replay_decisions_of, r.replay_abandoned, r.decisions_recorded,
            l.hops + 1 FROM line l JOIN metadata r ON r.id = l.replay_decisions_of
            WHERE r.tenant_id = $1 AND NOT l.replay_abandoned AND l.hops < $3)
        SELECT run, train, replay_decisions_of, replay_abandoned, decisions_recorded FROM line";
    let hops = i32::try_from(RUNS_MAX + 1).unwrap_or(i32::MAX);
    let rows: Vec<LineRow> =
        on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(run).bind(hops).fetch_all(c))?;
    let link = |row: LineRow| {
        let LineRow { run, train, replay_decisions_of, replay_abandoned, decisions_recorded } = row;
        Link { run, train, replay_decisions_of, replay_abandoned, decisions_recorded }
    };
    Ok(rows.into_iter().map(link).collect())
}

/// Whether a run has an answer that it acted on: only then can it be replayed.
pub async fn has_acted_on(tx: &mut Tx<'_>, run: RunId) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM decision WHERE metadata_id = $1 AND refused IS NULL)";
    on!(tx, |c| sqlx::query_scalar(sql).bind(run).fetch_one(c))
}

/// Whether a run's answers are spoken for: a queued entry or another run, in whatever state, replays them. Runs that
/// could not honour the link, and attempts that were never delivered, leave them unspent.
pub async fn is_replayed(tx: &mut Tx<'_>, run: RunId) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM work_queue WHERE replay_decisions_of = $1
        AND status = 'queued')
        OR EXISTS (SELECT 1 FROM metadata WHERE replay_decisions_of = $1 AND NOT replay_abandoned
            AND COALESCE(failure_exception, '') <> 'DispatchRequeued')";
    on!(tx, |c| sqlx::query_scalar(sql).bind(run).fetch_one(c))
}
