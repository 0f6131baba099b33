//! The walk of one run through its chain. It says what comes next and is told what came of it; it never waits, calls or
//! stores anything itself.
//!
//! ```text
//!            next()                       next()
//!   Ready ----------> Waiting(reply) ---------------> Ended
//!     ^                  |                              ^
//!     +------------------+ returned, answered, ...      |
//!     +-------------------------------------------------+ the last step, a failure, a cancellation
//! ```

use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::decision::decision_value;
use crate::chain::declaration::Step;
use crate::chain::memory::Memory;
use crate::chain::next::{End, Next, RunFailure};
use crate::chain::node::{Node, NodeIndex, NodeKind};
use crate::chain::resume::restore::BranchStart;
use crate::chain::step::home;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::value::Value;

/// One run, or one branch of a run, on its way through a chain.
///
/// The caller alternates [`Self::next`] with the reply that it asks for. The nodes it names are those of the chain, in
/// declared order; a track is entered only by the decision it was given. After a failure nothing more runs, and an
/// ended walk stays ended.
#[derive(Debug)]
pub struct Walk {
    pub(super) chain: Arc<Chain>,
    /// The chain and tracks that the run is in, innermost last. Never more than tracks can nest.
    pub(super) frames: Vec<Frame>,
    pub(super) memory: Memory,
    /// What a short circuit gave.
    pub(super) result: Option<Value>,
    pub(super) phase: Phase,
    is_cancelled: bool,
    /// The scope of the branch; 0 for the run itself.
    home: usize,
    /// Branches that start after a checkpoint of an earlier run.
    pub(super) branches: Vec<BranchStart>,
}

/// A chain or track, and the position of its next node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) scope: usize,
    pub(super) position: usize,
}

#[derive(Debug)]
pub(super) enum Phase {
    Ready,
    Waiting(Reply),
    Ended(End),
}

/// The reply that is due.
#[derive(Debug)]
pub(super) enum Reply {
    Returned(NodeIndex),
    Answered(NodeIndex),
    Stored(NodeIndex),
    Joined(NodeIndex, Arc<Memory>),
}

impl Reply {
    const fn node(&self) -> NodeIndex {
        match self {
            Self::Returned(node)
            | Self::Answered(node)
            | Self::Stored(node)
            | Self::Joined(node, _) => *node,
        }
    }
}

impl Walk {
    /// A run at its start. The input was admitted by the chain's types as the train's input.
    pub fn start(chain: Arc<Chain>, input: Value) -> Self {
        Self::at(chain, 0, Memory::of(input))
    }

    pub(super) fn at(chain: Arc<Chain>, home: usize, memory: Memory) -> Self {
        let frames = vec![Frame { scope: home, position: 0 }];
        Self {
            chain,
            frames,
            memory,
            result: None,
            phase: Phase::Ready,
            is_cancelled: false,
            home,
            branches: Vec::new(),
        }
    }

    /// The chain that is walked.
    pub fn chain(&self) -> &Arc<Chain> {
        &self.chain
    }

