//! `cargo xtask rules`: which tests cite which rules, and which rules have no test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

mod catalogue;
mod citation;
mod exempt;

use crate::files;
use crate::project::Project;
use catalogue::{Catalogue, Rule};
use citation::{Cited, Place};

/// Where tests lie.
const FOLDERS: [&str; 3] = ["host", "tests", "guests"];

/// The list of rules that do not apply.
const EXEMPT: &str = "docs/rules.toml";

/// Which rules must have a test.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Rules that must have a test: `C1-C19`, `Q` (every rule of the letter), `K7a`, or several of
    /// these between commas. Only these are printed. Without any, every cited rule is printed.
    #[arg(value_name = "RANGE")]
    ranges: Vec<String>,
}

/// Prints every citation and then what is missing or wrong.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<ExitCode> {
    let catalogue = Catalogue::embedded()?;
    let mut demanded = BTreeSet::new();
    for range in &arguments.ranges {
        demanded.append(&mut catalogue.named_by(range)?);
    }
    let text = fs::read_to_string(project.path(EXEMPT))
        .with_context(|| format!("cannot read {EXEMPT}"))?;
    let exempt = exempt::parse(&text, &catalogue).with_context(|| format!("in {EXEMPT}"))?;

    let mut report = Report::default();
    let sources = sources(project)?;
    let is_below_tests = |file: &str| file.starts_with("tests/");
    let list_macros: Vec<&str> = sources
        .iter()
        .filter(|(file, _)| is_below_tests(file))
        .flat_map(|(_, text)| citation::list_macros(text))
        .collect();
    for (file, text) in &sources {
        let list_macros = if is_below_tests(file) { &list_macros[..] } else { &[] };
        report.add(file, citation::read(text, list_macros), &catalogue);
    }
    print!("{}", report.table(&demanded));
    for (rule, reason) in exempt.iter().filter(|(rule, _)| demanded.contains(rule)) {
        println!("{:<5} does not apply: {reason}", rule.to_string());
    }
    let complaints = report.complaints(&demanded, &exempt);
    print!("{complaints}");
    let has_passed = complaints.is_empty();
    println!("xtask rules: {}", if has_passed { "PASSED" } else { "FAILED" });
    Ok(if has_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The name below the root and the text of every Rust file that may hold tests.
fn sources(project: &Project) -> Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for folder in FOLDERS.map(|folder| project.path(folder)) {
        if !folder.is_dir() {
            continue;
        }
        for path in files::below(&folder, &|path| path.extension().is_some_and(|it| it == "rs"))? {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(project.root()).unwrap_or(&path);
            sources.push((name.to_string_lossy().replace('\\', "/"), text));
        }
    }
    Ok(sources)
}

/// What the files say, by rule.
#[derive(Default)]
struct Report {
    tests: BTreeMap<Rule, BTreeSet<(Place, String)>>,
    faults: Vec<String>,
}

impl Report {
    fn add(&mut self, file: &str, cited: Cited, catalogue: &Catalogue) {
        for citation in cited.citations {
            for rule in citation.rules {
                if !catalogue.contains(rule) {
                    let test = &citation.test;
                    self.faults.push(format!("{file}: {test}: there is no rule {rule}"));
                }
                let tests = self.tests.entry(rule).or_default();
                let test = format!("{file} {}", citation.test);
                tests.extend(citation.places.iter().map(|place| (*place, test.clone())));
            }
        }
        let faults = cited.faults.into_iter();
        self.faults.extend(faults.map(|(line, fault)| format!("{file}:{line}: {fault}")));
    }

    /// A line per rule, place and test: of the rules demanded, or of all when none is.
    fn table(&self, demanded: &BTreeSet<Rule>) -> String {
        let mut text = String::new();
        for (rule, tests) in &self.tests {
            if demanded.is_empty() || demanded.contains(rule) {
                for (place, test) in tests {
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "{:<5} {place:<8} {test}", rule.to_string());
                }
            }
        }
        text
    }

    /// What is wrong with citations, and which of the rules demanded have no test.
    fn complaints(&self, demanded: &BTreeSet<Rule>, exempt: &BTreeMap<Rule, String>) -> String {
        let mut text = String::new();
        for fault in &self.faults {
            let _ = writeln!(text, "fault: {fault}");
        }
        let missing: Vec<_> = demanded
            .iter()
            .filter(|rule| !self.tests.contains_key(rule) && !exempt.contains_key(rule))
            .map(Rule::to_string)
            .collect();
        if !missing.is_empty() {
            let _ = writeln!(text, "without a test: {}", missing.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let catalogue = Catalogue::embedded().unwrap();
        let mut report = Report::default();
        let pure = "/// C10, C2: x.\n#[test]\nfn one() {}\n/// C99: x.\n#[test]\nfn bad() {}";
        report.add("host/a.rs", citation::read(pure, &[]), &catalogue);
        let both = "/// C2: x.\nfn two() {}\non_both!(two);";
        report.add("tests/b.rs", citation::read(both, &["on_both"]), &catalogue);
        report
    }

    fn rules(ranges: &str) -> BTreeSet<Rule> {
        Catalogue::embedded().unwrap().named_by(ranges).unwrap()
    }

    #[test]
    fn the_table_has_a_line_per_rule_place_and_test() {
        assert_eq!(
            report().table(&rules("C1-C10")),
            "C2    pure     host/a.rs one\n\
             C2    sqlite   tests/b.rs two\n\
             C2    postgres tests/b.rs two\n\
             C10   pure     host/a.rs one\n"
        );
    }

    #[test]
    fn a_rule_without_a_test_is_named_unless_it_does_not_apply() {
        let exempt = BTreeMap::from([("C3".parse().unwrap(), "reason".to_owned())]);

        assert_eq!(
            report().complaints(&rules("C1-C4"), &exempt),
            "fault: host/a.rs: bad: there is no rule C99\nwithout a test: C1, C4\n"
        );
    }

    #[test]
    fn a_range_that_is_covered_gives_no_complaint() {
        let mut report = report();
        report.faults.clear();

        assert_eq!(report.complaints(&rules("C2,C10"), &BTreeMap::new()), "");
    }
}
