//! A store with the built guests deployed, hosts whose passes a case makes, and a clock that stands still.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use trax::chain::verify::verify;
use trax::engine::EngineError;
use trax::engine::canceller::Canceller;
use trax::engine::config::{EngineConfig, Shared};
use trax::engine::due;
use trax::engine::events::EngineEvent;
use trax::engine::heartbeat::Heartbeat;
use trax::engine::job_dispatcher::JobDispatcher;
use trax::engine::manifest_manager::ManifestManager;
use trax::engine::reaper::Reaper;
use trax::engine::service::Service;
use trax::engine::worker::Workers;
use trax::model::ids::{ManifestId, RunId, TenantId};
use trax::model::timestamp::Timestamp;
use trax::store::components::{self, NewTrain, NewVersion};
use trax::store::manifests::{self, Schedule, Setting, Statement};
use trax::store::queue::{self, NewEntry};
use trax::store::tenants::{self, TenantStatement};
use trax::store::{Db, Durability, Faults, OpenOptions, ScheduleType, Tx, groups};

use crate::invariants;
use crate::store::world::{self as store_world, World as StoreWorld};

/// Makes each case two tests. After each, the invariants are looked at.
macro_rules! engine_cases {
    ($($case:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $case() { $crate::engine::world::on_sqlite(super::$case); })*
        }

        mod postgres {
            $(#[test] fn $case() {
                $crate::engine::world::on_postgres(concat!("engine_", stringify!($case)), super::$case);
            })*
        }
    };
}

/// Runs a case on a SQLite file.
pub(crate) fn on_sqlite<F: Future<Output = ()>>(case: impl FnOnce(Arc<World>) -> F) {
    store_world::on_sqlite(|store| checked(store, case));
}

/// Runs a case on a Postgres database.
pub(crate) fn on_postgres<F: Future<Output = ()>>(name: &str, case: impl FnOnce(Arc<World>) -> F) {
    store_world::on_postgres(name, |store| checked(store, case));
}

async fn checked<F: Future<Output = ()>>(store: StoreWorld, case: impl FnOnce(Arc<World>) -> F) {
    let world = World::of(store);
    case(Arc::clone(&world)).await;
    invariants::hold(&world.store.db).await;
    world.nothing_is_forgotten().await;
}

/// A store and its clock.
pub(crate) struct World {
    /// The store.
    pub(crate) store: StoreWorld,
    /// The hosts that were made, for what is looked at in the end.
    hosts: Mutex<Vec<(Arc<Shared>, Workers)>>,
}

/// A host whose passes a case makes.
pub(crate) struct TestHost {
    /// What its parts share.
    pub(crate) shared: Arc<Shared>,
    /// Its workers.
    pub(crate) workers: Workers,
    manager: ManifestManager,
    dispatcher: JobDispatcher,
    heartbeat: Heartbeat,
    reaper: Reaper,
    canceller: Canceller,
}

/// A part of a host that does its work in passes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Manager,
    Dispatcher,
    Heartbeat,
    Reaper,
    Canceller,
}

impl World {
    /// One around a store. Its clock stands at the start of 2026.
    pub(crate) fn of(store: StoreWorld) -> Arc<Self> {
        let world = Arc::new(Self { store, hosts: Mutex::default() });
        world.set_clock(0);
        world
    }

    /// The same store, as another tenant sees it.
    pub(crate) fn of_tenant(&self, tenant: TenantId) -> Self {
        let StoreWorld { db, url, .. } = &self.store;
        let store = StoreWorld { db: db.clone(), tenant, url: url.clone() };
        Self { store, hosts: Mutex::default() }
    }

