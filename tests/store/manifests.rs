//! Manifests: what is stated, what is kept, what is due, and what their runs came to.

use std::time::Duration;

use trax::model::failure::Failure;
use trax::model::ids::{ManifestId, RunId};
use trax::model::timestamp::Timestamp;
use trax::store::dispatch::DISPATCH_REQUEUED;
use trax::store::due::{due, history, latest_finished};
use trax::store::groups::{self, GroupStatement};
use trax::store::manifests::{
    Manifest, Schedule, Setting, Statement, detail, list, of_external_id, record_success, set_due,
    set_enabled, set_next_scheduled_run, set_replay_decisions_on_retry, upsert,
};
use trax::store::queue::NewEntry;
use trax::store::runs::{cancel, complete, fail};
use trax::store::{ScheduleType, StoreError, TrainState, dead_letters, tenants};

use super::world::{World, group_named, statement};

async fn stored(w: &World, manifest: ManifestId) -> Manifest {
    w.read(async |tx| detail(tx, w.tenant, manifest).await).await
}

/// M27: what is not stated again stays; what is stated, even as none, is stored.
async fn a_manifest_keeps_what_is_not_stated_again(w: World) {
    let group = w.write(async |tx| groups::upsert(tx, &group_named(w.tenant, "g")).await).await;
    let bare = statement(w.tenant, "nightly", group);
    let full = Statement {
        is_enabled: Some(false),
        max_retries: Some(7),
        timeout_seconds: Setting::Set(60),
        priority: Some(4),
        failure_window_seconds: Setting::Set(3600),
        replay_decisions_on_retry: Some(false),
        ..bare.clone()
    };
    let facts = |m: Manifest| {
        (
            m.is_enabled,
            m.max_retries,
            m.timeout_seconds,
            m.priority,
            m.failure_window_seconds,
            m.replay_decisions_on_retry,
        )
    };
    let state = async |stated: &Statement<'_>| {
        let id = w.write(async |tx| upsert(tx, stated).await).await;
        facts(stored(&w, id).await)
    };

    assert_eq!(state(&bare).await, (true, 3, None, 0, None, true));
    assert_eq!(state(&full).await, (false, 7, Some(60), 4, Some(3600), false));
    assert_eq!(state(&bare).await, (false, 7, Some(60), 4, Some(3600), false));
    let cleared = Statement {
        timeout_seconds: Setting::Clear,
        failure_window_seconds: Setting::Clear,
        ..bare
    };
    assert_eq!(state(&cleared).await, (false, 7, None, 4, None, false));
}

async fn schedule_train_and_input_always_come_from_the_statement(w: World) {
    let group = w.write(async |tx| groups::upsert(tx, &group_named(w.tenant, "g")).await).await;
    let first = statement(w.tenant, "nightly", group);
    let id = w.write(async |tx| upsert(tx, &first).await).await;
    let at = Timestamp::from_micros(1_700_000_000_000_000).unwrap();
    let schedule = Schedule {
        cron_expression: Some("0 7 * * *".to_owned()),
        time_zone: "Europe/Berlin".to_owned(),
        interval_seconds: Some(5),
        scheduled_at: Some(at),
        exclusions: Some("[]".to_owned()),
        ..Schedule::new(ScheduleType::Cron)
    };
    let second = Statement {
        train: "other",
        input: Some("{\"n\":2}"),
        schedule,
        owner: Some("shop"),
        is_dead_letter_on_permanent: true,
        ..first
    };

    assert_eq!(w.write(async |tx| upsert(tx, &second).await).await, id);

    let m = w.read(async |tx| of_external_id(tx, w.tenant, "nightly").await).await;
    assert_eq!(
        (m.name.as_str(), m.properties.as_deref(), m.owner.as_deref()),
        ("other", Some("{\"n\":2}"), Some("shop"))
    );
    assert_eq!(
        (m.schedule_type, m.scheduled_at, m.time_zone.as_str()),
        (ScheduleType::Cron, Some(at), "Europe/Berlin")
    );
    assert_eq!(m.dead_letter_on.as_deref(), Some("permanent"));
}

