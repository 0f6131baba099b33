//! How many runs a host claims before it has a worker for them.
//!
//! One claim for many runs costs little more than one for a single run, and a worker that always has a next run never
//! waits for the store. But a run that waits here is kept from hosts that are free. So a host claims ahead only what
//! its workers are sure to begin in time: one run more after each that was short, half as many after one that was not,
//! and none once a run has waited for too long. That one is given back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many runs may wait for a worker.
#[derive(Debug)]
pub(super) struct Ahead {
    allowed: AtomicUsize,
    most: usize,
    /// How long one may wait.
    lease: Duration,
}

impl Ahead {
    /// None at first.
    pub(super) const fn new(most: usize, lease: Duration) -> Self {
        Self { allowed: AtomicUsize::new(0), most, lease }
    }

    pub(super) fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    pub(super) const fn lease(&self) -> Duration {
        self.lease
    }

    /// A worker is done with a run.
    pub(super) fn took(&self, took: Duration) {
        // So short that one worker alone would begin all that wait within the lease.
        let is_short =
            took.saturating_mul(u32::try_from(self.most).unwrap_or(u32::MAX)) <= self.lease;
        let next = |allowed: usize| {
            Some(if is_short { (allowed + 1).min(self.most) } else { allowed / 2 })
        };
        // It always gives a next one.
        let _ = self.allowed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// A run has waited for all of its lease.
    pub(super) fn waited_too_long(&self) {
        self.allowed.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_allow_one_more_and_long_ones_half() {
        let ahead = Ahead::new(4, Duration::from_secs(1));
        let after = |took: u64| {
            ahead.took(Duration::from_millis(took));
            ahead.allowed()
        };
        assert_eq!([after(1), after(250), after(0), after(1), after(1)], [1, 2, 3, 4, 4]);
        assert_eq!([after(251), after(90_000), after(251), after(1)], [2, 1, 0, 1]);
        ahead.waited_too_long();
        assert_eq!(ahead.allowed(), 0);
    }

    #[test]
    fn a_host_that_claims_nothing_ahead_never_does() {
        let ahead = Ahead::new(0, Duration::from_secs(1));
        ahead.took(Duration::ZERO);
        assert_eq!(ahead.allowed(), 0);
    }
}
