//! A serde attribute that the schema cannot follow.

use trax_sdk::Value;

#[derive(Value)]
struct Ticket {
    #[serde(default)]
    text: String,
}

fn main() {}
