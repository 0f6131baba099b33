//! Retries replay what the failed run decided: once, and only what still holds.

use std::sync::Arc;

use trax::engine::config::EngineConfig;
use trax::engine::events::EngineEvent;
use trax::model::ids::{ManifestId, RunId};
use trax::operations::recording;
use trax::store::queue::{self, NewEntry};

use crate::engine::world::{TestHost, World, queued};

/// Answers what `probe-replays` asks.
pub(crate) const LEFT: &str = r#"{"Lane":{"choice":"Left","confidence":0.9}}"#;
/// Answers it otherwise.
pub(crate) const RIGHT: &str = r#"{"Lane":{"choice":"Right","confidence":0.8}}"#;
/// Answers nothing: whoever asks fails.
pub(crate) const REFUSES: &str = "{}";
/// Fails after the decision, in the attempts up to a number.
pub(crate) const FAILS_ONCE: &str =
    r#"{"acts":{"Act":[{"only_up_to_attempt":1},{"fail":{"name":"Lost"}}]}}"#;
const FAILS_TWICE: &str = r#"{"acts":{"Act":[{"only_up_to_attempt":2},{"fail":{"name":"Lost"}}]}}"#;
pub(crate) const FAILS_ALWAYS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost"}}]}}"#;

impl World {
    /// A host whose deciders answer so.
    pub(crate) async fn answering(&self, name: &str, answers: &str) -> TestHost {
        self.host_with(name, |config| config.answers = Some(answers.to_owned())).await
    }

    /// Every decision: run, question, who answered or `replayed`, in the order they were made.
    pub(crate) async fn decided(&self) -> Vec<String> {
        let sql = "SELECT CAST(metadata_id AS TEXT), question_key,
            CASE WHEN replayed THEN 'replayed' ELSE decider END FROM decision ORDER BY id";
        self.store.rows(sql).await
    }

    /// Every run: its state, the run it replays, and whether it asked after all.
    pub(crate) async fn replays(&self) -> Vec<String> {
        let sql = "SELECT train_state, CAST(replay_decisions_of AS TEXT),
            CASE WHEN replay_abandoned THEN 'abandoned' END FROM metadata ORDER BY id";
        self.store.rows(sql).await
    }

    /// A manifest whose first run has decided and failed, on a host that has answered so.
    pub(crate) async fn failed_once(&self, input: &str, answers: &str) -> ManifestId {
        self.deploy("probe").await;
        let mut host = self.answering("asking", answers).await;
        let manifest = self.manifest("nightly", "probe-replays", input, 9).await;
        host.pass().await;
        assert_eq!(self.replays().await, ["failed - -"]);
        assert_eq!(self.decided().await, ["1 Lane answers"]);
        manifest
    }
}

/// A pass that queues the retry, and another that runs it.
pub(crate) async fn retry(w: &World, host: &mut TestHost) {
    let events = host.pass().await;
    assert!(queued(&events)[0].starts_with("retry"), "{events:?}");
    w.advance(3_600).await;
    host.pass().await;
}

/// R35, R36, E2: a retry takes the tracks that were chosen, asks nobody, and runs every junction again.
async fn a_retry_replays_what_was_decided(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut other = w.answering("refusing", REFUSES).await;

    retry(&w, &mut other).await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane replayed"]);
    let steps =
        "SELECT name FROM junction_run WHERE kind = 'junction' ORDER BY metadata_id, position";
    assert_eq!(w.store.rows(steps).await, ["GoLeft", "Act", "GoLeft", "Act"]);
    let same = "SELECT DISTINCT answer, fingerprint, state_hash, routes, decider IS NULL = replayed FROM decision";
    let same = same.replace(
        "decider IS NULL = replayed",
        "CASE WHEN (decider IS NULL) = replayed THEN 'as said' END",
    );
    let rows = w.store.rows(&same).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0].starts_with(r#"{"choice":"Left","confidence":0.9} "#), "{rows:?}");
    assert!(rows[0].ends_with("as said"), "{rows:?}");
}

