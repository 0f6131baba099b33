//! Questions and answers: which answers fit, what makes two askings the same, and what a state is known by.
//!
//! Everything here is pure. Who answers a question is for the room `deciders`; when an answer is recorded and
//! replayed is for the engine.

pub mod check;
pub mod fingerprint;
pub mod state_hash;
