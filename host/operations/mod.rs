//! What operators do: one function per action, whichever face asks for it.
//!
//! - [`component_file`] loads a component and verifies its trains; [`deploy`] stores it and makes it the active one.
//! - [`manifest_file`] reads what is stated in a TOML file, by means of [`table`] and [`duration`]; [`apply`] states it
//!   in the store, all of it or nothing; [`prune`] removes what an owner no longer states.
//! - [`deciders_file`] reads the deciders of a host; [`decisions`] lists and labels what they answered.
//! - [`dead_letters`] lists and resolves; [`requeue_jobs`] requeues all of them in the background, and [`requeue`] one
//!   execution; [`resume`] queues one after a checkpoint. What came of an action is an [`outcome`]; [`batch`] says how
//!   much at once.
//! - [`enqueue`] queues a run of a train. [`manifests`], [`groups`], [`queue`] and [`runs`] list,
//!   show, switch and cancel; [`next_runs`] tells when a manifest runs next.
//! - [`access`] says who may ask for what, and keeps a record of it; [`tokens`] say who asks.
//! - [`triggers`] run manifests now; [`tenants`] says whom the store serves; [`trains`] lists;
//!   [`recording`] says whether a host may run them.
//!   [`mod@bench`] measures the queue.

pub mod access;
pub mod apply;
pub mod batch;
pub mod bench;
pub mod component_file;
pub mod dead_letters;
pub mod deciders_file;
pub mod decisions;
pub mod deploy;
pub mod duration;
pub mod enqueue;
pub mod error;
pub mod groups;
pub mod health;
pub mod manifest_file;
pub mod manifests;
pub mod next_runs;
pub mod outcome;
pub mod patches;
pub mod prune;
pub mod queue;
pub mod recording;
pub mod requeue;
pub mod requeue_jobs;
pub mod resume;
pub mod run_picture;
pub mod runs;
pub mod seeding;
pub mod sim;
pub mod table;
pub mod tenants;
pub mod tokens;
pub mod trains;
pub mod triggers;
pub mod vetting;
