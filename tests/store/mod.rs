//! The conformance suite of the store: every case runs on SQLite and on Postgres.

#[macro_use]
pub(crate) mod world;

mod claim;
mod components;
mod dead_letters;
mod dispatch;
mod hosts;
mod limits;
mod manifests;
mod open;
mod orphans;
mod parked;
pub(crate) mod plans;
mod queue;
pub(crate) mod records;
mod runs;
mod schema;
pub(crate) mod sources;
mod tenants;
mod wakeups;
