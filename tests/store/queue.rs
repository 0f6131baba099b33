//! Queueing: one entry per manifest, one link per run, and delays on the database's clock.

use std::time::Duration;

use trax::model::ids::{EntryId, RunId};
use trax::store::queue::{
    Enqueued, NewEntry, PRIORITY_MAX, Triggered, When, cancel, confirm, depth, detail, enqueue,
    list, new_id, postpone, trigger,
};
use trax::store::{EntryStatus, StoreError, staged, tenants};

use super::world::World;

async fn scheduled_at(w: &World, entry: EntryId) -> Option<trax::model::timestamp::Timestamp> {
    w.read(async |tx| detail(tx, w.tenant, entry).await).await.scheduled_at
}

/// R23, R24, R25: a delay is added to the database's now; no delay stores none, whatever a clock says.
async fn a_delay_is_the_databases_now_and_the_delay(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let new = NewEntry::new(w.tenant, "train");
    let minute = Duration::from_mins(1);

    let later = w.enqueue(&NewEntry { when: When::After(minute), ..new.clone() }).await;
    let at_once = w.enqueue(&NewEntry { when: When::After(Duration::ZERO), ..new.clone() }).await;
    let at = w.enqueue(&NewEntry { when: When::At(now), ..new.clone() }).await;

    assert_eq!(scheduled_at(&w, later).await, Some(now.saturating_add(minute)));
    assert_eq!(scheduled_at(&w, at_once).await, None);
    assert_eq!(scheduled_at(&w, at).await, Some(now));
    let host = w.host("one").await;
    assert_eq!(
        w.claim(&host, 10).await.iter().map(|run| run.entry).collect::<Vec<_>>(),
        [at_once, at]
    );
    w.advance(minute).await;
    assert_eq!(w.claim(&host, 10).await.iter().map(|run| run.entry).collect::<Vec<_>>(), [later]);
}

/// M34, M9: a manifest has one queued entry, and is not due as long as it has.
async fn a_manifest_is_queued_once(w: World) {
    let manifest = w.manifest("nightly").await;
    w.sql("UPDATE manifest SET next_due_at = last_successful_run, last_successful_run = NULL")
        .await
        .unwrap();
    let entry = w.entry(Some(manifest)).await;

    let new = NewEntry { manifest: Some(manifest), ..NewEntry::new(w.tenant, "train") };
    let again = w.write(async |tx| enqueue(tx, &new).await).await;
    let raw = w
        .sql(&format!(
            "INSERT INTO work_queue (tenant_id, external_id, train_name, manifest_id, occurrence_id)
             VALUES (1, '{}', 'train', {manifest}, 'o')",
            new_id().unwrap()
        ))
        .await;

    assert_eq!(again, Enqueued::ManifestQueued(entry));
    assert!(raw.is_err());
    assert_eq!(w.rows("SELECT CAST(next_due_at AS TEXT) FROM manifest").await, ["-"]);
}

/// R87, R88: at most one queued entry replays a run; whoever comes second asks afresh.
async fn a_run_is_replayed_by_one_queued_entry(w: World) {
    let new = NewEntry { replay_decisions_of: Some(RunId(7)), ..NewEntry::new(w.tenant, "train") };
    w.enqueue(&new).await;

    let second = w.write(async |tx| enqueue(tx, &new).await).await;
    let raw = w.sql("UPDATE work_queue SET replay_decisions_of = 7").await;

    assert!(matches!(
        second,
        Enqueued::Created { asks_afresh: true, starts_at_the_top: false, .. }
    ));
    assert!(raw.is_err());
    let rows = w.rows("SELECT CAST(replay_decisions_of AS TEXT) FROM work_queue ORDER BY id").await;
    assert_eq!(rows, ["7", "-"]);
}

