//! Tokens: made once, and accepted until they end.

use std::sync::Arc;
use std::time::Duration;

use trax::model::access::Role;
use trax::model::ids::TenantId;
use trax::operations::error::OperationError;
use trax::operations::tokens::{bearer, create, list, revoke};
use trax::store::StoreError;

use crate::engine::world::World;

/// A token is accepted until it expires or is revoked, for the tenant and the role it was made for.
async fn a_token_is_accepted_until_it_ends(w: Arc<World>) {
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let day = Some(Duration::from_hours(24));
    let (_, short) = create(db, tenant, "ci", Role::Operator, day).await.unwrap();
    let (_, long) = create(db, tenant, "boss", Role::Admin, None).await.unwrap();

    let who = bearer(db, short.reveal(), "192.0.2.7").await.unwrap().unwrap();
    assert_eq!((who.tenant, who.name.as_str(), who.role), (tenant, "ci", Role::Operator));
    assert_eq!(who.origin, "192.0.2.7");
    w.advance(24 * 3_600 - 1).await;
    assert!(bearer(db, short.reveal(), "").await.unwrap().is_some());
    w.advance(1).await;
    assert_eq!(bearer(db, short.reveal(), "").await.unwrap(), None, "it has expired");

    assert_eq!(bearer(db, long.reveal(), "").await.unwrap().unwrap().role, Role::Admin);
    assert_eq!(revoke(db, TenantId(99), "boss").await.unwrap().message, "Token 'boss' not found.");
    assert_eq!(revoke(db, tenant, "boss").await.unwrap().message, "Token 'boss' revoked.");
    assert!(revoke(db, tenant, "boss").await.unwrap().is_missing);
    assert_eq!(bearer(db, long.reveal(), "").await.unwrap(), None, "it was revoked");
    for nobody in ["", "trax_", "trax_00", &format!("trax_{}", "0".repeat(64))] {
        assert_eq!(bearer(db, nobody, "").await.unwrap(), None, "{nobody}");
    }
}

/// What is kept of a token does not give it back, and says when it was used, to the minute.
async fn what_is_kept_of_a_token_does_not_give_it_back(w: Arc<World>) {
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let (_, token) = create(db, tenant, "ci", Role::Viewer, None).await.unwrap();
    let kept = w.store.rows("SELECT name, role, hash FROM api_token").await.join(" ");
    let secret = token.reveal().trim_start_matches("trax_");
    assert!(kept.starts_with("ci viewer ") && !kept.contains(secret), "{kept}");

    assert_eq!(list(db, tenant, None, 10).await.unwrap()[0].last_used_at, None);
    let mut uses = Vec::new();
    for _ in 0..3 {
        w.advance(30).await;
        bearer(db, token.reveal(), "").await.unwrap();
        uses.push(list(db, tenant, None, 10).await.unwrap()[0].last_used_at.unwrap());
    }
    assert_eq!(uses[0], uses[1], "half a minute later it is not noted again");
    assert_eq!(uses[2].since(uses[0]), Duration::from_mins(1));
    assert!(list(db, TenantId(99), None, 10).await.unwrap().is_empty());
}

/// A name is free again once its token is revoked, and has to be one.
async fn a_name_belongs_to_one_token_at_a_time(w: Arc<World>) {
    let (db, tenant) = (&w.store.db, w.store.tenant);
    create(db, tenant, "ci", Role::Viewer, None).await.unwrap();

    let taken = create(db, tenant, "ci", Role::Admin, None).await.unwrap_err();
    assert!(matches!(taken, OperationError::Store(StoreError::Conflict { .. })), "{taken}");
    let problem = create(db, tenant, "c i", Role::Viewer, None).await.unwrap_err();
    assert!(matches!(problem, OperationError::Invalid(_)), "{problem}");
    revoke(db, tenant, "ci").await.unwrap();
    create(db, tenant, "ci", Role::Admin, None).await.unwrap();
}

engine_cases!(
    a_token_is_accepted_until_it_ends,
    what_is_kept_of_a_token_does_not_give_it_back,
    a_name_belongs_to_one_token_at_a_time,
);
