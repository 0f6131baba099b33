//! The cascade: a fast decider first, and a slower one for what it was unsure of.

use std::sync::Arc;

use crate::decide::check;
use crate::deciders::{Decider, Request};
use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::Failure;
use crate::model::question::Question;

/// When an answer is not sure enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// A choice or score with less confidence goes to the second decider.
    pub escalate_below: f64,
    /// A probability of yes strictly between this ...
    pub unsure_above: f64,
    /// ... and this does too.
    pub unsure_below: f64,
}

impl Bounds {
    /// Unsure from 0.2 to 0.8.
    pub const fn below(escalate_below: f64) -> Self {
        Self { escalate_below, unsure_above: 0.2, unsure_below: 0.8 }
    }

    /// Why these are no bounds.
    ///
    /// # Errors
    /// The setting, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let all = [
            ("escalate_below", self.escalate_below),
            ("unsure_above", self.unsure_above),
            ("unsure_below", self.unsure_below),
        ];
        for (name, bound) in all {
            if !(0.0..=1.0).contains(&bound) {
                return Err((name, "it must be from 0 to 1".to_owned()));
            }
        }
        if self.unsure_above > self.unsure_below {
            let problem =
                format!("it must be at most unsure_below, which is {}", self.unsure_below);
            return Err(("unsure_above", problem));
        }
        Ok(())
    }

    /// NaN is unsure: it is neither within nor without.
    fn is_sure(&self, answer: &AnswerKind) -> bool {
        match answer {
            AnswerKind::Choice { confidence, .. } | AnswerKind::Score { confidence, .. } => {
                *confidence >= self.escalate_below
            }
            AnswerKind::YesNo { probability } => {
                *probability <= self.unsure_above || *probability >= self.unsure_below
            }
        }
    }
}

/// Asks one decider, and another about what the first was unsure of.
#[derive(Debug)]
pub struct Cascade {
    /// The fast one.
    pub first: Arc<Decider>,
    /// The slower one.
    pub then: Arc<Decider>,
    /// When the second is asked.
    pub bounds: Bounds,
}

impl Cascade {
    /// Asks the first, and the second about what is unsure, does not fit or was not answered.
    ///
    /// # Errors
    /// The failure of the second. What the first fails with is logged, and everything goes to the second.
    pub async fn decide(&self, request: Request<'_>) -> Result<Vec<Answer>, Failure> {
        let given = match self.first.decide(request).await {
            Ok(given) => given,
            Err(failure) => {
                tracing::warn!(
                    train = request.train,
                    "the first decider of a cascade failed: {failure:?}"
                );
                return self.then.decide(request).await;
            }
        };
        let mut sure = Vec::new();
        let mut open = Vec::new();
        for question in request.questions {
            match self.sure(question, &given) {
                Some(answer) => sure.push(answer),
                None => open.push(*question),
            }
        }
        if open.is_empty() {
            return Ok(sure);
        }
        let second = self.then.decide(Request { questions: &open, ..request }).await?;
        // Only what was asked: an answer to a question that the first was sure of would be its second one.
        let asked = |answer: &Answer| open.iter().any(|question| question.key == answer.key);
        sure.extend(second.into_iter().filter(asked));
        Ok(sure)
    }

