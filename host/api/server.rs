//! The routes, and the limits that hold for every request.

use std::net::SocketAddr;

use async_graphql::Request;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::header::{CACHE_CONTROL, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::auth::{self, Refused};
use crate::api::graphql::{TraxSchema, schema};
use crate::api::{Api, health};
use crate::engine::error::causes;

/// The largest request, in bytes.
const BODY_MAX: usize = 1 << 20;

#[derive(Clone)]
struct Server {
    api: Api,
    schema: TraxSchema,
}

/// Everything that is served.
pub fn routes(api: Api) -> Router {
    let server = Server { schema: schema(api.clone()), api: api.clone() };
    Router::new()
        .route("/graphql", post(graphql).with_state(server))
        .route("/livez", get(health::livez).with_state(api.clone()))
        .route("/readyz", get(health::readyz).with_state(api))
        .layer(DefaultBodyLimit::max(BODY_MAX))
}

/// Answers requests until told to stop, and those that have begun after that.
///
/// # Errors
/// When the address can no longer be listened on.
pub async fn serve(
    listener: TcpListener,
    api: Api,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let service = routes(api).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn graphql(
    State(server): State<Server>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let origin = auth::origin(&server.api, &headers, address);
    let caller = match auth::caller(&server.api, &headers, &origin).await {
        Ok(caller) => caller,
        Err(refused) => return refusal(&refused),
    };
    let request: Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => {
            let problem = format!("the request is no JSON object with a \"query\": {error}");
            return problem_of(StatusCode::BAD_REQUEST, &problem).into_response();
        }
    };
    let response = server.schema.execute(request.data(caller)).await;
    ([(CACHE_CONTROL, "no-store")], Json(response)).into_response()
}

/// An error in the form of those that documents get.
fn problem_of(status: StatusCode, problem: &str) -> (StatusCode, Json<serde_json::Value>) {
    (status, Json(json!({ "errors": [{ "message": problem }] })))
}

fn refusal(refused: &Refused) -> Response {
    let (status, problem) = match refused {
        Refused::Unauthorized => {
            (StatusCode::UNAUTHORIZED, "no token, or one that is unknown, expired or revoked")
        }
        Refused::Unavailable(error) => {
            tracing::error!(error = causes(error), "a token could not be looked up");
            (StatusCode::SERVICE_UNAVAILABLE, "the server cannot use its database; try again")
        }
    };
    ([(WWW_AUTHENTICATE, "Bearer")], problem_of(status, problem)).into_response()
}
