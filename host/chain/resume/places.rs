//! Where nodes stand: the scopes around each, and the node that leads to each scope.

use std::ops::Range;

use crate::chain::Chain;
use crate::chain::declaration::Step;
use crate::chain::node::{Node, NodeIndex, NodeKind};
use crate::chain::step::home;

/// The node that leads to each scope of a chain.
pub(super) struct Places {
    parents: Vec<Option<NodeIndex>>,
}

/// A part of a scope: the nodes at these positions.
pub(super) struct Part {
    pub(super) scope: usize,
    pub(super) positions: Range<usize>,
}

impl Places {
    pub(super) fn of(chain: &Chain) -> Self {
        let mut parents = vec![None; chain.scopes.len()];
        for index in chain.scopes.iter().flatten() {
            for scope in scopes_of(chain, *index) {
                if let Some(parent) = parents.get_mut(scope) {
                    *parent = Some(*index);
                }
            }
        }
        Self { parents }
    }

    /// The scopes around a node, the train's own chain first, the node's own last.
    pub(super) fn around(&self, chain: &Chain, index: NodeIndex) -> Vec<usize> {
        let own = chain.node(index).scope;
        let outer = |scope: &usize| {
            let parent = self.parents.get(*scope).copied().flatten();
            parent.map(|parent| chain.node(parent).scope)
        };
        let mut scopes: Vec<usize> = std::iter::successors(Some(own), outer).collect();
        scopes.reverse();
        scopes
    }

    /// The node that leads to a scope; none for the train's own chain.
    pub(super) fn parent(&self, scope: usize) -> Option<NodeIndex> {
        self.parents.get(scope).copied().flatten()
    }

    /// What comes before a node on the way to it, in order: in each scope around it, what stands before the step that
    /// leads on.
    pub(super) fn before(&self, chain: &Chain, index: NodeIndex) -> Vec<Part> {
        let scopes = self.around(chain, index);
        let ends = scopes.iter().skip(1).map(|scope| self.parent(*scope)).chain([Some(index)]);
        let part = |(scope, end): (&usize, Option<NodeIndex>)| Part {
            scope: *scope,
            positions: 0..end.map_or(0, |end| position(chain, end)),
        };
        scopes.iter().zip(ends).map(part).collect()
    }

    /// What comes from a place on, in order: the rest of its scope, then what follows in each scope around it.
    pub(super) fn from(&self, chain: &Chain, index: NodeIndex, is_after: bool) -> Vec<Part> {
        let mut scopes = self.around(chain, index);
        scopes.reverse();
        let after = |parent: NodeIndex| position(chain, parent) + 1;
        let outer = scopes.iter().filter_map(|scope| self.parent(*scope)).map(after);
        let first = position(chain, index) + usize::from(is_after);
        let part = |(scope, first): (&usize, usize)| Part {
            scope: *scope,
            positions: first..chain.scope(*scope).len(),
        };
        scopes.iter().zip([first].into_iter().chain(outer)).map(part).collect()
    }
}

/// Where a node stands in its scope.
pub(super) fn position(chain: &Chain, index: NodeIndex) -> usize {
    chain.scope(chain.node(index).scope).partition_point(|other| *other < index)
}

/// The scopes that a node leads to.
pub(super) fn scopes_of(chain: &Chain, index: NodeIndex) -> Vec<usize> {
    let node = chain.node(index);
    let leads_on = matches!(
        node.kind,
        NodeKind::Switch | NodeKind::Gate | NodeKind::Scale | NodeKind::Parallel
    );
    let tracks = chain.step(node).filter(|_| leads_on).map(Step::tracks).unwrap_or_default();
    tracks.iter().map(|used| home(used.track)).collect()
}

/// Every node of a part, and of the tracks and branches that it leads to; told whether it is in a branch of the part.
pub(super) fn each<'c>(chain: &'c Chain, part: &Part, visit: &mut impl FnMut(&'c Node, bool)) {
    inside(chain, part.scope, part.positions.clone(), false, visit);
}

fn inside<'c>(
    chain: &'c Chain,
    scope: usize,
    positions: Range<usize>,
    is_in_branch: bool,
    visit: &mut impl FnMut(&'c Node, bool),
) {
    for index in chain.scope(scope).get(positions).unwrap_or_default() {
        let node = chain.node(*index);
        visit(node, is_in_branch);
        let is_in_branch = is_in_branch || node.kind == NodeKind::Parallel;
        for scope in scopes_of(chain, *index) {
            inside(chain, scope, 0..chain.scope(scope).len(), is_in_branch, visit);
        }
    }
}
