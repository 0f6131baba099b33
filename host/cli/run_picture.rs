//! A run drawn on its chain: a line for each step, in declared order, and where a resume would start.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::chain::picture::{Line, NodeState, picture};
use crate::cli::error::CliError;
use crate::cli::output::{BAD, FAINT, GOOD, NOTABLE, Output, styled};
use crate::cli::runs::took as took_of;
use crate::operations::run_picture::{Resumable, RunPicture};
use crate::store::JunctionRunKind;
use crate::store::junction_runs::Step;

/// Draws it on this chain. Tracks that the run did not take are named and left out.
///
/// # Errors
/// [`CliError::Print`].
pub fn draw(
    chain: &Chain,
    drawn: &RunPicture,
    steps: &[Step],
    output: &mut Output,
) -> Result<(), CliError> {
    output.line("\nchain")?;
    let recorded = by_node(steps);
    for line in picture(chain, &drawn.known) {
        match line {
            Line::Node { state: NodeState::Skipped, .. } => {}
            Line::Node { node, .. } => {
                let step = recorded.get(node.id.as_str()).copied();
                output.line(node_line(&line, &drawn.resume, step))?;
            }
            Line::Track { depth, name, is_taken } => {
                let said = match is_taken {
                    Some(true) => format!("{name}:"),
                    Some(false) => format!("{name}: not taken"),
                    None => format!("{name}: if taken"),
                };
                let indent = "  ".repeat(depth);
                output.line(styled(FAINT, format!("  {:<12} {indent}{said}", "")))?;
            }
            Line::Withheld { depth } => {
                let said = format!("  {:<12} {}(withheld)", "", "  ".repeat(depth));
                output.line(styled(FAINT, said))?;
            }
        }
    }
    Ok(())
}

/// Says where a resume would start, or why it cannot.
///
/// # Errors
/// [`CliError::Print`].
pub fn say_resumable(resume: &Resumable, output: &mut Output) -> Result<(), CliError> {
    match resume {
        Resumable::NotNeeded => Ok(()),
        Resumable::After(node) => output.line(format!("\nresume: it would start after '{node}'")),
        Resumable::Branches(nodes) => {
            output.line(format!("\nresume: branches would start after '{}'", nodes.join("', '")))
        }
        Resumable::Refused(why) => output.line(format!("\nresume: not possible. {why}")),
    }
}

/// The same for programs.
pub fn data(drawn: &RunPicture) -> Value {
    let node = |line: &Line<'_>| match line {
        Line::Node { depth, node, state, taken, is_stored } => Some(json!({
            "node": node.id, "kind": node.kind.as_str(), "name": node.name, "depth": depth,
            "state": state.as_str(), "track_taken": taken,
            "is_checkpointed": is_stored,
        })),
        Line::Track { .. } | Line::Withheld { .. } => None,
    };
    let nodes = drawn
        .chain
        .as_ref()
        .map(|chain| picture(chain, &drawn.known).iter().filter_map(node).collect::<Vec<_>>());
    let (after, branches, refusal) = match &drawn.resume {
        Resumable::NotNeeded => (None, None, None),
        Resumable::After(node) => (Some(node), None, None),
        Resumable::Branches(nodes) => (None, Some(nodes), None),
        Resumable::Refused(why) => (None, None, Some(why)),
    };
    json!({
        "nodes": nodes, "can_resume": after.is_some() || branches.is_some(),
        "resumes_after": after, "resumes_branches_after": branches, "resume_refused": refusal,
    })
}

fn by_node(steps: &[Step]) -> HashMap<&str, &Step> {
    steps.iter().filter_map(|step| Some((step.node_id.as_deref()?, step))).collect()
}

fn node_line(line: &Line<'_>, resume: &Resumable, step: Option<&Step>) -> String {
    let Line::Node { depth, node, state, taken, is_stored } = *line else { return String::new() };
    let style = match state {
        NodeState::Completed => GOOD,
        NodeState::Failed => BAD,
        NodeState::Cancelled | NodeState::InProgress => NOTABLE,
        NodeState::Skipped
        | NodeState::NotReached
        | NodeState::NotRecorded
        | NodeState::Restored => FAINT,
    };
    let said = state.as_str().to_lowercase().replace('_', " ");
    let is_point = matches!(resume, Resumable::After(point) if *point == node.id);
    let notes = [
        taken.map(|track| format!("takes {track}")),
        step.and_then(|step| step.answer.clone()),
        step.and_then(|step| step.failure_exception.clone()),
        is_stored.then(|| "stored".to_owned()),
        is_point.then(|| "<- a resume starts after this".to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    // A track is taken in no time.
    let took = step.filter(|step| step.kind == JunctionRunKind::Junction);
    let took = took.map(|step| styled(FAINT, took_of(step.started_at, step.ended_at)));
    let name = format!("{}{}", "  ".repeat(depth), node.name);
    let columns = [Some(name), took, (!notes.is_empty()).then(|| notes.join(", "))];
    let columns: Vec<String> = columns.into_iter().flatten().collect();
    let said = styled(style, format!("{said:<12}"));
    format!("  {said} {}", columns.join("  "))
}
