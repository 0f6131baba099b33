//! What a component exports, made of its trains.

use std::sync::Once;

use crate::bindings::trax::train::declaration;
use crate::bindings::trax::train::questions::{Answer, DecisionRequest};
use crate::bindings::trax::train::types;
use crate::declaration::Declaration;
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::mode::{DeciderCall, JunctionCall, Mode};
use crate::train::{NewTrain, Train};

/// A function that declares a train.
pub type TrainFunction = fn(NewTrain) -> Train;

/// Every train, as the host reads it. Tests of a train read it too.
///
/// # Panics
/// A train is declared in a way that the host could not tell is wrong, for example two functions under one name.
pub fn declare(trains: &[TrainFunction]) -> Vec<declaration::Train> {
    trains.iter().map(|train| declare_one(*train)).collect()
}

fn declare_one(train: TrainFunction) -> declaration::Train {
    let chain = train(NewTrain { mode: Mode::Declare(Box::new(Declaration::new())) }).chain;
    let Mode::Declare(declaration) = chain.mode else {
        unreachable!("a train keeps what it was started with")
    };
    let Declaration { mut train, types, .. } = *declaration;
    train.types = types.into_shapes();
    train.root = chain.steps;
    train
}

/// Runs a junction of a train. Tests of a train can run one too.
///
/// # Errors
/// The junction failed, or there is none.
pub fn run_junction(
    trains: &[TrainFunction],
    train: String,
    junction: String,
    inputs: Vec<types::Value>,
) -> Result<Vec<types::Value>, types::Failure> {
    let call = JunctionCall { train, junction, inputs, is_here: false, outcome: None };
    let Mode::Run(call) = visit(trains, Mode::Run(call), is_done) else {
        unreachable!("a train keeps what it was started with")
    };
    let JunctionCall { train, junction, outcome, .. } = call;
    outcome
        .unwrap_or_else(|| {
            let message =
                format!("the component has no junction '{junction}' in a train '{train}'");
            Err(Failure::permanent("NoSuchJunction", message))
        })
        .map_err(Into::into)
}

/// Answers for a decider that a train ships. Tests of rules can ask too.
///
/// # Errors
/// The decider failed, or there is none.
pub fn decide(
    trains: &[TrainFunction],
    request: DecisionRequest,
) -> Result<Vec<Answer>, types::Failure> {
    let call = DeciderCall { request, is_here: false, outcome: None };
    let Mode::Answer(call) = visit(trains, Mode::Answer(call), is_done) else {
        unreachable!("a train keeps what it was started with")
    };
    let DeciderCall { request: DecisionRequest { train, decider, .. }, outcome, .. } = call;
    outcome
        .unwrap_or_else(|| {
            let message = format!("the component has no decider '{decider}' in a train '{train}'");
            Err(Failure::permanent("NoSuchDecider", message))
        })
        .map_err(Into::into)
}

fn is_done(mode: &Mode) -> bool {
    match mode {
        Mode::Declare(_) => false,
        Mode::Run(call) => call.outcome.is_some(),
        Mode::Answer(call) => call.outcome.is_some(),
    }
}

/// Hands a call from train to train until one has served it.
fn visit(trains: &[TrainFunction], mut mode: Mode, is_done: fn(&Mode) -> bool) -> Mode {
    for train in trains {
        mode = train(NewTrain { mode }).chain.mode;
        if is_done(&mode) {
            break;
        }
    }
    mode
}

/// Sends the message of a panic, and where it happened, to the run's log. A panic ends as a trap, which has no text.
pub fn log_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("without a message");
            match panic.location() {
                Some(place) => {
                    log::write(Level::Error, format_args!("panicked at {place}: {message}"));
                }
                None => log::write(Level::Error, format_args!("panicked: {message}")),
            }
        }));
    });
}

/// Makes a component of functions that declare trains: `trax_sdk::export!(support_triage, refund);`, once per crate.
#[macro_export]
macro_rules! export {
    ($($train:path),+ $(,)?) => {
        const _: () = {
            const TRAINS: &[$crate::TrainFunction] = &[$($train),+];

            struct Component;

            impl $crate::bindings::exports::trax::train::guest::Guest for Component {
                fn declare() -> ::std::vec::Vec<$crate::bindings::trax::train::declaration::Train> {
                    $crate::serve::log_panics();
                    $crate::serve::declare(TRAINS)
                }

                fn run_junction(
                    train: ::std::string::String,
                    junction: ::std::string::String,
                    inputs: ::std::vec::Vec<$crate::bindings::trax::train::types::Value>,
                ) -> ::std::result::Result<
                    ::std::vec::Vec<$crate::bindings::trax::train::types::Value>,
                    $crate::bindings::trax::train::types::Failure,
                > {
                    $crate::serve::log_panics();
                    $crate::serve::run_junction(TRAINS, train, junction, inputs)
                }

                fn decide(
                    request: $crate::bindings::trax::train::questions::DecisionRequest,
                ) -> ::std::result::Result<
                    ::std::vec::Vec<$crate::bindings::trax::train::questions::Answer>,
                    $crate::bindings::trax::train::types::Failure,
                > {
                    $crate::serve::log_panics();
                    $crate::serve::decide(TRAINS, request)
                }
            }

            $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}
