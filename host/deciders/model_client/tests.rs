//! A model that misbehaves, on a real connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::clock::Clock;
use crate::deciders::model_client::settings::{ApiKey, Settings};
use crate::deciders::model_client::{Format, ModelClient};
use crate::model::failure::{Failure, FailureClass};
use crate::model::question::{Question, QuestionKind};

const FORMAT: Format = Format { name: "System One", request_id: "x-typesafe-request-id" };

/// What the model does with one connection.
#[derive(Debug, Clone)]
pub(in crate::deciders) enum Reply {
    /// Sends this, and closes.
    Raw(String),
    /// Sends this, and keeps the connection open.
    Hang(String),
    /// Sends a body of this many MiB, as far as it is read.
    Flood(usize),
}

impl Reply {
    /// A well-formed answer.
    pub(in crate::deciders) fn json(body: &str) -> Self {
        Self::new("200 OK", "content-type: application/json\r\n", body)
    }

    /// A whole answer.
    pub(in crate::deciders) fn new(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Raw(format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }
}

/// A question in few words.
pub(in crate::deciders) fn asked(key: &str, kind: QuestionKind) -> Question {
    let instructions = format!("What {key}?");
    Question { key: key.to_owned(), instructions, kind, sensitive: false }
}

/// A model on loopback that follows a script, one line per connection.
pub(in crate::deciders) struct Model {
    pub(in crate::deciders) endpoint: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Model {
    pub(in crate::deciders) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/answers", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut open = Vec::new();
            for reply in replies {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = hear(&mut stream).await;
                heard.lock().unwrap().push(request);
                // What the client has had enough of cannot be sent.
                match reply {
                    Reply::Raw(text) => drop(stream.write_all(text.as_bytes()).await),
                    Reply::Hang(text) => {
                        drop(stream.write_all(text.as_bytes()).await);
                        open.push(stream);
                    }
                    Reply::Flood(mebibytes) => flood(&mut stream, mebibytes).await,
                }
            }
            std::future::pending::<()>().await;
        });
        Self { endpoint, requests }
    }

    /// What it was sent, whole.
    pub(in crate::deciders) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The bodies of what it was sent.
    pub(in crate::deciders) fn bodies(&self) -> Vec<serde_json::Value> {
        let body = |request: &String| {
            serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
        };
        self.requests().iter().map(body).collect()
    }
}

async fn hear(stream: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&heard).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).unwrap_or("0");
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if body.len() >= length {
                return String::from_utf8(heard).unwrap();
            }
        }
        assert!(stream.read_buf(&mut heard).await.unwrap() > 0, "the request breaks off");
    }
}

async fn flood(stream: &mut TcpStream, mebibytes: usize) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", mebibytes << 20);
    drop(stream.write_all(head.as_bytes()).await);
    let part = vec![b' '; 1 << 20];
    for _ in 0..mebibytes {
        if stream.write_all(&part).await.is_err() {
            return;
        }
    }
}

/// What came of a request to a model that follows a script, how often it was asked, and the waits in between.
struct Came {
    result: Result<String, Failure>,
    requests: Vec<String>,
    waits: Vec<u128>,
}

impl Came {
    fn message(&self) -> &str {
        &self.result.as_ref().unwrap_err().message
    }

    fn class(&self) -> FailureClass {
        self.result.as_ref().unwrap_err().class
    }
}

async fn post(replies: Vec<Reply>, change: impl FnOnce(&mut Settings)) -> Came {
    let model = Model::start(replies).await;
    let mut settings = Settings::new(model.endpoint.clone(), "judge-2");
    change(&mut settings);
    let mut client = ModelClient::new(settings, FORMAT).unwrap();
    let waits: Arc<Mutex<Vec<u128>>> = Arc::default();
    let noted = Arc::clone(&waits);
    client.pause = Arc::new(move |wait| {
        noted.lock().unwrap().push(wait.as_millis());
        Box::pin(async {})
    });
    client.random = || 1.0;
    let read = |body: &[u8]| match std::str::from_utf8(body) {
        Ok(text) if text.starts_with('{') => Ok(text.to_owned()),
        _ => Err("is not an object"),
    };
    let result = client.post("triage", "{\"a\":1}".to_owned(), read).await;
    let waits = waits.lock().unwrap().clone();
    Came { result, requests: model.requests(), waits }
}

