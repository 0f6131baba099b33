//! What the next runs of manifests take over from the ones that failed: looked up for many at once, and never in the
//! way of a run. A lookup that fails is logged, and then everybody asks afresh and starts at the top.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::error::causes;
use crate::model::ids::{ManifestId, RunId};
use crate::model::source::{Replay, Source, TakeOver};
use crate::model::timestamp::Timestamp;
use crate::store::{StoreError, Tx, sources};

/// The runs that the next ones of some manifests may take over from.
#[derive(Debug)]
pub struct Sources {
    found: BTreeMap<ManifestId, Source>,
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
    ) -> Result<Self, StoreError> {
        let mut sources = Self { found: BTreeMap::new(), now: tx.now().await?, window };
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
        Ok(sources)
    }

    /// What the next run of a manifest takes over; the log says why it does not replay. One that asks afresh replays
    /// nothing.
    pub fn take_over(&self, manifest: ManifestId, asks_afresh: bool) -> TakeOver {
        let mut taken = TakeOver::default();
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
