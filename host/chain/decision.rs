//! Decisions and tracks taken as values in Memory: canonical JSON that junctions can take as inputs.
//!
//! | type | JSON |
//! |---|---|
//! | `ChoiceDecision<Key>` | `{"choice":"Billing","confidence":0.9,"probabilities":{"Billing":0.9}}` |
//! | `ScoreDecision<Key>` | `{"confidence":1,"probabilities":[0.5,0.5],"score":2.4}` |
//! | `YesNoDecision<Key>` | `{"probability":0.7}` |
//! | `TrackTaken<Key>` | `{"fallbackReason":null,"track":"Refund"}` |
//!
//! `probabilities` is absent when there are none. Numbers are the shortest decimals that read back as the same float.

use crate::chain::next::Routed;
use crate::model::answer::AnswerKind;
use crate::model::json::Json;
use crate::model::question::Question;
use crate::model::value::{Value, track_taken_type};

/// The value of a decision, if the answer is of the question's kind and all its numbers are finite.
pub fn decision_value(question: &Question, answer: &AnswerKind) -> Option<Value> {
    if question.kind.as_str() != answer.as_str() {
        return None;
    }
    let members = members(answer, number)?;
    Some(Value::new(question.decision_type(), Json::object(members).to_string()))
}

/// An answer as it is stored, also one that does not fit: numbers that JSON does not have are texts. `replay_refused`
/// says why the answer of an earlier run was not given in its place.
pub fn stored_answer(answer: &AnswerKind, replay_refused: Option<&str>) -> String {
    let mut members = members(answer, |float| Some(number_or_text(float))).unwrap_or_default();
    if let Some(reason) = replay_refused {
        members.push(("replay_refused".to_string(), Json::String(reason.to_string())));
    }
    Json::object(members).to_string()
}

fn members(
    answer: &AnswerKind,
    number: impl Fn(f64) -> Option<Json>,
) -> Option<Vec<(String, Json)>> {
    let mut members = Vec::with_capacity(4);
    let mut member = |name: &str, json: Json| members.push((name.to_string(), json));
    match answer {
        AnswerKind::Choice { choice, confidence, probabilities } => {
            member("choice", Json::String(choice.clone()));
            member("confidence", number(*confidence)?);
            if !probabilities.is_empty() {
                let of_options: Option<Vec<(String, Json)>> = probabilities
                    .iter()
                    .map(|(option, probability)| Some((option.clone(), number(*probability)?)))
                    .collect();
                member("probabilities", Json::object(of_options?));
            }
        }
        AnswerKind::Score { score, confidence, probabilities } => {
            member("score", number(*score)?);
            member("confidence", number(*confidence)?);
            if !probabilities.is_empty() {
                let of_levels: Option<Vec<Json>> =
                    probabilities.iter().map(|p| number(*p)).collect();
                member("probabilities", Json::Array(of_levels?));
            }
        }
        AnswerKind::YesNo { probability } => member("probability", number(*probability)?),
    }
    Some(members)
}

/// The answer behind a value that [`decision_value`] made for the same question.
pub fn decision_answer(question: &Question, value: &Value) -> Option<AnswerKind> {
    if *value.type_name != *question.decision_type() {
        return None;
    }
    read_answer(question.kind.as_str(), &value.json)
}

/// The answer to a question of this kind behind the JSON of a decision. Members that no decision has are passed over.
pub fn read_answer(kind: &str, json: &str) -> Option<AnswerKind> {
    let json = Json::parse(json).ok()?;
    if kind == "yes_no" {
        return Some(AnswerKind::YesNo { probability: float(json.member("probability")?)? });
    }
    let confidence = float(json.member("confidence")?)?;
    if kind == "choice" {
        let choice = json.member("choice")?;
        let probabilities = match json.member("probabilities") {
            Some(Json::Object(members)) => members
                .iter()
                .map(|(option, probability)| Some((option.clone(), float(probability)?)))
                .collect::<Option<_>>()?,
            _ => Vec::new(),
        };
        let choice = choice.as_str()?.to_string();
        return Some(AnswerKind::Choice { choice, confidence, probabilities });
    }
    let probabilities = match json.member("probabilities") {
        Some(Json::Array(levels)) => levels.iter().map(float).collect::<Option<_>>()?,
        _ => Vec::new(),
    };
    Some(AnswerKind::Score { score: float(json.member("score")?)?, confidence, probabilities })
}

/// The value that a routing step leaves in Memory.
pub fn track_taken_value(routed: &Routed) -> Value {
    let reason = routed.fallback_reason.clone().map_or(Json::Null, Json::String);
    let members = [
        ("fallbackReason".to_string(), reason),
        ("track".to_string(), Json::String(routed.track.clone())),
    ];
    Value::new(track_taken_type(&routed.question_key), Json::object(members).to_string())
}

fn number(number: f64) -> Option<Json> {
    number.is_finite().then(|| Json::Number(number.to_string()))
}

fn number_or_text(float: f64) -> Json {
    number(float).unwrap_or_else(|| {
        let text = match (float.is_nan(), float > 0.0) {
            (true, _) => "NaN",
            (false, true) => "Infinity",
            (false, false) => "-Infinity",
        };
        Json::String(text.to_string())
    })
}

