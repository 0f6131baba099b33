//! The canceller: stops runs of this host that somebody asked to cancel, wherever they asked, and runs that are this
//! host's no longer.
//!
//! A guest that computes for long reaches no boundary, so its host has to look.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::config::Shared;
use crate::engine::error::EngineError;
use crate::engine::service::Service;
use crate::engine::worker::Workers;
use crate::store::runs;

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// How many runs were asked to stop.
    pub cancelled: usize,
    /// How many were stopped because the claim of them is lost.
    pub lost: usize,
}

/// The canceller of a host.
pub struct Canceller {
    shared: Arc<Shared>,
    workers: Workers,
}

impl Canceller {
    /// That of these workers.
    pub fn new(shared: Arc<Shared>, workers: Workers) -> Self {
        Self { shared, workers }
    }
}

impl Service for Canceller {
    type Report = Report;

    const NAME: &'static str = "canceller";

    async fn pass(&mut self) -> Result<Report, EngineError> {
        // Before the store is read: whatever is here now was claimed before, so the store knows of it.
        let here = self.workers.claims();
        let mut report = Report::default();
        if here.is_empty() {
            return Ok(report);
        }
        let ids: Vec<_> = here.iter().map(|claim| claim.run).collect();
        let mut tx = self.shared.db.read().await?;
        let stored = runs::claims_of(&mut tx, &ids).await?;
        drop(tx);
        let stored: HashMap<_, _> =
            stored.into_iter().map(|it| (it.id, (it.claim_token, it.cancel_requested))).collect();
        for claim in here {
            match stored.get(&claim.run) {
                Some((token, _)) if *token != claim.token => {
                    self.workers.lose(claim);
                    report.lost += 1;
                }
                Some((_, true)) => {
                    self.workers.cancel(claim.run);
                    report.cancelled += 1;
                }
                Some((_, false)) => {}
                None => {
                    self.workers.lose(claim);
                    report.lost += 1;
                }
            }
        }
        Ok(report)
    }
}
