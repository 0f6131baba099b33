//! Labels: what people say decisions should have been, and all decisions of a tenant with theirs.

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::{DecisionId, RunId, TenantId, VersionId};
use crate::model::timestamp::Timestamp;

/// A decision of some run, with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are described where decisions are recorded")]
pub struct Labelled {
    pub id: DecisionId,
    pub run: RunId,
    pub train: String,
    pub component_version_id: Option<VersionId>,
    pub branch_path: String,
    pub question_key: String,
    pub occurrence: i32,
    pub asked_by: String,
    pub kind: String,
    pub question: String,
    pub answer: Option<String>,
    pub refused: Option<String>,
    pub model: Option<String>,
    pub decider: Option<String>,
    pub replayed: bool,
    pub shadows: Option<String>,
    pub routes: Option<String>,
    pub decided_at: Timestamp,
    pub correct: Option<String>,
    pub labelled_by: Option<String>,
    pub labelled_at: Option<Timestamp>,
}

row!(Labelled {
    id,
    run,
    train,
    component_version_id,
    branch_path,
    question_key,
    occurrence,
    asked_by,
    kind,
    question,
    answer,
    refused,
    model,
    decider,
    replayed,
    shadows,
    routes,
    decided_at,
    correct,
    labelled_by,
    labelled_at,
});

/// Which decisions are read. What is `None` does not matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// To this question.
    pub question: Option<&'a str>,
    /// In runs of this train.
    pub train: Option<&'a str>,
    /// Given by this decider.
    pub decider: Option<&'a str>,
    /// Only those without a label.
    pub is_unlabelled: bool,
    /// With ids below this one.
    pub before: Option<DecisionId>,
}

macro_rules! labelled {
    ($condition:literal) => {
        concat!(
            "SELECT d.id, d.metadata_id AS run, r.name AS train, r.component_version_id,
                d.branch_path, d.question_key, d.occurrence, d.asked_by, d.kind, d.question,
                d.answer, d.refused, d.model, d.decider, d.replayed, d.shadows, d.routes,
                d.decided_at, l.correct, l.labelled_by, l.labelled_at
            FROM decision d JOIN metadata r ON r.id = d.metadata_id
                LEFT JOIN decision_label l ON l.decision_id = d.id
            WHERE r.tenant_id = $1 AND ",
            $condition
        )
    };
}

/// A page of a tenant's decisions, newest first.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    filter: Filter<'_>,
    limit: u32,
) -> Result<Vec<Labelled>, StoreError> {
    let sql = labelled!(
        "d.id < $2 AND (CAST($3 AS TEXT) IS NULL OR d.question_key = $3)
            AND (CAST($4 AS TEXT) IS NULL OR r.name = $4)
            AND (CAST($5 AS TEXT) IS NULL OR d.decider = $5)
            AND (NOT $6 OR l.decision_id IS NULL)
        ORDER BY d.id DESC LIMIT $7"
    );
    on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(filter.before.unwrap_or(DecisionId(i64::MAX)))
        .bind(filter.question)
        .bind(filter.train)
        .bind(filter.decider)
        .bind(filter.is_unlabelled)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// The decision with that id.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn detail(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    decision: DecisionId,
) -> Result<Labelled, StoreError> {
    let sql = labelled!("d.id = $2");
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(decision).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "decision", id: decision.to_string() })
}

/// Says what a decision should have been, in place of what was said before. Gives whether this tenant has it.
pub async fn set(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    decision: DecisionId,
    correct: &str,
    by: &str,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let sql = "INSERT INTO decision_label (decision_id, correct, labelled_by, labelled_at)
        SELECT d.id, $3, $4, $5 FROM decision d JOIN metadata r ON r.id = d.metadata_id
            WHERE d.id = $2 AND r.tenant_id = $1
        ON CONFLICT (decision_id) DO UPDATE SET correct = excluded.correct,
            labelled_by = excluded.labelled_by, labelled_at = excluded.labelled_at";
    let set = execute!(
        tx,
        sqlx::query(sql).bind(tenant).bind(decision).bind(correct).bind(by).bind(now)
    )?;
    Ok(set > 0)
}
