//! Faults that tests inject into a store: a host that stops at a commit, and a database that is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

use super::error::{Place, StoreError};

/// What goes wrong with a store, in tests. All clones are one.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Plan>);

#[derive(Debug)]
struct Plan {
    commits: AtomicU64,
    crash_after: u64,
    is_away: AtomicBool,
    away_after: AtomicU64,
    lost_answer_of: AtomicU64,
    refusals: watch::Sender<u64>,
}

impl Faults {
    /// Counts commits, and crashes after this many: that commit is durable, and nothing after it is. `u64::MAX` only
    /// counts.
    pub fn crash_after(commits: u64) -> Self {
        Self(Arc::new(Plan {
            commits: AtomicU64::new(0),
            crash_after: commits,
            is_away: AtomicBool::new(false),
            away_after: AtomicU64::new(u64::MAX),
            lost_answer_of: AtomicU64::new(u64::MAX),
            refusals: watch::Sender::new(0),
        }))
    }

    /// A store that works until it is told otherwise.
    pub fn none() -> Self {
        Self::crash_after(u64::MAX)
    }

    /// How many commits there have been.
    pub fn commits(&self) -> u64 {
        self.0.commits.load(Ordering::Relaxed)
    }

    /// Takes the database away, or brings it back. While it is away nothing begins, and nothing that began commits.
    pub fn set_away(&self, is_away: bool) {
        self.0.is_away.store(is_away, Ordering::Relaxed);
    }

    /// Takes the database away once there have been this many commits.
    pub fn go_away_after(&self, commits: u64) {
        self.0.away_after.store(commits, Ordering::Relaxed);
    }

    /// The commit with this number is durable, and whoever made it is told that the connection was lost.
    pub fn lose_answer_of(&self, commit: u64) {
        self.0.lost_answer_of.store(commit, Ordering::Relaxed);
    }

    /// How many calls have been refused.
    pub fn refusals(&self) -> u64 {
        *self.0.refusals.borrow()
    }

    /// Waits until this many calls have been refused in all.
    pub async fn refused(&self, calls: u64) {
        // The sender is this plan's own, so it does not go while somebody waits.
        self.0.refusals.subscribe().wait_for(|refused| *refused >= calls).await.ok();
    }

    pub(super) fn before_writing(&self, place: &Place) -> Result<(), StoreError> {
        self.crashed()?;
        self.before_reading(place)
    }

    pub(super) fn before_reading(&self, place: &Place) -> Result<(), StoreError> {
        if self.0.is_away.load(Ordering::Relaxed) { Err(self.refuse(place)) } else { Ok(()) }
    }

    pub(super) fn after_commit(&self, place: &Place) -> Result<(), StoreError> {
        let commit = self.0.commits.fetch_add(1, Ordering::Relaxed) + 1;
        if commit == self.0.away_after.load(Ordering::Relaxed) {
            self.set_away(true);
        }
        if commit == self.0.lost_answer_of.load(Ordering::Relaxed) {
            return Err(self.refuse(place));
        }
        self.crashed()
    }

    fn crashed(&self) -> Result<(), StoreError> {
        if self.commits() < self.0.crash_after { Ok(()) } else { Err(StoreError::Injected) }
    }

    fn refuse(&self, place: &Place) -> StoreError {
        self.0.refusals.send_modify(|refused| *refused += 1);
        StoreError::NoConnection(place.clone())
    }
}
