//! `trax db`: the schema of a database.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::database::{self, Database};
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{GOOD, NOTABLE, Output, styled};
use crate::store::{self, OpenOptions, StoreError, VERSION};

/// Bring a database's schema up to date, or say where it stands
#[derive(Debug, Args)]
pub struct DbCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Bring the schema up to date; a file that does not exist is made
    Migrate(Migrate),
    /// Say which version the schema has, and change nothing
    Status(Status),
}

#[derive(Debug, Args)]
struct Migrate {
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Status {
    #[command(flatten)]
    database: Database,
}

/// A database whose schema is opened as it is.
const AS_IT_IS: OpenOptions = OpenOptions {
    is_migrating: false,
    durability: store::Durability::Full,
    connections_max: 2,
    wait_max: std::time::Duration::from_secs(30),
    has_wake_ups: true,
    lock_wait_max: std::time::Duration::from_secs(5),
    faults: None,
};

impl DbCommand {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            Action::Migrate(command) => command.run(output).await,
            Action::Status(command) => command.run(output).await,
        }
    }
}

impl Migrate {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let url = self.database.url(Path::new(""));
        if url == format!("sqlite:{}", database::FILE) {
            database::make_folder(Path::new(""))?;
        }
        let found = match self.database.refuse_missing() {
            Err(CliError::NotFound(_)) => 0,
            Err(error) => return Err(error),
            Ok(()) => match store::open(&url, &AS_IT_IS).await {
                Ok(_) => VERSION,
                Err(StoreError::Older { found, .. }) => found,
                Err(error) => return Err(error.into()),
            },
        };
        let db = store::open(&url, &OpenOptions::default()).await?;
        let place = db.place();
        if output.is_json {
            output.json(&json!({
                "database": place.to_string(), "before": found, "version": VERSION,
            }))?;
        } else if found == VERSION {
            output.line(format!("{place} has schema version {VERSION} already"))?;
        } else {
            let done = styled(GOOD, "migrated");
            output.line(format!("{done} {place} from schema version {found} to {VERSION}"))?;
        }
        Ok(exit::DONE)
    }
}

impl Status {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        self.database.refuse_missing()?;
        let url = self.database.url(Path::new(""));
        let (place, found) = match store::open(&url, &AS_IT_IS).await {
            Ok(db) => (db.place().clone(), VERSION),
            Err(StoreError::Older { place, found, .. }) => (place, found),
            Err(error) => return Err(error.into()),
        };
        if output.is_json {
            output.json(&json!({
                "database": place.to_string(), "version": found, "newest": VERSION,
                "is_up_to_date": found == VERSION,
            }))?;
        } else if found == VERSION {
            let what = styled(GOOD, "up to date");
            output.line(format!("{place} has schema version {found}: {what}"))?;
        } else {
            let what = styled(NOTABLE, format!("version {VERSION} is needed"));
            output.line(format!(
                "{place} has schema version {found}: {what}; run `trax db migrate`"
            ))?;
        }
        Ok(exit::DONE)
    }
}
