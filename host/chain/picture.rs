//! A run drawn on its chain: every step in declared order, and how far the run has come.
//!
//! A run records what it calls, asks and takes. What lies between, such as an extract, is drawn from where the run is.

use std::collections::{HashMap, HashSet};

use crate::chain::Chain;
use crate::chain::node::{Node, NodeIndex, NodeKind};
use crate::chain::step::home;

/// What is known of a run. Everything goes by node id.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// How the steps stand that were recorded.
    pub steps: HashMap<String, NodeState>,
    /// The tracks that routing steps took.
    pub tracks: HashMap<String, String>,
    /// The checkpoints it has stored, and still has.
    pub checkpoints: HashSet<String>,
    /// Whether it started after a checkpoint of another run, so that it did not do everything itself.
    pub is_resumed: bool,
    /// Whether it completed.
    pub is_completed: bool,
}

/// How a step stands in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// Done.
    Completed,
    /// The run failed here.
    Failed,
    /// The run was cancelled here.
    Cancelled,
    /// It goes on.
    InProgress,
    /// On a track that was not taken.
    Skipped,
    /// The run has not come here.
    NotReached,
    /// The run has passed it, and what it did was not recorded.
    NotRecorded,
    /// Done by an earlier run, which this one resumes.
    Restored,
}

impl NodeState {
    /// The name that programs know it by.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::InProgress => "IN_PROGRESS",
            Self::Skipped => "SKIPPED",
            Self::NotReached => "NOT_REACHED",
            Self::NotRecorded => "NOT_RECORDED",
            Self::Restored => "RESTORED",
        }
    }
}

/// A line of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'c> {
    /// A step.
    Node {
        /// How many tracks it is in.
        depth: usize,
        /// The step.
        node: &'c Node,
        /// How it stands.
        state: NodeState,
        /// The track that it took, unless that is withheld.
        taken: Option<&'c str>,
        /// Whether it has stored a checkpoint that is still there.
        is_stored: bool,
    },
    /// A track or a branch; its steps follow.
    Track {
        /// How many tracks it is in.
        depth: usize,
        /// Its name.
        name: &'c str,
        /// Whether the run took it; `None`: it has not come that far.
        is_taken: Option<bool>,
    },
    /// The tracks of a step whose question is sensitive: which was taken is not shown, nor anything in it.
    Withheld {
        /// How many tracks it is in.
        depth: usize,
    },
}

/// The lines, in declared order.
pub fn picture<'c>(chain: &'c Chain, known: &Known) -> Vec<Line<'c>> {
    let mut painter = Painter { chain, known, lines: Vec::new() };
    painter.steps(chain.scope(0), 0, Passage::of(known.is_completed));
    painter.lines
}

/// How the run stands to a row of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    /// It is past them.
    Through,
    /// It has come no further than them.
    Inside,
    /// It goes another way.
    Beside,
}

impl Passage {
    const fn of(is_through: bool) -> Self {
        if is_through { Self::Through } else { Self::Inside }
    }
}

struct Painter<'c, 'k> {
    chain: &'c Chain,
    known: &'k Known,
    lines: Vec<Line<'c>>,
}

