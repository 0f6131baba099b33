//! An option that holds data.

use trax_sdk::Choice;

#[derive(Choice)]
#[asks("Which team?")]
enum Team {
    Billing,
    Other(String),
}

fn main() {}
