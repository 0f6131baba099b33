//! Resuming an execution: its saved input runs again for no manifest, after a checkpoint of it.

use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::declaration::Train;
use crate::chain::resume::{Point, check};
use crate::engine::chains::{Active, Chains};
use crate::engine::resume;
use crate::model::ids::{RunId, TenantId};
use crate::model::message;
use crate::operations::enqueue::Admitted;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::requeue::{self, Resuming};
use crate::operations::runs::found;
use crate::operations::trains;
use crate::store::runs::{self, Run};
use crate::store::{Db, StoreError, TrainState, Tx, components, lines};

/// Queues a run that resumes an execution at a node, or else after its latest checkpoint. It replays that execution's
/// decisions, unless they are replayed already.
///
/// # Errors
/// Those of the store, or [`OperationError::Declaration`].
pub async fn execution(
    db: &Db,
    tenant: TenantId,
    id: RunId,
    at: Option<&str>,
) -> Result<Outcome, OperationError> {
    db.write(async |tx| {
        let run = match found(tx, tenant, id).await? {
            Ok(run) => run,
            Err(missing) => return Ok(missing),
        };
        match resumed(tx, tenant, &run, at).await? {
            Ok(outcome) => Ok(outcome),
            Err(refusal) => Ok(Outcome::refused(refusal)),
        }
    })
    .await
}

/// A resume that nothing speaks against.
pub(super) struct Allowed {
    pub(super) chain: Arc<Chain>,
    pub(super) point: Point,
    train: Train,
    input: Admitted,
}

/// Queues it, or says why not.
async fn resumed(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: &Run,
    at: Option<&str>,
) -> Result<Result<Outcome, String>, OperationError> {
    let Allowed { train, input, .. } = match allowed(tx, tenant, run, at).await? {
        Ok(allowed) => allowed,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let resuming = Some(Resuming { at });
    requeue::enqueue(tx, (tenant, run), &train, &input, false, resuming).await.map(Ok)
}

/// Whether a run can be resumed now, or the first reason why not.
pub(super) async fn allowed(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: &Run,
    at: Option<&str>,
) -> Result<Result<Allowed, String>, OperationError> {
    let id = run.id;
    if !matches!(run.train_state, TrainState::Failed | TrainState::Cancelled) {
        let state = message::execution_state(run.train_state.as_str());
        return Ok(Err(message::run_not_failed(id.0, &state)));
    }
    if let Some(machine) = &run.invoking_machine {
        return Ok(Err(message::resume_of_machine(id.0, machine)));
    }
    let payload = runs::payload(tx, tenant, id).await?;
    if let Some(refusal) = requeue::unsaved(id, &payload) {
        return Ok(Err(refusal));
    }
    let known = lines::resumed(tx, tenant, id).await?;
    if let Some(entry) = known.and_then(|known| known.queued) {
        return Ok(Err(message::resume_queued(id.0, Some(entry.0))));
    }
    let stored = match components::active_train(tx, tenant, &run.name).await {
        Ok(stored) => stored,
        Err(StoreError::NotFound { .. }) => {
            return Ok(Err(message::resume_without_train(id.0, &run.name)));
        }
        Err(error) => return Err(error.into()),
    };
    let Active::Chain(chain) = Chains::default().read(&stored) else {
        return Ok(Err(message::chain_unreadable(id.0, &run.name)));
    };
    let checkpoints = resume::stored(tx, &chain, id).await?;
    let point = match check(&chain, &checkpoints, at) {
        Ok(point) => point,
        Err(refusal) => return Ok(Err(refusal.message)),
    };
    let train = trains::declared(&stored)?;
    let input = requeue::saved_input(id, &train, &payload);
    Ok(input.map(|input| Allowed { chain, point, train, input }))
}
