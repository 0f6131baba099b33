//! `trax manifests`: what is stated to run, and its switches.

use std::fmt::Display;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::list::{Listing, NamedPage, Names};
use crate::cli::manifest_set;
use crate::cli::output::{FAINT, Output, pretty, styled};
use crate::cli::queue::wait;
use crate::cli::table::Table;
use crate::model::value::Shown;
use crate::operations::duration;
use crate::operations::manifests::{self, Detail, Listed};
use crate::operations::next_runs;
use crate::operations::outcome::Outcome;
use crate::operations::triggers::{self, Trigger};
use crate::store::manifests::Manifest;

/// List manifests; show, run or cancel them, or switch them on and off
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Manifests {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List manifests, oldest first
    List(List),
    /// Show one
    Show(One),
    /// Run a manifest now, or after a delay
    Trigger(Pull),
    /// Say when one will run next, in its time zone and in UTC
    Next(Next),
    /// Change a manifest's limits or when it runs, until a file states them again
    Set(manifest_set::Set),
    /// Let manifests run on their schedule
    Enable(Several),
    /// Keep manifests from running on their schedule; their queued entries wait, unless somebody asked for them
    Disable(Several),
    /// Let retries of manifests replay what the failed run decided
    Replay(Several),
    /// Let retries of manifests ask their deciders afresh, also those that are queued
    AskAfresh(Several),
    /// Ask that the active runs of a manifest end as cancelled
    Cancel(One),
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    page: NamedPage,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct One {
    /// The manifest's id
    id: String,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Pull {
    /// The manifest's id
    id: String,
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "0s",
        value_parser = wait,
        help = "Let it wait this long, such as 5m"
    )]
    delay: Duration,
    /// Let the run ask its deciders rather than replay what a failed run decided
    #[arg(long)]
    ask_afresh: bool,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Next {
    /// The manifest's id
    id: String,
    /// Show this many
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Several {
    #[command(flatten)]
    chosen: Names,
    #[command(flatten)]
    database: Database,
}

impl Manifests {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Conflict`] when it is refused, [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            None => self.list.run(output).await,
            Some(Action::List(list)) => list.run(output).await,
            Some(Action::Show(one)) => one.show(output).await,
            Some(Action::Trigger(pull)) => pull.run(output).await,
            Some(Action::Next(next)) => next.run(output).await,
            Some(Action::Set(set)) => set.run(output).await,
            Some(Action::Enable(several)) => several.switch(true, output).await,
            Some(Action::Disable(several)) => several.switch(false, output).await,
            Some(Action::Replay(several)) => several.replay(true, output).await,
            Some(Action::AskAfresh(several)) => several.replay(false, output).await,
            Some(Action::Cancel(one)) => one.cancel(output).await,
        }
    }
}

impl Next {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let next = next_runs::next(&db, tenant, &self.id, self.count.into()).await?;
        if output.is_json {
            let occurrences = next
                .occurrences
                .iter()
                .map(|at| json!({ "at": at.to_string(), "in_zone": next.zone.shown(*at) }));
            output.json(&json!({
                "id": next.manifest.external_id, "time_zone": next.zone.name(),
                "occurrences": occurrences.collect::<Vec<_>>(), "note": next.note,
            }))?;
            return Ok(exit::DONE);
        }
        let mut table = Table::new(["in its zone", "in UTC"]);
        for at in &next.occurrences {
            table.row([next.zone.shown(*at), at.to_string()]);
        }
        table.print(output)?;
        if let Some(note) = &next.note {
            output.line(styled(FAINT, note))?;
        }
        Ok(exit::DONE)
    }
}

impl List {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let NamedPage { limit, after } = self.page;
        let listed = manifests::list(&db, tenant, after.as_deref(), limit).await?;
        let listing = Listing {
            name: "manifests",
            nothing: "no manifest; `trax apply FILE.toml` states some",
            head: ["id", "train", "group", "runs", "next", "last success"],
        };
        listing.print(output, &listed, data, |it| {
            let manifest = &it.manifest;
            [
                manifest.external_id.clone(),
                manifest.name.clone(),
                it.group.clone(),
                when(manifest),
                manifest.next_due_at.map(|at| at.to_string()).unwrap_or_default(),
                manifest.last_successful_run.map(|at| at.to_string()).unwrap_or_default(),
            ]
        })
    }
}

/// When it runs, in words.
fn when(manifest: &Manifest) -> String {
    if !manifest.is_enabled {
        return "disabled".to_owned();
    }
    if let Some(expression) = &manifest.cron_expression {
        return expression.clone();
    }
    match manifest.interval_seconds.and_then(|seconds| u64::try_from(seconds).ok()) {
        Some(seconds) => format!("every {}", duration::written(Duration::from_secs(seconds))),
        None => manifest.schedule_type.as_str().replace('_', " "),
    }
}

impl One {
    async fn show(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let found = manifests::detail(&db, tenant, &self.id).await?;
        if output.is_json {
            output.json(&detail_data(&found))?;
            return Ok(exit::DONE);
        }
        let manifest = &found.listed.manifest;
        let mut line = |name: &str, text: &dyn Display| {
            output.line(format!("{} {text}", styled(FAINT, format!("{name:<13}"))))
        };
        line("manifest", &manifest.external_id)?;
        line("train", &manifest.name)?;
        line("group", &found.listed.group)?;
        line("runs", &when(manifest))?;
        if let Some(at) = manifest.next_due_at {
            line("next", &at)?;
        }
        if let Some(at) = manifest.last_successful_run {
            line("last success", &at)?;
        }
        if let Some(entry) = found.queued {
            line("queued", &format_args!("work queue entry {entry}"))?;
        }
        if let Some(run) = &found.latest {
            line("latest run", &format_args!("{} {}", run.id, run.train_state.as_str()))?;
        }
        line("failures", &format_args!("{} of {}", found.failures, manifest.max_retries + 1))?;
        if found.has_awaiting_dead_letter {
            line("dead letter", &"awaits somebody; see `trax dead-letters`")?;
        }
        if !manifest.replay_decisions_on_retry {
            line("retries", &"ask their deciders afresh")?;
        }
        line("priority", &manifest.priority)?;
        match &found.input {
            Some(Shown::Plain(text)) => line("input", &format_args!("\n{}", pretty(text)))?,
            Some(Shown::Sensitive) => line("input", &"is sensitive and not shown")?,
            None => {}
        }
        Ok(exit::DONE)
    }

    async fn cancel(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let done = manifests::cancel(&db, tenant, &self.id).await?;
        output.outcome(&done)
    }
}

impl Pull {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let trigger = Trigger { delay: self.delay, asks_afresh: self.ask_afresh };
        let done = triggers::manifest(&db, tenant, &self.id, trigger).await?;
        output.outcome(&Outcome::done(done.message()).with_id(done.work_queue_id.0))
    }
}

impl Several {
    async fn switch(self, is_enabled: bool, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let done = manifests::set_enabled(&db, tenant, &self.chosen.names, is_enabled).await?;
        output.outcome(&done)
    }

    async fn replay(self, replays: bool, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let set = manifests::set_replay_decisions_on_retry;
        output.outcome(&set(&db, tenant, &self.chosen.names, replays).await?)
    }
}

fn data(listed: &Listed) -> Value {
    let manifest = &listed.manifest;
    json!({
        "id": manifest.external_id, "train": manifest.name, "group": listed.group,
        "enabled": manifest.is_enabled, "schedule": manifest.schedule_type.as_str(),
        "cron": manifest.cron_expression, "time_zone": manifest.time_zone,
        "interval_seconds": manifest.interval_seconds, "max_retries": manifest.max_retries,
        "timeout_seconds": manifest.timeout_seconds, "priority": manifest.priority,
        "failure_window_seconds": manifest.failure_window_seconds,
        "replay_decisions_on_retry": manifest.replay_decisions_on_retry, "owner": manifest.owner,
        "next_due_at": manifest.next_due_at.map(|at| at.to_string()),
        "last_successful_run": manifest.last_successful_run.map(|at| at.to_string()),
    })
}

fn detail_data(detail: &Detail) -> Value {
    let mut data = data(&detail.listed);
    data["failures"] = json!(detail.failures);
    data["queued_entry"] = json!(detail.queued.map(|entry| entry.0));
    data["has_awaiting_dead_letter"] = json!(detail.has_awaiting_dead_letter);
    data["latest_run"] = json!(detail.latest.as_ref().map(|run| run.id.0));
    data["input"] = match &detail.input {
        None => Value::Null,
        Some(Shown::Plain(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Some(Shown::Sensitive) => json!({ "_redacted": true }),
    };
    data
}