async fn groups_keep_what_is_not_stated_again(w: World) {
    let bare = group_named(w.tenant, "g");
    let full = GroupStatement {
        max_active_jobs: Setting::Set(3),
        priority: Some(9),
        is_enabled: Some(false),
        ..bare.clone()
    };
    let state = async |stated: &GroupStatement<'_>| {
        w.write(async |tx| groups::upsert(tx, stated).await).await;
        let g = w.read(async |tx| groups::list(tx, w.tenant).await).await.remove(0);
        (g.max_active_jobs, g.priority, g.is_enabled)
    };

    assert_eq!(state(&bare).await, (None, 0, true));
    assert_eq!(state(&full).await, (Some(3), 9, false));
    assert_eq!(state(&bare).await, (Some(3), 9, false));
    assert_eq!(
        state(&GroupStatement { max_active_jobs: Setting::Clear, ..bare }).await,
        (None, 9, false)
    );
}

/// M9: what is due comes longest first; disabled or dead-lettered, a manifest is not due.
async fn due_is_an_index(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let second = Duration::from_secs(1);
    let [a, b, c] = [w.manifest("a").await, w.manifest("b").await, w.manifest("c").await];
    w.write(async |tx| {
        set_due(tx, a, Some(now)).await?;
        set_due(tx, b, Some(now.saturating_sub(second))).await?;
        set_due(tx, c, Some(now.saturating_add(second))).await
    })
    .await;
    let due_now = async || -> Vec<ManifestId> {
        w.read(async |tx| due(tx, 10).await).await.iter().map(|manifest| manifest.id).collect()
    };

    assert_eq!(due_now().await, [b, a]);
    w.advance(second).await;
    assert_eq!(due_now().await, [b, a, c]);
    w.write(async |tx| set_enabled(tx, w.tenant, a, false).await).await;
    w.write(async |tx| dead_letters::add(tx, w.tenant, b, 1, "r").await).await;
    assert_eq!(due_now().await, [c]);
    let missing =
        w.try_write(async |tx| set_enabled(tx, w.tenant, ManifestId(99), false).await).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
}

/// W6: a success moves the anchor to the database's now; a one-off is disabled by it.
async fn a_success_moves_the_anchor(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let next = now.saturating_add(Duration::from_mins(1));
    let hourly = w.manifest("hourly").await;
    let once = w.manifest("once").await;
    w.sql("UPDATE manifest SET schedule_type = 'once' WHERE external_id = 'once'").await.unwrap();

    w.write(async |tx| record_success(tx, hourly, Some(now), Some(next)).await).await;
    w.write(async |tx| record_success(tx, once, None, None).await).await;

    let m = stored(&w, hourly).await;
    assert_eq!(
        (m.is_enabled, m.last_successful_run, m.next_scheduled_run),
        (true, Some(now), Some(next))
    );
    let m = stored(&w, once).await;
    assert_eq!(
        (m.is_enabled, m.last_successful_run, m.next_scheduled_run),
        (false, Some(now), None)
    );
    w.write(async |tx| set_next_scheduled_run(tx, once, Some(next)).await).await;
    assert_eq!(stored(&w, once).await.next_scheduled_run, Some(next));
}

/// R75, R76: opting out takes the link from the queued retry with it, and says how many that were.
async fn opting_out_unlinks_the_queued_retry(w: World) {
    let manifest = w.manifest("nightly").await;
    let new = NewEntry {
        manifest: Some(manifest),
        replay_decisions_of: Some(RunId(7)),
        ..NewEntry::new(w.tenant, "train")
    };
    w.enqueue(&new).await;
    let set = async |on| {
        w.write(async |tx| set_replay_decisions_on_retry(tx, w.tenant, manifest, on).await).await
    };

    assert_eq!(set(true).await, 0);
    assert_eq!(set(false).await, 1);
    assert_eq!(set(false).await, 0);
    assert!(!stored(&w, manifest).await.replay_decisions_on_retry);
    assert_eq!(w.rows("SELECT CAST(replay_decisions_of AS TEXT) FROM work_queue").await, ["-"]);
}

