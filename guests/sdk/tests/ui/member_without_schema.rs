//! A member whose type has no schema.

use trax_sdk::Value;

#[derive(Value)]
struct Visit {
    at: std::time::Instant,
}

fn main() {}
