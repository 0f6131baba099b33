//! Runs that start after a checkpoint of an earlier run: whether they may, and the walk of one that does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::resume::lineage::{self, Attempt, RUNS_MAX};
use crate::chain::resume::restore::Restored;
use crate::chain::resume::source::{self, Source};
use crate::chain::resume::tracks::{Taken, note};
use crate::chain::resume::{Code, Point, Refusal, Stored, check};
use crate::chain::walk::Walk;
use crate::engine::chains::{Active, Chains};
use crate::model::ids::{RunId, TenantId};
use crate::model::message;
use crate::model::value::Value;
use crate::store::lines::{self, Link};
use crate::store::runs::{self, Run};
use crate::store::{StoreError, TrainState, Tx};

/// What a chain that cannot be read says to those who would resume it without being asked.
const NO_CHAIN: &str = "its chain cannot be read on this host";

/// The checkpoints that count for a run that resumes another.
///
/// # Errors
/// When the store cannot be read.
pub async fn stored(tx: &mut Tx<'_>, chain: &Chain, run: RunId) -> Result<Vec<Stored>, StoreError> {
    let links = lines::of_runs(tx, &[run], RUNS_MAX).await?;
    Ok(lineage::stored(chain, attempts(links)))
}

/// Whether runs can be resumed after their latest checkpoints, by their trains' chains as they are now. Those that can
/// have nothing against it.
///
/// # Errors
/// When the store cannot be read.
pub async fn refusals(
    tx: &mut Tx<'_>,
    chains: &Chains,
    runs: &[RunId],
) -> Result<BTreeMap<RunId, Option<String>>, StoreError> {
    let mut by_source: BTreeMap<RunId, Vec<Link>> = BTreeMap::new();
    for link in lines::of_runs(tx, runs, RUNS_MAX).await? {
        by_source.entry(link.source).or_default().push(link);
    }
    let mut refusals = BTreeMap::new();
    for (run, links) in by_source {
        let Some(first) = links.first() else { continue };
        let refusal = match chains.active(tx, first.tenant, &first.train).await? {
            Active::Chain(chain) => {
                let stored = lineage::stored(&chain, attempts(links));
                check(&chain, &stored, None).err().map(|refusal| refusal.message)
            }
            Active::Unknown | Active::Unreadable => Some(NO_CHAIN.to_owned()),
        };
        refusals.insert(run, refusal);
    }
    Ok(refusals)
}

fn attempts(links: Vec<Link>) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for link in links {
        if attempts.last().is_none_or(|last| last.run != link.run) {
            let Link { run, resume_at, .. } = &link;
            let resume_at = resume_at.clone();
            attempts.push(Attempt { run: *run, resume_at, checkpoints: Vec::new() });
        }
        let Link { run, node_id, chain_hash, state_fingerprint, tracks, .. } = link;
        let row = (node_id, chain_hash, state_fingerprint, tracks);
        if let (Some(node_id), Some(chain_hash), Some(state_fingerprint), Some(tracks)) = row
            && let Some(last) = attempts.last_mut()
        {
            last.checkpoints.push(Stored { run, node_id, chain_hash, state_fingerprint, tracks });
        }
    }
    attempts
}

/// Allows a run to be resumed by one of this train on this input, apart from its chain.
///
/// # Errors
/// When the store cannot be read.
pub async fn allowed(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
    (train, input): (&str, Option<&str>),
) -> Result<Result<(), Refusal>, StoreError> {
    let resumed = lines::resumed(tx, tenant, run).await?;
    let source = match resumed {
        None => None,
        Some(resumed) => Some(Source {
            train: resumed.name,
            state: message::execution_state(resumed.train_state.as_str()),
            is_failed: matches!(resumed.train_state, TrainState::Failed | TrainState::Cancelled),
            is_resumed: resumed.is_resumed,
            input: runs::payload(tx, tenant, run).await?.input,
        }),
    };
    Ok(source::check(run, source.as_ref(), train, input))
}

/// The walk of a run that resumes another, if what it resumes can still be trusted.
///
/// # Errors
/// When the store cannot be read.
pub(in crate::engine) async fn walk(
    tx: &mut Tx<'_>,
    (tenant, run, from): (TenantId, &Run, RunId),
    chain: &Arc<Chain>,
    input: &Value,
) -> Result<Result<Walk, Refusal>, StoreError> {
    if let Err(refusal) = allowed(tx, tenant, from, (&run.name, Some(&input.json))).await? {
        return Ok(Err(refusal));
    }
    let stored = stored(tx, chain, from).await?;
    let point = match check(chain, &stored, run.resume_at.as_deref()) {
        Ok(point) => point,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let restored = match restored(tx, tenant, chain, &stored, &point).await? {
        Ok(restored) => restored,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut taken = Taken::new();
    for used in stored.iter().filter(|row| point.checkpoints().any(|it| is_at(chain, row, it))) {
        note(chain, &used.tracks, &mut taken);
    }
    for routes in lines::routes(tx, from, RUNS_MAX).await? {
        note(chain, &routes, &mut taken);
    }
    Ok(Ok(Walk::resume(Arc::clone(chain), input.clone(), &point, restored, &taken)))
}

fn is_at(chain: &Chain, row: &Stored, node: crate::chain::node::NodeIndex) -> bool {
    chain.node(node).id == row.node_id
}

/// The states of a point, read once.
async fn restored(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    chain: &Chain,
    stored: &[Stored],
    point: &Point,
) -> Result<Result<Vec<Restored>, Refusal>, StoreError> {
    let mut restored = Vec::new();
    for node in point.checkpoints() {
        let Some(row) = stored.iter().find(|row| is_at(chain, row, node)) else { continue };
        let Some(state) = lines::state(tx, tenant, row.run, &row.node_id).await? else {
            let gone = format!("The checkpoint '{}' is gone.", row.node_id);
            return Ok(Err(Refusal { code: Code::Unreadable, message: gone }));
        };
        match Restored::read(chain, node, &state, &row.tracks) {
            Ok(read) => restored.push(read),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(restored))
}
