//! A walk as plain data, so that a run can stop on one host and go on, on another.
//!
//! A walk that waits for a reply is taken as standing before the step that waits: continued, it runs that step again.
//! Nothing before it runs again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chain::Chain;
use crate::chain::declaration::Step;
use crate::chain::memory::Memory;
use crate::chain::next::Routed;
use crate::chain::node::NodeIndex;
use crate::chain::resume::restore::{BranchStart, Restored};
use crate::chain::walk::{Frame, Phase, Reply, Walk};
use crate::model::value::Value;

/// A run between two steps, with all it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    chain_hash: String,
    /// Scope and position of the next node, innermost last.
    frames: Vec<(usize, usize)>,
    values: BTreeMap<String, String>,
    tracks: Vec<Taken>,
    askings: BTreeMap<String, u32>,
    result: Option<(String, String)>,
    /// Branches that start after a checkpoint of an earlier run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    branches: Vec<Branch>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Branch {
    node: usize,
    state: (String, String),
    tracks: Vec<Taken>,
    askings: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    node: usize,
    question_key: String,
    track: String,
    fallback_reason: Option<String>,
}

/// Why a run cannot go on from a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RestoreError {
    /// It was taken of another chain.
    #[error("it was taken of the chain {0}, which is another")]
    OtherChain(String),
    /// It names steps that the chain does not have.
    #[error("it names steps that the chain does not have")]
    OutOfBounds,
}

impl Walk {
    /// The run as it stands, or as it stood before the step that waits. `None` when it has ended, and for a branch:
    /// a run that stops in branches goes on before they forked.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let mut frames: Vec<(usize, usize)> =
            self.frames.iter().map(|frame| (frame.scope, frame.position)).collect();
        let mut memory = self.memory.clone();
        match &self.phase {
            Phase::Ended(_) => return None,
            Phase::Ready => {}
            Phase::Waiting(reply) => {
                let (_, position) = frames.last_mut()?;
                *position = position.checked_sub(1)?;
                match reply {
                    Reply::Returned(_) | Reply::Stored(_) => {}
                    Reply::Joined(_, shared) => memory = Memory::clone(shared),
                    Reply::Answered(node) => self.uncount(*node, &mut memory),
                }
            }
        }
        let (values, routed, askings) = memory.into_parts()?;
        let text = |value: Value| (value.type_name.to_string(), value.json.to_string());
        Some(Snapshot {
            chain_hash: self.chain.hash().to_owned(),
            frames,
            values: values.into_iter().map(text).collect(),
            tracks: routed.into_iter().map(Taken::of).collect(),
            askings: askings.into_iter().map(|(key, count)| (key.to_string(), count)).collect(),
            result: self.result.clone().map(text),
            branches: self.branches.iter().cloned().map(Branch::of).collect(),
        })
    }

    /// A run that goes on from a snapshot of the same chain.
    ///
    /// # Errors
    /// [`RestoreError`] when the chain is another one.
    pub fn restore(chain: Arc<Chain>, snapshot: Snapshot) -> Result<Self, RestoreError> {
        if chain.hash() != snapshot.chain_hash {
            return Err(RestoreError::OtherChain(snapshot.chain_hash));
        }
        let is_inside = |(scope, position): &(usize, usize)| {
            *scope <= chain.train().tracks.len() && *position <= chain.scope(*scope).len()
        };
        let tracks: Option<Vec<Routed>> =
            snapshot.tracks.into_iter().map(|taken| taken.routed(&chain)).collect();
        let branches: Option<Vec<BranchStart>> =
            snapshot.branches.into_iter().map(|branch| branch.start(&chain)).collect();
        let (true, Some(tracks), Some(branches)) =
            (snapshot.frames.iter().all(is_inside), tracks, branches)
        else {
            return Err(RestoreError::OutOfBounds);
        };
        let value = |(name, json): (String, String)| Value::new(name, json);
        let memory = Memory::from_parts(
            snapshot.values.into_iter().map(value),
            tracks,
            snapshot.askings.into_iter().map(|(key, count)| (key.into(), count)).collect(),
        );
        let mut walk = Self::at(chain, 0, memory);
        let frame = |(scope, position)| Frame { scope, position };
        walk.frames = snapshot.frames.into_iter().map(frame).collect();
        walk.result = snapshot.result.map(value);
        walk.branches = branches;
        Ok(walk)
    }

    /// The askings of a step that got no answers will be asked, and counted, again.
    fn uncount(&self, node: NodeIndex, memory: &mut Memory) {
        let step = self.chain.step(self.chain.node(node));
        for asked in step.and_then(Step::asked).map(|asked| asked.questions).unwrap_or_default() {
            memory.uncount_asking(asked.key);
        }
    }
}

