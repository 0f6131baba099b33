//! The reaper: fails runs whose host is gone, and asks those to stop that take too long.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::config::Shared;
use crate::engine::due;
use crate::engine::error::EngineError;
use crate::engine::events::EngineEvent;
use crate::engine::service::Service;
use crate::engine::worker::Workers;
use crate::model::failure::Failure;
use crate::model::ids::RunId;
use crate::model::message;
use crate::store::runs::{self, ActiveRun};
use crate::store::{StoreError, TrainState, Tx, hosts};

/// The exception of a run whose host is gone.
pub const HOST_LOST: &str = "HostLost";
/// The most runs that a pass looks at of each kind.
const BATCH_MAX: u32 = 200;

/// What a pass did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many hosts were given up.
    pub hosts_lost: usize,
    /// How many runs failed with them.
    pub runs_lost: usize,
    /// How many runs were asked to stop.
    pub timed_out: usize,
}

/// The reaper.
pub struct Reaper {
    shared: Arc<Shared>,
    workers: Workers,
    /// The last run looked at for its timeout: the next pass goes on behind it.
    after: RunId,
}

impl Reaper {
    /// The reaper of an engine.
    pub fn new(shared: Arc<Shared>, workers: Workers) -> Self {
        Self { shared, workers, after: RunId(0) }
    }

    /// Ends a run whose host is gone: as cancelled if that was asked, and else as failed.
    async fn give_up(&self, tx: &mut Tx<'_>, seen: &ActiveRun) -> Result<bool, EngineError> {
        let is_ended = if seen.cancel_requested && seen.train_state == TrainState::InProgress {
            match runs::cancel(tx, seen.claim()).await {
                Ok(()) => true,
                Err(StoreError::LostClaim(_)) => false,
                Err(error) => return Err(error.into()),
            }
        } else {
            let host = runs::detail(tx, seen.tenant_id, seen.id).await?.host_name;
            let reason = message::host_lost(&host.unwrap_or_default());
            runs::reap(tx, seen, &Failure::transient(HOST_LOST, reason)).await?
        };
        if let Some(manifest) = seen.manifest_id.filter(|_| is_ended) {
            let window = self.shared.config.failure_count_window;
            due::settle(tx, seen.tenant_id, manifest, window).await?;
        }
        Ok(is_ended)
    }

    /// Asks runs to stop that take longer than they may.
    async fn time_out(&mut self, tx: &mut Tx<'_>) -> Result<Vec<RunId>, EngineError> {
        let now = tx.now().await?;
        let page = runs::active_since(tx, now, self.after, BATCH_MAX).await?;
        let is_last = u32::try_from(page.len()).unwrap_or(u32::MAX) < BATCH_MAX;
        self.after = page.last().filter(|_| !is_last).map_or(RunId(0), |run| run.id);
        let mut stopped = Vec::new();
        for run in page {
            let own = run.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            let timeout = own.map_or(self.shared.config.default_job_timeout, Duration::from_secs);
            let is_overdue = now.since(run.start_time) > timeout;
            if is_overdue && run.manifest_id.is_some() && !run.cancel_requested {
                runs::request_cancel(tx, run.tenant_id, run.id).await?;
                stopped.push(run.id);
            }
        }
        Ok(stopped)
    }
}

impl Service for Reaper {
    type Report = Report;

    const NAME: &'static str = "reaper";

    async fn pass(&mut self) -> Result<Report, EngineError> {
        let mut tx = self.shared.db.begin().await?;
        let buried = hosts::bury(&mut tx, self.shared.config.lease).await?;
        let mut lost = Vec::new();
        for seen in runs::lost(&mut tx, BATCH_MAX).await? {
            if self.give_up(&mut tx, &seen).await? {
                lost.push(seen.id);
            }
        }
        let stopped = self.time_out(&mut tx).await?;
        tx.commit().await?;
        for run in &stopped {
            self.workers.cancel(*run);
        }
        let report =
            Report { hosts_lost: buried.len(), runs_lost: lost.len(), timed_out: stopped.len() };
        let events = &self.shared.events;
        for incarnation in buried {
            events.publish(EngineEvent::HostLost { incarnation });
        }
        if !lost.is_empty() {
            self.shared.manager_nudge.notify_one();
        }
        for run in lost {
            events.publish(EngineEvent::RunLost { run });
        }
        Ok(report)
    }
}
