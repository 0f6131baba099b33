//! The routes, and the limits that hold for every request.

use std::net::SocketAddr;

use async_graphql_axum::{GraphQLRequest, GraphQLResponse};
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
        .route("/livez", get(health::livez))
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
    request: GraphQLRequest,
) -> Response {
    let origin = auth::origin(&server.api, &headers, address);
    let caller = match auth::caller(&server.api, &headers, &origin).await {
        Ok(caller) => caller,
        Err(refused) => return refusal(&refused),
    };
    let response = server.schema.execute(request.into_inner().data(caller)).await;
    ([(CACHE_CONTROL, "no-store")], GraphQLResponse::from(response)).into_response()
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
    let body = Json(json!({ "errors": [{ "message": problem }] }));
    (status, [(WWW_AUTHENTICATE, "Bearer")], body).into_response()
}
