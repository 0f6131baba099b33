//! Retries: what counts, how long they wait, and when a manifest becomes a dead letter.

use std::sync::Arc;

use trax::engine::events::EngineEvent;
use trax::model::failure::Failure;
use trax::store::dead_letters;
use trax::store::dispatch::{self, DispatchFailure};
use trax::store::hosts::Host;
use trax::store::manifests::Setting;
use trax::store::queue::NewEntry;
use trax::store::runs;

use crate::engine::world::{World, queued};

const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;
const WORKS: &str = "{}";
const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// R1, R28, R29: after a failure the next cycle queues the whole chain again, from its first junction.
async fn a_failed_run_is_run_again_from_the_top(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let input = r#"{"acts":{"Act2":[{"only_up_to_attempt":1},{"fail":{"name":"Lost"}}]}}"#;
    w.manifest("nightly", "probe-chain", input, 3).await;

    assert_eq!(queued(&host.pass().await), ["run"]);
    assert_eq!(queued(&host.pass().await), ["retry 1 +300"]);
    assert_eq!(w.states().await, "failed");
    w.advance(300).await;
    host.pass().await;

    assert_eq!(w.states().await, "failed completed");
    let steps = w.store.rows("SELECT name FROM junction_run ORDER BY metadata_id, position").await;
    assert_eq!(steps, ["Act1", "Act2", "Act1", "Act2", "Act3"]);
    let occurrences = w.store.rows("SELECT DISTINCT occurrence_id FROM metadata").await;
    assert_eq!(occurrences.len(), 1);
}

/// R2: what belongs to no manifest is neither retried nor a dead letter.
async fn work_without_a_manifest_is_not_retried(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let new = NewEntry { input: Some(FAILS), ..NewEntry::new(w.store.tenant, "probe") };
    w.store.enqueue(&new).await;

    for _ in 0..10 {
        host.pass().await;
        w.advance(HOUR).await;
    }

    assert_eq!(w.states().await, "failed");
    assert!(w.dead_letters().await.is_empty());
}

/// R4, R5, M7: a manifest runs once more often than it has retries, then it is a dead letter that says so.
async fn the_budget_is_one_run_and_the_retries(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    for max_retries in [0, 1, 2] {
        w.manifest(&format!("m{max_retries}"), "probe", FAILS, max_retries).await;
    }

    for _ in 0..6 {
        host.pass().await;
        w.advance(HOUR).await;
    }

    let runs = "SELECT m.external_id, CAST(COUNT(*) AS TEXT) FROM metadata r
        JOIN manifest m ON m.id = r.manifest_id GROUP BY m.external_id ORDER BY m.external_id";
    assert_eq!(w.store.rows(runs).await, ["m0 1", "m1 2", "m2 3"]);
    let mut reasons = w.dead_letters().await;
    reasons.sort();
    let reason = |max: i32| {
        format!(
            "awaiting_intervention Max retries exceeded: ({}) failures > ({max}) max retries",
            max + 1
        )
    };
    assert_eq!(reasons, [reason(0), reason(1), reason(2)]);
}

/// Q15: a failure has the class that it brings, and is retried and given up whatever the class.
async fn nothing_acts_on_a_class(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let classes = ["conflict", "permanent", "transient", "unclassified"];
    for class in classes {
        let fails = format!(r#"{{"acts":{{"Act":[{{"fail":{{"class":"{class}"}}}}]}}}}"#);
        w.manifest(class, "probe", &fails, 1).await;
    }
    for _ in 0..4 {
        host.pass().await;
        w.advance(HOUR).await;
    }
    let runs = "SELECT m.external_id, r.failure_class, CAST(COUNT(*) AS TEXT) FROM metadata r
        JOIN manifest m ON m.id = r.manifest_id GROUP BY m.external_id, r.failure_class ORDER BY m.external_id";
    let expected = classes.map(|class| format!("{class} {class} 2"));
    assert_eq!(w.store.rows(runs).await, expected);
    assert_eq!(w.dead_letters().await.len(), 4);
}

/// R6, T6: with the default of 3 the fourth failure makes the dead letter, and the third does not.
async fn the_fourth_failure_is_the_last(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", FAILS, 3).await;

    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.extend(queued(&host.pass().await));
        w.advance(HOUR).await;
        host.pass().await;
    }

    assert_eq!(seen[..1], ["run"]);
    assert_eq!(w.states().await, "failed failed failed failed");
    assert_eq!(w.dead_letters().await.len(), 1);
}

