//! `trax trains`: the trains that new runs use.

use clap::Args;
use serde_json::json;

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::table::Table;
use crate::operations::trains;

/// List the trains that new runs use
#[derive(Debug, Args)]
pub struct Trains {
    #[command(flatten)]
    database: Database,
}

impl Trains {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let trains = trains::list(&db, tenant).await?;
        if output.is_json {
            let trains = trains.iter().map(|train| {
                json!({
                    "name": train.stored.name, "description": train.declared.description,
                    "input": train.declared.input, "output": train.declared.output,
                    "component": train.stored.content_hash, "chain_hash": train.stored.chain_hash,
                })
            });
            output.json(&json!({ "trains": trains.collect::<Vec<_>>() }))?;
            return Ok(exit::DONE);
        }
        if trains.is_empty() {
            output
                .line(styled(FAINT, "no train is deployed; `trax deploy FILE.wasm` deploys one"))?;
        }
        let mut table = Table::new(["train", "input", "output", "component", "description"]);
        for train in &trains {
            table.row([
                train.stored.name.clone(),
                train.declared.input.clone(),
                train.declared.output.clone(),
                train.stored.content_hash.chars().take(12).collect(),
                train.declared.description.escape_debug().take(80).collect(),
            ]);
        }
        table.print(output)?;
        Ok(exit::DONE)
    }
}
