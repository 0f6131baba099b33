//! Which names trains, junctions, types, questions and tracks may have.

/// The longest name, in characters. Node ids are made of names and are indexed by databases.
pub const NAME_LENGTH_MAX: usize = 100;

/// Whether this is 1 to 100 of ASCII letters, digits, `_`, `-`, `.`: the rule for trains, junctions, types, questions
/// and deciders, which become parts of ids and commands.
pub fn is_identifier(name: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// Whether this can name a track, a branch, an option or a level: not blank, at most 100 characters, and without the
/// `/` and `#` that node ids are made of, and without control characters.
pub fn is_label(name: &str) -> bool {
    !name.trim().is_empty()
        && name.chars().count() <= NAME_LENGTH_MAX
        && !name.chars().any(|c| matches!(c, '/' | '#') || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_labels() {
        let long = "x".repeat(NAME_LENGTH_MAX);
        let too_long = "x".repeat(NAME_LENGTH_MAX + 1);
        for (name, identifier, label) in [
            ("Ticket", true, true),
            ("support-triage_2.0", true, true),
            ("Café au lait", false, true),
            ("", false, false),
            (" ", false, false),
            ("a/b", false, false),
            ("a#0", false, false),
            ("a\nb", false, false),
            ("a<b>", false, true),
            (long.as_str(), true, true),
            (too_long.as_str(), false, false),
        ] {
            assert_eq!(is_identifier(name), identifier, "{name:?}");
            assert_eq!(is_label(name), label, "{name:?}");
        }
    }
}
