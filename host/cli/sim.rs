//! `trax sim`: what manifests would do up to an instant, without running anything.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::queue::wait;
use crate::cli::table::Table;
use crate::clock::Clock;
use crate::model::retry::RetryPolicy;
use crate::model::timestamp::Timestamp;
use crate::operations::duration;
use crate::operations::manifest_file::{self, ManifestFile, agreement};
use crate::operations::sim::{self, Event, Failing, Plan, Span, Told, What};

/// Say when manifests would run, be retried and become dead letters, without running anything
#[derive(Debug, Args)]
#[command(
    long_about = "Say when manifests would run, be retried and become dead letters, on a clock of its own: nothing \
        runs, and nothing is written. With files they are taken as stated at the start; without, those of the database \
        are taken as they stand.\n\n\
        Assumed is that a run takes no time and works, unless --fail names its manifest, and that nobody triggers \
        anything. The variance of a schedule is left out."
)]
pub struct Sim {
    /// Manifest files, instead of the database
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How far to go, such as 14d
    #[arg(long, default_value = "1d", value_name = "DURATION", value_parser = wait)]
    until: Duration,
    /// Where to start [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = instant, requires = "files")]
    from: Option<Timestamp>,
    /// Assume that the runs of this manifest fail: all of them, or the next COUNT
    #[arg(long, value_name = "ID[=COUNT]", value_parser = assumption)]
    fail: Vec<(String, Option<u32>)>,
    /// The most events that are told
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    limit: usize,
    #[command(flatten)]
    database: Database,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text)
        .ok_or_else(|| "is no instant in RFC 3339, such as 2026-12-24T18:00:00Z".to_owned())
}

fn assumption(text: &str) -> Result<(String, Option<u32>), String> {
    let Some((id, count)) = text.split_once('=') else { return Ok((text.to_owned(), None)) };
    let count = count.parse().map_err(|_| "is not ID, nor ID=COUNT".to_owned())?;
    Ok((id.to_owned(), Some(count)))
}

impl Sim {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Operation`] with what is wrong with a file, [`CliError::Usage`] when no manifest has a name of
    /// `--fail`.
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let files: Vec<_> =
            self.files.iter().map(|path| manifest_file::read(path)).collect::<Result<_, _>>()?;
        agreement::agree(&files)?;
        let (plans, from) = if files.is_empty() {
            let (db, tenant) = self.database.open_to_read().await?;
            sim::of_database(&db, tenant).await?
        } else {
            let now = || Timestamp::from_micros(Clock.unix_micros()).unwrap_or(Timestamp::MIN);
            let from = self.from.unwrap_or_else(now);
            (sim::of_files(&files, from), from)
        };
        let failing: Failing = self.fail.into_iter().collect();
        for id in failing.keys() {
            if !plans.iter().any(|plan| plan.id == *id) {
                return Err(CliError::Usage(format!("--fail {id}: there is no manifest '{id}'")));
            }
        }
        let until = from.saturating_add(self.until);
        let span = Span { from, until, events_max: self.limit };
        let told = sim::simulate(plans.clone(), failing, &policy(&files), span);
        if output.is_json {
            output.json(&data(&plans, &told, span))?;
        } else {
            print(&plans, &told, span, output)?;
        }
        Ok(exit::DONE)
    }
}

/// The delays of retries as the files state them; the last one that does wins.
fn policy(files: &[ManifestFile]) -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    for file in files {
        let stated = &file.scheduler;
        policy.delay = stated.retry_delay.unwrap_or(policy.delay);
        policy.multiplier = stated.retry_backoff_multiplier.unwrap_or(policy.multiplier);
        policy.delay_max = stated.max_retry_delay.unwrap_or(policy.delay_max);
    }
    policy
}

fn print(plans: &[Plan], told: &Told, span: Span, output: &mut Output) -> Result<(), CliError> {
    let mut table = Table::new(["in its zone", "manifest", "what"]);
    for event in &told.events {
        let plan = &plans[event.plan];
        table.row([plan.zone.shown(event.at), plan.id.clone(), words(event)]);
    }
    table.print(output)?;
    for plan in plans {
        if let Some(why) = plan.is_held {
            output.line(styled(FAINT, format!("{} does nothing: {why}", plan.id)))?;
        }
    }
    let [runs, retries, letters] = counts(told);
    output.line(format!(
        "until {}: {runs} run(s), {retries} retry(s), {letters} dead letter(s)",
        span.until
    ))?;
    if told.is_cut {
        let what = "there is more; raise --limit, or lower --until";
        output.line(styled(FAINT, what))?;
    }
    Ok(())
}

fn words(event: &Event) -> String {
    let ending = |fails: bool| if fails { ", and fails" } else { "" };
    match &event.what {
        What::Run { fails, .. } => format!("run{}", ending(*fails)),
        What::Retry { failures, delay, fails } => {
            format!("retry {failures} after {}{}", duration::written(*delay), ending(*fails))
        }
        What::DeadLetter { reason } => format!("dead letter: {reason}"),
    }
}

fn counts(told: &Told) -> [usize; 3] {
    let mut counts = [0; 3];
    for event in &told.events {
        counts[match event.what {
            What::Run { .. } => 0,
            What::Retry { .. } => 1,
            What::DeadLetter { .. } => 2,
        }] += 1;
    }
    counts
}

fn data(plans: &[Plan], told: &Told, span: Span) -> Value {
    let event = |event: &Event| {
        let plan = &plans[event.plan];
        let mut data = match &event.what {
            What::Run { occurrence, fails } => json!({
                "what": "run", "fails": fails, "occurrence": occurrence.map(|at| at.to_string()),
            }),
            What::Retry { failures, delay, fails } => json!({
                "what": "retry", "fails": fails, "failures": failures,
                "delay_seconds": delay.as_secs_f64(),
            }),
            What::DeadLetter { reason } => json!({ "what": "dead_letter", "reason": reason }),
        };
        data["at"] = event.at.to_string().into();
        data["in_zone"] = plan.zone.shown(event.at).into();
        data["manifest"] = plan.id.clone().into();
        data
    };
    let held = plans
        .iter()
        .filter_map(|plan| plan.is_held.map(|why| json!({ "manifest": plan.id, "reason": why })));
    let [runs, retries, letters] = counts(told);
    json!({
        "from": span.from.to_string(), "until": span.until.to_string(),
        "events": told.events.iter().map(event).collect::<Vec<_>>(),
        "held": held.collect::<Vec<_>>(), "has_more": told.is_cut,
        "runs": runs, "retries": retries, "dead_letters": letters,
    })
}
