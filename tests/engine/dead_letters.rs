//! What operators do with dead letters, word for word.

use std::ops::ControlFlow;
use std::sync::Arc;

use trax::model::ids::{DeadLetterId, ManifestId};
use trax::operations::dead_letters::{
    Scope, acknowledge, acknowledge_all, acknowledge_batch, preview_all, requeue, requeue_all,
    requeue_batch,
};
use trax::store::dead_letters::{add, detail};
use trax::store::manifests;

use crate::engine::world::{World, queued};

const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;
const WORKS: &str = "{}";
const HOUR: u64 = 3_600;

const LEFT: &str = "the dead letter is left awaiting intervention.";

impl World {
    /// A manifest with so many dead letters that await somebody.
    pub(super) async fn given_up(
        &self,
        name: &str,
        letters: usize,
    ) -> (ManifestId, Vec<DeadLetterId>) {
        let manifest = self.manifest(name, "probe", WORKS, 3).await;
        let mut ids = Vec::new();
        for _ in 0..letters {
            let tenant = self.store.tenant;
            ids.push(
                self.store.write(async |tx| add(tx, tenant, manifest, 0, "reason").await).await,
            );
        }
        (manifest, ids)
    }

    /// Status and note of every dead letter, by id.
    async fn letters(&self) -> Vec<String> {
        let sql = "SELECT status, resolution_note FROM dead_letter ORDER BY id";
        self.store.rows(sql).await
    }

    /// Manifest and dead letter of every queued entry, by manifest.
    async fn entries(&self) -> Vec<String> {
        let sql = "SELECT m.external_id, CAST(w.dead_letter_id AS TEXT) FROM work_queue w
            JOIN manifest m ON m.id = w.manifest_id WHERE w.status = 'queued' ORDER BY m.external_id";
        self.store.rows(sql).await
    }

    async fn entry_of(&self, manifest: ManifestId) -> String {
        let sql = format!(
            "SELECT CAST(id AS TEXT) FROM work_queue WHERE manifest_id = {manifest} AND status = 'queued'"
        );
        self.store.rows(&sql).await.remove(0)
    }
}

/// L1, L2, R34: a manifest has one dead letter that awaits somebody; it blocks the schedule until it is resolved.
async fn a_dead_letter_blocks_its_manifest_until_it_is_resolved(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", FAILS, 0).await;
    for _ in 0..4 {
        host.pass().await;
        w.advance(HOUR).await;
    }
    assert_eq!(w.states().await, "failed");
    let letters = w.dead_letters().await;
    assert_eq!(
        letters,
        ["awaiting_intervention Max retries exceeded: (1) failures > (0) max retries"]
    );

    let (db, tenant) = (&w.store.db, w.store.tenant);
    let done = acknowledge(db, tenant, DeadLetterId(1), Some("seen")).await.unwrap();
    assert_eq!((done.is_done, done.message.as_str()), (true, "Dead letter acknowledged"));
    let again = requeue(db, tenant, DeadLetterId(1), false).await.unwrap();
    assert_eq!(again.message, "Dead letter not found or already resolved");
    assert!(!again.is_done);

    w.advance(1).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
    assert_eq!(w.letters().await, ["acknowledged seen"]);
}

