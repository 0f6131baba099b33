//! The engine: passes of its loops on a stopped clock. No loop runs by itself, and nothing waits for time.

#[macro_use]
pub(crate) mod world;

mod cancellation;
mod checkpoints;
mod cleanup;
mod crashes;
mod dead_letters;
mod applying;
mod asked_resumes;
mod dispatcher;
mod hand_over;
mod labels;
mod hosts;
mod manager;
mod outages;
mod patches;
mod recovery;
pub(crate) mod replay;
mod replay_races;
mod replayed_answers;
mod requeue_jobs;
mod requeues;
mod resumes;
mod retries;
mod schedules;
mod shadows;
mod statements;
mod steps;
mod tickets;
mod triggers;
mod wakeups;
