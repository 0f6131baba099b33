//! Declarations for tests: a draft of a train that says only what matters, trains made at
//! random by a [`tape`], and a [`world`] to walk them in.

pub(crate) mod tape;
pub(crate) mod world;

use crate::chain::Chain;
use crate::chain::declaration::{
    Asking, AtLeast, BranchFailure, Decide, DecideQuestion, Extract, Gate, Isolation, Junction,
    Parallel, Scale, Step, Switch, Track, Train, TypeShape, Wants, When,
};
use crate::chain::verify::verify;
use crate::model::question::{Criterion, Question, QuestionKind};

/// The schema of a type that a draft declares by itself: values are JSON strings.
pub(crate) const TEXT_SCHEMA: &str = r#"{"type":"string"}"#;

/// The schema of an object with a text `card`.
pub(crate) const BASKET_SCHEMA: &str = concat!(
    r#"{"additionalProperties":false,"properties":{"card":{"type":"string"}},"#,
    r#""required":["card"],"type":"object"}"#
);

/// A train from `Order` to `Receipt`, whose name is `orders`, while it is written.
pub(crate) struct Draft {
    pub(crate) train: Train,
}

impl Draft {
    pub(crate) fn new() -> Self {
        let train = Train {
            name: "orders".to_string(),
            description: "Takes orders.".to_string(),
            input: "Order".to_string(),
            output: "Receipt".to_string(),
            types: Vec::new(),
            questions: Vec::new(),
            tracks: Vec::new(),
            root: Vec::new(),
            deciders: Vec::new(),
            default_decider: None,
            wants: Wants::default(),
            subject_key: None,
            isolation: Isolation::PerJunction,
            queue_only: false,
        };
        Self { train }.types(&["Order", "Receipt"])
    }

    pub(crate) fn types(mut self, names: &[&str]) -> Self {
        for name in names {
            self.shape(name, TEXT_SCHEMA);
        }
        self
    }

    pub(crate) fn shape(&mut self, name: &str, schema: &str) {
        let (name, schema) = (name.to_string(), schema.to_string());
        self.train.types.push(TypeShape { name, schema, sensitive: false });
    }

    pub(crate) fn question(mut self, question: Question) -> Self {
        self.train.questions.push(question);
        self
    }

    /// Declares a track and gives its index.
    pub(crate) fn track(&mut self, name: &str, steps: Vec<Step>) -> u32 {
        let track = Track { name: name.to_string(), description: None, steps };
        self.train.tracks.push(track);
        u32::try_from(self.train.tracks.len() - 1).unwrap()
    }

    pub(crate) fn root(mut self, steps: Vec<Step>) -> Self {
        self.train.root = steps;
        self
    }

    pub(crate) fn chain(self) -> Chain {
        verify(self.train).unwrap_or_else(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            panic!("the draft has faults:\n{}", lines.join("\n"))
        })
    }

    /// The lines of the report.
    pub(crate) fn faults(self) -> Vec<String> {
        let faults = verify(self.train).err().unwrap_or_default();
        faults.iter().map(ToString::to_string).collect()
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn criteria(names: &[&str]) -> Vec<Criterion> {
    names.iter().map(|name| Criterion { name: (*name).to_string(), description: None }).collect()
}

fn question(key: &str, kind: QuestionKind) -> Question {
    Question {
        key: key.to_string(),
        instructions: "Which one?".to_string(),
        kind,
        sensitive: false,
    }
}

pub(crate) fn choice(key: &str, options: &[&str]) -> Question {
    question(key, QuestionKind::Choice(criteria(options)))
}

pub(crate) fn score(key: &str, levels: &[&str]) -> Question {
    question(key, QuestionKind::Score(criteria(levels)))
}

pub(crate) fn yes_no(key: &str) -> Question {
    question(key, QuestionKind::YesNo { yes: None, no: None })
}

pub(crate) fn junction(name: &str, inputs: &[&str], outputs: &[&str]) -> Step {
    Step::Junction(work(name, inputs, outputs))
}

pub(crate) fn short_circuit(name: &str, inputs: &[&str], outputs: &[&str]) -> Step {
    Step::ShortCircuit(work(name, inputs, outputs))
}

pub(crate) fn work(name: &str, inputs: &[&str], outputs: &[&str]) -> Junction {
    let (inputs, outputs) = (strings(inputs), strings(outputs));
    Junction { name: name.to_string(), inputs, outputs, asks: Vec::new() }
}

pub(crate) fn extract(from: &str, field: &str, to: &str) -> Step {
    Step::Extract(Extract { from: from.to_string(), field: field.to_string(), to: to.to_string() })
}

pub(crate) fn checkpoint(state: &str) -> Step {
    Step::Checkpoint(state.to_string())
}

pub(crate) fn about(state: &str) -> Asking {
    Asking {
        state: state.to_string(),
        instructions: None,
        decider: None,
        shadows: Vec::new(),
        wait_for_shadows_ms: None,
    }
}

pub(crate) fn decide(state: &str, keys: &[&str]) -> Step {
    let question = |key: &&str| DecideQuestion { key: (*key).to_string(), instructions: None };
    Step::Decide(Decide {
        state: state.to_string(),
        questions: keys.iter().map(question).collect(),
        decider: None,
        shadows: Vec::new(),
        wait_for_shadows_ms: None,
    })
}

pub(crate) fn switch(
    key: &str,
    asking: Option<Asking>,
    tracks: &[(&str, u32)],
    otherwise: Option<u32>,
) -> Step {
    let when = |(option, track): &(&str, u32)| When {
        option_name: (*option).to_string(),
        track: *track,
        require_confidence: None,
    };
    Step::Switch(Switch {
        question: key.to_string(),
        asking,
        tracks: tracks.iter().map(when).collect(),
        require_confidence: 0.0,
        otherwise,
    })
}

pub(crate) fn gate(
    key: &str,
    asking: Option<Asking>,
    yes: u32,
    no: u32,
    unsure: Option<u32>,
) -> Step {
    let question = key.to_string();
    Step::Gate(Gate { question, asking, yes, yes_at_least: 0.5, no, no_below: 0.5, unsure })
}

pub(crate) fn scale(
    key: &str,
    asking: Option<Asking>,
    tracks: &[(&str, u32)],
    otherwise: Option<u32>,
) -> Step {
    let at_least =
        |(level, track): &(&str, u32)| AtLeast { level: (*level).to_string(), track: *track };
    Step::Scale(Scale {
        question: key.to_string(),
        asking,
        tracks: tracks.iter().map(at_least).collect(),
        require_confidence: 0.0,
        otherwise,
    })
}

pub(crate) fn parallel(branches: &[u32]) -> Step {
    let branches = branches.to_vec();
    Step::Parallel(Parallel { branches, on_failure: BranchFailure::CancelSiblings })
}
