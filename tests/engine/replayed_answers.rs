//! Which answers a retry takes over, one by one, and what becomes of the others.

use std::sync::Arc;
use std::time::Duration;

use trax::decide::state_hash::StateHasher;
use trax::engine::config::EngineConfig;

use crate::engine::replay::{FAILS_ALWAYS, FAILS_ONCE, LEFT, REFUSES, RIGHT, retry};
use crate::engine::world::World;

/// R66, D14: an answer is replayed only while it is young enough.
async fn an_old_answer_is_asked_afresh(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let short = |config: &mut EngineConfig| {
        config.answers = Some(RIGHT.to_owned());
        config.replay_answers_for = Some(Duration::from_mins(30));
    };
    let mut host = w.host_with("short", short).await;

    retry(&w, &mut host).await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
}

/// R64, R65, E4: an answer to another question or about another state is refused with the reason, and asked afresh.
async fn an_answer_that_no_longer_holds_is_refused(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    host.manage().await;
    w.store.sql("UPDATE decision SET state_hash = 's1:other'").await.unwrap();
    w.advance(300).await;
    host.pass().await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
    let answer = "SELECT answer FROM decision WHERE metadata_id = 2";
    assert_eq!(
        w.store.rows(answer).await,
        [
            r#"{"choice":"Right","confidence":0.8,"replay_refused":"the earlier answer was given about a different state"}"#
        ]
    );
}

/// Q23, Q32, Q33: an answer is looked up by its asking, and what was asked otherwise is recorded with that reason.
async fn an_answer_to_another_question_is_refused(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    w.store.sql("UPDATE decision SET fingerprint = 'other'").await.unwrap();
    let mut host = w.answering("right", RIGHT).await;

    retry(&w, &mut host).await;

    let recorded = "SELECT answer, occurrence IS NOT NULL, decider, kind, model FROM decision WHERE metadata_id = 2";
    let recorded = recorded.replace("occurrence IS NOT NULL", "CAST(occurrence AS TEXT)");
    let reason = "the earlier answer was given to a question that was asked otherwise";
    let answer = format!(r#"{{"choice":"Right","confidence":0.8,"replay_refused":"{reason}"}}"#);
    assert_eq!(w.store.rows(&recorded).await, [format!("{answer} 0 answers choice -")]);
}

/// Q24: an answer that the first run did not follow is replayed like any other, and takes the same track again.
async fn an_answer_that_was_not_followed_is_not_followed_again(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, r#"{"Lane":{"choice":"Left","confidence":0.3}}"#).await;
    let mut refusing = w.answering("refusing", REFUSES).await;

    retry(&w, &mut refusing).await;

    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane replayed"]);
    let tracks = "SELECT name FROM junction_run WHERE kind = 'route' ORDER BY id";
    assert_eq!(w.store.rows(tracks).await, ["Otherwise", "Otherwise"]);
}

/// E5, Q25, Q26: hashes match under the same key only, and the reason names the key where that is why.
async fn a_state_is_hashed_under_the_hosts_key(w: Arc<World>) {
    w.deploy("probe").await;
    let host = async |name: &str, answers: &str, hasher: StateHasher| {
        let set = |config: &mut EngineConfig| {
            config.answers = Some(answers.to_owned());
            config.hasher = hasher;
        };
        w.host_with(name, set).await
    };
    let key = |byte: u8| StateHasher::keyed(&[byte; 32]).unwrap();
    let mut keyed = host("keyed", LEFT, key(1)).await;
    w.manifest("nightly", "probe-replays", FAILS_ALWAYS, 9).await;
    keyed.pass().await;
    let hashes = w.store.rows("SELECT state_hash FROM decision").await;
    assert!(hashes[0].starts_with("k1:") && hashes[0].len() == 67, "{hashes:?}");
    let mut same = host("same", REFUSES, key(1)).await;
    retry(&w, &mut same).await;
    assert_eq!(w.decided().await[1..], ["2 Lane replayed"]);

    let others = [
        ("plain", StateHasher::unkeyed(), "this run hashes the state without one"),
        ("other", key(2), "or the state hash key has changed since"),
        ("unresolved", StateHasher::unresolved(), "the state hash key could not be resolved"),
    ];
    for (name, hasher, reason) in others {
        retry(&w, &mut keyed).await;
        let mut other = host(name, RIGHT, hasher).await;
        retry(&w, &mut other).await;
        let last = "SELECT answer, state_hash FROM decision ORDER BY id DESC LIMIT 1";
        let rows = w.store.rows(last).await;
        assert!(rows[0].contains(reason), "{name}: {rows:?}");
        assert_eq!(rows[0].ends_with(" -"), name == "unresolved", "{rows:?}");
    }
}

/// R67, D19: of two questions asked at once the one whose answer is refused is asked, and the other is replayed.
async fn answers_are_checked_one_by_one(w: Arc<World>) {
    w.deploy("probe").await;
    let both = r#"{"Level":{"score":1},"Ready":{"probability":0.9}}"#;
    let mut host = w.answering("both", both).await;
    w.manifest("nightly", "probe-decides", FAILS_ONCE, 3).await;
    host.pass().await;
    assert_eq!(w.decided().await, ["1 Level answers", "1 Ready answers"]);
    w.store
        .sql("UPDATE decision SET fingerprint = 'other' WHERE question_key = 'Level'")
        .await
        .unwrap();
    let mut other = w.answering("level", r#"{"Level":{"score":2}}"#).await;

    retry(&w, &mut other).await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 -"]);
    let asked = ["1 Level answers", "1 Ready answers", "2 Ready replayed", "2 Level answers"];
    assert_eq!(w.decided().await, asked);
}

/// D8, D12, R35: what a junction asked while it ran is replayed by node, question and how many-th asking.
async fn askings_inside_a_junction_are_replayed(w: Arc<World>) {
    w.deploy("probe").await;
    let input = r#"{"acts":{"Act":[{"ask":{"keys":["Lane"],"text":"a"}},{"ask":{"keys":["Lane"],"text":"b"}},
        {"only_up_to_attempt":1},{"fail":{"name":"Lost"}}]}}"#;
    let mut host = w.answering("left", LEFT).await;
    w.manifest("nightly", "probe", input, 3).await;
    host.pass().await;
    let mut refusing = w.answering("refusing", REFUSES).await;

    retry(&w, &mut refusing).await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 -"]);
    let inside = "SELECT CAST(metadata_id AS TEXT), asked_by, CAST(occurrence AS TEXT),
        CASE WHEN replayed THEN 'replayed' ELSE decider END FROM decision ORDER BY id";
    assert_eq!(
        w.store.rows(inside).await,
        ["1 Act#0 0 answers", "1 Act#0 1 answers", "2 Act#0 0 replayed", "2 Act#0 1 replayed"]
    );
}

