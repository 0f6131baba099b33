//! A store that is away for a while, or that does not answer: nothing is done twice, and no run fails for it.

use std::sync::Arc;
use std::time::Duration;

use trax::engine::config::EngineConfig;
use trax::engine::events::EngineEvent;
use trax::engine::supervisor::Engine;
use trax::store::Faults;
use trax::store::queue::NewEntry;

use crate::engine::world::{TestHost, World, queued};

const LEFT: &str = r#"{"Lane":{"choice":"Left","confidence":0.9}}"#;
const INPUT: &str =
    r#"{"acts":{"GoLeft":[{"log":{"message":"one"}}],"Act":[{"log":{"message":"two"}}]}}"#;

/// A run that asks, routes, logs and stops at a checkpoint has done each of it once.
async fn everything_is_there_once(w: &World, runs: usize) {
    assert_eq!(w.states().await, vec!["completed"; runs].join(" "));
    for (sql, per_run) in [
        (
            "SELECT name FROM junction_run ORDER BY metadata_id, position",
            vec!["Left", "GoLeft", "Act"],
        ),
        ("SELECT message FROM log ORDER BY metadata_id, id", vec!["one", "two"]),
        ("SELECT question_key FROM decision ORDER BY metadata_id", vec!["Lane"]),
    ] {
        assert_eq!(w.store.rows(sql).await, vec![per_run; runs].concat());
    }
    let routes = w.store.rows("SELECT routes FROM decision").await;
    assert!(routes.iter().all(|routes| routes.matches("\"track\"").count() == 1), "{routes:?}");
}

async fn dispatched(w: &World, host: &mut TestHost) {
    let new = NewEntry { input: Some(INPUT), ..NewEntry::new(w.store.tenant, "probe-routes") };
    w.store.enqueue(&new).await;
    while !matches!(host.try_dispatch().await, Ok(1)) {}
}

/// A run waits for a store that went away after any of its writes, and does nothing again.
async fn a_run_waits_for_its_store(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let db = w.faulty(&faults).await;
    let answers = |config: &mut EngineConfig| config.answers = Some(LEFT.to_owned());
    let mut host = w.host_on("one", db.clone(), answers).await;
    let before = faults.commits();
    dispatched(&w, &mut host).await;
    host.workers.idle().await;
    let writes = faults.commits() - before;

    let (mut runs, mut refused) = (1, 0);
    for write in 1..writes {
        faults.go_away_after(faults.commits() + write);
        dispatched(&w, &mut host).await;
        refused += 2;
        faults.refused(refused).await;
        faults.set_away(false);
        host.workers.idle().await;
        (runs, refused) = (runs + 1, faults.refusals());
    }
    // The one that could not even be read was put back, and goes on a little later.
    w.advance(1).await;
    db.set_clock(w.store.read(async |tx| tx.now().await).await);
    assert_eq!(host.dispatch().await, 1);
    host.workers.idle().await;

    everything_is_there_once(&w, runs).await;
}

/// A write that is durable although the store did not say so is not made again, whichever it is.
async fn a_write_whose_answer_was_lost_is_there_once(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let db = w.faulty(&faults).await;
    let mut host = w.host_on("one", db, |config| config.answers = Some(LEFT.to_owned())).await;
    let before = faults.commits();
    dispatched(&w, &mut host).await;
    host.workers.idle().await;
    let writes = faults.commits() - before;

    for write in 1..=writes {
        faults.lose_answer_of(faults.commits() + write);
        dispatched(&w, &mut host).await;
        host.workers.idle().await;
        assert_eq!(faults.refusals(), write);
    }

    everything_is_there_once(&w, usize::try_from(writes).unwrap() + 1).await;
    let spent = "SELECT CAST(MAX(claim_token) AS TEXT) FROM metadata";
    assert_eq!(w.store.rows(spent).await, ["1"]);
}

/// T5: when others have given the host up meanwhile, what it held back counts for nothing and fails nothing.
async fn an_end_that_comes_after_the_claim_was_lost_is_dropped(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let db = w.faulty(&faults).await;
    let mut first = w.host_on("first", db, |_| ()).await;
    let mut second = w.host("second").await;
    w.manifest("nightly", "probe", "{}", 1).await;
    second.manage().await;
    faults.go_away_after(faults.commits() + 2);
    first.dispatch().await;
    faults.refused(1).await;
    w.advance(31).await;
    assert_eq!(second.reap().await, 1);
    assert_eq!(queued(&second.manage().await), ["retry 1 +300"]);

    faults.set_away(false);
    first.workers.idle().await;

    let ends = "SELECT train_state, failure_exception FROM metadata";
    assert_eq!(w.store.rows(ends).await, ["failed HostLost"]);
}

