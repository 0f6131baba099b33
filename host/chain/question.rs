//! Which questions can be asked at all.

use std::collections::HashSet;

use crate::model::name::{is_identifier, is_label};
use crate::model::question::{Criterion, Question, QuestionKind};

/// The most options of a choice and levels of a scale: as many as a model decider can ever be configured to take, so
/// that no question is declared that only some deciders could answer.
pub const CRITERIA_MAX: usize = 255;

/// Everything that is wrong with a declared question, each a sentence without its subject, as in `its instructions are
/// blank; say what is asked`. Empty when it can be asked.
///
/// Whether two questions share a key is for the train to say.
pub fn question_faults(question: &Question) -> Vec<String> {
    let mut faults = Vec::new();
    if !is_identifier(&question.key) {
        faults.push(
            "its key is not 1 to 100 of ASCII letters, digits, '_', '-', '.'; rename it".to_owned(),
        );
    }
    if question.instructions.trim().is_empty() {
        faults.push("its instructions are blank; say what is asked".to_owned());
    }
    match &question.kind {
        QuestionKind::Choice(options) => criteria_faults("option", 1, options, &mut faults),
        QuestionKind::Score(levels) => criteria_faults("level", 2, levels, &mut faults),
        QuestionKind::YesNo { .. } => {}
    }
    faults
}

fn criteria_faults(what: &str, least: usize, criteria: &[Criterion], faults: &mut Vec<String>) {
    let count = criteria.len();
    if count < least {
        let plural = if least == 1 { "" } else { "s" };
        faults.push(format!("it has {count} {what}s; give it at least {least} {what}{plural}"));
    }
    if count > CRITERIA_MAX {
        faults.push(format!("it has {count} {what}s; give it at most {CRITERIA_MAX}"));
    }
    let mut names = HashSet::new();
    // Those past the bound are not looked at, so that the list of faults is bounded too.
    for criterion in criteria.iter().take(CRITERIA_MAX) {
        let name = &criterion.name;
        if !is_label(name) {
            faults.push(format!(
                "its {what} {name:?} has a name that is blank, longer than 100 characters, or \
                 holds '/', '#' or a control character; rename it"
            ));
        }
        if !names.insert(name) {
            faults.push(format!("its {what} {name:?} stands twice; keep one"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kind: QuestionKind) -> Question {
        Question { key: "Team".to_owned(), instructions: "Who?".to_owned(), kind, sensitive: false }
    }

    fn criteria(names: &[&str]) -> Vec<Criterion> {
        let criterion = |name: &&str| Criterion { name: (*name).to_owned(), description: None };
        names.iter().map(criterion).collect()
    }

    fn yes_no() -> QuestionKind {
        QuestionKind::YesNo { yes: None, no: None }
    }

    /// Q1: each kind has as many criteria as its routing step needs, each with a name of its own.
    #[test]
    fn criteria_are_enough_and_different() {
        let many: Vec<_> = (0..=CRITERIA_MAX).map(|i| i.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let choice = |names: &[&str]| QuestionKind::Choice(criteria(names));
        let score = |names: &[&str]| QuestionKind::Score(criteria(names));
        let cases: [(QuestionKind, &[&str]); 11] = [
            (choice(&["Billing"]), &[]),
            (choice(&["Billing", "Café au lait"]), &[]),
            (choice(&many[1..]), &[]),
            (score(&["Low", "High"]), &[]),
            (yes_no(), &[]),
            (choice(&[]), &["it has 0 options; give it at least 1 option"]),
            (score(&["Low"]), &["it has 1 levels; give it at least 2 levels"]),
            (choice(&many), &["it has 256 options; give it at most 255"]),
            (score(&many), &["it has 256 levels; give it at most 255"]),
            (score(&["Low", "High", "Low"]), &["its level \"Low\" stands twice; keep one"]),
            (
                choice(&["a/b"]),
                &["its option \"a/b\" has a name that is blank, longer than 100 characters, or \
                     holds '/', '#' or a control character; rename it"],
            ),
        ];
        for (kind, expected) in cases {
            assert_eq!(question_faults(&question(kind.clone())), expected, "{kind:?}");
        }
    }

    /// Q2: a question without words is refused.
    #[test]
    fn instructions_are_not_blank() {
        for words in ["", " \n\t"] {
            let blank = Question { instructions: words.to_owned(), ..question(yes_no()) };
            assert_eq!(question_faults(&blank), ["its instructions are blank; say what is asked"]);
        }
    }

    /// Q3: a key is 1 to 100 of ASCII letters, digits, `_`, `-`, `.`.
    #[test]
    fn keys_are_identifiers() {
        let (long, too_long) = ("k".repeat(100), "k".repeat(101));
        for (key, is_valid) in [
            ("TicketTrack", true),
            ("Queue.Lane", true),
            ("a_b-c.9", true),
            (long.as_str(), true),
            (too_long.as_str(), false),
            ("", false),
            ("Flag<Refund>", false),
            ("two words", false),
            ("Größe", false),
        ] {
            let keyed = Question { key: key.to_owned(), ..question(yes_no()) };
            assert_eq!(question_faults(&keyed).is_empty(), is_valid, "{key:?}");
        }
    }

    /// Q1, Q2, Q3: all faults of a question are named at once.
    #[test]
    fn faults_are_named_together() {
        let bad = Question {
            key: String::new(),
            instructions: String::new(),
            ..question(QuestionKind::Score(Vec::new()))
        };
        assert_eq!(question_faults(&bad).len(), 3);
    }
}
