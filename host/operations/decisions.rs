//! Decisions over all runs of a tenant: reading them, and saying what they should have been. The states they were about
//! are not kept, and what a train declares sensitive does not leave the store.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::chain::decision::read_answer;
use crate::decide::label;
use crate::decide::report::{Costs, Line, Of, Sample, Tally};
use crate::model::ids::{DecisionId, TenantId, VersionId};
use crate::model::message;
use crate::model::question::QuestionKind;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::runs::Secrecy;
use crate::store::labels::{self, Filter, Labelled};
use crate::store::{Db, StoreError, Tx};

/// The most characters of the name of whoever labels.
const NAME_MAX: usize = 100;

/// How many decisions a report reads at once.
const PAGE: u32 = 1_000;

/// A decision as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What is recorded.
    pub decision: Labelled,
    /// Whether its answers, its label and its tracks are withheld.
    pub is_sensitive: bool,
}

/// What is declared sensitive, by the version of a component and the name of a train.
type Known = BTreeMap<(Option<VersionId>, String), Secrecy>;

/// A page of a tenant's decisions, newest first.
///
/// # Errors
/// Those of the store.
pub async fn list(
    db: &Db,
    tenant: TenantId,
    filter: Filter<'_>,
    limit: u32,
) -> Result<Vec<Listed>, OperationError> {
    let mut tx = db.read().await?;
    let mut known = Known::new();
    let mut listed = Vec::new();
    for decision in labels::list(&mut tx, tenant, filter, limit).await? {
        listed.push(shown(&mut tx, tenant, decision, &mut known).await?);
    }
    Ok(listed)
}

/// One decision.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none of that id.
pub async fn detail(db: &Db, tenant: TenantId, id: DecisionId) -> Result<Listed, OperationError> {
    let mut tx = db.read().await?;
    let decision = labels::detail(&mut tx, tenant, id).await?;
    shown(&mut tx, tenant, decision, &mut Known::new()).await
}

async fn shown(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    decision: Labelled,
    known: &mut Known,
) -> Result<Listed, OperationError> {
    let of = (decision.component_version_id, decision.train.clone());
    if !known.contains_key(&of) {
        let secrecy = Secrecy::of_version(tx, tenant, of.0, &of.1).await?;
        known.insert(of.clone(), secrecy);
    }
    let is_sensitive =
        known.get(&of).is_none_or(|secrecy| secrecy.hides_question(&decision.question_key));
    Ok(Listed { decision, is_sensitive })
}

/// Notes what a decision should have been, in place of what was noted before.
///
/// # Errors
/// Those of the store.
pub async fn label(
    db: &Db,
    tenant: TenantId,
    id: DecisionId,
    correct: &str,
    by: &str,
) -> Result<Outcome, OperationError> {
    let by = by.trim();
    if by.is_empty() || by.chars().count() > NAME_MAX {
        return Ok(Outcome::refused(message::DECISION_LABELLED_BY_NOBODY));
    }
    let mut tx = db.read().await?;
    let found = labels::detail(&mut tx, tenant, id).await;
    drop(tx);
    let decision = match found {
        Ok(decision) => decision,
        Err(StoreError::NotFound { .. }) => {
            return Ok(Outcome::missing(message::decision_not_found(id.0)));
        }
        Err(error) => return Err(error.into()),
    };
    let Some(question) = question(&decision.question) else {
        return Ok(Outcome::refused(message::decision_unreadable(id.0)));
    };
    let correct = match label::read(&question, correct) {
        Ok(correct) => correct,
        Err(problem) => return Ok(Outcome::refused(message::decision_not_labelled(&problem))),
    };
    // Deleted since, it is as if it had never been there.
    if !db.write(async |tx| labels::set(tx, tenant, id, &correct, by).await).await? {
        return Ok(Outcome::missing(message::decision_not_found(id.0)));
    }
    Ok(Outcome::done(message::decision_labelled(id.0)).with_id(id.0).with_count(1))
}

/// What a recorded question can be answered with.
pub(in crate::operations) fn question(recorded: &str) -> Option<QuestionKind> {
    let mut recorded: Value = serde_json::from_str(recorded).ok()?;
    serde_json::from_value(recorded.get_mut("criteria")?.take()).ok()
}

/// Which decisions a report is about, and what it reckons with.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// To this question.
    pub question: Option<&'a str>,
    /// In runs of this train.
    pub train: Option<&'a str>,
    /// Given by this decider, acted on or as a shadow.
    pub decider: Option<&'a str>,
    /// At most this many, the newest ones.
    pub last: usize,
    /// What answers cost that are wrong or handed on.
    pub costs: Costs,
}

/// How good deciders are. Answers that were replayed count once, where they were given.
///
/// # Errors
/// Those of the store.
pub async fn report(
    db: &Db,
    tenant: TenantId,
    about: Reported<'_>,
) -> Result<Vec<Line>, OperationError> {
    let mut tally = Tally::default();
    let mut tx = db.read().await?;
    let mut filter = Filter { question: about.question, train: about.train, ..Filter::default() };
    let mut left = about.last;
    while left > 0 {
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(PAGE);
        let page = labels::list(&mut tx, tenant, filter, limit).await?;
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id);
        left -= page.len();
        for decision in page.iter().filter(|decision| !decision.replayed) {
            count(&mut tally, decision);
        }
    }
    let mut lines = tally.report(about.costs);
    lines.retain(|line| about.decider.is_none_or(|decider| line.of.decider == decider));
    Ok(lines)
}

/// A shadow's answer as it is recorded.
#[derive(Debug, Deserialize)]
struct RecordedShadow {
    decider: String,
    answer: Option<Value>,
    agreed: bool,
    error: Option<String>,
}

fn count(tally: &mut Tally, decision: &Labelled) {
    let Some(question) = question(&decision.question) else { return };
    let of = |decider: &str, is_shadow| Of {
        train: decision.train.clone(),
        question: decision.question_key.clone(),
        decider: decider.to_owned(),
        is_shadow,
    };
    let correct = decision.correct.as_deref();
    let read = |text: &str| read_answer(&decision.kind, text);
    let answer = decision.answer.as_deref().filter(|_| decision.refused.is_none()).and_then(read);
    let live = Sample { question: &question, answer: answer.as_ref(), correct, has_agreed: false };
    tally.add(of(decision.decider.as_deref().unwrap_or_default(), false), live);
    let recorded = decision.shadows.as_deref().unwrap_or("[]");
    let shadows: Vec<RecordedShadow> = serde_json::from_str(recorded).unwrap_or_default();
    for shadow in shadows {
        let answer = shadow.answer.filter(|_| shadow.error.is_none());
        let answer = answer.and_then(|answer| read(&answer.to_string()));
        let has_agreed = shadow.agreed;
        let sample = Sample { question: &question, answer: answer.as_ref(), correct, has_agreed };
        tally.add(of(&shadow.decider, true), sample);
    }
}
