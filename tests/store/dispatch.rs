//! Entries that could not be delivered: put back, or failed before they started.

use std::time::Duration;

use trax::model::dispatch::DispatchPolicy;
use trax::model::failure::Failure;
use trax::model::ids::RunId;
use trax::store::claim::{Claimed, claim};
use trax::store::dispatch::{DispatchFailed, DispatchFailure, Unknown, dispatch_failed};
use trax::store::queue::{NewEntry, detail, enqueue};
use trax::store::{EntryStatus, dead_letters};

use super::world::{World, request};

async fn pass(w: &World) -> Claimed {
    let host = super::world::host("one");
    w.write(async |tx| claim(tx, &request(w.tenant, &host, 1)).await).await
}

/// J10, J11: an entry whose train nobody has deployed waits, and has failed after ten attempts, some 20 minutes later.
async fn an_unknown_train_is_waited_for(w: World) {
    let start = w.advance(Duration::ZERO).await;
    let manifest = w.manifest("nightly").await;
    let dead_letter =
        w.write(async |tx| dead_letters::add(tx, w.tenant, manifest, 4, "why").await).await;
    let new = NewEntry {
        manifest: Some(manifest),
        dead_letter: Some(dead_letter),
        input_type: Some("Order"),
        priority: 9,
        ..NewEntry::new(w.tenant, "unknown")
    };
    let entry = w.enqueue(&new).await;
    let behind = w.entry(None).await;

    let first = pass(&w).await;
    // It holds nobody back.
    assert_eq!(first.runs[0].entry, behind);
    let wait = Duration::from_secs(5);
    let train = "unknown".to_owned();
    assert_eq!(first.unknown, [Unknown::Postponed { entry, train, attempt: 1, wait }]);
    let stored = w.read(async |tx| detail(tx, w.tenant, entry).await).await;
    assert_eq!((stored.status, stored.metadata_id), (EntryStatus::Queued, None));
    let mut now = stored.scheduled_at.unwrap();
    assert_eq!(now.since(start), wait);

    for attempt in 2..10 {
        w.db.set_clock(now);
        let claimed = pass(&w).await;
        let Unknown::Postponed { attempt: counted, wait, .. } = claimed.unknown[0] else {
            panic!("{claimed:?}")
        };
        assert_eq!((claimed.runs.len(), counted), (0, attempt));
        now = now.saturating_add(wait);
    }
    w.db.set_clock(now);
    let claimed = pass(&w).await;

    assert_eq!(now.since(start), Duration::from_secs(5 + 10 + 20 + 40 + 80 + 160 + 3 * 300));
    let Unknown::Failed { run, manifest: of, .. } = claimed.unknown[0] else {
        panic!("{claimed:?}")
    };
    assert_eq!(of, Some(manifest));
    let row = format!(
        "failed UnknownTrain The input of work queue entry {entry} could not be read as 'Order', so it was not \
         dispatched: no active component declares 'unknown'; deploy one"
    );
    let sql = "SELECT train_state, failure_exception, failure_reason FROM metadata WHERE name = 'unknown'";
    assert_eq!(w.rows(sql).await, [row]);
    let links = "SELECT w.status, CAST(w.metadata_id AS TEXT), CAST(d.retry_metadata_id AS TEXT)
        FROM work_queue w JOIN dead_letter d ON d.id = w.dead_letter_id";
    assert_eq!(w.rows(links).await, [format!("dispatched {run} {run}")]);
    assert!(pass(&w).await.unknown.is_empty());
}

async fn a_train_that_is_deployed_late_runs(w: World) {
    w.advance(Duration::ZERO).await;
    let entry = w.enqueue(&NewEntry::new(w.tenant, "late")).await;
    assert!(pass(&w).await.runs.is_empty());
    w.declare(w.tenant, &["train", "late"]).await;
    w.advance(Duration::from_secs(5)).await;
    assert_eq!(pass(&w).await.runs[0].entry, entry);
}

