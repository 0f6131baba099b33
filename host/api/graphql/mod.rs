//! `/graphql`: what operators and their programs ask and change, under `operations`, in the names of the original.

pub mod mutation;
pub mod query;
pub mod types;

use async_graphql::{Context, EmptySubscription, Error, ErrorExtensions, Schema};

use crate::api::Api;
use crate::clock;
use crate::engine::error::causes;
use crate::model::access::Role;
use crate::operations::access::Caller;
use crate::operations::error::OperationError;

use mutation::Mutation;
use query::Query;

/// How deep a document may nest: more than the introspection of common clients does.
const DEPTH_MAX: usize = 20;
/// How many fields a document may ask for, a list counting for each thing it may hold.
const COMPLEXITY_MAX: usize = 20_000;
/// How deep a document may be to be read at all.
const RECURSION_MAX: usize = 32;

/// The schema and everything its fields use.
pub type TraxSchema = Schema<Query, Mutation, EmptySubscription>;

/// Builds the schema over a store.
pub fn schema(api: Api) -> TraxSchema {
    Schema::build(Query, Mutation, EmptySubscription)
        .data(api)
        .limit_depth(DEPTH_MAX)
        .limit_complexity(COMPLEXITY_MAX)
        .limit_recursive_depth(RECURSION_MAX)
        .finish()
}

/// The schema's text.
pub fn sdl() -> String {
    Schema::build(Query, Mutation, EmptySubscription).finish().sdl()
}

/// Who asks, and what fields use.
///
/// # Errors
/// [`masked`] when whoever asks may not read.
fn asked<'a>(context: &'a Context<'_>) -> Result<(&'a Api, &'a Caller), Error> {
    let caller = context.data::<Caller>()?;
    if caller.role < Role::Viewer {
        return Err(masked(OperationError::Forbidden));
    }
    Ok((context.data::<Api>()?, caller))
}

/// An error as a caller sees it: what they did wrong, or an id to find what the server did in its log.
fn masked(error: impl Into<OperationError>) -> Error {
    match error.into() {
        OperationError::Forbidden => Error::new(OperationError::Forbidden.to_string())
            .extend_with(|_, extensions| extensions.set("code", "TRAX_AUTHORIZATION")),
        OperationError::NotFound(message) | OperationError::Invalid(message) => Error::new(message)
            .extend_with(|_, extensions| extensions.set("code", "TRAX_INVALID_ARGUMENT")),
        error => {
            // Without randomness the log still has the error, by its time.
            let id = clock::random::<8>().map(hex::encode).unwrap_or_default();
            tracing::error!(%id, error = causes(&error), "a request failed");
            Error::new("Unexpected Execution Error").extend_with(|_, extensions| {
                extensions.set("code", "TRAX_INTERNAL");
                extensions.set("id", id.clone());
            })
        }
    }
}
