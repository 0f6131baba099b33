//! A train as data: its declaration, its verification, its node ids and graph, and the walk of a run through it.
//!
//! Everything here is pure. The host owns the values between junctions; the walk says what comes next and is told what
//! came of it, and never waits for anything itself.

pub mod declaration;