/// L3, L4, L5: a requeue runs the manifest as it is now, at once and though disabled; the dead letter knows the run.
async fn a_requeue_runs_the_manifest_at_once(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let manifest = w.manifest("nightly", "probe", FAILS, 0).await;
    host.pass().await;
    w.advance(1).await;
    host.manage().await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let disable = "UPDATE manifest SET is_enabled = FALSE, priority = 7";
    w.store.sql(disable).await.unwrap();
    w.set_input("nightly", WORKS).await;

    let done = requeue(db, tenant, DeadLetterId(1), false).await.unwrap();

    let entry = w.entry_of(manifest).await;
    assert_eq!((done.is_done, done.message.as_str()), (true, "Dead letter requeued"));
    assert_eq!(done.id.map(|id| id.to_string()), Some(entry.clone()));
    let queued = "SELECT train_name, input, CAST(priority AS TEXT), CAST(scheduled_at AS TEXT),
        CAST(dead_letter_id AS TEXT), CASE WHEN is_explicit_trigger THEN 'explicit' END,
        CASE WHEN confirmed_at IS NOT NULL THEN 'confirmed' END
        FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.store.rows(queued).await, ["probe {} 7 - 1 explicit confirmed"]);
    assert_eq!(w.letters().await, [format!("retried Re-queued (WorkQueue {entry})")]);
    host.dispatch().await;
    host.workers.idle().await;
    assert_eq!(w.states().await, "failed completed");
    let letter = w.store.read(async |tx| detail(tx, tenant, DeadLetterId(1)).await).await;
    assert_eq!(letter.retry_metadata_id, Some(w.last_run().await));
    let occurrences = w.store.rows("SELECT DISTINCT occurrence_id FROM metadata").await;
    assert_eq!(occurrences.len(), 1, "it repeats the occurrence that failed");
}

/// L3: a dead letter whose manifest has a queued entry is left, and the answer names the entry.
async fn a_queued_entry_is_in_the_way_of_a_requeue(w: Arc<World>) {
    let (manifest, ids) = w.given_up("nightly", 1).await;
    w.trigger(manifest).await;
    let entry = w.entry_of(manifest).await;

    let left = requeue(&w.store.db, w.store.tenant, ids[0], false).await.unwrap();
    let gone = requeue(&w.store.db, w.store.tenant, DeadLetterId(99), false).await.unwrap();

    let expected = format!("The manifest already has a queued entry (WorkQueue {entry}); {LEFT}");
    assert_eq!((left.is_done, left.message), (false, expected));
    assert_eq!(gone.message, "Dead letter not found or already resolved");
    assert_eq!(w.letters().await, ["awaiting_intervention -"]);
    assert_eq!(w.entries().await, ["nightly -"]);
}

/// L6, L13: dead letters of one manifest fold into an entry that the newest carries; the count is of dead letters.
async fn a_batch_folds_by_manifest(w: Arc<World>) {
    let (a, of_a) = w.given_up("a", 3).await;
    let (_, of_b) = w.given_up("b", 1).await;
    let (busy, of_busy) = w.given_up("busy", 2).await;
    w.trigger(busy).await;
    let twice = [of_a[0], of_a[1], of_a[1], of_b[0], of_busy[0], DeadLetterId(99)];

    let done = requeue_batch(&w.store.db, w.store.tenant, &twice, false).await.unwrap();

    assert_eq!(done.count, Some(3));
    assert_eq!(
        done.message,
        "3 dead letter(s) requeued; 1 folded into another dead letter's entry for the same manifest; 1 skipped \
         because their manifest already has a queued entry."
    );
    let carrier = of_a[1];
    assert_eq!(
        w.entries().await,
        [format!("a {carrier}"), format!("b {}", of_b[0]), "busy -".to_owned()]
    );
    let entry = w.entry_of(a).await;
    let letters = w.letters().await;
    assert_eq!(
        letters[0],
        format!("retried Re-queued with dead letter {carrier} (WorkQueue {entry})")
    );
    assert_eq!(letters[1], format!("retried Re-queued (WorkQueue {entry})"));
    assert_eq!(letters[2], "awaiting_intervention -", "it was not asked for");
    assert_eq!(letters[4..], ["awaiting_intervention -", "awaiting_intervention -"]);
    w.store
        .sql(
            "UPDATE dead_letter SET status = 'acknowledged', resolved_at = dead_lettered_at
        WHERE status = 'awaiting_intervention'",
        )
        .await
        .unwrap();
}

