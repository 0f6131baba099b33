//! Whether every step from a point on finds in Memory what a run from the top would give it, whichever tracks both
//! take.

use std::collections::{BTreeSet, HashMap};

use crate::chain::Chain;
use crate::chain::declaration::Step;
use crate::chain::names::is_host_made;
use crate::chain::node::{Node, NodeIndex, NodeKind};
use crate::chain::resume::places::{Part, Places, each, position, scopes_of};
use crate::chain::resume::{Code, Point, Refusal, Start};
use crate::model::value::track_taken_type;

/// The most values that a refusal names.
const NAMED_MAX: usize = 20;

/// What a type's value may be in a resumed run, next to a run from the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status(u8);

impl Status {
    const SAME: Self = Self(1);
    const OLDER: Self = Self(2);
    const ABSENT: Self = Self(4);

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn may_be(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Memory of a resumed run, and what changed it, so that a track can be taken out again without copying it.
#[derive(Default)]
struct Held<'c> {
    statuses: HashMap<&'c str, Status>,
    changes: Vec<(&'c str, Status)>,
}

impl<'c> Held<'c> {
    fn get(&self, name: &str) -> Status {
        self.statuses.get(name).copied().unwrap_or(Status::ABSENT)
    }

    fn set(&mut self, name: &'c str, status: Status) {
        let before = self.get(name);
        if before != status {
            self.statuses.insert(name, status);
            self.changes.push((name, before));
        }
    }

    /// Takes back what changed since there were this many changes, and gives what it had become.
    fn take_back(&mut self, changes: usize) -> HashMap<&'c str, Status> {
        let mut became = HashMap::new();
        for (name, before) in self.changes.split_off(changes).into_iter().rev() {
            let now = self.statuses.insert(name, before);
            became.entry(name).or_insert(now.unwrap_or(Status::ABSENT));
        }
        became
    }
}

/// Follows every path from the point to the end of the chain.
///
/// # Errors
/// [`Code::MissingInput`] or [`Code::StaleValue`], with every step that lacks a value or reads an older one.
pub(super) fn follow(chain: &Chain, places: &Places, point: &Point) -> Result<(), Refusal> {
    let mut flow = Flow {
        chain,
        places,
        branches: &point.branches,
        held: Held::default(),
        lost_result: None,
        faults: Vec::new(),
        seen: BTreeSet::new(),
    };
    flow.restore(point);
    let parts = match point.start {
        Start::Top => vec![Part { scope: 0, positions: 0..chain.scope(0).len() }],
        Start::After(checkpoint) => places.from(chain, checkpoint, true),
        Start::At(node) => places.from(chain, node, false),
    };
    for part in parts {
        flow.part(&part);
    }
    flow.verdict()
}

struct Flow<'c> {
    chain: &'c Chain,
    places: &'c Places,
    branches: &'c [NodeIndex],
    held: Held<'c>,
    /// The short circuit before the point whose result is gone.
    lost_result: Option<&'c str>,
    faults: Vec<(Code, String)>,
    seen: BTreeSet<(&'c str, &'c str)>,
}

