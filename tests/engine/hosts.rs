//! Hosts: what they do, how they start without a database, and how a tenant's trains are doing.

use std::sync::Arc;
use std::time::Duration;

use trax::engine::config::EngineConfig;
use trax::engine::events::EngineEvent;
use trax::engine::supervisor::Engine;
use trax::operations::error::OperationError;
use trax::operations::health::{self, Health};
use trax::operations::seeding;
use trax::store::Faults;
use trax::store::queue::NewEntry;

use crate::engine::world::World;

const WORKS: &str = "{}";

/// M1: a host whose manager is off runs what is queued, and queues nothing that is due.
async fn a_host_without_a_manager_queues_nothing(w: Arc<World>) {
    w.deploy("probe").await;
    w.manifest("nightly", "probe", WORKS, 3).await;
    let new = NewEntry { input: Some(WORKS), ..NewEntry::new(w.store.tenant, "probe") };
    w.store.enqueue(&new).await;
    let mut config = EngineConfig::of(crate::store::world::host("worker"));
    assert_eq!(config.manifest_manager_interval, Duration::from_secs(5));
    config.roles.scheduler = false;
    let engine = Engine::start(config, w.store.db.clone(), crate::world::host());
    let mut events = engine.events();
    engine.nudge();
    loop {
        match events.recv().await.unwrap() {
            EngineEvent::RunEnded { .. } => break,
            event => assert!(!matches!(event, EngineEvent::RunQueued { .. }), "{event:?}"),
        }
    }
    assert_eq!(engine.is_hung_for(), None);
    engine.drain().await;
    assert_eq!(w.states().await, "completed");

    let mut config = EngineConfig::of(crate::store::world::host("scheduler"));
    config.roles.worker = false;
    let engine = Engine::start(config, w.store.db.clone(), crate::world::host());
    let queued = "SELECT CAST(COUNT(*) AS TEXT) FROM work_queue WHERE status = 'queued'";
    while w.store.rows(queued).await != ["1"] {
        tokio::task::yield_now().await;
    }
    engine.drain().await;
    assert_eq!(w.states().await, "completed");
}

/// W17: a host that starts tries five times more while its database fails, from two seconds on and doubling; what is
/// asked wrongly fails at once.
async fn a_host_waits_for_its_database(w: Arc<World>) {
    let faults = Faults::none();
    let db = w.faulty(&faults).await;
    for (comes_back_after, succeeds) in [(0, true), (3, true), (5, true), (6, false)] {
        faults.set_away(comes_back_after > 0);
        let mut pauses = Vec::new();
        let work = async || {
            let mut tx = db.begin().await?;
            Ok::<_, OperationError>(tx.now().await?)
        };
        let pause = async |pause: Duration| {
            pauses.push(pause.as_secs());
            faults.set_away(pauses.len() < comes_back_after);
        };
        let done = seeding::patiently(work, pause).await;
        assert_eq!(done.is_ok(), succeeds, "{comes_back_after}");
        assert_eq!(pauses, [2, 4, 8, 16, 32][..comes_back_after.min(5)]);
    }
    let mut tries = 0;
    let work = async || {
        tries += 1;
        Err::<(), _>(OperationError::Invalid("no".to_owned()))
    };
    assert!(seeding::patiently(work, async |_| panic!("it waits")).await.is_err());
    assert_eq!(tries, 1);
}

/// W28: dead letters that await somebody and more than ten failures in an hour are told; else all is well.
async fn health_is_read_from_a_few_numbers(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let fails = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;
    let new = NewEntry { input: Some(fails), ..NewEntry::new(w.store.tenant, "probe") };
    let told = async || health::health(&w.store.db, w.store.tenant).await.unwrap();
    let shown = |health: &Health| {
        let load = health.load;
        (health.status, load.queue_depth, load.in_progress, load.failed_lately, load.dead_letters)
    };
    for _ in 0..10 {
        w.store.enqueue(&new).await;
    }
    assert_eq!(shown(&told().await), ("Healthy", 10, 0, 0, 0));
    host.pass().await;
    host.pass().await;
    assert_eq!(shown(&told().await), ("Healthy", 0, 0, 10, 0));
    w.store.enqueue(&new).await;
    host.pass().await;
    let many = told().await;
    assert_eq!(shown(&many), ("Degraded", 0, 0, 11, 0));
    assert_eq!(many.description, "11 run(s) failed in the last hour");
    w.advance(3_601).await;
    assert_eq!(shown(&told().await), ("Healthy", 0, 0, 0, 0));

    w.given_up("nightly", 1).await;
    let letters = told().await;
    assert_eq!(shown(&letters), ("Degraded", 0, 0, 0, 1));
    assert_eq!(letters.description, "1 dead letter(s) await intervention");
}

engine_cases!(
    a_host_without_a_manager_queues_nothing,
    a_host_waits_for_its_database,
    health_is_read_from_a_few_numbers,
);
