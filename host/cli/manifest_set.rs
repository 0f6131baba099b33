//! `trax manifests set`: single settings of a manifest, until a file states them again.

use std::time::Duration;

use clap::Args;

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::queue::wait;
use crate::operations::patches::{self, ManifestPatch};

/// What changes about a manifest.
#[derive(Debug, Args)]
pub struct Set {
    /// Its id
    id: String,
    /// How many retries before a dead letter
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    max_retries: Option<i32>,
    /// From 0 to 31
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    priority: Option<i16>,
    /// How long a run may take
    #[arg(long, value_name = "DURATION", value_parser = wait)]
    timeout: Option<Duration>,
    /// Runs may take as long as those of a manifest that states nothing
    #[arg(long, conflicts_with = "timeout")]
    clear_timeout: bool,
    /// Run this long after each success
    #[arg(long, value_name = "DURATION", value_parser = wait)]
    every: Option<Duration>,
    /// Run by the clock
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "every")]
    cron: Option<String>,
    #[command(flatten)]
    database: Database,
}

impl Set {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Conflict`] when it is refused, [`CliError::NotFound`], [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let seconds = |length: Duration| i32::try_from(length.as_secs()).unwrap_or(i32::MAX);
        let timeout = self.timeout.map(|timeout| Some(seconds(timeout)));
        let patch = ManifestPatch {
            max_retries: self.max_retries,
            priority: self.priority,
            timeout_seconds: if self.clear_timeout { Some(None) } else { timeout },
            interval_seconds: self.every.map(seconds),
            cron_expression: self.cron,
        };
        let (db, tenant) = self.database.open_to_write().await?;
        output.outcome(&patches::manifest(&db, tenant, &self.id, &patch).await?)
    }
}
