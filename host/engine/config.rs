//! How an engine runs, and who it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::decide::replay;
use crate::decide::state_hash::StateHasher;
use crate::deciders::host::HostDeciders;
use crate::engine::chains::Chains;
use crate::engine::cleanup::CleanupConfig;
use crate::engine::error::EngineError;
use crate::engine::events::Events;
use crate::engine::identity::{self, Roles};
use crate::engine::liveness::Liveness;
use crate::engine::seal::MemoryKey;
use crate::model::dispatch::DispatchPolicy;
use crate::model::ids::Incarnation;
use crate::model::limits::Limits;
use crate::model::retry::RetryPolicy;
use crate::model::timestamp::Timestamp;
use crate::store::hosts::Host;
use crate::store::{Db, queue};

/// How an engine runs.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Who this host is.
    pub host: Host,
    /// What this host does.
    pub roles: Roles,
    /// How long the dispatcher may be silent before the process counts as hung, if that is stated.
    pub liveness_timeout: Option<Duration>,
    /// The longest time between two passes of the manifest manager.
    pub manifest_manager_interval: Duration,
    /// The longest time between two passes of the dispatcher.
    pub job_dispatcher_interval: Duration,
    /// How long a host may give no sign of life. It gives one every third of this.
    pub lease: Duration,
    /// The longest time until a host sees that one of its runs was cancelled elsewhere.
    pub cancellation_interval: Duration,
    /// How long a step of a run may wait to be shown. What waits is written with what comes next; zero: it is written
    /// before the step.
    pub step_delay: Duration,
    /// How many runs this host has in progress at once.
    pub worker_count: usize,
    /// How many runs more it claims, at most, when they are so short that its workers begin them soon.
    pub claim_ahead: usize,
    /// How long a claimed run may wait for a worker before it is given back.
    pub claim_ahead_for: Duration,
    /// How many runs may be active on all hosts together; `None`: any number.
    pub max_active_jobs: Option<usize>,
    /// Trains whose runs do not count as active.
    pub exclude_from_max_active_jobs: Vec<String>,
    /// How many entries of one manifest group a pass of the dispatcher takes; `None`: any number.
    pub max_queued_jobs_per_cycle: Option<usize>,
    /// What happens to entries that cannot be delivered to a worker.
    pub dispatch: DispatchPolicy,
    /// How many entries a pass of the manifest manager makes; `None`: any number.
    pub max_work_queue_entries_per_cycle: Option<u32>,
    /// How much higher the priority of a dependent's entries is than its manifest's.
    pub dependent_priority_boost: i16,
    /// How long an entry may be staged before it is resolved.
    pub stale_staged_entry_timeout: Duration,
    /// Whether an entry staged for too long is dispatched rather than withdrawn.
    pub promotes_stale_staged_entries: bool,
    /// `max_retries` of manifests that do not state it.
    pub default_max_retries: i32,
    /// How long a failure counts, unless its manifest says so.
    pub failure_count_window: Duration,
    /// How long retries wait.
    pub retry: RetryPolicy,
    /// How long a run may take, unless its manifest says so.
    pub default_job_timeout: Duration,
    /// How long a run may wait for somebody to pick it up.
    pub stale_pending_timeout: Duration,
    /// How long a run may be in progress that did not stop when it was asked to. A run whose own timeout is longer than
    /// `default_job_timeout` has as much more.
    pub stale_in_progress_timeout: Duration,
    /// How long runs have to reach a boundary when the host drains. After that the junction they are in is given up,
    /// and runs again where they continue.
    pub shutdown_timeout: Duration,
    /// What is deleted when it is old.
    pub cleanup: CleanupConfig,
    /// What guests may use.
    pub limits: Limits,
    /// A script that answers every question in place of the trains' own deciders.
    pub answers: Option<String>,
    /// The deciders of this host, which trains and operators choose by name.
    pub deciders: Arc<HostDeciders>,
    /// Hashes the states of questions.
    pub hasher: StateHasher,
    /// Whether decisions are recorded. A host that does not refuses to start when there are trains that ask.
    pub records_decisions: bool,
    /// How long an answer is replayed after a decider gave it; `None`: for as long as it is kept.
    pub replay_answers_for: Option<Duration>,
    /// Encrypts what is kept of parked runs; without one it is kept as the inputs of runs are.
    pub memory_key: Option<MemoryKey>,
}

impl EngineConfig {
    /// The defaults, for a new start of this machine's host.
    ///
    /// # Errors
    /// When the operating system gives no random bytes for the incarnation.
    pub fn of_this_machine() -> Result<Self, EngineError> {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("localhost");
        let incarnation = Incarnation(queue::new_id()?);
        let variable = |name: &str| std::env::var(name).ok();
        Ok(Self::of(identity::detect(incarnation, name, std::process::id(), variable)))
    }

