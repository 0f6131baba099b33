//! The life of one run: walk the chain, call junctions, ask questions, record, end.
//!
//! The walk says what comes next and is told what came of it; this file does the waiting. Nothing here depends on a
//! database: whatever a run does that must be kept goes to its [`Journal`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::chain::Chain;
use crate::chain::declaration::{BranchFailure, Isolation, Step};
use crate::chain::next::{Ask, Call, Checkpoint, End, Fork, Next, Routed};
use crate::chain::node::NodeIndex;
use crate::chain::snapshot::Snapshot;
use crate::chain::walk::Walk;
use crate::decide::state_hash::StateHasher;
use crate::deciders::Deciders;
use crate::engine::asking::{Asked, Asker, JunctionAsker, Place, Whom};
use crate::engine::branches;
use crate::engine::journal::{Event, Journal};
use crate::guest::GuestError;
use crate::guest::call::{RawValue, Session};
use crate::guest::component::Component;
use crate::guest::context::{BoxFuture, CallContext, Progress, RunInfo, Visit};
use crate::guest::outcome::Ended;
use crate::guest::run_log::RunLog;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::limits::Limits;
use crate::model::value::Value;

/// How many times an input's limit the state of a checkpoint may have.
const CAP_OF_INPUTS: usize = 4;

/// The most branches of a parallel block that run at once; the others wait for these.
const BRANCHES_AT_ONCE_MAX: usize = 16;

/// Everything a run is made of.
pub struct JobRunner {
    /// The verified train.
    pub chain: Arc<Chain>,
    /// The component that ships it.
    pub component: Arc<Component>,
    /// Who answers its questions.
    pub deciders: Arc<Deciders>,
    /// Where what happens is recorded.
    pub journal: Arc<dyn Journal>,
    /// What each of its junctions may use.
    pub limits: Limits,
    /// Where its guests' lines go.
    pub log: Arc<RunLog>,
    /// Set when the run is asked to stop.
    pub cancel: CancellationToken,
    /// Who the run is, as its guests may learn it; the node is filled in here.
    pub run: RunInfo,
    /// Hashes the states of its questions.
    pub hasher: StateHasher,
}

impl JobRunner {
    /// Runs a train on an input to its end.
    ///
    /// # Errors
    /// [`GuestError`] when the host could not ask the guest: the run has not ended, and can be taken up again.
    pub async fn run(self, input: Value) -> Result<End, GuestError> {
        let walk = Walk::start(Arc::clone(&self.chain), input.clone());
        match self.drive(&input, walk, HandOver::never()).await? {
            Driven::Ended(end) => Ok(end),
            Driven::Stopped(_) => {
                Err(GuestError::Host("a run stopped that nobody stops".to_owned()))
            }
        }
    }

    /// Takes a run to its end, from its start or from where it stopped, unless it is told to stop before.
    ///
    /// # Errors
    /// [`GuestError`] when the host could not ask the guest.
    pub async fn drive(
        self,
        input: &Value,
        mut walk: Walk,
        hand_over: HandOver,
    ) -> Result<Driven, GuestError> {
        let asker = Arc::new(Asker {
            chain: Arc::clone(&self.chain),
            deciders: Arc::clone(&self.deciders),
            journal: Arc::clone(&self.journal),
            hasher: self.hasher.clone(),
        });
        let drive = Drive {
            asker,
            run: Arc::new(self.run.clone()),
            input: Arc::clone(&input.json),
            cancel: self.cancel.clone(),
            step_cancel: self.cancel.child_token(),
            runner: Arc::new(self),
            hand_over,
        };
        match drive.to_end(&mut walk).await {
            Ok(end) => Ok(Driven::Ended(end)),
            // No room is nobody's fault: the run waits, and runs the step again.
            Err(Halt::Stopped | Halt::Guest(GuestError::Capacity(_))) => stopped(&walk),
            Err(Halt::Guest(error)) => Err(error),
        }
    }
}

