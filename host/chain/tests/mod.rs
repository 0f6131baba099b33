//! The rules of chains, tried on declarations.

mod numbering;
mod parallel;
mod picture;
mod properties;
mod steps;
mod trains;
mod verification;
mod walking;

use crate::chain::declaration::Step;
use crate::chain::testing::{Draft, choice, junction, score, yes_no};

/// The steps that end a chain well.
fn sell() -> Step {
    junction("Sell", &["Order"], &["Receipt"])
}

/// A draft with questions of each kind and some types.
fn shop() -> Draft {
    Draft::new()
        .types(&["Payment", "Refund"])
        .question(choice("Team", &["Billing", "Tech"]))
        .question(score("Urgency", &["Low", "High"]))
        .question(yes_no("Fraud"))
}

fn expect(cases: Vec<(Draft, &[&str])>) {
    for (draft, expected) in cases {
        assert_eq!(draft.faults(), expected);
    }
}
