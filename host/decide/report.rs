//! How good deciders are: what they answered beside what people say they should have.
//!
//! Answers are counted per train, question and decider, those of shadows apart. Only labelled answers that fit say how
//! good a decider is. An answer is followed when its confidence reaches a bar, and handed on otherwise: the best bar is
//! the one at which wrong answers that are followed and answers that are handed on cost least.

use std::collections::BTreeMap;

use crate::decide::label;
use crate::model::answer::AnswerKind;
use crate::model::question::QuestionKind;

/// The bars that tables show.
pub const BARS: [f64; 7] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/// How many bins of confidence a calibration has.
pub const BINS: usize = 10;

/// Whose answers are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Of {
    /// The train.
    pub train: String,
    /// The question's key.
    pub question: String,
    /// The decider.
    pub decider: String,
    /// Whether it was a shadow.
    pub is_shadow: bool,
}

/// One answer.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// What could be answered.
    pub question: &'a QuestionKind,
    /// What was; `None` when there was nothing that fits.
    pub answer: Option<&'a AnswerKind>,
    /// What people say it should have been.
    pub correct: Option<&'a str>,
    /// Whether a shadow agreed with the live answer.
    pub has_agreed: bool,
}

/// What things cost, in whatever unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Following a wrong answer.
    pub wrong: f64,
    /// Handing an answer on, right or wrong.
    pub handed_on: f64,
}

/// What was counted so far.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    by: BTreeMap<Of, Counts>,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    answers: usize,
    unfit: usize,
    labelled: usize,
    agreed: usize,
    /// Of labelled answers that fit: the confidence, and whether it is right.
    judged: Vec<(f64, bool)>,
}

/// How good one decider is at one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Whose answers.
    pub of: Of,
    /// How many, with those that do not fit.
    pub answers: usize,
    /// How many do not fit, or are missing.
    pub unfit: usize,
    /// How many are labelled.
    pub labelled: usize,
    /// How many of the labelled ones fit: all shares below are of these.
    pub judged: usize,
    /// Which share of them is right; `None` when there are none.
    pub accuracy: Option<f64>,
    /// Which share of a shadow's answers agreed; `None` for a decider that was acted on.
    pub agreement: Option<f64>,
    /// What following only sure answers comes to, at each of [`BARS`].
    pub at_bars: Vec<AtBar>,
    /// The bar that costs least, and what it comes to. A bar over 1 follows nothing.
    pub best: Option<(AtBar, f64)>,
    /// By confidence, lowest bin first, without those that are empty.
    pub calibration: Vec<Bin>,
    /// How far confidence is from accuracy, on average over the answers.
    pub calibration_error: Option<f64>,
}

/// What following only answers of enough confidence comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtBar {
    /// The bar.
    pub bar: f64,
    /// How many answers reach it.
    pub followed: usize,
    /// How many of these are wrong.
    pub wrong: usize,
    /// Which share of those followed is right; `None` when there are none.
    pub accuracy: Option<f64>,
}

/// Answers of about one confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// The least confidence of the bin; the next bin's is the end of it.
    pub from: f64,
    /// How many there are.
    pub count: usize,
    /// Their confidence on average.
    pub confidence: f64,
    /// Which share of them is right.
    pub accuracy: f64,
}

impl Tally {
    /// Counts an answer.
    pub fn add(&mut self, of: Of, sample: Sample<'_>) {
        let counts = self.by.entry(of).or_default();
        counts.answers += 1;
        counts.labelled += usize::from(sample.correct.is_some());
        counts.agreed += usize::from(sample.has_agreed);
        let Some(answer) = sample.answer else {
            counts.unfit += 1;
            return;
        };
        if let Some(correct) = sample.correct {
            let is_right = label::of_answer(sample.question, answer).as_deref() == Some(correct);
            counts.judged.push((label::confidence(answer), is_right));
        }
    }

    /// What it comes to, by train, question and decider, the live one before its shadows.
    pub fn report(&self, costs: Costs) -> Vec<Line> {
        let mut lines: Vec<Line> =
            self.by.iter().map(|(of, counts)| counts.line(of.clone(), costs)).collect();
        lines.sort_by(|one, other| key(&one.of).cmp(&key(&other.of)));
        lines
    }
}

fn key(of: &Of) -> (&str, &str, bool, &str) {
    (&of.train, &of.question, of.is_shadow, &of.decider)
}

