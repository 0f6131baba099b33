//! Steps that run branches beside each other.

use crate::bindings::trax::train::declaration::{BranchFailure, Parallel, Step};
use crate::chain::Chain;

/// The branches of a parallel step. Each has a name, and what they give must not overlap.
pub struct Branches<'a> {
    chain: &'a mut Chain,
    tracks: Vec<u32>,
    on_failure: BranchFailure,
}

impl<'a> Branches<'a> {
    pub(crate) fn new(chain: &'a mut Chain) -> Self {
        Self { chain, tracks: Vec::new(), on_failure: BranchFailure::CancelSiblings }
    }

    /// Adds a branch.
    pub fn branch(mut self, name: &str, steps: impl FnOnce(&mut Chain) -> &mut Chain) -> Self {
        let branch = self.chain.track(name, steps);
        self.tracks.push(branch);
        self
    }

    /// Describes the branch before it, for operators.
    pub fn described(self, description: &str) -> Self {
        self.chain.describe_track(description);
        self
    }

    /// When a branch fails the others run to their end. Without this they are cancelled.
    pub fn wait_for_all(mut self) -> Self {
        self.on_failure = BranchFailure::WaitForAll;
        self
    }

    pub(crate) fn finish(self) {
        let Self { chain, tracks, on_failure } = self;
        chain.declare(|_| Step::Parallel(Parallel { branches: tracks, on_failure }));
    }
}