/// R7, R9: a failure counts for its window only, so that sparse ones never make a dead letter.
async fn failures_count_for_their_window(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("day", "probe", FAILS, 0).await;
    w.set_input("day", WORKS).await;
    host.pass().await;
    w.set_input("day", FAILS).await;
    for (max_retries, own, after, expected) in [
        (3, Setting::Clear, DAY - 60, "retry 1 +300"),
        (3, Setting::Clear, DAY + 60, "run"),
        (3, Setting::Set(3_600), HOUR - 60, "retry 1 +300"),
        (3, Setting::Set(3_600), HOUR + 60, "run"),
    ] {
        let name = format!("own {own:?} {after}");
        w.advance(3 * DAY).await;
        w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
        w.stated(&name, "probe", FAILS, max_retries, own, 60).await;
        assert_eq!(queued(&host.pass().await), ["run"], "{name}");
        w.advance(after).await;
        assert_eq!(queued(&host.manage().await), [expected], "{name}");
        w.set_input(&name, WORKS).await;
        w.advance(HOUR).await;
        host.pass().await;
    }
}

/// R8, R10, T1: a resolved dead letter makes the count start anew, and the delay with it.
async fn a_resolution_starts_the_count_anew(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let manifest = w.manifest("nightly", "probe", FAILS, 1).await;
    for _ in 0..4 {
        host.pass().await;
        w.advance(HOUR).await;
    }
    assert_eq!(w.dead_letters().await.len(), 1);

    let tenant = w.store.tenant;
    w.store
        .write(async |tx| {
            let awaiting = dead_letters::list(tx, tenant, None, None, 1).await?;
            dead_letters::acknowledge(tx, tenant, awaiting[0].id, "seen").await
        })
        .await;
    w.settle_due(manifest).await;
    w.advance(60).await;

    assert_eq!(queued(&host.pass().await), ["run"]);
    assert_eq!(queued(&host.pass().await), ["retry 1 +300"]);
}

/// R11, R20, R21: a success stops the delay, and leaves the count as it is.
async fn a_success_stops_the_delay_and_not_the_count(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.stated("nightly", "probe", FAILS, 3, Setting::Keep, 600).await;

    let mut seen = Vec::new();
    for input in [FAILS, FAILS, WORKS, FAILS, WORKS, FAILS] {
        w.set_input("nightly", input).await;
        seen.extend(queued(&host.manage().await));
        w.advance(HOUR).await;
        host.dispatch().await;
        host.workers.idle().await;
        w.advance(HOUR).await;
    }
    seen.extend(queued(&host.manage().await));

    let expected =
        ["run", "retry 1 +300", "retry 2 +600", "run", "retry 3 +1200", "run", "dead letter"];
    assert_eq!(seen, expected);
}

/// R13: a cancelled run is no failure: it is not retried, and uses up its occurrence.
async fn a_cancelled_run_is_not_retried(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let input = r#"{"acts":{"Act":["loop_until_cancelled",{"fail":{}}]}}"#;
    w.manifest("nightly", "probe", input, 0).await;
    host.manage().await;
    host.dispatch().await;
    let run = w.last_run().await;
    let tenant = w.store.tenant;
    w.store.write(async |tx| runs::request_cancel(tx, tenant, run).await).await;
    host.workers.cancel(run);
    host.workers.idle().await;

    host.used_up_an_hour(&w).await;
}