fn stopped(walk: &Walk) -> Result<Driven, GuestError> {
    let snapshot = walk.snapshot().ok_or_else(|| {
        GuestError::Host("a run stopped where it cannot be taken up again".to_owned())
    })?;
    Ok(Driven::Stopped(Box::new(snapshot)))
}

/// When a run stops before its end, to go on later.
#[derive(Debug, Clone)]
pub struct HandOver {
    /// Set when it stops at the next boundary.
    pub at_boundary: CancellationToken,
    /// Set when it stops where it is; the step it is in runs again.
    pub at_once: CancellationToken,
}

impl HandOver {
    /// A run that nobody stops.
    pub fn never() -> Self {
        Self { at_boundary: CancellationToken::new(), at_once: CancellationToken::new() }
    }
}

/// How far a run came.
#[derive(Debug)]
pub enum Driven {
    /// To its end.
    Ended(End),
    /// To where it stopped.
    Stopped(Box<Snapshot>),
}

/// Why a walk is not at its end.
enum Halt {
    Stopped,
    Guest(GuestError),
}

impl From<GuestError> for Halt {
    fn from(error: GuestError) -> Self {
        Self::Guest(error)
    }
}

#[derive(Clone)]
struct Drive {
    runner: Arc<JobRunner>,
    asker: Arc<Asker>,
    run: Arc<RunInfo>,
    /// The run's input, as canonical JSON.
    input: Arc<str>,
    /// Set when the walk is cancelled: the run is, or its branch after a failure of another.
    cancel: CancellationToken,
    /// Set when the step that is running has to stop, because the run is asked to stop or has to stop where it is.
    step_cancel: CancellationToken,
    hand_over: HandOver,
}

impl Drive {
    /// Takes one walk to its end: the run's own, or a branch's.
    fn to_end<'a>(&'a self, walk: &'a mut Walk) -> BoxFuture<'a, Result<End, Halt>> {
        Box::pin(async move {
            let mut session = self.session();
            loop {
                if self.cancel.is_cancelled() {
                    walk.cancel();
                } else if self.hand_over.at_boundary.is_cancelled() && walk.end().is_none() {
                    return Err(Halt::Stopped);
                }
                match walk.next() {
                    Next::Call(call) => match self.call(&mut session, &call).await? {
                        Ended::Returned(values) => walk.returned(Ok(values)),
                        Ended::Failed(failure) => walk.returned(Err(failure)),
                        Ended::Cancelled => walk.cancel(),
                    },
                    Next::Ask(ask) => {
                        let answers = self.unless_stopped(self.ask(&ask)).await?;
                        walk.answered(answers);
                    }
                    Next::Routed(routed) => {
                        let node = routed.node;
                        let recorded = self.unless_stopped(self.routed(routed)).await?;
                        if let Err(failure) = recorded {
                            walk.unrecorded(node, failure);
                        }
                    }
                    Next::Checkpoint(it) => {
                        let stored = self.unless_stopped(self.checkpoint(it)).await?;
                        walk.stored(stored);
                    }
                    Next::Fork(fork) => {
                        // An instance that is kept for the run must not keep its branches from having theirs.
                        session = self.session();
                        let branches = self.fork(fork).await?;
                        if self.cancel.is_cancelled() {
                            walk.cancel();
                        }
                        walk.joined(branches);
                    }
                    Next::Done(end) => return Ok(end),
                }
            }
        })
    }

    /// Waits for an asking or a record, unless the run has to stop where it is: then it is asked again, or recalled.
    async fn unless_stopped<T>(&self, waiting: impl Future<Output = T>) -> Result<T, Halt> {
        tokio::select! {
            done = waiting => Ok(done),
            () = self.hand_over.at_once.cancelled() => Err(Halt::Stopped),
        }
    }

