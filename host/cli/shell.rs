//! `trax completions` and `trax man`: what shells and `man` are told of the commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::error::CliError;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::{Cli, exit};

/// Print what a shell needs to complete the commands
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write a manual page for each command
#[derive(Debug, Args)]
pub struct Man {
    /// The folder to write them to; it is made if it does not exist
    folder: PathBuf,
}

impl Completions {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn run(&self, output: &mut Output) -> Result<u8, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "trax", &mut script);
        output.line(String::from_utf8_lossy(&script).trim_end())?;
        Ok(exit::DONE)
    }
}

impl Man {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Written`], [`CliError::Print`].
    pub fn run(&self, output: &mut Output) -> Result<u8, CliError> {
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &self.folder));
        written.map_err(|source| CliError::Written { path: self.folder.clone(), source })?;
        let folder = self.folder.display();
        output.line(styled(FAINT, format_args!("read them with `man -l {folder}/trax.1`")))?;
        Ok(exit::DONE)
    }
}
