//! The manifest manager: the order of a pass, what it looks at, and what is retried for how long.

use std::sync::Arc;

use trax::store::ScheduleType;
use trax::store::claim;
use trax::store::manifests::{Schedule, Setting};
use trax::store::queue::NewEntry;

use crate::engine::world::{World, at, queued};

const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;
const WORKS: &str = "{}";

/// The manifests of the queued entries that may be dispatched.
const QUEUED: &str =
    "SELECT m.external_id FROM work_queue w JOIN manifest m ON m.id = w.manifest_id
    WHERE w.status = 'queued' AND w.confirmed_at IS NOT NULL ORDER BY m.external_id";

/// M3, M8: runs that are stuck fail first, forgotten entries are withdrawn next, then come dead letters, and last the
/// queue: all of it in one cycle. What became a dead letter in it is not queued.
async fn a_cycle_has_an_order(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("stuck", "probe", FAILS, 0).await;
    host.manage().await;
    let sender = host.shared.host();
    let mut request = crate::store::world::request(w.store.tenant, &sender, 1);
    request.starts = false;
    w.store.write(async |tx| claim::claim(tx, &request).await).await;
    let staged = w.manifest("staged", "probe", WORKS, 0).await;
    let entry = NewEntry {
        manifest: Some(staged),
        is_confirmed: false,
        ..NewEntry::new(w.store.tenant, "probe")
    };
    w.store.enqueue(&entry).await;
    w.advance(1_201).await;
    assert!(host.beat().await);
    assert_eq!(w.store.rows(QUEUED).await, [""; 0]);

    assert_eq!(host.look_for_the_dead().await.stuck, 1);
    let mut told = queued(&host.manage().await);

    told.sort();
    assert_eq!(told, ["dead letter", "run"]);
    assert_eq!(w.store.rows(QUEUED).await, ["staged"]);
    assert!(queued(&host.manage().await).is_empty());
}

/// M6: one query of the index finds what is due, and a pass looks at nothing else.
async fn a_pass_looks_at_what_is_due(w: Arc<World>) {
    let mut host = w.host("one").await;
    for number in 0..30 {
        let manifest = w.manifest(&format!("m{number}"), "train", WORKS, 3).await;
        if number % 10 != 0 {
            let later = if w.store.db.is_postgres() { "'2027-01-01Z'" } else { "1798761600000000" };
            let sql = format!(
                "UPDATE manifest SET next_scheduled_run = {later}, last_successful_run = {later}
                 WHERE id = {manifest}"
            );
            w.store.sql(&sql).await.unwrap();
            w.settle_due(manifest).await;
        }
    }

    let report = host.managed().await;

    assert_eq!((report.looked_at, report.queued), (3, 3));
    assert_eq!(w.store.rows(QUEUED).await, ["m0", "m10", "m20"]);
    assert_eq!(host.managed().await.looked_at, 0);
}

/// T4: a one-off is retried as long as it has not succeeded, a dependent as long as it has not used up the success of
/// its parent.
async fn what_has_not_succeeded_is_retried(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let parent = w.stated("parent", "probe", WORKS, 3, Setting::Keep, 86_400).await;
    let dependent = Schedule { depends_on: Some(parent), ..Schedule::new(ScheduleType::Dependent) };
    let once = Schedule { scheduled_at: Some(at(0)), ..Schedule::new(ScheduleType::Once) };
    host.pass().await;
    w.advance(1).await;
    w.scheduled("child", "child", FAILS, dependent).await;
    w.scheduled("once", "once", FAILS, once).await;

    assert_eq!(queued(&host.pass().await), ["run", "run"]);
    for (failures, delay) in [(1, 300), (2, 600), (3, 1_200)] {
        let retry = format!("retry {failures} +{delay}");
        assert_eq!(queued(&host.manage().await), [retry.as_str(), retry.as_str()]);
        w.advance(delay).await;
        if failures == 3 {
            let works = "UPDATE work_queue SET input = '{}' WHERE status = 'queued'";
            w.store.sql(works).await.unwrap();
        }
        assert_eq!(host.dispatch().await, 2);
        host.workers.idle().await;
    }

    // Parent, then both three times in vain.
    assert!(w.states().await.ends_with("failed completed completed"), "{}", w.states().await);
    assert!(queued(&host.manage().await).is_empty());
    assert!(w.dead_letters().await.is_empty());
}

/// W7: the success of a run without a manifest changes no manifest, of whatever train.
async fn a_run_without_a_manifest_moves_no_schedule(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", FAILS, 3).await;
    let columns = "SELECT CAST(last_successful_run AS TEXT), CAST(next_scheduled_run AS TEXT),
        CAST(next_due_at AS TEXT), CAST(is_enabled AS TEXT) FROM manifest";
    let before = w.store.rows(columns).await;
    let new = NewEntry { input: Some(WORKS), ..NewEntry::new(w.store.tenant, "probe") };
    w.store.enqueue(&new).await;
    w.advance(60).await;

    assert_eq!(host.dispatch().await, 1);
    host.workers.idle().await;

    assert_eq!(w.states().await, "completed");
    assert_eq!(w.store.rows(columns).await, before);
}

/// W1: a train is found by its whole name as it is written, and takes its own inputs only; an entry that names another
/// one waits, and no run begins.
async fn a_train_is_found_by_its_name(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    for name in ["Probe", "prob", "probe "] {
        let new = NewEntry { input: Some(WORKS), ..NewEntry::new(w.store.tenant, name) };
        w.store.enqueue(&new).await;
    }
    assert_eq!(host.dispatch().await, 0);
    assert_eq!(w.states().await, "");
    let waiting = "SELECT CAST(COUNT(*) AS TEXT) FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.store.rows(waiting).await, ["3"]);

    for input in [WORKS, r#"{"acts":7}"#] {
        let new = NewEntry { input: Some(input), ..NewEntry::new(w.store.tenant, "probe") };
        w.store.enqueue(&new).await;
    }
    host.dispatch().await;
    host.workers.idle().await;
    let mut states = w.store.rows("SELECT train_state FROM metadata").await;
    states.sort();
    assert_eq!(states, ["completed", "failed"]);
}

engine_cases!(
    a_cycle_has_an_order,
    a_pass_looks_at_what_is_due,
    what_has_not_succeeded_is_retried,
    a_run_without_a_manifest_moves_no_schedule,
    a_train_is_found_by_its_name,
);
