//! Dead letters: awaiting, acknowledged, or linked to exactly one entry.

use std::collections::BTreeMap;
use std::time::Duration;

use trax::model::ids::{DeadLetterId, ManifestId};
use trax::store::dead_letters::{
    acknowledge, add, count_awaiting, detail, list, list_of_manifest, purge, resolve_as_retried,
};
use trax::store::queue::{NewEntry, queued_of};
use trax::store::resolve::{
    Requeued, Which, acknowledge_page, awaiting_manifests, count, newest, preview, requeue,
};
use trax::store::{DeadLetterStatus, StoreError, tenants};

use super::world::World;

async fn dead_letter(w: &World, manifest: ManifestId) -> DeadLetterId {
    w.write(async |tx| {
        add(tx, w.tenant, manifest, 4, "Max retries exceeded: (4) failures > (3) max retries").await
    })
    .await
}

/// L2: only what awaits somebody is resolved, and once.
async fn a_dead_letter_is_resolved_once(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let manifest = w.manifest("nightly").await;
    let [one, two] = [dead_letter(&w, manifest).await, dead_letter(&w, manifest).await];
    let entry = w.entry(Some(manifest)).await;

    w.write(async |tx| resolve_as_retried(tx, w.tenant, one, entry).await).await;
    w.write(async |tx| acknowledge(tx, w.tenant, two, "seen").await).await;

    let retried = w.read(async |tx| detail(tx, w.tenant, one).await).await;
    assert_eq!((retried.status, retried.work_queue_id), (DeadLetterStatus::Retried, Some(entry)));
    assert_eq!(retried.resolution_note, Some(format!("Re-queued (WorkQueue {entry})")));
    let seen = w.read(async |tx| detail(tx, w.tenant, two).await).await;
    assert_eq!((seen.status, seen.resolved_at), (DeadLetterStatus::Acknowledged, Some(now)));
    for again in [
        w.try_write(async |tx| acknowledge(tx, w.tenant, one, "seen").await).await,
        w.try_write(async |tx| resolve_as_retried(tx, w.tenant, two, entry).await).await,
    ] {
        let error = again.unwrap_err();
        assert!(
            matches!(error, StoreError::WrongState { expected: "awaiting intervention", .. }),
            "{error:?}"
        );
    }
}

/// L6: the dead letters of one manifest fold into the entry that the newest carries.
async fn dead_letters_of_a_manifest_fold_into_one_entry(w: World) {
    let [a, b] = [w.manifest("a").await, w.manifest("b").await];
    let [one, two] = [dead_letter(&w, a).await, dead_letter(&w, a).await];
    dead_letter(&w, b).await;
    w.entry(Some(b)).await;
    let page = w.read(async |tx| awaiting_manifests(tx, w.tenant, ManifestId(0), 10).await).await;
    assert_eq!(page, [a, b]);
    let first = w.read(async |tx| awaiting_manifests(tx, w.tenant, a, 1).await).await;
    assert_eq!(first, [b]);

    let seen = w.read(async |tx| preview(tx, w.tenant, Which::Of(&page)).await).await;
    let done =
        w.write(async |tx| requeue(tx, w.tenant, Which::Of(&page), &BTreeMap::new()).await).await;

    assert_eq!(done, Requeued { resolved: 2, folded: 1, skipped: 1, ask_afresh: 0 });
    assert_eq!(seen, done);
    let entry = w.read(async |tx| queued_of(tx, a).await).await.unwrap();
    let note = async |id| w.read(async |tx| detail(tx, w.tenant, id).await).await.resolution_note;
    assert_eq!(
        note(one).await,
        Some(format!("Re-queued with dead letter {two} (WorkQueue {entry})"))
    );
    assert_eq!(note(two).await, Some(format!("Re-queued (WorkQueue {entry})")));
    assert_eq!(w.read(async |tx| count_awaiting(tx, w.tenant).await).await, 1);
    assert_eq!(w.read(async |tx| count(tx, w.tenant, Which::Of(&page)).await).await, 1);
    let of_a = w.read(async |tx| list_of_manifest(tx, w.tenant, a, None, Some(two), 9).await).await;
    assert_eq!(of_a.iter().map(|d| d.id).collect::<Vec<_>>(), [one]);
}