/// R7, R8, R15: failures count in the window, after the last resolved dead letter, and only if delivered.
async fn failures_count_by_window_resolution_and_delivery(w: World) {
    let start = w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    let hour = Duration::from_hours(1);
    let run_fails = async |name: &str| {
        w.entry(Some(manifest)).await;
        let run = w.claim(&host, 1).await.remove(0).claim();
        w.write(async |tx| fail(tx, run, None, &Failure::transient(name, "m")).await).await;
        run.run
    };
    let facts = async |since| w.read(async |tx| history(tx, manifest, since).await).await;

    run_fails("E").await;
    w.advance(hour).await;
    let last = run_fails("E").await;
    run_fails(DISPATCH_REQUEUED).await;
    assert_eq!(facts(start).await.failed_count, 2);
    assert_eq!(facts(start.saturating_add(Duration::from_secs(1))).await.failed_count, 1);
    let latest = w.read(async |tx| latest_finished(tx, manifest).await).await;
    assert_eq!(latest, Some((last, TrainState::Failed)));

    let dead_letter =
        w.write(async |tx| dead_letters::add(tx, w.tenant, manifest, 2, "r").await).await;
    assert!(facts(start).await.has_awaiting_dead_letter);
    w.write(async |tx| dead_letters::acknowledge(tx, w.tenant, dead_letter, "seen").await).await;
    assert_eq!(facts(start).await.failed_count, 0);
    w.advance(hour).await;
    run_fails("E").await;
    assert_eq!(facts(start).await.failed_count, 1);
}

/// M5: the facts the manager decides by.
async fn the_facts_of_a_manifests_runs(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    let facts = async || {
        let h = w.read(async |tx| history(tx, manifest, now).await).await;
        (h.has_queued_work, h.has_active_run, h.has_succeeded, h.last_cancelled_at)
    };

    assert_eq!(facts().await, (false, false, false, None));
    w.entry(Some(manifest)).await;
    assert_eq!(facts().await, (true, false, false, None));
    let run = w.claim(&host, 1).await.remove(0).claim();
    assert_eq!(facts().await, (false, true, false, None));
    w.write(async |tx| complete(tx, run, "{}").await).await;
    assert_eq!(facts().await, (false, false, true, None));
    w.entry(Some(manifest)).await;
    let run = w.claim(&host, 1).await.remove(0).claim();
    w.write(async |tx| cancel(tx, run).await).await;
    assert_eq!(facts().await, (false, false, true, Some(now)));
}

async fn manifests_stay_in_their_tenant(w: World) {
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let [a, b] = [w.manifest("a").await, w.manifest("b").await];
    let group = w.write(async |tx| groups::upsert(tx, &group_named(other, "a")).await).await;
    let theirs = w.write(async |tx| upsert(tx, &statement(other, "a", group)).await).await;

    assert_ne!(theirs, a);
    let mine = w.read(async |tx| list(tx, w.tenant, ManifestId(0), 10).await).await;
    assert_eq!(mine.iter().map(|manifest| manifest.id).collect::<Vec<_>>(), [a, b]);
    let page = w.read(async |tx| list(tx, w.tenant, a, 10).await).await;
    assert_eq!(page.len(), 1);
    let mut tx = w.db.read().await.unwrap();
    assert!(matches!(detail(&mut tx, w.tenant, theirs).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(of_external_id(&mut tx, other, "b").await, Err(StoreError::NotFound { .. })));
}

on_both!(
    a_manifest_keeps_what_is_not_stated_again,
    schedule_train_and_input_always_come_from_the_statement,
    groups_keep_what_is_not_stated_again,
    due_is_an_index,
    a_success_moves_the_anchor,
    opting_out_unlinks_the_queued_retry,
    failures_count_by_window_resolution_and_delivery,
    the_facts_of_a_manifests_runs,
    manifests_stay_in_their_tenant,
);