fn float(json: &Json) -> Option<f64> {
    let Json::Number(text) = json else { return None };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chain::node::NodeIndex;
    use crate::chain::testing::{choice, score, yes_no};

    fn chosen(probabilities: Vec<(String, f64)>) -> AnswerKind {
        AnswerKind::Choice { choice: "Billing".to_string(), confidence: 0.9, probabilities }
    }

    /// D4, D6: an answer that JSON has no numbers for is stored all the same, and so is why another was not replayed.
    #[test]
    fn every_answer_can_be_stored() {
        let scored = AnswerKind::Score {
            score: f64::NAN,
            confidence: f64::INFINITY,
            probabilities: vec![f64::NEG_INFINITY, 0.5],
        };
        assert_eq!(
            stored_answer(&scored, None),
            r#"{"confidence":"Infinity","probabilities":["-Infinity",0.5],"score":"NaN"}"#
        );
        assert_eq!(read_answer("score", &stored_answer(&scored, None)), None);
        let answer = chosen(vec![("Billing".to_string(), 0.5)]);
        let stored = stored_answer(&answer, Some("it is too \"old\""));
        assert_eq!(
            stored,
            r#"{"choice":"Billing","confidence":0.9,"probabilities":{"Billing":0.5},"replay_refused":"it is too \"old\""}"#
        );
        assert_eq!(read_answer("choice", &stored), Some(answer));
    }

    #[test]
    fn decisions_are_canonical_json() {
        let team = choice("Team", &["Billing", "Tech"]);
        let urgency = score("Urgency", &["Low", "High"]);
        let fraud = yes_no("Fraud");
        let both = vec![("Tech".to_string(), 0.1), ("Billing".to_string(), 0.9)];
        let scored =
            |probabilities| AnswerKind::Score { score: 2.4, confidence: 1.0, probabilities };
        for (question, answer, expected) in [
            (&team, chosen(vec![]), r#"{"choice":"Billing","confidence":0.9}"#),
            (
                &team,
                chosen(both),
                r#"{"choice":"Billing","confidence":0.9,"probabilities":{"Billing":0.9,"Tech":0.1}}"#,
            ),
            (&urgency, scored(vec![]), r#"{"confidence":1,"score":2.4}"#),
            (
                &urgency,
                scored(vec![0.25, 0.75]),
                r#"{"confidence":1,"probabilities":[0.25,0.75],"score":2.4}"#,
            ),
            (&fraud, AnswerKind::YesNo { probability: 0.7 }, r#"{"probability":0.7}"#),
        ] {
            let value = decision_value(question, &answer).unwrap();
            assert_eq!(*value.type_name, *question.decision_type());
            assert_eq!(&*value.json, expected);
        }
    }

    #[test]
    fn an_answer_of_another_kind_or_without_a_number_is_no_decision() {
        let team = choice("Team", &["Billing", "Tech"]);
        let fraud = yes_no("Fraud");
        for (question, answer) in [
            (&team, AnswerKind::YesNo { probability: 0.7 }),
            (&fraud, chosen(vec![])),
            (&fraud, AnswerKind::YesNo { probability: f64::NAN }),
            (&team, chosen(vec![("Billing".to_string(), f64::INFINITY)])),
        ] {
            assert_eq!(decision_value(question, &answer), None, "{answer:?}");
        }
    }

    /// Q9: the track, and the reason when the decision was not followed.
    #[test]
    fn a_track_taken_names_the_track_and_the_reason() {
        let routed = |fallback_reason: Option<&str>| Routed {
            node: NodeIndex(0),
            question_key: "Team".to_string(),
            track: "Other".to_string(),
            fallback_reason: fallback_reason.map(str::to_string),
        };
        let followed = track_taken_value(&routed(None));
        assert_eq!(&*followed.type_name, "TrackTaken<Team>");
        assert_eq!(&*followed.json, r#"{"fallbackReason":null,"track":"Other"}"#);
        let fallback = track_taken_value(&routed(Some("no \"track\"")));
        assert_eq!(&*fallback.json, r#"{"fallbackReason":"no \"track\"","track":"Other"}"#);
    }

    proptest! {
        #[test]
        fn a_decision_reads_back_as_its_answer(a in 0.0..=1.0_f64, b in 0.0..=4.0_f64, c in 0.0..=1.0_f64) {
            let of_options = vec![("Billing".to_string(), a), ("Tech".to_string(), c)];
            let choice_answer =
                AnswerKind::Choice { choice: "Tech".to_string(), confidence: c, probabilities: of_options };
            let of_levels = vec![c, a];
            let score_answer = AnswerKind::Score { score: b, confidence: a, probabilities: of_levels };
            for (question, answer) in [
                (choice("Team", &["Billing", "Tech"]), choice_answer),
                (score("Urgency", &["Low", "High"]), score_answer),
                (yes_no("Fraud"), AnswerKind::YesNo { probability: a }),
            ] {
                let value = decision_value(&question, &answer).unwrap();
                prop_assert_eq!(decision_answer(&question, &value), Some(answer));
            }
        }
    }
}
