//! The runs that are on this host: from when they are claimed to when it is written how they left.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::model::ids::{Claim, ClaimToken, RunId};

/// The runs of a host, each under its claim, with what stops it.
#[derive(Debug, Default)]
pub(in crate::engine) struct Running(Mutex<HashMap<RunId, (ClaimToken, CancellationToken)>>);

impl Running {
    /// A run has come, and this stops it.
    pub(in crate::engine) fn enter(&self, claim: Claim) -> CancellationToken {
        let stop = CancellationToken::new();
        self.runs().insert(claim.run, (claim.token, stop.clone()));
        stop
    }

    /// A run has left.
    pub(in crate::engine) fn leave(&self, claim: Claim) {
        let mut runs = self.runs();
        // The same run may have come back under another claim.
        if runs.get(&claim.run).is_some_and(|(token, _)| *token == claim.token) {
            runs.remove(&claim.run);
        }
    }

    /// Stops a run. False: it is not here.
    pub(in crate::engine) fn cancel(&self, run: RunId) -> bool {
        let runs = self.runs();
        runs.get(&run).inspect(|(_, stop)| stop.cancel()).is_some()
    }

    /// Stops a run that is here under this claim.
    pub(in crate::engine) fn lose(&self, claim: Claim) {
        if let Some((_, stop)) =
            self.runs().get(&claim.run).filter(|(token, _)| *token == claim.token)
        {
            stop.cancel();
        }
    }

    /// How many are here.
    pub(in crate::engine) fn count(&self) -> usize {
        self.runs().len()
    }

    /// The claims of all runs that are here.
    pub(in crate::engine) fn claims(&self) -> Vec<Claim> {
        self.runs().iter().map(|(run, (token, _))| Claim { run: *run, token: *token }).collect()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, (ClaimToken, CancellationToken)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
