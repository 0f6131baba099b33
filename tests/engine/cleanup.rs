//! Cleanup: what is deleted when it is old, and what never is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trax::engine::cleanup::{Cleanup, Report};
use trax::engine::config::EngineConfig;
use trax::engine::service::Service;
use trax::model::ids::RunId;
use trax::store::queue::NewEntry;

use crate::engine::world::{TestHost, World};

const HALF_HOUR: u64 = 1_800;

/// Cleans up the runs of the probe, and so many at a time.
fn of_probe(batch_size: u32) -> impl FnOnce(&mut EngineConfig) {
    move |config| {
        config.cleanup.trains = BTreeMap::from([("probe".to_owned(), None)]);
        config.cleanup.batch_size = batch_size;
    }
}

async fn pass(host: &TestHost) -> Report {
    Cleanup::new(Arc::clone(&host.shared)).pass().await.unwrap()
}

impl World {
    /// A run of the probe that has ended now.
    async fn ended(&self, host: &mut TestHost) -> RunId {
        let new = NewEntry { input: Some("{}"), ..NewEntry::new(self.store.tenant, "probe") };
        self.store.enqueue(&new).await;
        host.dispatch().await;
        host.workers.idle().await;
        self.last_run().await
    }

    async fn link(&self, run: RunId, column: &str, to: RunId) {
        let sql = format!("UPDATE metadata SET {column} = {to} WHERE id = {run}");
        self.store.sql(&sql).await.unwrap();
    }

    async fn left(&self) -> Vec<RunId> {
        let ids = self.store.rows("SELECT CAST(id AS TEXT) FROM metadata ORDER BY id").await;
        ids.iter().map(|id| RunId(id.parse().unwrap())).collect()
    }
}

/// W18, W19: runs of listed trains are deleted once they are old and have ended, with all that is theirs.
async fn old_runs_of_listed_trains_are_deleted(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host_with("one", of_probe(2)).await;
    for _ in 0..5 {
        w.ended(&mut host).await;
    }
    w.store.sql("UPDATE metadata SET name = 'other' WHERE id = 2").await.unwrap();
    let parent = "UPDATE metadata SET parent_id = 1 WHERE id = 2";
    w.store.sql(parent).await.unwrap();
    w.store
        .sql("UPDATE metadata SET train_state = 'in_progress', end_time = NULL WHERE id = 3")
        .await
        .unwrap();

    assert_eq!(pass(&host).await.runs, 0, "they are young");
    w.advance(HALF_HOUR).await;
    assert_eq!(pass(&host).await.runs, 0, "they are as old as may be");
    w.advance(1).await;
    let unlisted = w.host("two").await;
    assert_eq!(pass(&unlisted).await.runs, 0, "nothing is listed there");
    assert_eq!(pass(&host).await.runs, 3);

    assert_eq!(w.left().await, [RunId(2), RunId(3)]);
    for table in ["junction_run", "metadata_payload", "log", "decision"] {
        let others = format!("SELECT metadata_id FROM {table} WHERE metadata_id NOT IN (2, 3)");
        assert!(w.store.rows(&others).await.is_empty(), "{table}");
    }
    let entries = "SELECT CAST(metadata_id AS TEXT) FROM work_queue ORDER BY id";
    assert_eq!(w.store.rows(entries).await, ["2", "3"]);
    let parents = "SELECT CAST(id AS TEXT) FROM metadata WHERE parent_id IS NOT NULL";
    assert!(w.store.rows(parents).await.is_empty(), "the child of a deleted run has none");
    w.store
        .sql("UPDATE metadata SET train_state = 'cancelled', end_time = start_time WHERE id = 3")
        .await
        .unwrap();
}

/// R59, R61, W21: of a replay and the run it replays neither is deleted while one has to stay; nor of a resume.
async fn linked_runs_are_kept_together(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host_with("one", of_probe(1_000)).await;
    let (old, young) = (w.ended(&mut host).await, w.ended(&mut host).await);
    let (source, replay) = (w.ended(&mut host).await, w.ended(&mut host).await);
    w.link(young, "replay_decisions_of", old).await;
    w.link(replay, "resume_from", source).await;
    w.advance(HALF_HOUR + 1).await;
    let last = w.ended(&mut host).await;
    // As if the replay of one pair and the source of the other had started now.
    let later = format!(
        "UPDATE metadata SET start_time = s.start_time
        FROM (SELECT start_time FROM metadata WHERE id = {last}) s WHERE id IN ({young}, {source})"
    );
    w.store.sql(&later).await.unwrap();

    assert_eq!(pass(&host).await.runs, 0);
    assert_eq!(w.left().await, [old, young, source, replay, last]);
}

