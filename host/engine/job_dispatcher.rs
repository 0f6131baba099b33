//! The job dispatcher: claims what is queued, and what was parked and may go on, for the workers of this host.
//!
//! One pass is one transaction: runs that continue come first, because they are older than anything queued; then the
//! queue of each tenant in turn, as far as limits and free workers allow.

use std::sync::Arc;

use crate::engine::config::Shared;
use crate::engine::error::EngineError;
use crate::engine::service::Service;
use crate::engine::worker::{Work, Workers};
use crate::store::claim::{self, ClaimRequest, DropReason, DroppedLink};
use crate::store::{LockKey, Tx, parked, runs};

/// What a pass did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many runs have started.
    pub started: usize,
    /// How many runs go on.
    pub continued: usize,
}

/// The dispatcher of a host.
pub struct JobDispatcher {
    shared: Arc<Shared>,
    workers: Workers,
    /// Which tenant goes first: another one each time.
    turn: usize,
}

impl JobDispatcher {
    /// A dispatcher to these workers.
    pub fn new(shared: Arc<Shared>, workers: Workers) -> Self {
        Self { shared, workers, turn: 0 }
    }

    /// How many more runs may be active on all hosts together.
    async fn room(&self, tx: &mut Tx<'_>) -> Result<usize, EngineError> {
        let Some(max) = self.shared.config.max_active_jobs else { return Ok(usize::MAX) };
        // Claims take turns, so that no two hosts see the same room.
        tx.lock(LockKey::Claim).await?;
        let active: i64 = runs::active(tx).await?.into_iter().map(|(_, _, count)| count).sum();
        Ok(max.saturating_sub(usize::try_from(active).unwrap_or(usize::MAX)))
    }

    async fn claim(&mut self, tx: &mut Tx<'_>, free: usize) -> Result<Vec<Work>, EngineError> {
        let Some(host) = self.shared.registered() else { return Ok(Vec::new()) };
        let room = self.room(tx).await?.min(free);
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        let continued = parked::resume_ready(tx, &host, limit).await?;
        let mut work: Vec<Work> = continued.into_iter().map(Work::Continued).collect();
        let mut tenants = claim::tenants_with_work(tx).await?;
        if !tenants.is_empty() {
            let first = self.turn % tenants.len();
            tenants.rotate_left(first);
            self.turn = self.turn.wrapping_add(1);
        }
        for (index, tenant) in tenants.iter().enumerate() {
            let share = room.saturating_sub(work.len()).div_ceil(tenants.len() - index);
            if share == 0 {
                break;
            }
            let request = ClaimRequest {
                tenant: *tenant,
                host: &host,
                limit: share,
                group_limit: self.shared.config.max_queued_jobs_per_cycle,
                starts: true,
            };
            let claimed = claim::claim(tx, &request).await?;
            claimed.dropped.iter().for_each(log_dropped);
            work.extend(claimed.runs.into_iter().map(|run| Work::Fresh(*tenant, run)));
        }
        Ok(work)
    }
}

fn log_dropped(dropped: &DroppedLink) {
    let DroppedLink { entry, replay_decisions_of, reason } = dropped;
    let why = match reason {
        DropReason::OptedOut => "its manifest asks afresh",
        DropReason::AlreadyReplayed => "they are replayed by another run, and are replayed once",
    };
    tracing::info!(%entry, run = %replay_decisions_of, why, "decisions are not replayed");
}

impl Service for JobDispatcher {
    type Report = Report;

    const NAME: &'static str = "job dispatcher";

    async fn pass(&mut self) -> Result<Report, EngineError> {
        let free = self.workers.free();
        if free == 0 || self.shared.drain.is_cancelled() {
            return Ok(Report::default());
        }
        let mut tx = self.shared.db.begin().await?;
        let work = self.claim(&mut tx, free).await?;
        tx.commit().await?;
        let mut report = Report::default();
        for work in work {
            match work {
                Work::Fresh(..) => report.started += 1,
                Work::Continued(_) => report.continued += 1,
            }
            self.workers.take_up(work);
        }
        Ok(report)
    }
}