/// Q34: one POST of JSON, with a bearer token only where there is a key.
#[tokio::test]
async fn a_request_is_one_post() {
    let plain = post(vec![Reply::json("{}")], |_| {}).await;
    assert_eq!(plain.result.unwrap(), "{}");
    let request = plain.requests[0].to_ascii_lowercase();
    assert!(request.starts_with("post /answers http/1.1\r\n"), "{request}");
    assert!(
        request.contains("content-type: application/json\r\n") && request.ends_with("{\"a\":1}")
    );
    assert!(!request.contains("authorization"));

    let keyed = post(vec![Reply::json("{}")], |s| s.api_key = ApiKey::new("hunter2")).await;
    assert!(keyed.requests[0].to_ascii_lowercase().contains("authorization: bearer hunter2\r\n"));
}

/// Q38, Q39: what may pass is tried again, after as long as the model asks or else after twice as long each time.
#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let throttled = Reply::new("429 Too Many Requests", "retry-after: 2\r\n", "");
    let came = post(vec![throttled, Reply::new("500 X", "", ""), Reply::json("{}")], |_| {}).await;
    assert_eq!(came.result.unwrap(), "{}");
    assert_eq!(came.waits, [2_200, 1_000]);
}

/// Q39, Q40: each status is tried again or not, has its class, and its words.
#[tokio::test]
async fn statuses_are_told_and_classified() {
    let cases = [
        (400, "400 Bad Request (the request was refused as invalid)", false),
        (401, "401 Unauthorized (the API key was refused)", false),
        (402, "402 Payment Required (the account cannot pay for the request)", false),
        (403, "403 Forbidden (the API key was refused)", false),
        (404, "404 Not Found (the endpoint does not answer System One requests)", false),
        (405, "405 Method Not Allowed (the endpoint does not answer System One requests)", false),
        (407, "407 Proxy Authentication Required (the request was refused)", false),
        (408, "408 Request Timeout (the model timed out)", true),
        (413, "413 Payload Too Large (the request is too large)", false),
        (422, "422 Unprocessable Entity (the request was refused as invalid)", false),
        (429, "429 Too Many Requests (the model is throttling requests)", true),
        (500, "500 Internal Server Error (the model's server failed)", true),
        (501, "501 Not Implemented (the server does not implement the request)", false),
        (503, "503 Service Unavailable (the model's server failed)", true),
        (504, "504 Gateway Timeout (the model timed out)", true),
        (505, "505 HTTP Version Not Supported (the server does not implement the request)", false),
        (529, "529 (the model is overloaded)", true),
        (302, "302 Found (the request was refused)", false),
    ];
    for (code, told, is_transient) in cases {
        let headers = "x-typesafe-request-id: abc123\r\nlocation: http://127.0.0.1:1/\r\n";
        let reply = Reply::new(&format!("{code} Whatever"), headers, "hunter2");
        let came = post(vec![reply.clone(), reply.clone(), reply], |_| {}).await;
        let (attempts, after) = if is_transient { (3, ", after 3 attempts") } else { (1, "") };
        let expected = format!(
            "The decision model could not answer train 'triage': the model answered {told} (request \
             abc123){after}."
        );
        assert_eq!(came.message(), expected);
        assert_eq!(came.requests.len(), attempts, "{code}");
        let class = if is_transient { FailureClass::Transient } else { FailureClass::Permanent };
        assert_eq!(came.class(), class, "{code}");
    }
}

