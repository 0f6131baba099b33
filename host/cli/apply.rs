//! `trax apply`: manifest files into a database, all of them or none.

use std::path::PathBuf;

use clap::Args;

use crate::cli::database::Database;
use crate::cli::deploy::Stored;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{FAINT, Output, styled};
use crate::operations::error::OperationError;
use crate::operations::manifest_file::agreement;
use crate::operations::{apply, manifest_file};
use crate::store::StoreError;

/// State manifests (.toml): all of them, or none if one is wrong
#[derive(Debug, Args)]
pub struct Apply {
    /// Manifest files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Say what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    database: Database,
}

impl Apply {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Operation`] with every fault of the first file that is wrong; then nothing was written.
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let files: Vec<_> =
            self.files.iter().map(|path| manifest_file::read(path)).collect::<Result<_, _>>()?;
        agreement::agree(&files)?;
        let (db, tenant) = self.database.open_to_write().await?;
        let mut tx = db.begin().await?;
        let mut applied = Vec::new();
        for file in &files {
            applied.extend(apply::apply(&mut tx, tenant, file).await?);
        }
        let ended: Result<(), StoreError> =
            if self.dry_run { tx.rollback().await } else { tx.commit().await };
        ended.map_err(OperationError::from)?;
        let stored = Stored::of_manifests(applied);
        if output.is_json {
            output.json(&stored.data())?;
            return Ok(exit::DONE);
        }
        stored.print(output)?;
        if self.dry_run {
            output.line(styled(FAINT, "nothing was changed: this was a dry run"))?;
        }
        Ok(exit::DONE)
    }
}
