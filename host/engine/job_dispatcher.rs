//! The job dispatcher: claims what is queued, and what was parked and may go on, for the workers of this host.
//!
//! One pass is one transaction: what is active is counted once; runs that continue come first, because they are older
//! than anything queued; then the queue of each tenant in turn, as far as limits and free workers allow.

use std::collections::HashSet;
use std::sync::Arc;

use crate::engine::config::Shared;
use crate::engine::due;
use crate::engine::error::EngineError;
use crate::engine::events::{Ending, EngineEvent};
use crate::engine::service::Service;
use crate::engine::worker::{Work, Workers};
use crate::model::fairness::Turns;
use crate::model::ids::TenantId;
use crate::model::message;
use crate::store::capacity::{Capacity, CapacityLimits};
use crate::store::claim::{self, ClaimRequest, DropReason, DroppedLink};
use crate::store::dispatch::Unknown;
use crate::store::runs::Claimed;
use crate::store::{Tx, manifests, parked, runs};

/// What a pass did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many runs have started.
    pub started: usize,
    /// How many runs go on.
    pub continued: usize,
    /// Whether so much was held back that the pass was cut short.
    pub has_more: bool,
}

/// The dispatcher of a host.
pub struct JobDispatcher {
    shared: Arc<Shared>,
    workers: Workers,
    /// Which tenant goes first.
    turns: Turns,
    /// What a pass has claimed whose commit was not answered.
    unsure: Vec<Work>,
}

/// What a pass takes up.
#[derive(Default)]
struct Taken {
    work: Vec<Work>,
    /// What is told once it is durable.
    events: Vec<EngineEvent>,
    has_more: bool,
}

impl JobDispatcher {
    /// A dispatcher to these workers.
    pub fn new(shared: Arc<Shared>, workers: Workers) -> Self {
        Self { shared, workers, turns: Turns::default(), unsure: Vec::new() }
    }

    /// Keeps of what is unsure that which was claimed after all; the rest never was.
    async fn find_unsure(&mut self, tx: &mut Tx<'_>) -> Result<(), EngineError> {
        if self.unsure.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = self.unsure.iter().map(|work| work.claim().run).collect();
        let held: HashSet<_> =
            runs::claims_of(tx, &ids).await?.iter().map(Claimed::claim).collect();
        self.unsure.retain(|work| held.contains(&work.claim()));
        Ok(())
    }

    async fn claim(&mut self, tx: &mut Tx<'_>, free: usize) -> Result<Taken, EngineError> {
        let mut taken = Taken::default();
        let Some(host) = self.shared.registered() else { return Ok(taken) };
        let config = &self.shared.config;
        let limits = CapacityLimits {
            max_active_jobs: config.max_active_jobs,
            group_limit: config.max_queued_jobs_per_cycle,
            excluded: &config.exclude_from_max_active_jobs,
        };
        let mut capacity = Capacity::count(tx, limits).await?;
        let continued = parked::resume_ready(tx, &host, free, &mut capacity).await?;
        taken.work.extend(continued.into_iter().map(Work::Continued));
        let mut waiting = claim::tenants_with_work(tx).await?;
        loop {
            waiting.retain(|tenant, _| capacity.room(*tenant) > 0);
            let shares = self.turns.shares(&waiting, free - taken.work.len());
            if shares.is_empty() {
                return Ok(taken);
            }
            for (tenant, limit) in shares {
                let request = ClaimRequest {
                    tenant,
                    host: &host,
                    limit,
                    policy: config.dispatch,
                    records_decisions: config.records_decisions,
                    starts: true,
                };
                let claimed = claim::claim_within(tx, &request, &mut capacity).await?;
                if claimed.runs.len() < limit {
                    self.turns.end(tenant);
                    waiting.remove(&tenant);
                }
                taken.has_more |= claimed.has_more;
                claimed.dropped.iter().for_each(log_dropped);
                for unknown in claimed.unknown {
                    taken.events.extend(self.unknown(tx, tenant, unknown).await?);
                }
                let fresh = claimed.runs.into_iter().map(|run| Work::Fresh(tenant, Box::new(run)));
                taken.work.extend(fresh);
            }
        }
    }

    /// Deals with an entry whose train no active component declares.
    async fn unknown(
        &self,
        tx: &mut Tx<'_>,
        tenant: TenantId,
        unknown: Unknown,
    ) -> Result<Option<EngineEvent>, EngineError> {
        match unknown {
            Unknown::Postponed { entry, train, attempt, wait } => {
                let (why, wait) = (message::unknown_train(&train), wait.as_secs());
                tracing::warn!(%entry, attempt, wait, "an entry waits: {why}");
                Ok(None)
            }
            Unknown::Failed { run, train, manifest } => {
                let manifest = match manifest {
                    Some(id) => {
                        let window = self.shared.config.failure_count_window;
                        due::settle(tx, tenant, id, window).await?;
                        Some(manifests::detail(tx, tenant, id).await?.external_id)
                    }
                    None => None,
                };
                let ending = Ending::never_started();
                Ok(Some(EngineEvent::RunEnded { run, train, manifest, ending }))
            }
        }
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
            self.shared.liveness.passed();
            return Ok(Report::default());
        }
        let mut tx = self.shared.db.begin().await?;
        self.find_unsure(&mut tx).await?;
        let taken = self.claim(&mut tx, free.saturating_sub(self.unsure.len())).await?;
        // Until the store says so, what was claimed may be durable or not.
        self.unsure.extend(taken.work);
        tx.commit().await?;
        let mut report = Report { has_more: taken.has_more, ..Report::default() };
        for work in std::mem::take(&mut self.unsure) {
            match work {
                Work::Fresh(..) => report.started += 1,
                Work::Continued(_) => report.continued += 1,
            }
            self.workers.take_up(work);
        }
        if !taken.events.is_empty() {
            self.shared.manager_nudge.notify_one();
        }
        taken.events.into_iter().for_each(|event| self.shared.events.publish(event));
        self.shared.liveness.passed();
        Ok(report)
    }

    fn has_more(report: &Report) -> bool {
        report.has_more
    }
}
