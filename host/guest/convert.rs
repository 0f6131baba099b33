//! Between the contract's generated types and the host's own.

use crate::chain::declaration;
use crate::guest::bindings::exports::trax::train::guest as wit;
use crate::guest::bindings::trax::train::{declaration as shape, questions, types};
use crate::guest::run_log::escape_controls;
use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::{Failure, FailureClass};
use crate::model::question::{Criterion, Question, QuestionKind};
use crate::model::value::Value;

/// The longest text of a failure that is kept, in bytes: it is stored with the run.
const FAILURE_BYTES_MAX: usize = 8 * 1024;

/// A train as a guest declared it.
pub fn train(train: wit::Train) -> declaration::Train {
    declaration::Train {
        name: train.name,
        description: train.description,
        input: train.input,
        output: train.output,
        types: train.types.into_iter().map(type_shape).collect(),
        questions: train.questions.into_iter().map(question).collect(),
        tracks: train.tracks.into_iter().map(track).collect(),
        root: train.root.into_iter().map(step).collect(),
        deciders: train.deciders,
        default_decider: train.default_decider,
        wants: wants(train.wants),
        subject_key: train.subject_key,
        isolation: match train.isolation {
            shape::Isolation::PerJunction => declaration::Isolation::PerJunction,
            shape::Isolation::PerRun => declaration::Isolation::PerRun,
        },
        queue_only: train.queue_only,
    }
}

fn type_shape(it: shape::TypeShape) -> declaration::TypeShape {
    declaration::TypeShape { name: it.name, schema: it.schema, sensitive: it.sensitive }
}

fn track(track: shape::Track) -> declaration::Track {
    declaration::Track {
        name: track.name,
        description: track.description,
        steps: track.steps.into_iter().map(step).collect(),
    }
}

fn wants(wants: shape::Wants) -> declaration::Wants {
    let directory = |it: shape::DirectoryWant| declaration::DirectoryWant {
        name: it.name,
        writable: it.writable,
    };
    declaration::Wants {
        http: wants.http,
        config: wants.config,
        secrets: wants.secrets,
        directories: wants.directories.into_iter().map(directory).collect(),
    }
}

fn step(step: shape::Step) -> declaration::Step {
    use declaration::Step;
    match step {
        shape::Step::Junction(it) => Step::Junction(junction(it)),
        shape::Step::ShortCircuit(it) => Step::ShortCircuit(junction(it)),
        shape::Step::Extract(it) => {
            Step::Extract(declaration::Extract { from: it.from, field: it.field, to: it.to })
        }
        shape::Step::Decide(it) => Step::Decide(decide(it)),
        shape::Step::Switch(it) => Step::Switch(switch(it)),
        shape::Step::Gate(it) => Step::Gate(gate(it)),
        shape::Step::Scale(it) => Step::Scale(scale(it)),
        shape::Step::Checkpoint(state) => Step::Checkpoint(state),
        shape::Step::Parallel(it) => Step::Parallel(declaration::Parallel {
            branches: it.branches,
            on_failure: match it.on_failure {
                shape::BranchFailure::CancelSiblings => declaration::BranchFailure::CancelSiblings,
                shape::BranchFailure::WaitForAll => declaration::BranchFailure::WaitForAll,
            },
        }),
    }
}

fn junction(it: shape::Junction) -> declaration::Junction {
    declaration::Junction { name: it.name, inputs: it.inputs, outputs: it.outputs, asks: it.asks }
}

fn asking(it: shape::Asking) -> declaration::Asking {
    declaration::Asking {
        state: it.state,
        instructions: it.instructions,
        decider: it.decider,
        shadows: it.shadows,
        wait_for_shadows_ms: it.wait_for_shadows_ms,
    }
}

fn decide(it: shape::Decide) -> declaration::Decide {
    let question = |q: shape::DecideQuestion| declaration::DecideQuestion {
        key: q.key,
        instructions: q.instructions,
    };
    declaration::Decide {
        state: it.state,
        questions: it.questions.into_iter().map(question).collect(),
        decider: it.decider,
        shadows: it.shadows,
        wait_for_shadows_ms: it.wait_for_shadows_ms,
    }
}

fn switch(it: shape::Switch) -> declaration::Switch {
    let when = |w: shape::When| declaration::When {
        option_name: w.option_name,
        track: w.track,
        require_confidence: w.require_confidence,
    };
    declaration::Switch {
        question: it.question,
        asking: it.asking.map(asking),
        tracks: it.tracks.into_iter().map(when).collect(),
        require_confidence: it.require_confidence,
        otherwise: it.otherwise,
    }
}

fn gate(it: shape::Gate) -> declaration::Gate {
    declaration::Gate {
        question: it.question,
        asking: it.asking.map(asking),
        yes: it.yes,
        yes_at_least: it.yes_at_least,
        no: it.no,
        no_below: it.no_below,
        unsure: it.unsure,
    }
}

fn scale(it: shape::Scale) -> declaration::Scale {
    let at_least = |l: shape::AtLeast| declaration::AtLeast { level: l.level, track: l.track };
    declaration::Scale {
        question: it.question,
        asking: it.asking.map(asking),
        tracks: it.tracks.into_iter().map(at_least).collect(),
        require_confidence: it.require_confidence,
        otherwise: it.otherwise,
    }
}

