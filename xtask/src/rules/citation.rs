//! Which rules the tests in a file cite.
//!
//! The first line of a test's documentation may start with rule numbers and a colon:
//! `/// C10, C11: a fault inside a track names the track.` The reading is by lines, as rustfmt lays
//! them out. A test is a function with a test attribute, or one that a macro such as `on_both!` at the foot
//! of a file below `tests/` turns into a test per database.

use std::collections::BTreeSet;
use std::fmt;

use super::catalogue::Rule;

/// How many rules one test may cite: a test of more is a test of none.
const RULES_MAX: usize = 3;

/// Where a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Without a database.
    Pure,
    Sqlite,
    Postgres,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Pure => "pure",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

/// A test and the rules it is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) test: String,
    pub(crate) rules: Vec<Rule>,
    pub(crate) places: &'static [Place],
}

/// What a file says: its citations, and what cannot be one, with the line.
#[derive(Debug, Default)]
pub(crate) struct Cited {
    pub(crate) citations: Vec<Citation>,
    pub(crate) faults: Vec<(usize, String)>,
}

/// What stands above a function: its documentation's first line, and whether it is a test.
#[derive(Default)]
struct Above<'text> {
    documentation: Option<(usize, &'text str)>,
    is_test: bool,
}

/// The macros a text defines that turn each function they list into a test per database: those with a module
/// for each.
pub(crate) fn list_macros(text: &str) -> impl Iterator<Item = &str> {
    text.split("macro_rules! ").skip(1).filter_map(|definition| {
        let body = definition.split("\n}").next()?;
        let name = definition.split(|letter: char| !is_of_a_name(letter)).next()?;
        (body.contains("mod sqlite") && body.contains("mod postgres")).then_some(name)
    })
}

/// Reads the text of one file, in which these macros list functions for both databases.
pub(crate) fn read<'text>(text: &'text str, list_macros: &[&str]) -> Cited {
    let on_both: BTreeSet<&'text str> =
        list_macros.iter().flat_map(|name| names_listed(text, name)).collect();
    let mut cited = Cited::default();
    let mut above = Above::default();
    let mut is_inside_attribute = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if is_inside_attribute {
            is_inside_attribute = !line.ends_with(']');
        } else if let Some(documentation) = line.strip_prefix("///") {
            above.documentation.get_or_insert((index + 1, documentation.trim()));
        } else if line.starts_with("#[") {
            above.is_test |= is_test_attribute(line);
            is_inside_attribute = !line.ends_with(']');
        } else if let Some(name) = function_name(line) {
            cited.add(name, &above, on_both.contains(name));
            above = Above::default();
        } else if !line.starts_with("//") {
            above = Above::default();
        }
    }
    cited
}

impl Cited {
    /// Takes up what stands above a function, if it is a test that cites.
    fn add(&mut self, name: &str, above: &Above<'_>, is_on_both: bool) {
        let places: &[Place] = match (above.is_test, is_on_both) {
            (true, _) => &[Place::Pure],
            (false, true) => &[Place::Sqlite, Place::Postgres],
            (false, false) => return,
        };
        let Some((line, documentation)) = above.documentation else { return };
        match rules_in(documentation) {
            Ok(rules) if rules.is_empty() => {}
            Ok(rules) => self.citations.push(Citation { test: name.to_owned(), rules, places }),
            Err(fault) => self.faults.push((line, format!("{name}: {fault}"))),
        }
    }
}

/// `#[test]`, `#[tokio::test]` and those with arguments.
fn is_test_attribute(line: &str) -> bool {
    let path = line.trim_start_matches("#[").split(['(', ']']).next().unwrap_or_default();
    path.rsplit("::").next() == Some("test")
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_function =
        before.split_whitespace().all(|word| word.starts_with("pub") || word == "async");
    let name = after.split(|letter: char| !is_of_a_name(letter)).next()?;
    (is_function && !name.is_empty()).then_some(name)
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The functions that calls of a macro list.
fn names_listed<'text>(text: &'text str, list_macro: &str) -> Vec<&'text str> {
    let mut names = Vec::new();
    for (start, _) in text.match_indices(list_macro) {
        let is_whole = !text[..start].ends_with(is_of_a_name);
        let call = text[start + list_macro.len()..].strip_prefix("!(").filter(|_| is_whole);
        if let Some((list, _)) = call.and_then(|rest| rest.split_once(')')) {
            names.extend(list.split(',').map(str::trim).filter(|name| !name.is_empty()));
        }
    }
    names
}

