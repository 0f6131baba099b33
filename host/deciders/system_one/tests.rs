//! The System One format, word for word.

use serde_json::json;

use crate::deciders::Request;
use crate::deciders::model_client::settings::Settings;
use crate::deciders::model_client::tests::{Model, Reply, asked};
use crate::deciders::system_one::{SystemOne, wire};
use crate::model::answer::{Answer, AnswerKind};
use crate::model::failure::FailureClass;
use crate::model::question::{Criterion, Question, QuestionKind};
use crate::model::value::Value;

fn questions() -> Vec<Question> {
    let criterion = |name: &str, description: Option<&str>| Criterion {
        name: name.to_owned(),
        description: description.map(str::to_owned),
    };
    let levels =
        || vec![criterion("Low", None), criterion("High", Some("soon")), criterion("Now", None)];
    let kinds = [
        (
            "Team",
            QuestionKind::Choice(vec![criterion("Sales", Some("offers")), criterion("Help", None)]),
        ),
        ("Haste", QuestionKind::Score(levels())),
        ("Spam", QuestionKind::YesNo { yes: Some("It sells".to_owned()), no: None }),
    ];
    kinds.map(|(key, kind)| asked(key, kind)).to_vec()
}

fn read(answers: &serde_json::Value) -> Vec<Answer> {
    let body = json!({"model": "judge-2.1", "answers": answers}).to_string();
    let questions = questions();
    wire::answers(body.as_bytes(), &questions.iter().collect::<Vec<_>>()).unwrap()
}

/// Q34: the model, the state as it is, and the questions in their order, each in the form of its kind.
#[tokio::test]
async fn requests_are_written_to_the_letter() {
    let answers = json!({"answers": {"Spam": {"type": "noul", "noul": 0.5}}}).to_string();
    let model = Model::start(vec![Reply::json(&answers), Reply::json(&answers)]).await;
    let decider = SystemOne::new(Settings::new(model.endpoint.clone(), "judge-2")).unwrap();
    let questions = questions();
    let questions: Vec<_> = questions.iter().collect();
    for state in ["\"a text\"", "{\"amount\":12345678901234567890}"] {
        let state = Value::new("State", state);
        let request = Request { train: "triage", state: &state, questions: &questions };
        decider.decide(request).await.unwrap();
    }

    let sent = model.requests();
    let body = sent[1].split_once("\r\n\r\n").unwrap().1;
    assert_eq!(
        body,
        concat!(
            r#"{"model":"judge-2","state":{"amount":12345678901234567890},"questions":{"#,
            r#""Team":{"type":"choice","instructions":"What Team?","criteria":{"Sales":"offers","Help":"Help"}},"#,
            r#""Haste":{"type":"score","instructions":"What Haste?","criteria":["Low","soon","Now"]},"#,
            r#""Spam":{"type":"noul","instructions":"What Spam?","criteria":{"true":"It sells","false":"No"}}}}"#
        )
    );
    assert_eq!(model.bodies()[0]["state"], json!("a text"));
}

/// Q35: answers of each kind are read, and each carries the model that gave it.
#[test]
fn answers_are_read() {
    let answers = read(&json!({
        "Team": {"type": "choice", "choice": "Help", "confidence": 0.5, "probabilities": {"Help": 0.75}},
        "Haste": {"type": "score", "score": 0.5, "probabilities": {"0": 0.25, "1": 0.5, "2": 0.25}},
        "Spam": {"type": "noul", "noul": 0.125},
        "Other": {"type": "noul", "noul": 1},
    }));
    let probabilities = vec![("Help".to_owned(), 0.75)];
    let expected = [
        AnswerKind::Choice { choice: "Help".to_owned(), confidence: 0.5, probabilities },
        // The nearest level of a half is the upper one.
        AnswerKind::Score { score: 0.5, confidence: 0.5, probabilities: vec![0.25, 0.5, 0.25] },
        AnswerKind::YesNo { probability: 0.125 },
    ];
    assert_eq!(answers.iter().map(|answer| answer.kind.clone()).collect::<Vec<_>>(), expected);
    assert!(answers.iter().all(|answer| answer.model.as_deref() == Some("judge-2.1")));
}