/// D5, D7: what a run recorded is known from its first write on, and each track taken is kept with its decision.
async fn tracks_are_kept_with_their_decision(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, r#"{"Lane":{"choice":"Left","confidence":0.3}}"#).await;
    let kept = "SELECT routes, CASE WHEN decisions_recorded THEN 'recorded' END FROM decision
        JOIN metadata r ON r.id = metadata_id";
    let rows = w.store.rows(kept).await;
    assert!(rows[0].starts_with(r#"[{"fallback_reason":""#), "{rows:?}");
    assert!(rows[0].ends_with(r#","track":"Otherwise"}] recorded"#), "{rows:?}");
}

/// D7: a run that reached no question has recorded its decisions all the same.
async fn a_run_without_questions_has_recorded_too(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.manifest("nightly", "probe", "{}", 0).await;
    host.manage().await;
    let recorded =
        "SELECT CASE WHEN decisions_recorded THEN 'recorded' ELSE 'not' END FROM metadata";
    host.dispatch().await;
    host.workers.idle().await;
    assert_eq!(w.store.rows(recorded).await, ["recorded"]);

    let mut silent = w.host_with("silent", |config| config.records_decisions = false).await;
    w.advance(3_600).await;
    silent.pass().await;
    assert_eq!(w.store.rows(recorded).await, ["recorded", "not"]);
}

/// R41, R46, R47: answers that were replayed into a failure are not replayed again; the next attempt asks.
async fn no_two_attempts_in_a_row_replay(w: Arc<World>) {
    w.failed_once(FAILS_TWICE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;

    retry(&w, &mut host).await;
    retry(&w, &mut host).await;

    assert_eq!(w.replays().await, ["failed - -", "failed 1 -", "completed - -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane replayed", "3 Lane answers"]);
}

/// R46: asked, replayed, asked, replayed: every second attempt replays the one before.
async fn the_answers_of_a_third_attempt_are_replayed_by_the_fourth(w: Arc<World>) {
    w.failed_once(FAILS_ALWAYS, LEFT).await;
    let mut host = w.answering("left", LEFT).await;
    for _ in 0..4 {
        retry(&w, &mut host).await;
    }
    assert_eq!(
        w.replays().await,
        ["failed - -", "failed 1 -", "failed - -", "failed 3 -", "failed - -"]
    );
}

/// R70, R92, E3: a manifest whose questions are always asked afresh links no retry.
async fn a_manifest_may_always_ask_afresh(w: Arc<World>) {
    let manifest = w.failed_once(FAILS_ONCE, LEFT).await;
    let sql =
        format!("UPDATE manifest SET replay_decisions_on_retry = FALSE WHERE id = {manifest}");
    w.store.sql(&sql).await.unwrap();
    let mut host = w.answering("right", RIGHT).await;

    retry(&w, &mut host).await;

    assert_eq!(w.replays().await, ["failed - -", "completed - -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
}

/// R45, R49: a manifest that was edited since asks afresh, about its new input.
async fn an_edited_manifest_asks_afresh(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let edited = FAILS_ONCE.replace("Lost", "Gone");
    w.set_input("nightly", &edited).await;
    let mut host = w.answering("right", RIGHT).await;

    retry(&w, &mut host).await;

    assert_eq!(w.replays().await, ["failed - -", "completed - -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
}

/// R50, R51, D20: a lookup that fails holds up no retry; it asks afresh.
async fn a_lookup_that_fails_asks_afresh(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    w.store.sql("ALTER TABLE checkpoint RENAME TO mislaid").await.unwrap();

    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);

    w.store.sql("ALTER TABLE mislaid RENAME TO checkpoint").await.unwrap();
    w.advance(300).await;
    host.pass().await;
    assert_eq!(w.replays().await, ["failed - -", "completed - -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
}

/// Deletes the first run as cleanup would.
async fn delete_first_run(w: &World) {
    let sql = "UPDATE work_queue SET metadata_id = NULL, status = 'cancelled', dispatched_at = NULL
            WHERE metadata_id = 1;
        DELETE FROM metadata_payload WHERE metadata_id = 1; DELETE FROM log WHERE metadata_id = 1;
        DELETE FROM metadata WHERE id = 1";
    w.store.sql(sql).await.unwrap();
}

/// R62, D18: a retry whose source is gone asks afresh, and says that it abandoned the replay.
async fn a_retry_whose_source_is_gone_asks_afresh(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
    delete_first_run(&w).await;
    w.advance(300).await;

    host.pass().await;

    assert_eq!(w.replays().await, ["failed 1 abandoned"]);
    assert_eq!(w.decided().await, ["2 Lane answers"]);
}

/// R62, R69: a retry on a host that does not record asks afresh, and says that it abandoned the replay.
async fn a_retry_on_a_host_that_does_not_record_asks_afresh(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let silent = |config: &mut EngineConfig| {
        config.answers = Some(RIGHT.to_owned());
        config.records_decisions = false;
    };
    let mut host = w.host_with("silent", silent).await;

    retry(&w, &mut host).await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 abandoned"]);
    assert_eq!(w.decided().await, ["1 Lane answers"]);
    let tracks = "SELECT name FROM junction_run WHERE metadata_id = 2 AND kind = 'route'";
    assert_eq!(w.store.rows(tracks).await, ["Right"]);
}

/// R57, R58: the answers of a run that abandoned its replay are its own, and leave the named run's replay unspent.
async fn a_run_that_abandoned_its_replay_is_replayed_itself(w: Arc<World>) {
    w.failed_once(FAILS_TWICE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    host.manage().await;
    w.store.sql("UPDATE metadata SET decisions_recorded = FALSE").await.unwrap();
    w.advance(300).await;
    host.pass().await;
    assert_eq!(w.replays().await, ["failed - -", "failed 1 abandoned"]);
    let mut refusing = w.answering("refusing", REFUSES).await;

    retry(&w, &mut refusing).await;

    assert_eq!(w.replays().await, ["failed - -", "failed 1 abandoned", "completed 2 -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers", "3 Lane replayed"]);
    let is_replayed = async |run| {
        w.store.read(async |tx| trax::store::decisions::is_replayed(tx, RunId(run)).await).await
    };
    assert!(!is_replayed(1).await);
    assert!(is_replayed(2).await);
}

/// R53, R54, R55: a linked run that never started has spent the replay: the next attempt asks afresh.
async fn a_replay_that_never_started_is_spent(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
    // What the retry is queued with can no longer be read.
    let sql = "UPDATE work_queue SET input = '{\"acts\":7}' WHERE status = 'queued'";
    w.store.sql(sql).await.unwrap();
    w.advance(300).await;
    host.pass().await;
    let failed =
        "SELECT failure_exception, CAST(replay_decisions_of AS TEXT) FROM metadata WHERE id = 2";
    assert_eq!(w.store.rows(failed).await, ["UnreadableInput 1"]);

    retry(&w, &mut host).await;

    assert_eq!(w.replays().await, ["failed - -", "failed 1 -", "completed - -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "3 Lane answers"]);
}

/// D11, D17, D18: a run that is no manifest's fails before its first junction when what it replays cannot be had.
async fn a_run_by_hand_fails_when_its_source_is_gone(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
    let new = NewEntry {
        input: Some("{}"),
        replay_decisions_of: Some(RunId(77)),
        ..NewEntry::new(w.store.tenant, "probe-replays")
    };
    w.store.enqueue(&new).await;

    host.pass().await;

    let failed =
        "SELECT failure_class, failure_exception, failure_reason FROM metadata WHERE id = 2";
    assert_eq!(
        w.store.rows(failed).await,
        [
            "permanent NotReplayed The decisions of execution 77 cannot be replayed: no run 77 exists."
        ]
    );
    assert_eq!(w.store.rows("SELECT name FROM junction_run WHERE metadata_id = 2").await.len(), 0);
}

/// R63: the same on a host that records nothing.
async fn a_run_by_hand_fails_on_a_host_that_does_not_record(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
    let mut host = w.host_with("silent", |config| config.records_decisions = false).await;
    let new = NewEntry {
        input: Some(FAILS_ONCE),
        replay_decisions_of: Some(RunId(1)),
        ..NewEntry::new(w.store.tenant, "probe-replays")
    };
    w.store.enqueue(&new).await;

    host.pass().await;

    let failed = "SELECT failure_class, failure_reason FROM metadata WHERE id = 2";
    assert_eq!(
        w.store.rows(failed).await,
        [
            "permanent The decisions of execution 1 cannot be replayed: this host does not record decisions."
        ]
    );
}

/// D2, E6: a decision is kept before the run acts on it, so that a run whose host is killed then is replayed.
async fn a_run_that_is_killed_after_its_decision_is_replayed(w: Arc<World>) {
    w.deploy("probe").await;
    let input = r#"{"acts":{"GoLeft":[{"only_up_to_attempt":1},"loop_until_cancelled"]}}"#;
    let mut first = w.answering("first", LEFT).await;
    w.manifest("nightly", "probe-replays", input, 3).await;
    first.manage().await;
    let mut events = first.shared.events.watch();
    first.dispatch().await;
    while !matches!(events.recv().await.unwrap(), EngineEvent::Decided { .. }) {}
    assert_eq!(w.decided().await, ["1 Lane answers"]);
    assert_eq!(w.states().await, "in_progress");
    w.advance(31).await;

    let mut second = w.answering("second", REFUSES).await;
    assert_eq!(second.reap().await, 1);
    first.shared.drain.cancel();
    first.shared.halt.cancel();
    first.workers.idle().await;
    retry(&w, &mut second).await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane replayed"]);
}

/// R43, R44, R45: each condition that does not hold links nothing, and then the deciders are asked.
async fn each_condition_that_does_not_hold_asks_afresh(w: Arc<World>) {
    let later = if w.store.db.is_postgres() {
        "dispatched_at + INTERVAL '1 second'"
    } else {
        "dispatched_at + 1000000"
    };
    let fired = format!(
        "INSERT INTO manifest (tenant_id, external_id, name, manifest_group_id, last_successful_run)
            SELECT 1, 'parent', 'probe', m.manifest_group_id, {later} FROM manifest m, work_queue w
            WHERE m.external_id = 'nightly' AND w.metadata_id = :run;
         UPDATE manifest SET depends_on_manifest_id = (SELECT id FROM manifest WHERE external_id = 'parent')
            WHERE external_id = 'nightly'"
    );
    let cases = [
        &*fired,
        "UPDATE metadata SET name = 'probe' WHERE id = :run",
        "UPDATE metadata SET decisions_recorded = FALSE WHERE id = :run",
        "UPDATE decision SET refused = 'unfit' WHERE metadata_id = :run",
        "UPDATE work_queue SET manifest_id = NULL WHERE metadata_id = :run",
        "UPDATE work_queue SET subject_key = 's' WHERE metadata_id = :run",
        "UPDATE work_queue SET input = '{ }' WHERE metadata_id = :run",
        "UPDATE work_queue SET input_type_name = 'Script' WHERE metadata_id = :run",
    ];
    w.failed_once(FAILS_ALWAYS, LEFT).await;
    let mut host = w.answering("left", LEFT).await;
    for change in cases {
        let failed = w.last_run().await;
        w.store.sql(&change.replace(":run", &failed.to_string())).await.unwrap();
        retry(&w, &mut host).await;
        let (replays, decided) = (w.replays().await, w.decided().await);
        assert_eq!(replays.last().unwrap(), "failed - -", "{change}");
        assert!(decided.last().unwrap().ends_with("Lane answers"), "{change}: {decided:?}");
        w.store.sql("UPDATE manifest SET depends_on_manifest_id = NULL").await.unwrap();
    }
    assert!(w.decided().await.iter().all(|row| row.ends_with("answers")));
    // With nothing changed the next one replays.
    retry(&w, &mut host).await;
    assert!(w.decided().await.last().unwrap().ends_with("replayed"));
}

/// M23: a retry's entry is the manifest's, with its priority, its delay and the run it replays.
async fn a_retrys_entry_is_the_manifests(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let set = "UPDATE manifest SET priority = 20, property_type = NULL";
    w.store.sql(set).await.unwrap();
    let mut host = w.answering("left", LEFT).await;
    host.manage().await;
    let entry = "SELECT train_name, input, input_type_name, CAST(priority AS TEXT), m.external_id,
        CAST(replay_decisions_of AS TEXT), CAST(resume_from AS TEXT) FROM work_queue w
        JOIN manifest m ON m.id = w.manifest_id WHERE status = 'queued'";
    let entry = entry.replace("CAST(priority", "CAST(w.priority");
    let rows = w.store.rows(&entry).await;
    assert!(
        rows[0].starts_with(&format!("probe-replays {FAILS_ONCE} - 20 nightly 1 ")),
        "{rows:?}"
    );
    let id = w.store.rows("SELECT CAST(MAX(id) AS TEXT) FROM work_queue").await.remove(0);
    let id = trax::model::ids::EntryId(id.parse().unwrap());
    let entry = w.store.read(async |tx| queue::detail(tx, w.store.tenant, id).await).await;
    assert_eq!(entry.scheduled_at, Some(crate::engine::world::at(300)));
}

/// D1: a host that does not record decisions refuses to start when there are trains that ask, and names them.
async fn a_host_that_does_not_record_refuses_trains_that_ask(w: Arc<World>) {
    w.store.sql("UPDATE train SET is_active = FALSE").await.unwrap();
    w.deploy("hello").await;
    recording::refuse_without(&w.store.db).await.unwrap();
    w.deploy("support-triage").await;
    let refused = recording::refuse_without(&w.store.db).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "this host does not record decisions, and these trains ask deciders: support-triage; say `recording = true` \
         under [decisions]"
    );
}

engine_cases!(
    a_retry_replays_what_was_decided,
    tracks_are_kept_with_their_decision,
    a_run_without_questions_has_recorded_too,
    no_two_attempts_in_a_row_replay,
    the_answers_of_a_third_attempt_are_replayed_by_the_fourth,
    a_manifest_may_always_ask_afresh,
    an_edited_manifest_asks_afresh,
    a_lookup_that_fails_asks_afresh,
    a_retry_whose_source_is_gone_asks_afresh,
    a_retry_on_a_host_that_does_not_record_asks_afresh,
    a_run_that_abandoned_its_replay_is_replayed_itself,
    a_replay_that_never_started_is_spent,
    a_run_by_hand_fails_when_its_source_is_gone,
    a_run_by_hand_fails_on_a_host_that_does_not_record,
    a_run_that_is_killed_after_its_decision_is_replayed,
    each_condition_that_does_not_hold_asks_afresh,
    a_retrys_entry_is_the_manifests,
    a_host_that_does_not_record_refuses_trains_that_ask,
);
