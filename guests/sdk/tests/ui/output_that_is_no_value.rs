//! A junction that gives a type without `#[derive(Value)]`.

use trax_sdk::prelude::*;

#[derive(Value)]
struct Ticket {
    text: String,
}

struct Resolution;

fn triage(train: NewTrain) -> Train {
    train
        .named::<Ticket, Ticket>("triage", "Sorts tickets.")
        .chain(|chain| chain.junction("Resolve", resolve))
}

fn resolve(_: Ticket) -> Result<Resolution, Failure> {
    Ok(Resolution)
}

fn main() {}
