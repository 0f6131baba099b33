//! Comma-separated values, as RFC 4180 has them.

/// One line, without its end.
pub fn line<S: AsRef<str>>(cells: &[S]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell.as_ref())).collect();
    cells.join(",")
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_have_to_be() {
        assert_eq!(line(&["a", "b c", ""]), "a,b c,");
        assert_eq!(
            line(&["a,b", "say \"no\"", "two\nlines"]),
            "\"a,b\",\"say \"\"no\"\"\",\"two\nlines\""
        );
    }
}
