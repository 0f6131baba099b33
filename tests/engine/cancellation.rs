//! Runs that are told to stop: by an operator on whichever host, or because they take too long.

use std::sync::Arc;

use trax::store::runs;

use crate::engine::world::{World, queued};

const LOOPS: &str = r#"{"acts":{"Act":["loop_forever"]}}"#;

/// W9, R13: a run stops inside its guest although the operator spoke to another host, and has not failed.
async fn a_run_that_is_cancelled_elsewhere_stops_in_its_guest(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", r#"{"acts":{"Act":["loop_forever"]}}"#, 0).await;
    host.manage().await;
    host.dispatch().await;
    assert_eq!(host.look_for_cancellations().await, 0);

    let (run, tenant) = (w.last_run().await, w.store.tenant);
    w.store.write(async |tx| runs::request_cancel(tx, tenant, run).await).await;
    assert_eq!(host.look_for_cancellations().await, 1);
    host.workers.idle().await;

    assert_eq!(w.states().await, "cancelled");
    assert_eq!(w.store.rows("SELECT failure_exception FROM metadata").await, ["-"]);
    assert_eq!(host.look_for_cancellations().await, 0);
}

/// W10, W11, W12: a run past its timeout ends cancelled, and its occurrence is used up.
async fn an_overdue_run_is_cancelled_and_consumes_its_occurrence(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", LOOPS, 0).await;
    host.manage().await;
    host.dispatch().await;
    w.advance(1_200).await;
    assert!(host.beat().await);
    assert_eq!(host.look_for_the_dead().await.timed_out, 0);
    w.advance(1).await;

    assert_eq!(host.look_for_the_dead().await.timed_out, 1);
    host.workers.idle().await;

    host.used_up_an_hour(&w).await;
}

/// W10: a manifest's own timeout is the one that holds, of a disabled manifest too.
async fn a_manifests_own_timeout_holds(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", LOOPS, 0).await;
    w.store.sql("UPDATE manifest SET timeout_seconds = 90").await.unwrap();
    host.manage().await;
    host.dispatch().await;
    w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
    w.advance(90).await;
    assert!(host.beat().await);
    assert_eq!(host.look_for_the_dead().await.timed_out, 0);
    w.advance(1).await;

    assert_eq!(host.look_for_the_dead().await.timed_out, 1);
    host.workers.idle().await;
    assert_eq!(w.states().await, "cancelled");
}

/// W10: work that a queue entry stands for has the default timeout although it belongs to no manifest.
async fn queued_work_without_a_manifest_has_the_default_timeout(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let new = trax::store::queue::NewEntry {
        input: Some(LOOPS),
        ..trax::store::queue::NewEntry::new(w.store.tenant, "probe")
    };
    w.store.enqueue(&new).await;
    host.dispatch().await;
    w.advance(1_201).await;
    assert!(host.beat().await);

    assert_eq!(host.look_for_the_dead().await.timed_out, 1);
    host.workers.idle().await;
    assert_eq!(w.states().await, "cancelled");
}

/// R14: a guest that gives up by itself has failed, and its failure counts.
async fn a_guests_own_time_out_is_a_failure(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let input = r#"{"acts":{"Act":[{"fail":{"name":"TimeoutException","message":"no answer"}}]}}"#;
    w.manifest("nightly", "probe", input, 3).await;
    host.pass().await;

    let failed = "SELECT train_state, failure_class, failure_exception FROM metadata";
    assert_eq!(w.store.rows(failed).await, ["failed transient TimeoutException"]);
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
}

/// W13, W15, T5: a run that nobody picks up has failed after a while, and is retried in the same cycle.
async fn a_run_that_nobody_picks_up_fails(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", "{}", 1).await;
    host.manage().await;
    let sender = host.shared.host();
    let mut request = crate::store::world::request(w.store.tenant, &sender, 1);
    request.starts = false;
    w.store.write(async |tx| trax::store::claim::claim(tx, &request).await).await;
    w.advance(1_200).await;
    assert!(host.beat().await);
    assert_eq!(host.look_for_the_dead().await.stuck, 0);
    w.advance(1).await;

    assert_eq!(host.look_for_the_dead().await.stuck, 1);

    let failed = "SELECT train_state, failure_exception, failure_reason FROM metadata";
    let reason = "failed StalePendingTimeout Job was not picked up within the configured stale pending timeout";
    assert_eq!(w.store.rows(failed).await, [reason]);
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
}

/// W14, W15: a run that does not stop has failed, forty minutes after its own timeout, and its subject is free.
async fn a_run_that_does_not_stop_fails(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    for (name, timeout, minutes) in [("short", "NULL", 60), ("long", "10800", 220)] {
        w.manifest(name, "probe", "{}", 1).await;
        w.store.sql(&format!("UPDATE manifest SET timeout_seconds = {timeout}")).await.unwrap();
        host.manage().await;
        w.store.claim(&host.shared.host(), 1).await;
        w.advance(minutes * 60).await;
        let mut other = w.host(&format!("other {name}")).await;
        assert!(host.beat().await);
        assert_eq!(other.look_for_the_dead().await.stuck, 0, "{name}");
        w.advance(1).await;
        assert!(host.beat().await);
        assert!(other.beat().await);
        assert_eq!(other.look_for_the_dead().await.stuck, 1, "{name}");
        assert_eq!(queued(&host.manage().await), ["retry 1 +300"], "{name}");
    }

    let failed = "SELECT DISTINCT train_state, failure_exception, failure_reason FROM metadata";
    let reason = "failed StaleInProgressTimeout Job was stuck InProgress beyond the configured \
        stale in-progress timeout";
    assert_eq!(w.store.rows(failed).await, [reason]);
}

engine_cases!(
    a_run_that_is_cancelled_elsewhere_stops_in_its_guest,
    an_overdue_run_is_cancelled_and_consumes_its_occurrence,
    a_manifests_own_timeout_holds,
    queued_work_without_a_manifest_has_the_default_timeout,
    a_guests_own_time_out_is_a_failure,
    a_run_that_nobody_picks_up_fails,
    a_run_that_does_not_stop_fails,
);
