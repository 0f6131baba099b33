//! A junction that takes a type without `#[derive(Value)]`.

use trax_sdk::prelude::*;

struct Ticket;

#[derive(Value)]
struct Resolution {
    text: String,
}

fn triage(train: NewTrain) -> Train {
    train
        .named::<Resolution, Resolution>("triage", "Sorts tickets.")
        .chain(|chain| chain.junction("Resolve", resolve))
}

fn resolve(_: Ticket) -> Resolution {
    Resolution { text: String::new() }
}

fn main() {}
