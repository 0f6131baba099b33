//! Whether and where a run may start after a checkpoint of an earlier one: a pure check of the declared chain against
//! what was stored, and the walk that starts there.
//!
//! A resumed run skips every step before its point, so that it does no work twice. What those steps left in Memory is
//! gone, except for what a checkpoint holds: the check allows a point only if every step after it finds in Memory
//! exactly what it would have found in a run from the top, whichever tracks either takes.
//!
//! [`lineage`] says which checkpoints count, [`check`] allows a point or says why not, and [`restore`] makes the walk.

pub mod lineage;
mod places;
mod point;
mod flow;
pub mod restore;
pub mod source;
pub mod tracks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use crate::chain::Chain;
use crate::chain::node::NodeIndex;
use crate::chain::resume::places::Places;
use crate::model::ids::RunId;

/// A checkpoint that a run has stored, without its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The run that stored it.
    pub run: RunId,
    /// Its node.
    pub node_id: String,
    /// Of the chain that the run walked.
    pub chain_hash: String,
    /// Of the shape that its state's type had.
    pub state_fingerprint: String,
    /// The tracks taken before it, as [`tracks`] writes them.
    pub tracks: String,
}

/// Where a run may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The checkpoint outside branches that is restored.
    pub main: Option<NodeIndex>,
    /// The first node that runs.
    pub start: Start,
    /// The checkpoints in branches that are restored, at most one for each branch of one parallel step.
    pub branches: Vec<NodeIndex>,
}

/// The first node that a resumed run runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The chain's first: only branches are restored.
    Top,
    /// The one after this checkpoint.
    After(NodeIndex),
    /// This one.
    At(NodeIndex),
}

impl Point {
    /// Every checkpoint that is restored.
    pub fn checkpoints(&self) -> impl Iterator<Item = NodeIndex> {
        self.main.iter().chain(&self.branches).copied()
    }
}

/// Why a run cannot start at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the message of each says what it is")]
pub enum Code {
    NoCheckpoint,
    UnknownStep,
    NotAStep,
    InsideABranch,
    OffThePath,
    MissingInput,
    StaleValue,
    ChainChanged,
    StateChanged,
    Unreadable,
    UnknownRun,
    AnotherTrain,
    NotFailed,
    AlreadyResumed,
    DifferentInput,
}

impl Code {
    /// The name that programs know it by.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoCheckpoint => "no-checkpoint",
            Self::UnknownStep => "unknown-step",
            Self::NotAStep => "not-a-step",
            Self::InsideABranch => "inside-a-branch",
            Self::OffThePath => "off-the-path",
            Self::MissingInput => "missing-input",
            Self::StaleValue => "stale-value",
            Self::ChainChanged => "chain-changed",
            Self::StateChanged => "state-changed",
            Self::Unreadable => "unreadable",
            Self::UnknownRun => "unknown-run",
            Self::AnotherTrain => "another-train",
            Self::NotFailed => "not-failed",
            Self::AlreadyResumed => "already-resumed",
            Self::DifferentInput => "different-input",
        }
    }
}

/// Why a run cannot resume, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which rule says so.
    pub code: Code,
    /// The reason.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Where a run may start that resumes at the node `resume_at`, or else after the latest checkpoint.
///
/// The time it takes grows with the chain, not with what a run did.
///
/// # Errors
/// The first rule that forbids it.
pub fn check(chain: &Chain, stored: &[Stored], resume_at: Option<&str>) -> Result<Point, Refusal> {
    let rows: BTreeMap<NodeIndex, &Stored> =
        stored.iter().filter_map(|row| Some((chain.find(&row.node_id)?, row))).collect();
    let places = Places::of(chain);
    let point = point::find(chain, &places, &rows, resume_at)?;
    flow::follow(chain, &places, &point)?;
    for row in point.checkpoints().filter_map(|node| rows.get(&node)) {
        matches(chain, row)?;
    }
    Ok(point)
}

/// Whether a checkpoint is of this chain, and its state still of its type.
fn matches(chain: &Chain, row: &Stored) -> Result<(), Refusal> {
    let node = &row.node_id;
    if row.chain_hash != chain.hash() {
        let message = format!(
            "The checkpoint '{node}' was written by a different version of the chain, so its steps may not line up. \
             Run it again from the top."
        );
        return Err(Refusal::new(Code::ChainChanged, message));
    }
    let state = chain.find(node).and_then(|index| chain.node(index).inputs.first().cloned());
    let state = state.unwrap_or_default();
    if chain.types().shape_fingerprint(&state).as_ref() != Some(&row.state_fingerprint) {
        let message = format!(
            "The checkpoint '{node}' stored '{state}' in a shape the type no longer has, so reading it back would \
             quietly default members. Run it again from the top."
        );
        return Err(Refusal::new(Code::StateChanged, message));
    }
    Ok(())
}
