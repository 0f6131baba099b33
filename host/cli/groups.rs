//! `trax groups`: manifests that share limits, a priority and a switch.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::table::Table;
use crate::operations::groups;

/// List groups of manifests; switch them on and off, or run them now
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
    /// Let groups run
    Enable(Several),
    /// Hold everything of groups, also what somebody asks for
    Disable(Several),
}

#[derive(Debug, Args)]
struct List {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// List those that come after this one: the last one of the page before
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Several {
    /// Their names, up to 1000
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    database: Database,
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
            Some(Action::Enable(several)) => several.switch(true, output).await,
            Some(Action::Disable(several)) => several.switch(false, output).await,
        }
    }
}

impl List {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let listed =
            groups::list(&db, tenant, self.after.as_deref(), usize::from(self.limit)).await?;
        if output.is_json {
            let found = listed.iter().map(|group| {
                json!({
                    "name": group.name, "max_active_jobs": group.max_active_jobs,
                    "priority": group.priority, "enabled": group.is_enabled,
                })
            });
            output.json(&json!({ "groups": found.collect::<Vec<_>>() }))?;
            return Ok(exit::DONE);
        }
        if listed.is_empty() {
            output.line(styled(FAINT, "no group"))?;
        }
        let mut table = Table::new(["name", "enabled", "priority", "most active runs"]);
        for group in listed {
            table.row([
                group.name,
                if group.is_enabled { "yes" } else { "no" }.to_owned(),
                group.priority.to_string(),
                group.max_active_jobs.map(|most| most.to_string()).unwrap_or_default(),
            ]);
        }
        table.print(output)?;
        Ok(exit::DONE)
    }
}

impl Several {
    async fn trigger(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open(Path::new("")).await?;
        let done = groups::trigger(&db, tenant, &self.names).await?;
        output.outcome(&done)
    }

    async fn switch(self, is_enabled: bool, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open(Path::new("")).await?;
        let done = groups::set_enabled(&db, tenant, &self.names, is_enabled).await?;
        output.outcome(&done)
    }
}
