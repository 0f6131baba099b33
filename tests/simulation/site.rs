//! A store, its hosts and its operators, and the steps they take as a seed says.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use trax::model::ids::{DeadLetterId, Incarnation, RunId, TenantId};
use trax::operations::dead_letters::{self, Scope};
use trax::operations::triggers::Trigger;
use trax::operations::{manifests, runs, triggers};
use trax::store::manifests::Setting;
use trax::store::queue::{self, NewEntry};
use trax::store::{Db, Faults};

use crate::engine::world::{Part, TestHost, World, at};
use crate::processes::random::Random;
use crate::simulation::Bug;
use crate::store::world::World as StoreWorld;

/// How many runs may be active on all hosts together.
pub(super) const MAX_ACTIVE: usize = 3;
/// How many hosts there are.
const HOSTS: usize = 3;
/// How often every host passes until everything must have drained.
const ROUNDS: usize = 40;
/// The number of the commit that a host which does not crash crashes after.
const NEVER: u64 = u64::MAX;

const WORKS: &str = "{}";
const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;
/// Manifests: their names, what their runs do, and how often they are tried again.
const MANIFESTS: [(&str, &str, i32); 6] = [
    ("works", WORKS, 3),
    ("fails", FAILS, 1),
    ("works too", WORKS, 0),
    ("fails at once", FAILS, 0),
    ("changes", FAILS, 2),
    ("works alone", WORKS, 1),
];

/// A host, and what goes wrong with it.
struct Host {
    parts: TestHost,
    faults: Faults,
    crash_after: u64,
    db: Db,
}

impl Host {
    fn is_crashed(&self) -> bool {
        self.faults.commits() >= self.crash_after
    }

    /// Its process is gone: whatever its runs still do, the store takes none of it.
    async fn bury(&self) {
        self.parts.shared.drain.cancel();
        self.parts.shared.halt.cancel();
        self.parts.shared.gone.cancel();
        self.parts.workers.idle().await;
        self.db.close().await;
    }
}

/// A store with its hosts and operators.
pub(super) struct Site {
    pub(super) world: Arc<World>,
    /// How each run that ended had ended when it was first seen so.
    pub(super) ended: BTreeMap<String, String>,
    /// The entries that there were.
    pub(super) seen_entries: Vec<String>,
    random: Random,
    bug: Option<Bug>,
    hosts: Vec<Host>,
    second_tenant: TenantId,
    starts: usize,
    seconds: i64,
}

