//! Which database a command works on, and how it is opened.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::error::CliError;
use crate::model::ids::TenantId;
use crate::store::{Db, OpenOptions, open, tenants};

/// The database of a folder, relative to it.
pub const FILE: &str = ".trax/trax.db";

/// The tenant that commands work for.
const TENANT: &str = "default";

/// Which database a command works on
#[derive(Debug, Args)]
pub struct Database {
    #[arg(
        long = "database",
        env = "TRAX_DATABASE",
        value_name = "URL",
        hide_env_values = true,
        help = "The database, sqlite:FILE or postgres://USER@HOST/NAME [default: sqlite:.trax/trax.db]"
    )]
    url: Option<String>,
}

impl Database {
    /// Opens the database to write to it: made if it is a file that does not exist, its schema brought up to date.
    ///
    /// # Errors
    /// [`CliError::Store`].
    pub async fn open(&self, folder: &Path) -> Result<(Db, TenantId), CliError> {
        if self.url.is_none() {
            make_folder(folder)?;
        }
        self.open_with(folder, &OpenOptions::default()).await
    }

    /// The same for the database of the present folder.
    ///
    /// # Errors
    /// [`CliError::Store`].
    pub async fn open_to_write(&self) -> Result<(Db, TenantId), CliError> {
        self.open(Path::new("")).await
    }

    /// Opens the database to read from it: it has to exist and to be up to date, and nothing is written.
    ///
    /// # Errors
    /// [`CliError::NotFound`] when it is a file that does not exist, [`CliError::Store`].
    pub async fn open_to_read(&self) -> Result<(Db, TenantId), CliError> {
        self.refuse_missing()?;
        let options = OpenOptions { is_migrating: false, ..OpenOptions::default() };
        self.open_with(Path::new(""), &options).await
    }

    /// Where it is.
    pub fn url(&self, folder: &Path) -> String {
        self.url.clone().unwrap_or_else(|| format!("sqlite:{}", folder.join(FILE).display()))
    }

    /// Refuses a file that does not exist, which opening would make.
    ///
    /// # Errors
    /// [`CliError::NotFound`].
    pub fn refuse_missing(&self) -> Result<(), CliError> {
        let url = self.url(Path::new(""));
        let Some(file) = url.strip_prefix("sqlite:").filter(|file| *file != ":memory:") else {
            return Ok(());
        };
        let file = file.strip_prefix("//").unwrap_or(file);
        let path = file.split_once('?').map_or(file, |(path, _)| path);
        if path.is_empty() || Path::new(path).exists() {
            return Ok(());
        }
        Err(CliError::NotFound(format!(
            "there is no SQLite file '{path}'; name another with --database, or let `trax dev` or \
             `trax db migrate` make this one"
        )))
    }

    async fn open_with(
        &self,
        folder: &Path,
        options: &OpenOptions,
    ) -> Result<(Db, TenantId), CliError> {
        let db = open(&self.url(folder), options).await?;
        let mut tx = db.read().await?;
        let tenant = tenants::of_name(&mut tx, TENANT).await?;
        drop(tx);
        Ok((db, tenant))
    }
}

/// Makes the folder that trax keeps its own files in, below the folder it works on.
///
/// # Errors
/// [`CliError::Written`].
pub fn make_folder(folder: &Path) -> Result<PathBuf, CliError> {
    let own = folder.join(".trax");
    std::fs::create_dir_all(&own)
        .map_err(|source| CliError::Written { path: own.clone(), source })?;
    Ok(own)
}
