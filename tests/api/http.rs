//! The address: who is let in, and how requests that are none end.

use std::sync::Arc;

use axum::http::StatusCode;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use trax::model::access::Role;
use trax::store::Faults;

use super::world::{Served, token};
use crate::engine::world::World;

const VERSION: &str = r#"{"query":"{ operations { version } }"}"#;

fn client() -> Client {
    // Whoever was first installed the same one.
    rustls::crypto::ring::default_provider().install_default().ok();
    Client::builder().no_proxy().build().unwrap()
}

async fn sent(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.header("content-type", "application/json").send().await.unwrap();
    let status = response.status();
    let body = response.text().await.unwrap();
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

/// O11: requests bear a token, or are told so.
async fn requests_bear_a_token(w: Arc<World>) {
    let url = format!("http://{}/graphql", Served::over(&w.store.db).listen().await);
    let token = token(&w, "ci", Role::Viewer).await;
    let client = client();
    let post = || client.post(&url).body(VERSION);

    let (status, body) = sent(post().bearer_auth(&token)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["data"]["operations"]["version"], env!("CARGO_PKG_VERSION"));
    for refused in [
        post(),
        post().bearer_auth("trax_00"),
        post().bearer_auth(token.to_uppercase()),
        post().header("authorization", token.as_str()),
        post().header("authorization", b"Bearer \xff".as_slice()),
    ] {
        let (status, body) = sent(refused).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let problem = "no token, or one that is unknown, expired or revoked";
        assert_eq!(body["errors"][0]["message"], problem);
    }
}

/// What is no request gets an error, and the server lives.
async fn what_is_no_request_gets_an_error(w: Arc<World>) {
    let url = format!("http://{}/graphql", Served::over(&w.store.db).listen().await);
    let token = token(&w, "ci", Role::Viewer).await;
    let client = client();
    let large = format!("{{\"query\":\"{}\"}}", "a".repeat(1 << 20));
    for (body, expected) in [
        ("", StatusCode::BAD_REQUEST),
        ("{", StatusCode::BAD_REQUEST),
        ("[1]", StatusCode::BAD_REQUEST),
        (large.as_str(), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let (status, _) = sent(client.post(&url).bearer_auth(&token).body(body.to_owned())).await;
        assert_eq!(status, expected, "{}", &body[..body.len().min(20)]);
    }
    assert_eq!(sent(client.get(&url)).await.0, StatusCode::METHOD_NOT_ALLOWED);
    let (status, _) = sent(client.post(&url).bearer_auth(&token).body(VERSION)).await;
    assert_eq!(status, StatusCode::OK);
}

/// The process lives whatever the database does, and is ready only with it.
async fn ready_is_whoever_has_the_database(w: Arc<World>) {
    let faults = Faults::none();
    let address = Served::over(&w.faulty(&faults).await).listen().await;
    let client = client();
    let get = |path: &str| client.get(format!("http://{address}/{path}"));

    let (status, body) = sent(get("readyz")).await;
    assert_eq!((status, &body["ready"]), (StatusCode::OK, &Value::Bool(true)));
    faults.set_away(true);
    let (status, body) = sent(get("readyz")).await;
    assert_eq!(
        (status, &body["checks"]["database"]),
        (StatusCode::SERVICE_UNAVAILABLE, &Value::Bool(false))
    );
    assert_eq!(sent(get("livez")).await.0, StatusCode::OK);
    let (status, _) = sent(
        client
            .post(format!("http://{address}/graphql"))
            .bearer_auth(format!("trax_{}", "0".repeat(64)))
            .body(VERSION),
    )
    .await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

engine_cases!(
    requests_bear_a_token,
    what_is_no_request_gets_an_error,
    ready_is_whoever_has_the_database,
);
