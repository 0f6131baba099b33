//! Scores a sales lead and drops spam: two questions in one call, a gate and a scale.

use trax_sdk::prelude::*;

trax_sdk::export!(score_leads);

/// Somebody who wrote to sales.
#[derive(Value)]
struct Lead {
    email: String,
    message: String,
}

/// How much somebody wants to buy.
#[derive(Score)]
#[asks("How likely is this lead to buy soon?")]
enum Interest {
    #[describe("Only looking around.")]
    Cold,
    #[describe("Has a need and no date.")]
    Warm,
    #[describe("Wants to buy now.")]
    Hot,
}

/// Whether nobody should read this.
#[derive(YesNo)]
#[asks(
    "Is this message spam?",
    yes = "Advertising, or not written by a person who wants something.",
    no = "A person asks for something."
)]
struct IsSpam;

/// What is done about the lead.
#[derive(Value)]
struct NextStep {
    action: String,
    /// From 0, not at all, to 2, at once.
    urgency: f64,
}

fn score_leads(train: NewTrain) -> Train {
    train
        .named::<Lead, NextStep>("score-leads", "Finds out which leads to call first.")
        .rules("lead-rules", |rules| rules.rule(interest_of).rule(is_spam))
        .default_decider("lead-rules")
        .subject_key("/email")
        .chain(|chain| {
            chain
                .decide::<Lead>(|lead| lead.question::<Interest>().question::<IsSpam>())
                .gate::<IsSpam>(|spam| {
                    spam.yes_at_least(0.8, |track| track.junction("Drop", drop_lead))
                        .no_below(0.8, |track| track.scale::<Interest>(by_interest))
                })
        })
}

fn by_interest(interest: trax_sdk::Scale<'_, Interest>) -> trax_sdk::Scale<'_, Interest> {
    interest
        .at_least(Interest::Cold, |track| track.junction("SendNewsletter", send_newsletter))
        .at_least(Interest::Hot, |track| track.junction("CallNow", call_now))
}

fn drop_lead(spam: YesNoDecision<IsSpam>) -> NextStep {
    NextStep { action: "drop".to_owned(), urgency: 1.0 - spam.probability }
}

fn send_newsletter(interest: ScoreDecision<Interest>) -> NextStep {
    NextStep { action: "newsletter".to_owned(), urgency: interest.score }
}

fn call_now(lead: Lead, interest: ScoreDecision<Interest>) -> NextStep {
    NextStep { action: "call ".to_owned() + &lead.email, urgency: interest.score }
}

/// Every word that speaks of buying makes it more likely.
fn interest_of(lead: &Lead) -> ScoreDecision<Interest> {
    let hits = hits(lead, &["price", "quote", "demo", "buy", "week"]);
    ScoreDecision::new((0.75 * f64::from(hits)).min(2.0), 0.9)
}

fn is_spam(lead: &Lead) -> YesNoDecision<IsSpam> {
    YesNoDecision::new(match hits(lead, &["casino", "crypto", "seo", "winner"]) {
        0 => 0.05,
        1 => 0.6,
        _ => 0.95,
    })
}

/// How many words of the message are among these, whatever their case.
fn hits(lead: &Lead, wanted: &[&str]) -> u8 {
    let words = lead.message.split(|letter: char| !letter.is_ascii_alphanumeric());
    words
        .map(|word| u8::from(wanted.iter().any(|it| it.eq_ignore_ascii_case(word))))
        .fold(0, u8::saturating_add)
}
