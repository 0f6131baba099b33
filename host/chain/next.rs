//! What a walk asks of its caller, and how a run ends.

use std::fmt;

use crate::chain::declaration::BranchFailure;
use crate::chain::node::NodeIndex;
use crate::chain::walk::Walk;
use crate::model::failure::Failure;
use crate::model::question::Question;
use crate::model::value::Value;

/// What comes next in a run.
#[derive(Debug)]
pub enum Next {
    /// Call a junction; reply with [`Walk::returned`].
    Call(Call),
    /// Ask questions; reply with [`Walk::answered`].
    Ask(Ask),
    /// A track was taken and is in Memory; record it. Needs no reply.
    Routed(Routed),
    /// Store a checkpoint; reply with [`Walk::stored`].
    Checkpoint(Checkpoint),
    /// Run every branch to its end; reply with [`Walk::joined`].
    Fork(Fork),
    /// The run, or the branch, has ended. Asking again gives the same.
    Done(End),
}

/// A junction to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The node that runs.
    pub node: NodeIndex,
    /// The junction's name.
    pub junction: String,
    /// Exactly the declared inputs, in declared order.
    pub inputs: Vec<Value>,
    /// How often the node ran before in this run. Chains have no loops, so it is 0. It is part of idempotency keys,
    /// which must not change should chains get loops.
    pub visit: u32,
    /// Whether a returned failure only means "carry on".
    pub is_short_circuit: bool,
}

/// Questions to ask about one state, in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The node that asks: always of kind `DECIDE`.
    pub node: NodeIndex,
    /// What the questions are about.
    pub state: Value,
    /// The questions in declared order; answers come in the same order.
    pub questions: Vec<AskedQuestion>,
    /// The decider that the step names; when absent the host's default, or else the train's.
    pub decider: Option<String>,
    /// Deciders asked the same, recorded and never acted on.
    pub shadows: Vec<String>,
    /// How long to wait for shadows, if the step says so.
    pub wait_for_shadows_ms: Option<u64>,
}

/// One of the questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion {
    /// The question in the step's words, where it has its own.
    pub question: Question,
    /// How often the run asked it before: counted per key, in a branch on from the fork.
    pub occurrence: u32,
}

/// A track that a run took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// The routing node.
    pub node: NodeIndex,
    /// The key of the question it routed by.
    pub question_key: String,
    /// The track's name.
    pub track: String,
    /// Why the decision was not followed, if it was not. Quotes the answer, so that it is withheld where the answer is.
    pub fallback_reason: Option<String>,
}

/// A state to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The checkpoint's node.
    pub node: NodeIndex,
    /// The value that a run resuming here starts with.
    pub state: Value,
    /// The tracks taken so far, oldest first, without those of sensitive questions. In a branch, those before the fork
    /// and the branch's own.
    pub tracks: Vec<Routed>,
}

/// Branches to run beside each other.
#[derive(Debug)]
pub struct Fork {
    /// The parallel node.
    pub node: NodeIndex,
    /// Name and walk of every branch, in declared order. All of them run, whatever the others do.
    pub branches: Vec<(String, Walk)>,
    /// Whether a failure of one cancels the others. The caller does that, by [`Walk::cancel`] on each.
    pub on_failure: BranchFailure,
}

/// How a run, or a branch of one, ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The run gave its result.
    Completed(Value),
    /// The branch came to its end. What it put into Memory is taken over by [`Walk::joined`].
    BranchCompleted,
    /// Something failed; nothing after it ran.
    Failed(RunFailure),
    /// It was cancelled before a step.
    Cancelled,
}

/// A failure and where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    /// The node that failed, unless the walk failed between nodes. Its id is shown only where
    /// [`super::node::Node::withheld_by`] allows it.
    pub node: Option<NodeIndex>,
    /// The node's name, which may always be shown.
    pub junction: String,
    /// What happened.
    pub failure: Failure,
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.junction, self.failure.message)
    }
}