impl Site {
    pub(super) async fn new(seed: u64, store: StoreWorld, bug: Option<Bug>) -> Self {
        let world = World::of(store);
        world.deploy("probe").await;
        for (name, input, max_retries) in MANIFESTS {
            world.stated(name, "probe", input, max_retries, Setting::Keep, 60).await;
        }
        let second_tenant = world.tenant("second", 1).await;
        for sql in [
            "UPDATE tenant SET max_active_jobs = 1 WHERE name = 'second'",
            "UPDATE manifest SET manifest_group_id = (SELECT g.manifest_group_id FROM manifest g
                WHERE g.external_id = 'works') WHERE external_id IN ('fails', 'works too')",
            "UPDATE manifest_group SET max_active_jobs = 1 WHERE name = 'works'",
        ] {
            world.store.sql(sql).await.unwrap();
        }
        if let Some(trigger) = bug.and_then(Bug::trigger) {
            world.store.sql(trigger).await.unwrap();
        }
        let mut site = Self {
            world,
            ended: BTreeMap::new(),
            seen_entries: Vec::new(),
            random: Random::of(seed),
            bug,
            hosts: Vec::new(),
            second_tenant,
            starts: 0,
            seconds: 0,
        };
        for index in 0..HOSTS {
            let host = site.start(index, true).await;
            site.hosts.push(host);
        }
        site
    }

    /// Starts a host, under the name of the one that was in its place.
    async fn start(&mut self, index: usize, has_faults: bool) -> Host {
        self.starts += 1;
        let is_to_crash = has_faults && self.random.below(2) == 0;
        // Its first sign of life is a commit too.
        let crash_after = if is_to_crash { 4 + self.random.number() % 40 } else { NEVER };
        let faults = Faults::crash_after(crash_after);
        if has_faults && self.random.below(3) == 0 {
            faults.lose_answer_of(4 + self.random.number() % 20);
        }
        let db = self.world.faulty(&faults).await;
        let (name, starts) = (format!("host-{index}"), self.starts);
        let is_limited = self.bug != Some(Bug::IgnoresLimit) || index > 0;
        let parts = self.world.host_on(&name, db.clone(), |config| {
            config.host.incarnation = Incarnation(format!("host-{index}-{starts}"));
            config.max_active_jobs = is_limited.then_some(MAX_ACTIVE);
        });
        Host { parts: parts.await, faults, crash_after, db }
    }

    /// Takes the next step, and says which.
    pub(super) async fn step(&mut self) -> String {
        // So that a run which a requeue starts never ends at the instant of the dead letter that it retries.
        self.advance(1);
        let index = self.random.below(HOSTS);
        let step = match self.random.below(20) {
            0..=10 => self.pass(index).await,
            11 | 12 => self.let_runs_end(index).await,
            13 => self.jump(),
            14 => self.outage(index).await,
            _ => self.operate().await,
        };
        for index in 0..HOSTS {
            if self.hosts[index].is_crashed() {
                self.hosts[index].bury().await;
                self.hosts[index] = self.start(index, true).await;
            }
        }
        step
    }

    async fn pass(&mut self, index: usize) -> String {
        use Part::{Canceller, Dispatcher, Heartbeat, Manager, Reaper};
        let parts = [Manager, Manager, Dispatcher, Dispatcher, Heartbeat, Reaper, Canceller];
        let part = parts[self.random.below(parts.len())];
        let passed = self.hosts[index].parts.try_pass(part).await;
        let failed = if passed.is_ok() { "" } else { ", which failed" };
        format!("{part:?} of host {index}{failed}")
    }

    async fn let_runs_end(&self, index: usize) -> String {
        self.hosts[index].parts.workers.idle().await;
        format!("the runs of host {index} have left")
    }

    /// Moves the clock on, mostly by a little.
    fn jump(&mut self) -> String {
        let jumps = [1, 5, 31, 61, 301, 3_600, 43_200];
        let seconds = jumps[self.random.below(jumps.len())];
        self.advance(seconds);
        format!("{seconds} seconds passed")
    }

    fn advance(&mut self, seconds: i64) {
        self.seconds += seconds;
        self.world.set_clock(self.seconds);
        for host in &self.hosts {
            host.db.set_clock(at(self.seconds));
        }
    }

    /// A host does not reach the store for a pass.
    async fn outage(&mut self, index: usize) -> String {
        self.hosts[index].faults.set_away(true);
        let passed = self.pass(index).await;
        self.hosts[index].faults.set_away(false);
        format!("{passed}, without a store")
    }

    /// An operator does something.
    async fn operate(&mut self) -> String {
        let (tenant, world) = (self.world.store.tenant, Arc::clone(&self.world));
        let db = &world.store.db;
        let (manifest, input, _) = MANIFESTS[self.random.below(MANIFESTS.len())];
        let action = self.random.below(10);
        let is_done = match action {
            0 | 1 => {
                let delay = Duration::from_secs(self.random.number() % 2 * 90);
                let trigger = Trigger { delay, asks_afresh: action == 0 };
                triggers::manifest(db, tenant, manifest, trigger).await.is_ok()
            }
            2 => {
                let is_enabled = self.random.below(3) > 0;
                manifests::set_enabled(db, tenant, &[manifest.to_owned()], is_enabled).await.is_ok()
            }
            3 => {
                let scope = Scope::All;
                let go_on = |_| ControlFlow::Continue(());
                dead_letters::requeue_all(db, tenant, scope, false, go_on).await.is_ok()
            }
            4 | 5 => self.resolve_one(action == 4).await,
            6 => self.cancel_one().await,
            7 => {
                let input = if self.random.below(2) == 0 { WORKS } else { input };
                world.set_input("changes", input).await;
                true
            }
            _ => self.enqueue().await,
        };
        format!("operator's action {action} on '{manifest}', done: {is_done}")
    }

    /// Requeues or acknowledges a dead letter, which may have been resolved before.
    async fn resolve_one(&mut self, is_requeue: bool) -> bool {
        let (tenant, db) = (self.world.store.tenant, self.world.store.db.clone());
        let Some(id) = self.any_of("SELECT CAST(id AS TEXT) FROM dead_letter ORDER BY id").await
        else {
            return false;
        };
        let id = DeadLetterId(id);
        if is_requeue {
            dead_letters::requeue(&db, tenant, id, false).await.is_ok()
        } else {
            dead_letters::acknowledge(&db, tenant, id, None).await.is_ok()
        }
    }

    async fn cancel_one(&mut self) -> bool {
        let (tenant, db) = (self.world.store.tenant, self.world.store.db.clone());
        let active = "SELECT CAST(id AS TEXT) FROM metadata WHERE end_time IS NULL ORDER BY id";
        let Some(run) = self.any_of(active).await else { return false };
        runs::cancel(&db, tenant, RunId(run)).await.is_ok()
    }

    async fn any_of(&mut self, sql: &str) -> Option<i64> {
        let ids = self.world.store.rows(sql).await;
        let chosen = ids.get(self.random.below(ids.len().max(1)))?;
        chosen.parse().ok()
    }

    /// Queues runs of no manifest: of a subject, and of the tenant that has a limit.
    async fn enqueue(&mut self) -> bool {
        let tenant =
            if self.random.below(2) == 0 { self.second_tenant } else { self.world.store.tenant };
        let subject_key = [None, Some("a"), Some("b")][self.random.below(3)];
        let new = NewEntry { input: Some(WORKS), subject_key, ..NewEntry::new(tenant, "probe") };
        let queued = self.world.store.try_write(async |tx| {
            queue::enqueue(tx, &new).await?;
            queue::enqueue(tx, &new).await
        });
        queued.await.is_ok()
    }

    /// No fault any more, and nothing new: whatever was to be done is done in the end.
    pub(super) async fn drain(&mut self) -> Result<(), String> {
        for index in 0..HOSTS {
            self.hosts[index].bury().await;
            self.hosts[index] = self.start(index, false).await;
        }
        let (tenant, db) = (self.world.store.tenant, self.world.store.db.clone());
        let all = MANIFESTS.map(|(name, ..)| name.to_owned());
        manifests::set_enabled(&db, tenant, &all, true).await.unwrap();
        for _ in 0..ROUNDS {
            self.advance(20);
            for host in &mut self.hosts {
                for part in [Part::Heartbeat, Part::Reaper, Part::Canceller, Part::Dispatcher] {
                    host.parts.try_pass(part).await.map_err(|error| error.to_string())?;
                }
                host.parts.workers.idle().await;
            }
            self.check().await.map_err(|wrong| format!("while it drained: {wrong}"))?;
            if self.unfinished().await.is_empty() {
                return Ok(());
            }
            // What waits for a retry waits for hours at most, and hosts give signs of life every few seconds.
            self.wake_waiting().await;
        }
        Err(format!("this did not drain: {}", self.unfinished().await.join(", ")))
    }

    /// Goes to when the next queued entry may be dispatched, if all of them wait, with all hosts alive.
    async fn wake_waiting(&mut self) {
        let active =
            "SELECT CAST(id AS TEXT) FROM metadata WHERE train_state IN ('pending', 'in_progress')";
        if !self.world.store.rows(active).await.is_empty() {
            return;
        }
        self.advance(3_600);
        for host in &mut self.hosts {
            host.parts.beat().await;
        }
    }

    /// Nothing runs any more.
    pub(super) async fn close(&self) {
        for host in &self.hosts {
            host.bury().await;
        }
    }
}
