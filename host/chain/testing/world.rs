//! A caller of walks for tests: junctions that return texts, deciders that answer from a script, and a log.

use std::collections::BTreeMap;

use crate::chain::Chain;
use crate::chain::next::{Ask, Call, End, Fork, Next};
use crate::chain::node::NodeIndex;
use crate::chain::walk::Walk;
use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::Failure;
use crate::model::question::{Question, QuestionKind};
use crate::model::value::Value;

/// Everything outside a walk. By default junctions return `"<name>"` for each output, choices are the first option,
/// scores 0, and yes is certain.
#[derive(Default)]
pub(crate) struct World {
    /// Junctions that fail, by name.
    pub(crate) failing: BTreeMap<String, Failure>,
    /// Values that junctions return instead of their own, by the junction's name.
    pub(crate) returning: BTreeMap<String, Vec<Value>>,
    /// Answers by key, by occurrence; the last one stays.
    pub(crate) answers: BTreeMap<String, Vec<AnswerKind>>,
    /// The node at which the run is cancelled: it still finishes.
    pub(crate) cancel_at: Option<String>,
    /// What happened, one line each.
    pub(crate) log: Vec<String>,
    /// Every node that a walk named, in order.
    pub(crate) nodes: Vec<NodeIndex>,
    /// Whether the run stops there and goes on from a snapshot, at each place where it could; the last place first.
    pub(crate) stops: Vec<bool>,
}

impl World {
    /// Runs a train from the value `"order"` to its end.
    pub(crate) fn run(&mut self, chain: Chain) -> End {
        let input = Value::new(chain.train().input.as_str(), "\"order\"");
        self.play(&mut Walk::start(chain.into(), input))
    }

    /// Plays a walk to its end.
    pub(crate) fn play(&mut self, walk: &mut Walk) -> End {
        loop {
            self.hand_over(walk);
            let next = walk.next();
            let is_waiting = !matches!(next, Next::Routed(_) | Next::Done(_));
            if self.hand_over(walk) && is_waiting {
                continue;
            }
            if let Some(id) = self.note(walk, &next)
                && self.cancel_at.as_ref() == Some(&id)
            {
                walk.cancel();
            }
            match next {
                Next::Call(call) => walk.returned(self.call(walk, &call)),
                Next::Ask(ask) => walk.answered(Ok(self.answer(&ask))),
                Next::Routed(_) => {}
                Next::Checkpoint(_) => walk.stored(Ok(())),
                Next::Fork(Fork { branches, .. }) => {
                    let ended = branches.into_iter().map(|(_, mut branch)| {
                        self.play(&mut branch);
                        branch
                    });
                    walk.joined(ended.collect());
                }
                Next::Done(end) => return end,
            }
        }
    }

    /// Takes the run to another host, if it stops here and can.
    fn hand_over(&mut self, walk: &mut Walk) -> bool {
        let stops = self.stops.pop().unwrap_or_default();
        let Some(snapshot) = walk.snapshot().filter(|_| stops) else { return false };
        let text = serde_json::to_string(&snapshot).unwrap();
        let read = serde_json::from_str(&text).unwrap();
        *walk = Walk::restore(walk.chain().clone(), read).unwrap();
        assert_eq!(walk.snapshot(), Some(snapshot));
        true
    }

    fn note(&mut self, walk: &Walk, next: &Next) -> Option<String> {
        let (node, line) = match next {
            Next::Call(call) => (call.node, format!("call {}", texts(&call.inputs))),
            Next::Ask(ask) => {
                let asked = |one: &crate::chain::next::AskedQuestion| {
                    format!("{}:{}", one.question.key, one.occurrence)
                };
                let asked: Vec<String> = ask.questions.iter().map(asked).collect();
                (ask.node, format!("ask {} {}", &ask.state.json, asked.join(" ")))
            }
            Next::Routed(routed) => {
                let reason =
                    routed.fallback_reason.as_ref().map(|reason| format!(" because {reason}"));
                (routed.node, format!("take {}{}", routed.track, reason.unwrap_or_default()))
            }
            Next::Checkpoint(checkpoint) => {
                let tracks: Vec<&str> =
                    checkpoint.tracks.iter().map(|routed| routed.track.as_str()).collect();
                (checkpoint.node, format!("store {} {tracks:?}", &checkpoint.state.json))
            }
            Next::Fork(fork) => (fork.node, "fork".to_string()),
            Next::Done(end) => {
                self.log.push(match end {
                    End::Completed(value) => format!("completed {}", &value.json),
                    End::BranchCompleted => "branch completed".to_string(),
                    End::Failed(failure) => format!("failed {failure}"),
                    End::Cancelled => "cancelled".to_string(),
                });
                return None;
            }
        };
        let id = walk.chain().node(node).id.clone();
        self.nodes.push(node);
        self.log.push(format!("{id} {}", line.trim()));
        Some(id)
    }

    fn call(&self, walk: &Walk, call: &Call) -> Result<Vec<Value>, Failure> {
        if let Some(failure) = self.failing.get(&call.junction) {
            return Err(failure.clone());
        }
        if let Some(values) = self.returning.get(&call.junction) {
            return Ok(values.clone());
        }
        let outputs = walk.chain().node(call.node).outputs.iter();
        Ok(outputs.map(|name| Value::new(name.clone(), format!("\"{}\"", call.junction))).collect())
    }

    fn answer(&self, ask: &Ask) -> Vec<Answer> {
        let answer = |asked: &crate::chain::next::AskedQuestion| {
            let scripted = self
                .answers
                .get(&asked.question.key)
                .and_then(|answers| answers.get(asked.occurrence as usize).or(answers.last()));
            let kind = scripted.cloned().unwrap_or_else(|| first_answer(&asked.question));
            Answer { key: asked.question.key.clone(), kind, model: None }
        };
        ask.questions.iter().map(answer).collect()
    }
}

fn texts(values: &[Value]) -> String {
    let texts: Vec<&str> = values.iter().map(|value| &*value.json).collect();
    texts.join(" ")
}

fn first_answer(question: &Question) -> AnswerKind {
    match &question.kind {
        QuestionKind::Choice(options) => chosen(&options[0].name, 1.0),
        QuestionKind::Score(_) => scored(0.0, 1.0),
        QuestionKind::YesNo { .. } => AnswerKind::YesNo { probability: 1.0 },
    }
}

/// The answer that is this option.
pub(crate) fn chosen(choice: &str, confidence: f64) -> AnswerKind {
    AnswerKind::Choice { choice: choice.to_string(), confidence, probabilities: Vec::new() }
}

/// The answer that is this score.
pub(crate) fn scored(score: f64, confidence: f64) -> AnswerKind {
    AnswerKind::Score { score, confidence, probabilities: Vec::new() }
}

/// The answer that is yes with this probability.
pub(crate) fn yes(probability: f64) -> AnswerKind {
    AnswerKind::YesNo { probability }
}
