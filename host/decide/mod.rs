//! Questions and answers: which answers fit, what makes two askings the same, what a state is known by, and which
//! answers of earlier runs are given again.
//!
//! Everything here is pure. Who answers a question is for the room `deciders`; when an answer is recorded and
//! replayed is for the engine.

pub mod agreement;
pub mod check;
pub mod fingerprint;
pub mod label;
pub mod replay;
pub mod report;
pub mod state_hash;
