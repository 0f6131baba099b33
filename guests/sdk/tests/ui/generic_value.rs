//! A value that is generic.

use trax_sdk::Value;

#[derive(Value)]
struct Page<T> {
    items: Vec<T>,
}

fn main() {}
