//! Schedules: what makes a manifest due, what it waits for, and whose turn it is.

use std::sync::Arc;
use std::time::Duration;

use trax::engine::due;
use trax::model::ids::ManifestId;
use trax::store::manifests::{self, Schedule, Statement};
use trax::store::queue::NewEntry;
use trax::store::{MisfirePolicy, ScheduleType, groups};

use crate::engine::world::{World, queued};
use crate::store::world as store_world;

const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;
const WORKS: &str = "{}";
const LOOPS: &str = r#"{"acts":{"Act":["loop_until_cancelled",{"fail":{}}]}}"#;
const HOUR: u64 = 3_600;
const DAY: Duration = Duration::from_hours(24);

impl World {
    /// States a manifest of the train `probe` in a group, and says when it is due.
    pub(crate) async fn scheduled(
        &self,
        name: &str,
        group: &str,
        input: &str,
        schedule: Schedule,
    ) -> ManifestId {
        let tenant = self.store.tenant;
        let manifest = self
            .store
            .write(async |tx| {
                let group = groups::upsert(tx, &store_world::group_named(tenant, group)).await?;
                let stated = Statement {
                    train: "probe",
                    input: Some(input),
                    input_type: None,
                    schedule: schedule.clone(),
                    ..store_world::statement(tenant, name, group)
                };
                manifests::upsert(tx, &stated).await
            })
            .await;
        let mut tx = self.store.db.begin().await.unwrap();
        due::settle_stated(&mut tx, tenant, manifest, DAY).await.unwrap();
        tx.commit().await.unwrap();
        manifest
    }

    /// States a manifest that depends on another one.
    async fn dependent(&self, name: &str, parent: ManifestId, input: &str) -> ManifestId {
        let schedule =
            Schedule { depends_on: Some(parent), ..Schedule::new(ScheduleType::Dependent) };
        self.scheduled(name, name, input, schedule).await
    }

    /// A column of a manifest as text.
    async fn column(&self, name: &str, column: &str) -> String {
        let sql =
            format!("SELECT CAST({column} AS TEXT) FROM manifest WHERE external_id = '{name}'");
        self.store.rows(&sql).await.remove(0)
    }

    /// Changes manifests as an operator does, and says when they are due.
    async fn change(&self, set: &str, manifest: ManifestId) {
        let sql = format!("UPDATE manifest SET {set} WHERE id = {manifest}");
        self.store.sql(&sql).await.unwrap();
        self.settle_due(manifest).await;
    }

