//! A caller of walks whose junctions give texts that are unique per node and inputs, so that no two values are mixed
//! up, and that keeps what a run stores.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::chain::Chain;
use crate::chain::next::{Ask, AskedQuestion, Call, End, Next};
use crate::chain::node::NodeIndex;
use crate::chain::resume::restore::Restored;
use crate::chain::resume::tracks::{Taken, to_json};
use crate::chain::resume::{Point, Start, Stored};
use crate::chain::testing::world::{chosen, scored, yes};
use crate::chain::walk::Walk;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::ids::RunId;
use crate::model::question::QuestionKind;
use crate::model::value::Value;

/// The members of the type `Basket`.
pub(super) const MEMBERS: usize = 16;

/// Which of two answers each node that asks gets, and which short circuits fail.
#[derive(Debug, Clone, Default)]
pub(super) struct Luck {
    pub(super) of_node: HashMap<NodeIndex, bool>,
}

/// Something that a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) node: NodeIndex,
    pub(super) what: String,
    pub(super) tracks: Vec<(NodeIndex, String)>,
}

/// What a run did and stored.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    pub(super) events: Vec<Event>,
    pub(super) stored: Vec<Restored>,
    pub(super) taken: Taken,
    pub(super) end: End,
}

pub(super) fn input(chain: &Chain) -> Value {
    Value::new(chain.train().input.as_str(), "\"order\"")
}

/// A run from the top.
pub(super) fn from_the_top(chain: &Arc<Chain>, luck: &Luck) -> Trace {
    play(&mut Walk::start(Arc::clone(chain), input(chain)), luck)
}

/// A run from a point, with what an earlier run stored.
pub(super) fn from_point(
    chain: &Arc<Chain>,
    luck: &Luck,
    point: &Point,
    earlier: &[&Trace],
) -> Trace {
    let kept = |node: NodeIndex| earlier.iter().find_map(|trace| trace.state_at(node)).unwrap();
    let restored = point.checkpoints().map(kept).collect();
    let mut taken = Taken::new();
    for trace in earlier {
        taken.extend(trace.taken.clone());
    }
    play(&mut Walk::resume(Arc::clone(chain), input(chain), point, restored, &taken), luck)
}

pub(super) fn play(walk: &mut Walk, luck: &Luck) -> Trace {
    let mut player = Player { luck, events: Vec::new(), stored: Vec::new(), taken: Taken::new() };
    let end = player.play(walk);
    let Player { events, stored, taken, .. } = player;
    Trace { events, stored, taken, end }
}

impl Trace {
    pub(super) fn state_at(&self, node: NodeIndex) -> Option<Restored> {
        self.stored.iter().find(|stored| stored.node == node).cloned()
    }

    /// The first rows of what it stored, as a run's.
    pub(super) fn rows(&self, chain: &Chain, count: usize, run: i64) -> Vec<Stored> {
        self.stored.iter().take(count).map(|stored| row(chain, stored, run)).collect()
    }

    /// What a run from a point should have done too.
    pub(super) fn after(&self, chain: &Chain, point: &Point) -> Vec<Event> {
        let is_after = |event: &&Event| !is_skipped(chain, point, event.node);
        let mut events: Vec<Event> = self.events.iter().filter(is_after).cloned().collect();
        let is_lost = |node: NodeIndex| is_skipped(chain, point, node) && point.main < Some(node);
        for event in &mut events {
            // Tracks taken between the checkpoint and the point are not restored.
            let in_branch =
                point.branches.iter().any(|at| is_before_in_branch(chain, *at, event.node));
            event.tracks.retain(|(node, _)| in_branch || !is_lost(*node));
        }
        events
    }
}

fn row(chain: &Chain, stored: &Restored, run: i64) -> Stored {
    Stored {
        run: RunId(run),
        node_id: chain.node(stored.node).id.clone(),
        chain_hash: chain.hash().to_owned(),
        state_fingerprint: chain.types().shape_fingerprint(&stored.state.type_name).unwrap(),
        tracks: to_json(chain, &stored.tracks),
    }
}

/// Whether a run from the point does not come to a node that a run from the top came to.
pub(super) fn is_skipped(chain: &Chain, point: &Point, node: NodeIndex) -> bool {
    let is_before = match point.start {
        Start::Top => false,
        Start::After(checkpoint) => node <= checkpoint,
        Start::At(first) => node < first,
    };
    let held = point.branches.iter();
    is_before || held.clone().any(|at| node <= *at && is_before_in_branch(chain, *at, node))
}

