//! Tables for people: columns as wide as what stands in them.

use crate::cli::error::CliError;
use crate::cli::output::{FAINT, Output, styled};

/// Rows under a head.
pub struct Table<const N: usize> {
    head: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub const fn new(head: [&'static str; N]) -> Self {
        Self { head, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Prints it, if it has rows.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print(&self, output: &mut Output) -> Result<(), CliError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.head[column].len()]).max().unwrap_or_default()
        });
        let head = self.head.map(str::to_owned);
        output.line(styled(FAINT, line(&head, &widths)))?;
        for row in &self.rows {
            output.line(line(row, &widths))?;
        }
        Ok(())
    }
}

fn line<const N: usize>(cells: &[String; N], widths: &[usize; N]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let widths = [5, 3, 1];

        assert_eq!(line(&["a".into(), "bcd".into(), "e".into()], &widths), "a      bcd  e");
        assert_eq!(line(&["häuse".into(), String::new(), String::new()], &widths), "häuse");
    }
}
