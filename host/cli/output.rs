//! What commands print: text for people or JSON for programs, in colour where a terminal shows it.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, stderr, stdout};
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::exit;
use crate::model::json::{Json, write_string};
use crate::operations::outcome::Outcome;

/// What went well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is worth a look.
pub const NOTABLE: Style = AnsiColor::Yellow.on_default();
/// What can be passed over.
pub const FAINT: Style = Style::new().dimmed();

/// Where a command prints. `NO_COLOR` and pipes are honoured.
pub struct Output {
    /// Whether programs read it.
    pub is_json: bool,
    out: BufWriter<AutoStream<io::Stdout>>,
}

impl Output {
    /// Standard output.
    pub fn new(is_json: bool) -> Self {
        Self { is_json, out: BufWriter::new(stdout()) }
    }

    /// Prints a line.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn line(&mut self, text: impl Display) -> Result<(), CliError> {
        writeln!(self.out, "{text}")?;
        Ok(())
    }

    /// Prints a value as JSON.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        serde_json::to_writer_pretty(&mut self.out, value).map_err(io::Error::from)?;
        writeln!(self.out)?;
        Ok(())
    }

    /// Prints a value as one line of JSON: one of many that come one after the other.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)?;
        writeln!(self.out)?;
        Ok(())
    }

    /// Prints what came of an action, and gives the exit code.
    ///
    /// # Errors
    /// [`CliError::Conflict`] or [`CliError::NotFound`] when it was not done and people read it, [`CliError::Print`].
    pub fn outcome(&mut self, outcome: &Outcome) -> Result<u8, CliError> {
        self.came_of("", outcome)
    }

    /// The same for an action that was only tried out.
    ///
    /// # Errors
    /// [`CliError::Conflict`] when it would not be done and a person reads it, [`CliError::Print`].
    pub fn dry(&mut self, outcome: &Outcome) -> Result<u8, CliError> {
        self.came_of("nothing was changed; it would be: ", outcome)
    }

    fn came_of(&mut self, before: &str, outcome: &Outcome) -> Result<u8, CliError> {
        let Outcome { is_done, id, count, message, is_missing } = outcome;
        if self.is_json {
            self.json(&json!({
                "success": is_done, "id": id, "count": count, "message": message,
                "is_dry_run": !before.is_empty(),
            }))?;
            return Ok(match (is_done, is_missing) {
                (true, _) => exit::DONE,
                (false, true) => exit::NOT_FOUND,
                (false, false) => exit::REFUSED,
            });
        }
        if !is_done {
            let message = message.clone();
            let error = if *is_missing { CliError::NotFound } else { CliError::Conflict };
            return Err(error(message));
        }
        self.line(format!("{before}{message}"))?;
        Ok(exit::DONE)
    }

    /// A bar on standard error that shows how far long work is, if a person looks.
    pub fn bar(&self, total: u64) -> ProgressBar {
        if self.is_json {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(total);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {human_pos} of {human_len}, {elapsed}")
        {
            bar.set_style(style);
        }
        bar
    }

    /// Makes sure that everything has been printed.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush()?;
        Ok(())
    }

    /// Prints an error on standard error; there is nobody to tell if that fails.
    pub fn error(&mut self, error: &CliError) {
        let _ = self.out.flush();
        let _ = writeln!(stderr(), "{BAD}error:{BAD:#} {}", error.chain());
    }
}

/// Text in a style.
pub fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// JSON over several lines, with every number to the letter.
pub fn pretty(text: &str) -> String {
    let mut pretty = String::new();
    match Json::parse(text) {
        Ok(json) => indent(&json, 0, &mut pretty),
        Err(_) => pretty.push_str(text),
    }
    pretty
}

fn indent(json: &Json, depth: usize, into: &mut String) {
    let line = |into: &mut String, depth| {
        into.push('\n');
        into.extend(std::iter::repeat_n("  ", depth));
    };
    match json {
        Json::Array(items) if !items.is_empty() => {
            into.push('[');
            for (index, item) in items.iter().enumerate() {
                into.push_str(if index == 0 { "" } else { "," });
                line(into, depth + 1);
                indent(item, depth + 1, into);
            }
            line(into, depth);
            into.push(']');
        }
        Json::Object(members) if !members.is_empty() => {
            into.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                into.push_str(if index == 0 { "" } else { "," });
                line(into, depth + 1);
                // Writing to a string cannot fail.
                let _ = write_string(into, name);
                into.push_str(": ");
                indent(value, depth + 1, into);
            }
            line(into, depth);
            into.push('}');
        }
        other => into.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_json_keeps_every_number() {
        let text = r#"{"a":[],"b":[1.0,{"c":90071992547409931234}],"d":{}}"#;
        let expected = r#"{
  "a": [],
  "b": [
    1.0,
    {
      "c": 90071992547409931234
    }
  ],
  "d": {}
}"#;
        assert_eq!(pretty(text), expected);
    }
}
