//! A junction that takes a value by reference.

use trax_sdk::prelude::*;

#[derive(Value)]
struct Ticket {
    text: String,
}

fn triage(train: NewTrain) -> Train {
    train
        .named::<Ticket, Ticket>("triage", "Sorts tickets.")
        .chain(|chain| chain.junction("Resolve", resolve))
}

fn resolve(ticket: &Ticket) -> Ticket {
    Ticket { text: ticket.text.clone() }
}

fn main() {}
