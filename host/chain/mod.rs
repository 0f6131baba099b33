//! A train as data: its declaration, its verification, its node ids and graph, and the walk of a run through it.
//!
//! Everything here is pure. The host owns the values between junctions; the walk says what comes next and is told what
//! came of it, and never waits for anything itself.
//!
//! - [`declaration`] is what a component says; [`schema`] and [`question`] check the parts that stand alone.
//! - [`verify`] turns a declaration into a [`Chain`] of [`node`]s with a [`graph`], or names all of its [`faults`].
//! - [`walk`] drives a run through a chain: [`next`] lists what it can ask for, [`route`] takes tracks by decisions,
//!   and [`memory`] holds the values.
//! - [`snapshot`] is a walk as data, so that a run can go on elsewhere.
//! - [`picture`] draws how far a run has come.
//! - [`resume`] says whether and where a run may start after a checkpoint of an earlier one.

pub mod declaration;
pub mod schema;
pub mod question;
mod names;
pub mod faults;
pub mod step;
pub mod node;
pub mod graph;
mod flow;
mod rules;
mod reader;
pub mod verify;
pub mod decision;
pub mod route;
pub mod memory;
pub mod next;
mod visit;
pub mod walk;
pub mod snapshot;
pub mod resume;
pub mod picture;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::chain::declaration::{Step, Track, Train};
use crate::chain::node::{Node, NodeIndex, NodeKind};
use crate::chain::reader::Layout;
use crate::chain::schema::Types;
use crate::chain::step::TrackUse;
use crate::model::question::Question;

/// A train that [`verify::verify`] found no fault in. Never changes; made once per version of a component and
/// shared by its runs.
#[derive(Debug)]
pub struct Chain {
    train: Train,
    types: Types,
    nodes: Vec<Node>,
    /// The nodes of the train's own chain, then those of each track of the arena.
    scopes: Vec<Vec<NodeIndex>>,
    questions: HashMap<String, usize>,
    ids: HashMap<String, NodeIndex>,
    graph: String,
    hash: String,
}

impl Chain {
    fn new(train: Train, types: Types, layout: Layout) -> Self {
        let keys = train.questions.iter().enumerate();
        let questions = keys.map(|(position, question)| (question.key.clone(), position)).collect();
        let Layout { nodes, scopes } = layout;
        let ids = scopes.iter().flatten().map(|index| (nodes[index.index()].id.clone(), *index));
        let ids = ids.collect();
        let (graph, hash) = (String::new(), String::new());
        let mut chain = Self { train, types, nodes, scopes, questions, ids, graph, hash };
        chain.graph = graph::text(&chain);
        chain.hash = graph::hash(&chain.graph);
        chain
    }

    /// The declaration it was made of.
    pub fn train(&self) -> &Train {
        &self.train
    }

    /// Its types: every value that enters a run's Memory is admitted by them.
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// A node of this chain.
    ///
    /// # Panics
    /// When the index comes from another chain.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.index()]
    }

    /// The node with this id.
    pub fn find(&self, id: &str) -> Option<NodeIndex> {
        self.ids.get(id).copied()
    }

    /// Every node in declared order; the last one is `Resolve#0`.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The canonical text of its graph; [`graph`] says what it holds.
    pub fn graph_json(&self) -> &str {
        &self.graph
    }

    /// SHA-256 of [`Self::graph_json`] in 64 lowercase hexadecimal digits. Equal for chains whose runs can continue
    /// each other's checkpoints.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The question with this key.
    pub fn question(&self, key: &str) -> Option<&Question> {
        self.questions.get(key).and_then(|position| self.train.questions.get(*position))
    }

    /// What each step asks in one call, in declared order: the decider that it names, and its questions in its words.
    pub fn askings(&self) -> impl Iterator<Item = (Option<&str>, Vec<Question>)> {
        let steps = self.train.tracks.iter().flat_map(|track| &track.steps);
        self.train.root.iter().chain(steps).filter_map(|step| {
            let asked = step.asked()?;
            let questions = asked.questions.iter().filter_map(|key| key.question(self)).collect();
            Some((asked.decider, questions))
        })
    }

    /// The step that a node stands for; none for `Resolve#0`.
    pub fn step(&self, node: &Node) -> Option<&Step> {
        let steps = match node.scope.checked_sub(1) {
            None => &self.train.root,
            Some(track) => &self.train.tracks.get(track)?.steps,
        };
        steps.get(node.position)
    }

    /// The nodes of the train's own chain (0) or of the arena's track `scope - 1`, in order.
    fn scope(&self, scope: usize) -> &[NodeIndex] {
        self.scopes.get(scope).map_or(&[], Vec::as_slice)
    }

    /// The tracks of a node that routes or forks. The asking before it has none of its own.
    fn tracks_of(&self, node: &Node) -> Vec<TrackUse> {
        let has_tracks = matches!(
            node.kind,
            NodeKind::Switch | NodeKind::Gate | NodeKind::Scale | NodeKind::Parallel
        );
        self.step(node).filter(|_| has_tracks).map(Step::tracks).unwrap_or_default()
    }

    /// A track of the arena.
    fn track(&self, track: u32) -> Option<&Track> {
        self.train.tracks.get(track as usize)
    }
}
