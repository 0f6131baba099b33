//! Runs: one owner, conditional changes, and what operators see.

use std::time::Duration;

use trax::model::dispatch::DispatchPolicy;
use trax::model::failure::{Failure, FailureClass};
use trax::model::ids::{Claim, ClaimToken, RunId};
use trax::store::claim::{ClaimRequest, claim};
use trax::store::dispatch::{DispatchFailed, DispatchFailure, dispatch_failed};
use trax::store::hosts::{bury, heartbeat};
use trax::store::queue::{self, NewEntry};
use trax::store::runs::{
    ActiveRun, NewRun, RunFilter, abandon_replay, active_since, at_junction, cancel, complete,
    detail, fail, list, lost, payload, reap, release, request_cancel, set_decisions_recorded,
    start, start_direct,
};
use trax::store::{StoreError, TrainState, tenants};

use super::world::{World, request};

async fn state(w: &World, run: RunId) -> TrainState {
    w.read(async |tx| detail(tx, w.tenant, run).await).await.train_state
}

/// A run that waits for a worker, with its entry.
async fn pending(w: &World) -> trax::store::claim::ClaimedRun {
    w.entry(None).await;
    let host = super::world::host("dispatcher");
    let request = ClaimRequest { starts: false, ..request(w.tenant, &host, 1) };
    w.write(async |tx| claim(tx, &request).await).await.runs.remove(0)
}

/// W2, W3, W4: a pending run is started once, and carries the host that started it.
async fn a_pending_run_is_started_once(w: World) {
    let run = pending(&w).await.run;
    let [one, two] = [w.host("one").await, w.host("two").await];

    let first = w.write(async |tx| start(tx, &one, 5).await).await;
    let second = w.write(async |tx| start(tx, &two, 5).await).await;

    assert_eq!(first, [Claim { run, token: ClaimToken(1) }]);
    assert_eq!(second, []);
    assert_eq!(
        w.rows("SELECT train_state, host_name, host_incarnation FROM metadata").await,
        ["in_progress one one-1"]
    );
}

/// W5: a pending run that was cancelled is never started.
async fn a_pending_run_that_was_cancelled_never_starts(w: World) {
    let run = pending(&w).await.run;
    w.write(async |tx| request_cancel(tx, w.tenant, run).await).await;
    let host = w.host("one").await;

    assert_eq!(w.write(async |tx| start(tx, &host, 5).await).await, []);
    assert_eq!(state(&w, run).await, TrainState::Cancelled);
}

async fn a_run_given_back_starts_anywhere_and_its_old_owner_writes_nothing(w: World) {
    let run = pending(&w).await.run;
    let [one, two] = [w.host("one").await, w.host("two").await];
    let first = w.write(async |tx| start(tx, &one, 1).await).await.remove(0);
    w.write(async |tx| release(tx, first).await).await;
    let second = w.write(async |tx| start(tx, &two, 1).await).await.remove(0);

    assert_eq!(second.run, run);
    let failure = Failure::transient("E", "e");
    let lost = [
        w.try_write(async |tx| release(tx, first).await).await,
        w.try_write(async |tx| at_junction(tx, first, "Pay").await.map(|_| ())).await,
        w.try_write(async |tx| set_decisions_recorded(tx, first).await).await,
        w.try_write(async |tx| abandon_replay(tx, first).await).await,
        w.try_write(async |tx| complete(tx, first, "{}").await).await,
        w.try_write(async |tx| fail(tx, first, None, &failure).await).await,
        w.try_write(async |tx| cancel(tx, first).await).await,
    ];
    for result in lost {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::LostClaim(r) if r == run), "{error:?}");
    }
    w.write(async |tx| complete(tx, second, "{}").await).await;
    assert_eq!(state(&w, run).await, TrainState::Completed);
}

async fn a_run_ends_once_and_its_wide_values_lie_apart(w: World) {
    let host = w.host("one").await;
    let done = w.run(&host).await;
    let failed = w.run(&host).await;
    w.write(async |tx| complete(tx, done, "{\"ok\":true}").await).await;
    let failure = Failure::permanent("Declined", "no\0pe").with_detail("at \0 line 1");
    w.write(async |tx| fail(tx, failed, Some("Pay"), &failure).await).await;

    let again = w.try_write(async |tx| cancel(tx, done).await).await;
    assert!(matches!(again, Err(StoreError::LostClaim(_))));
    let wide = w.read(async |tx| payload(tx, w.tenant, done.run).await).await;
    assert_eq!(
        (wide.input.as_deref(), wide.output.as_deref()),
        (Some("{\"n\":1}"), Some("{\"ok\":true}"))
    );
    let run = w.read(async |tx| detail(tx, w.tenant, failed.run).await).await;
    assert_eq!((run.train_state, run.failure_class), (TrainState::Failed, FailureClass::Permanent));
    assert_eq!(
        (run.failure_exception.as_deref(), run.failure_junction.as_deref()),
        (Some("Declined"), Some("Pay"))
    );
    // NUL cannot be stored on Postgres, and is kept in sight on both.
    assert_eq!(run.failure_reason.as_deref(), Some("no\\u0000pe"));
    let wide = w.read(async |tx| payload(tx, w.tenant, failed.run).await).await;
    assert_eq!(wide.stack_trace.as_deref(), Some("at \\u0000 line 1"));
}

