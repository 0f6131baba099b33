//! Parked runs: owned by nobody, continued by anybody, once.

use std::time::Duration;

use trax::model::ids::ClaimToken;
use trax::store::capacity::Capacity;
use trax::store::parked::{Stop, park, resume_ready, wake};
use trax::store::runs::{active, complete, detail, lost, request_cancel};
use trax::store::{ParkReason, StoreError, TrainState, due};

use super::world::World;

const FOR_A_PERSON: Stop<'static> = Stop {
    reason: ParkReason::Person,
    node_id: Some("Approve#0"),
    memory: Some((b"sealed", "key-1")),
    wake_at: None,
};

async fn a_parked_run_continues_as_the_same_run_on_another_host(w: World) {
    let [one, two] = [w.host("one").await, w.host("two").await];
    let claim = w.run(&one).await;
    w.write(async |tx| park(tx, claim, &FOR_A_PERSON).await).await;
    assert_eq!(
        w.write(async |tx| resume_ready(tx, &two, 5, &mut Capacity::default()).await).await,
        []
    );
    let late = w.try_write(async |tx| complete(tx, claim, "{}").await).await;
    assert!(matches!(late, Err(StoreError::LostClaim(_))));

    assert!(w.write(async |tx| wake(tx, claim.run).await).await);
    let continued = w
        .write(async |tx| resume_ready(tx, &two, 5, &mut Capacity::default()).await)
        .await
        .remove(0);

    assert_eq!((continued.run, continued.claim_token), (claim.run, ClaimToken(3)));
    assert_eq!(
        (continued.reason, continued.node_id.as_deref()),
        (ParkReason::Person, Some("Approve#0"))
    );
    assert_eq!(
        (continued.memory.as_deref(), continued.key_id.as_deref()),
        (Some(b"sealed".as_slice()), Some("key-1"))
    );
    assert_eq!(w.rows("SELECT CAST(COUNT(*) AS TEXT) FROM parked_run").await, ["0"]);
    let run = w.read(async |tx| detail(tx, w.tenant, claim.run).await).await;
    assert_eq!(
        (run.train_state, run.parked_at, run.host_name.as_deref()),
        (TrainState::InProgress, None, Some("two"))
    );
    assert!(!w.write(async |tx| wake(tx, claim.run).await).await);
}

async fn a_run_handed_over_continues_when_its_time_has_come(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let minute = Duration::from_mins(1);
    let stop = |wake_at| Stop {
        reason: ParkReason::HandOver,
        node_id: None,
        memory: None,
        wake_at: Some(wake_at),
    };
    let [soon, later] = [w.run(&host).await, w.run(&host).await];
    w.write(async |tx| park(tx, soon, &stop(now)).await).await;
    w.write(async |tx| park(tx, later, &stop(now.saturating_add(minute))).await).await;

    let first =
        w.write(async |tx| resume_ready(tx, &host, 5, &mut Capacity::default()).await).await;
    w.advance(minute).await;
    let second =
        w.write(async |tx| resume_ready(tx, &host, 5, &mut Capacity::default()).await).await;

    assert_eq!(first.iter().map(|run| run.run).collect::<Vec<_>>(), [soon.run]);
    assert_eq!(second.iter().map(|run| run.run).collect::<Vec<_>>(), [later.run]);
}

async fn a_parked_run_takes_no_capacity_and_is_not_lost_but_its_manifest_is_busy(w: World) {
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    w.entry(Some(manifest)).await;
    let claim = w.claim(&host, 1).await.remove(0).claim();
    w.write(async |tx| park(tx, claim, &FOR_A_PERSON).await).await;

    assert_eq!(w.read(async |tx| active(tx, &[]).await).await, []);
    assert_eq!(w.read(async |tx| lost(tx, 5).await).await, []);
    let facts = w.read(async |tx| {
        let now = tx.now().await?;
        due::history(tx, manifest, now).await
    });
    assert!(facts.await.has_active_run);
}

async fn a_parked_run_that_is_cancelled_ends_at_once(w: World) {
    let host = w.host("one").await;
    let claim = w.run(&host).await;
    w.write(async |tx| park(tx, claim, &FOR_A_PERSON).await).await;

    w.write(async |tx| request_cancel(tx, w.tenant, claim.run).await).await;

    let run = w.read(async |tx| detail(tx, w.tenant, claim.run).await).await;
    assert_eq!((run.train_state, run.parked_at), (TrainState::Cancelled, None));
    assert_eq!(w.rows("SELECT CAST(COUNT(*) AS TEXT) FROM parked_run").await, ["0"]);
}

on_both!(
    a_parked_run_continues_as_the_same_run_on_another_host,
    a_run_handed_over_continues_when_its_time_has_come,
    a_parked_run_takes_no_capacity_and_is_not_lost_but_its_manifest_is_busy,
    a_parked_run_that_is_cancelled_ends_at_once,
);
