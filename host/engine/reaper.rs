//! The reaper: fails runs whose host is gone, and asks those to stop that take too long.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::config::{EngineConfig, Shared};
use crate::engine::due;
use crate::engine::error::EngineError;
use crate::engine::events::EngineEvent;
use crate::engine::service::Service;
use crate::engine::worker::Workers;
use crate::model::failure::Failure;
use crate::model::ids::{Claim, Incarnation, RunId};
use crate::model::message;
use crate::store::parked::{self, Stop};
use crate::store::runs::{self, ActiveRun, Claimed};
use crate::store::{ParkReason, StoreError, TrainState, Tx, hosts};

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
    /// How many runs failed because nobody picked them up, or because they did not stop.
    pub stuck: usize,
    /// How many runs of this host were in no worker's hands.
    pub adopted: usize,
}

/// The reaper.
pub struct Reaper {
    shared: Arc<Shared>,
    workers: Workers,
    /// The last run looked at for its timeout: the next pass goes on behind it.
    after: RunId,
    /// What this host owned at the last pass and no worker had.
    strays: HashSet<Claim>,
}

impl Reaper {
    /// The reaper of an engine.
    pub fn new(shared: Arc<Shared>, workers: Workers) -> Self {
        Self { shared, workers, after: RunId(0), strays: HashSet::new() }
    }

    /// Gives up hosts that give no sign of life. Only one that is alive itself tells silence from a store that was
    /// away, or from having slept.
    async fn bury(&self, tx: &mut Tx<'_>) -> Result<Vec<Incarnation>, EngineError> {
        let lease = self.shared.config.lease;
        let now = tx.now().await?;
        let Some(own) = self.shared.registered().filter(|_| self.shared.may_judge(now)) else {
            return Ok(Vec::new());
        };
        let alive = hosts::alive(tx, lease).await?;
        if alive.iter().all(|host| host.incarnation != own.incarnation) {
            return Ok(Vec::new());
        }
        Ok(hosts::bury(tx, lease).await?)
    }

    /// Parks runs that this host owns and none of its workers has, twice in a row: the answer of the commit that
    /// claimed them was lost, or their end could not be written. They start again as the same runs, with what they
    /// recorded.
    async fn adopt(&mut self, tx: &mut Tx<'_>) -> Result<usize, EngineError> {
        let Some(host) = self.shared.registered() else { return Ok(0) };
        let owned = runs::owned(tx, &host.incarnation, RunId(0), BATCH_MAX).await?;
        // After the store was read: what leaves meanwhile is no stray, because its claim is spent when it has left.
        let here: HashSet<Claim> = self.workers.claims().into_iter().collect();
        let strays: HashSet<Claim> =
            owned.iter().map(Claimed::claim).filter(|claim| !here.contains(claim)).collect();
        let before = std::mem::replace(&mut self.strays, strays.clone());
        let mut adopted = 0;
        for stray in strays.intersection(&before) {
            let wake_at = Some(tx.now().await?);
            let reason = ParkReason::HandOver;
            let stop = Stop { reason, node_id: None, memory: None, wake_at };
            match parked::park(tx, *stray, &stop).await {
                Ok(()) => adopted += 1,
                Err(StoreError::LostClaim(_)) => {}
                Err(error) => return Err(error.into()),
            }
            tracing::warn!(run = %stray.run, "a run was in no worker's hands; it starts again");
        }
        Ok(adopted)
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
        if is_ended {
            self.settle(tx, seen).await?;
        }
        Ok(is_ended)
    }

