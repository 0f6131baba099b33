//! The server: everything it answers goes through the operations, so that a message is the same on every face.
//!
//! [`auth`] says who asks; [`graphql`] is what operators and their programs use; [`health`] is for whatever watches the
//! process; [`server`] puts them behind one address.

pub mod auth;
pub mod graphql;
pub mod health;
pub mod server;

use std::sync::Arc;

use crate::engine::supervisor::Engine;
use crate::operations::requeue_jobs::RequeueJobs;
use crate::store::Db;

/// What every request can use.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    db: Db,
    jobs: RequeueJobs,
    engine: Option<Arc<Engine>>,
    /// Who asks when nobody says so: only where the server listens on loopback and asks for no token.
    anonymous: Option<auth::Anonymous>,
    /// Whether a proxy in front says in `X-Forwarded-For` who asks.
    is_behind_proxy: bool,
}

impl Api {
    /// Serves a store, and the engine that runs in this process if one does.
    pub fn new(
        db: Db,
        jobs: RequeueJobs,
        engine: Option<Arc<Engine>>,
        anonymous: Option<auth::Anonymous>,
        is_behind_proxy: bool,
    ) -> Self {
        Self(Arc::new(Inner { db, jobs, engine, anonymous, is_behind_proxy }))
    }

    fn db(&self) -> &Db {
        &self.0.db
    }

    fn jobs(&self) -> &RequeueJobs {
        &self.0.jobs
    }
}
