//! A run drawn on the chain it walked, and whether and where it could be resumed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::node::NodeKind;
use crate::chain::picture::{Known, NodeState};
use crate::chain::resume::{Point, Start};
use crate::engine::chains::{Active, Chains};
use crate::model::ids::TenantId;
use crate::model::value::Shown;
use crate::operations::error::OperationError;
use crate::operations::resume;
use crate::store::decisions::Decision;
use crate::store::junction_runs::Step;
use crate::store::runs::Run;
use crate::store::{
    JunctionRunKind, JunctionRunState, StoreError, TrainState, Tx, checkpoints, components,
};

/// What there is to draw.
#[derive(Debug, Clone)]
pub struct RunPicture {
    /// The chain of the version that it ran; `None`: this host cannot read it.
    pub chain: Option<Arc<Chain>>,
    /// What is known of the run.
    pub known: Known,
    /// Whether it can be resumed.
    pub resume: Resumable,
}

/// Whether a run can be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resumable {
    /// It is not over, or completed: there is nothing to resume.
    NotNeeded,
    /// It would start after this checkpoint.
    After(String),
    /// It would start at the top, with checkpoints of branches.
    Branches(Vec<String>),
    /// Why not.
    Refused(String),
}

/// Reads what there is to draw of a run that did and decided this.
///
/// # Errors
/// Those of the store.
pub(super) async fn of(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: &Run,
    steps: &[Step],
    decisions: &[(Decision, Option<Shown>)],
) -> Result<RunPicture, OperationError> {
    let mut known = Known {
        checkpoints: checkpoints::nodes_of_run(tx, tenant, run.id).await?.into_iter().collect(),
        is_resumed: run.resume_from.is_some(),
        is_completed: run.train_state == TrainState::Completed,
        ..Known::default()
    };
    for step in steps {
        let Some(node) = &step.node_id else { continue };
        if step.kind == JunctionRunKind::Route {
            known.tracks.insert(node.clone(), step.name.clone());
        }
        known.steps.insert(node.clone(), state(step.state));
    }
    let chain = chain(tx, tenant, run).await?;
    if let Some(chain) = &chain {
        note_decisions(chain, decisions.iter().map(|(decision, _)| decision), &mut known);
    }
    Ok(RunPicture { chain, known, resume: resumable(tx, tenant, run).await? })
}

/// A step that asks has its record among the decisions, by the question and how many-th it was asked.
fn note_decisions<'d>(
    chain: &Chain,
    decisions: impl Iterator<Item = &'d Decision>,
    known: &mut Known,
) {
    let mut asked: HashMap<(&str, &str), usize> = HashMap::new();
    for decision in decisions.filter(|decision| decision.asked_by.is_empty()) {
        let Some(question) = chain.question(&decision.question_key) else { continue };
        let branch = decision.branch_path.as_str();
        let count = asked.entry((branch, &decision.question_key)).or_default();
        let output = question.decision_type();
        let mut asking = chain.nodes().iter().filter(|node| {
            node.kind == NodeKind::Decide
                && node.branch.as_deref().unwrap_or_default() == branch
                && node.outputs.iter().any(|it| **it == *output)
        });
        let state = match decision.refused {
            Some(_) => NodeState::Failed,
            None => NodeState::Completed,
        };
        if let Some(node) = asking.nth(*count) {
            known.steps.insert(node.id.clone(), state);
        }
        *count += 1;
    }
}

async fn chain(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: &Run,
) -> Result<Option<Arc<Chain>>, StoreError> {
    let Some(version) = run.component_version_id else { return Ok(None) };
    let stored = match components::train_of_version(tx, tenant, version, &run.name).await {
        Ok(stored) => stored,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(match Chains::default().read(&stored) {
        Active::Chain(chain) => Some(chain),
        Active::Unknown | Active::Unreadable => None,
    })
}

async fn resumable(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: &Run,
) -> Result<Resumable, OperationError> {
    if !matches!(run.train_state, TrainState::Failed | TrainState::Cancelled) {
        return Ok(Resumable::NotNeeded);
    }
    Ok(match resume::allowed(tx, tenant, run, None).await? {
        Ok(allowed) => at(&allowed.chain, &allowed.point),
        Err(refusal) => Resumable::Refused(refusal),
    })
}

fn at(chain: &Chain, point: &Point) -> Resumable {
    let id = |node| chain.node(node).id.clone();
    match point.start {
        Start::After(node) | Start::At(node) => Resumable::After(id(node)),
        Start::Top => Resumable::Branches(point.branches.iter().copied().map(id).collect()),
    }
}

const fn state(state: JunctionRunState) -> NodeState {
    match state {
        JunctionRunState::InProgress => NodeState::InProgress,
        JunctionRunState::Completed => NodeState::Completed,
        JunctionRunState::Failed => NodeState::Failed,
        JunctionRunState::Cancelled => NodeState::Cancelled,
    }
}
