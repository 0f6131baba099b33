//! Guests: honest, failing and hostile ones, and what the host makes of each.

pub(crate) mod hand_written;
mod hostile_components;
mod outcomes;
mod runs;
