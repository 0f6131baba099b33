//! What a walk does at each kind of node.

use std::sync::Arc;

use crate::chain::decision::{decision_answer, track_taken_value};
use crate::chain::declaration::{Extract, Parallel, Step};
use crate::chain::next::{Ask, AskedQuestion, Call, Checkpoint, End, Fork, Next, Routed};
use crate::chain::node::{Node, NodeIndex, NodeKind};
use crate::chain::route::route;
use crate::chain::step::home;
use crate::chain::walk::{Frame, Phase, Reply, Walk, host_fault};
use crate::model::failure::Failure;
use crate::model::json::Json;
use crate::model::value::Value;

impl Walk {
    /// Runs what needs no reply; says what to ask for otherwise.
    pub(super) fn visit(&mut self, index: NodeIndex) -> Result<Option<Next>, Failure> {
        let chain = self.chain.clone();
        let node = chain.node(index);
        let next = match (node.kind, chain.step(node)) {
            (NodeKind::Chain | NodeKind::ShortCircuit, _) => {
                let inputs = node.inputs.iter().map(|input| self.needed(node, input));
                let call = Call {
                    node: index,
                    junction: node.name.clone(),
                    inputs: inputs.collect::<Result<_, _>>()?,
                    visit: 0,
                    is_short_circuit: node.kind == NodeKind::ShortCircuit,
                };
                self.phase = Phase::Waiting(Reply::Returned(index));
                Next::Call(call)
            }
            (NodeKind::Extract, Some(Step::Extract(extract))) => {
                let value = self.extracted(node, extract)?;
                self.memory.put(value);
                return Ok(None);
            }
            (NodeKind::Decide, Some(step)) => {
                let ask = self.ask(index, node, step)?;
                self.phase = Phase::Waiting(Reply::Answered(index));
                Next::Ask(ask)
            }
            (NodeKind::Switch | NodeKind::Gate | NodeKind::Scale, Some(step)) => {
                Next::Routed(self.take_track(index, node, step)?)
            }
            (NodeKind::Checkpoint, Some(Step::Checkpoint(state))) => {
                let checkpoint = self.checkpoint(index, node, state)?;
                self.phase = Phase::Waiting(Reply::Stored(index));
                Next::Checkpoint(checkpoint)
            }
            (NodeKind::Parallel, Some(Step::Parallel(parallel))) => {
                Next::Fork(self.fork(index, parallel))
            }
            (NodeKind::Resolve, _) => {
                let result =
                    self.result.take().map_or_else(|| self.needed(node, &chain.train().output), Ok);
                self.finish(End::Completed(result?))
            }
            (
                NodeKind::Extract
                | NodeKind::Decide
                | NodeKind::Switch
                | NodeKind::Gate
                | NodeKind::Scale
                | NodeKind::Checkpoint
                | NodeKind::Parallel,
                _,
            ) => return Err(host_fault("the node does not fit its step")),
        };
        Ok(Some(next))
    }

    fn needed(&self, node: &Node, type_name: &str) -> Result<Value, Failure> {
        self.memory.get(type_name).cloned().ok_or_else(|| {
            let (name, train) = (&node.name, &self.chain.train().name);
            let message = format!("{name} (train '{train}') found no '{type_name}' in Memory.");
            Failure::permanent("MissingValue", message)
        })
    }

    fn extracted(&self, node: &Node, extract: &Extract) -> Result<Value, Failure> {
        let Extract { from, field, to } = extract;
        let value = self.needed(node, from)?;
        let bad = |why: &str| {
            Failure::permanent(
                "BadExtract",
                format!("the member '{field}' of '{from}' cannot be taken as '{to}': it {why}."),
            )
        };
        let json =
            Json::parse(&value.json).map_err(|_| host_fault("a value in Memory is no JSON"))?;
        let member = json.member(field).ok_or_else(|| bad("is absent"))?;
        self.chain.types().admit_json(to, member).map_err(|fault| bad(&fault.to_string()))
    }

    fn ask(&mut self, index: NodeIndex, node: &Node, step: &Step) -> Result<Ask, Failure> {
        let chain = self.chain.clone();
        let asked = step.asked().ok_or_else(|| host_fault("the step asks nothing"))?;
        let state = self.needed(node, asked.state)?;
        let mut questions = Vec::with_capacity(asked.questions.len());
        for asked in &asked.questions {
            let question =
                asked.question(&chain).ok_or_else(|| host_fault("a question is missing"))?;
            let occurrence = self.memory.count_asking(asked.key);
            questions.push(AskedQuestion { question, occurrence });
        }
        Ok(Ask {
            node: index,
            state,
            questions,
            decider: asked.decider.map(str::to_string),
            shadows: asked.shadows.to_vec(),
            wait_for_shadows_ms: asked.wait_for_shadows_ms,
        })
    }

    fn take_track(
        &mut self,
        index: NodeIndex,
        node: &Node,
        step: &Step,
    ) -> Result<Routed, Failure> {
        let routing = step.routing().ok_or_else(|| host_fault("the step does not route"))?;
        let key = routing.question();
        let question =
            self.chain.question(key).ok_or_else(|| host_fault("a question is missing"))?;
        let decision = self.needed(node, &question.decision_type())?;
        let answer = decision_answer(question, &decision)
            .ok_or_else(|| host_fault("the decision in Memory cannot be read"))?;
        let route = route(routing, question, &answer)?;
        let track =
            self.chain.track(route.track).ok_or_else(|| host_fault("the track is missing"))?;
        let routed = Routed {
            node: index,
            question_key: key.to_string(),
            track: track.name.clone(),
            fallback_reason: route.fallback_reason,
        };
        self.memory.put(track_taken_value(&routed));
        self.memory.take_track(routed.clone());
        self.frames.push(Frame { scope: home(route.track), position: 0 });
        Ok(routed)
    }

    fn checkpoint(
        &self,
        index: NodeIndex,
        node: &Node,
        state: &str,
    ) -> Result<Checkpoint, Failure> {
        let state = self.memory.get(state).cloned().ok_or_else(|| {
            let (name, train) = (&node.name, &self.chain.train().name);
            let message = format!(
                "{name} (train '{train}') found no '{state}' in Memory. Chain the junction that produces it before \
                 the checkpoint."
            );
            Failure::permanent("MissingValue", message)
        })?;
        let is_open = |routed: &&Routed| {
            self.chain.question(&routed.question_key).is_some_and(|question| !question.sensitive)
        };
        let tracks = self.memory.tracks().into_iter().filter(is_open).cloned().collect();
        Ok(Checkpoint { node: index, state, tracks })
    }

    fn fork(&mut self, index: NodeIndex, parallel: &Parallel) -> Fork {
        let shared = Arc::new(std::mem::take(&mut self.memory));
        let branches = parallel.branches.iter().map(|track| {
            let name =
                self.chain.track(*track).map_or_else(String::new, |track| track.name.clone());
            (name, self.branch(home(*track), shared.clone()))
        });
        let branches = branches.collect();
        self.phase = Phase::Waiting(Reply::Joined(index, shared));
        Fork { node: index, branches, on_failure: parallel.on_failure }
    }
}