/// R15: an attempt that was never delivered is nobody's failure.
async fn an_undelivered_attempt_does_not_count(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", WORKS, 0).await;
    host.manage().await;
    let sender = Host {
        incarnation: trax::model::ids::Incarnation("sender".to_owned()),
        ..(*host.shared.host()).clone()
    };
    for _ in 0..2 {
        w.advance(HOUR).await;
        let mut request = crate::store::world::request(w.store.tenant, &sender, 1);
        request.starts = false;
        let claimed = w.store.write(async |tx| trax::store::claim::claim(tx, &request).await).await;
        let failure = Failure::transient("Refused", "the worker is away");
        let failed = DispatchFailure {
            entry: claimed.runs[0].entry,
            claim: claimed.runs[0].claim(),
            failure: &failure,
            policy: host.shared.config.dispatch,
        };
        w.store.write(async |tx| dispatch::dispatch_failed(tx, &failed).await).await;
    }

    w.advance(HOUR).await;
    assert!(queued(&host.pass().await).is_empty());
    assert_eq!(w.states().await, "failed failed completed");
    assert!(w.dead_letters().await.is_empty());
}

/// R23, R24, R25: the delay is stored as an instant of the database's clock, and no delay as none.
async fn the_delay_is_an_instant_of_the_databases_clock(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("waits", "probe", FAILS, 3).await;
    host.pass().await;
    let events = host.manage().await;
    let due = events.iter().find_map(|event| match event {
        EngineEvent::RetryQueued { due, .. } => *due,
        _ => None,
    });
    assert_eq!(due, Some(crate::engine::world::at(300)));
    w.advance(299).await;
    assert_eq!(host.dispatch().await, 0);
    w.advance(1).await;
    assert_eq!(host.dispatch().await, 1);
    host.workers.idle().await;

    let at_once = |config: &mut trax::engine::config::EngineConfig| {
        config.retry.delay = std::time::Duration::ZERO;
    };
    let mut other = w.host_with("two", at_once).await;
    assert_eq!(queued(&other.manage().await), ["retry 2 +0"]);
    let scheduled = "SELECT CAST(scheduled_at AS TEXT) FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.store.rows(scheduled).await, ["-"]);
    assert_eq!(other.dispatch().await, 1);
    other.workers.idle().await;
}

/// R27, R32: a failure moves no schedule; a triggered run that failed is retried when the schedule is due.
async fn a_failed_trigger_waits_for_the_schedule(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let manifest = w.manifest("hourly", "probe", WORKS, 3).await;
    host.pass().await;
    w.set_input("hourly", FAILS).await;
    w.advance(600).await;
    w.trigger(manifest).await;
    host.pass().await;
    assert_eq!(w.states().await, "completed failed");

    w.advance(HOUR - 601).await;
    assert!(queued(&host.manage().await).is_empty());
    w.advance(1).await;
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
}

/// R33: two retries with delays of 2 and 4 seconds: three runs in 6 seconds, and the dead letter a cycle later.
async fn the_reference_timing(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host =
        w.host_with("one", |config| config.retry.delay = std::time::Duration::from_secs(2)).await;
    w.manifest("nightly", "probe", FAILS, 2).await;

    let mut ran = Vec::new();
    for second in 0..12 {
        let events = host.pass().await;
        let started = events.iter().any(|event| matches!(event, EngineEvent::RunStarted { .. }));
        if started || queued(&events) == ["dead letter"] {
            ran.push(second);
        }
        w.advance(1).await;
    }

    // The manager sees each failure one cycle after it.
    assert_eq!(ran, [0, 3, 8, 9]);
    assert_eq!(w.states().await, "failed failed failed");
}

engine_cases!(
    a_failed_run_is_run_again_from_the_top,
    work_without_a_manifest_is_not_retried,
    the_budget_is_one_run_and_the_retries,
    nothing_acts_on_a_class,
    the_fourth_failure_is_the_last,
    failures_count_for_their_window,
    a_resolution_starts_the_count_anew,
    a_success_stops_the_delay_and_not_the_count,
    a_cancelled_run_is_not_retried,
    an_undelivered_attempt_does_not_count,
    the_delay_is_an_instant_of_the_databases_clock,
    a_failed_trigger_waits_for_the_schedule,
    the_reference_timing,
);
