//! Which checkpoints a run that resumes at a node starts from, if any.

use std::collections::BTreeMap;

use crate::chain::Chain;
use crate::chain::node::{NodeIndex, NodeKind};
use crate::chain::resume::places::{Part, Places, position, scopes_of};
use crate::chain::resume::{Code, Point, Refusal, Start, Stored};

type Rows<'s> = BTreeMap<NodeIndex, &'s Stored>;

/// The point of a run that resumes at a node, or after the latest checkpoint. Whether its steps find their values is
/// another question.
pub(super) fn find(
    chain: &Chain,
    places: &Places,
    rows: &Rows<'_>,
    resume_at: Option<&str>,
) -> Result<Point, Refusal> {
    let outside = |node: &&NodeIndex| chain.node(**node).branch.is_none();
    let Some(id) = resume_at else {
        let main = rows.keys().rfind(outside).copied();
        let start = main.map_or(Start::Top, Start::After);
        let branches = first_parallel(chain, places, main)
            .map(|parallel| held(chain, rows, parallel))
            .unwrap_or_default();
        if main.is_none() && branches.is_empty() {
            let message = "The run wrote no checkpoint, so it can only run again from the top.";
            return Err(Refusal::new(Code::NoCheckpoint, message));
        }
        return Ok(Point { main, start, branches });
    };
    let at = step_of(chain, id)?;
    let main = rows.keys().filter(outside).rfind(|node| **node < at).copied();
    let is_parallel = chain.node(at).kind == NodeKind::Parallel;
    let branches = if is_parallel { held(chain, rows, at) } else { Vec::new() };
    if main.is_none() && branches.is_empty() {
        let message = format!(
            "No checkpoint the run wrote comes before '{id}', so it can only run again from the top."
        );
        return Err(Refusal::new(Code::NoCheckpoint, message));
    }
    if let Some(main) = main
        && !places.around(chain, main).starts_with(&places.around(chain, at))
    {
        let checkpoint = &chain.node(main).id;
        let message = format!(
            "'{id}' is in a track of a routing step after the checkpoint '{checkpoint}', which a resumed run would \
             not ask. Resume at that routing step."
        );
        return Err(Refusal::new(Code::OffThePath, message));
    }
    Ok(Point { main, start: Start::At(at), branches })
}

/// The node that a run starts at which is told to resume at this one.
fn step_of(chain: &Chain, id: &str) -> Result<NodeIndex, Refusal> {
    let Some(index) = chain.find(id) else {
        let message = format!("The chain declares no step '{id}'.");
        return Err(Refusal::new(Code::UnknownStep, message));
    };
    let node = chain.node(index);
    if matches!(node.kind, NodeKind::Extract | NodeKind::Resolve) {
        let message =
            format!("'{id}' is not a step a run can start at. Resume at the step after it.");
        return Err(Refusal::new(Code::NotAStep, message));
    }
    if let Some(path) = &node.branch {
        let message = format!(
            "'{id}' is inside the Parallel branch '{path}'. Resume at the Parallel step: each branch resumes from its \
             own checkpoint."
        );
        return Err(Refusal::new(Code::InsideABranch, message));
    }
    // A routing step that asks its own question is asked again.
    let before = position(chain, index).checked_sub(1);
    let asking = before.and_then(|before| chain.scope(node.scope).get(before)).copied();
    let is_own = |asking: &NodeIndex| chain.node(*asking).position == node.position;
    Ok(asking.filter(is_own).unwrap_or(index))
}

/// The parallel step that a run comes to next after a checkpoint, or from the top, with nothing but extracts before it.
fn first_parallel(chain: &Chain, places: &Places, main: Option<NodeIndex>) -> Option<NodeIndex> {
    let parts = match main {
        Some(main) => places.from(chain, main, true),
        None => vec![Part { scope: 0, positions: 0..chain.scope(0).len() }],
    };
    let mut nodes = parts
        .into_iter()
        .flat_map(|part| chain.scope(part.scope).get(part.positions).unwrap_or_default());
    let next = nodes.find(|node| chain.node(**node).kind != NodeKind::Extract)?;
    (chain.node(*next).kind == NodeKind::Parallel).then_some(*next)
}

/// The latest checkpoint of each branch of a parallel step. Those of parallel steps inside a branch hold nothing.
fn held(chain: &Chain, rows: &Rows<'_>, parallel: NodeIndex) -> Vec<NodeIndex> {
    let mut latest = BTreeMap::new();
    for branch in scopes_of(chain, parallel) {
        let Some(path) = chain.scope(branch).first().map(|first| &chain.node(*first).branch) else {
            continue;
        };
        for node in rows.keys().filter(|node| chain.node(**node).branch == *path) {
            latest.insert(branch, *node);
        }
    }
    latest.into_values().collect()
}
