//! Reads a declaration's steps once, in order: names their faults, numbers their nodes and follows their values.

use std::collections::HashMap;
use std::sync::Arc;

use crate::chain::declaration::{Step, Train};
use crate::chain::faults::{Faults, Shown, cut};
use crate::chain::flow::{Added, Conflict, Flow};
use crate::chain::names::{Names, is_host_made};
use crate::chain::node::{NODE_ID_BYTES_MAX, Node, NodeIndex, NodeKind, Plain, nodes_of, resolve};
use crate::chain::rules::{StepRules, Surroundings};
use crate::chain::schema::Types;
use crate::chain::step::home;

/// How deep tracks may nest. A run keeps one frame per level, and a deeper chain cannot be read by a person.
pub(super) const TRACK_DEPTH_MAX: usize = 64;

/// A chain or track while its steps are read.
struct Scope {
    /// As [`Node::scope`].
    index: usize,
    depth: usize,
    /// What the ids of its nodes begin with.
    prefix: String,
    branch: Option<Arc<str>>,
    withheld_by: Option<NodeIndex>,
}

/// What reading gave: the nodes in declared order and, per chain and track, its own.
pub(super) struct Layout {
    pub(super) nodes: Vec<Node>,
    pub(super) scopes: Vec<Vec<NodeIndex>>,
}

/// Reads every step that the train's own chain leads to.
///
/// Invariant: a track is read at most once, so that time is linear in the declaration, and reading recurses at most
/// [`TRACK_DEPTH_MAX`] times, whatever a declaration says.
pub(super) fn read(train: &Train, types: Option<&Types>, faults: &mut Faults) -> Layout {
    let mut reader = Reader {
        train,
        names: Names::of(train),
        rules: StepRules::new(train, types),
        faults,
        flow: Flow::default(),
        used: vec![false; train.tracks.len()],
        is_cut: false,
        nodes: Vec::new(),
        scopes: vec![Vec::new(); train.tracks.len() + 1],
    };
    reader.train();
    Layout { nodes: reader.nodes, scopes: reader.scopes }
}

struct Reader<'a, 'f> {
    train: &'a Train,
    names: Names<'a>,
    rules: StepRules<'a>,
    faults: &'f mut Faults,
    flow: Flow,
    /// Per track of the arena, whether a step has it.
    used: Vec<bool>,
    /// Whether a track was not read, so that tracks only it leads to count for nothing.
    is_cut: bool,
    nodes: Vec<Node>,
    scopes: Vec<Vec<NodeIndex>>,
}

/// How often each key was given in one chain or track.
type Ordinals = HashMap<String, u32>;

