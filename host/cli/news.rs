//! What happens in an engine, printed as it happens: a line for people, or a line of JSON.

use std::time::Instant;

use serde_json::{Value, json};

use crate::cli::error::CliError;
use crate::cli::output::{BAD, FAINT, GOOD, NOTABLE, Output, styled};
use crate::clock::Clock;
use crate::engine::events::{Ending, EngineEvent};
use crate::model::value::Shown;
use crate::operations::duration;

/// The most letters of an output that a line shows.
const OUTPUT_MAX: usize = 160;

/// Prints events, each with the time since the start.
pub struct News {
    started: Instant,
}

impl News {
    /// Starts the time.
    pub fn start() -> Self {
        Self { started: Clock.instant() }
    }

    /// Prints an event at once.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print(&self, event: &EngineEvent, output: &mut Output) -> Result<(), CliError> {
        if output.is_json {
            output.json_line(&data(event))?;
        } else {
            self.line(&told(event), output)?;
        }
        output.flush()
    }

    /// Says that events were missed.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print_missed(&self, missed: u64, output: &mut Output) -> Result<(), CliError> {
        if output.is_json {
            return output.json_line(&json!({ "event": "missed", "count": missed }));
        }
        self.line(
            &styled(NOTABLE, format!("{missed} lines left out: more than can be shown")),
            output,
        )
    }

    /// Prints a line that is no event, at once.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn say(&self, text: &str, output: &mut Output) -> Result<(), CliError> {
        self.line(text, output)?;
        output.flush()
    }

    fn line(&self, text: &str, output: &mut Output) -> Result<(), CliError> {
        let since = Clock.instant().duration_since(self.started).as_secs_f64();
        output.line(format!("{}  {text}", styled(FAINT, format!("{since:>7.1}s"))))
    }
}

/// An event in words.
fn told(event: &EngineEvent) -> String {
    match event {
        EngineEvent::RunQueued { manifest, .. } => {
            format!("{}    {manifest}", styled(FAINT, "queued"))
        }
        EngineEvent::RetryQueued { manifest, failures, delay, .. } => {
            let delay = duration::written(*delay);
            let what = styled(NOTABLE, "retry");
            format!("{what}     {manifest}: {failures} failed, next try in {delay}")
        }
        EngineEvent::DeadLettered { manifest, reason } => {
            format!("{}  {manifest}: {}", styled(BAD, "gives up"), reason.escape_debug())
        }
        EngineEvent::RunStarted { run, train, manifest, attempt } => {
            let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            let of = of(train, manifest.as_deref());
            format!("{}   run {run}  {of}{attempt}", styled(FAINT, "started"))
        }
        EngineEvent::RunContinued { run, train } => {
            format!("{} run {run}  {train}", styled(FAINT, "continues"))
        }
        EngineEvent::Decided { run, question, answer, decider } => {
            let by = decider.as_ref().map(|decider| format!("by {decider}"));
            let by = styled(FAINT, by.unwrap_or_else(|| "replayed".to_owned()));
            format!("{}   run {run}  {question} = {} {by}", styled(FAINT, "decided"), short(answer))
        }
        EngineEvent::RunEnded { run, train, manifest, ending } => {
            let of = of(train, manifest.as_deref());
            ended(&format!("run {run}  {of}"), ending)
        }
        EngineEvent::HostLost { incarnation } => {
            format!("{} host {incarnation} gave no sign of life", styled(NOTABLE, "lost     "))
        }
        EngineEvent::RunLost { run } => {
            format!("{} run {run} failed: its host is gone", styled(BAD, "lost     "))
        }
    }
}

fn of(train: &str, manifest: Option<&str>) -> String {
    manifest.map_or_else(|| train.to_owned(), |manifest| format!("{manifest} ({train})"))
}