/// Q38, Q39: a model that asks for more time than is waited for is not asked again.
#[tokio::test]
async fn too_long_a_wait_is_not_waited() {
    let reply = Reply::new("503 Service Unavailable", "retry-after: 31\r\n", "");
    let came = post(vec![reply], |_| {}).await;
    assert_eq!((came.class(), came.requests.len()), (FailureClass::Transient, 1));
    assert!(
        came.message().ends_with("it asks for more time than is waited for."),
        "{}",
        came.message()
    );
}

/// Q40: a request id of another kind is not told.
#[tokio::test]
async fn request_ids_are_plain_or_not_told() {
    for id in ["a b", "a=1", &"x".repeat(129)] {
        let reply = Reply::new("400 X", &format!("x-typesafe-request-id: {id}\r\n"), "");
        let came = post(vec![reply], |_| {}).await;
        assert!(!came.message().contains("(request "), "{}", came.message());
    }
}

/// Q36, Q39: an answer that is cut off, endless, late, or no answer at all is tried again, and is never told.
#[tokio::test]
async fn answers_that_cannot_be_read_are_tried_again() {
    let html = "content-type: text/html; charset=utf-16\r\n";
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"hunter2\":";
    let cases = [
        (Reply::json("[\"hunter2\"]"), "the model's answer is not an object"),
        (
            Reply::new("200 OK", html, "hunter2"),
            "the model's answer is in an encoding that cannot be read",
        ),
        (Reply::Raw(half.to_owned()), "the connection to the model"),
        (Reply::Raw(String::new()), "the connection to the model"),
        (Reply::Flood(200), "the model's answer is longer than 4 MiB"),
        (Reply::Hang(half.to_owned()), "the model did not answer in time"),
    ];
    for (reply, expected) in cases {
        let is_late = matches!(reply, Reply::Hang(_));
        let came = post(vec![reply.clone(), reply.clone(), reply.clone()], |settings| {
            if is_late {
                settings.attempt_timeout = Duration::from_millis(100);
            }
        });
        let came = came.await;
        assert!(came.message().contains(expected), "{reply:?}: {}", came.message());
        assert!(!came.message().contains("hunter2"));
        assert_eq!((came.class(), came.requests.len()), (FailureClass::Transient, 3), "{reply:?}");
    }
}

/// Q39: nobody listens, which may pass; TLS with somebody who speaks none does not.
#[tokio::test]
async fn connections_that_fail_are_classified() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let refused = post(vec![], |settings| settings.endpoint = nobody).await;
    assert_eq!(refused.class(), FailureClass::Transient);
    assert_eq!(refused.waits.len(), 2);
    assert!(refused.message().contains("connection refused"), "{}", refused.message());

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let no_tls = post(vec![], |settings| settings.endpoint = plain).await;
    assert_eq!((no_tls.class(), no_tls.waits.len()), (FailureClass::Permanent, 0));
    assert!(no_tls.message().contains("no TLS connection"), "{}", no_tls.message());
}

/// Q37, Q38: as many requests are under way as may be, and waiting for that is no part of an attempt's time.
#[tokio::test]
async fn requests_wait_for_their_turn() {
    let hang = Reply::Hang("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_owned());
    let model = Model::start(vec![hang, Reply::json("{}"), Reply::json("{}")]).await;
    let mut settings = Settings::new(model.endpoint.clone(), "judge-2");
    settings.max_concurrent_requests = Some(1);
    let client = Arc::new(ModelClient::new(settings, FORMAT).unwrap());
    let read = |_: &[u8]| Ok(());

    let first = client.post("triage", "{}".to_owned(), read);
    let mut first = Box::pin(first);
    // The first has the only turn until it is dropped, which is how a run is cancelled.
    let _ = Clock.timeout(Duration::from_millis(50), &mut first).await;
    let second = client.post("triage", "{}".to_owned(), read);
    let mut second = Box::pin(second);
    assert!(Clock.timeout(Duration::from_millis(50), &mut second).await.is_err());
    assert!(model.requests().len() <= 1);
    drop(first);
    second.await.unwrap();
}