impl<'c> Flow<'c> {
    /// Memory at the point.
    fn restore(&mut self, point: &Point) {
        let chain = self.chain;
        let input: &'c str = &chain.train().input;
        self.held.set(input, Status::SAME);
        let mut before = Vec::new();
        let mut between = Vec::new();
        match (point.main, point.start) {
            (Some(main), start) => {
                before = self.places.before(chain, main);
                if let Start::At(at) = start {
                    between = self.between(main, at);
                }
            }
            (None, Start::At(at)) => between = self.places.before(chain, at),
            (None, Start::Top | Start::After(_)) => {}
        }
        for part in &before {
            let replaced = &mut |node: &'c Node, _| {
                if node.outputs.iter().any(|output| **output == *input) {
                    self.held.set(input, Status::OLDER);
                }
            };
            each(chain, part, replaced);
        }
        if let Some(main) = point.main {
            self.open_tracks(|node| node < main, false);
            self.state_of(main);
        }
        for part in &between {
            let replaced = &mut |node: &'c Node, is_in_branch: bool| {
                if node.kind == NodeKind::ShortCircuit {
                    self.lost_result.get_or_insert(&node.id);
                }
                for output in &node.outputs {
                    let stays = is_in_branch && is_host_made(output);
                    if !stays && self.held.get(output) != Status::ABSENT {
                        self.held.set(output, Status::OLDER);
                    }
                }
            };
            each(chain, part, replaced);
        }
    }

    /// What a run does after a checkpoint and before a node in the same scope, or one around it.
    fn between(&self, main: NodeIndex, at: NodeIndex) -> Vec<Part> {
        let (chain, scope) = (self.chain, self.chain.node(at).scope);
        let after = self.places.from(chain, main, true);
        let mut parts = Vec::new();
        for mut part in after {
            let is_last = part.scope == scope;
            if is_last {
                part.positions.end = position(chain, at);
            }
            parts.push(part);
            if is_last {
                break;
            }
        }
        parts
    }

    /// The tracks that a checkpoint restores: those of questions that are not sensitive.
    fn open_tracks(&mut self, is_before: impl Fn(NodeIndex) -> bool, is_in_branch: bool) {
        let chain = self.chain;
        for (position, node) in chain.nodes().iter().enumerate() {
            let Some(routing) = chain.step(node).and_then(Step::routing) else { continue };
            let is_open = chain.question(routing.question()).is_some_and(|it| !it.sensitive);
            let index = u32::try_from(position).map(NodeIndex);
            let is_stored = index.is_ok_and(&is_before) && (is_in_branch || node.branch.is_none());
            let taken = track_taken_type(routing.question());
            let output = node.outputs.iter().find(|output| ***output == *taken);
            if let Some(output) = output.filter(|_| is_open && is_stored) {
                self.held.set(output, Status::SAME);
            }
        }
    }

    fn state_of(&mut self, checkpoint: NodeIndex) {
        if let Some(state) = self.chain.node(checkpoint).inputs.first() {
            self.held.set(state, Status::SAME);
        }
    }

    fn part(&mut self, part: &Part) {
        let chain = self.chain;
        for index in chain.scope(part.scope).get(part.positions.clone()).unwrap_or_default() {
            self.node(*index);
        }
    }

    fn node(&mut self, index: NodeIndex) {
        let node = self.chain.node(index);
        for input in &node.inputs {
            self.read(node, input);
        }
        if let Some(short_circuit) = self.lost_result.filter(|_| node.kind == NodeKind::Resolve) {
            let message = format!(
                "'{}' reads the result, which a step before the resume point, '{short_circuit}', may have given; a \
                 resumed run would not have it.",
                node.id
            );
            self.faults.push((Code::StaleValue, message));
        }
        for output in &node.outputs {
            let status = match node.kind {
                // One that fails puts nothing.
                NodeKind::ShortCircuit => self.held.get(output).or(Status::SAME),
                _ => Status::SAME,
            };
            self.held.set(output, status);
        }
        let scopes = scopes_of(self.chain, index);
        match node.kind {
            NodeKind::Parallel => self.branches(index, &scopes),
            _ if !scopes.is_empty() => self.tracks(&scopes),
            _ => {}
        }
    }

    fn read(&mut self, node: &'c Node, name: &'c str) {
        let status = self.held.get(name);
        let (code, message) = if status.may_be(Status::ABSENT) {
            let why = "in Memory, and no checkpoint before the resume point holds one.";
            (Code::MissingInput, format!("'{}' needs '{name}' {why}", node.id))
        } else if status.may_be(Status::OLDER) {
            let why = "which a step before the resume point replaced; a resumed run would hold the older value.";
            (Code::StaleValue, format!("'{}' reads '{name}', {why}", node.id))
        } else {
            return;
        };
        if self.seen.insert((&node.id, name)) {
            self.faults.push((code, message));
        }
    }

    /// One of the tracks is taken.
    fn tracks(&mut self, scopes: &[usize]) {
        let mut joined: HashMap<&'c str, (Status, usize)> = HashMap::new();
        for scope in scopes {
            let changes = self.held.changes.len();
            self.part(&Part { scope: *scope, positions: 0..self.chain.scope(*scope).len() });
            for (name, status) in self.held.take_back(changes) {
                let (all, count) = joined.entry(name).or_insert((status, 0));
                *all = all.or(status);
                *count += 1;
            }
        }
        for (name, (status, count)) in joined {
            let is_in_all = count == scopes.len();
            let status = if is_in_all { status } else { status.or(self.held.get(name)) };
            self.held.set(name, status);
        }
    }

    /// All of the branches run, from their starts or their checkpoints, and what each put is joined.
    fn branches(&mut self, parallel: NodeIndex, scopes: &[usize]) {
        let mut joined = Vec::new();
        for scope in scopes {
            let changes = self.held.changes.len();
            let all = Part { scope: *scope, positions: 0..self.chain.scope(*scope).len() };
            match self.held_in(*scope, parallel) {
                Some(checkpoint) => {
                    self.open_tracks(|node| node < checkpoint, true);
                    self.state_of(checkpoint);
                    let mut parts = self.places.from(self.chain, checkpoint, true);
                    let last = parts.iter().position(|part| part.scope == *scope);
                    parts.truncate(last.map_or(0, |last| last + 1));
                    for part in &parts {
                        self.part(part);
                    }
                }
                None => self.part(&all),
            }
            let became = self.held.take_back(changes);
            joined.extend(became.into_iter().filter(|(name, _)| !is_host_made(name)));
        }
        for (name, status) in joined {
            self.held.set(name, status);
        }
    }

    /// The checkpoint of a branch that is restored.
    fn held_in(&self, branch: usize, parallel: NodeIndex) -> Option<NodeIndex> {
        let is_inside = |node: &&NodeIndex| {
            **node > parallel && self.places.around(self.chain, **node).contains(&branch)
        };
        self.branches.iter().find(is_inside).copied()
    }

    fn verdict(self) -> Result<(), Refusal> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let is_missing = self.faults.iter().any(|(code, _)| *code == Code::MissingInput);
        let code = if is_missing { Code::MissingInput } else { Code::StaleValue };
        let more = self.faults.len().saturating_sub(NAMED_MAX);
        let named = self.faults.into_iter().take(NAMED_MAX).map(|(_, message)| message);
        let mut named: Vec<String> = named.collect();
        if more > 0 {
            named.push(format!("{more} more steps are like these."));
        }
        Err(Refusal::new(code, named.join(" ")))
    }
}
