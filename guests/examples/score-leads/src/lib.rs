//! Scores a sales lead and drops spam: two questions in one call, a gate and a scale.

use trax_sdk::prelude::*;

trax_sdk::export!(score_leads);

/// Somebody who wrote to sales.
#[derive(Value)]
struct Lead {
    email: String,
    message: String,
    /// How many people work there, if they said.
    employees: Option<u32>,
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
        .at_least(Interest::Warm, |track| track.junction("WriteBack", write_back))
        .at_least(Interest::Hot, |track| track.junction("CallNow", call_now))
}

fn drop_lead(spam: YesNoDecision<IsSpam>) -> NextStep {
    info!("dropped a lead that is spam with a probability of {}", spam.probability);
    NextStep { action: "drop".to_owned(), urgency: 0.0 }
}

fn send_newsletter(interest: ScoreDecision<Interest>) -> NextStep {
    NextStep { action: "newsletter".to_owned(), urgency: interest.score }
}

fn write_back(interest: ScoreDecision<Interest>) -> NextStep {
    NextStep { action: "write".to_owned(), urgency: interest.score }
}

fn call_now(lead: Lead, interest: ScoreDecision<Interest>) -> NextStep {
    let size = lead.employees.map_or_else(String::new, |count| format!(" (company of {count})"));
    NextStep { action: format!("call {}{size}", lead.email), urgency: interest.score }
}

/// Every word that speaks of buying makes it more likely; so does a big company.
fn interest_of(lead: &Lead) -> ScoreDecision<Interest> {
    let message = lead.message.to_ascii_lowercase();
    let mut score: f64 = 0.0;
    for word in ["price", "quote", "demo", "buy", "this week"] {
        score += if message.contains(word) { 0.75 } else { 0.0 };
    }
    score += if lead.employees.is_some_and(|count| count >= 100) { 0.5 } else { 0.0 };
    ScoreDecision::new(score.min(2.0), 0.9)
}

fn is_spam(lead: &Lead) -> YesNoDecision<IsSpam> {
    let message = lead.message.to_ascii_lowercase();
    let words = ["casino", "crypto", "seo", "winner"];
    let hits = words.iter().filter(|word| message.contains(**word)).count();
    YesNoDecision::new(match hits {
        0 => 0.05,
        1 => 0.6,
        _ => 0.95,
    })
}