/// J19: what is put back does without the links that other queued entries have taken meanwhile.
async fn what_is_put_back_gives_way_to_what_was_queued_meanwhile(w: World) {
    let (linked, resumed) = (Some(RunId(70)), Some(RunId(80)));
    let new = NewEntry {
        replay_decisions_of: linked,
        resume_from: resumed,
        ..NewEntry::new(w.tenant, "train")
    };
    let [kept, robbed] = [("a", false), ("b", true)];
    for (name, is_robbed) in [kept, robbed] {
        let manifest = Some(w.manifest(name).await);
        let entry = w.enqueue(&NewEntry { manifest, ..new.clone() }).await;
        let run = pass(&w).await.runs.remove(0);
        if is_robbed {
            w.enqueue(&new).await;
        }
        let failed = DispatchFailure {
            entry,
            claim: run.claim(),
            failure: &Failure::transient("Refused", "no room"),
            policy: DispatchPolicy::default(),
        };
        let put_back = w.write(async |tx| dispatch_failed(tx, &failed).await).await;
        assert_eq!(put_back, DispatchFailed::Requeued { attempt: 1 });

        let stored = w.read(async |tx| detail(tx, w.tenant, entry).await).await;
        let expected = if is_robbed { (None, None) } else { (linked, resumed) };
        assert_eq!((stored.replay_decisions_of, stored.resume_from), expected, "{name}");
        assert_eq!(stored.status, EntryStatus::Queued);
        w.sql("UPDATE work_queue SET status = 'cancelled' WHERE status = 'queued'").await.unwrap();
    }

    // And an entry whose manifest has another one by now is withdrawn.
    let manifest = Some(w.manifest("c").await);
    let entry = w.entry(manifest).await;
    let run = pass(&w).await.runs.remove(0);
    let other = w.entry(manifest).await;
    let failed = DispatchFailure {
        entry,
        claim: run.claim(),
        failure: &Failure::transient("Refused", "no room"),
        policy: DispatchPolicy::default(),
    };
    w.write(async |tx| dispatch_failed(tx, &failed).await).await;
    let statuses = "SELECT CAST(id AS TEXT) FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.rows(statuses).await, [other.to_string()]);
}

/// J19: also when the other entry comes into being while this one is put back: nothing fails.
async fn what_is_put_back_waits_for_what_is_being_queued(w: World) {
    let new = NewEntry {
        replay_decisions_of: Some(RunId(70)),
        resume_from: Some(RunId(80)),
        ..NewEntry::new(w.tenant, "train")
    };
    let manifest = Some(w.manifest("nightly").await);
    let entry = w.enqueue(&NewEntry { manifest, ..new.clone() }).await;
    let run = pass(&w).await.runs.remove(0);
    let mut queueing = w.db.begin().await.unwrap();
    enqueue(&mut queueing, &new).await.unwrap();

    let (db, claim) = (w.db.clone(), run.claim());
    let putting_back = tokio::spawn(async move {
        let failure = Failure::transient("Refused", "no room");
        let policy = DispatchPolicy::default();
        let failed = DispatchFailure { entry, claim, failure: &failure, policy };
        db.write(async |tx| dispatch_failed(tx, &failed).await).await
    });
    let waits = "SELECT 'waits' FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while w.db.is_postgres() && w.rows(waits).await != ["waits"] {
        tokio::task::yield_now().await;
    }
    queueing.commit().await.unwrap();

    let put_back = putting_back.await.unwrap().unwrap();
    assert_eq!(put_back, DispatchFailed::Requeued { attempt: 1 });
    let stored = w.read(async |tx| detail(tx, w.tenant, entry).await).await;
    assert_eq!((stored.replay_decisions_of, stored.resume_from), (None, None));
    assert_eq!(stored.status, EntryStatus::Queued);
}

on_both!(
    what_is_put_back_waits_for_what_is_being_queued,
    an_unknown_train_is_waited_for,
    a_train_that_is_deployed_late_runs,
    what_is_put_back_gives_way_to_what_was_queued_meanwhile,
);