/// Whether a node is in the branch of a checkpoint.
fn is_before_in_branch(chain: &Chain, checkpoint: NodeIndex, node: NodeIndex) -> bool {
    let path = chain.node(checkpoint).branch.as_deref().unwrap();
    chain.node(node).id.starts_with(&format!("{path}/"))
}

struct Player<'l> {
    luck: &'l Luck,
    events: Vec<Event>,
    stored: Vec<Restored>,
    taken: Taken,
}

impl Player<'_> {
    fn play(&mut self, walk: &mut Walk) -> End {
        let chain = Arc::clone(walk.chain());
        loop {
            match walk.next() {
                Next::Call(call) => {
                    let inputs: Vec<&str> = call.inputs.iter().map(|value| &*value.json).collect();
                    self.note(call.node, format!("call {}", inputs.join(" ")), vec![]);
                    let outputs = self.outputs(&chain, &call, &inputs);
                    walk.returned(outputs);
                }
                Next::Ask(ask) => {
                    let asked: Vec<String> = ask.questions.iter().map(asked).collect();
                    self.note(
                        ask.node,
                        format!("ask {} {}", ask.state.json, asked.join(" ")),
                        vec![],
                    );
                    walk.answered(Ok(self.answers(&ask)));
                }
                Next::Routed(routed) => {
                    self.note(routed.node, format!("take {}", routed.track), vec![]);
                    self.taken.insert(routed.node, routed.track);
                }
                Next::Checkpoint(it) => {
                    let tracks = it.tracks.iter().map(|routed| (routed.node, routed.track.clone()));
                    self.note(it.node, format!("store {}", it.state.json), tracks.collect());
                    self.stored.push(Restored {
                        node: it.node,
                        state: it.state,
                        tracks: it.tracks,
                    });
                    walk.stored(Ok(()));
                }
                Next::Fork(fork) => {
                    self.note(fork.node, "fork".to_owned(), vec![]);
                    let mut ended = Vec::new();
                    for (_, mut branch) in fork.branches {
                        self.play(&mut branch);
                        ended.push(branch);
                    }
                    walk.joined(ended);
                }
                Next::Done(end) => return end,
            }
        }
    }

    fn note(&mut self, node: NodeIndex, what: String, tracks: Vec<(NodeIndex, String)>) {
        self.events.push(Event { node, what, tracks });
    }

    fn is_lucky(&self, node: NodeIndex) -> bool {
        self.luck.of_node.get(&node).copied().unwrap_or(true)
    }

    fn outputs(&self, chain: &Chain, call: &Call, inputs: &[&str]) -> Result<Vec<Value>, Failure> {
        if call.is_short_circuit && !self.is_lucky(call.node) {
            return Err(Failure::transient("Down", "it is down"));
        }
        let node = chain.node(call.node);
        let text = format!("{} {}", node.id, inputs.join(" "));
        let output = |name: &Arc<str>| {
            let unique = hex::encode(&Sha256::digest(format!("{name} {text}"))[..8]);
            let json = if &**name == "Basket" {
                let member = |at: usize| format!("\"c{at:02}\":\"{unique} {at}\"");
                format!("{{{}}}", (0..MEMBERS).map(member).collect::<Vec<_>>().join(","))
            } else {
                format!("\"{unique}\"")
            };
            Value::new(Arc::clone(name), json)
        };
        Ok(node.outputs.iter().map(output).collect())
    }

    fn answers(&self, ask: &Ask) -> Vec<Answer> {
        let is_first = self.is_lucky(ask.node);
        let answer = |asked: &AskedQuestion| {
            let kind = match &asked.question.kind {
                QuestionKind::Choice(options) => chosen(&options[usize::from(!is_first)].name, 1.0),
                QuestionKind::Score(_) => scored(if is_first { 0.0 } else { 1.0 }, 1.0),
                QuestionKind::YesNo { .. } => yes(if is_first { 1.0 } else { 0.0 }),
            };
            Answer { key: asked.question.key.clone(), kind, model: None }
        };
        ask.questions.iter().map(answer).collect()
    }
}

fn asked(one: &AskedQuestion) -> String {
    format!("{}:{}", one.question.key, one.occurrence)
}
