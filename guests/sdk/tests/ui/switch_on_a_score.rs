//! A switch on a question that is no choice.

use trax_sdk::prelude::*;

#[derive(Value)]
struct Ticket {
    text: String,
}

#[derive(Score)]
#[asks("How urgent is it?")]
enum Urgency {
    Low,
    High,
}

fn triage(train: NewTrain) -> Train {
    train
        .named::<Ticket, Ticket>("triage", "Sorts tickets.")
        .chain(|chain| chain.switch::<Urgency>(|urgency| urgency))
}

fn main() {}