/// The rules that a documentation line starts with; none where it starts with other words.
fn rules_in(documentation: &str) -> Result<Vec<Rule>, String> {
    let first = documentation.split([',', ':', ' ', '-']).next().unwrap_or_default();
    if first.parse::<Rule>().is_err() {
        return Ok(Vec::new());
    }
    let unreadable = || format!("the citation in `{documentation}` does not read `C10, C11: ..`");
    let (head, _) = documentation.split_once(':').ok_or_else(unreadable)?;
    let rules: Vec<Rule> = head
        .split(',')
        .map(|rule| rule.trim().parse().map_err(|_| unreadable()))
        .collect::<Result<_, _>>()?;
    if rules.len() > RULES_MAX {
        return Err(format!("cites {} rules; a test cites at most {RULES_MAX}", rules.len()));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per citation and fault.
    fn shown(text: &str, list_macros: &[&str]) -> String {
        let cited = read(text, list_macros);
        let citations = cited.citations.iter().map(|citation| {
            let rules: Vec<_> = citation.rules.iter().map(Rule::to_string).collect();
            let places: Vec<_> = citation.places.iter().map(Place::to_string).collect();
            format!("{} {} {}", citation.test, rules.join("+"), places.join("+"))
        });
        let faults = cited.faults.iter().map(|(line, fault)| format!("{line}: {fault}"));
        citations.chain(faults).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_test_cites_in_its_first_documentation_line() {
        let cases = [
            ("/// C10, C11: a rule.\n#[test]\nfn one() {}", "one C10+C11 pure"),
            (
                "    /// K7a: a rule.\n    ///\n    /// More.\n    #[test]\n    fn one() {",
                "one K7a pure",
            ),
            ("/// R1: x.\n#[tokio::test]\nasync fn one() {}", "one R1 pure"),
            ("/// R1: x.\n#[tokio::test(start_paused = true)]\nasync fn one() {}", "one R1 pure"),
            (
                "/// R1: x.\n#[tokio::test(\n    a = 1,\n    b = 2\n)]\nasync fn one() {}",
                "one R1 pure",
            ),
            ("#[test]\n/// R1: x.\npub(crate) fn one() {}", "one R1 pure"),
            ("/// R1: x.\n#[test]\n#[cfg(unix)]\n// Why.\nfn one() {}", "one R1 pure"),
            (
                "proptest! {\n    /// Q25: x.\n    #[test]\n    fn one(a in any::<u8>()) {",
                "one Q25 pure",
            ),
            (
                "/// R1: x.\n#[test]\nfn a() {\n    x();\n}\n\n/// R2: y.\n#[test]\nfn b() {}",
                "a R1 pure\nb R2 pure",
            ),
        ];

        for (text, expected) in cases {
            assert_eq!(shown(text, &[]), expected, "{text}");
        }
    }

    #[test]
    fn a_function_listed_for_both_databases_counts_for_each() {
        let text = "/// R4: x.\nasync fn one(w: World) {}\n\n/// R5: y.\nasync fn two(w: World) {}\n\n\
                    /// R6: z.\nasync fn three(w: World) {}\n\non_both!(\n    one,\n    two,\n);\n";

        assert_eq!(shown(text, &["on_both"]), "one R4 sqlite+postgres\ntwo R5 sqlite+postgres");
        assert_eq!(shown(text, &[]), "");
    }

    #[test]
    fn a_macro_with_a_module_for_each_database_lists_functions() {
        let text = "macro_rules! both {\n    () => {\n        mod sqlite {}\n\n        mod postgres {}\n    };\n}\n\n\
                    macro_rules! other {\n    () => {};\n}\nmod sqlite {}\nmod postgres {}\n";
        assert_eq!(list_macros(text).collect::<Vec<_>>(), ["both"]);

        let text = "/// R4: x.\nasync fn one(w: World) {}\n/// R5: x.\nasync fn two(w: World) {}\n\
                    on_both!(one);\nnot_on_both!(two);\n";
        assert_eq!(shown(text, &["on_both"]), "one R4 sqlite+postgres");
        assert_eq!(shown(text, &["on_both", "not_on_both"]).lines().count(), 2);
    }

    #[test]
    fn other_text_is_no_citation() {
        let cases = [
            "/// C10: no test.\nfn one() {}",
            "/// A rule (C10).\n#[test]\nfn one() {}",
            "/// A rule.\n/// C10: the second line.\n#[test]\nfn one() {}",
            "// C10: no documentation.\n#[test]\nfn one() {}",
            "//! C10: of the module.\n#[test]\nfn one() {}",
            "/// C10: of the structure.\nstruct One;\n#[test]\nfn one() {}",
            "/// UTF8: no rule.\n#[test]\nfn one() {}",
            "/// C10: x.\n#[test_helper]\nfn one() {}",
        ];

        for text in cases {
            assert_eq!(shown(text, &["on_both"]), "", "{text}");
        }
    }

    #[test]
    fn a_citation_that_cannot_be_read_is_a_fault() {
        let unreadable = "does not read `C10, C11: ..`";
        let cases = [
            ("C1, C2, C3, C4: x.", "cites 4 rules; a test cites at most 3".to_owned()),
            ("C1-C3: x.", format!("the citation in `C1-C3: x.` {unreadable}")),
            ("C1 and C2: x.", format!("the citation in `C1 and C2: x.` {unreadable}")),
            ("C1 holds.", format!("the citation in `C1 holds.` {unreadable}")),
        ];

        for (documentation, expected) in cases {
            let text = format!("\n/// {documentation}\n#[test]\nfn one() {{}}");
            assert_eq!(shown(&text, &[]), format!("2: one: {expected}"));
        }
    }
}