async fn a_run_out_of_the_queue_has_its_entrys_input(w: World) {
    let host = w.host("one").await;
    let new = NewEntry {
        input: Some("{\"n\":7}"),
        input_type: Some("Order"),
        ..NewEntry::new(w.tenant, "train")
    };
    w.enqueue(&new).await;
    let run = w.claim(&host, 1).await.remove(0);

    let before = w.read(async |tx| payload(tx, w.tenant, run.run).await).await;
    w.write(async |tx| complete(tx, run.claim(), "1").await).await;
    let after = w.read(async |tx| payload(tx, w.tenant, run.run).await).await;

    assert_eq!((before.input.as_deref(), before.output.as_deref()), (Some("{\"n\":7}"), None));
    assert_eq!(
        (after.input_type_name.as_deref(), after.output.as_deref()),
        (Some("Order"), Some("1"))
    );
}

/// W9: a cancellation is seen at the next boundary, and refused once the run has ended.
async fn a_cancellation_is_seen_at_the_next_boundary(w: World) {
    let host = w.host("one").await;
    let run = w.run(&host).await;
    assert!(!w.write(async |tx| at_junction(tx, run, "Pay").await).await);
    w.write(async |tx| request_cancel(tx, w.tenant, run.run).await).await;

    assert!(w.write(async |tx| at_junction(tx, run, "Ship").await).await);
    let shown = w.read(async |tx| detail(tx, w.tenant, run.run).await).await;
    assert_eq!(shown.currently_running_junction.as_deref(), Some("Ship"));
    w.write(async |tx| cancel(tx, run).await).await;
    let late =
        w.try_write(async |tx| request_cancel(tx, w.tenant, run.run).await).await.unwrap_err();
    let expected = format!("run {} is not pending or in progress, so nothing was changed", run.run);
    assert_eq!(late.to_string(), expected);
}

/// J13, J14: an undelivered run is put back with a growing delay, and given up after the last attempt.
async fn an_undelivered_run_is_put_back_and_then_given_up(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let failure = Failure::transient("Refused", "no room");
    let mut run = pending(&w).await;
    let undelivered = async |run: &trax::store::claim::ClaimedRun| {
        let failed = DispatchFailure {
            entry: run.entry,
            claim: run.claim(),
            failure: &failure,
            policy: DispatchPolicy {
                attempts_max: 3,
                wait_max: Duration::from_secs(8),
                ..DispatchPolicy::default()
            },
        };
        w.write(async |tx| dispatch_failed(tx, &failed).await).await
    };
    let mut waits = Vec::new();
    for attempt in 1..3 {
        assert_eq!(undelivered(&run).await, DispatchFailed::Requeued { attempt });
        let entry = w.read(async |tx| queue::detail(tx, w.tenant, run.entry).await).await;
        waits.push(entry.scheduled_at.unwrap().since(now));
        w.sql("UPDATE work_queue SET scheduled_at = NULL").await.unwrap();
        let host = super::world::host("dispatcher");
        let request = ClaimRequest { starts: false, ..request(w.tenant, &host, 1) };
        run = w.write(async |tx| claim(tx, &request).await).await.runs.remove(0);
    }
    assert_eq!(undelivered(&run).await, DispatchFailed::GivenUp);

    assert_eq!(waits, [Duration::from_secs(5), Duration::from_secs(8)]);
    let rows = w.rows("SELECT failure_exception, failure_reason FROM metadata ORDER BY id").await;
    assert_eq!(
        rows[0],
        "DispatchRequeued Dispatch attempt 1 of 3 failed and the job was requeued: Refused: no room"
    );
    assert_eq!(rows[2], "Refused no room");
}

/// J12: a run that somebody has started after all is left alone, and no attempt is counted.
async fn a_run_that_was_delivered_after_all_is_left_alone(w: World) {
    let run = pending(&w).await;
    let host = w.host("one").await;
    w.write(async |tx| start(tx, &host, 1).await).await;
    let failure = Failure::transient("Refused", "no room");
    let failed = DispatchFailure {
        entry: run.entry,
        claim: run.claim(),
        failure: &failure,
        policy: DispatchPolicy::default(),
    };

    assert_eq!(
        w.write(async |tx| dispatch_failed(tx, &failed).await).await,
        DispatchFailed::Started
    );
    assert_eq!(state(&w, run.run).await, TrainState::InProgress);
    let entry = w.read(async |tx| queue::detail(tx, w.tenant, run.entry).await).await;
    assert_eq!(entry.dispatch_attempts, 0);
}

