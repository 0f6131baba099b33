//! The engine: the life of a run.

pub mod asking;
pub mod job_runner;
pub mod journal;
