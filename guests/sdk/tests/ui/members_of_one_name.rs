//! Two members that are renamed to one name.

use trax_sdk::Value;

#[derive(Value)]
struct Ticket {
    text: String,
    #[value(rename = "text")]
    body: String,
}

fn main() {}