/// W16: only runs whose own host is gone are lost; the host that was only slow writes nothing more.
async fn a_run_is_lost_with_its_host(w: World) {
    w.advance(Duration::ZERO).await;
    let lease = Duration::from_secs(30);
    let [dead, alive] = [w.host("dead").await, w.host("alive").await];
    let gone = w.run(&dead).await;
    let kept = w.run(&alive).await;
    w.advance(lease).await;
    w.write(async |tx| heartbeat(tx, &alive.incarnation).await).await;
    assert_eq!(w.read(async |tx| lost(tx, 10).await).await, []);
    w.write(async |tx| bury(tx, lease).await).await;

    let seen: Vec<ActiveRun> = w.read(async |tx| lost(tx, 10).await).await;
    assert_eq!(seen.iter().map(ActiveRun::claim).collect::<Vec<_>>(), [gone]);
    let failure = Failure::unclassified("HostLost", "the host is gone");
    assert!(w.write(async |tx| reap(tx, &seen[0], &failure).await).await);
    assert!(!w.write(async |tx| reap(tx, &seen[0], &failure).await).await);

    let late = w.try_write(async |tx| complete(tx, gone, "{}").await).await;
    assert!(matches!(late, Err(StoreError::LostClaim(_))));
    assert_eq!(state(&w, kept.run).await, TrainState::InProgress);
    let failed = w.read(async |tx| detail(tx, w.tenant, gone.run).await).await;
    assert_eq!(failed.failure_exception.as_deref(), Some("HostLost"));
}

/// W13, W14: those who look for stuck runs see what started before an instant, and when each must end.
async fn stuck_runs_are_found_by_when_they_started(w: World) {
    w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    w.sql("UPDATE manifest SET timeout_seconds = 90").await.unwrap();
    w.entry(Some(manifest)).await;
    let old = w.claim(&host, 1).await.remove(0).run;
    let waiting = pending(&w).await.run;
    let cutoff = w.advance(Duration::from_mins(1)).await;
    w.run(&host).await;

    let stuck = w.read(async |tx| active_since(tx, cutoff, RunId(0), 10).await).await;

    let facts: Vec<_> =
        stuck.iter().map(|run| (run.id, run.train_state, run.timeout_seconds)).collect();
    assert_eq!(
        facts,
        [(old, TrainState::InProgress, Some(90)), (waiting, TrainState::Pending, None)]
    );
    let page = w.read(async |tx| active_since(tx, cutoff, old, 10).await).await;
    assert_eq!(page.len(), 1);
}

async fn lists_of_runs_page_by_key_and_stay_in_the_tenant(w: World) {
    let host = w.host("one").await;
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let [a, b, c] = [w.run(&host).await, w.run(&host).await, w.run(&host).await];
    let new = NewRun {
        tenant: other,
        train: "train",
        input: "1",
        input_type: "Input",
        version: None,
        parent: None,
        host: &host,
    };
    let theirs = w.write(async |tx| start_direct(tx, &new).await).await;
    w.write(async |tx| complete(tx, b, "{}").await).await;
    let ids = async |filter: RunFilter<'_>| -> Vec<RunId> {
        w.read(async |tx| list(tx, w.tenant, filter, 2).await)
            .await
            .iter()
            .map(|run| run.id)
            .collect()
    };

    assert_eq!(ids(RunFilter::default()).await, [c.run, b.run]);
    assert_eq!(ids(RunFilter { before: Some(b.run), ..RunFilter::default() }).await, [a.run]);
    assert_eq!(
        ids(RunFilter { state: Some(TrainState::Completed), ..RunFilter::default() }).await,
        [b.run]
    );
    assert_eq!(ids(RunFilter { train: Some("other"), ..RunFilter::default() }).await, []);
    let mut tx = w.db.read().await.unwrap();
    assert!(matches!(
        detail(&mut tx, w.tenant, theirs.run).await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(matches!(
        payload(&mut tx, w.tenant, theirs.run).await,
        Err(StoreError::NotFound { .. })
    ));
}

on_both!(
    a_pending_run_is_started_once,
    a_pending_run_that_was_cancelled_never_starts,
    a_run_given_back_starts_anywhere_and_its_old_owner_writes_nothing,
    a_run_ends_once_and_its_wide_values_lie_apart,
    a_run_out_of_the_queue_has_its_entrys_input,
    a_cancellation_is_seen_at_the_next_boundary,
    an_undelivered_run_is_put_back_and_then_given_up,
    a_run_that_was_delivered_after_all_is_left_alone,
    a_run_is_lost_with_its_host,
    stuck_runs_are_found_by_when_they_started,
    lists_of_runs_page_by_key_and_stay_in_the_tenant,
);
