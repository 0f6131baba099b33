//! Whether answers fit the questions that were asked.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::Failure;
use crate::model::question::{Criterion, Question, QuestionKind};

/// Why one answer is not acted on.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("'{key}': {problem}")]
pub struct AnswerFault {
    /// The question's key.
    pub key: String,
    /// What is wrong; never quotes what was answered.
    pub problem: String,
    /// What was answered last, for the record; `None` when nothing was.
    pub answer: Option<Answer>,
}

/// Every answer of one asking that does not fit. None of the others may be acted on either.
#[derive(Debug, Clone, PartialEq, Error)]
pub struct AnswerFaults {
    /// At least one, in the order in which the questions were asked.
    pub faults: Vec<AnswerFault>,
}

/// The name of the failure of a run whose decider gave answers that do not fit.
pub const UNFIT_ANSWER: &str = "UnfitAnswer";

impl fmt::Display for AnswerFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.faults.len() == 1 { "" } else { "s" };
        write!(f, "the decider gave {} unfit answer{plural}", self.faults.len())?;
        for (i, fault) in self.faults.iter().enumerate() {
            write!(f, "{} {fault}", if i == 0 { ":" } else { ";" })?;
        }
        f.write_str("; correct the decider, or run again to ask it afresh")
    }
}

impl From<AnswerFaults> for Failure {
    /// Transient, because a decider that is asked again may answer well.
    fn from(faults: AnswerFaults) -> Self {
        Self::transient(UNFIT_ANSWER, faults.to_string())
    }
}

/// Puts the answers into the order of their questions, when each question has exactly one that fits it. Answers to
/// questions that were not asked are dropped.
///
/// # Errors
/// [`AnswerFaults`] names every question that is not answered, and every answer that does not fit.
pub fn check(questions: &[&Question], answers: Vec<Answer>) -> Result<Vec<Answer>, AnswerFaults> {
    let mut given: HashMap<&str, (usize, Option<Answer>)> =
        questions.iter().map(|question| (question.key.as_str(), (0, None))).collect();
    for answer in answers {
        if let Some((count, kept)) = given.get_mut(answer.key.as_str()) {
            *count += 1;
            *kept = Some(answer);
        }
    }
    let mut fit = Vec::with_capacity(questions.len());
    let mut faults = Vec::new();
    for question in questions {
        let (count, answer) = given.remove(question.key.as_str()).unwrap_or_default();
        let problem = match &answer {
            None => Some("it was not answered".to_owned()),
            Some(_) if count > 1 => Some(format!("it was answered {count} times")),
            Some(answer) => problem(&question.kind, &answer.kind),
        };
        match (problem, answer) {
            (None, Some(answer)) => fit.push(answer),
            (problem, answer) => {
                let problem = problem.unwrap_or_default();
                faults.push(AnswerFault { key: question.key.clone(), problem, answer });
            }
        }
    }
    if faults.is_empty() { Ok(fit) } else { Err(AnswerFaults { faults }) }
}

/// What keeps an answer from fitting a question of this kind; `None` when it fits. The text never quotes the answer,
/// because it is also the reason why a recorded answer is not replayed, which operators may see.
pub fn problem(question: &QuestionKind, answer: &AnswerKind) -> Option<String> {
    match (question, answer) {
        (
            QuestionKind::Choice(options),
            AnswerKind::Choice { choice, confidence, probabilities },
        ) => {
            if !options.iter().any(|option| option.name == *choice) {
                return Some("the choice is not one of the options offered".to_owned());
            }
            out_of_unit("the confidence", *confidence)
                .or_else(|| option_probabilities(options, probabilities))
        }
        (QuestionKind::Score(levels), AnswerKind::Score { score, confidence, probabilities }) => {
            let top = u32::try_from(levels.len().saturating_sub(1)).unwrap_or(u32::MAX);
            if !(0.0..=f64::from(top)).contains(score) {
                return Some(format!("the score is not from 0 to {top}"));
            }
            if !probabilities.is_empty() && probabilities.len() != levels.len() {
                let (count, levels) = (probabilities.len(), levels.len());
                return Some(format!("there are {count} probabilities for {levels} levels"));
            }
            out_of_unit("the confidence", *confidence)
                .or_else(|| probabilities.iter().find_map(|p| out_of_unit("a probability", *p)))
        }
        (QuestionKind::YesNo { .. }, AnswerKind::YesNo { probability }) => {
            out_of_unit("the probability", *probability)
        }
        _ => Some(format!("a {} question was answered as {}", question.as_str(), answer.as_str())),
    }
}