/// W16: after a time without a store a host takes nobody's silence for death, nor gives itself up.
async fn silence_during_an_outage_is_no_death(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let db = w.faulty(&faults).await;
    let mut judge = w.host_on("judge", db.clone(), |_| ()).await;
    let mut other = w.host("other").await;
    w.manifest("nightly", "probe", r#"{"acts":{"Act":["loop_forever"]}}"#, 0).await;
    other.manage().await;
    other.dispatch().await;
    w.begun("Act").await;
    let advance = async |seconds| {
        w.advance(seconds).await;
        db.set_clock(w.store.read(async |tx| tx.now().await).await);
    };

    faults.set_away(true);
    advance(31).await;
    assert!(!judge.beat().await);
    faults.set_away(false);
    assert_eq!(judge.look_for_the_dead().await.hosts_lost, 0);
    assert!(judge.beat().await);
    assert_eq!(judge.look_for_the_dead().await.hosts_lost, 0);

    advance(10).await;
    assert!(judge.beat().await);
    assert_eq!(judge.look_for_the_dead().await.hosts_lost, 0);
    advance(20).await;
    assert!(judge.beat().await);
    let report = judge.look_for_the_dead().await;
    assert_eq!((report.hosts_lost, report.runs_lost), (1, 1));

    // The host that was given up for good reason learns it, and stops what is its own no longer.
    assert!(other.beat().await);
    assert_eq!(other.look_for_cancellations().await, 1);
    other.workers.idle().await;
    assert_eq!(w.states().await, "failed");
}

/// A transaction that somebody leaves open holds up the run it touches, and that one only as long as it is open.
async fn a_transaction_held_open_delays_what_it_holds(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let mut host = w.host_on("one", w.faulty(&faults).await, |_| ()).await;
    let input = r#"{"acts":{"Act":["loop_forever"]}}"#;
    for _ in 0..2 {
        w.store
            .enqueue(&NewEntry { input: Some(input), ..NewEntry::new(w.store.tenant, "probe") })
            .await;
    }
    assert_eq!(host.dispatch().await, 2);
    let held = w.last_run().await;
    let other = trax::model::ids::RunId(held.0 - 1);
    let mut open = w.store.db.begin().await.unwrap();
    open.execute_text(&format!("UPDATE metadata SET resume_at = NULL WHERE id = {held}"))
        .await
        .unwrap();

    let mut events = host.shared.events.watch();
    host.workers.cancel(held);
    host.workers.cancel(other);
    if w.store.db.is_postgres() {
        // SQLite has one writer, so there the other one waits as well.
        while !matches!(events.recv().await.unwrap(), EngineEvent::RunEnded { run, .. } if run == other)
        {
        }
        let ended = format!("SELECT train_state FROM metadata WHERE id = {other}");
        assert_eq!(w.store.rows(&ended).await, ["cancelled"]);
    }
    open.rollback().await.unwrap();
    host.workers.idle().await;

    assert_eq!(w.states().await, "cancelled cancelled");
}

/// W8: a drain ends although the store does not come back; what it could not hand over is lost with the host.
async fn a_drain_ends_without_a_store(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let db = w.faulty(&faults).await;
    w.store
        .enqueue(&NewEntry {
            input: Some(r#"{"acts":{"Act":["loop_forever"]}}"#),
            ..NewEntry::new(w.store.tenant, "probe")
        })
        .await;
    let mut config = EngineConfig::of(crate::store::world::host("one"));
    config.shutdown_timeout = Duration::from_millis(20);
    let engine = Engine::start(config, db, crate::world::host());
    let mut events = engine.events();
    while !matches!(events.recv().await.unwrap(), EngineEvent::RunStarted { .. }) {}
    faults.set_away(true);
    engine.drain().await;

    assert_eq!(w.states().await, "in_progress");
    let mut second = w.host("second").await;
    w.advance(31).await;
    assert_eq!(second.reap().await, 1);
    assert_eq!(w.states().await, "failed");
}

/// W8: a drain hands runs over to other hosts, and the host has left.
async fn a_drain_hands_over(w: Arc<World>) {
    w.deploy("probe").await;
    w.store
        .enqueue(&NewEntry {
            input: Some(r#"{"acts":{"Act":["loop_forever"]}}"#),
            ..NewEntry::new(w.store.tenant, "probe")
        })
        .await;
    let mut config = EngineConfig::of(crate::store::world::host("one"));
    config.shutdown_timeout = Duration::from_millis(20);
    let engine = Engine::start(config, w.store.db.clone(), crate::world::host());
    let mut events = engine.events();
    while !matches!(events.recv().await.unwrap(), EngineEvent::RunStarted { .. }) {}
    engine.drain().await;

    let parked =
        "SELECT r.train_state, p.reason FROM metadata r JOIN parked_run p ON p.metadata_id = r.id";
    assert_eq!(w.store.rows(parked).await, ["in_progress hand_over"]);
    assert_eq!(w.store.rows("SELECT name FROM host WHERE left_at IS NOT NULL").await, ["one"]);
    let mut second = w.host("second").await;
    assert_eq!(second.dispatch().await, 1);
    let run = w.last_run().await;
    second.workers.cancel(run);
    second.workers.idle().await;
    assert_eq!(w.states().await, "cancelled");
}

engine_cases!(
    a_run_waits_for_its_store,
    a_write_whose_answer_was_lost_is_there_once,
    an_end_that_comes_after_the_claim_was_lost_is_dropped,
    silence_during_an_outage_is_no_death,
    a_transaction_held_open_delays_what_it_holds,
    a_drain_ends_without_a_store,
    a_drain_hands_over,
);
