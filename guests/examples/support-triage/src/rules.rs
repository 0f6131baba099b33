//! The rules of the decider that the train ships: words that speak for a team.

use trax_sdk::prelude::*;

use crate::{Team, Ticket};

/// How many of these words are enough to be certain.
const WORDS_ENOUGH: usize = 2;

const BILLING: &[&str] = &["invoice", "payment", "charged", "refund", "price", "receipt"];
const TECHNICAL: &[&str] = &["error", "crash", "crashes", "bug", "outage", "login", "slow"];
const SALES: &[&str] = &["contract", "seats", "plan", "upgrade", "quote"];

/// The team that most words speak for. One word is a guess and two are certain; with none it is a guess that no bar
/// lets pass.
pub(crate) fn team_of(ticket: &Ticket) -> ChoiceDecision<Team> {
    let count =
        |words: &[&str]| ticket.words.iter().filter(|word| words.contains(&word.as_str())).count();
    let (billing, technical, sales) = (count(BILLING), count(TECHNICAL), count(SALES));
    let (team, most) = if technical > billing && technical >= sales {
        (Team::Technical, technical)
    } else if sales > billing {
        (Team::Sales, sales)
    } else {
        (Team::Billing, billing)
    };
    let confidence = match most {
        0 => 0.2,
        few if few < WORDS_ENOUGH => 0.6,
        _ => 0.95,
    };
    ChoiceDecision::new(team, confidence)
}
