//! What `trax.toml` says of this host.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::error::CliError;
use crate::deciders::host::HostDeciders;
use crate::operations::deciders_file;

/// The name of the file.
const FILE: &str = "trax.toml";

/// Which file to read, and what to read otherwise.
#[derive(Debug, Args)]
pub struct Settings {
    /// Read the deciders of this host from this file [default: trax.toml, if it is there]
    #[arg(long, env = "TRAX_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask this decider where a step names none, whatever the file and the train say
    #[arg(long, env = "TRAX_DECISIONS__DEFAULT", value_name = "NAME")]
    decider: Option<String>,
}

impl Settings {
    /// The deciders of this host. Without a file that is named, the one of the folder is read, if there is one.
    ///
    /// # Errors
    /// [`CliError`] names everything that is wrong with the file.
    pub fn deciders(&self, folder: &Path) -> Result<HostDeciders, CliError> {
        let beside = folder.join(FILE);
        let stated = self.config.as_ref().or_else(|| beside.is_file().then_some(&beside));
        let mut host =
            stated.map(|path| deciders_file::read(path)).transpose()?.unwrap_or_default();
        if self.decider.is_some() {
            host.default.clone_from(&self.decider);
        }
        Ok(host)
    }
}
