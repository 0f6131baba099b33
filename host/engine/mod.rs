//! The engine: the life of a run, and the loops that start, watch and end runs.
//!
//! - [`job_runner`] takes one run through its chain; [`asking`] asks its questions; [`journal`] is where it records.
//! - [`supervisor`] is a whole engine. Its loops are [`service`]s, each with one bounded pass: [`manifest_manager`],
//!   [`job_dispatcher`], [`canceller`], [`heartbeat`], [`reaper`] and [`cleanup`]. `wakeups` makes them look sooner;
//!   [`events`] tells what happens.
//! - [`worker`] gives a claimed run what it needs, from [`trains`], a [`replay`] and a [`run_journal`], and writes
//!   how it left.
//! - [`due`] keeps the index of what is due in line with the rules; [`sources`] says what a retry takes over, and
//!   [`resume`] where it may start, by the deployed [`chains`].

pub mod asking;
mod branches;
pub mod canceller;
pub mod chains;
pub mod cleanup;
mod completion;
pub mod config;
pub mod due;
pub mod error;
pub mod events;
pub mod heartbeat;
pub mod identity;
pub mod job_dispatcher;
pub mod job_runner;
pub mod journal;
pub mod liveness;
pub mod manifest_manager;
mod pauses;
pub mod reaper;
pub mod replay;
pub mod resume;
pub mod run_journal;
mod running;
pub mod seal;
pub mod service;
pub mod shadows;
pub mod sources;
pub mod supervisor;
mod tenant_names;
pub mod trains;
mod wakeups;
pub mod worker;

pub use error::EngineError;