    async fn routed(&self, routed: Routed) -> Result<(), Failure> {
        self.record(Event::Routed {
            node: self.node_id(routed.node),
            question_key: routed.question_key,
            track: routed.track,
            fallback_reason: routed.fallback_reason,
        })
        .await
    }

    fn session(&self) -> Session {
        let isolation: Isolation = self.runner.chain.train().isolation;
        Arc::clone(&self.runner.component).session(isolation)
    }

    async fn record(&self, event: Event) -> Result<(), Failure> {
        self.runner.journal.record(event).await
    }

    fn node_id(&self, node: NodeIndex) -> String {
        self.runner.chain.node(node).id.clone()
    }

    /// Calls a junction and takes its outputs in only if they fit their types.
    async fn call(&self, session: &mut Session, call: &Call) -> Result<Ended<Vec<Value>>, Halt> {
        let (node, junction) = (self.node_id(call.node), call.junction.clone());
        let started = Event::JunctionStarted { node: node.clone(), junction: junction.clone() };
        if let Err(failure) = self.unless_stopped(self.record(started)).await? {
            return Ok(Ended::Failed(failure));
        }
        let train = &self.runner.chain.train().name;
        let context = self.context(call, &node);
        let cancel = &self.step_cancel;
        let called = {
            let calling = session.run_junction(context, train, &junction, &call.inputs);
            tokio::pin!(calling);
            let mut overdue = self.runner.journal.overdue();
            let mut is_shown = false;
            loop {
                tokio::select! {
                    called = &mut calling => break called?,
                    () = &mut overdue, if !is_shown => is_shown = true,
                    () = self.hand_over.at_once.cancelled() => {
                        cancel.cancel();
                        break calling.await?;
                    }
                }
            }
        };
        // What it gave in spite of being stopped is kept; anything else runs again.
        let is_stopped = cancel.is_cancelled() && !self.cancel.is_cancelled();
        if is_stopped && !matches!(called.ended, Ended::Returned(_)) {
            return Err(Halt::Stopped);
        }
        let ended = match called.ended {
            Ended::Returned(raw) => match self.admit(&node, raw) {
                Ok(values) => Ended::Returned(values),
                Err(failure) => Ended::Failed(failure),
            },
            // However a guest gives up when it is told to, it was cancelled.
            Ended::Failed(_) if self.cancel.is_cancelled() => Ended::Cancelled,
            Ended::Failed(failure) => Ended::Failed(failure.of_its_own()),
            Ended::Cancelled => Ended::Cancelled,
        };
        let failure = match &ended {
            Ended::Failed(failure) => Some(failure.clone()),
            Ended::Returned(_) | Ended::Cancelled => None,
        };
        let receipt = called.receipt;
        let recorded = self.record(Event::JunctionEnded { node, junction, receipt, failure }).await;
        Ok(match recorded {
            Ok(()) => ended,
            Err(failure) => Ended::Failed(failure),
        })
    }

    fn context(&self, call: &Call, node: &str) -> CallContext {
        let runner = &self.runner;
        let asker = JunctionAsker {
            asker: Arc::clone(&self.asker),
            node: node.to_owned(),
            branch: self.branch(call.node),
            keys: self.declared_keys(call.node),
            cancel: self.step_cancel.clone(),
            asked: Mutex::new(BTreeMap::new()),
        };
        CallContext {
            run: Arc::clone(&self.run),
            visit: Visit {
                node_id: node.to_owned(),
                visit: call.visit,
                run_input: Arc::clone(&self.input),
            },
            limits: runner.limits.clone(),
            log: Arc::clone(&runner.log),
            cancel: self.step_cancel.clone(),
            asker: Some(Arc::new(asker)),
            progress: Arc::new(Mutex::new(Progress::default())),
        }
    }

    fn declared_keys(&self, node: NodeIndex) -> Vec<String> {
        let chain = &self.runner.chain;
        match chain.step(chain.node(node)) {
            Some(Step::Junction(junction) | Step::ShortCircuit(junction)) => junction.asks.clone(),
            _ => Vec::new(),
        }
    }