fn ended(run: &str, ending: &Ending) -> String {
    match ending {
        Ending::Completed { output } => {
            let output = match output {
                Shown::Plain(output) => short(output),
                Shown::Sensitive => styled(FAINT, "its output is sensitive and not shown"),
            };
            format!("{} {run}: {output}", styled(GOOD, "completed"))
        }
        Ending::Failed { junction, failure } => {
            let message = failure.message.escape_debug();
            let what = styled(BAD, "failed");
            format!("{what}    {run}: {junction}: {} ({}): {message}", failure.name, failure.class)
        }
        Ending::Cancelled => format!("{} {run}", styled(NOTABLE, "cancelled")),
        Ending::Parked => format!("{}    {run}", styled(FAINT, "parked")),
        Ending::ClaimLost => {
            format!("{}      {run}: another host has it now", styled(NOTABLE, "lost"))
        }
    }
}

/// The start of a text, harmless to a terminal.
fn short(text: &str) -> String {
    let mut letters = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut short: String = letters.by_ref().take(OUTPUT_MAX).collect();
    if letters.next().is_some() {
        short.push_str("...");
    }
    short
}

fn data(event: &EngineEvent) -> Value {
    match event {
        EngineEvent::RunQueued { manifest, entry } => {
            json!({ "event": "run_queued", "manifest": manifest, "entry": entry.0 })
        }
        EngineEvent::RetryQueued { manifest, entry, failures, delay, due } => json!({
            "event": "retry_queued", "manifest": manifest, "entry": entry.0, "failures": failures,
            "delay": duration::written(*delay), "due": due.map(|at| at.to_string()),
        }),
        EngineEvent::DeadLettered { manifest, reason } => {
            json!({ "event": "dead_lettered", "manifest": manifest, "reason": reason })
        }
        EngineEvent::RunStarted { run, train, manifest, attempt } => json!({
            "event": "run_started", "run": run.0, "train": train, "manifest": manifest,
            "attempt": attempt,
        }),
        EngineEvent::RunContinued { run, train } => {
            json!({ "event": "run_continued", "run": run.0, "train": train })
        }
        EngineEvent::Decided { run, question, answer, decider } => json!({
            "event": "decided", "run": run.0, "question": question, "answer": answer,
            "decider": decider,
        }),
        EngineEvent::RunEnded { run, train, manifest, ending } => {
            let (how, output, failure) = match ending {
                Ending::Completed { output: Shown::Plain(output) } => {
                    ("completed", json!(output), None)
                }
                Ending::Completed { output: Shown::Sensitive } => {
                    ("completed", json!({ "_redacted": true }), None)
                }
                Ending::Failed { junction, failure } => {
                    let failure = json!({ "junction": junction, "failure": failure });
                    ("failed", Value::Null, Some(failure))
                }
                Ending::Cancelled => ("cancelled", Value::Null, None),
                Ending::Parked => ("parked", Value::Null, None),
                Ending::ClaimLost => ("claim_lost", Value::Null, None),
            };
            json!({
                "event": "run_ended", "run": run.0, "train": train, "manifest": manifest,
                "ending": how, "output": output, "failure": failure,
            })
        }
        EngineEvent::HostLost { incarnation } => {
            json!({ "event": "host_lost", "incarnation": incarnation.0 })
        }
        EngineEvent::RunLost { run } => json!({ "event": "run_lost", "run": run.0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::RunId;

    #[test]
    fn a_sensitive_output_is_not_told() {
        let ended = |output| EngineEvent::RunEnded {
            run: RunId(7),
            train: "pay".to_owned(),
            manifest: None,
            ending: Ending::Completed { output },
        };
        let (plain, hidden) = (ended(Shown::Plain("\"4111\"".to_owned())), ended(Shown::Sensitive));

        assert_eq!(data(&plain)["output"], "\"4111\"");
        assert!(told(&plain).ends_with("run 7  pay: \"4111\""));
        assert_eq!(data(&hidden)["output"], json!({ "_redacted": true }));
        assert!(told(&hidden).contains("run 7  pay: "));
        assert!(told(&hidden).contains("its output is sensitive and not shown"));
    }
}
