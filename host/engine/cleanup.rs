//! Cleanup: deletes finished runs of the trains it is told to, dead letters that were resolved long ago, and old lines
//! of logs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::config::Shared;
use crate::engine::due;
use crate::engine::error::{EngineError, causes};
use crate::engine::service::Service;
use crate::model::ids::TenantId;
use crate::model::timestamp::Timestamp;
use crate::store::cleanup::{self, Cursor, Expired, Swept};
use crate::store::{StoreError, dead_letters, logs, tenants};

/// How often a batch is tried that somebody links to meanwhile.
const ATTEMPTS_MAX: u32 = 3;
/// The most batches of a train in a pass.
const BATCHES_MAX: usize = 10;
/// The time between two purges of dead letters.
const PURGE_INTERVAL: Duration = Duration::from_hours(1);
/// The most dead letters that a purge deletes.
const PURGE_MAX: u32 = 10_000;

/// What is cleaned up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanupConfig {
    /// The time between two sweeps.
    pub interval: Duration,
    /// How long runs are kept after they started, unless their train says so.
    pub retention: Duration,
    /// How many runs are deleted in one transaction, from 1 to 10,000.
    pub batch_size: u32,
    /// The trains whose runs are deleted, with a retention of their own or without.
    pub trains: BTreeMap<String, Option<Duration>>,
    /// How long resolved dead letters are kept; `None`: for ever.
    pub dead_letter_retention: Option<Duration>,
    /// How long lines of logs are kept whose runs stay; `None`: as long as their runs.
    pub log_retention: Option<Duration>,
}

impl Default for CleanupConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(1),
            retention: Duration::from_mins(30),
            batch_size: 1_000,
            trains: BTreeMap::new(),
            dead_letter_retention: Some(Duration::from_hours(30 * 24)),
            log_retention: None,
        }
    }
}

/// What a pass did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many runs were deleted.
    pub runs: u64,
    /// How many dead letters were deleted.
    pub dead_letters: u64,
    /// How many lines of logs were deleted.
    pub log_lines: u64,
    /// Whether there was more to look at.
    pub has_more: bool,
}

/// The cleanup of a host.
pub struct Cleanup {
    shared: Arc<Shared>,
    purged_at: Option<Timestamp>,
    /// Where the sweep of a train goes on that had more than a pass takes.
    cursors: BTreeMap<(TenantId, String), Cursor>,
}

impl Cleanup {
    /// The cleanup of an engine.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, purged_at: None, cursors: BTreeMap::new() }
    }

    async fn sweep(
        &mut self,
        expired: Expired<'_>,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let key = (expired.tenant, expired.train.to_owned());
        let mut cursor = self.cursors.remove(&key);
        for _ in 0..BATCHES_MAX {
            let swept = self.batch(expired, cursor).await?;
            report.runs += swept.deleted;
            cursor = swept.cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
        report.has_more = true;
        self.cursors.extend(cursor.map(|cursor| (key, cursor)));
        Ok(())
    }

    /// Deletes a batch. One that others keep linking to, or that the database refuses, is left for the next sweep.
    async fn batch(
        &self,
        expired: Expired<'_>,
        after: Option<Cursor>,
    ) -> Result<Swept, EngineError> {
        let mut attempt = 1;
        loop {
            match self.try_batch(expired, after).await {
                Err(EngineError::Store(StoreError::Busy(_))) if attempt < ATTEMPTS_MAX => {
                    attempt += 1;
                }
                Err(EngineError::Store(error)) if !error.is_transient() => {
                    let (train, error) = (expired.train, causes(&error));
                    tracing::warn!(train, error, "old runs could not be deleted; they stay");
                    return Ok(Swept { deleted: 0, manifests: Vec::new(), cursor: None });
                }
                done => return done,
            }
        }
    }

    async fn try_batch(
        &self,
        expired: Expired<'_>,
        after: Option<Cursor>,
    ) -> Result<Swept, EngineError> {
        let config = &self.shared.config;
        let mut tx = self.shared.db.begin().await?;
        let swept = cleanup::sweep(&mut tx, expired, after, config.cleanup.batch_size).await?;
        for manifest in &swept.manifests {
            // What is counted of a manifest may have been among the runs.
            due::settle(&mut tx, expired.tenant, *manifest, config.failure_count_window).await?;
        }
        tx.commit().await?;
        Ok(swept)
    }

    /// Deletes what is old of the logs, in batches of the size that runs have.
    async fn forget(&self, now: Timestamp, report: &mut Report) -> Result<(), EngineError> {
        let config = &self.shared.config.cleanup;
        let Some(retention) = config.log_retention else { return Ok(()) };
        let before = now.saturating_sub(retention);
        for _ in 0..BATCHES_MAX {
            let size = config.batch_size;
            let delete = self.shared.db.write(async |tx| logs::forget(tx, before, size).await);
            let deleted: u64 =
                delete.await.map_err(|error: StoreError| EngineError::from(error))?;
            report.log_lines += deleted;
            if deleted < u64::from(size) {
                return Ok(());
            }
        }
        report.has_more = true;
        Ok(())
    }

    async fn purge(&mut self, now: Timestamp) -> Result<u64, EngineError> {
        let Some(retention) = self.shared.config.cleanup.dead_letter_retention else {
            return Ok(0);
        };
        if self.purged_at.is_some_and(|at| now.since(at) < PURGE_INTERVAL) {
            return Ok(0);
        }
        let before = now.saturating_sub(retention);
        let db = &self.shared.db;
        let purged = db
            .write(async |tx| dead_letters::purge(tx, before, PURGE_MAX).await)
            .await
            .map_err(EngineError::from)?;
        self.purged_at = Some(now);
        Ok(purged)
    }
}

impl Service for Cleanup {
    type Report = Report;

    const NAME: &'static str = "cleanup";

    async fn pass(&mut self) -> Result<Report, EngineError> {
        let shared = Arc::clone(&self.shared);
        let config = &shared.config.cleanup;
        let mut tx = shared.db.read().await?;
        let now = tx.now().await?;
        let tenants =
            if config.trains.is_empty() { Vec::new() } else { tenants::list(&mut tx).await? };
        drop(tx);
        let mut report = Report { dead_letters: self.purge(now).await?, ..Report::default() };
        self.forget(now, &mut report).await?;
        for tenant in &tenants {
            for (train, retention) in &config.trains {
                let before = now.saturating_sub(retention.unwrap_or(config.retention));
                let expired = Expired { tenant: tenant.id, train, before };
                self.sweep(expired, &mut report).await?;
            }
        }
        Ok(report)
    }

    fn has_more(report: &Report) -> bool {
        report.has_more
    }
}
