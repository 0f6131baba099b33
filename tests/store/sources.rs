//! What is known of the run that a manifest's next one may take over from.

use std::time::Duration;

use trax::model::failure::Failure;
use trax::model::ids::{Claim, ManifestId, RunId};
use trax::model::source::{Replay, Source};
use trax::store::checkpoints::{self, NewCheckpoint};
use trax::store::decisions;
use trax::store::hosts::Host;
use trax::store::queue::NewEntry;
use trax::store::{runs, sources};

use super::records::decision;
use super::world::World;

const DAY: Duration = Duration::from_hours(24);

impl World {
    /// A run in progress of a manifest of the train `train`, out of an entry of the manifest, with an answer.
    pub(crate) async fn deciding_run(&self, host: &Host, manifest: ManifestId) -> Claim {
        let new = NewEntry {
            manifest: Some(manifest),
            input: Some("{}"),
            input_type: Some("Input"),
            ..NewEntry::new(self.tenant, "train")
        };
        self.enqueue(&new).await;
        let claim = self.claim(host, 1).await.remove(0).claim();
        self.write(async |tx| {
            runs::set_decisions_recorded(tx, claim).await?;
            decisions::record(tx, claim, &decision("Refund")).await
        })
        .await;
        claim
    }

    /// Fails a run.
    pub(crate) async fn failed(&self, claim: Claim) -> RunId {
        let failure = Failure::transient("E", "e");
        self.write(async |tx| runs::fail(tx, claim, None, &failure).await).await;
        claim.run
    }

    /// What is known of the last run of a manifest.
    pub(crate) async fn source(&self, manifest: ManifestId) -> Option<Source> {
        self.read(async |tx| sources::of_manifests(tx, &[manifest]).await).await.pop()
    }
}

/// D22, D23, D25: every fact is read from what is stored, letter by letter, and each that is otherwise has its reason.
async fn each_fact_is_read(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let parent = w.manifest("parent").await;
    let manifest = w.manifest("nightly").await;
    assert_eq!(w.source(manifest).await, None);
    let run = {
        let claim = w.deciding_run(&host, manifest).await;
        w.failed(claim).await
    };
    let later = if w.db.is_postgres() {
        "dispatched_at + INTERVAL '1 second'"
    } else {
        "dispatched_at + 1000000"
    };
    let entry = NewEntry { replay_decisions_of: Some(run), ..NewEntry::new(w.tenant, "train") };
    w.enqueue(&entry).await;
    w.sql("UPDATE work_queue SET replay_decisions_of = NULL WHERE status = 'queued'")
        .await
        .unwrap();
    let succeeds = format!(
        "UPDATE manifest SET depends_on_manifest_id = {parent} WHERE id = {manifest};
         UPDATE manifest SET last_successful_run = (SELECT {later} FROM work_queue WHERE metadata_id = {run})
         WHERE id = {parent}"
    );
    let no_entry = format!("UPDATE work_queue SET manifest_id = NULL WHERE metadata_id = {run}");
    let subject = format!("UPDATE work_queue SET subject_key = 's' WHERE metadata_id = {run}");
    let links =
        format!("UPDATE work_queue SET replay_decisions_of = {run} WHERE status = 'queued'");
    let cases = [
        ("UPDATE metadata SET name = 'other'", "it is not a run of this manifest's train"),
        ("UPDATE metadata SET decisions_recorded = FALSE", "it did not record its decisions"),
        (
            "UPDATE metadata SET replay_decisions_of = 77",
            "it replayed another run's answers and failed, so they are not replayed again",
        ),
        (&links, "its answers are already being, or have been, replayed once"),
        (&succeeds, "its parent succeeded again since, so this run is a new firing, not a retry"),
        (&no_entry, "it has no work queue entry of this manifest to compare inputs with"),
        (&subject, "it was queued under a subject key"),
        (
            "UPDATE manifest SET properties = '{ }'",
            "it was given a different input from the one the retry is given",
        ),
        (
            "UPDATE manifest SET property_type = 'Other'",
            "it was given a different input from the one the retry is given",
        ),
    ];
    for (change, reason) in cases {
        let mut tx = w.db.begin().await.unwrap();
        tx.execute_text(change).await.unwrap();
        let source = sources::of_manifests(&mut tx, &[manifest]).await.unwrap().remove(0);
        assert_eq!(source.replay(now, DAY), Replay::Afresh(reason), "{change}: {source:?}");
        tx.rollback().await.unwrap();
    }
    let source = w.source(manifest).await.unwrap();
    assert_eq!(source.replay(now, DAY), Replay::Of(run), "{source:?}");
}

