//! Triggers: runs that somebody asked for, whoever else is at the queue just then.

use std::sync::Arc;
use std::time::Duration;

use trax::model::ids::RunId;
use trax::operations::triggers::{self, Trigger, Triggered};
use trax::store::claim::claim;
use trax::store::groups;
use trax::store::manifests::{self, Schedule};
use trax::store::queue::{self, NewEntry, When};
use trax::store::{EntryStatus, ScheduleType};

use crate::engine::world::{World, at, queued};
use crate::store::world::{group_named, request, statement};

const WORKS: &str = "{}";
const HOUR: u64 = 3_600;

async fn pull(w: &World, delay: u64, asks_afresh: bool) -> Triggered {
    let trigger = Trigger { delay: Duration::from_secs(delay), asks_afresh };
    triggers::manifest(&w.store.db, w.store.tenant, "nightly", trigger).await.unwrap()
}

const QUEUED: &str =
    "SELECT CAST(id AS TEXT) FROM work_queue WHERE status = 'queued' AND is_explicit_trigger";

/// M34, M35, M36: a trigger queues an entry, brings the queued one forward, or leaves it when it is due sooner.
async fn a_trigger_makes_or_takes_over_an_entry(w: Arc<World>) {
    w.manifest("nightly", "train", WORKS, 3).await;

    let made = pull(&w, HOUR, false).await;
    assert_eq!((made.is_created, made.scheduled_at), (true, Some(at(3_600))));
    let entry = made.work_queue_id;
    let due = "due at 2026-01-01T01:00:00Z";
    assert_eq!(
        made.message(),
        format!(
            "Manifest 'nightly' triggered: queued a new run (work queue entry {entry}), {due}."
        )
    );

    let later = pull(&w, 2 * HOUR, false).await;
    assert_eq!((later.is_created, later.is_moved_forward), (false, false));
    assert_eq!(
        later.message(),
        format!(
            "Manifest 'nightly' already had a queued run (work queue entry {entry}), {due}; it now runs as the trigger \
             and nothing more was queued."
        )
    );
    let sooner = pull(&w, 60, false).await;
    assert_eq!((sooner.is_moved_forward, sooner.scheduled_at), (true, Some(at(60))));
    let now = pull(&w, 0, false).await;
    assert_eq!((now.is_moved_forward, now.scheduled_at), (true, None));
    assert_eq!(
        now.message(),
        format!(
            "Manifest 'nightly' already had a queued run (work queue entry {entry}); the trigger brought it forward, now \
             due now, and queued nothing more."
        )
    );
    let again = pull(&w, 0, false).await;
    assert_eq!((again.is_moved_forward, again.work_queue_id), (false, entry));
    assert_eq!(w.store.rows(QUEUED).await, [entry.to_string()]);
}

/// M36: what cannot be is refused in words, and nothing is queued.
async fn a_trigger_that_cannot_be_says_so(w: Arc<World>) {
    w.manifest("nightly", "train", WORKS, 3).await;
    let (db, tenant) = (&w.store.db, w.store.tenant);

    let unknown = triggers::manifest(db, tenant, "daily", Trigger::default()).await.unwrap_err();
    assert_eq!(unknown.to_string(), "Manifest 'daily' not found.");
    let far = Trigger { delay: Duration::from_hours(24 * 365 * 9_000), ..Trigger::default() };
    let late = triggers::manifest(db, tenant, "nightly", far).await.unwrap_err();
    assert_eq!(
        late.to_string(),
        "A delay of 3285000d puts the run past the latest time that can be stored. Nothing was queued."
    );
    let nowhere = triggers::group(db, tenant, trax::model::ids::GroupId(99)).await.unwrap_err();
    assert_eq!(nowhere.to_string(), "Manifest group 99 not found.");
    assert_eq!(w.store.rows(QUEUED).await, [""; 0]);
}

/// M34: a triggered entry has its manifest's priority and input, runs once its delay on the database's clock is over,
/// and runs although its manifest is disabled.
async fn a_triggered_entry_is_the_manifests(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let manifest = w.manifest("nightly", "probe", WORKS, 3).await;
    w.store.sql("UPDATE manifest SET priority = 11, schedule_type = 'dependent'").await.unwrap();
    let tenant = w.store.tenant;
    w.store.write(async |tx| manifests::set_enabled(tx, tenant, manifest, false).await).await;

    let made = pull(&w, 60, false).await;
    let entry = w.store.read(async |tx| queue::detail(tx, tenant, made.work_queue_id).await).await;
    assert_eq!((entry.priority, entry.is_explicit_trigger), (11, true));
    assert_eq!((entry.replay_decisions_of, entry.resume_from), (None, None));
    w.advance(59).await;
    assert_eq!(host.dispatch().await, 0);
    w.advance(1).await;
    assert_eq!(host.dispatch().await, 1);
    host.workers.idle().await;
    assert_eq!(w.states().await, "completed");
}