impl Counts {
    fn line(&self, of: Of, costs: Costs) -> Line {
        let right = self.judged.iter().filter(|(_, is_right)| *is_right).count();
        let calibration = calibration(&self.judged);
        let error = calibration
            .iter()
            .map(|bin| (bin.confidence - bin.accuracy).abs() * amount(bin.count))
            .sum::<f64>();
        let agreement = share(self.agreed, self.answers).filter(|_| of.is_shadow);
        Line {
            of,
            answers: self.answers,
            unfit: self.unfit,
            labelled: self.labelled,
            judged: self.judged.len(),
            accuracy: share(right, self.judged.len()),
            agreement,
            at_bars: BARS.iter().map(|bar| at_bar(&self.judged, *bar)).collect(),
            best: best(&self.judged, costs),
            calibration_error: (!calibration.is_empty()).then(|| error / amount(self.judged.len())),
            calibration,
        }
    }
}

fn at_bar(judged: &[(f64, bool)], bar: f64) -> AtBar {
    let followed = judged.iter().filter(|(confidence, _)| *confidence >= bar);
    let (followed, wrong) = followed.fold((0, 0), |(followed, wrong), (_, is_right)| {
        (followed + 1, wrong + usize::from(!is_right))
    });
    AtBar { bar, followed, wrong, accuracy: share(followed - wrong, followed) }
}

/// The lowest of the bars that cost least. Only confidences that were given matter: a bar between two of them follows
/// what the upper one does.
fn best(judged: &[(f64, bool)], costs: Costs) -> Option<(AtBar, f64)> {
    if judged.is_empty() {
        return None;
    }
    let mut surest_first = judged.to_vec();
    surest_first.sort_by(|one, other| other.0.total_cmp(&one.0));
    let cost = |at: &AtBar| {
        amount(at.wrong) * costs.wrong + amount(judged.len() - at.followed) * costs.handed_on
    };
    // Over 1: nothing is followed.
    let mut at = AtBar { bar: 1.01, followed: 0, wrong: 0, accuracy: None };
    let mut best = (at, cost(&at));
    for (index, (confidence, is_right)) in surest_first.iter().enumerate() {
        at.followed += 1;
        at.wrong += usize::from(!is_right);
        let is_last_of_its_bar =
            surest_first.get(index + 1).is_none_or(|(next, _)| next < confidence);
        if !is_last_of_its_bar {
            continue;
        }
        at.bar = *confidence;
        at.accuracy = share(at.followed - at.wrong, at.followed);
        if cost(&at) <= best.1 {
            best = (at, cost(&at));
        }
    }
    Some(best)
}

fn calibration(judged: &[(f64, bool)]) -> Vec<Bin> {
    let from = |bin: usize| amount(bin) / amount(BINS);
    let bins = (0..BINS).map(|bin| {
        let within = |confidence: f64| {
            confidence >= from(bin) && (confidence < from(bin + 1) || bin + 1 == BINS)
        };
        let of_bin = judged.iter().filter(|(confidence, _)| within(*confidence));
        let (count, right, sum) = of_bin.fold((0, 0, 0.0), |(count, right, sum), judged| {
            (count + 1, right + usize::from(judged.1), sum + judged.0)
        });
        let accuracy = share(right, count)?;
        Some(Bin { from: from(bin), count, confidence: sum / amount(count), accuracy })
    });
    bins.flatten().collect()
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| amount(part) / amount(whole))
}