/// R100, R101: at most one queued entry resumes a run; a retry that comes second starts at the top.
async fn a_run_is_resumed_by_one_queued_entry(w: World) {
    let new = NewEntry {
        resume_from: Some(RunId(7)),
        resume_at: Some("Pay#0"),
        ..NewEntry::new(w.tenant, "train")
    };
    w.enqueue(&new).await;

    let second = w.write(async |tx| enqueue(tx, &new).await).await;
    let raw = w.sql("UPDATE work_queue SET resume_from = 7").await;

    assert!(matches!(
        second,
        Enqueued::Created { asks_afresh: false, starts_at_the_top: true, .. }
    ));
    assert!(raw.is_err());
    let rows =
        w.rows("SELECT CAST(resume_from AS TEXT), resume_at FROM work_queue ORDER BY id").await;
    assert_eq!(rows, ["7 Pay#0", "- -"]);
}

async fn the_same_external_id_is_the_same_entry(w: World) {
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let id = new_id().unwrap();
    let new = NewEntry { external_id: Some(&id), ..NewEntry::new(w.tenant, "train") };
    let entry = w.enqueue(&new).await;

    assert_eq!(w.write(async |tx| enqueue(tx, &new).await).await, Enqueued::ExternalIdTaken(entry));
    // Another tenant's ids are its own.
    w.enqueue(&NewEntry { tenant: other, ..new }).await;
}

/// M34: a trigger queues an entry, or brings the queued one forward, and never pushes it back.
async fn a_trigger_uses_the_entry_that_is_queued(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let hour = Duration::from_hours(1);
    let manifest = w.manifest("nightly").await;
    let new = NewEntry::new(w.tenant, "train");
    let pull =
        async |delay| w.write(async |tx| trigger(tx, manifest, delay, false, &new).await).await;

    let Triggered::Created { entry, scheduled_at } = pull(hour).await else { panic!() };
    assert_eq!(scheduled_at, Some(now.saturating_add(hour)));
    let later = pull(hour * 2).await;
    let sooner = pull(Duration::ZERO).await;

    let at = Some(now.saturating_add(hour));
    assert_eq!(later, Triggered::Joined { entry, scheduled_at: at, is_moved_forward: false });
    assert_eq!(sooner, Triggered::Joined { entry, scheduled_at: None, is_moved_forward: true });
    assert!(w.read(async |tx| detail(tx, w.tenant, entry).await).await.is_explicit_trigger);
}

/// R81: a trigger that asks afresh takes the link from the queued retry.
async fn a_trigger_can_ask_afresh(w: World) {
    let manifest = w.manifest("nightly").await;
    let retry = NewEntry {
        manifest: Some(manifest),
        replay_decisions_of: Some(RunId(7)),
        ..NewEntry::new(w.tenant, "train")
    };
    let entry = w.enqueue(&retry).await;
    let new = NewEntry::new(w.tenant, "train");

    let link =
        async || w.read(async |tx| detail(tx, w.tenant, entry).await).await.replay_decisions_of;
    w.write(async |tx| trigger(tx, manifest, Duration::ZERO, false, &new).await).await;
    assert_eq!(link().await, Some(RunId(7)));
    w.write(async |tx| trigger(tx, manifest, Duration::ZERO, true, &new).await).await;
    assert_eq!(link().await, None);
}

/// P6: what is staged waits until it is confirmed, and what was cancelled stays so.
async fn a_staged_entry_waits_to_be_confirmed(w: World) {
    let host = w.host("one").await;
    let staged = NewEntry { is_confirmed: false, ..NewEntry::new(w.tenant, "train") };
    let kept = w.enqueue(&staged).await;
    let dropped = w.enqueue(&staged).await;
    assert!(w.claim(&host, 10).await.is_empty());

    w.write(async |tx| cancel(tx, w.tenant, dropped).await).await;
    assert!(!w.write(async |tx| confirm(tx, w.tenant, dropped).await).await);
    assert!(w.write(async |tx| confirm(tx, w.tenant, kept).await).await);

    assert_eq!(w.claim(&host, 10).await.len(), 1);
    let late = w.try_write(async |tx| cancel(tx, w.tenant, kept).await).await.unwrap_err();
    assert_eq!(
        late.to_string(),
        format!("work queue entry {kept} is not queued, so nothing was changed")
    );
}

