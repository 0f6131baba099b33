//! What the next runs of manifests take over from the ones that failed: looked up for many at once, and never in the
//! way of a run. A lookup that fails is logged, and then everybody asks afresh and starts at the top.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::chains::Chains;
use crate::engine::error::causes;
use crate::engine::resume;
use crate::model::ids::{ManifestId, RunId};
use crate::model::source::{Replay, Resume, Source, TakeOver};
use crate::model::timestamp::Timestamp;
use crate::store::{StoreError, Tx, sources};

/// The runs that the next ones of some manifests may take over from.
#[derive(Debug)]
pub struct Sources {
    found: BTreeMap<ManifestId, Source>,
    /// Why each of the runs that stored a checkpoint cannot be resumed, if it cannot.
    refusals: BTreeMap<RunId, Option<String>>,
    now: Timestamp,
    window: Duration,
}

impl Sources {
    /// Looks them up: in a part of the transaction, so that a lookup that fails fails alone. `window` is how long
    /// failures count where a manifest does not say. Whoever must be sure that it still holds when an entry is written
    /// has locked the manifests before.
    ///
    /// # Errors
    /// When the transaction itself is lost.
    pub async fn look_up(
        tx: &mut Tx<'_>,
        manifests: &[ManifestId],
        window: Duration,
        chains: &Chains,
    ) -> Result<Self, StoreError> {
        let now = tx.now().await?;
        let mut sources = Self { found: BTreeMap::new(), refusals: BTreeMap::new(), now, window };
        if manifests.is_empty() {
            return Ok(sources);
        }
        let mut part = tx.savepoint().await?;
        match sources::of_manifests(&mut part, manifests).await {
            Ok(found) => {
                part.commit().await?;
                sources.found = found.into_iter().map(|it| (it.manifest, it)).collect();
            }
            Err(error) => {
                part.rollback().await?;
                tracing::warn!(
                    error = causes(&error),
                    "Could not look up the runs to replay for {} manifest retries; they ask their deciders afresh",
                    manifests.len()
                );
            }
        }
        sources.look_up_refusals(tx, chains).await?;
        Ok(sources)
    }

    async fn look_up_refusals(
        &mut self,
        tx: &mut Tx<'_>,
        chains: &Chains,
    ) -> Result<(), StoreError> {
        let resumed = self.found.values().filter_map(|it| match it.resume(self.now, self.window) {
            Resume::From(run) => Some(run),
            Resume::FromTheTop(_) | Resume::Nothing => None,
        });
        let runs: Vec<RunId> = resumed.collect();
        if runs.is_empty() {
            return Ok(());
        }
        let mut part = tx.savepoint().await?;
        match resume::refusals(&mut part, chains, &runs).await {
            Ok(refusals) => {
                part.commit().await?;
                self.refusals = refusals;
            }
            Err(error) => {
                part.rollback().await?;
                tracing::warn!(
                    error = causes(&error),
                    "Could not look up the checkpoints of {} failed runs; their retries rerun from the top",
                    runs.len()
                );
            }
        }
        Ok(())
    }

    /// The run that the next run of a manifest resumes after its latest checkpoint, if that is any; else the log says
    /// why not.
    fn resume(&self, manifest: ManifestId) -> Option<RunId> {
        let source = self.found.get(&manifest)?;
        let (run, reason) = match source.resume(self.now, self.window) {
            Resume::Nothing => return None,
            Resume::FromTheTop(reason) => (source.run, reason),
            Resume::From(run) => match self.refusals.get(&run) {
                Some(None) => return Some(run),
                Some(Some(reason)) => (run, reason.as_str()),
                None => return None,
            },
        };
        tracing::info!(
            "the next run of manifest {manifest} reruns from the top instead of resuming run {run}: {reason}"
        );
        None
    }

    /// What the next run of a manifest takes over; the log says why it does not. One that asks afresh replays nothing,
    /// and resumes all the same.
    pub fn take_over(&self, manifest: ManifestId, asks_afresh: bool) -> TakeOver {
        let mut taken = TakeOver { resume_from: self.resume(manifest), ..TakeOver::default() };
        if let Some(source) = self.found.get(&manifest).filter(|_| !asks_afresh) {
            let replay = source.replay(self.now, self.window);
            taken.replay_decisions_of = replayed(source, replay);
            taken.is_spent = replay.is_spent();
        }
        taken
    }
}

fn replayed(source: &Source, replay: Replay) -> Option<RunId> {
    let (manifest, run) = (source.manifest, source.run);
    match replay {
        Replay::Of(run) => Some(run),
        Replay::OptedOut => {
            tracing::debug!(%manifest, %run, "its retries ask their deciders afresh");
            None
        }
        Replay::Afresh(reason) => {
            tracing::info!(
                "the next run of manifest {manifest} asks its deciders afresh instead of replaying run {run}: {reason}"
            );
            None
        }
        Replay::Nothing => None,
    }
}
