//! The ways in which `rename_all` can write names: the same as serde's.

/// A way of writing names.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

/// The names of the cases, as they stand in `rename_all`.
const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        CASES.iter().find(|(known, _)| *known == name).map(|(_, case)| *case).ok_or_else(|| {
            let known: Vec<_> = CASES.iter().map(|(known, _)| format!("\"{known}\"")).collect();
            format!("`{name}` is not a case: use one of {}", known.join(", "))
        })
    }

    /// Writes the name of a member, which Rust writes as `snake_case`.
    pub(crate) fn member(self, name: &str) -> String {
        match self {
            Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => pascal(name),
            Self::Camel => first_lower(&pascal(name)),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// Writes the name of a variant, which Rust writes as `PascalCase`.
    pub(crate) fn variant(self, name: &str) -> String {
        match self {
            Self::Pascal => name.to_owned(),
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Camel => first_lower(name),
            Self::Snake => snake(name),
            Self::ScreamingSnake => snake(name).to_ascii_uppercase(),
            Self::Kebab => snake(name).replace('_', "-"),
            Self::ScreamingKebab => snake(name).to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(name: &str) -> String {
    let mut words = String::new();
    let mut is_start = true;
    for letter in name.chars() {
        if letter == '_' {
            is_start = true;
        } else if std::mem::take(&mut is_start) {
            words.push(letter.to_ascii_uppercase());
        } else {
            words.push(letter);
        }
    }
    words
}

fn snake(name: &str) -> String {
    let mut words = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_uppercase() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

fn first_lower(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_ascii_lowercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_serde_writes_them() {
        for (case, member, variant) in [
            ("lowercase", "due_at", "dueat"),
            ("UPPERCASE", "DUE_AT", "DUEAT"),
            ("PascalCase", "DueAt", "DueAt"),
            ("camelCase", "dueAt", "dueAt"),
            ("snake_case", "due_at", "due_at"),
            ("SCREAMING_SNAKE_CASE", "DUE_AT", "DUE_AT"),
            ("kebab-case", "due-at", "due-at"),
            ("SCREAMING-KEBAB-CASE", "DUE-AT", "DUE-AT"),
        ] {
            let case = Case::named(case).expect("a case");
            assert_eq!(case.member("due_at"), member);
            assert_eq!(case.variant("DueAt"), variant);
        }
        assert!(Case::named("Train-Case").is_err());
    }
}