/// D4, D23: an answer that does not fit fails its run, is recorded, and is replayed by nobody.
async fn a_refused_answer_is_not_replayed(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.answering("unfit", r#"{"Lane":{"choice":"Up"}}"#).await;
    w.manifest("nightly", "probe-replays", "{}", 3).await;
    host.pass().await;
    let rows = w.store.rows("SELECT answer, refused FROM decision").await;
    let unfit = r#"{"choice":"Up","confidence":1} the choice is not one of the options offered"#;
    assert_eq!(rows, [unfit]);
    let mut right = w.answering("right", RIGHT).await;

    retry(&w, &mut right).await;

    assert_eq!(w.replays().await, ["failed - -", "completed - -"]);
}

/// D3, Q31: a store that refuses the value fails the step for good; one that fails otherwise, for now.
async fn a_decision_that_is_not_recorded_fails_its_run(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.answering("left", LEFT).await;
    w.manifest("nightly", "probe-replays", "{}", 9).await;
    let refusing = if w.store.db.is_postgres() {
        "ALTER TABLE decision ADD CONSTRAINT never CHECK (question_key = '')"
    } else {
        "CREATE TRIGGER never BEFORE INSERT ON decision BEGIN SELECT RAISE(ABORT, 'never'); END"
    };
    w.store.sql(refusing).await.unwrap();
    host.pass().await;
    let allowing = if w.store.db.is_postgres() {
        "ALTER TABLE decision DROP CONSTRAINT never; ALTER TABLE decision RENAME COLUMN fingerprint TO finger"
    } else {
        "DROP TRIGGER never; ALTER TABLE decision RENAME COLUMN fingerprint TO finger"
    };
    w.store.sql(allowing).await.unwrap();
    retry(&w, &mut host).await;
    w.store.sql("ALTER TABLE decision RENAME COLUMN finger TO fingerprint").await.unwrap();

    let failed =
        "SELECT failure_class, failure_exception, failure_junction FROM metadata ORDER BY id";
    let node = "Switch<Lane>#0";
    let rows = w.store.rows(failed).await;
    assert!(rows[0].starts_with("permanent NotRecorded "), "{rows:?} {node}");
    assert!(rows[1].starts_with("transient NotRecorded "), "{rows:?}");
    assert!(w.decided().await.is_empty());
}

engine_cases!(
    an_old_answer_is_asked_afresh,
    an_answer_that_no_longer_holds_is_refused,
    an_answer_to_another_question_is_refused,
    an_answer_that_was_not_followed_is_not_followed_again,
    a_state_is_hashed_under_the_hosts_key,
    answers_are_checked_one_by_one,
    askings_inside_a_junction_are_replayed,
    a_refused_answer_is_not_replayed,
    a_decision_that_is_not_recorded_fails_its_run,
);