/// M36: a trigger that asks afresh takes the link of the queued retry.
async fn a_trigger_can_ask_afresh(w: Arc<World>) {
    let manifest = w.manifest("nightly", "train", WORKS, 3).await;
    let new = NewEntry {
        manifest: Some(manifest),
        replay_decisions_of: Some(RunId(7)),
        when: When::After(Duration::from_mins(5)),
        ..NewEntry::new(w.store.tenant, "train")
    };
    let entry = w.store.enqueue(&new).await;
    let link = async || {
        let read = async |tx: &mut _| queue::detail(tx, w.store.tenant, entry).await;
        w.store.read(read).await.replay_decisions_of
    };

    pull(&w, 0, false).await;
    assert_eq!(link().await, Some(RunId(7)));
    let triggered = pull(&w, 0, true).await;
    assert_eq!((link().await, triggered.replay_decisions_of), (None, None));
}

/// M37: a group's trigger runs its enabled members that run by themselves; what is queued is released, and not counted.
async fn a_groups_trigger_runs_its_members(w: Arc<World>) {
    let tenant = w.store.tenant;
    let types = [
        ("none", ScheduleType::None),
        ("cron", ScheduleType::Cron),
        ("interval", ScheduleType::Interval),
        ("on demand", ScheduleType::OnDemand),
        ("once", ScheduleType::Once),
        ("dependent", ScheduleType::Dependent),
        ("dormant", ScheduleType::DormantDependent),
        ("disabled", ScheduleType::OnDemand),
        ("queued", ScheduleType::OnDemand),
    ];
    let group = w
        .store
        .write(async |tx| {
            let group = groups::upsert(tx, &group_named(tenant, "group")).await?;
            for (name, schedule_type) in types {
                let mut stated = statement(tenant, name, group);
                stated.schedule = Schedule::new(schedule_type);
                stated.is_enabled = Some(name != "disabled");
                let manifest = manifests::upsert(tx, &stated).await?;
                if name == "queued" {
                    let new = NewEntry {
                        manifest: Some(manifest),
                        when: When::After(Duration::from_hours(1)),
                        ..NewEntry::new(tenant, "train")
                    };
                    queue::enqueue(tx, &new).await?;
                }
            }
            Ok(group)
        })
        .await;

    let counts = triggers::group(&w.store.db, tenant, group).await.unwrap();

    assert_eq!((counts.matched, counts.queued, counts.already_queued), (6, 5, 1));
    let names = "SELECT m.external_id FROM work_queue w JOIN manifest m ON m.id = w.manifest_id
        WHERE w.is_explicit_trigger AND w.scheduled_at IS NULL ORDER BY m.id";
    let expected = ["none", "cron", "interval", "on demand", "once", "queued"];
    assert_eq!(w.store.rows(names).await, expected);
}

