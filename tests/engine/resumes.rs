//! Runs that start after a checkpoint of an earlier run: who resumes, from where, and when it starts at the top.

use std::sync::Arc;

use trax::engine::config::EngineConfig;
use trax::engine::sources::Sources;
use trax::model::ids::{ManifestId, RunId};
use trax::store::queue::NewEntry;

use crate::engine::world::{TestHost, World, queued};

/// Answers what `probe-routes` and `probe-resumes` ask.
pub(crate) const ANSWERS: &str =
    r#"{"Lane":{"choice":"Left","confidence":0.9},"Ready":{"probability":0.9}}"#;
/// Answers nothing: whoever asks again fails.
const REFUSES: &str = "{}";
const HOUR: u64 = 3_600;

/// An input with which the junction fails in the first attempts.
pub(crate) fn fails_in(junction: &str, attempts: u32) -> String {
    format!(
        r#"{{"acts":{{"{junction}":[{{"only_up_to_attempt":{attempts}}},{{"fail":{{"name":"Lost"}}}}]}}}}"#
    )
}

pub(crate) async fn host(w: &World, name: &str, answers: &str) -> TestHost {
    let answers = answers.to_owned();
    w.host_with(name, |config: &mut EngineConfig| config.answers = Some(answers)).await
}

/// What ran: run and node, in order.
pub(crate) async fn ran(w: &World) -> Vec<String> {
    let sql = "SELECT CAST(metadata_id AS TEXT), node_id FROM junction_run WHERE kind = 'junction'
        ORDER BY metadata_id, node_id";
    w.store.rows(sql).await
}

pub(crate) async fn links(w: &World) -> Vec<String> {
    let sql = "SELECT CAST(id AS TEXT), train_state, CAST(resume_from AS TEXT), resume_at,
        CAST(replay_decisions_of AS TEXT) FROM metadata ORDER BY id";
    w.store.rows(sql).await
}

/// A manifest of `probe-routes` that failed after its checkpoint, and is due to be retried.
pub(crate) async fn failed_after_its_checkpoint(
    w: &World,
    host: &mut TestHost,
    attempts: u32,
) -> ManifestId {
    let input = fails_in("Act", attempts);
    let manifest = w.manifest("nightly", "probe-routes", &input, 5).await;
    host.pass().await;
    assert_eq!(w.states().await, "failed");
    manifest
}

pub(crate) async fn retried(w: &World, host: &mut TestHost) -> Vec<String> {
    let events = queued(&host.manage().await);
    w.advance(HOUR).await;
    host.pass().await;
    events
}

