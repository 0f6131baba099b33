//! `trax queue`: what waits to run.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::input;
use crate::cli::list::{Ids, Listing, Page};
use crate::cli::output::Output;
use crate::model::ids::EntryId;
use crate::operations::duration;
use crate::operations::enqueue::{Asked, enqueue, enqueue_all};
use crate::operations::queue::{self, Listed};
use crate::store::EntryStatus;
use crate::store::queue::When;

/// List what is queued, newest first; add to it, or withdraw from it
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Queue {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what is queued, newest first
    List(List),
    /// Queue a run of a train; it belongs to no manifest, so it is not tried again
    Add(Add),
    /// Withdraw entries that are queued
    Cancel(Cancel),
}

#[derive(Debug, Args)]
struct Add {
    /// The train
    train: String,
    /// Its input
    #[arg(long, value_name = "JSON|@FILE", default_value = "{}")]
    input: String,
    /// Queue a run for each line of these instead: each is an input. All of them are queued, or none if one is refused
    #[arg(long, value_name = "@FILE|-", conflicts_with = "input")]
    inputs: Option<String>,
    /// From 0 to 31; higher goes first
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: i16,
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "0s",
        value_parser = wait,
        help = "Let it wait this long, such as 5m"
    )]
    delay: Duration,
    #[command(flatten)]
    database: Database,
}

/// Reads how long something is to wait.
///
/// # Errors
/// What to write instead.
pub fn wait(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .ok_or_else(|| "write whole numbers with units, such as 30s or 1h".to_owned())
}

#[derive(Debug, Args)]
struct List {
    /// Also list entries that were dispatched or withdrawn
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Cancel {
    #[command(flatten)]
    chosen: Ids,
    #[command(flatten)]
    database: Database,
}

impl Queue {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Conflict`] when it is refused, [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            None => self.list.run(output).await,
            Some(Action::List(list)) => list.run(output).await,
            Some(Action::Add(add)) => add.run(output).await,
            Some(Action::Cancel(cancel)) => cancel.run(output).await,
        }
    }
}

impl List {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let status = (!self.all).then_some(EntryStatus::Queued);
        let after = self.page.after.map(EntryId);
        let listed = queue::list(&db, tenant, status, after, self.page.limit).await?;
        let listing = Listing {
            name: "entries",
            nothing: "nothing is queued",
            head: ["id", "train", "manifest", "status", "priority", "queued", "not before", "run"],
        };
        listing.print(output, &listed, data, |Listed { entry, manifest }| {
            [
                entry.id.to_string(),
                entry.train_name.clone(),
                manifest.clone().unwrap_or_default(),
                entry.status.as_str().to_owned(),
                entry.priority.to_string(),
                entry.created_at.to_string(),
                entry.scheduled_at.map(|at| at.to_string()).unwrap_or_default(),
                entry.metadata_id.map(|run| run.to_string()).unwrap_or_default(),
            ]
        })
    }
}

fn data(listed: &Listed) -> Value {
    let entry = &listed.entry;
    json!({
        "id": entry.id.0, "external_id": entry.external_id, "train": entry.train_name,
        "manifest": listed.manifest, "status": entry.status.as_str(), "priority": entry.priority,
        "created_at": entry.created_at.to_string(),
        "scheduled_at": entry.scheduled_at.map(|at| at.to_string()),
        "dispatched_at": entry.dispatched_at.map(|at| at.to_string()),
        "is_confirmed": entry.confirmed_at.is_some(), "run": entry.metadata_id.map(|run| run.0),
        "dispatch_attempts": entry.dispatch_attempts, "subject_key": entry.subject_key,
        "dead_letter": entry.dead_letter_id.map(|letter| letter.0),
        "is_explicit_trigger": entry.is_explicit_trigger,
        "replay_decisions_of": entry.replay_decisions_of.map(|run| run.0),
        "resume_from": entry.resume_from.map(|run| run.0),
    })
}

impl Add {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let text = input::read(self.inputs.as_ref().unwrap_or(&self.input))?;
        let (db, tenant) = self.database.open_to_write().await?;
        let asked = Asked {
            train: &self.train,
            input: Some(&text),
            priority: self.priority,
            when: When::After(self.delay),
        };
        if self.inputs.is_some() {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            return output.outcome(&enqueue_all(&db, tenant, &asked, &lines).await?);
        }
        output.outcome(&enqueue(&db, tenant, &asked).await?)
    }
}

impl Cancel {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let ids: Vec<EntryId> = self.chosen.ids.into_iter().map(EntryId).collect();
        let done = match ids[..] {
            [id] => queue::cancel(&db, tenant, id).await?,
            _ => queue::cancel_batch(&db, tenant, &ids).await?,
        };
        output.outcome(&done)
    }
}