impl<'c> Painter<'c, '_> {
    /// Recurses once per level of tracks, of which verification allows few.
    fn steps(&mut self, nodes: &'c [NodeIndex], depth: usize, passage: Passage) {
        let last = nodes.iter().rposition(|node| self.is_reached(self.chain.node(*node)));
        for (position, index) in nodes.iter().enumerate() {
            let node = self.chain.node(*index);
            let passage = match passage {
                Passage::Inside => Passage::of(last.is_some_and(|last| position < last)),
                other => other,
            };
            self.lines.push(Line::Node {
                depth,
                node,
                state: self.state(node, passage),
                taken: self.taken(*index),
                is_stored: self.known.checkpoints.contains(&node.id),
            });
            self.tracks(*index, depth + 1, passage);
        }
    }

    fn tracks(&mut self, index: NodeIndex, depth: usize, passage: Passage) {
        let node = self.chain.node(index);
        if self.is_withheld(index) {
            self.lines.push(Line::Withheld { depth });
            return;
        }
        let taken = self.taken(index);
        for (name, nodes) in self.tracks_of(node) {
            let is_taken = match (node.kind, passage) {
                (_, Passage::Beside) => Some(false),
                (NodeKind::Parallel, Passage::Through) => Some(true),
                (NodeKind::Parallel, Passage::Inside) => self.is_reached(node).then_some(true),
                (_, Passage::Through | Passage::Inside) => taken.map(|taken| taken == name),
            };
            self.lines.push(Line::Track { depth, name, is_taken });
            let inner = match is_taken {
                Some(true) => passage,
                Some(false) => Passage::Beside,
                // Which track was taken is in the record of the run that took it.
                None => Passage::Inside,
            };
            self.steps(nodes, depth, inner);
        }
    }

    /// The track that a routing step took, if that may be told.
    fn taken(&self, index: NodeIndex) -> Option<&'c str> {
        let node = self.chain.node(index);
        let taken = self.known.tracks.get(&node.id).filter(|_| !self.is_withheld(index))?;
        self.tracks_of(node).into_iter().map(|(name, _)| name).find(|name| name == taken)
    }

    /// Whether nobody may be told which track was taken.
    fn is_withheld(&self, index: NodeIndex) -> bool {
        let tracks = self.tracks_of(self.chain.node(index));
        let mut inside = tracks.iter().flat_map(|(_, nodes)| nodes.iter());
        inside.any(|inner| self.chain.node(*inner).withheld_by == Some(index))
    }

    fn state(&self, node: &Node, passage: Passage) -> NodeState {
        if let Some(state) = self.known.steps.get(&node.id).filter(|_| passage != Passage::Beside) {
            return *state;
        }
        let is_recorded =
            matches!(node.kind, NodeKind::Chain | NodeKind::ShortCircuit | NodeKind::Decide);
        match passage {
            Passage::Beside => NodeState::Skipped,
            Passage::Through if !is_recorded => NodeState::Completed,
            Passage::Through if self.known.is_resumed => NodeState::Restored,
            Passage::Through => NodeState::NotRecorded,
            Passage::Inside if self.known.checkpoints.contains(&node.id) => NodeState::Completed,
            Passage::Inside => self.worst_inside(node).unwrap_or(NodeState::NotReached),
        }
    }

    /// How a step stands whose branches the run is in, by what is in them.
    fn worst_inside(&self, node: &Node) -> Option<NodeState> {
        let mut found = None;
        for (_, nodes) in self.tracks_of(node) {
            for inner in nodes {
                let inner = self.chain.node(*inner);
                let recorded = self.known.steps.get(&inner.id).copied();
                let state = recorded.or_else(|| self.worst_inside(inner));
                found = match (found, state) {
                    (Some(NodeState::Failed), _) | (_, Some(NodeState::Failed)) => {
                        Some(NodeState::Failed)
                    }
                    (Some(NodeState::Cancelled), _) | (_, Some(NodeState::Cancelled)) => {
                        Some(NodeState::Cancelled)
                    }
                    (None, None) => None,
                    _ => Some(NodeState::InProgress),
                };
            }
        }
        found
    }

    /// Whether the run has come to a step, or into it.
    fn is_reached(&self, node: &Node) -> bool {
        self.known.steps.contains_key(&node.id)
            || self.known.checkpoints.contains(&node.id)
            || self.tracks_of(node).iter().any(|(_, nodes)| {
                nodes.iter().any(|inner| self.is_reached(self.chain.node(*inner)))
            })
    }

    fn tracks_of(&self, node: &Node) -> Vec<(&'c str, &'c [NodeIndex])> {
        let named = self.chain.tracks_of(node).into_iter().filter_map(|used| {
            let track = self.chain.track(used.track)?;
            Some((track.name.as_str(), self.chain.scope(home(used.track))))
        });
        named.collect()
    }
}
