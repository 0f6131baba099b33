//! For whatever watches the process: whether it lives, whether it can serve, and what it counts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::api::Api;
use crate::clock::Clock;
use crate::engine::error::causes;
use crate::store;

/// How long the database may take to answer before the server is not ready.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// The process answers, and its dispatcher still passes: one that hangs is started anew by whatever watches it.
pub async fn livez(State(api): State<Api>) -> (StatusCode, String) {
    match api.0.engine.as_ref().and_then(|engine| engine.is_hung_for()) {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(silence) => {
            let seconds = silence.as_secs();
            tracing::error!(seconds, "the dispatcher hangs");
            let why = format!("the dispatcher has not passed for {seconds} s\n");
            (StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
}

/// Whether the server can do its work: the database answers, its schema is the one this trax uses, and the host does
/// not drain. 503 names each check that fails; why it does is in the log.
pub async fn readyz(State(api): State<Api>) -> (StatusCode, Json<Value>) {
    let schema = Clock.timeout(PATIENCE, store::check(api.db())).await;
    let (has_database, has_schema) = match schema {
        Ok(Ok(())) => (true, true),
        Ok(Err(error)) => {
            let is_schema =
                matches!(error, store::StoreError::Older { .. } | store::StoreError::Newer { .. });
            tracing::warn!(error = causes(&error), "not ready");
            (is_schema, false)
        }
        Err(_) => {
            tracing::warn!(seconds = PATIENCE.as_secs(), "not ready: the database does not answer");
            (false, false)
        }
    };
    let is_draining = api.0.engine.as_ref().is_some_and(|engine| engine.is_draining());
    let is_ready = has_schema && !is_draining;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ready": is_ready,
        "checks": { "database": has_database, "schema": has_schema, "accepting": !is_draining },
    });
    (status, Json(body))
}