/// R39, R40, D24: an opted out manifest, a failure that no longer counts, and a run that acted on nothing.
async fn what_is_no_retry_replays_nothing(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    let claim = w.deciding_run(&host, manifest).await;
    assert_eq!(w.source(manifest).await, None);
    w.failed(claim).await;
    let letter = format!(
        "INSERT INTO dead_letter (tenant_id, manifest_id, status, resolved_at, reason, retry_count_at_dead_letter)
         SELECT 1, {manifest}, 'acknowledged', start_time, 'r', 1 FROM metadata"
    );
    let cases = [
        ("UPDATE manifest SET replay_decisions_on_retry = FALSE", Replay::OptedOut),
        (&*letter, Replay::Nothing),
        ("UPDATE decision SET refused = 'unfit'", Replay::Nothing),
        ("UPDATE metadata SET train_state = 'completed'", Replay::Nothing),
        ("UPDATE metadata SET train_state = 'cancelled'", Replay::Nothing),
        ("UPDATE manifest SET failure_window_seconds = 3600", Replay::Of(claim.run)),
    ];
    for (change, expected) in cases {
        let mut tx = w.db.begin().await.unwrap();
        tx.execute_text(change).await.unwrap();
        let source = sources::of_manifests(&mut tx, &[manifest]).await.unwrap().remove(0);
        assert_eq!(source.replay(now, DAY), expected, "{change}: {source:?}");
        tx.rollback().await.unwrap();
    }
    w.sql("UPDATE manifest SET failure_window_seconds = 3600").await.unwrap();
    let source = w.source(manifest).await.unwrap();
    let after = now.saturating_add(Duration::from_secs(3_601));
    assert_eq!(source.replay(after, DAY), Replay::Nothing);
}

/// D22, R15, R42: the latest run that finished, attempts left out that were never delivered, for a page at once.
async fn the_latest_finished_run_of_each_manifest_is_found(w: World) {
    w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let (first, second) = (w.manifest("first").await, w.manifest("second").await);
    let mut runs = Vec::new();
    for manifest in [first, second, first] {
        let claim = w.deciding_run(&host, manifest).await;
        runs.push(w.failed(claim).await);
        w.advance(Duration::from_secs(1)).await;
    }
    let latest = async || {
        let found =
            async |tx: &mut _| sources::of_manifests(tx, &[second, ManifestId(99), first]).await;
        w.read(found)
            .await
            .into_iter()
            .map(|source| (source.manifest, source.run))
            .collect::<Vec<_>>()
    };
    assert_eq!(latest().await, [(first, runs[2]), (second, runs[1])]);

    let undelivered = format!(
        "UPDATE metadata SET failure_exception = 'DispatchRequeued' WHERE id = {}",
        runs[2]
    );
    w.sql(&undelivered).await.unwrap();
    assert_eq!(latest().await, [(first, runs[0]), (second, runs[1])]);

    // An attempt that was never delivered, and a run that abandoned it, replay nothing.
    let link =
        format!("UPDATE metadata SET replay_decisions_of = {} WHERE id = {}", runs[0], runs[2]);
    w.sql(&link).await.unwrap();
    assert!(!w.source(first).await.unwrap().is_replayed);
    w.sql("UPDATE metadata SET failure_exception = 'Lost'").await.unwrap();
    w.sql(&format!("UPDATE metadata SET manifest_id = NULL WHERE id = {}", runs[2])).await.unwrap();
    assert!(w.source(first).await.unwrap().is_replayed);
    w.sql(&format!("UPDATE metadata SET replay_abandoned = TRUE WHERE id = {}", runs[2]))
        .await
        .unwrap();
    assert!(!w.source(first).await.unwrap().is_replayed);
}