    /// Asks runs to stop that take longer than they may, and fails those that nobody has picked up, or that did not
    /// stop.
    async fn time_out(
        &mut self,
        tx: &mut Tx<'_>,
        report: &mut Report,
    ) -> Result<Vec<RunId>, EngineError> {
        let now = tx.now().await?;
        let page = runs::active_since(tx, now, self.after, BATCH_MAX).await?;
        let is_last = u32::try_from(page.len()).unwrap_or(u32::MAX) < BATCH_MAX;
        self.after = page.last().filter(|_| !is_last).map_or(RunId(0), |run| run.id);
        let mut stopped = Vec::new();
        for run in page {
            let patience = Patience::of(&self.shared.config, &run);
            match patience.after(now.since(run.start_time), &run) {
                Some(Overdue::Stuck(exception, reason)) => {
                    let failure = Failure::transient(exception, reason);
                    if runs::reap(tx, &run, &failure).await? {
                        self.settle(tx, &run).await?;
                        report.stuck += 1;
                        stopped.push(run.id);
                    }
                }
                Some(Overdue::Late) => {
                    runs::request_cancel(tx, run.tenant_id, run.id).await?;
                    report.timed_out += 1;
                    stopped.push(run.id);
                }
                None => {}
            }
        }
        Ok(stopped)
    }

    async fn settle(&self, tx: &mut Tx<'_>, ended: &ActiveRun) -> Result<(), EngineError> {
        if let Some(manifest) = ended.manifest_id {
            let window = self.shared.config.failure_count_window;
            due::settle(tx, ended.tenant_id, manifest, window).await?;
        }
        Ok(())
    }
}

/// How long a run may be as it is.
struct Patience {
    /// Until it is asked to stop; `None`: for as long as it likes.
    timeout: Option<Duration>,
    /// Until it counts as stuck.
    stuck: Duration,
}

/// What is wrong with a run.
enum Overdue {
    /// It takes longer than it may.
    Late,
    /// Nobody moves it any more.
    Stuck(&'static str, &'static str),
}

impl Patience {
    fn of(config: &EngineConfig, run: &ActiveRun) -> Self {
        let own = run.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let own = own.map(Duration::from_secs);
        let stuck = config.stale_in_progress_timeout;
        let slack = stuck.saturating_sub(config.default_job_timeout);
        Self {
            timeout: run.is_dispatched.then(|| own.unwrap_or(config.default_job_timeout)),
            stuck: match run.train_state {
                TrainState::Pending => config.stale_pending_timeout,
                _ => own.map_or(stuck, |own| stuck.max(own.saturating_add(slack))),
            },
        }
    }

    fn after(&self, taken: Duration, run: &ActiveRun) -> Option<Overdue> {
        if taken > self.stuck {
            return Some(match run.train_state {
                TrainState::Pending => {
                    Overdue::Stuck("StalePendingTimeout", message::STALE_PENDING)
                }
                _ => Overdue::Stuck("StaleInProgressTimeout", message::STALE_IN_PROGRESS),
            });
        }
        let is_late = self.timeout.is_some_and(|timeout| taken > timeout);
        (is_late && !run.cancel_requested).then_some(Overdue::Late)
    }
}

impl Service for Reaper {
    type Report = Report;

    const NAME: &'static str = "reaper";

    async fn pass(&mut self) -> Result<Report, EngineError> {
        let mut tx = self.shared.db.begin().await?;
        let buried = self.bury(&mut tx).await?;
        let mut lost = Vec::new();
        for seen in runs::lost(&mut tx, BATCH_MAX).await? {
            if self.give_up(&mut tx, &seen).await? {
                lost.push(seen.id);
            }
        }
        let mut report = Report::default();
        let stopped = self.time_out(&mut tx, &mut report).await?;
        let adopted = self.adopt(&mut tx).await?;
        tx.commit().await?;
        for run in &stopped {
            self.workers.cancel(*run);
        }
        let report = Report { hosts_lost: buried.len(), runs_lost: lost.len(), adopted, ..report };
        let events = &self.shared.events;
        for incarnation in buried {
            events.publish(EngineEvent::HostLost { incarnation });
        }
        if !lost.is_empty() || report.stuck > 0 {
            self.shared.manager_nudge.notify_one();
        }
        for run in lost {
            events.publish(EngineEvent::RunLost { run });
        }
        Ok(report)
    }
}
