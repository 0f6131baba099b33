//! Runs that leave their host before their end: handed over, or lost.

use std::sync::Arc;
use std::time::Duration;

use trax::engine::events::EngineEvent;
use trax::engine::seal::MemoryKey;

use crate::engine::world::{TestHost, World, queued};

/// Answers what `probe-routes` asks.
const LEFT: &str = r#"{"Lane":{"choice":"Left","confidence":0.9}}"#;
/// Answers nothing: whoever asks again fails.
const REFUSES: &str = "{}";

/// Waits until the host's run has its answer, then stops the host where it is.
async fn stop_after_the_answer(host: &mut TestHost) {
    let mut events = host.shared.events.watch();
    host.dispatch().await;
    while !matches!(events.recv().await.unwrap(), EngineEvent::Decided { .. }) {}
    host.shared.drain.cancel();
    host.shared.halt.cancel();
    host.workers.idle().await;
}

/// The same run continues on another host: answers are not asked again, and nothing counts as a failure.
async fn a_drained_run_continues_elsewhere(w: Arc<World>) {
    w.deploy("probe").await;
    let key = Some(MemoryKey::new("k", &[3; 32]));
    let mut first = w
        .host_with("first", |config| {
            config.answers = Some(LEFT.to_owned());
            config.memory_key.clone_from(&key);
        })
        .await;
    let input = r#"{"acts":{"GoLeft":["loop_until_cancelled"],"Act":[{"note":"done"}]}}"#;
    w.manifest("nightly", "probe-routes", input, 0).await;
    first.manage().await;
    stop_after_the_answer(&mut first).await;
    let parked = "SELECT r.train_state, p.reason, p.key_id FROM metadata r JOIN parked_run p ON p.metadata_id = r.id";
    assert_eq!(w.store.rows(parked).await, ["in_progress hand_over k"]);
    assert_eq!(first.dispatch().await, 0);

    // A junction that had not begun when its host stopped runs for as long as it may.
    let mut second = w
        .host_with("second", |config| {
            config.answers = Some(REFUSES.to_owned());
            config.memory_key = key;
            config.limits.own_time = Duration::from_millis(300);
        })
        .await;
    second.dispatch().await;
    second.workers.idle().await;

    let ended = w
        .store
        .rows("SELECT train_state, host_name, COALESCE(failure_exception, 'none') FROM metadata")
        .await;
    let is_one_of = ["completed second none", "failed second OwnTimeLimit"].contains(&&*ended[0]);
    assert!(is_one_of && ended.len() == 1, "{ended:?}");
    assert_eq!(w.store.rows("SELECT question_key FROM decision").await, ["Lane"]);
}

/// A junction that is stopped runs again from its start, and what it asked before is answered from the run's record.
async fn a_stopped_junction_runs_again_and_asks_nobody(w: Arc<World>) {
    w.deploy("probe").await;
    let mut first = w.host_with("first", |config| config.answers = Some(LEFT.to_owned())).await;
    let input =
        r#"{"acts":{"Act":[{"ask":{"keys":["Lane"]}},"loop_until_cancelled",{"fail":{}}]}}"#;
    w.manifest("nightly", "probe", input, 3).await;
    first.manage().await;
    stop_after_the_answer(&mut first).await;
    assert_eq!(w.states().await, "in_progress");

    let mut second = w
        .host_with("second", |config| {
            config.answers = Some(REFUSES.to_owned());
            config.limits.own_time = Duration::from_millis(300);
        })
        .await;
    second.dispatch().await;
    second.workers.idle().await;

    let ended = "SELECT train_state, failure_exception FROM metadata";
    assert_eq!(w.store.rows(ended).await, ["failed OwnTimeLimit"]);
    assert_eq!(w.store.rows("SELECT question_key FROM decision").await, ["Lane"]);
    assert_eq!(w.store.rows("SELECT name FROM junction_run").await, ["Act"]);
}

/// T5: a run whose host is gone has failed once, whatever that host still does.
async fn a_lost_host_fails_its_run_once(w: Arc<World>) {
    w.deploy("probe").await;
    let mut first = w.host("first").await;
    let input = r#"{"acts":{"Act":[{"only_up_to_attempt":1},"loop_until_cancelled"]}}"#;
    w.manifest("nightly", "probe", input, 1).await;
    first.manage().await;
    first.dispatch().await;
    w.advance(31).await;

    let mut second = w.host("second").await;
    assert_eq!([second.reap().await, second.reap().await], [1, 0]);
    first.shared.drain.cancel();
    first.shared.halt.cancel();
    first.workers.idle().await;

    let failed = "SELECT train_state, failure_exception, failure_reason FROM metadata";
    let reason =
        "failed HostLost Host 'first' stopped giving signs of life while the run was in progress";
    assert_eq!(w.store.rows(failed).await, [reason]);
    assert_eq!(queued(&second.manage().await), ["retry 1 +300"]);
    w.advance(300).await;
    second.pass().await;
    assert_eq!(w.states().await, "failed completed");
}

engine_cases!(
    a_drained_run_continues_elsewhere,
    a_stopped_junction_runs_again_and_asks_nobody,
    a_lost_host_fails_its_run_once,
);