    /// Enables or disables a group of one manifest.
    async fn set_group_enabled(&self, name: &str, is_enabled: bool) {
        let tenant = self.store.tenant;
        let group = self
            .store
            .write(async |tx| {
                let stated = groups::GroupStatement {
                    is_enabled: Some(is_enabled),
                    ..store_world::group_named(tenant, name)
                };
                groups::upsert(tx, &stated).await
            })
            .await;
        let mut tx = self.store.db.begin().await.unwrap();
        due::settle_group(&mut tx, tenant, group, DAY).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// The manifests of the queued entries with their priorities, in order of the entries.
    async fn queue(&self) -> Vec<String> {
        let sql = "SELECT m.external_id, CAST(w.priority AS TEXT) FROM work_queue w
            JOIN manifest m ON m.id = w.manifest_id WHERE w.status = 'queued' ORDER BY w.id";
        self.store.rows(sql).await
    }
}

fn every(seconds: i32) -> Schedule {
    Schedule { interval_seconds: Some(seconds), ..Schedule::new(ScheduleType::Interval) }
}

fn cron(expression: &str) -> Schedule {
    Schedule { cron_expression: Some(expression.to_owned()), ..Schedule::new(ScheduleType::Cron) }
}

/// M13: a cron that is stated anew waits for its first occurrence, also when it is stated again meanwhile.
async fn a_new_cron_waits_for_its_first_occurrence(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.set_clock(1_800);
    w.scheduled("hourly", "hourly", WORKS, cron("0 * * * *")).await;
    let first = w.column("hourly", "next_scheduled_run").await;

    assert!(queued(&host.pass().await).is_empty());
    w.advance(1_799).await;
    w.scheduled("hourly", "hourly", WORKS, cron("0 * * * *")).await;
    assert_eq!(w.column("hourly", "next_scheduled_run").await, first);
    assert!(queued(&host.pass().await).is_empty());
    w.advance(1).await;
    assert_eq!(queued(&host.pass().await), ["run"]);

    // Another expression has another first occurrence.
    w.scheduled("other", "other", WORKS, cron("30 * * * *")).await;
    w.scheduled("other", "other", WORKS, cron("45 * * * *")).await;
    w.advance(1_800).await;
    assert!(queued(&host.pass().await).is_empty());
    w.advance(900).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
}

/// R27, M13: a cron counts from the occurrence that succeeded, so that a late retry skips nothing.
async fn a_late_retry_skips_no_occurrence(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.scheduled("hourly", "hourly", FAILS, cron("0 * * * *")).await;
    w.advance(HOUR).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
    let before = w.column("hourly", "next_scheduled_run").await;
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
    assert_eq!(w.column("hourly", "next_scheduled_run").await, before);

    // The retry of 01:00 succeeds at 02:05; that of 02:00 follows at once, and then it is quiet until 03:00.
    w.set_input("hourly", WORKS).await;
    w.store.sql("UPDATE work_queue SET input = '{}' WHERE status = 'queued'").await.unwrap();
    w.advance(HOUR + 300).await;
    host.dispatch().await;
    host.workers.idle().await;
    assert_eq!(w.states().await, "failed completed");
    assert_eq!(queued(&host.pass().await), ["run"]);
    w.advance(HOUR - 301).await;
    assert!(queued(&host.pass().await).is_empty());
    w.advance(1).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
}

/// M16: after twelve hours without a host a cron fires once, and then at its next occurrence.
async fn what_was_missed_fires_once(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.scheduled("late", "late", WORKS, cron("0 * * * *")).await;
    let leaves_out = Schedule { misfire_policy: MisfirePolicy::DoNothing, ..cron("0 * * * *") };
    w.scheduled("strict", "strict", WORKS, leaves_out).await;
    w.advance(HOUR).await;
    assert_eq!(queued(&host.pass().await), ["run", "run"]);

    w.advance(12 * HOUR + 1_200).await;
    assert_eq!(queued(&host.manage().await), ["run"]);
    assert_eq!(w.queue().await, ["late 0"]);
    host.pass().await;
    assert!(queued(&host.pass().await).is_empty());
    w.advance(2_400).await;
    assert_eq!(queued(&host.pass().await), ["run", "run"]);
}

/// M10, M18: a manifest that leaves out the night does not run at night.
async fn what_is_left_out_does_not_run(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    // The first of January 2026 is a Thursday.
    let exclusions = r#"[{"days":["thursday"]},{"from":"00:00:00","to":"06:00:00"}]"#.to_owned();
    let schedule = Schedule { exclusions: Some(exclusions), ..every(60) };
    w.scheduled("m", "m", WORKS, schedule).await;

    for _ in 0..29 {
        assert!(queued(&host.pass().await).is_empty());
        w.advance(HOUR).await;
    }
    w.advance(HOUR).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
}

/// M14, R31, R3: a one-off runs from its instant on, is retried until it works, and is disabled by its success.
async fn a_one_off_runs_until_it_works(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let once = || Schedule {
        scheduled_at: Some(crate::engine::world::at(600)),
        ..Schedule::new(ScheduleType::Once)
    };
    w.scheduled("once", "once", FAILS, once()).await;

    w.advance(599).await;
    assert!(queued(&host.pass().await).is_empty());
    w.advance(1).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
    w.store.sql("UPDATE work_queue SET input = '{}' WHERE status = 'queued'").await.unwrap();
    w.advance(300).await;
    host.pass().await;

    assert_eq!(w.states().await, "failed completed");
    assert_eq!(w.column("once", "CASE WHEN is_enabled THEN 1 ELSE 0 END").await, "0");
    w.change("is_enabled = TRUE", ManifestId(1)).await;
    w.advance(HOUR).await;
    assert!(queued(&host.pass().await).is_empty());
}

/// M14, M11: a one-off that was cancelled is used up, and an interval counts from when it was cancelled.
async fn a_cancelled_run_uses_up_its_occurrence(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let once = Schedule {
        scheduled_at: Some(crate::engine::world::at(0)),
        ..Schedule::new(ScheduleType::Once)
    };
    w.scheduled("once", "once", LOOPS, once).await;
    w.scheduled("often", "often", LOOPS, every(600)).await;
    host.manage().await;
    host.dispatch().await;
    w.advance(300).await;
    host.cancel_all(&w).await;

    assert_eq!(w.states().await, "cancelled cancelled");
    w.advance(599).await;
    assert!(queued(&host.manage().await).is_empty());
    w.advance(1).await;
    host.manage().await;
    assert_eq!(w.queue().await, ["often 0"]);
}

/// M15: what runs on demand is never due by time.
async fn what_runs_on_demand_is_never_due(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    for schedule_type in [ScheduleType::None, ScheduleType::OnDemand] {
        let name = schedule_type.as_str();
        w.scheduled(name, name, WORKS, Schedule::new(schedule_type)).await;
    }
    let parent = w.scheduled("parent", "parent", WORKS, every(60)).await;
    let dormant =
        Schedule { depends_on: Some(parent), ..Schedule::new(ScheduleType::DormantDependent) };
    w.scheduled("dormant", "dormant", WORKS, dormant).await;

    assert_eq!(queued(&host.pass().await), ["run"]);
    w.advance(30).await;
    assert!(queued(&host.pass().await).is_empty());
}

/// M19, R30: a dependent runs for each success of its parent; one that failed has used up nothing.
async fn a_dependent_follows_its_parent(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let parent = w.scheduled("parent", "parent", WORKS, every(3_600)).await;
    w.dependent("child", parent, FAILS).await;

    assert_eq!(queued(&host.manage().await), ["run"]);
    assert_eq!(w.queue().await, ["parent 0"]);
    host.dispatch().await;
    host.workers.idle().await;
    w.advance(1).await;
    // M23: its entries go first.
    host.manage().await;
    assert_eq!(w.queue().await, ["child 16"]);
    host.dispatch().await;
    host.workers.idle().await;
    assert_eq!(w.states().await, "completed failed");
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
    w.store.sql("UPDATE work_queue SET input = '{}' WHERE status = 'queued'").await.unwrap();
    w.advance(300).await;
    host.pass().await;

    assert_eq!(w.states().await, "completed failed completed");
    assert!(queued(&host.manage().await).is_empty());
}

/// M19, M20: successes of the parent while its dependent runs make one more run of it, also when it is cancelled.
async fn successes_meanwhile_collapse(w: Arc<World>) {
    w.deploy("probe").await;
    // The dependent computes for as long as the test takes.
    let mut host =
        w.host_with("one", |config| config.limits.own_time = Duration::from_mins(2)).await;
    let parent = w.scheduled("parent", "parent", WORKS, every(60)).await;
    let child = w.dependent("child", parent, LOOPS).await;
    host.pass().await;
    host.manage().await;
    host.dispatch().await;
    for _ in 0..3 {
        w.advance(60).await;
        host.manage().await;
        let done = "SELECT CAST(COUNT(*) AS TEXT) FROM metadata WHERE train_state = 'completed'";
        let before = w.store.rows(done).await;
        let mut events = host.shared.events.watch();
        assert_eq!(host.dispatch().await, 1, "the parent runs while its dependent does");
        while w.store.rows(done).await == before {
            events.recv().await.unwrap();
        }
    }

    // Cancelled, it has used up the success that it started for, and none of the later ones.
    host.cancel_all(&w).await;
    w.change("properties = '{}'", child).await;
    w.change("is_enabled = FALSE", parent).await;
    assert!(queued(&host.manage().await).is_empty(), "its parent is disabled");
    w.change("is_enabled = TRUE", parent).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
    assert!(queued(&host.manage().await).is_empty());
}

/// M22, M25: with more due than a pass queues, groups share the room, and the one of the higher priority gets the rest.
async fn groups_share_the_room_of_a_pass(w: Arc<World>) {
    let mut host =
        w.host_with("one", |config| config.max_work_queue_entries_per_cycle = Some(5)).await;
    for name in ["low", "high"] {
        for member in 0..4 {
            w.scheduled(&format!("{name}-{member}"), name, WORKS, every(60)).await;
        }
    }
    w.store.sql("UPDATE manifest_group SET priority = 9 WHERE name = 'high'").await.unwrap();

    host.manage().await;
    assert_eq!(w.queue().await, ["high-0 0", "high-1 0", "high-2 0", "low-0 0", "low-1 0"]);
    host.manage().await;
    assert_eq!(w.queue().await.len(), 8);
    assert!(queued(&host.manage().await).is_empty());
}

/// M4: how many runs may be active is no matter of the manager.
async fn the_manager_queues_whatever_the_limits(w: Arc<World>) {
    let mut host = w.host_with("one", |config| config.max_active_jobs = Some(1)).await;
    for name in ["a", "b", "c"] {
        w.scheduled(name, name, WORKS, every(60)).await;
    }
    assert_eq!(queued(&host.manage().await), ["run", "run", "run"]);
}

/// M24, M9: where an entry got in first nothing is queued, and the others go on.
async fn an_entry_that_got_in_first_is_left_alone(w: Arc<World>) {
    let mut host = w.host("one").await;
    let first = w.scheduled("first", "first", WORKS, every(60)).await;
    w.scheduled("second", "second", WORKS, every(60)).await;
    w.trigger(first).await;
    let due = w.column("second", "next_due_at").await;
    // As if the index had not been cleared yet.
    let text = if w.store.db.is_postgres() { format!("'{due}'") } else { due };
    w.store.sql(&format!("UPDATE manifest SET next_due_at = {text}")).await.unwrap();

    assert_eq!(queued(&host.manage().await), ["run"]);
    assert_eq!(w.queue().await, ["first 0", "second 0"]);
    assert_eq!(w.column("first", "next_due_at").await, "-");
}

/// M26: an entry that was staged and forgotten is withdrawn, or dispatched where that is asked for.
async fn staged_entries_are_resolved(w: Arc<World>) {
    let mut host = w.host("one").await;
    let manifest = w.scheduled("m", "m", WORKS, every(60)).await;
    let staged = |manifest| NewEntry {
        manifest,
        is_confirmed: false,
        ..NewEntry::new(w.store.tenant, "probe")
    };
    w.store.enqueue(&staged(Some(manifest))).await;
    let status = "SELECT status, CAST(confirmed_at IS NULL AS TEXT) FROM work_queue WHERE id = 1";

    w.advance(600).await;
    assert!(queued(&host.manage().await).is_empty());
    assert!(w.store.rows(status).await[0].starts_with("queued"));
    w.advance(1).await;
    assert_eq!(queued(&host.manage().await), ["run"]);
    assert!(w.store.rows(status).await[0].starts_with("cancelled"));
    w.advance(30 * 24 * HOUR - 602).await;
    host.manage().await;
    assert_eq!(w.store.rows(status).await.len(), 1);
    w.advance(2).await;
    host.manage().await;
    assert_eq!(w.store.rows(status).await, [""; 0]);

    w.store.enqueue(&staged(None)).await;
    let mut promoting =
        w.host_with("two", |config| config.promotes_stale_staged_entries = true).await;
    w.advance(601).await;
    promoting.manage().await;
    let confirmed = "SELECT CAST(COUNT(*) AS TEXT) FROM work_queue WHERE status = 'queued'
        AND confirmed_at IS NOT NULL";
    assert_eq!(w.store.rows(confirmed).await, ["2"]);
}

/// M33, M9: a disabled manifest, or one of a disabled group, is not queued; enabled again, it is.
async fn what_is_disabled_is_not_queued(w: Arc<World>) {
    let mut host = w.host("one").await;
    let manifest = w.scheduled("m", "m", WORKS, every(60)).await;
    w.change("is_enabled = FALSE", manifest).await;
    assert!(queued(&host.manage().await).is_empty());
    w.change("is_enabled = TRUE", manifest).await;
    w.set_group_enabled("m", false).await;
    assert_eq!(w.column("m", "next_due_at").await, "-");
    assert!(queued(&host.manage().await).is_empty());
    w.set_group_enabled("m", true).await;
    assert_eq!(queued(&host.manage().await), ["run"]);
}

/// M17: after a success the next run is an interval later, and at most the variance more.
async fn variance_is_added_to_the_interval(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let varied = Schedule { variance_seconds: Some(30), ..every(60) };
    w.scheduled("varied", "varied", WORKS, varied).await;
    w.scheduled("exact", "exact", WORKS, every(60)).await;
    host.pass().await;

    assert_eq!(w.column("exact", "next_scheduled_run").await, "-");
    w.advance(59).await;
    assert!(queued(&host.manage().await).is_empty());
    w.advance(31).await;
    host.manage().await;
    let mut both = w.queue().await;
    both.sort();
    assert_eq!(both, ["exact 0", "varied 0"]);
}

/// R26, R28: no timer stands for a retry: after a failure nothing is queued until the manager sees that it is due.
async fn a_retry_is_the_run_that_is_due(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.scheduled("m", "m", FAILS, every(3_600)).await;
    host.pass().await;

    for _ in 0..3 {
        w.advance(HOUR).await;
        assert_eq!(host.dispatch().await, 0);
    }
    assert_eq!(w.states().await, "failed");
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
}

engine_cases!(
    a_new_cron_waits_for_its_first_occurrence,
    a_late_retry_skips_no_occurrence,
    what_was_missed_fires_once,
    what_is_left_out_does_not_run,
    a_one_off_runs_until_it_works,
    a_cancelled_run_uses_up_its_occurrence,
    what_runs_on_demand_is_never_due,
    a_dependent_follows_its_parent,
    successes_meanwhile_collapse,
    groups_share_the_room_of_a_pass,
    the_manager_queues_whatever_the_limits,
    an_entry_that_got_in_first_is_left_alone,
    staged_entries_are_resolved,
    what_is_disabled_is_not_queued,
    variance_is_added_to_the_interval,
    a_retry_is_the_run_that_is_due,
);
