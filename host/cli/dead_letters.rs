//! `trax dead-letters`: the manifests that gave up, and what to do about them.

use std::ops::ControlFlow;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::list::{Listing, Page};
use crate::cli::output::{FAINT, Output, styled};
use crate::model::ids::{DeadLetterId, TenantId};
use crate::operations::dead_letters::{self, Filter, Listed, Scope};
use crate::operations::manifests;
use crate::store::{Db, DeadLetterStatus};

/// List dead letters, newest first; show, requeue or acknowledge them
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DeadLetters {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List dead letters, newest first
    List(List),
    /// Show one
    Show(Show),
    /// Run the manifests of dead letters again, now
    Requeue(Requeue),
    /// Note that dead letters need nothing more; their manifests run on schedule again
    Acknowledge(Acknowledge),
}

#[derive(Debug, Args)]
struct List {
    /// Also list those that somebody has dealt with
    #[arg(long)]
    all: bool,
    /// Only those of this manifest
    #[arg(long, value_name = "ID")]
    manifest: Option<String>,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Show {
    /// The dead letter's id
    id: i64,
    #[command(flatten)]
    database: Database,
}

/// Which dead letters an action is about.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Chosen {
    /// Their ids, up to 1000
    #[arg(value_name = "ID")]
    ids: Vec<i64>,
    /// Those of this manifest
    #[arg(long, value_name = "ID")]
    manifest: Option<String>,
    /// All of them
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
struct Requeue {
    #[command(flatten)]
    chosen: Chosen,
    /// Let the runs ask their deciders rather than replay what the failed runs decided
    #[arg(long)]
    ask_afresh: bool,
    /// Only say what it would come to
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Acknowledge {
    #[command(flatten)]
    chosen: Chosen,
    /// Why, at most 1000 characters
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Only say how many there are
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    database: Database,
}

/// What is left of a choice: ids, or a scope.
enum Which {
    Ids(Vec<DeadLetterId>),
    Scope(Scope),
}

impl DeadLetters {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Conflict`] when it is refused, [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            None => self.list.run(output).await,
            Some(Action::List(list)) => list.run(output).await,
            Some(Action::Show(show)) => show.run(output).await,
            Some(Action::Requeue(requeue)) => requeue.run(output).await,
            Some(Action::Acknowledge(acknowledge)) => acknowledge.run(output).await,
        }
    }
}

impl List {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let filter = Filter {
            status: (!self.all).then_some(DeadLetterStatus::AwaitingIntervention),
            manifest: self.manifest,
            before: self.page.after.map(DeadLetterId),
        };
        let listed = dead_letters::list(&db, tenant, &filter, self.page.limit).await?;
        let listing = Listing {
            name: "dead_letters",
            nothing: "no dead letter",
            head: ["id", "manifest", "train", "since", "status", "reason"],
        };
        listing.print(output, &listed, data, |it| {
            [
                it.dead_letter.id.to_string(),
                it.manifest.clone(),
                it.train.clone(),
                it.dead_letter.dead_lettered_at.to_string(),
                it.dead_letter.status.as_str().replace('_', " "),
                it.dead_letter.reason.escape_debug().take(120).collect(),
            ]
        })
    }
}

impl Show {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let found = dead_letters::detail(&db, tenant, DeadLetterId(self.id)).await?;
        if output.is_json {
            output.json(&data(&found))?;
            return Ok(exit::DONE);
        }
        let letter = &found.dead_letter;
        let status = letter.status.as_str().replace('_', " ");
        let mut line = |name: &str, text: &dyn std::fmt::Display| {
            output.line(format!("{} {text}", styled(FAINT, format!("{name:<12}"))))
        };
        line("dead letter", &letter.id)?;
        line("manifest", &found.manifest)?;
        line("train", &found.train)?;
        line("status", &status)?;
        line("since", &letter.dead_lettered_at)?;
        line("reason", &letter.reason.escape_debug())?;
        line("failures", &letter.retry_count_at_dead_letter)?;
        if let Some(at) = letter.resolved_at {
            line("resolved", &at)?;
        }
        if let Some(note) = &letter.resolution_note {
            line("note", &note.escape_debug())?;
        }
        if let Some(run) = letter.retry_metadata_id {
            line("run", &run)?;
        }
        Ok(exit::DONE)
    }
}

impl Requeue {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let which = self.chosen.resolve(&db, tenant).await?;
        if self.dry_run {
            let counted = match &which {
                Which::Ids(ids) => dead_letters::preview_batch(&db, tenant, ids).await?,
                Which::Scope(scope) => dead_letters::preview_all(&db, tenant, *scope).await?,
            };
            return output.dry(&counted);
        }
        let done = match which {
            Which::Ids(ids) if ids.len() == 1 => {
                dead_letters::requeue(&db, tenant, ids[0], self.ask_afresh).await?
            }
            Which::Ids(ids) => {
                dead_letters::requeue_batch(&db, tenant, &ids, self.ask_afresh).await?
            }
            Which::Scope(scope) => {
                let awaiting = dead_letters::count(&db, tenant, scope).await?.count.unwrap_or(0);
                let bar = output.bar(awaiting.unsigned_abs());
                let progress = |resolved: i64| {
                    bar.set_position(resolved.unsigned_abs());
                    ControlFlow::Continue(())
                };
                let done =
                    dead_letters::requeue_all(&db, tenant, scope, self.ask_afresh, progress).await;
                bar.finish_and_clear();
                done?
            }
        };
        output.outcome(&done)
    }
}

impl Acknowledge {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let which = self.chosen.resolve(&db, tenant).await?;
        let note = self.note.as_deref();
        if self.dry_run {
            let counted = match &which {
                Which::Ids(ids) => dead_letters::count_batch(&db, tenant, ids).await?,
                Which::Scope(scope) => dead_letters::count(&db, tenant, *scope).await?,
            };
            return output.dry(&counted);
        }
        let done = match which {
            Which::Ids(ids) if ids.len() == 1 => {
                dead_letters::acknowledge(&db, tenant, ids[0], note).await?
            }
            Which::Ids(ids) => dead_letters::acknowledge_batch(&db, tenant, &ids, note).await?,
            Which::Scope(scope) => dead_letters::acknowledge_all(&db, tenant, scope, note).await?,
        };
        output.outcome(&done)
    }
}

impl Chosen {
    async fn resolve(&self, db: &Db, tenant: TenantId) -> Result<Which, CliError> {
        Ok(match &self.manifest {
            Some(id) => Which::Scope(Scope::Manifest(manifests::id_of(db, tenant, id).await?)),
            None if self.all => Which::Scope(Scope::All),
            None => Which::Ids(self.ids.iter().copied().map(DeadLetterId).collect()),
        })
    }
}

fn data(listed: &Listed) -> Value {
    let letter = &listed.dead_letter;
    json!({
        "id": letter.id.0, "manifest": listed.manifest, "train": listed.train,
        "status": letter.status.as_str(), "reason": letter.reason,
        "dead_lettered_at": letter.dead_lettered_at.to_string(),
        "failures": letter.retry_count_at_dead_letter,
        "resolved_at": letter.resolved_at.map(|at| at.to_string()),
        "resolution_note": letter.resolution_note,
        "entry": letter.work_queue_id.map(|entry| entry.0),
        "run": letter.retry_metadata_id.map(|run| run.0),
    })
}