    /// How the walk ended, if it has.
    pub fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Ended(end) => Some(end),
            Phase::Ready | Phase::Waiting(_) => None,
        }
    }

    /// Cancels the run before its next step. What runs now may finish; if the caller gave up on it instead of replying,
    /// [`Self::next`] ends the walk as cancelled. Branches are walks of their own, which the caller cancels too.
    pub fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Goes on to whatever comes next.
    #[expect(clippy::should_implement_trait, reason = "an iterator would not wait for replies")]
    pub fn next(&mut self) -> Next {
        match &self.phase {
            Phase::Ended(end) => return Next::Done(end.clone()),
            Phase::Waiting(_) if self.is_cancelled => return self.finish(End::Cancelled),
            Phase::Waiting(reply) => {
                let node = reply.node();
                self.fail(node, host_fault("the step got no reply"));
            }
            Phase::Ready => {}
        }
        loop {
            if let Phase::Ended(end) = &self.phase {
                return Next::Done(end.clone());
            }
            let Some(node) = self.advance() else { return self.finish(End::BranchCompleted) };
            let kind = self.chain.node(node).kind;
            if self.is_cancelled && kind != NodeKind::Resolve {
                return self.finish(End::Cancelled);
            }
            match self.visit(node) {
                Ok(Some(next)) => return next,
                Ok(None) => {}
                Err(failure) => self.fail(node, failure),
            }
        }
    }

    /// The next node, if this chain has one.
    fn advance(&mut self) -> Option<NodeIndex> {
        while let Some(frame) = self.frames.last_mut() {
            if let Some(node) = self.chain.scope(frame.scope).get(frame.position) {
                frame.position += 1;
                return Some(*node);
            }
            self.frames.pop();
        }
        None
    }

    /// What the junction that [`Next::Call`] named returned. Its values were admitted by the chain's types; here they
    /// are checked to be exactly the declared ones. A junction that returned others has failed for good, a short
    /// circuit too: only a failure that it returns means "carry on".
    pub fn returned(&mut self, outcome: Result<Vec<Value>, Failure>) {
        let Some(reply) = self.reply(|reply| matches!(reply, Reply::Returned(_))) else { return };
        let index = reply.node();
        let chain = self.chain.clone();
        let node = chain.node(index);
        let is_short_circuit = node.kind == NodeKind::ShortCircuit;
        let values = match outcome {
            Ok(values) => values,
            Err(_) if is_short_circuit => return,
            Err(failure) => return self.fail(index, failure),
        };
        let got = values.iter().map(|value| &value.type_name);
        if !got.clone().eq(&node.outputs) {
            let got: Vec<&str> = got.map(|name| &**name).collect();
            let message = format!(
                "'{}' is declared to return [{}] and returned [{}].",
                shown(node),
                node.outputs.join(", "),
                got.join(", ")
            );
            return self.fail(index, Failure::permanent("BadOutput", message));
        }
        if is_short_circuit {
            self.result = values.first().cloned();
        }
        for value in values {
            self.memory.put(value);
        }
    }

    /// The answers to what [`Next::Ask`] asked, in the order asked, checked against their questions.
    pub fn answered(&mut self, outcome: Result<Vec<Answer>, Failure>) {
        let Some(reply) = self.reply(|reply| matches!(reply, Reply::Answered(_))) else { return };
        let index = reply.node();
        let answers = match outcome {
            Ok(answers) => answers,
            Err(failure) => return self.fail(index, failure),
        };
        let chain = self.chain.clone();
        let step = chain.step(chain.node(index));
        let asked = step.and_then(Step::asked).map(|asked| asked.questions).unwrap_or_default();
        let decisions: Option<Vec<Value>> = asked
            .iter()
            .zip(&answers)
            .map(|(asked, answer)| {
                let question = chain.question(asked.key).filter(|_| answer.key == asked.key)?;
                decision_value(question, &answer.kind)
            })
            .collect();
        let Some(decisions) = decisions.filter(|_| asked.len() == answers.len()) else {
            let name = &chain.node(index).name;
            let message = format!("{name} got answers that do not fit what it asked.");
            return self.fail(index, Failure::transient("BadAnswer", message));
        };
        for decision in decisions {
            self.memory.put(decision);
        }
    }

    /// What came of storing the checkpoint. A failure while the run was cancelled is a cancellation.
    pub fn stored(&mut self, outcome: Result<(), Failure>) {
        let Some(reply) = self.reply(|reply| matches!(reply, Reply::Stored(_))) else { return };
        let index = reply.node();
        match outcome {
            Ok(()) => {}
            Err(_) if self.is_cancelled => self.phase = Phase::Ended(End::Cancelled),
            Err(failure) => self.fail(index, failure),
        }
    }

    /// The track that [`Next::Routed`] reported could not be recorded, so the run must not act on it.
    pub fn unrecorded(&mut self, routed: NodeIndex, failure: Failure) {
        if matches!(self.phase, Phase::Ready) {
            self.fail(routed, failure);
        }
    }

    /// The branches of the fork, in declared order, each at its end. If all completed, what they put is in Memory. If
    /// some failed, the run fails with the worst of their failures, the first in declared order among equals; branches
    /// cancelled by a sibling's failure are no failures. If the run was cancelled, it ends so, whatever branches did.
    pub fn joined(&mut self, branches: Vec<Self>) {
        let Some(reply) = self.reply(|reply| matches!(reply, Reply::Joined(..))) else { return };
        let Reply::Joined(index, shared) = reply else { return };
        let step = self.chain.step(self.chain.node(index));
        let declared = step.map(Step::tracks).unwrap_or_default();
        let homes = branches.iter().map(|branch| branch.home);
        let ends: Option<Vec<&End>> = branches.iter().map(Self::end).collect();
        let Some(ends) = ends.filter(|_| homes.eq(declared.iter().map(|used| home(used.track))))
        else {
            return self
                .fail(index, host_fault("the branches that came back are not those that left"));
        };
        if ends.iter().all(|end| matches!(end, End::BranchCompleted)) {
            self.memory = Memory::join(shared, branches.into_iter().map(|branch| branch.memory));
            return;
        }
        let failures = ends.into_iter().filter_map(|end| match end {
            End::Failed(failure) => Some(failure),
            End::Completed(_) | End::BranchCompleted | End::Cancelled => None,
        });
        let failure = worst(failures).filter(|_| !self.is_cancelled);
        self.phase = Phase::Ended(failure.map_or(End::Cancelled, End::Failed));
    }

    /// Takes the reply that is due, if it is this one. A reply that nobody asked for fails the walk, because what comes
    /// next would rest on it; after the end it changes nothing.
    fn reply(&mut self, is_due: impl Fn(&Reply) -> bool) -> Option<Reply> {
        match std::mem::replace(&mut self.phase, Phase::Ready) {
            Phase::Waiting(reply) if is_due(&reply) => return Some(reply),
            Phase::Ended(end) => self.phase = Phase::Ended(end),
            Phase::Waiting(reply) => {
                self.fail(reply.node(), host_fault("the step got a reply to another"));
            }
            Phase::Ready => {
                let junction = self.chain.train().name.clone();
                let failure = host_fault("a reply came that no step waits for");
                self.phase =
                    Phase::Ended(End::Failed(RunFailure { node: None, junction, failure }));
            }
        }
        None
    }

    fn fail(&mut self, index: NodeIndex, failure: Failure) {
        let junction = self.chain.node(index).name.clone();
        let failure = RunFailure { node: Some(index), junction, failure };
        self.phase = Phase::Ended(End::Failed(failure));
    }

    pub(super) fn finish(&mut self, end: End) -> Next {
        self.phase = Phase::Ended(end.clone());
        Next::Done(end)
    }
}

/// The failure of the worst class, the first among equals; its detail names the others.
fn worst<'f>(failures: impl Iterator<Item = &'f RunFailure>) -> Option<RunFailure> {
    let failures: Vec<&RunFailure> = failures.collect();
    let class = failures.iter().map(|failure| failure.failure.class).max()?;
    let position = failures.iter().position(|failure| failure.failure.class == class)?;
    let mut worst = failures[position].clone();
    let others = failures.iter().enumerate().filter(|(other, _)| *other != position);
    let mut lines: Vec<String> = worst.failure.detail.take().into_iter().collect();
    lines.extend(others.map(|(_, other)| format!("another branch failed as well: {other}")));
    worst.failure.detail = (!lines.is_empty()).then(|| lines.join("\n"));
    Some(worst)
}

/// The caller broke the protocol, or the chain is not what verification let through. Never a guest's doing.
pub(super) fn host_fault(what: &str) -> Failure {
    Failure::permanent("HostFault", format!("{what}; this is a bug of the host."))
}

/// What a node is called in a failure, which anyone may read.
fn shown(node: &Node) -> &str {
    if node.withheld_by.is_some() { &node.name } else { &node.id }
}
