//! What exists and what may follow what: plain data and pure rules, shared by every room.
//!
//! Nothing here waits, reads a clock or holds a handle.

pub mod access;
pub mod answer;
pub mod dispatch;
pub mod failure;
pub mod fairness;
pub mod ids;
pub mod json;
pub mod kinship;
pub mod limits;
pub mod message;
pub mod name;
pub mod question;
pub mod retry;
pub mod schedule;
pub mod source;
pub mod subject;
pub mod timestamp;
pub mod value;