/// J10: an entry that this host cannot read waits for another, and each try counts.
async fn an_entry_can_be_postponed(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let entry = w.entry(None).await;
    let minute = Duration::from_mins(1);

    assert_eq!(w.write(async |tx| postpone(tx, entry, minute).await).await, Some(1));
    assert_eq!(w.write(async |tx| postpone(tx, entry, minute).await).await, Some(2));

    assert_eq!(scheduled_at(&w, entry).await, Some(now.saturating_add(minute)));
    w.write(async |tx| cancel(tx, w.tenant, entry).await).await;
    assert_eq!(w.write(async |tx| postpone(tx, entry, minute).await).await, None);
}

async fn lists_page_by_key_and_stay_in_the_tenant(w: World) {
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let mut entries = Vec::new();
    for priority in [0, 99, -3] {
        entries.push(w.enqueue(&NewEntry { priority, ..NewEntry::new(w.tenant, "train") }).await);
    }
    let theirs = w.enqueue(&NewEntry::new(other, "train")).await;
    w.write(async |tx| cancel(tx, w.tenant, entries[0]).await).await;

    let queued = Some(EntryStatus::Queued);
    let page = w.read(async |tx| list(tx, w.tenant, None, None, 2).await).await;
    let next = w.read(async |tx| list(tx, w.tenant, None, Some(entries[1]), 2).await).await;
    let only = w.read(async |tx| list(tx, w.tenant, queued, Some(entries[2]), 2).await).await;

    assert_eq!(
        page.iter().map(|e| (e.id, e.priority)).collect::<Vec<_>>(),
        [(entries[2], 0), (entries[1], PRIORITY_MAX)]
    );
    assert_eq!(next.iter().map(|e| e.id).collect::<Vec<_>>(), [entries[0]]);
    assert_eq!(only.iter().map(|e| e.id).collect::<Vec<_>>(), [entries[1]]);
    assert_eq!(w.read(async |tx| depth(tx, w.tenant, 100).await).await, 2);
    assert_eq!(w.read(async |tx| depth(tx, w.tenant, 1).await).await, 1);
    let mut tx = w.db.read().await.unwrap();
    let hidden = detail(&mut tx, w.tenant, theirs).await;
    assert!(matches!(hidden, Err(StoreError::NotFound { .. })), "{hidden:?}");
}

/// M26: an entry that somebody holds keeps no other from being dispatched; it follows when it is let go.
async fn one_entry_that_is_held_keeps_no_other_waiting(w: World) {
    let staged = NewEntry { is_confirmed: false, ..NewEntry::new(w.tenant, "train") };
    let held = w.enqueue(&staged).await;
    for _ in 1..50 {
        w.enqueue(&staged).await;
    }
    let now = w.advance(Duration::from_secs(1)).await;
    let promote = async || w.write(async |tx| staged::promote(tx, now, 1_000).await).await;
    // SQLite has one writer: who holds an entry holds up everybody, but never for long.
    if w.db.is_postgres() {
        let mut open = w.db.begin().await.unwrap();
        let hold = format!("UPDATE work_queue SET priority = 9 WHERE id = {held}");
        open.execute_text(&hold).await.unwrap();
        assert_eq!(promote().await, 49);
        open.commit().await.unwrap();
        assert_eq!(promote().await, 1);
    } else {
        assert_eq!(promote().await, 50);
    }
    assert_eq!(promote().await, 0);
}

on_both!(
    one_entry_that_is_held_keeps_no_other_waiting,
    a_delay_is_the_databases_now_and_the_delay,
    a_manifest_is_queued_once,
    a_run_is_replayed_by_one_queued_entry,
    a_run_is_resumed_by_one_queued_entry,
    the_same_external_id_is_the_same_entry,
    a_trigger_uses_the_entry_that_is_queued,
    a_trigger_can_ask_afresh,
    a_staged_entry_waits_to_be_confirmed,
    an_entry_can_be_postponed,
    lists_page_by_key_and_stay_in_the_tenant,
);
