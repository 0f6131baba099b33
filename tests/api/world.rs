//! A server over a store, in this process, and what is asked of it.

use std::net::SocketAddr;

use async_graphql::{Request, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use trax::api::graphql::{TraxSchema, schema};
use trax::api::{Api, server};
use trax::model::access::Role;
use trax::model::ids::TenantId;
use trax::operations::access::Caller;
use trax::operations::requeue_jobs::RequeueJobs;
use trax::operations::tokens;
use trax::store::Db;

use crate::engine::world::World;

/// The schema over a store, and its jobs.
pub(crate) struct Served {
    pub(crate) schema: TraxSchema,
    pub(crate) jobs: RequeueJobs,
    api: Api,
}

/// A caller of a tenant.
pub(crate) fn caller(tenant: TenantId, role: Role) -> Caller {
    Caller { tenant, name: role.to_string(), role, origin: "192.0.2.1".to_owned() }
}

impl Served {
    pub(crate) fn over(db: &Db) -> Self {
        let jobs = RequeueJobs::new(db.clone(), CancellationToken::new());
        let api = Api::new(db.clone(), jobs.clone(), None, None, false);
        Self { schema: schema(api.clone()), jobs, api }
    }

    /// What a document gives to a caller, errors and all.
    pub(crate) async fn response(&self, caller: &Caller, document: &str) -> Response {
        self.schema.execute(Request::new(document).data(caller.clone())).await
    }

    /// What a document gives below `operations`; it must have no errors.
    pub(crate) async fn ask(&self, caller: &Caller, document: &str) -> Value {
        let response = self.response(caller, document).await;
        assert!(response.errors.is_empty(), "{document}: {:?}", response.errors);
        response.data.into_json().unwrap()["operations"].take()
    }

    /// The one error of a document: its message, and its code.
    pub(crate) async fn refused(&self, caller: &Caller, document: &str) -> (String, String) {
        let response = self.response(caller, document).await;
        assert_eq!(response.errors.len(), 1, "{document}: {:?}", response.errors);
        let error = serde_json::to_value(&response.errors[0]).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&error["message"]), text(&error["extensions"]["code"]))
    }

    /// The same behind an address, until the end of the test.
    pub(crate) async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(server::serve(listener, self.api.clone(), CancellationToken::new()));
        address
    }
}

/// A new token of the store's tenant.
pub(crate) async fn token(w: &World, name: &str, role: Role) -> String {
    let made = tokens::create(&w.store.db, w.store.tenant, name, role, None).await;
    made.unwrap().1.reveal().to_owned()
}
