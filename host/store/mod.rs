//! All SQL: one store over SQLite and Postgres, one file per group of tables.
//!
//! Functions are verbs of the domain and take a transaction first, so that callers compose them into one. Everything
//! belongs to a tenant; what an operator names by id is looked up with the tenant's id beside it. Every write of a run
//! carries its claim, and a claim that was lost writes nothing. Instants come from [`Tx::now`], never from the host.
//!
//! In reading order: `open` and `migrate`; `db`, where the databases differ; [`tenants`]; [`components`]; [`groups`],
//! [`manifests`], what makes these [`due`], and their [`orphans`]; [`hosts`]; [`queue`], [`staged`], [`enqueue_many`],
//! [`capacity`], [`claim`] with `subjects`, [`dispatch`]; [`runs`], their [`endings`] and [`parked`]; what a run leaves
//! in [`decisions`] with their [`labels`], [`checkpoints`], [`junction_runs`] and [`logs`]; [`dead_letters`], and what
//! [`resolve`]s many of them; the [`cleanup`] of what is old; the [`sources`] that retries take over from; [`tokens`]
//! of the API and its [`audit`]; [`statistics`]; and [`wakeups`], which only make things happen sooner.

pub mod audit;
pub mod capacity;
pub mod checkpoints;
pub mod claim;
pub mod cleanup;
pub mod components;
pub mod dead_letters;
pub mod decisions;
pub mod dispatch;
pub mod due;
pub mod endings;
pub mod enqueue_many;
pub mod groups;
pub mod hosts;
pub mod junction_runs;
pub mod labels;
pub mod lines;
pub mod logs;
pub mod manifests;
pub mod orphans;
pub mod parked;
pub mod queue;
pub mod resolve;
pub mod runs;
pub mod sources;
pub mod staged;
pub mod statistics;
pub mod tenants;
pub mod tokens;
pub mod wakeups;

mod db;
mod error;
mod faults;
mod migrate;
mod open;
mod subjects;
mod types;

pub use db::{Db, LockKey, Tx};
pub use error::{Place, StoreError};
pub use faults::Faults;
pub use migrate::{VERSION, check, migrate, version};
pub use open::{Durability, OpenOptions, open};
pub use types::{
    DeadLetterStatus, EntryStatus, JunctionRunKind, JunctionRunState, LogLevel, MisfirePolicy,
    ParkReason, ScheduleType, TrainState,
};
