//! Chat completions: what is sent follows the API's schema, and what comes back is read.

use serde_json::{Value as Json, json};

use crate::deciders::Request;
use crate::deciders::model_client::settings::Settings;
use crate::deciders::model_client::tests::{Model, Reply, asked};
use crate::deciders::openai::{OpenAi, wire};
use crate::model::answer::AnswerKind;
use crate::model::question::{Criterion, Question, QuestionKind};
use crate::model::value::Value;

/// The part of the API that a request may use.
const API: &str = include_str!("api.schema.json");

fn questions() -> Vec<Question> {
    let criterion = |name: &str| Criterion { name: name.to_owned(), description: None };
    let criteria = || vec![criterion("Low"), criterion("Mid \"x\""), criterion("High")];
    let kinds = [
        ("Queue.Lane", QuestionKind::Choice(criteria())),
        ("Haste", QuestionKind::Score(criteria())),
        ("Flag<Refund>", QuestionKind::YesNo { yes: Some("Money back".to_owned()), no: None }),
    ];
    kinds.map(|(key, kind)| asked(key, kind)).to_vec()
}

/// Whether a request follows the schema of the API.
fn problem(request: &Json) -> Option<String> {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("api.json", serde_json::from_str(API).unwrap()).unwrap();
    let schema = compiler.compile("api.json", &mut schemas).unwrap();
    schemas.validate(request, schema).err().map(|error| error.to_string())
}

fn completion(content: &str, tokens: Option<&[(&str, f64)]>) -> String {
    let tokens = tokens.map(|tokens| {
        let token = |(token, probability): &(&str, f64)| {
            json!({"token": token, "logprob": probability.ln(), "bytes": token.as_bytes()})
        };
        json!({"content": tokens.iter().map(token).collect::<Vec<_>>()})
    });
    let message = json!({"role": "assistant", "content": content});
    json!({"model": "chat-4-0613", "choices": [{"index": 0, "message": message, "logprobs": tokens}]}).to_string()
}

fn read(body: &str) -> Result<Vec<AnswerKind>, &'static str> {
    let questions = questions();
    let answers = wire::answers(body.as_bytes(), &questions.iter().collect::<Vec<_>>())?;
    Ok(answers.into_iter().map(|answer| answer.kind).collect())
}

#[tokio::test]
async fn requests_follow_the_schema_of_the_api() {
    let content = json!({"q2": {"answer": "yes", "confidence": 0.75}}).to_string();
    let reply = Reply::json(&completion(&content, None));
    let model = Model::start(vec![reply.clone(), reply]).await;
    let questions = questions();
    let questions: Vec<_> = questions.iter().collect();
    let state = Value::new("State", "{\"amount\":12345678901234567890}");
    for asks_log_probabilities in [true, false] {
        let settings = Settings::new(model.endpoint.clone(), "chat-4-0613");
        let decider = OpenAi::new(settings, asks_log_probabilities).unwrap();
        let request = Request { train: "triage", state: &state, questions: &questions };
        let answers = decider.decide(request).await.unwrap();
        assert_eq!(answers[0].key, "Flag<Refund>");
        assert_eq!(answers[0].model.as_deref(), Some("chat-4-0613"));
    }

    let sent = model.bodies();
    for request in &sent {
        assert_eq!(problem(request), None);
        let prompt = request["messages"][1]["content"].as_str().unwrap();
        assert!(prompt.contains("{\"amount\":12345678901234567890}"));
        assert!(
            prompt.contains("q2: What Flag<Refund>?\nOptions:\n- yes: Money back\n- no\n"),
            "{prompt}"
        );
    }
    assert_eq!(sent[0]["logprobs"], json!(true));
    assert!(sent[1].get("logprobs").is_none());
    let levels = &sent[0]["response_format"]["json_schema"]["schema"]["properties"]["q1"]["properties"]
        ["answer"];
    assert_eq!(levels["enum"], json!(["Low", "Mid \"x\"", "High"]));
    let mut wrong = sent[0].clone();
    wrong["response_format"]["json_schema"]["schema"]["additionalProperties"] = json!(true);
    assert!(problem(&wrong).is_some(), "the schema checks something");
}

#[test]
fn confidence_is_the_probability_of_what_was_written() {
    let content = r#"{"q0":{"answer":"High","confidence":1},"q2":{"answer":"no","confidence":1}}"#;
    let tokens = [
        (r#"{"q0":{"answer":""#, 0.9),
        ("Hi", 0.5),
        ("gh", 0.5),
        (r#"","confidence":1},"q2":{"answer":""#, 0.9),
        ("no", 0.75),
        (r#"","confidence":1}}"#, 0.9),
    ];
    let answers = read(&completion(content, Some(&tokens))).unwrap();
    let [AnswerKind::Choice { confidence, .. }, AnswerKind::YesNo { probability }] = &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert!((confidence - 0.25).abs() < 1e-9 && (probability - 0.25).abs() < 1e-9);

    // Tokens that do not make up what was written say nothing about it.
    let answers = read(&completion(content, Some(&tokens[..3]))).unwrap();
    assert_eq!(answers[1], AnswerKind::YesNo { probability: 0.0 });
}

#[test]
fn without_probabilities_the_model_is_taken_at_its_word() {
    let content = r#"{"q0":{"answer":"Mid \"x\"","confidence":0.5},"q1":{"answer":"High","confidence":0.25},
        "q2":{"answer":"maybe","confidence":1}}"#;
    let answers = read(&completion(content, None)).unwrap();
    let choice = "Mid \"x\"".to_owned();
    let expected = [
        AnswerKind::Choice { choice, confidence: 0.5, probabilities: vec![] },
        AnswerKind::Score { score: 2.0, confidence: 0.25, probabilities: vec![] },
    ];
    assert_eq!(answers, expected);
}

#[test]
fn what_is_no_completion_is_malformed_and_a_refusal_is_no_answer() {
    for body in
        ["", "[]", "{}", r#"{"choices":[]}"#, &completion("hello", None), &completion("[1]", None)]
    {
        assert!(read(body).is_err(), "{body}");
    }
    let refusal = json!({"choices": [{"message": {"content": null, "refusal": "I will not"}}]});
    assert_eq!(read(&refusal.to_string()), Ok(vec![]));
}
