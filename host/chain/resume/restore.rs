//! The walk of a run that starts after a checkpoint. It skips in place: nothing before its point runs, asks or stores
//! anything, and everything after it has the ids and occurrences that it would have in a run from the top.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::decision::track_taken_value;
use crate::chain::declaration::Step;
use crate::chain::memory::Memory;
use crate::chain::next::Routed;
use crate::chain::node::{NodeIndex, NodeKind};
use crate::chain::resume::places::{Part, Places, scopes_of};
use crate::chain::resume::tracks::{self, Taken};
use crate::chain::resume::{Code, Point, Refusal, Start};
use crate::chain::walk::{Frame, Walk};
use crate::model::value::Value;

/// A checkpoint read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Its node.
    pub node: NodeIndex,
    /// Its state.
    pub state: Value,
    /// The tracks taken before it, those of sensitive questions left out.
    pub tracks: Vec<Routed>,
}

impl Restored {
    /// Reads a checkpoint back from what was stored.
    ///
    /// # Errors
    /// [`Code::Unreadable`]; the reason does not quote the state.
    pub fn read(
        chain: &Chain,
        node: NodeIndex,
        state: &str,
        tracks: &str,
    ) -> Result<Self, Refusal> {
        let name = chain.node(node).inputs.first().cloned().unwrap_or_default();
        let unreadable = |detail: &str| {
            let id = &chain.node(node).id;
            let message =
                format!("The checkpoint '{id}' could not be read back as '{name}': {detail}");
            Refusal::new(Code::Unreadable, message)
        };
        let state = chain.types().admit(&name, state);
        let state = state.map_err(|fault| unreadable(&fault.to_string()))?;
        let tracks = tracks::from_json(chain, tracks);
        let tracks = tracks.ok_or_else(|| unreadable("its tracks are not those of the chain"))?;
        Ok(Self { node, state, tracks })
    }
}

/// A branch that starts after its own checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chain) struct BranchStart {
    pub(in crate::chain) restored: Restored,
    /// How often each question was asked before it in the branch.
    pub(in crate::chain) askings: BTreeMap<Arc<str>, u32>,
}

impl Walk {
    /// A run that starts at a point which [`super::check`] allowed, on the input of the run it resumes. `taken` has the
    /// tracks of the routing steps that are skipped, as far as they are known: only occurrences depend on them.
    pub fn resume(
        chain: Arc<Chain>,
        input: Value,
        point: &Point,
        restored: Vec<Restored>,
        taken: &Taken,
    ) -> Self {
        let places = Places::of(&chain);
        let skipped = match point.start {
            Start::Top => Vec::new(),
            Start::After(node) | Start::At(node) => places.before(&chain, node),
        };
        let mut memory = Memory::of(input);
        let mut branches = Vec::new();
        for checkpoint in restored {
            if Some(checkpoint.node) == point.main {
                memory.restore(&checkpoint, &checkpoint.tracks);
            } else {
                let mut askings = BTreeMap::new();
                let inside = inside_branch(&chain, &places, checkpoint.node);
                count(&chain, &inside, taken, &mut askings);
                branches.push(BranchStart { restored: checkpoint, askings });
            }
        }
        let mut askings = BTreeMap::new();
        count(&chain, &skipped, taken, &mut askings);
        memory.count_askings(&askings);
        let mut walk = Self::at(chain, 0, memory);
        if !skipped.is_empty() {
            walk.frames = frames(&skipped, matches!(point.start, Start::After(_)));
        }
        walk.branches = branches;
        walk
    }

    /// The walk of a branch that forks off this Memory: from its start, or after its checkpoint.
    pub(in crate::chain) fn branch(&self, home: usize, shared: Arc<Memory>) -> Self {
        let mut memory = Memory::over(shared);
        let chain = Arc::clone(&self.chain);
        let path = chain.scope(home).first().and_then(|first| chain.node(*first).branch.clone());
        let is_of_it = |start: &&BranchStart| chain.node(start.restored.node).branch == path;
        let start = self.branches.iter().find(is_of_it).filter(|_| path.is_some());
        let Some(BranchStart { restored, askings }) = start else {
            return Self::at(chain, home, memory);
        };
        let before: Vec<NodeIndex> = memory.tracks().iter().map(|routed| routed.node).collect();
        let own = restored.tracks.iter().filter(|routed| !before.contains(&routed.node));
        memory.restore(restored, &own.cloned().collect::<Vec<_>>());
        memory.count_askings(askings);
        let inside = inside_branch(&chain, &Places::of(&chain), restored.node);
        let mut walk = Self::at(Arc::clone(&chain), home, memory);
        walk.frames = frames(&inside, true);
        walk
    }
}

impl Memory {
    /// Puts what a checkpoint holds; of its tracks, these count as this Memory's own.
    fn restore(&mut self, checkpoint: &Restored, own: &[Routed]) {
        self.put(checkpoint.state.clone());
        for routed in &checkpoint.tracks {
            self.put(track_taken_value(routed));
        }
        for routed in own {
            self.take_track(routed.clone());
        }
    }
}

/// A frame for each scope on the way to a node, given what comes before it.
fn frames(before: &[Part], is_after: bool) -> Vec<Frame> {
    let last = before.len().saturating_sub(1);
    let frame = |(level, part): (usize, &Part)| Frame {
        scope: part.scope,
        position: part.positions.end + usize::from(level < last || is_after),
    };
    before.iter().enumerate().map(frame).collect()
}

/// What comes before a node in its branch.
fn inside_branch(chain: &Chain, places: &Places, node: NodeIndex) -> Vec<Part> {
    let path = &chain.node(node).branch;
    let mut parts = places.before(chain, node);
    let is_inside = |part: &Part| {
        chain.scope(part.scope).first().is_some_and(|it| chain.node(*it).branch == *path)
    };
    let first = parts.iter().position(is_inside).unwrap_or(parts.len());
    parts.split_off(first)
}

/// Counts what the skipped parts asked, in the tracks that were taken. Branches count for themselves.
fn count(chain: &Chain, parts: &[Part], taken: &Taken, askings: &mut BTreeMap<Arc<str>, u32>) {
    for part in parts {
        for index in chain.scope(part.scope).get(part.positions.clone()).unwrap_or_default() {
            count_node(chain, *index, taken, askings);
        }
    }
}

fn count_node(
    chain: &Chain,
    index: NodeIndex,
    taken: &Taken,
    askings: &mut BTreeMap<Arc<str>, u32>,
) {
    let node = chain.node(index);
    let step = chain.step(node);
    if node.kind == NodeKind::Decide {
        for asked in step.and_then(Step::asked).map(|asked| asked.questions).unwrap_or_default() {
            *askings.entry(asked.key.into()).or_default() += 1;
        }
    }
    if node.kind == NodeKind::Parallel {
        return;
    }
    let Some(track) = taken.get(&index) else { return };
    let is_taken = |scope: &usize| {
        let declared = scope.checked_sub(1).and_then(|track| u32::try_from(track).ok());
        declared.and_then(|index| chain.track(index)).is_some_and(|it| it.name == *track)
    };
    for scope in scopes_of(chain, index).into_iter().filter(is_taken) {
        let all = Part { scope, positions: 0..chain.scope(scope).len() };
        count(chain, &[all], taken, askings);
    }
}