impl Branch {
    fn of(start: BranchStart) -> Self {
        let BranchStart { restored: Restored { node, state, tracks }, askings } = start;
        Self {
            node: node.index(),
            state: (state.type_name.to_string(), state.json.to_string()),
            tracks: tracks.into_iter().map(Taken::of).collect(),
            askings: askings.into_iter().map(|(key, count)| (key.to_string(), count)).collect(),
        }
    }

    fn start(self, chain: &Chain) -> Option<BranchStart> {
        let node = index(chain, self.node)?;
        let tracks = self.tracks.into_iter().map(|taken| taken.routed(chain));
        let (name, json) = self.state;
        let restored = Restored {
            node,
            state: Value::new(name, json),
            tracks: tracks.collect::<Option<_>>()?,
        };
        let askings = self.askings.into_iter().map(|(key, count)| (key.into(), count)).collect();
        Some(BranchStart { restored, askings })
    }
}

fn index(chain: &Chain, node: usize) -> Option<NodeIndex> {
    chain.nodes().get(node).and(u32::try_from(node).ok()).map(NodeIndex)
}

impl Taken {
    fn of(routed: Routed) -> Self {
        let Routed { node, question_key, track, fallback_reason } = routed;
        Self { node: node.index(), question_key, track, fallback_reason }
    }

    fn routed(self, chain: &Chain) -> Option<Routed> {
        let Self { node, question_key, track, fallback_reason } = self;
        Some(Routed { node: index(chain, node)?, question_key, track, fallback_reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{Draft, junction};
    use crate::chain::verify::verify;

    fn chain(name: &str) -> Arc<Chain> {
        let draft = Draft::new().root(vec![
            junction(name, &["Order"], &[]),
            junction("Sell", &["Order"], &["Receipt"]),
        ]);
        Arc::new(verify(draft.train).unwrap())
    }

    fn snapshot(name: &str) -> Snapshot {
        let mut walk = Walk::start(chain(name), Value::new("Order", "1"));
        walk.next();
        walk.snapshot().unwrap()
    }

    #[test]
    fn a_step_that_waits_is_taken_as_not_begun() {
        let at_start = Walk::start(chain("Pay"), Value::new("Order", "1")).snapshot();
        assert_eq!(Some(snapshot("Pay")), at_start);
    }

    #[test]
    fn a_snapshot_of_another_chain_or_of_steps_that_are_not_there_is_refused() {
        let other = Walk::restore(chain("Pay"), snapshot("Ask")).unwrap_err();
        assert_eq!(other, RestoreError::OtherChain(chain("Ask").hash().to_owned()));
        for frames in [vec![(0, 9)], vec![(7, 0)], vec![(usize::MAX, usize::MAX)]] {
            let wrong = Snapshot { frames, ..snapshot("Pay") };
            assert_eq!(Walk::restore(chain("Pay"), wrong).unwrap_err(), RestoreError::OutOfBounds);
        }
        let taken = Taken {
            node: 99,
            question_key: String::new(),
            track: String::new(),
            fallback_reason: None,
        };
        let wrong = Snapshot { tracks: vec![taken], ..snapshot("Pay") };
        assert_eq!(Walk::restore(chain("Pay"), wrong).unwrap_err(), RestoreError::OutOfBounds);
    }

    #[test]
    fn an_ended_run_has_no_snapshot() {
        let mut walk = Walk::start(chain("Pay"), Value::new("Order", "1"));
        walk.cancel();
        walk.next();
        assert_eq!(walk.snapshot(), None);
    }
}
