//! What is wrong with a declaration: each fault with its place, refusals first, and never too many of them.

use std::fmt;

/// The most faults that are reported one by one. A declaration with more was generated wrongly, and its first hundred
/// faults say how; an endless report would only hide them.
pub const FAULTS_MAX: usize = 100;

/// The most characters of a name that a report repeats. A name that is longer is refused for its length anyway.
const SHOWN_MAX: usize = 120;

/// The most characters of one fault. Faults of questions and schemas bring their own texts, and a step deep in tracks
/// has a long place.
const LINE_MAX: usize = 12_000;

/// What a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The declaration says something that cannot be.
    Refused,
    /// A value is not in Memory where it is needed.
    Missing,
}

/// One thing that is wrong with a train's declaration, and where.
///
/// Displayed as the whole line without the train's name, for example `step 2 (ChargeCard) needs 'Payment' in Memory and
/// nothing before it puts one there.`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it is about.
    pub kind: FaultKind,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A name in quotes, as [`cut`] has it.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", cut(self.0))
    }
}

/// A name cut short and without control characters, because a name in a report may be the very thing at fault.
pub(super) fn cut(name: &str) -> String {
    cut_to(name, SHOWN_MAX)
}

fn cut_to(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            shown.push_str("...");
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Collects the faults of one declaration while its steps are read.
#[derive(Default)]
pub(super) struct Faults {
    refused: Vec<Fault>,
    missing: Vec<Fault>,
    unreported: usize,
    /// Tracks around the step that is read, outermost first, each as `step 3: track 'Refund', `.
    around: Vec<String>,
    /// The number and name of the step that is read.
    at: Option<(usize, String)>,
    step_refused: bool,
}

impl Faults {
    /// Later faults are about this step, counted from 1 by written position.
    pub(super) fn at_step(&mut self, number: usize, name: impl Into<String>) {
        self.at = Some((number, name.into()));
    }

    /// Later faults are about the steps of this track of the step that is read, until [`Self::leave_track`].
    pub(super) fn enter_track(&mut self, what: &str, name: &str) {
        let number = self.at.as_ref().map_or(0, |(number, _)| *number);
        self.around.push(format!("step {number}: {what} {}, ", Shown(name)));
    }

    /// The track is read; the caller says which step comes next.
    pub(super) fn leave_track(&mut self) {
        self.around.pop();
    }

    /// Later faults are about the train as a whole.
    pub(super) fn at_train(&mut self) {
        self.at = None;
    }

    /// The declaration says something that cannot be.
    pub(super) fn refuse(&mut self, text: impl fmt::Display) {
        let place = match &self.at {
            Some((number, _)) => {
                self.step_refused = true;
                format!("{}step {number}: ", self.around.concat())
            }
            None => String::new(),
        };
        self.add(FaultKind::Refused, &format!("{place}{text}"));
    }

    /// The step that is read lacks a value. `text` follows the step's name.
    pub(super) fn miss(&mut self, text: impl fmt::Display) {
        let place = match &self.at {
            Some((number, name)) => format!("{}step {number} ({name}) ", self.around.concat()),
            None => String::new(),
        };
        self.add(FaultKind::Missing, &format!("{place}{text}"));
    }

    /// Whether a step was refused, so that what is missing at the end may be missing because of that.
    pub(super) fn has_refused_step(&self) -> bool {
        self.step_refused
    }

    fn add(&mut self, kind: FaultKind, text: &str) {
        let list = match kind {
            FaultKind::Refused => &mut self.refused,
            FaultKind::Missing => &mut self.missing,
        };
        if list.len() < FAULTS_MAX {
            let text = cut_to(text, LINE_MAX);
            list.push(Fault { kind, text });
        } else {
            self.unreported += 1;
        }
    }

    /// Every fault, refusals first; at most [`FAULTS_MAX`] and a last line that says how many more there are.
    pub(super) fn into_list(self) -> Vec<Fault> {
        let mut list = self.refused;
        list.extend(self.missing);
        let more = self.unreported + list.len().saturating_sub(FAULTS_MAX);
        list.truncate(FAULTS_MAX);
        if more > 0 {
            let kind = FaultKind::Refused;
            list.push(Fault { kind, text: format!("and {more} more faults like these.") });
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C8, C10: refusals come first, each fault says where it is, and tracks around it are named.
    #[test]
    fn faults_are_placed_and_refusals_come_first() {
        let mut faults = Faults::default();
        faults.at_step(1, "Charge");
        faults.miss("needs 'Payment'.");
        faults.at_step(2, "Switch<Team>");
        faults.enter_track("track", "Refund");
        faults.at_step(1, "Pay");
        faults.refuse("has no name.");
        faults.miss("needs 'Card'.");
        faults.leave_track();
        faults.at_step(2, "Switch<Team>");
        faults.refuse("has no tracks.");
        faults.at_train();
        faults.refuse("the train has no name.");

        let lines: Vec<String> = faults.into_list().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "step 2: track 'Refund', step 1: has no name.",
                "step 2: has no tracks.",
                "the train has no name.",
                "step 1 (Charge) needs 'Payment'.",
                "step 2: track 'Refund', step 1 (Pay) needs 'Card'.",
            ]
        );
    }

    /// C8: a hundred faults are told one by one, and the rest is counted.
    #[test]
    fn a_report_is_bounded() {
        for (refused, missing, last) in [
            (FAULTS_MAX, 0, "r"),
            (60, 40, "m"),
            (60, 41, "and 1 more faults like these."),
            (500, 500, "and 900 more faults like these."),
        ] {
            let mut faults = Faults::default();
            (0..refused).for_each(|_| faults.refuse("r"));
            (0..missing).for_each(|_| faults.miss("m"));
            let list = faults.into_list();
            assert_eq!(list.last().unwrap().to_string(), last, "{refused} and {missing}");
            assert!(list.len() <= FAULTS_MAX + 1);
        }
    }

    #[test]
    fn names_are_shown_cut_and_without_control_characters() {
        assert_eq!(Shown("a\nb").to_string(), "'a\\nb'");
        assert_eq!(Shown(&"x".repeat(10_000)).to_string().len(), SHOWN_MAX + 5);
    }
}
