//! The rules of resuming, tried on declarations and on what runs of them stored.

mod lineage;
mod making;
mod player;
mod points;
mod property;
mod running;
mod sources;