    /// A host that the store knows, with other settings than the default.
    pub(crate) async fn host_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut EngineConfig),
    ) -> TestHost {
        self.host_on(name, self.store.db.clone(), change).await
    }

    /// The store as a host with faults sees it, its clock too.
    pub(crate) async fn faulty(&self, faults: &Faults) -> Db {
        let options = OpenOptions {
            durability: Durability::Fast,
            lock_wait_max: Duration::from_millis(100),
            faults: Some(faults.clone()),
            ..OpenOptions::default()
        };
        let db = trax::store::open(&self.store.url, &options).await.unwrap();
        db.set_clock(self.store.read(async |tx| tx.now().await).await);
        db
    }

    /// A host that sees the store through connections of its own.
    pub(crate) async fn host_on(
        &self,
        name: &str,
        db: Db,
        change: impl FnOnce(&mut EngineConfig),
    ) -> TestHost {
        let mut config = EngineConfig::of(store_world::host(name));
        config.worker_count = 8;
        config.claim_ahead = 0;
        config.step_delay = Duration::ZERO;
        change(&mut config);
        let shared = Shared::new(config, db);
        let workers = Workers::new(Arc::clone(&shared), crate::world::host());
        let mut host = TestHost {
            manager: ManifestManager::new(Arc::clone(&shared)),
            dispatcher: JobDispatcher::new(Arc::clone(&shared), workers.clone()),
            heartbeat: Heartbeat::new(Arc::clone(&shared)),
            reaper: Reaper::new(Arc::clone(&shared), workers.clone()),
            canceller: Canceller::new(Arc::clone(&shared), workers.clone()),
            shared,
            workers,
        };
        host.heartbeat.pass().await.unwrap();
        self.hosts.lock().unwrap().push((Arc::clone(&host.shared), host.workers.clone()));
        host
    }

    /// Panics when a host that counts as alive owns a run that none of its workers has: nothing would ever move it.
    async fn nothing_is_forgotten(&self) {
        let hosts: Vec<_> = self.hosts.lock().unwrap().drain(..).collect();
        for (shared, workers) in hosts {
            let Some(host) = shared.registered() else { continue };
            if workers.free() < shared.config.worker_count {
                continue;
            }
            let sql = format!(
                "SELECT CAST(r.id AS TEXT) FROM metadata r JOIN host h ON h.incarnation = r.host_incarnation
                 WHERE h.left_at IS NULL AND h.incarnation = '{}' AND r.train_state = 'in_progress'",
                host.incarnation
            );
            let forgotten = self.store.rows(&sql).await;
            assert!(forgotten.is_empty(), "host '{}' forgot runs: {forgotten:?}", host.name);
        }
    }

    /// Waits until one run is in this junction, and no other run in any.
    pub(crate) async fn begun(&self, junction: &str) {
        let current = "SELECT currently_running_junction FROM metadata
            WHERE currently_running_junction IS NOT NULL";
        while self.store.rows(current).await != [junction] {
            tokio::task::yield_now().await;
        }
    }

    /// A host that the store knows.
    pub(crate) async fn host(&self, name: &str) -> TestHost {
        self.host_with(name, |_| ()).await
    }

    /// Deploys a built guest.
    pub(crate) async fn deploy(&self, guest: &str) {
        self.deploy_for(self.store.tenant, guest).await;
    }

    async fn deploy_for(&self, tenant: TenantId, guest: &str) {
        let component = crate::world::component(guest).await;
        let wasm = crate::world::guest(guest);
        let train = |train: &trax::chain::declaration::Train| NewTrain {
            name: train.name.clone(),
            declaration: serde_json::to_string(train).unwrap(),
            chain_hash: verify(train.clone()).unwrap().hash().to_owned(),
        };
        let trains: Vec<NewTrain> = component.trains().iter().map(train).collect();
        let new = NewVersion { tenant, component: guest, wasm: &wasm, trains: &trains };
        self.store
            .write(async |tx| {
                let version = components::add_version(tx, &new).await?;
                components::activate(tx, tenant, version.id).await
            })
            .await;
    }

    /// A tenant of some weight, with the guest `probe` deployed.
    pub(crate) async fn tenant(&self, name: &str, weight: i32) -> TenantId {
        let stated = TenantStatement {
            weight: Some(weight),
            max_active_jobs: Setting::Keep,
            max_queued_jobs: Setting::Keep,
        };
        let added = async |tx: &mut Tx<'static>| {
            let tenant = tenants::add(tx, name).await?;
            tenants::set(tx, tenant, stated).await?;
            Ok(tenant)
        };
        let tenant = self.store.write(added).await;
        self.deploy_for(tenant, "probe").await;
        tenant
    }

    /// Sets the clock to this many seconds after the start of 2026.
    pub(crate) fn set_clock(&self, seconds: i64) {
        self.store.db.set_clock(at(seconds));
    }

    /// Moves the clock on.
    pub(crate) async fn advance(&self, seconds: u64) {
        self.store.advance(Duration::from_secs(seconds)).await;
    }

    /// States a manifest that runs every hour, and says when it is due.
    pub(crate) async fn manifest(
        &self,
        name: &str,
        train: &str,
        input: &str,
        max_retries: i32,
    ) -> ManifestId {
        self.stated(name, train, input, max_retries, Setting::Keep, 3_600).await
    }

    /// States a manifest with a failure window and an interval of its own, in seconds.
    pub(crate) async fn stated(
        &self,
        name: &str,
        train: &str,
        input: &str,
        max_retries: i32,
        window: Setting<i32>,
        every: i32,
    ) -> ManifestId {
        let tenant = self.store.tenant;
        let schedule =
            Schedule { interval_seconds: Some(every), ..Schedule::new(ScheduleType::Interval) };
        let manifest = self
            .store
            .write(async |tx| {
                let group = groups::upsert(tx, &store_world::group_named(tenant, name)).await?;
                let stated = Statement {
                    train,
                    input: Some(input),
                    input_type: None,
                    schedule,
                    max_retries: Some(max_retries),
                    failure_window_seconds: window,
                    ..store_world::statement(tenant, name, group)
                };
                manifests::upsert(tx, &stated).await
            })
            .await;
        self.settle_due(manifest).await;
        manifest
    }

    /// Brings the index of what is due in line, as whoever changes a manifest does.
    pub(crate) async fn settle_due(&self, manifest: ManifestId) {
        let mut tx = self.store.db.begin().await.unwrap();
        due::settle(&mut tx, self.store.tenant, manifest, Duration::from_hours(24)).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Changes what a manifest's next runs do.
    pub(crate) async fn set_input(&self, name: &str, input: &str) {
        let sql =
            format!("UPDATE manifest SET properties = '{input}' WHERE external_id = '{name}'");
        self.store.sql(&sql).await.unwrap();
    }

    /// Triggers a manifest now.
    pub(crate) async fn trigger(&self, manifest: ManifestId) {
        let tenant = self.store.tenant;
        self.store
            .write(async |tx| {
                let stated = manifests::detail(tx, tenant, manifest).await?;
                let new = NewEntry {
                    input: stated.properties.as_deref(),
                    ..NewEntry::new(tenant, &stated.name)
                };
                queue::trigger(tx, manifest, Duration::ZERO, false, &new).await
            })
            .await;
    }

    /// The states of all runs, oldest first.
    pub(crate) async fn states(&self) -> String {
        self.store.rows("SELECT train_state FROM metadata ORDER BY id").await.join(" ")
    }

    /// Dead letters: status and reason.
    pub(crate) async fn dead_letters(&self) -> Vec<String> {
        self.store.rows("SELECT status, reason FROM dead_letter ORDER BY id").await
    }

    /// The last run's id.
    pub(crate) async fn last_run(&self) -> RunId {
        let ids = self.store.rows("SELECT CAST(MAX(id) AS TEXT) FROM metadata").await;
        RunId(ids[0].parse().unwrap())
    }
}