/// L10: a batch has 1 to 1000 ids, or nothing happens.
async fn a_batch_has_from_one_to_a_thousand_ids(w: Arc<World>) {
    let (_, ids) = w.given_up("a", 1).await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let many: Vec<DeadLetterId> = (1..=1_001).map(DeadLetterId).collect();

    for (given, expected) in [
        (&[][..], "No ids were given."),
        (&many, "At most 1000 ids can be given at once; 1001 were."),
    ] {
        for refused in [
            requeue_batch(db, tenant, given, false).await.unwrap(),
            acknowledge_batch(db, tenant, given, None).await.unwrap(),
        ] {
            assert_eq!((refused.is_done, refused.count), (false, Some(0)));
            assert_eq!(refused.message, expected);
        }
    }
    assert_eq!(w.letters().await, ["awaiting_intervention -"]);
    let done = acknowledge_batch(db, tenant, &many[..1_000], None).await.unwrap();
    assert_eq!((done.count, done.message.as_str()), (Some(1), "1 dead letter(s) acknowledged"));
    assert!(!ids.is_empty());
}

/// L7, L8, R139: all are requeued a thousand manifests at a time; each page is kept, and the total told after it.
async fn requeueing_all_goes_by_pages_of_manifests(w: Arc<World>) {
    let (busy, _) = w.given_up("busy", 2).await;
    w.trigger(busy).await;
    many(&w, 1_001, 2).await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let expected = "2002 dead letter(s) requeued; 1001 folded into another dead letter's entry for the same \
                    manifest; 2 skipped because their manifest already has a queued entry.";

    let preview = preview_all(db, tenant, Scope::All).await.unwrap();
    assert_eq!(preview.message, expected);
    assert_eq!(w.entries().await.len(), 1, "a preview changes nothing");
    let mut told = Vec::new();
    let done = requeue_all(db, tenant, Scope::All, false, |resolved| {
        told.push(resolved);
        ControlFlow::Continue(())
    })
    .await
    .unwrap();

    assert_eq!((done.count, done.message.as_str()), (Some(2_002), expected));
    // The manifest that was skipped is one of the first page.
    assert_eq!(told, [1_998, 2_002]);
    assert_eq!(w.entries().await.len(), 1_002);
    let again =
        requeue_all(db, tenant, Scope::All, false, |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!(
        again.message,
        "0 dead letter(s) requeued; 2 skipped because their manifest already has a queued entry."
    );
    let of_one =
        requeue_all(db, tenant, Scope::Manifest(busy), false, |_| ControlFlow::Continue(()))
            .await
            .unwrap();
    assert_eq!(of_one.message, again.message);
    let rest = acknowledge_all(db, tenant, Scope::All, None).await.unwrap();
    assert_eq!(rest.message, "2 dead letter(s) acknowledged");
}

/// Manifests with dead letters, in a few statements; the first of them.
pub(super) async fn many(w: &World, manifests: i64, letters: i64) -> ManifestId {
    let (first, _) = w.given_up("m0", 0).await;
    let group = "(SELECT MAX(id) FROM manifest_group)";
    let numbers = |most: i64| {
        format!(
            "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most}) SELECT i FROM n) n"
        )
    };
    let sql = format!(
        "INSERT INTO manifest (tenant_id, external_id, name, properties, schedule_type, interval_seconds,
            manifest_group_id)
        SELECT 1, 'm' || i, 'probe', '{{}}', 'interval', 3600, {group} FROM {}",
        numbers(manifests - 1)
    );
    w.store.sql(&sql).await.unwrap();
    let sql = format!(
        "INSERT INTO dead_letter (tenant_id, manifest_id, reason, retry_count_at_dead_letter)
        SELECT 1, m.id, 'reason', 0 FROM manifest m CROSS JOIN {} WHERE m.id >= {first}",
        numbers(letters)
    );
    w.store.sql(&sql).await.unwrap();
    w.store
        .sql(&format!("UPDATE manifest SET next_due_at = NULL WHERE id >= {first}"))
        .await
        .unwrap();
    first
}