fn option_probabilities(options: &[Criterion], given: &[(String, f64)]) -> Option<String> {
    // Checked first: it bounds what follows, whatever a decider sends.
    if given.len() > options.len() {
        return Some("there are more probabilities than options".to_owned());
    }
    for (i, (name, probability)) in given.iter().enumerate() {
        if !options.iter().any(|option| option.name == *name) {
            return Some("a probability is for an option that is not offered".to_owned());
        }
        if given[..i].iter().any(|(earlier, _)| earlier == name) {
            return Some("an option has two probabilities".to_owned());
        }
        if let Some(problem) = out_of_unit("a probability", *probability) {
            return Some(problem);
        }
    }
    None
}

/// NaN is in no range.
fn out_of_unit(what: &str, number: f64) -> Option<String> {
    (!(0.0..=1.0).contains(&number)).then(|| format!("{what} is not from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::failure::FailureClass;

    fn criteria(names: &[&str]) -> Vec<Criterion> {
        let criterion = |name: &&str| Criterion { name: (*name).to_owned(), description: None };
        names.iter().map(criterion).collect()
    }

    fn question(key: &str, kind: QuestionKind) -> Question {
        Question { key: key.to_owned(), instructions: "?".to_owned(), kind, sensitive: false }
    }

    fn teams() -> Question {
        question("Team", QuestionKind::Choice(criteria(&["Billing", "Refunds"])))
    }

    fn urgency() -> Question {
        question("Urgency", QuestionKind::Score(criteria(&["Low", "Mid", "High"])))
    }

    fn refund() -> Question {
        question("Refund", QuestionKind::YesNo { yes: None, no: None })
    }

    fn choice(choice: &str, confidence: f64, probabilities: &[(&str, f64)]) -> AnswerKind {
        let probabilities = probabilities.iter().map(|(n, p)| ((*n).to_owned(), *p)).collect();
        AnswerKind::Choice { choice: choice.to_owned(), confidence, probabilities }
    }

    fn score(score: f64, confidence: f64, probabilities: &[f64]) -> AnswerKind {
        AnswerKind::Score { score, confidence, probabilities: probabilities.to_vec() }
    }

    fn yes(probability: f64) -> AnswerKind {
        AnswerKind::YesNo { probability }
    }

    fn answer(key: &str, kind: AnswerKind) -> Answer {
        Answer { key: key.to_owned(), kind, model: None }
    }

    /// Q12, Q13: what fits, and every way not to.
    #[test]
    fn answers_fit_or_say_why_not() {
        let both = [("Billing", 0.25), ("Refunds", 0.75)];
        let not_offered = Some("the choice is not one of the options offered");
        let cases = [
            (teams(), choice("Billing", 1.0, &[]), None),
            (teams(), choice("Refunds", 0.0, &both), None),
            (teams(), choice("Refunds", 0.5, &both[..1]), None),
            (teams(), choice("Sales", 1.0, &[]), not_offered),
            (teams(), choice("billing", 1.0, &[]), not_offered),
            (teams(), choice("0", 1.0, &[]), not_offered),
            (teams(), choice("", 1.0, &[]), not_offered),
            (teams(), choice("Billing", 1.01, &[]), Some("the confidence is not from 0 to 1")),
            (teams(), choice("Billing", -0.1, &[]), Some("the confidence is not from 0 to 1")),
            (teams(), choice("Billing", f64::NAN, &[]), Some("the confidence is not from 0 to 1")),
            (
                teams(),
                choice("Billing", 1.0, &[("Billing", f64::INFINITY)]),
                Some("a probability is not from 0 to 1"),
            ),
            (
                teams(),
                choice("Billing", 1.0, &[("Sales", 0.5)]),
                Some("a probability is for an option that is not offered"),
            ),
            (
                teams(),
                choice("Billing", 1.0, &[("Billing", 0.5), ("Billing", 0.5)]),
                Some("an option has two probabilities"),
            ),
            (
                teams(),
                choice("Billing", 1.0, &[("Billing", 0.5), ("Refunds", 0.5), ("Billing", 0.5)]),
                Some("there are more probabilities than options"),
            ),
            (teams(), yes(1.0), Some("a choice question was answered as yes_no")),
            (urgency(), score(0.0, 1.0, &[]), None),
            (urgency(), score(2.0, 0.5, &[0.0, 0.5, 0.5]), None),
            (urgency(), score(-0.01, 1.0, &[]), Some("the score is not from 0 to 2")),
            (urgency(), score(2.01, 1.0, &[]), Some("the score is not from 0 to 2")),
            (urgency(), score(f64::NAN, 1.0, &[]), Some("the score is not from 0 to 2")),
            (urgency(), score(1.0, 2.0, &[]), Some("the confidence is not from 0 to 1")),
            (urgency(), score(1.0, 1.0, &[0.5]), Some("there are 1 probabilities for 3 levels")),
            (
                urgency(),
                score(1.0, 1.0, &[0.5, 0.5, f64::NAN]),
                Some("a probability is not from 0 to 1"),
            ),
            (urgency(), choice("Low", 1.0, &[]), Some("a score question was answered as choice")),
            (refund(), yes(0.0), None),
            (refund(), yes(1.0), None),
            (refund(), yes(1.5), Some("the probability is not from 0 to 1")),
            (refund(), yes(f64::NAN), Some("the probability is not from 0 to 1")),
            (refund(), score(1.0, 1.0, &[]), Some("a yes_no question was answered as score")),
        ];
        for (question, kind, expected) in cases {
            assert_eq!(problem(&question.kind, &kind).as_deref(), expected, "{kind:?}");
        }
    }

    /// Q12: answers come back in the order asked, whole, whatever order the decider gave them in.
    #[test]
    fn answers_are_put_in_the_order_asked() {
        let model = Answer { model: Some("rules".to_owned()), ..answer("Refund", yes(0.7)) };
        let extra = answer("Sales", yes(9.0));
        let given = vec![extra, model.clone(), answer("Team", choice("Billing", 1.0, &[]))];

        let checked = check(&[&teams(), &refund()], given).unwrap();

        assert_eq!(checked, [answer("Team", choice("Billing", 1.0, &[])), model]);
    }

    /// Q13, Q14: every bad answer of one asking is named, a missing one too, and the failure is transient.
    #[test]
    fn all_bad_answers_are_named_at_once() {
        let (teams, urgency, refund) = (teams(), urgency(), refund());
        let given = vec![
            answer("Refund", yes(2.0)),
            answer("Team", choice("Secret", 1.0, &[])),
            answer("Later", yes(0.5)),
        ];
        let later = question("Later", QuestionKind::YesNo { yes: None, no: None });

        let faults = check(&[&teams, &urgency, &refund, &later], given).unwrap_err();

        let keys: Vec<_> = faults.faults.iter().map(|f| (&*f.key, f.answer.is_some())).collect();
        assert_eq!(keys, [("Team", true), ("Urgency", false), ("Refund", true)]);
        let failure = Failure::from(faults);
        assert_eq!(failure.class, FailureClass::Transient);
        assert_eq!(
            failure.message,
            "the decider gave 3 unfit answers: 'Team': the choice is not one of the options \
             offered; 'Urgency': it was not answered; 'Refund': the probability is not from 0 to \
             1; correct the decider, or run again to ask it afresh"
        );
    }

    /// Q13: two answers to one question are no answer, even when each would fit.
    #[test]
    fn a_question_is_answered_once() {
        let given = vec![answer("Refund", yes(0.1)), answer("Refund", yes(0.9))];

        let faults = check(&[&refund()], given).unwrap_err();

        assert_eq!(faults.faults[0].problem, "it was answered 2 times");
    }
}