impl<'a> Reader<'a, '_> {
    fn train(&mut self) {
        let scope =
            Scope { index: 0, depth: 0, prefix: String::new(), branch: None, withheld_by: None };
        let input = self.names.symbol(&self.train.input);
        self.flow.put(input);
        let mut ordinals = Ordinals::new();
        self.steps(&self.train.root, &scope, &mut ordinals);

        self.faults.at_train();
        let end = resolve(&self.train.output, &mut self.names);
        self.place(end, self.train.root.len(), &scope, &mut ordinals);
        if self.is_cut {
            return;
        }
        for (index, track) in self.train.tracks.iter().enumerate() {
            if !self.used[index] {
                let name = Shown(&track.name);
                self.faults.refuse(format_args!(
                    "the track {name} (index {index}) belongs to no step that the chain leads to."
                ));
            }
        }
    }

    fn steps(&mut self, steps: &'a [Step], scope: &Scope, ordinals: &mut Ordinals) {
        for (position, step) in steps.iter().enumerate() {
            let nodes = nodes_of(step, &mut self.names);
            let label = nodes.last().map(|node| cut(&node.key)).unwrap_or_default();
            self.faults.at_step(position + 1, label.as_str());
            let surroundings = Surroundings {
                is_in_branch: scope.branch.is_some(),
                withheld_by: scope.withheld_by.and_then(|node| self.nodes.get(node.index())),
                is_short_circuited: self.flow.is_short_circuited(),
            };
            self.rules.check(step, &self.names, &surroundings, self.faults);

            let mut placed = None;
            for node in nodes {
                placed = self.place(node, position, scope, ordinals);
            }
            let tracks = step.tracks();
            match placed {
                Some(node) if !tracks.is_empty() => {
                    let read: Vec<(u32, Added)> = tracks
                        .iter()
                        .filter_map(|used| {
                            let added = self.track(used.track, node, step, scope);
                            self.faults.at_step(position + 1, label.as_str());
                            added.map(|added| (used.track, added))
                        })
                        .collect();
                    self.join(step, read);
                }
                Some(_) => {}
                None => self.is_cut = true,
            }
        }
    }

    /// Gives a node its id and place, and follows its values.
    fn place(
        &mut self,
        plain: Plain,
        position: usize,
        scope: &Scope,
        ordinals: &mut Ordinals,
    ) -> Option<NodeIndex> {
        self.follow(&plain);
        let Plain { kind, key, inputs, outputs } = plain;
        let ordinal = ordinals.entry(key.clone()).or_default();
        let id = format!("{}{key}#{ordinal}", scope.prefix);
        *ordinal += 1;
        if id.len() > NODE_ID_BYTES_MAX {
            self.faults.refuse(format_args!(
                "its id is longer than {NODE_ID_BYTES_MAX} bytes. Ask fewer questions at once, nest fewer tracks or \
                 use shorter names."
            ));
            return None;
        }
        let index = NodeIndex(u32::try_from(self.nodes.len()).ok()?);
        self.nodes.push(Node {
            id,
            kind,
            name: key,
            branch: scope.branch.clone(),
            inputs: inputs.iter().map(|&symbol| self.names.text(symbol).clone()).collect(),
            outputs: outputs.iter().map(|&symbol| self.names.text(symbol).clone()).collect(),
            withheld_by: scope.withheld_by,
            scope: scope.index,
            position,
        });
        self.scopes[scope.index].push(index);
        Some(index)
    }

    /// Takes what a node needs from Memory and puts what it gives.
    fn follow(&mut self, node: &Plain) {
        for &symbol in &node.inputs {
            if self.flow.has(symbol) {
                continue;
            }
            let name = Shown(self.names.text(symbol));
            let is_possible = self.flow.may_have(symbol);
            let why = if is_possible { "not every path to it" } else { "nothing before it" };
            match node.kind {
                // What a refused step would have put is not known, and may be just this.
                NodeKind::Resolve if self.faults.has_refused_step() => {}
                NodeKind::Resolve if is_possible => self
                    .faults
                    .miss(format_args!("the chain ends without {name} in Memory on some paths.")),
                NodeKind::Resolve => {
                    self.faults.miss(format_args!("the chain ends without {name} in Memory."));
                }
                NodeKind::Checkpoint => {
                    self.faults
                        .miss(format_args!("checkpoints {name} and {why} puts one in Memory."));
                }
                _ => self
                    .faults
                    .miss(format_args!("needs {name} in Memory and {why} puts one there.")),
            }
        }
        for &symbol in &node.outputs {
            match node.kind {
                NodeKind::ShortCircuit => self.flow.short_circuit(symbol),
                _ => self.flow.put(symbol),
            }
        }
    }

    /// Reads a track of the step with this node, unless it cannot be one.
    fn track(&mut self, track: u32, node: NodeIndex, step: &Step, around: &Scope) -> Option<Added> {
        let index = track as usize;
        let count = self.train.tracks.len();
        let Some(declared) = self.train.tracks.get(index) else {
            self.faults.refuse(format_args!(
                "it names the track with index {index}, and the train has {count} tracks."
            ));
            return None;
        };
        let name = Shown(&declared.name);
        if std::mem::replace(&mut self.used[index], true) {
            self.faults.refuse(format_args!(
                "it names the track {name} (index {index}), which belongs to a step already. Declare one of its own."
            ));
            return None;
        }
        let id = &self.nodes[node.index()].id;
        let prefix_length = id.len() + declared.name.len() + 2;
        if around.depth >= TRACK_DEPTH_MAX || prefix_length > NODE_ID_BYTES_MAX {
            self.is_cut = true;
            self.faults.refuse(format_args!(
                "its track {name} is nested deeper than {TRACK_DEPTH_MAX} levels, or its id is longer than \
                 {NODE_ID_BYTES_MAX} bytes. Move work into junctions."
            ));
            return None;
        }
        let path = format!("{id}/{}", declared.name);
        let is_branch = matches!(step, Step::Parallel(_));
        let scope = Scope {
            index: home(track),
            depth: around.depth + 1,
            prefix: format!("{path}/"),
            branch: if is_branch { Some(path.into()) } else { around.branch.clone() },
            withheld_by: around.withheld_by.or_else(|| self.is_sensitive(step).then_some(node)),
        };
        self.faults.enter_track(if is_branch { "branch" } else { "track" }, &declared.name);
        let mark = self.flow.begin();
        self.steps(&declared.steps, &scope, &mut Ordinals::new());
        self.faults.leave_track();
        Some(self.flow.end(&mark))
    }

    /// Whether which track the step takes is withheld.
    fn is_sensitive(&self, step: &Step) -> bool {
        let question = step.routing().and_then(|routing| self.names.question(routing.question()));
        question.is_some_and(|question| question.sensitive)
    }

    /// Memory after the step is what its tracks leave.
    fn join(&mut self, step: &Step, read: Vec<(u32, Added)>) {
        let (tracks, added): (Vec<u32>, Vec<Added>) = read.into_iter().unzip();
        if !matches!(step, Step::Parallel(_)) {
            self.flow.join_tracks(added);
            return;
        }
        let names = &self.names;
        let conflicts = self.flow.join_branches(added, |symbol| is_host_made(names.text(symbol)));
        let branch = |position: usize| {
            let track =
                tracks.get(position).and_then(|&track| self.train.tracks.get(track as usize));
            track.map_or("", |track| track.name.as_str())
        };
        for (position, symbol, conflict) in conflicts {
            let (name, type_name) = (Shown(branch(position)), Shown(names.text(symbol)));
            match conflict {
                Conflict::Before => self.faults.refuse(format_args!(
                    "the branch {name} puts {type_name}, which may be in Memory before the branches start. Give it a \
                     type of its own."
                )),
                Conflict::Branch(other) => self.faults.refuse(format_args!(
                    "the branches {} and {name} both put {type_name}. Give each a type of its own.",
                    Shown(branch(other))
                )),
            }
        }
    }
}