    fn branch(&self, node: NodeIndex) -> String {
        self.runner.chain.node(node).branch.as_deref().unwrap_or_default().to_owned()
    }

    fn admit(&self, node: &str, raw: Vec<RawValue>) -> Result<Vec<Value>, Failure> {
        let bytes: usize = raw.iter().map(|value| value.json.len()).sum();
        let limit = self.runner.limits.output_bytes;
        if bytes > limit {
            let message =
                format!("'{node}' returned {bytes} bytes; the limit of output is {limit}");
            return Err(Failure::permanent("OutputLimit", message));
        }
        let types = self.runner.chain.types();
        raw.into_iter()
            .map(|value| {
                types.admit(&value.type_name, &value.json).map_err(|fault| {
                    let message = format!("'{node}' returned a value that {fault}");
                    Failure::permanent("BadOutput", message)
                })
            })
            .collect()
    }

    async fn ask(&self, ask: &Ask) -> Result<Vec<Answer>, Failure> {
        let asked: Vec<Asked> = ask
            .questions
            .iter()
            .map(|q| Asked { question: q.question.clone(), occurrence: q.occurrence })
            .collect();
        let (node, branch) = (self.node_id(ask.node), self.branch(ask.node));
        let chain = &self.runner.chain;
        let place = Place {
            node: &node,
            branch: &branch,
            is_inside_junction: false,
            routing: chain.step(chain.node(ask.node)).and_then(Step::routing),
            cancel: &self.cancel,
        };
        let whom = Whom {
            decider: ask.decider.as_deref(),
            shadows: &ask.shadows,
            wait_for_shadows: ask.wait_for_shadows_ms.map(Duration::from_millis),
        };
        self.asker.ask(place, &ask.state, &asked, whom).await
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<(), Failure> {
        let Checkpoint { node, state, tracks } = checkpoint;
        let (bytes, cap) = (state.json.len(), CAP_OF_INPUTS * self.runner.limits.input_bytes);
        if bytes > cap {
            let (id, name) = (self.node_id(node), &state.type_name);
            let message = format!(
                "The checkpoint '{id}' holds '{name}' as {bytes} bytes of JSON; the cap is {cap}. Store pointers to \
                 the data rather than the data itself."
            );
            return Err(Failure::permanent("CheckpointTooLarge", message));
        }
        self.record(Event::Checkpoint { node: self.node_id(node), state, tracks }).await
    }

    /// Runs the branches of a parallel block beside each other. After a failure the others are cancelled, unless the
    /// block waits for all; and when one stops before its end, all do.
    async fn fork(&self, fork: Fork) -> Result<Vec<Walk>, Halt> {
        let Fork { branches, on_failure, .. } = fork;
        let siblings = self.siblings();
        let drive = |(_, mut walk): (String, Walk)| {
            let siblings = siblings.clone();
            Box::pin(async move {
                let ended = siblings.to_end(&mut walk).await;
                let cancels = on_failure == BranchFailure::CancelSiblings;
                match &ended {
                    Ok(End::Failed(_)) if cancels => siblings.cancel.cancel(),
                    Ok(_) => {}
                    Err(_) => siblings.hand_over.at_once.cancel(),
                }
                ended.map(|_| walk)
            }) as BoxFuture<'_, Result<Walk, Halt>>
        };
        branches::all(branches.into_iter().map(drive), BRANCHES_AT_ONCE_MAX)
            .await
            .into_iter()
            .collect()
    }

    /// The drive of branches, which stop with this one, or together before it.
    fn siblings(&self) -> Self {
        let cancel = self.cancel.child_token();
        let HandOver { at_boundary, at_once } = &self.hand_over;
        Self {
            step_cancel: cancel.child_token(),
            cancel,
            hand_over: HandOver {
                at_boundary: at_boundary.child_token(),
                at_once: at_once.child_token(),
            },
            ..self.clone()
        }
    }
}
