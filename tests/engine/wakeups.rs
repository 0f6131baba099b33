//! Wake-ups of a whole engine whose loops would look only once in an hour.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use trax::engine::events::EngineEvent;
use trax::engine::supervisor::{Engine, EngineConfig};
use trax::store::queue::{self, NewEntry};
use trax::store::{Db, OpenOptions, open};

use crate::engine::world::World;

async fn queue_one(w: &World, db: &Db) {
    let new = NewEntry { input: Some("{}"), ..NewEntry::new(w.store.tenant, "probe") };
    let queued = crate::store::world::write(db, async |tx| queue::enqueue(tx, &new).await).await;
    queued.unwrap();
}

async fn ended(events: &mut Receiver<EngineEvent>) {
    while !matches!(events.recv().await.unwrap(), EngineEvent::RunEnded { .. }) {}
}

/// J1: the dispatcher looks at once when something is queued, in this process or, on Postgres, by any other host, also
/// after the connection that listens was lost.
async fn what_is_queued_starts_without_waiting_for_the_next_look(w: Arc<World>) {
    w.deploy("probe").await;
    let mut config = EngineConfig::of(crate::store::world::host("one"));
    let hour = Duration::from_hours(1);
    config.job_dispatcher_interval = hour;
    config.manifest_manager_interval = hour;
    let engine = Engine::start(config, w.store.db.clone(), crate::world::host());
    let mut events = engine.events();

    queue_one(&w, &w.store.db).await;
    ended(&mut events).await;
    if w.store.db.is_postgres() {
        let other = open(&w.store.url, &OpenOptions::default()).await.unwrap();
        queue_one(&w, &other).await;
        ended(&mut events).await;
        let listening = "SELECT CAST(pg_terminate_backend(pid) AS TEXT) FROM pg_stat_activity
            WHERE datname = current_database() AND query ILIKE 'listen%'";
        assert_eq!(w.store.rows(listening).await, ["true"]);
        queue_one(&w, &other).await;
        ended(&mut events).await;
        other.close().await;
    }
    engine.drain().await;
}

engine_cases!(what_is_queued_starts_without_waiting_for_the_next_look);
