//! What happened in a run, kept in memory and shown to whoever ran it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::cli::error::CliError;
use crate::cli::output::{BAD, FAINT, NOTABLE, Output, styled};
use crate::engine::journal::{Decided, Event, Journal};
use crate::engine::shadows::ShadowAnswer;
use crate::guest::context::BoxFuture;
use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::Failure;

/// Keeps the events of one run.
#[derive(Debug, Default)]
pub struct Trace {
    events: Mutex<Vec<Event>>,
}

impl Journal for Trace {
    fn record(&self, event: Event) -> BoxFuture<'_, Result<(), Failure>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Trace {
    /// The events so far, in order.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints the path that the run took.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print(&self, chain: &Chain, output: &mut Output) -> Result<(), CliError> {
        for event in self.events() {
            if let Some(line) = line(&withheld(chain, event)) {
                output.line(format!("  {line}"))?;
            }
        }
        Ok(())
    }

    /// The path that the run took, as data.
    pub fn to_json(&self, chain: &Chain) -> Vec<Value> {
        self.events().into_iter().filter_map(|event| data(&withheld(chain, event))).collect()
    }
}

/// What is shown instead of what a sensitive question decided.
const WITHHELD: &str = "(withheld)";

/// The event as it may be shown: without the track that a sensitive question sent the run down, also where the track is
/// part of a node's id.
fn withheld(chain: &Chain, mut event: Event) -> Event {
    let (Event::JunctionStarted { node, .. }
    | Event::JunctionEnded { node, .. }
    | Event::Routed { node, .. }
    | Event::Checkpoint { node, .. }) = &mut event
    else {
        return event;
    };
    let found = chain.nodes().iter().find(|known| known.id == *node);
    if let Some(known) = found.filter(|known| known.withheld_by.is_some()) {
        node.clone_from(&known.name);
    }
    if let Event::Routed { question_key, track, fallback_reason, .. } = &mut event
        && chain.question(question_key).is_some_and(|question| question.sensitive)
    {
        WITHHELD.clone_into(track);
        *fallback_reason = None;
    }
    event
}

fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::JunctionStarted { .. } => return None,
        Event::JunctionEnded { node, receipt, failure, .. } => {
            let end = match failure {
                Some(_) => styled(BAD, "failed"),
                None => styled(FAINT, milliseconds(receipt.wall_time)),
            };
            format!("junction    {node:<44} {end}")
        }
        Event::Decided(decided) => {
            let what = match (&decided.refused, &decided.answer) {
                (Some(reason), _) => styled(BAD, reason),
                (None, Some(_)) if decided.question.sensitive => WITHHELD.to_owned(),
                (None, Some(answer)) => described(answer),
                (None, None) => String::new(),
            };
            let by = decided.decider.as_ref().map(|decider| format!("by {decider}"));
            let by = styled(FAINT, by.unwrap_or_else(|| "replayed".to_owned()));
            let asked = format!("{}: {what}", decided.question.key);
            format!("decision    {asked:<44} {by}")
        }
        Event::Shadowed(shadowed) => {
            let told = |it: &ShadowAnswer| {
                let how = match (&it.error, it.has_agreed) {
                    (Some(_), _) => styled(NOTABLE, "failed"),
                    (None, true) => "agreed".to_owned(),
                    (None, false) => styled(NOTABLE, "differed"),
                };
                format!("{} {how}", it.decider)
            };
            let told: Vec<String> = shadowed.answers.iter().map(told).collect();
            format!("shadows     {}: {}", shadowed.key, told.join(", "))
        }
        Event::Routed { node, track, fallback_reason, .. } => {
            let why = fallback_reason.as_ref().map(|reason| styled(NOTABLE, reason));
            let taken = format!("{node} takes {track}");
            format!("track       {taken:<44} {}", why.unwrap_or_default()).trim_end().to_owned()
        }
        Event::Checkpoint { node, .. } => format!("checkpoint  {node}"),
    })
}

fn data(event: &Event) -> Option<Value> {
    Some(match event {
        Event::JunctionStarted { .. } => return None,
        Event::JunctionEnded { node, junction, receipt, failure } => json!({
            "kind": "junction", "node": node, "junction": junction, "receipt": receipt,
            "failure": failure,
        }),
        Event::Decided(decided) => decision(decided),
        Event::Shadowed(shadowed) => {
            let shown = |it: &ShadowAnswer| {
                let mut shown = it.to_json();
                if shadowed.is_sensitive {
                    shown["answer"] = json!({"_redacted": true});
                }
                shown
            };
            json!({
                "kind": "shadows", "node": shadowed.node, "question": shadowed.key,
                "occurrence": shadowed.occurrence,
                "shadows": shadowed.answers.iter().map(shown).collect::<Vec<_>>(),
            })
        }
        Event::Routed { node, question_key, track, fallback_reason } => json!({
            "kind": "track", "node": node, "question": question_key, "track": track,
            "fallback_reason": fallback_reason,
        }),
        Event::Checkpoint { node, state, .. } => json!({
            "kind": "checkpoint", "node": node, "state_type": &*state.type_name,
        }),
    })
}

fn decision(decided: &Decided) -> Value {
    let answer = match &decided.answer {
        Some(_) if decided.question.sensitive => json!({"_redacted": true}),
        answer => json!(answer.as_ref().map(|answer| &answer.kind)),
    };
    json!({
        "kind": "decision", "node": decided.node, "question": decided.question.key,
        "occurrence": decided.occurrence, "answer": answer, "refused": decided.refused,
        "decider": decided.decider, "fingerprint": decided.fingerprint,
        "state_hash": decided.state_hash,
    })
}

fn described(answer: &Answer) -> String {
    match &answer.kind {
        AnswerKind::Choice { choice, confidence, .. } => {
            format!("{choice}, confidence {confidence}")
        }
        AnswerKind::Score { score, confidence, .. } => format!("{score}, confidence {confidence}"),
        AnswerKind::YesNo { probability } => format!("yes with probability {probability}"),
    }
}

/// A duration for people.
pub fn milliseconds(duration: Duration) -> String {
    let micros = duration.as_micros();
    match micros {
        0..=999 => format!("{micros} us"),
        1_000..=9_999_999 => format!("{:.1} ms", duration.as_secs_f64() * 1_000.0),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}
