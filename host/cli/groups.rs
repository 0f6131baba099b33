//! `trax groups`: manifests that share limits, a priority and a switch.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::list::{Listing, NamedPage, Names};
use crate::cli::output::Output;
use crate::operations::groups;
use crate::operations::patches::{self, GroupPatch};
use crate::store::groups::Group;

/// List groups of manifests; switch them on and off, change, run or cancel them
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Groups {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List groups, by name
    List(List),
    /// Run every enabled manifest of groups now that runs on its own schedule
    Trigger(Several),
    /// Ask that the active runs of groups end as cancelled
    Cancel(Several),
    /// Change a group's limits, until a file states them again
    Set(Set),
    /// Let groups run
    Enable(Several),
    /// Hold everything of groups, also what somebody asks for
    Disable(Several),
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    page: NamedPage,
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

#[derive(Debug, Args)]
struct Set {
    /// Its name
    name: String,
    /// Groups of a higher one go first, from 0 to 31
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    priority: Option<i16>,
    /// How many of its runs may be active, or none for any number
    #[arg(long, value_name = "COUNT|none", value_parser = or_none)]
    max_active_jobs: Option<OrNone>,
    #[command(flatten)]
    database: Database,
}

/// A number, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrNone(pub Option<i32>);

/// Reads a number or `none`.
///
/// # Errors
/// What to write instead.
fn or_none(text: &str) -> Result<OrNone, String> {
    if text == "none" {
        return Ok(OrNone(None));
    }
    let number = text.parse().map_err(|_| "write a whole number, or none".to_owned())?;
    Ok(OrNone(Some(number)))
}

impl Groups {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::NotFound`], [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            None => self.list.run(output).await,
            Some(Action::List(list)) => list.run(output).await,
            Some(Action::Trigger(several)) => several.trigger(output).await,
            Some(Action::Cancel(several)) => several.cancel(output).await,
            Some(Action::Set(set)) => set.run(output).await,
            Some(Action::Enable(several)) => several.switch(true, output).await,
            Some(Action::Disable(several)) => several.switch(false, output).await,
        }
    }
}

impl List {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let NamedPage { limit, after } = self.page;
        let listed = groups::list(&db, tenant, after.as_deref(), limit).await?;
        let listing = Listing {
            name: "groups",
            nothing: "no group",
            head: ["name", "enabled", "priority", "most active runs"],
        };
        listing.print(output, &listed, data, |group| {
            [
                group.name.clone(),
                if group.is_enabled { "yes" } else { "no" }.to_owned(),
                group.priority.to_string(),
                group.max_active_jobs.map(|most| most.to_string()).unwrap_or_default(),
            ]
        })
    }
}

fn data(group: &Group) -> Value {
    json!({
        "name": group.name, "max_active_jobs": group.max_active_jobs,
        "priority": group.priority, "enabled": group.is_enabled,
    })
}

impl Set {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let patch = GroupPatch {
            max_active_jobs: self.max_active_jobs.map(|OrNone(most)| most),
            priority: self.priority,
            is_enabled: None,
        };
        let (db, tenant) = self.database.open_to_write().await?;
        output.outcome(&patches::group(&db, tenant, &self.name, patch).await?)
    }
}

impl Several {
    async fn cancel(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        output.outcome(&groups::cancel(&db, tenant, &self.chosen.names).await?)
    }

    async fn trigger(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let done = groups::trigger(&db, tenant, &self.chosen.names).await?;
        output.outcome(&done)
    }

    async fn switch(self, is_enabled: bool, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let done = groups::set_enabled(&db, tenant, &self.chosen.names, is_enabled).await?;
        output.outcome(&done)
    }
}
