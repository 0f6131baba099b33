//! Labels: what people say an answer should have been.

use crate::chain::route::nearest_level;
use crate::model::answer::AnswerKind;
use crate::model::question::QuestionKind;

/// What a person said, as it is kept: the option's name, the level's name, `yes` or `no`.
///
/// A level may be named or numbered, lowest first from 0.
///
/// # Errors
/// What can be said.
pub fn read(question: &QuestionKind, text: &str) -> Result<String, String> {
    let text = text.trim();
    match question {
        QuestionKind::Choice(criteria) | QuestionKind::Score(criteria) => {
            let is_scale = matches!(question, QuestionKind::Score(_));
            let numbered = text.parse::<usize>().ok().filter(|_| is_scale);
            let found = criteria
                .iter()
                .find(|criterion| criterion.name == text)
                .or_else(|| numbered.and_then(|number| criteria.get(number)));
            found.map(|criterion| criterion.name.clone()).ok_or_else(|| {
                let names: Vec<&str> = criteria.iter().map(|it| it.name.as_str()).collect();
                format!("it can be {}", names.join(", "))
            })
        }
        QuestionKind::YesNo { .. } => match text.to_ascii_lowercase().as_str() {
            "yes" | "true" => Ok("yes".to_owned()),
            "no" | "false" => Ok("no".to_owned()),
            _ => Err("it can be yes or no".to_owned()),
        },
    }
}

/// What an answer amounts to, in the words of labels; `None` when it is none to this question.
pub fn of_answer(question: &QuestionKind, answer: &AnswerKind) -> Option<String> {
    match (question, answer) {
        (QuestionKind::Choice(_), AnswerKind::Choice { choice, .. }) => Some(choice.clone()),
        (QuestionKind::Score(levels), AnswerKind::Score { score, .. }) => {
            let nearest = nearest_level(*score, levels.len())?;
            levels.get(nearest).map(|level| level.name.clone())
        }
        (QuestionKind::YesNo { .. }, AnswerKind::YesNo { probability }) => {
            Some(if *probability >= 0.5 { "yes" } else { "no" }.to_owned())
        }
        _ => None,
    }
}

/// How sure an answer is: of a yes or no, the probability of the side it is on.
pub const fn confidence(answer: &AnswerKind) -> f64 {
    match answer {
        AnswerKind::Choice { confidence, .. } | AnswerKind::Score { confidence, .. } => *confidence,
        AnswerKind::YesNo { probability } => probability.max(1.0 - *probability),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::world::{chosen, scored, yes};
    use crate::chain::testing::{choice, score, yes_no};

    #[test]
    fn labels_are_names_of_what_can_be_answered() {
        let team = choice("Team", &["Billing", "1"]).kind;
        let urgency = score("Urgency", &["Low", "High"]).kind;
        let fraud = yes_no("Fraud").kind;
        for (question, text, expected) in [
            (&team, " Billing ", Ok("Billing")),
            (&team, "1", Ok("1")),
            (&team, "0", Err("it can be Billing, 1")),
            (&team, "billing", Err("it can be Billing, 1")),
            (&urgency, "High", Ok("High")),
            (&urgency, "0", Ok("Low")),
            (&urgency, "2", Err("it can be Low, High")),
            (&fraud, "YES", Ok("yes")),
            (&fraud, "false", Ok("no")),
            (&fraud, "0.7", Err("it can be yes or no")),
        ] {
            let read = read(question, text);
            assert_eq!(read.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn answers_amount_to_labels() {
        let team = choice("Team", &["Billing", "Tech"]).kind;
        let urgency = score("Urgency", &["Low", "High"]).kind;
        let fraud = yes_no("Fraud").kind;
        let cases = [
            (&team, chosen("Tech", 0.25), Some("Tech"), 0.25),
            (&team, yes(0.1), None, 0.9),
            (&urgency, scored(0.5, 0.75), Some("High"), 0.75),
            (&urgency, scored(0.49, 0.75), Some("Low"), 0.75),
            (&urgency, scored(f64::NAN, 0.75), None, 0.75),
            (&fraud, yes(0.5), Some("yes"), 0.5),
            (&fraud, yes(0.25), Some("no"), 0.75),
        ];
        for (question, answer, label, sure) in cases {
            assert_eq!(of_answer(question, &answer).as_deref(), label, "{answer:?}");
            assert!((confidence(&answer) - sure).abs() < 1e-9, "{answer:?}");
        }
    }
}