    /// The defaults, for this host.
    pub fn of(host: Host) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            host,
            roles: Roles::default(),
            liveness_timeout: None,
            manifest_manager_interval: Duration::from_secs(5),
            job_dispatcher_interval: Duration::from_secs(2),
            lease: Duration::from_secs(30),
            cancellation_interval: Duration::from_secs(1),
            step_delay: Duration::from_millis(100),
            worker_count: cores.min(256),
            claim_ahead: 64,
            claim_ahead_for: Duration::from_secs(1),
            max_active_jobs: Some(10),
            exclude_from_max_active_jobs: Vec::new(),
            max_queued_jobs_per_cycle: Some(100),
            dispatch: DispatchPolicy::default(),
            max_work_queue_entries_per_cycle: Some(200),
            dependent_priority_boost: 16,
            stale_staged_entry_timeout: Duration::from_mins(10),
            promotes_stale_staged_entries: false,
            default_max_retries: 3,
            failure_count_window: Duration::from_hours(24),
            retry: RetryPolicy::default(),
            default_job_timeout: Duration::from_mins(20),
            stale_pending_timeout: Duration::from_mins(20),
            stale_in_progress_timeout: Duration::from_hours(1),
            shutdown_timeout: Duration::from_secs(30),
            cleanup: CleanupConfig::default(),
            limits: Limits::default(),
            answers: None,
            deciders: Arc::default(),
            hasher: StateHasher::unkeyed(),
            records_decisions: true,
            replay_answers_for: Some(replay::ANSWERS_FOR),
            memory_key: None,
        }
    }
}

/// What the parts of one engine share.
#[derive(Debug)]
pub struct Shared {
    /// How it runs.
    pub config: EngineConfig,
    /// Its store.
    pub db: Db,
    /// Who is told what happens.
    pub events: Events,
    /// Ends the pause of the manifest manager.
    pub manager_nudge: Notify,
    /// Ends the pause of the dispatcher.
    pub dispatcher_nudge: Notify,
    /// Ends the pause of the reaper.
    pub reaper_nudge: Notify,
    /// Ends the pause of the canceller.
    pub canceller_nudge: Notify,
    /// Makes the cleanup pass at once.
    pub cleanup_nudge: Notify,
    /// Ends the pause of the heartbeat.
    pub heartbeat_nudge: Notify,
    /// Set when this host takes up nothing new, and its runs stop at their next boundary.
    pub drain: CancellationToken,
    /// Set when runs stop where they are.
    pub halt: CancellationToken,
    /// Set when nothing waits for the store any more: what could not be written is lost with this host.
    pub gone: CancellationToken,
    /// The chains of deployed trains.
    pub chains: Chains,
    /// Whether the dispatcher still passes.
    pub liveness: Liveness,
    host: RwLock<Registered>,
    touch: Mutex<Touch>,
}

/// Whether this host is in touch with the store, as far as its signs of life tell.
#[derive(Debug, Default)]
struct Touch {
    is_lost: bool,
    /// When it was found again.
    since: Option<Timestamp>,
}

#[derive(Debug)]
struct Registered {
    host: Arc<Host>,
    is_registered: bool,
}

impl Shared {
    /// An engine that has not started.
    pub fn new(config: EngineConfig, db: Db) -> Arc<Self> {
        let host = Arc::new(config.host.clone());
        Arc::new(Self {
            config,
            db,
            events: Events::default(),
            manager_nudge: Notify::new(),
            dispatcher_nudge: Notify::new(),
            reaper_nudge: Notify::new(),
            canceller_nudge: Notify::new(),
            cleanup_nudge: Notify::new(),
            heartbeat_nudge: Notify::new(),
            drain: CancellationToken::new(),
            halt: CancellationToken::new(),
            gone: CancellationToken::new(),
            chains: Chains::default(),
            liveness: Liveness::default(),
            host: RwLock::new(Registered { host, is_registered: false }),
            touch: Mutex::default(),
        })
    }

    /// Waits before the next try of something that the store did not take. False: there is none, this host is gone.
    pub(in crate::engine) async fn pause(&self, pause: Duration) -> bool {
        Clock.timeout(pause, self.gone.cancelled()).await.is_err()
    }

    /// A sign of life did not reach the store.
    pub(in crate::engine) fn lose_touch(&self) {
        self.touch().is_lost = true;
    }

    /// A sign of life has reached the store, at an instant of its clock.
    pub(in crate::engine) fn in_touch(&self, now: Timestamp) {
        let mut touch = self.touch();
        if std::mem::take(&mut touch.is_lost) {
            touch.since = Some(now);
        }
    }

    /// Whether the silence of another host says that it is gone. After a time without a store nobody has given a sign
    /// of life, so everybody is given a lease to do it.
    pub(in crate::engine) fn may_judge(&self, now: Timestamp) -> bool {
        let touch = self.touch();
        let is_new = touch.since.is_some_and(|since| now.since(since) < self.config.lease);
        !touch.is_lost && !is_new
    }

    fn touch(&self) -> MutexGuard<'_, Touch> {
        self.touch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This host, under its present incarnation.
    pub fn host(&self) -> Arc<Host> {
        Arc::clone(&self.host.read().unwrap_or_else(PoisonError::into_inner).host)
    }

    /// This host, if the store knows it. One that it does not know counts as gone, so it must not claim anything.
    pub fn registered(&self) -> Option<Arc<Host>> {
        let registered = self.host.read().unwrap_or_else(PoisonError::into_inner);
        registered.is_registered.then(|| Arc::clone(&registered.host))
    }

    /// Notes whether the store knows this host, and under which incarnation.
    pub(in crate::engine) fn set_host(&self, host: Arc<Host>, is_registered: bool) {
        *self.host.write().unwrap_or_else(PoisonError::into_inner) =
            Registered { host, is_registered };
    }
}