/// Q35: a missing confidence is the probability of what was chosen, and with neither there is no answer.
#[test]
fn a_missing_confidence_is_the_probability() {
    let confidence = |answer: serde_json::Value, key: &str| {
        let answers = read(&json!({ key: answer }));
        answers.first().map(|answer| match &answer.kind {
            AnswerKind::Choice { confidence, .. } | AnswerKind::Score { confidence, .. } => {
                *confidence
            }
            AnswerKind::YesNo { probability } => *probability,
        })
    };
    let choice = |probabilities: serde_json::Value| {
        confidence(
            json!({"type": "choice", "choice": "Help", "probabilities": probabilities}),
            "Team",
        )
    };
    assert_eq!(choice(json!({"Help": 0.75, "Sales": 0.25})), Some(0.75));
    assert_eq!(choice(json!({"Sales": 0.25})), None);
    assert_eq!(choice(json!(null)), None);
    let score = |score: f64, probabilities: serde_json::Value| {
        confidence(
            json!({"type": "score", "score": score, "probabilities": probabilities}),
            "Haste",
        )
    };
    let three = json!({"0": 0.1, "1": 0.2, "2": 0.7});
    let nearest = [(0.0, 0.1), (0.49, 0.1), (1.4, 0.2), (1.5, 0.7), (9.0, 0.7), (-9.0, 0.1)];
    for (given, expected) in nearest {
        assert_eq!(score(given, three.clone()), Some(expected), "{given}");
    }
    for not_every_level in
        [json!({"0": 1, "1": 0}), json!({"0": 1, "1": 0, "3": 0}), json!({}), json!(null)]
    {
        assert_eq!(score(0.0, not_every_level), None);
    }
}

/// Q35, Q39: an answer of another kind, or one that cannot be read, is left out.
#[test]
fn unreadable_answers_are_left_out() {
    let unreadable = [
        json!({"Team": {"type": "score", "score": 1, "confidence": 1}}),
        json!({"Team": {"type": "choice", "choice": 1, "confidence": 1}}),
        json!({"Team": {"type": "choice", "choice": "Help", "confidence": "high"}}),
        json!({"Team": {"type": "choice", "choice": "Help", "confidence": 1, "probabilities": [1]}}),
        json!({"Haste": {"type": "score", "score": "1", "confidence": 1}}),
        json!({"Haste": {"type": "score", "score": 1, "confidence": 1, "probabilities": {"0": 1}}}),
        json!({"Spam": {"type": "noul", "noul": "yes"}}),
        json!({"Spam": {"type": "yes_no", "noul": 1}}),
        json!({"Spam": true}),
        json!({"spam": {"type": "noul", "noul": 1}}),
    ];
    for answers in unreadable {
        assert!(read(&answers).is_empty(), "{answers}");
    }
}

/// Q36: a body with no answers in it is told from one whose answers cannot be read.
#[test]
fn bodies_without_answers_are_malformed() {
    let malformed =
        ["", "hello", "[]", "{}", r#"{"answers":[]}"#, r#"{"model":1,"answers":{}}"#, "\u{ff}"];
    for body in malformed {
        assert!(wire::answers(body.as_bytes(), &[]).is_err(), "{body}");
    }
    assert!(wire::answers(br#"{"answers":{}}"#, &[]).is_ok());
    assert!(wire::answers(&[b'{', 0xff, b'}'], &[]).is_err());
}

/// Q39: what cannot be asked is not sent, and fails for good.
#[tokio::test]
async fn what_cannot_be_asked_is_not_sent() {
    let model = Model::start(vec![]).await;
    let decider = SystemOne::new(Settings::new(model.endpoint.clone(), "judge-2")).unwrap();
    let questions = questions();
    let twice = [&questions[0], &questions[0]];
    for (state, asked) in [("1", &twice[..1]), ("{}", &twice[..])] {
        let state = Value::new("State", state);
        let failure =
            decider.decide(Request { train: "triage", state: &state, questions: asked }).await;
        let failure = failure.unwrap_err();
        assert_eq!(failure.class, FailureClass::Permanent);
        assert!(
            failure.message.starts_with("The decision model could not answer train 'triage': ")
        );
    }
    assert!(model.requests().is_empty());
}
