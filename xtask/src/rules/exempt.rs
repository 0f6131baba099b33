//! The rules that do not apply, each with its reason: `docs/rules.toml`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::catalogue::{Catalogue, Rule};

/// Reads lines such as `W31 = "the reason"`. Comments, empty lines and one table header may stand
/// between them; whatever else stands there is refused rather than skipped.
pub(crate) fn parse(text: &str, catalogue: &Catalogue) -> Result<BTreeMap<Rule, String>> {
    let mut exempt = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line == "[does-not-apply]" {
            continue;
        }
        let (rule, reason) =
            entry(line, catalogue).with_context(|| format!("line {}", index + 1))?;
        ensure!(
            exempt.insert(rule, reason).is_none(),
            "line {}: {rule} stands there twice",
            index + 1
        );
    }
    Ok(exempt)
}

fn entry(line: &str, catalogue: &Catalogue) -> Result<(Rule, String)> {
    let expected = "expected RULE = \"reason\"";
    let (rule, reason) = line.split_once('=').context(expected)?;
    let rule: Rule = rule.trim().parse()?;
    ensure!(catalogue.contains(rule), "there is no rule {rule}");
    let reason = reason.trim();
    let reason = reason.strip_prefix('"').and_then(|it| it.strip_suffix('"')).context(expected)?;
    ensure!(!reason.trim().is_empty(), "{rule} has no reason");
    Ok((rule, reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<Rule, String>> {
        parse(text, &Catalogue::embedded().unwrap())
    }

    #[test]
    fn each_rule_has_a_reason() {
        let exempt = read("# why\n\n[does-not-apply]\nW31 = \"out of scope\"\n").unwrap();

        assert_eq!(exempt[&"W31".parse().unwrap()], "out of scope");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let cases = [
            ("W31", "line 1: expected RULE = \"reason\""),
            ("W31 = out of scope", "line 1: expected RULE = \"reason\""),
            ("\nW31 = \" \"", "line 2: W31 has no reason"),
            ("W32 = \"x\"", "line 1: there is no rule W32"),
            ("W31 = \"x\"\nW31 = \"y\"", "line 2: W31 stands there twice"),
        ];

        for (text, expected) in cases {
            assert_eq!(format!("{:#}", read(text).unwrap_err()), expected, "{text}");
        }
    }

    #[test]
    fn the_projects_own_list_is_readable() {
        read(include_str!("../../../docs/rules.toml")).unwrap();
    }
}