/// R140: two that requeue all at once resolve each dead letter once, with one entry per manifest.
async fn two_that_requeue_all_at_once_share_the_work(w: Arc<World>) {
    many(&w, 300, 3).await;
    let (db, tenant) = (w.store.db.clone(), w.store.tenant);

    let (one, two) = tokio::join!(
        requeue_all(&db, tenant, Scope::All, false, |_| ControlFlow::Continue(())),
        requeue_all(&db, tenant, Scope::All, false, |_| ControlFlow::Continue(())),
    );

    let resolved = one.unwrap().count.unwrap() + two.unwrap().count.unwrap();
    assert_eq!(resolved, 900);
    assert_eq!(w.entries().await.len(), 300);
    let linked = "SELECT CAST(COUNT(*) AS TEXT) FROM dead_letter d JOIN work_queue w
        ON w.id = d.work_queue_id AND w.manifest_id = d.manifest_id WHERE d.status = 'retried'";
    assert_eq!(w.store.rows(linked).await, ["900"]);
}

/// L9: a note has at most 1000 characters, or nothing is acknowledged; else each is counted.
async fn acknowledging_takes_a_note_of_a_thousand_characters(w: Arc<World>) {
    let (_, ids) = w.given_up("a", 3).await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let (fits, long) = ("é".repeat(1_000), "é".repeat(1_001));

    let expected = "The note is 1001 characters; it may be at most 1000 characters.";
    let one = acknowledge(db, tenant, ids[0], Some(&long)).await.unwrap();
    assert_eq!((one.is_done, one.message.as_str()), (false, expected));
    for refused in [
        acknowledge_batch(db, tenant, &ids, Some(&long)).await.unwrap(),
        acknowledge_all(db, tenant, Scope::All, Some(&long)).await.unwrap(),
    ] {
        assert_eq!(
            (refused.is_done, refused.count, refused.message.as_str()),
            (false, Some(0), expected)
        );
    }
    assert_eq!(w.letters().await, ["awaiting_intervention -"; 3]);

    let one = acknowledge(db, tenant, ids[0], Some(&fits)).await.unwrap();
    assert_eq!(one.message, "Dead letter acknowledged");
    let batch = acknowledge_batch(db, tenant, &ids[..2], None).await.unwrap();
    assert_eq!((batch.count, batch.message.as_str()), (Some(1), "1 dead letter(s) acknowledged"));
    let all = acknowledge_all(db, tenant, Scope::All, Some("rest")).await.unwrap();
    assert_eq!((all.count, all.message.as_str()), (Some(1), "1 dead letter(s) acknowledged"));
    let gone = acknowledge(db, tenant, ids[0], None).await.unwrap();
    assert_eq!(gone.message, "Dead letter not found or already resolved");
    assert_eq!(
        w.letters().await,
        [
            format!("acknowledged {fits}"),
            "acknowledged -".to_owned(),
            "acknowledged rest".to_owned()
        ]
    );
}

/// L2: acknowledging frees what nothing else blocks, and only that.
async fn acknowledging_frees_what_nothing_else_blocks(w: Arc<World>) {
    let (free, _) = w.given_up("free", 1).await;
    let (busy, _) = w.given_up("busy", 1).await;
    let (disabled, _) = w.given_up("disabled", 1).await;
    w.trigger(busy).await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    w.store.write(async |tx| manifests::set_enabled(tx, tenant, disabled, false).await).await;

    acknowledge_all(db, tenant, Scope::All, None).await.unwrap();

    let due = "SELECT external_id FROM manifest WHERE next_due_at IS NOT NULL";
    assert_eq!(w.store.rows(due).await, ["free"]);
    assert!(free < busy);
}

engine_cases!(
    a_dead_letter_blocks_its_manifest_until_it_is_resolved,
    a_requeue_runs_the_manifest_at_once,
    a_queued_entry_is_in_the_way_of_a_requeue,
    a_batch_folds_by_manifest,
    a_batch_has_from_one_to_a_thousand_ids,
    requeueing_all_goes_by_pages_of_manifests,
    two_that_requeue_all_at_once_share_the_work,
    acknowledging_takes_a_note_of_a_thousand_characters,
    acknowledging_frees_what_nothing_else_blocks,
);