/// This many seconds after the start of 2026.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros((1_767_225_600 + seconds) * 1_000_000).unwrap()
}

impl TestHost {
    /// One pass of every loop, and what the manager said of it; the runs it started have ended.
    pub(crate) async fn pass(&mut self) -> Vec<EngineEvent> {
        let mut events = self.shared.events.watch();
        self.heartbeat.pass().await.unwrap();
        self.reaper.pass().await.unwrap();
        let managed = self.manager.pass().await.unwrap();
        assert_eq!(managed.failed, 0, "{managed:?}");
        self.dispatcher.pass().await.unwrap();
        self.workers.idle().await;
        let mut seen = Vec::new();
        while let Ok(event) = events.try_recv() {
            seen.push(event);
        }
        seen
    }

    /// A pass of one part, which may fail.
    pub(crate) async fn try_pass(&mut self, part: Part) -> Result<(), EngineError> {
        match part {
            Part::Manager => self.manager.pass().await.map(drop),
            Part::Dispatcher => self.dispatcher.pass().await.map(drop),
            Part::Heartbeat => self.heartbeat.pass().await.map(drop),
            Part::Reaper => self.reaper.pass().await.map(drop),
            Part::Canceller => self.canceller.pass().await.map(drop),
        }
    }

    /// A pass of the dispatcher alone; the runs it started may still be in progress.
    pub(crate) async fn dispatch(&mut self) -> usize {
        let report = self.dispatcher.pass().await.unwrap();
        report.started + report.continued
    }

