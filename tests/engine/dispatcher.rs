//! The dispatcher: what it takes up, how tenants share it, and what becomes of what cannot be delivered.

use std::sync::Arc;
use std::time::Duration;

use trax::engine::config::EngineConfig;
use trax::engine::events::{Ending, EngineEvent};
use trax::store::claim::{Claimed, claim};
use trax::store::manifests::Setting;
use trax::store::queue::NewEntry;
use trax::store::tenants::{self, TenantStatement};

use crate::engine::world::{TestHost, World};

const WORKS: &str = "{}";
/// It fails once it is told to stop: a junction that ended well would have completed its run.
const HOLDS: &str = r#"{"acts":{"Act":["loop_until_cancelled",{"fail":{}}]}}"#;

async fn entries(w: &World, count: usize, input: &str) {
    for _ in 0..count {
        let new = NewEntry { input: Some(input), ..NewEntry::new(w.store.tenant, "probe") };
        w.store.enqueue(&new).await;
    }
}

/// J2, J6: a pass looks at the queue, counts what is active, and takes what the limit leaves; the rest stays queued.
async fn a_pass_takes_what_the_limit_leaves(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = w.host_with("one", |config| config.max_active_jobs = Some(3)).await;
    let mut two = w.host_with("two", |config| config.max_active_jobs = Some(3)).await;
    entries(&w, 5, HOLDS).await;

    assert_eq!(one.dispatch().await, 3);
    // Hosts share the limit.
    assert_eq!(two.dispatch().await, 0);
    one.cancel_all(&w).await;
    assert_eq!(two.dispatch().await, 2);
    two.cancel_all(&w).await;
    assert_eq!(w.states().await, ["cancelled"; 5].join(" "));
}

/// J6: excluded trains do not count as active.
async fn excluded_trains_do_not_count(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w
        .host_with("one", |config| {
            config.max_active_jobs = Some(2);
            config.exclude_from_max_active_jobs = vec!["probe".to_owned()];
        })
        .await;
    entries(&w, 5, HOLDS).await;

    assert_eq!(host.dispatch().await, 2);
    assert_eq!(host.dispatch().await, 2);
    host.cancel_all(&w).await;
}

/// J11, J15: an input that is none of its train's fails the run for good, which counts, and is told without the cause.
async fn an_unreadable_input_fails_the_run(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", "7", 0).await;

    let events = host.pass().await;

    let told: Vec<_> =
        events.iter().filter(|it| !matches!(it, EngineEvent::RunQueued { .. })).collect();
    let [EngineEvent::RunEnded { ending, .. }] = told[..] else { panic!("{told:?}") };
    assert_eq!(*ending, Ending::never_started());
    let Ending::Failed { failure, .. } = ending else { panic!("{ending:?}") };
    assert_eq!(failure.name, "DispatchFailed");
    assert_eq!(
        failure.message,
        "The run could not be dispatched, so it never started. See the run's record for the cause."
    );
    let entry = w.store.rows("SELECT CAST(id AS TEXT) FROM work_queue").await.remove(0);
    let row =
        w.store.rows("SELECT failure_exception, failure_reason FROM metadata").await.remove(0);
    let expected =
        format!("UnreadableInput The input of work queue entry {entry} could not be read as '");
    assert!(row.starts_with(&expected), "{row}");
    assert!(row.contains("', so it was not dispatched: "), "{row}");
    host.pass().await;
    assert_eq!(w.dead_letters().await.len(), 1);
}