/// R60, W20: both expired, one transaction deletes both.
async fn expired_pairs_go_together(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host_with("one", of_probe(1)).await;
    let (source, replay) = (w.ended(&mut host).await, w.ended(&mut host).await);
    let resumed = w.ended(&mut host).await;
    w.link(replay, "replay_decisions_of", source).await;
    w.link(resumed, "resume_from", replay).await;
    w.advance(HALF_HOUR + 1).await;

    // One run at a time is looked at, and its relatives come along.
    assert_eq!(pass(&host).await.runs, 3);
    assert!(w.left().await.is_empty());
}

/// R61, K24, W21: what is queued keeps the run it names, and all that are linked to it.
async fn what_is_queued_keeps_the_run_it_names(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host_with("one", of_probe(1_000)).await;
    let (source, replay) = (w.ended(&mut host).await, w.ended(&mut host).await);
    w.link(replay, "replay_decisions_of", source).await;
    w.advance(HALF_HOUR + 1).await;
    let named = NewEntry { resume_from: Some(source), ..NewEntry::new(w.store.tenant, "probe") };
    let entry = w.store.enqueue(&named).await;

    assert_eq!(pass(&host).await.runs, 0);
    assert_eq!(w.left().await, [source, replay]);
    let withdrawn = format!("UPDATE work_queue SET status = 'cancelled' WHERE id = {entry}");
    w.store.sql(&withdrawn).await.unwrap();
    assert_eq!(pass(&host).await.runs, 2);
    let cleared = format!("SELECT CAST(resume_from AS TEXT) FROM work_queue WHERE id = {entry}");
    assert_eq!(w.store.rows(&cleared).await, ["-"], "nothing names a run that is gone");
}

/// W23: a train's own retention is its own; the others follow the one of all.
async fn a_train_may_have_a_retention_of_its_own(w: Arc<World>) {
    w.deploy("probe").await;
    let own = |config: &mut EngineConfig| {
        config.cleanup.trains =
            BTreeMap::from([("probe".to_owned(), Some(Duration::from_mins(1)))]);
        config.cleanup.retention = Duration::from_hours(1);
    };
    let mut host = w.host_with("one", own).await;
    w.ended(&mut host).await;
    w.advance(61).await;

    assert_eq!(pass(&host).await.runs, 1);
}

/// W25: dead letters that were resolved long ago are purged, at most once an hour.
async fn resolved_dead_letters_are_purged(w: Arc<World>) {
    let host = w.host("one").await;
    let mut cleanup = Cleanup::new(Arc::clone(&host.shared));
    let (manifest, _) = w.given_up("a", 1).await;
    let resolve = "UPDATE dead_letter SET status = 'acknowledged', resolved_at = dead_lettered_at";
    w.store.sql(resolve).await.unwrap();
    w.settle_due(manifest).await;
    w.advance(30 * 24 * 3_600 + 1).await;

    assert_eq!(cleanup.pass().await.unwrap().dead_letters, 1);
    let (manifest, _) = w.given_up("b", 1).await;
    w.store.sql(resolve).await.unwrap();
    w.settle_due(manifest).await;
    w.advance(3_599).await;
    assert_eq!(cleanup.pass().await.unwrap().dead_letters, 0);
}

/// Old lines of logs go although their runs stay, in batches; without a retention they stay as well.
async fn old_lines_of_logs_are_deleted(w: Arc<World>) {
    w.deploy("probe").await;
    let logs = r#"{"acts":{"Act":[{"log":{"level":"info","message":"done"}}]}}"#;
    let mut host = w
        .host_with("one", |config| {
            config.cleanup.log_retention = Some(Duration::from_mins(1));
            config.cleanup.batch_size = 2;
        })
        .await;
    let run = async |host: &mut TestHost| {
        let new = NewEntry { input: Some(logs), ..NewEntry::new(w.store.tenant, "probe") };
        w.store.enqueue(&new).await;
        host.dispatch().await;
        host.workers.idle().await;
    };
    for _ in 0..5 {
        run(&mut host).await;
    }
    w.advance(61).await;
    run(&mut host).await;
    let lines = "SELECT CAST(metadata_id AS TEXT) FROM log ORDER BY id";
    assert_eq!(w.store.rows(lines).await.len(), 6);
    assert_eq!(pass(&w.host("keeps").await).await, Report::default());

    let report = pass(&host).await;

    assert_eq!((report.log_lines, report.has_more), (5, false));
    assert_eq!(w.store.rows(lines).await, ["6"]);
    assert_eq!(w.left().await.len(), 6);
}

engine_cases!(
    old_lines_of_logs_are_deleted,
    old_runs_of_listed_trains_are_deleted,
    linked_runs_are_kept_together,
    expired_pairs_go_together,
    what_is_queued_keeps_the_run_it_names,
    a_train_may_have_a_retention_of_its_own,
    resolved_dead_letters_are_purged,
);
