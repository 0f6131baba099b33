//! A whole engine: its loops, and how it stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::engine::canceller::Canceller;
use crate::engine::cleanup::Cleanup;
pub use crate::engine::config::EngineConfig;
use crate::engine::config::Shared;
use crate::engine::error::causes;
use crate::engine::events::EngineEvent;
use crate::engine::heartbeat::Heartbeat;
use crate::engine::job_dispatcher::JobDispatcher;
use crate::engine::liveness;
use crate::engine::manifest_manager::ManifestManager;
use crate::engine::reaper::Reaper;
use crate::engine::service::{Service, keep_passing};
use crate::engine::wakeups;
use crate::engine::worker::Workers;
use crate::guest::component::GuestHost;
use crate::model::ids::RunId;
use crate::store::{Db, StoreError, hosts};

/// A running engine. Dropped without [`drain`](Self::drain), its loops and runs stop with the process, and the runs
/// are taken for lost.
pub struct Engine {
    shared: Arc<Shared>,
    workers: Workers,
    loops: TaskTracker,
    /// Ends the loops that take up work.
    stop: CancellationToken,
    /// Ends the signs of life.
    die: CancellationToken,
}

impl Engine {
    /// Starts the loops. Must be called in a runtime.
    pub fn start(config: EngineConfig, store: Db, guests: Arc<GuestHost>) -> Self {
        let retries = u32::try_from(config.default_max_retries).unwrap_or(0);
        if let Some(warning) = config.retry.warning(retries, config.failure_count_window) {
            tracing::warn!("{warning}");
        }
        let shared = Shared::new(config, store);
        let workers = Workers::new(Arc::clone(&shared), guests);
        let engine = Self {
            workers,
            shared,
            loops: TaskTracker::new(),
            stop: CancellationToken::new(),
            die: CancellationToken::new(),
        };
        engine.spawn_loops();
        engine
    }

    fn spawn_loops(&self) {
        let (shared, config) = (&self.shared, &self.shared.config);
        let heartbeat_interval = config.lease / 3;
        if config.roles.scheduler {
            let (manager, interval) =
                (ManifestManager::new(Arc::clone(shared)), config.manifest_manager_interval);
            self.spawn(manager, interval, &self.stop, |s| &s.manager_nudge);
        }
        if config.roles.worker {
            let (dispatcher, interval) = (
                JobDispatcher::new(Arc::clone(shared), self.workers.clone()),
                config.job_dispatcher_interval,
            );
            self.spawn(dispatcher, interval, &self.stop, |s| &s.dispatcher_nudge);
        }
        let reaper = Reaper::new(Arc::clone(shared), self.workers.clone());
        self.spawn(reaper, heartbeat_interval, &self.stop, |s| &s.reaper_nudge);
        let cleanup = Cleanup::new(Arc::clone(shared));
        self.spawn(cleanup, config.cleanup.interval, &self.stop, |s| &s.cleanup_nudge);
        self.loops.spawn(wakeups::of_this_process(Arc::clone(shared), self.stop.clone()));
        self.loops.spawn(wakeups::of_all_hosts(Arc::clone(shared), self.stop.clone()));
        let canceller = Canceller::new(Arc::clone(shared), self.workers.clone());
        self.spawn(canceller, config.cancellation_interval, &self.die, |s| &s.canceller_nudge);
        let heartbeat = Heartbeat::new(Arc::clone(shared));
        self.spawn(heartbeat, heartbeat_interval, &self.die, |s| &s.heartbeat_nudge);
    }

    fn spawn<S: Service + 'static>(
        &self,
        service: S,
        interval: Duration,
        stop: &CancellationToken,
        nudge: fn(&Shared) -> &Notify,
    ) {
        let (shared, stop) = (Arc::clone(&self.shared), stop.clone());
        self.loops.spawn(async move {
            keep_passing(service, interval, nudge(&shared), stop).await;
        });
    }

    /// Everything that happens from now on.
    pub fn events(&self) -> broadcast::Receiver<EngineEvent> {
        self.shared.events.watch()
    }

    /// Makes the manager and the dispatcher look at once.
    pub fn nudge(&self) {
        self.shared.manager_nudge.notify_one();
        self.shared.dispatcher_nudge.notify_one();
    }

    /// Whether the host takes up nothing new, because it is about to leave.
    pub fn is_draining(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// How long the dispatcher has been silent, if that is longer than it may be.
    pub fn is_hung_for(&self) -> Option<Duration> {
        let config = &self.shared.config;
        let patience = liveness::patience(config.job_dispatcher_interval, config.liveness_timeout);
        let silence = self.shared.liveness.silence();
        let must_pass = config.roles.worker && !self.is_draining();
        (must_pass && silence > patience).then_some(silence)
    }

    /// Asks a run to stop at once if it is in progress on this host. The store has to be told as well.
    pub fn cancel(&self, run: RunId) -> bool {
        self.workers.cancel(run)
    }

    /// Takes up nothing new, lets runs reach their next boundary, hands them over, and leaves. A run that reaches none
    /// in time is handed over from before the step it is in. If the store takes nothing for as long again, runs are
    /// left to be lost.
    pub async fn drain(&self) {
        self.stop.cancel();
        self.shared.drain.cancel();
        let patience = self.shared.config.shutdown_timeout;
        if Clock.timeout(patience, self.workers.idle()).await.is_err() {
            self.shared.halt.cancel();
            if Clock.timeout(patience, self.workers.idle()).await.is_err() {
                tracing::error!("runs could not be handed over; they are lost with this host");
                self.shared.gone.cancel();
                self.workers.idle().await;
            }
        }
        self.die.cancel();
        self.loops.close();
        self.loops.wait().await;
        if let Err(error) = self.leave().await {
            let error = causes(&error);
            tracing::warn!(error, "the host could not say that it leaves");
        }
    }

    async fn leave(&self) -> Result<(), StoreError> {
        let Some(host) = self.shared.registered() else { return Ok(()) };
        let mut tx = self.shared.db.begin().await?;
        hosts::leave(&mut tx, &host.incarnation).await?;
        tx.commit().await
    }
}