/// J13, J14, J15: a component that this host cannot load is an attempt that is made again, told to nobody, and counted
/// once when it is given up.
async fn a_component_that_cannot_be_loaded_is_tried_again(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", WORKS, 0).await;
    let bytes = if w.store.db.is_postgres() { "BYTEA" } else { "BLOB" };
    let damage = format!("UPDATE component SET wasm = CAST('none' AS {bytes})");
    w.store.sql(&damage).await.unwrap();

    let is_told = |event: &EngineEvent| !matches!(event, EngineEvent::RunQueued { .. });
    for _ in 0..4 {
        assert_eq!(host.pass().await.into_iter().filter(is_told).count(), 0);
        w.advance(60).await;
    }
    let rows = "SELECT failure_exception, failure_junction FROM metadata ORDER BY id";
    let requeued = "DispatchRequeued DispatchJobsJunction";
    assert_eq!(w.store.rows(rows).await, [requeued; 4]);
    let told: Vec<_> = host.pass().await.into_iter().filter(is_told).collect();

    assert!(
        matches!(&told[..], [EngineEvent::RunEnded { ending, .. }] if *ending == Ending::never_started()),
        "{told:?}"
    );
    let last = w.store.rows(rows).await.pop();
    assert_eq!(last.as_deref(), Some("ComponentRefused DispatchJobsJunction"));
    let reason =
        w.store.rows("SELECT failure_reason FROM metadata ORDER BY id LIMIT 1").await.remove(0);
    assert!(
        reason.starts_with(
            "Dispatch attempt 1 of 5 failed and the job was requeued: ComponentRefused: "
        ),
        "{reason}"
    );
    host.pass().await;
    let dead = w.dead_letters().await;
    assert_eq!(
        dead,
        ["awaiting_intervention Max retries exceeded: (1) failures > (0) max retries"]
    );
}

/// J10, J11, J15: an entry whose train stays unknown has failed in the end, which counts.
async fn a_train_that_stays_unknown_fails(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "nobody's", WORKS, 0).await;

    let mut told = Vec::new();
    for _ in 0..11 {
        told.extend(host.pass().await);
        w.advance(300).await;
    }

    told.retain(|event| matches!(event, EngineEvent::RunEnded { .. }));
    assert!(
        matches!(&told[..], [EngineEvent::RunEnded { ending, .. }] if *ending == Ending::never_started()),
        "{told:?}"
    );
    assert_eq!(w.states().await, "failed");
    assert_eq!(w.dead_letters().await.len(), 1);
}

/// J12: a run that another host has by now is left to it, and no attempt is counted.
async fn an_attempt_that_another_host_took_over_is_not_counted(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    entries(&w, 1, "7").await;
    let mut tx = w.store.db.begin().await.unwrap();
    let itself = host.shared.host();
    let request = crate::store::world::request(w.store.tenant, &itself, 1);
    let claimed: Claimed = claim(&mut tx, &request).await.unwrap();
    tx.commit().await.unwrap();
    // As if it had been continued elsewhere since.
    w.store.sql("UPDATE metadata SET claim_token = claim_token + 1").await.unwrap();
    let run = claimed.runs.into_iter().next().unwrap();
    host.workers.take_up(trax::engine::worker::Work::Fresh(w.store.tenant, Box::new(run)));
    host.workers.idle().await;

    assert_eq!(w.states().await, "in_progress");
    assert_eq!(w.store.rows("SELECT CAST(dispatch_attempts AS TEXT) FROM work_queue").await, ["0"]);
    w.store
        .sql("UPDATE metadata SET train_state = 'cancelled', end_time = start_time")
        .await
        .unwrap();
    host.dispatch().await;
}

/// Tenants share what a host can do by weight, also one run at a time; what is urgent is so within its tenant.
async fn tenants_share_a_host_by_weight(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host_with("one", |config| config.worker_count = 1).await;
    let heavy = w.tenant("heavy", 3).await;
    for (tenant, priority) in [(w.store.tenant, 31), (heavy, 0)] {
        for _ in 0..8 {
            let new = NewEntry { input: Some(WORKS), priority, ..NewEntry::new(tenant, "probe") };
            w.store.enqueue(&new).await;
        }
    }

    for _ in 0..8 {
        assert_eq!(host.dispatch().await, 1);
        host.workers.idle().await;
    }
    let order = w.store.rows("SELECT CAST(tenant_id AS TEXT) FROM metadata ORDER BY id").await;
    let (one, three) = (w.store.tenant.to_string(), heavy.to_string());
    assert_eq!(
        order,
        [&one, &three, &three, &three, &one, &three, &three, &three].map(String::as_str)
    );
}