/// R90, R91, K1: reaching a checkpoint stores its state, and the retry starts after it: nothing before runs again.
async fn a_retry_starts_after_the_latest_checkpoint(w: Arc<World>) {
    w.deploy("probe").await;
    let mut first = host(&w, "first", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut first, 1).await;
    let stored = "SELECT node_id, branch_path, state_type, state, tracks FROM checkpoint";
    assert_eq!(
        w.store.rows(stored).await,
        [
            r#"Checkpoint<Routed>#0 - Routed {"notes":["left, 0.9 sure"]} [{"key":"Lane","step":"Switch<Lane>#0","track":"Left","fallbackReason":null}]"#
        ]
    );

    let mut second = host(&w, "second", REFUSES).await;
    assert_eq!(retried(&w, &mut second).await, ["retry 1 +300"]);
    assert_eq!(links(&w).await, ["1 failed - - -", "2 completed 1 - 1"]);
    assert_eq!(ran(&w).await, ["1 Act#0", "1 Switch<Lane>#0/Left/GoLeft#0", "2 Act#0"]);
    let output = "SELECT output FROM metadata_payload WHERE metadata_id = 2";
    assert_eq!(w.store.rows(output).await, [r#"{"notes":["left, 0.9 sure"]}"#]);
    let decided = "SELECT CAST(metadata_id AS TEXT) FROM decision";
    assert_eq!(w.store.rows(decided).await, ["1"]);
}

/// K6: a run that completed has no checkpoint any more; one that failed or was cancelled has.
async fn a_completed_run_keeps_no_checkpoint(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    for input in
        ["{}", &fails_in("Act", 9), r#"{"acts":{"Act":["loop_until_cancelled",{"fail":{}}]}}"#]
    {
        let new = NewEntry { input: Some(input), ..NewEntry::new(w.store.tenant, "probe-routes") };
        w.store.enqueue(&new).await;
    }
    one.dispatch().await;
    // Which run has which id is not told. One look, because they go on meanwhile.
    let stand = "SELECT r.train_state, CASE WHEN c.id IS NULL THEN 'no' ELSE 'yes' END
        FROM metadata r LEFT JOIN checkpoint c ON c.metadata_id = r.id ORDER BY r.train_state";
    while w.store.rows(stand).await != ["completed no", "failed yes", "in_progress yes"] {
        tokio::task::yield_now().await;
    }
    one.cancel_all(&w).await;

    let kept =
        "SELECT r.train_state FROM checkpoint c JOIN metadata r ON r.id = c.metadata_id ORDER BY 1";
    assert_eq!(w.store.rows(kept).await, ["cancelled", "failed"]);
    assert_eq!(w.store.rows(stand).await, ["cancelled yes", "completed no", "failed yes"]);
}

/// R92: a manifest that asks afresh on retries still resumes.
async fn resuming_does_not_depend_on_replay(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    w.store.sql("UPDATE manifest SET replay_decisions_on_retry = FALSE").await.unwrap();
    retried(&w, &mut one).await;
    assert_eq!(links(&w).await, ["1 failed - - -", "2 completed 1 - -"]);
}

/// R95, K12, K13b: failure after failure the run starts after the same checkpoint, each naming the run before it.
async fn repeated_failures_keep_the_checkpoint(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 3).await;
    for _ in 0..3 {
        retried(&w, &mut one).await;
    }
    let links = links(&w).await;
    let resumed: Vec<&str> = links.iter().map(|link| link.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(resumed, ["1 failed - -", "2 failed 1 -", "3 failed 2 -", "4 completed 3 -"]);
    assert_eq!(
        ran(&w).await,
        ["1 Act#0", "1 Switch<Lane>#0/Left/GoLeft#0", "2 Act#0", "3 Act#0", "4 Act#0"]
    );
}

/// R96: a run that stored no checkpoint is run again from the top.
async fn without_a_checkpoint_a_retry_starts_at_the_top(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    w.manifest("nightly", "probe-routes", &fails_in("GoLeft", 1), 5).await;
    one.pass().await;
    retried(&w, &mut one).await;
    assert_eq!(links(&w).await, ["1 failed - - -", "2 completed - - 1"]);
}

/// R94, R97: a checkpoint of another version of the chain, or whose state has another shape now, is not resumed from.
async fn a_checkpoint_of_another_version_is_not_used(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 2).await;
    w.store.sql("UPDATE checkpoint SET chain_hash = 'another'").await.unwrap();
    retried(&w, &mut one).await;
    w.store.sql("UPDATE checkpoint SET state_fingerprint = 'another'").await.unwrap();
    retried(&w, &mut one).await;
    let resumed = "SELECT CAST(id AS TEXT) FROM metadata WHERE resume_from IS NOT NULL";
    assert_eq!(w.store.rows(resumed).await, [""; 0]);
    assert_eq!(w.states().await, "failed failed completed");
}

/// R98: a lookup that fails lets the retry start at the top.
async fn a_lookup_that_fails_starts_at_the_top(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    w.store.sql("ALTER TABLE checkpoint RENAME TO away").await.unwrap();
    assert_eq!(queued(&one.manage().await), ["retry 1 +300"]);
    w.store.sql("ALTER TABLE away RENAME TO checkpoint").await.unwrap();
    let links = "SELECT COALESCE(CAST(resume_from AS TEXT), 'none') FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.store.rows(links).await, ["none"]);
}

/// R93: only a retry of the manifest's own run on the same input resumes it.
async fn another_input_or_train_is_another_run(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    let changes = [
        "UPDATE manifest SET properties = '{\"acts\":{}}'",
        "UPDATE manifest SET property_type = 'Other'",
        "UPDATE metadata SET name = 'probe'",
        "UPDATE work_queue SET subject_key = 'subject'",
        "UPDATE work_queue SET metadata_id = NULL",
        "UPDATE metadata SET invoking_machine = 'machine'",
    ];
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    let link = async || one_queued(&w).await;
    for change in changes {
        let mut tx = w.store.db.begin().await.unwrap();
        tx.execute_text(change).await.unwrap();
        let day = std::time::Duration::from_hours(24);
        let shared = &one.shared;
        let manifests = [ManifestId(1)];
        let sources = Sources::look_up(&mut tx, &manifests, day, &shared.chains).await.unwrap();
        assert_eq!(sources.take_over(manifests[0], false).resume_from, None, "{change}");
        tx.rollback().await.unwrap();
    }
    assert_eq!(queued(&one.manage().await), ["retry 1 +300"]);
    assert_eq!(link().await, "1");
}

async fn one_queued(w: &World) -> String {
    let sql = "SELECT CAST(resume_from AS TEXT) FROM work_queue WHERE status = 'queued'";
    w.store.rows(sql).await.remove(0)
}

/// R99, K23: a run that a state machine started is the machine's to retry.
async fn a_run_of_a_machine_is_not_resumed(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    w.store.sql("UPDATE metadata SET invoking_machine = 'orders'").await.unwrap();
    retried(&w, &mut one).await;
    let resumed = "SELECT CAST(id AS TEXT) FROM metadata WHERE resume_from IS NOT NULL";
    assert_eq!(w.store.rows(resumed).await, [""; 0]);
}

/// R100: the database refuses a second queued entry that resumes the same run; a dispatched one does not count.
async fn a_run_has_one_queued_resume(w: Arc<World>) {
    let raw = async |status: &str, id: u8| {
        let dispatched = if status == "dispatched" { "created_at" } else { "NULL" };
        let values = if w.store.db.is_postgres() { "NOW()" } else { "1" };
        let sql = format!(
            "INSERT INTO work_queue (tenant_id, external_id, train_name, status, created_at, dispatched_at,
                occurrence_id, resume_from)
             VALUES (1, '{id:032}', 'train', '{status}', {values}, {}, 'o', 7)",
            if dispatched == "NULL" { "NULL" } else { values }
        );
        w.store.sql(&sql).await
    };
    raw("dispatched", 1).await.unwrap();
    raw("queued", 2).await.unwrap();
    let refused = raw("queued", 3).await.unwrap_err();
    let causes = std::iter::successors(Some(&refused as &dyn std::error::Error), |it| it.source());
    let text: Vec<String> = causes.map(ToString::to_string).collect();
    let text = text.join(": ");
    let is_named = text.contains("ix_work_queue_unique_queued_resume")
        || text.contains("UNIQUE constraint failed: work_queue.resume_from");
    assert!(is_named, "{text}");
    w.store.sql("DELETE FROM work_queue").await.unwrap();
}

/// K13: what can no longer be trusted when the run starts is not resumed: it starts at the top, and says so no more.
async fn a_source_that_changed_is_not_resumed(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    let changes = [
        ("UPDATE metadata SET train_state = 'completed' WHERE id = 1", "failed"),
        ("UPDATE metadata SET name = 'probe' WHERE id = 1", "probe-routes"),
        ("DELETE FROM checkpoint", ""),
        ("UPDATE checkpoint SET state = '7'", ""),
        ("UPDATE checkpoint SET chain_hash = 'another'", ""),
    ];
    let input = fails_in("Act", 1);
    for (position, (change, _)) in changes.iter().enumerate() {
        w.store.sql("DELETE FROM checkpoint").await.unwrap();
        w.store
            .sql("UPDATE metadata SET train_state = 'failed', name = 'probe-routes' WHERE id = 1")
            .await
            .unwrap();
        let hash = "SELECT chain_hash FROM train WHERE name = 'probe-routes'";
        let sql = format!(
            "INSERT INTO checkpoint (metadata_id, node_id, state_type, state, chain_hash, state_fingerprint)
             VALUES (1, 'Checkpoint<Routed>#0', 'Routed', '{{\"notes\":[]}}', ({hash}), 'shape')"
        );
        w.store.sql(&sql).await.unwrap();
        w.store.sql(change).await.unwrap();
        let run = resumed(&w, &mut one, &input, RunId(1), None).await;
        let link = format!(
            "SELECT COALESCE(CAST(resume_from AS TEXT), 'none') FROM metadata WHERE id = {run}"
        );
        assert_eq!(w.store.rows(&link).await, ["none"], "{change}");
        let steps = format!(
            "SELECT name FROM junction_run WHERE metadata_id = {run} AND kind = 'junction' ORDER BY position"
        );
        assert_eq!(w.store.rows(&steps).await, ["GoLeft", "Act"], "{position}");
    }
    let other = resumed(&w, &mut one, "{}", RunId(1), None).await;
    let nobody = resumed(&w, &mut one, &input, RunId(999), None).await;
    let link = format!(
        "SELECT COALESCE(CAST(resume_from AS TEXT), 'none') FROM metadata WHERE id IN ({other}, {nobody})"
    );
    assert_eq!(w.store.rows(&link).await, ["none", "none"]);
    w.store
        .sql("UPDATE metadata SET train_state = 'failed', name = 'probe-routes' WHERE id = 1")
        .await
        .unwrap();
}

/// A run that an entry with this link made, at its end.
async fn resumed(
    w: &World,
    host: &mut TestHost,
    input: &str,
    from: RunId,
    at: Option<&str>,
) -> RunId {
    let new = NewEntry {
        input: Some(input),
        resume_from: Some(from),
        resume_at: at,
        ..NewEntry::new(w.store.tenant, "probe-routes")
    };
    w.store.enqueue(&new).await;
    host.dispatch().await;
    host.workers.idle().await;
    w.last_run().await
}

/// K5, K7b: a state past the cap fails its step for good and is not stored; the message says by how much.
async fn a_state_past_the_cap_is_not_stored(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = w
        .host_with("one", |config| {
            config.answers = Some(ANSWERS.to_owned());
            config.limits.input_bytes = 6;
        })
        .await;
    let new = NewEntry { input: Some("{}"), ..NewEntry::new(w.store.tenant, "probe-routes") };
    w.store.enqueue(&new).await;
    one.dispatch().await;
    one.workers.idle().await;

    let failure = "SELECT failure_class, failure_junction, failure_reason FROM metadata";
    assert_eq!(
        w.store.rows(failure).await,
        [
            "permanent Checkpoint<Routed> The checkpoint 'Checkpoint<Routed>#0' holds 'Routed' as 28 bytes of JSON; the \
          cap is 24. Store pointers to the data rather than the data itself."
        ]
    );
    assert_eq!(w.store.rows("SELECT node_id FROM checkpoint").await, [""; 0]);
}

/// K11, K18, C20: a branch goes on after its own checkpoint, the other runs again, and what was decided is replayed.
async fn branches_resume_and_decisions_after_the_point_replay(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    let input = r#"{"acts":{"ActRight":[{"only_up_to_attempt":1},{"fail":{"name":"Lost"}}],
        "Act":[{"only_up_to_attempt":2},{"fail":{"name":"Lost"}}]}}"#;
    let input = trax::model::json::Json::parse(input).unwrap().to_string();
    w.manifest("nightly", "probe-resumes", &input, 5).await;
    one.pass().await;
    retried(&w, &mut one).await;
    let mut two = host(&w, "two", REFUSES).await;
    retried(&w, &mut two).await;

    assert_eq!(links(&w).await, ["1 failed - - -", "2 failed 1 - -", "3 completed 2 - 2"]);
    let ran = ran(&w).await;
    let of = |run: &str| {
        let of_run = ran.iter().filter(|line| line.starts_with(run));
        of_run.map(|line| line.split_once(' ').unwrap().1).collect::<Vec<_>>()
    };
    assert!(of("1").contains(&"Parallel#0/left/ActLeft#0"), "{ran:?}");
    assert_eq!(
        of("2"),
        [
            "Act#0",
            "Gate<Ready>#0/Yes/GoYes#0",
            "Parallel#0/left/ActLeft2#0",
            "Parallel#0/right/ActRight#0"
        ]
    );
    assert_eq!(of("3"), of("2"));
    let replayed = "SELECT CAST(metadata_id AS TEXT), CASE WHEN replayed THEN 'again' ELSE 'asked' END FROM decision
        ORDER BY metadata_id";
    assert_eq!(w.store.rows(replayed).await, ["2 asked", "3 again"]);
}

engine_cases!(
    a_retry_starts_after_the_latest_checkpoint,
    a_completed_run_keeps_no_checkpoint,
    resuming_does_not_depend_on_replay,
    repeated_failures_keep_the_checkpoint,
    without_a_checkpoint_a_retry_starts_at_the_top,
    a_checkpoint_of_another_version_is_not_used,
    a_lookup_that_fails_starts_at_the_top,
    another_input_or_train_is_another_run,
    a_run_of_a_machine_is_not_resumed,
    a_run_has_one_queued_resume,
    a_source_that_changed_is_not_resumed,
    a_state_past_the_cap_is_not_stored,
    branches_resume_and_decisions_after_the_point_replay,
);