/// Counts here are of rows that were read, far below what a float is exact to.
fn amount(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::world::{chosen, yes};
    use crate::chain::testing::{choice, yes_no};

    const COSTS: Costs = Costs { wrong: 10.0, handed_on: 1.0 };

    fn of(decider: &str, is_shadow: bool) -> Of {
        let (train, question) = ("triage".to_owned(), "Team".to_owned());
        Of { train, question, decider: decider.to_owned(), is_shadow }
    }

    fn best_of(judged: &[(f64, bool)], costs: Costs) -> (f64, usize, usize, f64) {
        let (at, cost) = best(judged, costs).unwrap();
        (at.bar, at.followed, at.wrong, cost)
    }

    #[test]
    fn the_best_bar_costs_least() {
        let judged =
            [(0.9, true), (0.9, true), (0.8, true), (0.7, false), (0.6, true), (0.5, false)];
        // (wrong, handed on), and (bar, followed, wrong, cost).
        let cases = [
            ((10.0, 1.0), (0.8, 3, 0, 3.0)),
            ((1.0, 1.0), (0.5, 6, 2, 2.0)),
            ((1.5, 1.0), (0.6, 5, 1, 2.5)),
            ((0.0, 1.0), (0.5, 6, 2, 0.0)),
            // Of bars that cost the same, the lowest.
            ((0.0, 0.0), (0.5, 6, 2, 0.0)),
        ];
        for ((wrong, handed_on), expected) in cases {
            assert_eq!(
                best_of(&judged, Costs { wrong, handed_on }),
                expected,
                "{wrong} {handed_on}"
            );
        }
        assert_eq!(best_of(&[(0.9, false), (0.9, false)], COSTS), (1.01, 0, 0, 2.0));
        // Answers of one confidence are followed together or not at all.
        assert_eq!(best_of(&[(0.9, true), (0.9, false), (0.9, true)], COSTS), (1.01, 0, 0, 3.0));
        assert_eq!(best(&[], COSTS), None);
    }

    #[test]
    fn bars_and_bins_say_what_is_right_among_how_many() {
        let judged = [(1.0, true), (0.95, true), (0.9, false), (0.3, false), (0.35, true)];
        let at = at_bar(&judged, 0.9);
        assert_eq!((at.followed, at.wrong), (3, 1));
        assert_eq!(at_bar(&judged, 0.0).accuracy, Some(0.6));
        assert_eq!(at_bar(&judged[3..], 0.5).accuracy, None);
        let bins = calibration(&judged);
        let shown: Vec<_> = bins.iter().map(|bin| (bin.from, bin.count, bin.accuracy)).collect();
        assert_eq!(shown, [(0.3, 2, 0.5), (0.9, 3, 2.0 / 3.0)]);
        assert!((bins[1].confidence - 0.95).abs() < 1e-9);
    }

    #[test]
    fn answers_are_counted_by_who_gave_them() {
        let team = choice("Team", &["Billing", "Tech"]).kind;
        let (right, wrong) = (chosen("Billing", 0.9), chosen("Tech", 0.6));
        let sample =
            |answer, correct, has_agreed| Sample { question: &team, answer, correct, has_agreed };
        let mut tally = Tally::default();
        for _ in 0..3 {
            tally.add(of("rules", false), sample(Some(&right), Some("Billing"), false));
            tally.add(of("judge", true), sample(Some(&right), Some("Billing"), true));
        }
        tally.add(of("rules", false), sample(Some(&wrong), Some("Billing"), false));
        tally.add(of("rules", false), sample(None, Some("Billing"), false));
        tally.add(of("rules", false), sample(Some(&wrong), None, false));
        tally.add(of("judge", true), sample(None, None, false));

        let lines = tally.report(COSTS);
        let who: Vec<_> = lines.iter().map(|line| line.of.decider.as_str()).collect();
        assert_eq!(who, ["rules", "judge"]);
        let [rules, judge] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((rules.answers, rules.unfit, rules.labelled, rules.judged), (6, 1, 5, 4));
        assert_eq!((rules.accuracy, rules.agreement), (Some(0.75), None));
        assert_eq!(rules.best.map(|(at, cost)| (at.bar, cost)), Some((0.9, 1.0)));
        assert_eq!(rules.at_bars.len(), BARS.len());
        // Three times 0.1 too unsure, and once 0.6 too sure.
        assert!(rules.calibration_error.is_some_and(|error| (error - 0.225).abs() < 1e-9));
        assert_eq!((judge.accuracy, judge.agreement), (Some(1.0), Some(0.75)));
    }

    /// A yes with little probability is a sure no.
    #[test]
    fn the_confidence_of_a_yes_or_no_is_that_of_its_side() {
        let fraud = yes_no("Fraud").kind;
        let mut tally = Tally::default();
        let sure = yes(0.05);
        let sample = Sample {
            question: &fraud,
            answer: Some(&sure),
            correct: Some("no"),
            has_agreed: false,
        };
        tally.add(of("rules", false), sample);
        let line = tally.report(COSTS).remove(0);
        assert_eq!((line.accuracy, line.at_bars[6].followed), (Some(1.0), 1));
        let empty = Tally::default().report(COSTS);
        assert!(empty.is_empty());
    }
}