/// M38: the success of a triggered run moves the schedule, and so does its cancellation.
async fn a_triggered_run_moves_the_schedule(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", WORKS, 3).await;
    host.pass().await;
    w.advance(1_800).await;
    pull(&w, 0, false).await;
    host.pass().await;
    assert_eq!(w.states().await, "completed completed");
    w.advance(HOUR - 1).await;
    assert_eq!(queued(&host.manage().await).len(), 0);
    w.advance(1).await;
    assert_eq!(queued(&host.manage().await), ["run"]);
    host.dispatch().await;
    host.workers.idle().await;

    w.advance(1_800).await;
    w.set_input("nightly", r#"{"acts":{"Act":["loop_until_cancelled",{"fail":{}}]}}"#).await;
    pull(&w, 0, false).await;
    host.dispatch().await;
    host.cancel_all(&w).await;
    w.advance(HOUR - 1).await;
    assert_eq!(queued(&host.manage().await).len(), 0);
    w.advance(1).await;
    assert_eq!(queued(&host.manage().await), ["run"]);
}

/// M34: triggers and managers that come at once make one entry, which runs as the trigger.
async fn a_trigger_and_managers_make_one_entry(w: Arc<World>) {
    let [mut one, mut two] = [w.host("one").await, w.host("two").await];
    let manifest = w.manifest("nightly", "train", WORKS, 3).await;
    for _ in 0..15 {
        let (_, _, first, second) =
            tokio::join!(one.manage(), two.manage(), pull(&w, 0, false), pull(&w, 60, false),);

        assert_eq!(first.work_queue_id, second.work_queue_id);
        assert_eq!(w.store.rows(QUEUED).await, [first.work_queue_id.to_string()]);
        let read = async |tx: &mut _| queue::detail(tx, w.store.tenant, first.work_queue_id).await;
        let entry = w.store.read(read).await;
        assert_eq!((entry.status, entry.scheduled_at), (EntryStatus::Queued, None));
        w.store.sql("UPDATE work_queue SET status = 'cancelled'").await.unwrap();
        w.settle_due(manifest).await;
    }
}

/// M2: managers that pass at once queue what is due once.
async fn managers_that_pass_at_once_queue_once(w: Arc<World>) {
    let [mut one, mut two] = [w.host("one").await, w.host("two").await];
    for n in 0..20 {
        w.manifest(&format!("m{n}"), "train", WORKS, 3).await;
    }
    let (first, second) = tokio::join!(one.manage(), two.manage());
    assert_eq!(first.len() + second.len(), 20);
    let entries = "SELECT CAST(COUNT(*) AS TEXT) FROM work_queue";
    assert_eq!(w.store.rows(entries).await, ["20"]);
}

/// J8: dispatchers that pass at once start every entry once.
async fn dispatchers_that_pass_at_once_start_everything_once(w: Arc<World>) {
    w.deploy("probe").await;
    let [mut one, mut two] = [w.host("one").await, w.host("two").await];
    for _ in 0..40 {
        let new = NewEntry { input: Some(WORKS), ..NewEntry::new(w.store.tenant, "probe") };
        w.store.enqueue(&new).await;
    }
    let mut started = 0;
    while started < 40 {
        let (first, second) = tokio::join!(one.dispatch(), two.dispatch());
        assert!(first + second > 0);
        started += first + second;
        tokio::join!(one.workers.idle(), two.workers.idle());
    }
    assert_eq!(w.states().await, ["completed"; 40].join(" "));
}

/// M35, M36, R82: a trigger that meets the claim of the queued entry changes nothing, and says what is replayed. On
/// SQLite it comes before the claim or after, never into it: after it, it queues another run.
async fn a_trigger_that_meets_a_claim_changes_nothing(w: Arc<World>) {
    let manifest = w.manifest("nightly", "train", WORKS, 3).await;
    let (db, tenant) = (w.store.db.clone(), w.store.tenant);
    let host = crate::store::world::host("one");
    w.store.host("one").await;
    let new = NewEntry {
        manifest: Some(manifest),
        replay_decisions_of: Some(RunId(42)),
        ..NewEntry::new(tenant, "train")
    };
    let entry = w.store.enqueue(&new).await;

    let mut tx = db.begin().await.unwrap();
    let claimed = claim(&mut tx, &request(tenant, &host, 1)).await.unwrap();
    assert_eq!(claimed.runs[0].entry, entry);
    let other = Arc::clone(&w);
    let trigger = tokio::spawn(async move { pull(&other, 0, true).await });
    if db.is_postgres() {
        // Until it waits for the row.
        let waiting = "SELECT CAST(COUNT(*) AS TEXT) FROM pg_locks WHERE NOT granted";
        while w.store.rows(waiting).await == ["0"] {
            tokio::task::yield_now().await;
        }
    }
    tx.commit().await.unwrap();
    let triggered = trigger.await.unwrap();

    if db.is_postgres() {
        assert!(triggered.is_already_dispatched);
        assert_eq!(
            (triggered.work_queue_id, triggered.replay_decisions_of),
            (entry, Some(RunId(42)))
        );
        let text = format!(
            "Manifest 'nightly' triggered, but the dispatcher had already claimed its queued retry (work queue entry \
             {entry}), so that run replays the decisions of execution 42 rather than asking its deciders afresh."
        );
        assert_eq!(triggered.message(), text);
        assert_eq!(w.store.rows(QUEUED).await, [""; 0]);
    } else {
        assert!(triggered.is_created);
    }
}

engine_cases!(
    a_trigger_makes_or_takes_over_an_entry,
    a_trigger_that_cannot_be_says_so,
    a_triggered_entry_is_the_manifests,
    a_trigger_can_ask_afresh,
    a_groups_trigger_runs_its_members,
    a_triggered_run_moves_the_schedule,
    a_trigger_and_managers_make_one_entry,
    managers_that_pass_at_once_queue_once,
    dispatchers_that_pass_at_once_start_everything_once,
    a_trigger_that_meets_a_claim_changes_nothing,
);
