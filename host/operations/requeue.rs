//! Requeueing an execution: its saved input runs again, from the top and for no manifest, and replays what it decided.

use crate::chain::declaration::Train;
use crate::model::ids::{RunId, TenantId};
use crate::model::json::Json;
use crate::model::message;
use crate::operations::enqueue::{Admitted, admit};
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::runs::found;
use crate::operations::trains;
use crate::store::queue::{self, Enqueued, NewEntry};
use crate::store::runs::{self, Payload, Run};
use crate::store::{Db, StoreError, Tx, components, decisions};

/// What stands in place of an input that could not be saved as it was, and why it does not run again.
const PLACEHOLDERS: [(&str, &str); 4] = [
    ("_truncated", "was too large to save in full"),
    ("_unserializable", "was recorded as a _unserializable placeholder"),
    ("_disposed", "was recorded as a _disposed placeholder"),
    ("_redacted", "has members that were masked because they are sensitive"),
];

/// Queues a run of an execution's train on its saved input. It replays that execution's decisions, unless it is to ask
/// afresh or they are replayed already.
///
/// # Errors
/// Those of the store, or [`OperationError::Declaration`].
pub async fn execution(
    db: &Db,
    tenant: TenantId,
    id: RunId,
    asks_afresh: bool,
) -> Result<Outcome, OperationError> {
    db.write(async |tx| {
        let run = match found(tx, tenant, id).await? {
            Ok(run) => run,
            Err(missing) => return Ok(missing),
        };
        if let Some(machine) = &run.invoking_machine {
            return Ok(Outcome::refused(message::run_of_machine(id.0, machine)));
        }
        let payload = runs::payload(tx, tenant, id).await?;
        let train = match components::active_train(tx, tenant, &run.name).await {
            Ok(stored) => trains::declared(&stored)?,
            Err(StoreError::NotFound { .. }) => {
                return Ok(Outcome::refused(message::train_gone(id.0, &run.name)));
            }
            Err(error) => return Err(error.into()),
        };
        match saved_input(id, &train, &payload) {
            Ok(input) => enqueue(tx, (tenant, &run), &train, &input, asks_afresh, None).await,
            Err(refusal) => Ok(Outcome::refused(refusal)),
        }
    })
    .await
}

/// Why an execution's input cannot run again, whatever its train takes, if it cannot.
pub(in crate::operations) fn unsaved(id: RunId, payload: &Payload) -> Option<String> {
    let Some(text) = &payload.input else {
        return Some(message::input_unsaved(id.0, "has no saved input to re-queue it with"));
    };
    let json = Json::parse(text).ok()?;
    let placeholder = PLACEHOLDERS.iter().find(|(member, _)| json.member(member).is_some());
    placeholder
        .map(|(_, why)| message::input_unsaved(id.0, &format!("has a saved input that {why}")))
}

/// The input that an execution ran with, as its train takes it now.
pub(in crate::operations) fn saved_input(
    id: RunId,
    train: &Train,
    payload: &Payload,
) -> Result<Admitted, String> {
    if let Some(refusal) = unsaved(id, payload) {
        return Err(refusal);
    }
    let text = payload.input.as_deref().unwrap_or_default();
    if let Some(stated) = payload.input_type_name.as_deref().filter(|it| *it != train.input) {
        let why = format!("it is a '{stated}', and the train takes '{}'", train.input);
        return Err(message::input_of_other_type(id.0, &why));
    }
    admit(train, text).map_err(|why| message::input_no_longer_reads(id.0, &train.input, &why))
}

/// Where a run starts that resumes an execution.
#[derive(Debug, Clone, Copy)]
pub(in crate::operations) struct Resuming<'a> {
    /// At this node; `None`: after the latest checkpoint.
    pub(in crate::operations) at: Option<&'a str>,
}

/// Queues a run of an execution's input: from the top, or resuming that execution.
pub(in crate::operations) async fn enqueue(
    tx: &mut Tx<'_>,
    (tenant, run): (TenantId, &Run),
    train: &Train,
    input: &Admitted,
    asks_afresh: bool,
    resuming: Option<Resuming<'_>>,
) -> Result<Outcome, OperationError> {
    let replays_another = run.replay_decisions_of.is_some() && !run.replay_abandoned;
    let has_decisions = replays_another || decisions::has_acted_on(tx, run.id).await?;
    let would_replay = has_decisions && !asks_afresh;
    let is_spent = would_replay && decisions::is_replayed(tx, run.id).await?;
    let new = NewEntry {
        input: Some(&input.input),
        input_type: Some(&train.input),
        subject_key: input.subject.as_deref(),
        occurrence_id: Some(&run.occurrence_id),
        replay_decisions_of: (would_replay && !is_spent).then_some(run.id),
        resume_from: resuming.map(|_| run.id),
        resume_at: resuming.and_then(|resuming| resuming.at),
        ..NewEntry::new(tenant, &run.name)
    };
    let mut part = tx.savepoint().await?;
    match queue::enqueue(&mut part, &new).await? {
        Enqueued::Created { starts_at_the_top: true, .. } => {
            part.rollback().await?;
            Ok(Outcome::refused(message::resume_queued(run.id.0, None)))
        }
        Enqueued::Created { entry, asks_afresh, .. } => {
            part.commit().await?;
            let spent = (is_spent || asks_afresh).then_some(run.id.0);
            let text = message::entry_requeued(entry.0, spent);
            Ok(Outcome::done(text).with_id(entry.0).with_count(1))
        }
        Enqueued::ManifestQueued(entry) | Enqueued::ExternalIdTaken(entry) => {
            part.rollback().await?;
            let problem = format!("its id is that of work queue entry {entry}");
            Ok(Outcome::refused(message::enqueue_refused(&problem)))
        }
    }
}
