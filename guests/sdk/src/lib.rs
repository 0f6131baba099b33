//! Write Trax trains in Rust: values are structs, junctions are functions, and the chain is declared once.
//!
//! ```no_run
//! use trax_sdk::prelude::*;
//!
//! trax_sdk::export!(hello);
//!
//! #[derive(Value)]
//! struct Person { name: String }
//!
//! #[derive(Value)]
//! struct Greeting { text: String }
//!
//! fn hello(train: NewTrain) -> Train {
//!     train
//!         .named::<Person, Greeting>("hello", "Greets a person.")
//!         .chain(|chain| chain.junction("Greet", greet))
//! }
//!
//! fn greet(person: Person) -> Greeting {
//!     Greeting { text: format!("Hello, {}.", person.name) }
//! }
//! # fn main() {}
//! ```
//!
//! A train's function runs in three modes (see [`NewTrain`]): the host calls it to read the declaration, to run one
//! junction, and to answer for a decider that the train ships. The host owns the values between junctions.
//!
//! - Values: [`Value`], [`Shape`], [`json`].
//! - Questions and decisions: [`Question`], [`Choice`], [`Score`], [`YesNo`], [`ChoiceDecision`] and its kin.
//! - Trains: [`NewTrain`], [`Train`], [`Chain`], [`Rules`], [`export!`].
//! - Inside a junction: [`Failure`], [`Ask`], [`log`], [`run`], [`budget`], [`config`], [`secrets`], [`files`].

// The derive macros name this crate by its name, in its own tests too.
extern crate self as trax_sdk;

#[doc(hidden)]
pub mod bindings;
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
#[expect(unsafe_code, reason = "an allocator hands out raw memory")]
mod heap;
pub mod json;
mod shape;
mod value;
mod question;
mod decision;
mod failure;
mod declaration;
mod junction;
mod ask;
mod mode;
mod rules;
mod train;
mod chain;
mod routes;
mod parallel;
#[doc(hidden)]
pub mod serve;
pub mod access;
pub mod budget;
pub mod config;
pub mod files;
pub mod log;
pub mod run;
pub mod secrets;

pub use trax_sdk_macros::{Choice, Score, Value, YesNo};

pub use crate::ask::{Ask, Questions};
pub use crate::bindings::trax::train::{declaration as wit, questions, types};
pub use crate::chain::Chain;
pub use crate::decision::{ChoiceDecision, Decision, ScoreDecision, TrackTaken, YesNoDecision};
pub use crate::declaration::{Declaration, JunctionDeclaration};
pub use crate::failure::{Classify, Failure, FailureClass};
pub use crate::junction::{Inputs, Junction, Outputs, Parameter, Parameters, Returns};
pub use crate::parallel::Branches;
pub use crate::question::{Choice, Criteria, Criterion, Question, Score, YesNo};
pub use crate::routes::{Decide, Gate, Scale, Switch};
pub use crate::rules::{RuleOutcome, Rules};
pub use crate::serve::{TrainFunction, decide, declare, run_junction};
pub use crate::shape::Shape;
pub use crate::train::{NewTrain, Train, Wants};
pub use crate::value::Value;

/// What a train's file needs: `use trax_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Ask, Chain, Choice, ChoiceDecision, Classify, Failure, NewTrain, Score, ScoreDecision,
        TrackTaken, Train, Value, YesNo, YesNoDecision, debug, error, info, trace, warn,
    };
}
