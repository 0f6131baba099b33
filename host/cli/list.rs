//! What commands about many things share: which page of them, which of them, and how they are printed.

use clap::{Args, value_parser};
use serde_json::{Value, json};

use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::table::Table;

/// Which page of a list is shown, by number.
#[derive(Debug, Args)]
pub struct Page {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// List those that come after this id: the last one of the page before
    #[arg(long, value_name = "ID", alias = "before")]
    pub after: Option<i64>,
}

/// Which page of a list is shown, by name.
#[derive(Debug, Args)]
pub struct NamedPage {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// List those that come after this one: the last one of the page before
    #[arg(long, value_name = "ID")]
    pub after: Option<String>,
}

/// Several of what has a number.
#[derive(Debug, Args)]
pub struct Ids {
    /// Their ids, up to 1000
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<i64>,
}

/// Several of what has a name.
#[derive(Debug, Args)]
pub struct Names {
    /// Their ids, up to 1000
    #[arg(required = true, value_name = "ID")]
    pub names: Vec<String>,
}

/// How a list is shown.
pub struct Listing<'a, const N: usize> {
    /// What the things are called in JSON.
    pub name: &'a str,
    /// What people read where there is none.
    pub nothing: &'a str,
    /// The columns.
    pub head: [&'static str; N],
}

impl<const N: usize> Listing<'_, N> {
    /// Prints it: data for programs, a table for people.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print<T>(
        &self,
        output: &mut Output,
        listed: &[T],
        data: impl Fn(&T) -> Value,
        row: impl Fn(&T) -> [String; N],
    ) -> Result<u8, CliError> {
        if output.is_json {
            let listed: Vec<Value> = listed.iter().map(data).collect();
            output.json(&json!({ self.name: listed }))?;
            return Ok(exit::DONE);
        }
        if listed.is_empty() {
            output.line(styled(FAINT, self.nothing))?;
        }
        let mut table = Table::new(self.head);
        for it in listed {
            table.row(row(it));
        }
        table.print(output)?;
        Ok(exit::DONE)
    }
}