/// L9: acknowledging all goes by pages of ids, up to what there was when it began.
async fn acknowledging_all_goes_by_pages(w: World) {
    let manifest = w.manifest("nightly").await;
    for _ in 0..5 {
        dead_letter(&w, manifest).await;
    }
    let last = w.read(async |tx| newest(tx, w.tenant).await).await.unwrap();
    let arrived = dead_letter(&w, manifest).await;
    let page = async |after| {
        let note = Some("seen");
        w.write(async |tx| acknowledge_page(tx, w.tenant, after, last, note, 3).await).await
    };

    let first = page(DeadLetterId(0)).await.unwrap();
    let second = page(first.last).await.unwrap();

    assert_eq!((first.count, second.count, second.last), (3, 2, last));
    assert_eq!(page(second.last).await, None);
    let awaiting = Some(DeadLetterStatus::AwaitingIntervention);
    let left = w.read(async |tx| list(tx, w.tenant, awaiting, None, 10).await).await;
    assert_eq!(left.iter().map(|d| d.id).collect::<Vec<_>>(), [arrived]);
    let seen = w.read(async |tx| list(tx, w.tenant, None, Some(arrived), 2).await).await;
    assert_eq!(seen.len(), 2);
}

/// W25: what was resolved long ago is purged, but nothing that awaits somebody or whose entry is still queued.
async fn a_purge_leaves_what_is_still_needed(w: World) {
    w.advance(Duration::ZERO).await;
    let [a, b] = [w.manifest("a").await, w.manifest("b").await];
    let acknowledged = dead_letter(&w, a).await;
    w.write(async |tx| acknowledge(tx, w.tenant, acknowledged, "seen").await).await;
    let done = dead_letter(&w, a).await;
    let new =
        NewEntry { manifest: Some(a), dead_letter: Some(done), ..NewEntry::new(w.tenant, "train") };
    let entry = w.enqueue(&new).await;
    w.write(async |tx| resolve_as_retried(tx, w.tenant, done, entry).await).await;
    let host = w.host("one").await;
    w.claim(&host, 1).await;
    let queued = dead_letter(&w, b).await;
    let waiting = w.entry(Some(b)).await;
    w.write(async |tx| resolve_as_retried(tx, w.tenant, queued, waiting).await).await;
    let awaiting = dead_letter(&w, b).await;
    let later = w.advance(Duration::from_mins(1)).await;

    let purged = w.write(async |tx| purge(tx, later, 10).await).await;

    assert_eq!(purged, 2);
    let left = w.read(async |tx| list(tx, w.tenant, None, None, 10).await).await;
    assert_eq!(left.iter().map(|d| d.id).collect::<Vec<_>>(), [awaiting, queued]);
    assert_eq!(
        w.rows("SELECT CAST(dead_letter_id AS TEXT) FROM work_queue ORDER BY id").await,
        ["-", "-"]
    );
}

async fn dead_letters_stay_in_their_tenant(w: World) {
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let manifest = w.manifest("nightly").await;
    let mine = dead_letter(&w, manifest).await;

    let hidden = w.try_write(async |tx| acknowledge(tx, other, mine, "seen").await).await;

    assert!(matches!(hidden, Err(StoreError::NotFound { .. })), "{hidden:?}");
    assert_eq!(w.read(async |tx| count_awaiting(tx, other).await).await, 0);
    assert_eq!(w.read(async |tx| count_awaiting(tx, w.tenant).await).await, 1);
}

on_both!(
    a_dead_letter_is_resolved_once,
    dead_letters_of_a_manifest_fold_into_one_entry,
    acknowledging_all_goes_by_pages,
    a_purge_leaves_what_is_still_needed,
    dead_letters_stay_in_their_tenant,
);
