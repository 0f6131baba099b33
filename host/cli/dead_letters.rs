//! `trax dead-letters`: the manifests that gave up.

use clap::Args;
use serde_json::json;

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::table::Table;
use crate::model::ids::DeadLetterId;
use crate::operations::dead_letters::{self, Listed};
use crate::store::DeadLetterStatus;

/// List dead letters, newest first
#[derive(Debug, Args)]
pub struct DeadLetters {
    /// Also list those that somebody has dealt with
    #[arg(long)]
    all: bool,
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// List those below this id: the last one of the page before
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    #[command(flatten)]
    database: Database,
}

impl DeadLetters {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let status = (!self.all).then_some(DeadLetterStatus::AwaitingIntervention);
        let before = self.before.map(DeadLetterId);
        let listed = dead_letters::list(&db, tenant, status, before, self.limit).await?;
        if output.is_json {
            let letters: Vec<_> = listed.iter().map(data).collect();
            output.json(&json!({ "dead_letters": letters }))?;
            return Ok(exit::DONE);
        }
        if listed.is_empty() {
            output.line(styled(FAINT, "no dead letter"))?;
        }
        let mut table = Table::new(["id", "manifest", "train", "since", "status", "reason"]);
        for it in &listed {
            table.row([
                it.dead_letter.id.to_string(),
                it.manifest.clone(),
                it.train.clone(),
                it.dead_letter.dead_lettered_at.to_string(),
                it.dead_letter.status.as_str().replace('_', " "),
                it.dead_letter.reason.escape_debug().take(120).collect(),
            ]);
        }
        table.print(output)?;
        Ok(exit::DONE)
    }
}

fn data(listed: &Listed) -> serde_json::Value {
    let letter = &listed.dead_letter;
    json!({
        "id": letter.id.0, "manifest": listed.manifest, "train": listed.train,
        "status": letter.status.as_str(), "reason": letter.reason,
        "dead_lettered_at": letter.dead_lettered_at.to_string(),
        "failures": letter.retry_count_at_dead_letter,
        "resolved_at": letter.resolved_at.map(|at| at.to_string()),
        "resolution_note": letter.resolution_note,
    })
}