    /// Cancels every run in progress here, and waits for their ends.
    pub(crate) async fn cancel_all(&self, w: &World) {
        let running = w.store.rows("SELECT CAST(id AS TEXT) FROM metadata WHERE end_time IS NULL");
        for run in running.await {
            self.workers.cancel(RunId(run.parse().unwrap()));
        }
        self.workers.idle().await;
    }

    /// The one run is cancelled, and its manifest, which runs every hour, waits for its next occurrence.
    pub(crate) async fn used_up_an_hour(&mut self, w: &World) {
        assert_eq!(w.states().await, "cancelled");
        w.advance(3_599).await;
        assert!(queued(&self.manage().await).is_empty());
        w.advance(1).await;
        assert_eq!(queued(&self.manage().await), ["run"]);
        assert!(w.dead_letters().await.is_empty());
    }

    /// A pass of the dispatcher that may fail.
    pub(crate) async fn try_dispatch(&mut self) -> Result<usize, EngineError> {
        let report = self.dispatcher.pass().await?;
        Ok(report.started + report.continued)
    }

    /// A pass of the canceller alone: how many runs it stopped.
    pub(crate) async fn look_for_cancellations(&mut self) -> usize {
        let report = self.canceller.pass().await.unwrap();
        report.cancelled + report.lost
    }

    /// A sign of life, and whether it reached the store.
    pub(crate) async fn beat(&mut self) -> bool {
        self.heartbeat.pass().await.is_ok()
    }

    /// A pass of the reaper alone, without a sign of life before.
    pub(crate) async fn look_for_the_dead(&mut self) -> trax::engine::reaper::Report {
        self.reaper.pass().await.unwrap()
    }

    /// A pass of the manager alone, and what it says of itself.
    pub(crate) async fn managed(&mut self) -> trax::engine::manifest_manager::Report {
        self.manager.pass().await.unwrap()
    }

    /// A pass of the manager alone.
    pub(crate) async fn manage(&mut self) -> Vec<EngineEvent> {
        let mut events = self.shared.events.watch();
        self.manager.pass().await.unwrap();
        std::iter::from_fn(|| events.try_recv().ok()).collect()
    }

    /// A pass of the reaper alone: how many runs failed with their host.
    pub(crate) async fn reap(&mut self) -> usize {
        self.heartbeat.pass().await.unwrap();
        self.reaper.pass().await.unwrap().runs_lost
    }
}

/// What the manager queued: `run`, `retry 1 +300` (failures, seconds of delay) or `dead letter`.
pub(crate) fn queued(events: &[EngineEvent]) -> Vec<String> {
    let shown = |event: &EngineEvent| match event {
        EngineEvent::RunQueued { .. } => Some("run".to_owned()),
        EngineEvent::RetryQueued { failures, delay, .. } => {
            Some(format!("retry {failures} +{}", delay.as_secs()))
        }
        EngineEvent::DeadLettered { .. } => Some("dead letter".to_owned()),
        _ => None,
    };
    events.iter().filter_map(shown).collect()
}
