//! Which rules exist, and what a range of them names.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

/// The number of a rule, such as `C10` or `K7a`. They order as they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    letter: char,
    number: u16,
    suffix: Option<char>,
}

impl FromStr for Rule {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || format!("`{text}` is no rule number, such as C10 or K7a");
        let mut letters = text.chars();
        let letter = letters.next().filter(char::is_ascii_uppercase).with_context(wrong)?;
        let rest = letters.as_str();
        let digits = rest.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        let number = digits.parse().ok().with_context(wrong)?;
        let mut suffixes = rest[digits.len()..].chars();
        let suffix = suffixes.next();
        ensure!(suffixes.next().is_none() && !digits.starts_with(['0', '+']), wrong());
        Ok(Self { letter, number, suffix })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.letter, self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(out, "{suffix}"))
    }
}

/// Every rule there is.
pub(crate) struct Catalogue(BTreeSet<Rule>);

impl Catalogue {
    /// The rules of the specification.
    pub(crate) fn embedded() -> Result<Self> {
        Self::parse(include_str!("catalogue.txt")).context("in the catalogue of rules")
    }

    /// Reads lines such as `K 1-24 7a 7b`: a letter, then numbers and ranges of them.
    fn parse(text: &str) -> Result<Self> {
        let mut rules = BTreeSet::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(letter) = words.next() else { continue };
            for word in words {
                let (first, last) = word.split_once('-').unwrap_or((word, word));
                let first: Rule = format!("{letter}{first}").parse()?;
                let last: Rule = format!("{letter}{last}").parse()?;
                rules.extend((first.number..=last.number).map(|number| Rule { number, ..first }));
            }
        }
        Ok(Self(rules))
    }

    pub(crate) fn contains(&self, rule: Rule) -> bool {
        self.0.contains(&rule)
    }

    /// The rules that a list of ranges names: `C1-C19`, `Q` (every rule of the letter), `K7a`, and
    /// several of these between commas. A range takes the lettered rules between its ends along.
    pub(crate) fn named_by(&self, ranges: &str) -> Result<BTreeSet<Rule>> {
        let mut named = BTreeSet::new();
        for range in ranges.split(',').map(str::trim) {
            let found: Vec<Rule> = if let Some((first, last)) = range.split_once('-') {
                let (first, last) = (self.existing(first)?, self.existing(last)?);
                ensure!(
                    first.letter == last.letter && first <= last,
                    "the range `{range}` runs from no rule to a later one of the same letter"
                );
                let is_before_end = |rule: &&Rule| {
                    **rule <= last
                        || (last.suffix.is_none()
                            && (rule.letter, rule.number) == (last.letter, last.number))
                };
                self.0.range(first..).take_while(is_before_end).copied().collect()
            } else if range.chars().count() == 1 {
                self.0.iter().filter(|rule| range.starts_with(rule.letter)).copied().collect()
            } else {
                vec![self.existing(range)?]
            };
            if found.is_empty() {
                bail!("no rule has the letter `{range}`");
            }
            named.extend(found);
        }
        Ok(named)
    }

    fn existing(&self, text: &str) -> Result<Rule> {
        let rule = text.trim().parse()?;
        ensure!(self.contains(rule), "there is no rule {rule}");
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_by(ranges: &str) -> Result<String> {
        let catalogue = Catalogue::parse("C 1-12\nK 1-3 2a 2b\n")?;
        let names: Vec<_> = catalogue.named_by(ranges)?.iter().map(Rule::to_string).collect();
        Ok(names.join(" "))
    }

    #[test]
    fn a_list_of_ranges_names_rules_in_order() {
        let cases = [
            ("C2", "C2"),
            ("C9-C11", "C9 C10 C11"),
            ("K", "K1 K2 K2a K2b K3"),
            ("K1-K2", "K1 K2 K2a K2b"),
            ("K2a-K2b", "K2a K2b"),
            ("K2b-K3", "K2b K3"),
            ("K2a", "K2a"),
            ("K3, C1,K1", "C1 K1 K3"),
        ];

        for (ranges, expected) in cases {
            assert_eq!(named_by(ranges).unwrap(), expected, "{ranges}");
        }
    }

    #[test]
    fn a_range_that_names_nothing_is_refused() {
        let cases = [
            ("C13", "there is no rule C13"),
            ("C1-C13", "there is no rule C13"),
            ("C3-C1", "the range `C3-C1` runs from no rule to a later one of the same letter"),
            ("C1-K1", "the range `C1-K1` runs from no rule to a later one of the same letter"),
            ("Z", "no rule has the letter `Z`"),
            ("", "`` is no rule number, such as C10 or K7a"),
            ("C01", "`C01` is no rule number, such as C10 or K7a"),
            ("K2ab", "`K2ab` is no rule number, such as C10 or K7a"),
            ("rules", "`rules` is no rule number, such as C10 or K7a"),
        ];

        for (ranges, expected) in cases {
            assert_eq!(named_by(ranges).unwrap_err().to_string(), expected, "{ranges}");
        }
    }

    #[test]
    fn the_embedded_catalogue_holds_the_whole_specification() {
        let catalogue = Catalogue::embedded().unwrap();

        for (ranges, expected) in [("R", 141), ("C", 22), ("K", 30), ("Q", 41), ("W31", 1)] {
            assert_eq!(catalogue.named_by(ranges).unwrap().len(), expected, "{ranges}");
        }
    }
}
