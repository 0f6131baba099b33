//! A scale with one level.

use trax_sdk::Score;

#[derive(Score)]
#[asks("How urgent is it?")]
enum Urgency {
    High,
}

fn main() {}