fn question(it: questions::Question) -> Question {
    let criteria = |list: Vec<questions::Criterion>| {
        list.into_iter()
            .map(|c| Criterion { name: c.name, description: c.description })
            .collect::<Vec<_>>()
    };
    Question {
        key: it.key,
        instructions: it.instructions,
        kind: match it.kind {
            questions::QuestionKind::Choice(list) => QuestionKind::Choice(criteria(list)),
            questions::QuestionKind::Score(list) => QuestionKind::Score(criteria(list)),
            questions::QuestionKind::YesNo(m) => QuestionKind::YesNo { yes: m.yes, no: m.no },
        },
        sensitive: it.sensitive,
    }
}

/// A question for a rule decider in a guest.
pub fn question_to_guest(it: &Question) -> questions::Question {
    let criteria = |list: &[Criterion]| {
        list.iter()
            .map(|c| questions::Criterion {
                name: c.name.clone(),
                description: c.description.clone(),
            })
            .collect::<Vec<_>>()
    };
    questions::Question {
        key: it.key.clone(),
        instructions: it.instructions.clone(),
        kind: match &it.kind {
            QuestionKind::Choice(list) => questions::QuestionKind::Choice(criteria(list)),
            QuestionKind::Score(list) => questions::QuestionKind::Score(criteria(list)),
            QuestionKind::YesNo { yes, no } => {
                let (yes, no) = (yes.clone(), no.clone());
                questions::QuestionKind::YesNo(questions::Meanings { yes, no })
            }
        },
        sensitive: it.sensitive,
    }
}

/// An answer of a rule decider in a guest.
pub fn answer(it: questions::Answer) -> Answer {
    let kind = match it.kind {
        questions::AnswerKind::Choice(a) => AnswerKind::Choice {
            choice: a.choice,
            confidence: a.confidence,
            probabilities: a.probabilities,
        },
        questions::AnswerKind::Score(a) => AnswerKind::Score {
            score: a.score,
            confidence: a.confidence,
            probabilities: a.probabilities,
        },
        questions::AnswerKind::YesNo(probability) => AnswerKind::YesNo { probability },
    };
    Answer { key: it.key, kind, model: it.model }
}

/// An answer for a junction that asked.
pub fn answer_to_guest(it: Answer) -> questions::Answer {
    let kind = match it.kind {
        AnswerKind::Choice { choice, confidence, probabilities } => {
            let answer = questions::ChoiceAnswer { choice, confidence, probabilities };
            questions::AnswerKind::Choice(answer)
        }
        AnswerKind::Score { score, confidence, probabilities } => {
            let answer = questions::ScoreAnswer { score, confidence, probabilities };
            questions::AnswerKind::Score(answer)
        }
        AnswerKind::YesNo { probability } => questions::AnswerKind::YesNo(probability),
    };
    questions::Answer { key: it.key, kind, model: it.model }
}

/// A value for a guest.
pub fn value_to_guest(it: &Value) -> types::Value {
    types::Value { type_name: it.type_name.to_string(), json: it.json.to_string() }
}

/// A failure a guest returned. Its texts are cut and made harmless to terminals and databases; one that is named like
/// a time-out or a cancellation and has no class is transient, because the host did not cancel it.
pub fn failure(it: types::Failure) -> Failure {
    let cut = |text: String| escape_controls(&text[..text.floor_char_boundary(FAILURE_BYTES_MAX)]);
    let class = match it.class {
        types::FailureClass::Unclassified if is_giving_up(&it.name) => FailureClass::Transient,
        types::FailureClass::Unclassified => FailureClass::Unclassified,
        types::FailureClass::Transient => FailureClass::Transient,
        types::FailureClass::Conflict => FailureClass::Conflict,
        types::FailureClass::Permanent => FailureClass::Permanent,
    };
    Failure { class, name: cut(it.name), message: cut(it.message), detail: it.detail.map(cut) }
}

/// A failure for a guest.
pub fn failure_to_guest(it: Failure) -> types::Failure {
    types::Failure {
        class: match it.class {
            FailureClass::Unclassified => types::FailureClass::Unclassified,
            FailureClass::Transient => types::FailureClass::Transient,
            FailureClass::Conflict => types::FailureClass::Conflict,
            FailureClass::Permanent => types::FailureClass::Permanent,
        },
        name: it.name,
        message: it.message,
        detail: it.detail,
    }
}

fn is_giving_up(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["timeout", "timedout", "timed-out", "timed_out", "cancel"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(name: &str, class: types::FailureClass) -> FailureClass {
        let (name, message) = (name.to_owned(), String::new());
        failure(types::Failure { class, name, message, detail: None }).class
    }

    /// R14: a guest that gives up by itself has failed, transiently, unless it says otherwise.
    #[test]
    fn a_guests_own_time_out_is_transient() {
        for name in ["HttpTimeout", "TimedOut", "timed_out", "OperationCanceled", "Cancelled"] {
            let class = class_of(name, types::FailureClass::Unclassified);
            assert_eq!(class, FailureClass::Transient, "{name}");
        }
        let other = class_of("CardDeclined", types::FailureClass::Unclassified);
        assert_eq!(other, FailureClass::Unclassified);
        let stated = class_of("HttpTimeout", types::FailureClass::Permanent);
        assert_eq!(stated, FailureClass::Permanent);
    }

    #[test]
    fn a_failures_texts_are_cut_and_made_harmless() {
        let it = failure(types::Failure {
            class: types::FailureClass::Conflict,
            name: "A\0".to_owned(),
            message: "\u{e9}".repeat(FAILURE_BYTES_MAX),
            detail: Some("\u{1b}[31m".to_owned()),
        });
        assert_eq!(it.name, "A\\u{0}");
        assert_eq!(it.message.len(), FAILURE_BYTES_MAX);
        assert_eq!(it.detail.unwrap(), "\\u{1b}[31m");
    }
}
