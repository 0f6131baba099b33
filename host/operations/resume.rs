//! Resuming an execution: its saved input runs again for no manifest, after a checkpoint of it.

use crate::chain::resume::check;
use crate::engine::chains::{Active, Chains};
use crate::engine::resume;
use crate::model::ids::{RunId, TenantId};
use crate::model::message;
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

/// Queues it, or says why not.
async fn resumed(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: &Run,
    at: Option<&str>,
) -> Result<Result<Outcome, String>, OperationError> {
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
    if let Err(refusal) = check(&chain, &checkpoints, at) {
        return Ok(Err(refusal.message));
    }
    let train = trains::declared(&stored)?;
    let input = match requeue::saved_input(id, &train, &payload) {
        Ok(input) => input,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let resuming = Resuming { at };
    let run = (tenant, run);
    requeue::enqueue(tx, run, &train, &input, false, Some(resuming)).await.map(Ok)
}
