//! Sends a support ticket to the team that answers it.
//!
//! A decider says which team a ticket is for. The train follows it when it is confident enough, and hands the ticket to
//! a person when it is not. It ships a decider made of rules, so that it runs with nothing configured; an operator can
//! put a model in its place without a change here.

mod rules;

use trax_sdk::prelude::*;

trax_sdk::export!(support_triage);

/// A ticket as the mailbox gives it.
#[derive(Value)]
struct RawTicket {
    from: String,
    body: String,
}

/// A ticket that has been read.
#[derive(Value)]
struct Ticket {
    customer: String,
    subject: String,
    words: Vec<String>,
}

/// The teams that answer tickets.
#[derive(Choice, Value)]
#[asks("Which team should answer this ticket?")]
enum Team {
    #[describe("Invoices, payments, refunds and prices.")]
    Billing,
    #[describe("Errors, outages and questions about how the product works.")]
    Technical,
    #[describe("New contracts, more seats and other plans.")]
    Sales,
}

/// Who answers the ticket, and with what: all that closing it needs, so that a run that failed there resumes there.
#[derive(Value)]
struct Routed {
    subject: String,
    /// None when a person has to find the team.
    team: Option<Team>,
    reply: String,
}

/// What became of the ticket.
#[derive(Value)]
struct Resolution {
    customer: String,
    subject: String,
    queue: String,
    reply: String,
}

fn support_triage(train: NewTrain) -> Train {
    train
        .named::<RawTicket, Resolution>(
            "support-triage",
            "Sends a support ticket to the team that answers it.",
        )
        .rules("support-rules", |rules| rules.rule(rules::team_of))
        .default_decider("support-rules")
        .chain(|chain| {
            chain
                .junction("ParseTicket", parse_ticket)
                .switch::<Team>(|team| {
                    team.asking_about::<Ticket>()
                        .when_confident(Team::Billing, 0.7, |track| {
                            track.junction("AnswerBilling", answer_billing)
                        })
                        .when_confident(Team::Technical, 0.7, |track| {
                            track.junction("AnswerTechnical", answer_technical)
                        })
                        .when(Team::Sales, |track| track.junction("AnswerSales", answer_sales))
                        .otherwise("Human", |track| track.junction("HandOver", hand_over))
                        .described("A person finds the team.")
                })
                .checkpoint::<Routed>()
                .junction("CloseTicket", close_ticket)
        })
}

fn parse_ticket(raw: RawTicket) -> Result<Ticket, Failure> {
    let subject = raw.body.lines().find(|line| !line.trim().is_empty()).ok_or_else(|| {
        Failure::permanent("EmptyTicket", format!("the ticket of {} has no text", raw.from))
    })?;
    let words = raw.body.split(|letter: char| !letter.is_alphanumeric());
    Ok(Ticket {
        customer: raw.from,
        subject: subject.trim().to_owned(),
        words: words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect(),
    })
}

fn answer_billing(ticket: Ticket) -> Routed {
    let reply = "We are looking into your invoice.".to_owned();
    Routed { subject: ticket.subject, team: Some(Team::Billing), reply }
}

fn answer_technical(ticket: Ticket) -> Routed {
    let reply = "An engineer is looking into it.".to_owned();
    Routed { subject: ticket.subject, team: Some(Team::Technical), reply }
}

fn answer_sales(ticket: Ticket) -> Routed {
    let reply = format!("We will write to {} with an offer.", ticket.customer);
    Routed { subject: ticket.subject, team: Some(Team::Sales), reply }
}

fn hand_over(ticket: Ticket, team: TrackTaken<Team>) -> Routed {
    let reason = team.fallback_reason.unwrap_or_default();
    info!("'{}' goes to a person: {reason}", ticket.subject);
    let reply = "A colleague will answer you soon.".to_owned();
    Routed { subject: ticket.subject, team: None, reply }
}

/// No mail goes to a domain that ends in `.invalid`: the ticket cannot be closed, however often that is tried.
fn close_ticket(raw: RawTicket, routed: Routed) -> Result<Resolution, Failure> {
    if raw.from.ends_with(".invalid") {
        return Err(Failure::transient("Undelivered", "the reply could not be delivered"));
    }
    let queue = match routed.team {
        Some(Team::Billing) => "billing",
        Some(Team::Technical) => "technical",
        Some(Team::Sales) => "sales",
        None => "people",
    };
    Ok(Resolution {
        customer: raw.from,
        subject: routed.subject,
        queue: queue.to_owned(),
        reply: routed.reply,
    })
}