/// J7: a tenant's limit holds, and what it leaves goes to others.
async fn a_tenants_limit_leaves_its_share_to_others(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let other = w.tenant("other", 1).await;
    let stated = TenantStatement {
        weight: Some(100),
        max_active_jobs: Setting::Set(2),
        max_queued_jobs: Setting::Keep,
    };
    w.store.write(async |tx| tenants::set(tx, other, stated).await).await;
    for tenant in [w.store.tenant, other] {
        for _ in 0..8 {
            let new = NewEntry { input: Some(HOLDS), ..NewEntry::new(tenant, "probe") };
            w.store.enqueue(&new).await;
        }
    }

    assert_eq!(host.dispatch().await, 8);
    let counts =
        "SELECT CAST(COUNT(*) AS TEXT) FROM metadata GROUP BY tenant_id ORDER BY tenant_id";
    assert_eq!(w.store.rows(counts).await, ["6", "2"]);
    host.cancel_all(&w).await;
}

/// A host with one worker that has found its runs so short that it claims one ahead, which may wait this long.
async fn ahead(w: &World, lease: Duration) -> TestHost {
    w.deploy("probe").await;
    let set = |config: &mut EngineConfig| {
        (config.worker_count, config.claim_ahead) = (1, 1);
        config.claim_ahead_for = lease;
    };
    let mut host = w.host_with("one", set).await;
    while host.workers.free() < 2 {
        entries(w, 1, WORKS).await;
        host.dispatch().await;
        host.workers.idle().await;
    }
    entries(w, 2, HOLDS).await;
    assert_eq!(host.dispatch().await, 2);
    assert_eq!(host.workers.free(), 0);
    w.begun("Act").await;
    host
}

const PARKED: &str = "SELECT reason FROM parked_run ORDER BY reason";

/// A run that no worker begins in time is given back untouched, and goes on elsewhere.
async fn what_waits_too_long_for_a_worker_is_given_back(w: Arc<World>) {
    let one = ahead(&w, Duration::from_millis(200)).await;
    let mut two = w.host("two").await;
    while w.store.rows(PARKED).await != ["capacity"] {
        tokio::task::yield_now().await;
    }
    w.advance(1).await;

    assert_eq!(two.dispatch().await, 1);
    // It claims nothing ahead any more.
    assert_eq!(one.workers.free(), 0);
    two.cancel_all(&w).await;
    one.cancel_all(&w).await;
    assert_eq!(one.workers.free(), 1);
    assert!(w.states().await.ends_with("cancelled cancelled"));
}

/// A host that drains gives back at once what waits for its workers.
async fn what_waits_for_a_worker_is_given_back_when_the_host_drains(w: Arc<World>) {
    let one = ahead(&w, Duration::from_hours(1)).await;
    one.shared.drain.cancel();
    while w.store.rows(PARKED).await != ["capacity"] {
        tokio::task::yield_now().await;
    }
    one.shared.halt.cancel();
    one.workers.idle().await;
    assert_eq!(w.store.rows(PARKED).await, ["capacity", "hand_over"]);
}

engine_cases!(
    what_waits_too_long_for_a_worker_is_given_back,
    what_waits_for_a_worker_is_given_back_when_the_host_drains,
    a_pass_takes_what_the_limit_leaves,
    excluded_trains_do_not_count,
    an_unreadable_input_fails_the_run,
    a_component_that_cannot_be_loaded_is_tried_again,
    a_train_that_stays_unknown_fails,
    an_attempt_that_another_host_took_over_is_not_counted,
    tenants_share_a_host_by_weight,
    a_tenants_limit_leaves_its_share_to_others,
);
