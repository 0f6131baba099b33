//! A type's name that the host would refuse.

use trax_sdk::Value;

#[derive(Value)]
#[value(name = "Ticket<1>")]
struct Ticket {
    text: String,
}

fn main() {}