    fn sure(&self, question: &Question, given: &[Answer]) -> Option<Answer> {
        let given = given.iter().filter(|answer| answer.key == question.key).cloned().collect();
        let fit = check::check(&[question], given).ok()?;
        fit.into_iter().next().filter(|answer| self.bounds.is_sure(&answer.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deciders::scripted::ScriptedDecider;
    use crate::model::question::{Criterion, QuestionKind};
    use crate::model::value::Value;

    fn scripted(script: &str) -> Arc<Decider> {
        Arc::new(Decider::Scripted(ScriptedDecider::from_json(script).unwrap()))
    }

    fn questions() -> Vec<Question> {
        let criterion = |name: &str| Criterion { name: name.to_owned(), description: None };
        let criteria = || vec![criterion("a"), criterion("b")];
        let kinds = [
            ("Choice", QuestionKind::Choice(criteria())),
            ("Score", QuestionKind::Score(criteria())),
            ("YesNo", QuestionKind::YesNo { yes: None, no: None }),
        ];
        let question = |(key, kind): (&str, QuestionKind)| Question {
            key: key.to_owned(),
            instructions: "?".to_owned(),
            kind,
            sensitive: false,
        };
        kinds.into_iter().map(question).collect()
    }

    const SECOND: &str =
        r#"{"Choice":{"choice":"b"},"Score":{"score":1},"YesNo":{"probability":1}}"#;

    /// What the cascade answers, and which questions the second decider was asked.
    async fn ask(first: &str, second: &str) -> (Result<Vec<Answer>, Failure>, Vec<String>) {
        let then = scripted(second);
        let bounds = Bounds::below(0.7);
        let cascade = Cascade { first: scripted(first), then: Arc::clone(&then), bounds };
        let questions = questions();
        let asked: Vec<_> = questions.iter().collect();
        let state = Value::new("State", "{}");
        let answered =
            cascade.decide(Request { train: "t", state: &state, questions: &asked }).await;
        let Decider::Scripted(then) = &*then else { panic!("it is scripted") };
        let escalated = questions.iter().filter(|q| then.times_asked(&q.key) > 0);
        (answered, escalated.map(|question| question.key.clone()).collect())
    }

    /// Q19: what is unsure, missing or does not fit goes to the second decider, and nothing else does.
    #[tokio::test]
    async fn the_second_is_asked_what_the_first_was_unsure_of() {
        let sure = r#""Choice":{"choice":"a","confidence":0.7}"#;
        let score = r#""Score":{"score":0,"confidence":0.9}"#;
        let cases = [
            (format!(r#"{{{sure},{score},"YesNo":{{"probability":0.2}}}}"#), vec![]),
            (format!(r#"{{{sure},{score},"YesNo":{{"probability":0.8}}}}"#), vec![]),
            (format!(r#"{{{sure},{score},"YesNo":{{"probability":0.21}}}}"#), vec!["YesNo"]),
            (format!("{{{sure},{score}}}"), vec!["YesNo"]),
            (
                r#"{"Choice":{"choice":"a","confidence":0.69},"Score":{"score":9},"YesNo":{"probability":2}}"#
                    .to_owned(),
                vec!["Choice", "Score", "YesNo"],
            ),
            (format!(r#"{{{sure},{score},"YesNo":{{"throws":"away"}}}}"#), vec!["Choice", "Score", "YesNo"]),
        ];
        for (first, expected) in cases {
            let (answered, escalated) = ask(&first, SECOND).await;
            assert_eq!(answered.unwrap().len(), 3, "{first}");
            assert_eq!(escalated, expected, "{first}");
        }
    }

    /// Q19: the second decider's failure is the cascade's.
    #[tokio::test]
    async fn the_seconds_failure_is_the_cascades() {
        let (answered, _) = ask("{}", r#"{"Choice":{"throws":"gone","class":"permanent"}}"#).await;
        assert_eq!(answered.unwrap_err().message, "gone");
    }

    /// Q19: bounds are from 0 to 1 and in order, and NaN is unsure.
    #[test]
    fn bounds_are_checked() {
        let checked = |below, above, under| {
            let bounds = Bounds { escalate_below: below, unsure_above: above, unsure_below: under };
            bounds.check().err().map(|(name, _)| name)
        };
        assert_eq!(
            Bounds::below(0.5),
            Bounds { escalate_below: 0.5, unsure_above: 0.2, unsure_below: 0.8 }
        );
        assert_eq!(checked(0.0, 0.5, 0.5), None);
        assert_eq!(checked(1.1, 0.2, 0.8), Some("escalate_below"));
        assert_eq!(checked(f64::NAN, 0.2, 0.8), Some("escalate_below"));
        assert_eq!(checked(0.5, -0.1, 0.8), Some("unsure_above"));
        assert_eq!(checked(0.5, 0.2, 1.1), Some("unsure_below"));
        assert_eq!(checked(0.5, 0.8, 0.2), Some("unsure_above"));
        let bounds = Bounds::below(0.0);
        assert!(!bounds.is_sure(&AnswerKind::YesNo { probability: f64::NAN }));
        let confidence = f64::NAN;
        let score = AnswerKind::Score { score: 0.0, confidence, probabilities: Vec::new() };
        assert!(!bounds.is_sure(&score));
    }
}