/// R52: a dependent's run is dated by the dispatch of its entry, or without one by its start.
async fn a_dependents_run_is_dated_by_its_dispatch(w: World) {
    w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let (parent, manifest) = (w.manifest("parent").await, w.manifest("nightly").await);
    let claim = w.deciding_run(&host, manifest).await;
    let run = w.failed(claim).await;
    let depends =
        format!("UPDATE manifest SET depends_on_manifest_id = {parent} WHERE id = {manifest}");
    w.sql(&depends).await.unwrap();
    let later = |column: &str, seconds: i64| {
        if w.db.is_postgres() {
            format!("{column} + INTERVAL '{seconds} seconds'")
        } else {
            format!("{column} + {}", seconds * 1_000_000)
        }
    };
    // The run's start on one side of the parent's success, its dispatch on the other.
    for (start, success, is_fired_again) in [(10, 5, true), (-10, -5, false), (10, 0, false)] {
        let mut tx = w.db.begin().await.unwrap();
        let set = format!(
            "UPDATE metadata SET start_time = {}; UPDATE manifest SET last_successful_run =
             (SELECT {} FROM work_queue WHERE metadata_id = {run}) WHERE id = {parent}",
            later("start_time", start),
            later("dispatched_at", success)
        );
        tx.execute_text(&set).await.unwrap();
        let found = sources::of_manifests(&mut tx, &[manifest]).await.unwrap().remove(0);
        assert_eq!(found.is_fired_again, is_fired_again, "{start} {success}");
        tx.execute_text(
            "UPDATE work_queue SET metadata_id = NULL, status = 'cancelled', dispatched_at = NULL",
        )
        .await
        .unwrap();
        let found = sources::of_manifests(&mut tx, &[manifest]).await.unwrap().remove(0);
        assert_eq!((found.is_fired_again, found.has_entry), (success > start, false));
        tx.rollback().await.unwrap();
    }
}

/// K20, R95: whether there is a checkpoint, and which run it resumed itself.
async fn what_a_resume_needs_is_found(w: World) {
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    let claim = w.deciding_run(&host, manifest).await;
    let checkpoint = NewCheckpoint {
        node_id: "Checkpoint#0",
        branch_path: None,
        state_type: "Paid",
        state: "{}",
        tracks: "[]",
        chain_hash: "c",
        state_fingerprint: "s",
    };
    let before = w.source(manifest).await;
    w.write(async |tx| checkpoints::record(tx, claim, &checkpoint).await).await;
    w.failed(claim).await;
    assert_eq!(before, None);
    let source = w.source(manifest).await.unwrap();
    assert_eq!((source.has_checkpoint, source.resume_from), (true, None));
    assert!(source.component_version_id.is_some());

    let sql = "DELETE FROM checkpoint;
        UPDATE metadata SET resume_from = 7, resume_at = 'Pay#0', invoking_machine = 'm'";
    w.sql(sql).await.unwrap();
    let source = w.source(manifest).await.unwrap();
    assert_eq!((source.has_checkpoint, source.resume_from), (false, Some(RunId(7))));
    let at = (source.resume_at.as_deref(), source.invoking_machine.as_deref());
    assert_eq!(at, (Some("Pay#0"), Some("m")));
}

on_both!(
    each_fact_is_read,
    what_is_no_retry_replays_nothing,
    the_latest_finished_run_of_each_manifest_is_found,
    a_dependents_run_is_dated_by_its_dispatch,
    what_a_resume_needs_is_found,
);
