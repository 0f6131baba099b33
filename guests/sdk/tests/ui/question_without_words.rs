//! A question without `#[asks("...")]`.

use trax_sdk::Choice;

#[derive(Choice)]
enum Team {
    Billing,
    Sales,
}

fn main() {}
