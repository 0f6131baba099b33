//! Nodes: the steps of a chain with the ids that runs, graphs and checkpoints share.

use std::sync::Arc;

use crate::chain::declaration::{Extract, Junction, Step};
use crate::chain::names::{Names, Symbol};
use crate::chain::step::Routing;
use crate::model::question::Question;
use crate::model::value::track_taken_type;

/// The longest id, in bytes. Databases index ids, and Postgres refuses an index entry of more than 2,704 bytes.
pub const NODE_ID_BYTES_MAX: usize = 2_000;

/// Names that are keys of the host's own nodes, so that no junction may have them.
pub(super) const RESERVED: [&str; 2] = ["Parallel", "Resolve"];

/// Where a node stands among the nodes of its chain, in declared order: a routing step comes before the nodes of its
/// tracks. Only good with the chain it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub(super) u32);

impl NodeIndex {
    /// The position among [`Chain::nodes`](crate::chain::Chain::nodes).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Calls a junction.
    Chain,
    /// Calls a junction whose output may be the run's result early.
    ShortCircuit,
    /// Takes a member of a value.
    Extract,
    /// Gives the run's result.
    Resolve,
    /// Asks questions.
    Decide,
    /// Routes by a choice.
    Switch,
    /// Routes by a yes/no question.
    Gate,
    /// Routes by a score.
    Scale,
    /// Runs branches.
    Parallel,
    /// Stores a value to resume from.
    Checkpoint,
}

impl NodeKind {
    /// The name in graphs and rows: `CHAIN`, `SHORT_CIRCUIT` and so on.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "CHAIN",
            Self::ShortCircuit => "SHORT_CIRCUIT",
            Self::Extract => "EXTRACT",
            Self::Resolve => "RESOLVE",
            Self::Decide => "DECIDE",
            Self::Switch => "SWITCH",
            Self::Gate => "GATE",
            Self::Scale => "SCALE",
            Self::Parallel => "PARALLEL",
            Self::Checkpoint => "CHECKPOINT",
        }
    }
}

/// A step as runs know it. A routing step that asks its own question is two nodes: the asking, then the routing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Unique in the chain and stable as long as the steps of the same key before it in its chain or track are, for
    /// example `Switch<Source>#0/Papers/SearchPapers#0`.
    pub id: String,
    /// What it does.
    pub kind: NodeKind,
    /// The junction's name, or else the id's last part without its number, for example `Switch<Source>`. Names no
    /// track, so that it may be shown where [`Self::withheld_by`] forbids the id.
    pub name: String,
    /// The id's part up to the name of the innermost parallel branch, for example `Parallel#0/embedding`.
    pub branch: Option<Arc<str>>,
    /// Names of the types that it needs in Memory.
    pub inputs: Vec<Arc<str>>,
    /// Names of the types that it puts into Memory.
    pub outputs: Vec<Arc<str>>,
    /// The outermost routing step with a sensitive question whose track the node is in: whoever may not see which track
    /// was taken may not see this node's id either.
    pub withheld_by: Option<NodeIndex>,
    /// Which chain it is part of: 0 is the train's own, `n + 1` the arena's track `n`.
    pub(super) scope: usize,
    /// Position of its step there. The asking and the routing of one step share it.
    pub(super) position: usize,
}

const NONE: &[&str] = &[];

/// A node before it has a place among others.
pub(super) struct Plain {
    pub(super) kind: NodeKind,
    pub(super) key: String,
    pub(super) inputs: Vec<Symbol>,
    pub(super) outputs: Vec<Symbol>,
}

/// The nodes that a step is, in order: one or, where a routing step asks its own question, two.
pub(super) fn nodes_of(step: &Step, names: &mut Names<'_>) -> Vec<Plain> {
    let one = match step {
        Step::Junction(junction) => calling(NodeKind::Chain, junction, names),
        Step::ShortCircuit(junction) => calling(NodeKind::ShortCircuit, junction, names),
        Step::Extract(Extract { from, to, .. }) => {
            plain(NodeKind::Extract, format!("Extract<{from}, {to}>"), &[from], &[to], names)
        }
        Step::Checkpoint(state) => {
            plain(NodeKind::Checkpoint, format!("Checkpoint<{state}>"), &[state], NONE, names)
        }
        Step::Parallel(_) => plain(NodeKind::Parallel, "Parallel".to_string(), NONE, NONE, names),
        Step::Decide(decide) => {
            let questions = decide.questions.iter().filter_map(|asked| names.question(&asked.key));
            let decisions: Vec<String> = questions.map(Question::decision_type).collect();
            asking(&decide.state, &decisions, names)
        }
        Step::Switch(switch) => return routing(NodeKind::Switch, Routing::Switch(switch), names),
        Step::Gate(gate) => return routing(NodeKind::Gate, Routing::Gate(gate), names),
        Step::Scale(scale) => return routing(NodeKind::Scale, Routing::Scale(scale), names),
    };
    vec![one]
}

/// The node that ends the train's own chain.
pub(super) fn resolve(output: &str, names: &mut Names<'_>) -> Plain {
    plain(NodeKind::Resolve, "Resolve".to_string(), &[output], NONE, names)
}

fn calling(kind: NodeKind, junction: &Junction, names: &mut Names<'_>) -> Plain {
    plain(kind, junction.name.clone(), &junction.inputs, &junction.outputs, names)
}

fn routing(kind: NodeKind, routing: Routing<'_>, names: &mut Names<'_>) -> Vec<Plain> {
    let question = names.question(routing.question());
    let decision = question.map_or_else(|| routing.decision_type(), Question::decision_type);
    let decisions = [decision];
    let asking = routing.asking().map(|asked| asking(&asked.state, &decisions, names));
    let taken = track_taken_type(routing.question());
    let routing = plain(kind, routing.key(), &decisions, &[taken], names);
    asking.into_iter().chain([routing]).collect()
}

fn asking(state: &str, decisions: &[String], names: &mut Names<'_>) -> Plain {
    plain(NodeKind::Decide, format!("Decide<{}>", decisions.join(", ")), &[state], decisions, names)
}

fn plain<I: AsRef<str>, O: AsRef<str>>(
    kind: NodeKind,
    key: String,
    inputs: &[I],
    outputs: &[O],
    names: &mut Names<'_>,
) -> Plain {
    let inputs = inputs.iter().map(|name| names.symbol(name.as_ref())).collect();
    let outputs = outputs.iter().map(|name| names.symbol(name.as_ref())).collect();
    Plain { kind, key, inputs, outputs }
}
