//! What can be changed.

use std::time::Duration;

use async_graphql::{Context, Object, Result};

use super::types::{
    BatchResponse, DateTime, DeadLetterRequeueJob, DeadLetterResponse, OperationResponse,
};
use super::{asked, masked};
use crate::model::ids::{DeadLetterId, DecisionId, EntryId, RunId};
use crate::operations::access::{Action, Audited, act};
use crate::operations::dead_letters::{self, Scope};
use crate::operations::enqueue::{self, Asked};
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::triggers::{self, Trigger};
use crate::operations::{decisions, duration, groups, manifests, queue, requeue, resume, runs};
use crate::store::queue::When;

/// Everything that can be changed.
pub struct Mutation;

#[Object]
impl Mutation {
    /// What operators change.
    async fn operations(&self) -> OperationsMutation {
        OperationsMutation
    }
}

/// Carries an action out for whoever asks. What they did wrong is part of the answer.
async fn asked_to<T: Audited, E: Into<OperationError>>(
    context: &Context<'_>,
    action: Action,
    target: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, String>> {
    let (api, caller) = asked(context)?;
    match act(api.db(), caller, action, target, work).await {
        Ok(done) => Ok(Ok(done)),
        Err(OperationError::NotFound(message) | OperationError::Invalid(message)) => {
            Ok(Err(message))
        }
        Err(error) => Err(masked(error)),
    }
}

fn response(done: Result<Outcome, String>) -> OperationResponse {
    done.unwrap_or_else(Outcome::refused).into()
}

/// Ids as the audit names them.
fn listed<T: ToString>(ids: &[T]) -> String {
    ids.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// What operators change.
pub struct OperationsMutation;

#[Object]
impl OperationsMutation {
    /// Runs a manifest now, by way of the entry that is queued for it if there is one.
    async fn trigger_manifest(
        &self,
        context: &Context<'_>,
        external_id: String,
        #[graphql(default)] ask_afresh: bool,
    ) -> Result<OperationResponse> {
        let trigger = Trigger { delay: Duration::ZERO, asks_afresh: ask_afresh };
        triggered(context, Action::TriggerManifest, &external_id, trigger).await
    }

    /// Runs a manifest after a delay in ISO 8601, such as `PT15M`.
    async fn trigger_manifest_delayed(
        &self,
        context: &Context<'_>,
        external_id: String,
        delay: String,
        #[graphql(default)] ask_afresh: bool,
    ) -> Result<OperationResponse> {
        let Some(delay) = duration::parse_iso(&delay) else {
            let problem = format!("'{delay}' is no length of time; write ISO 8601, such as PT15M");
            return Err(masked(OperationError::Invalid(problem)));
        };
        let trigger = Trigger { delay, asks_afresh: ask_afresh };
        triggered(context, Action::TriggerManifestDelayed, &external_id, trigger).await
    }

    /// Switches a manifest on.
    async fn enable_manifest(
        &self,
        context: &Context<'_>,
        external_id: String,
    ) -> Result<OperationResponse> {
        switched(context, Action::EnableManifest, vec![external_id], true).await
    }

    /// Switches a manifest off.
    async fn disable_manifest(
        &self,
        context: &Context<'_>,
        external_id: String,
    ) -> Result<OperationResponse> {
        switched(context, Action::DisableManifest, vec![external_id], false).await
    }

    /// Switches manifests on or off.
    async fn set_manifests_enabled(
        &self,
        context: &Context<'_>,
        external_ids: Vec<String>,
        enabled: bool,
    ) -> Result<OperationResponse> {
        switched(context, Action::SetManifestsEnabled, external_ids, enabled).await
    }

    /// Sets whether retries of manifests replay what the failed run decided.
    async fn set_manifests_replay_decisions_on_retry(
        &self,
        context: &Context<'_>,
        external_ids: Vec<String>,
        replay: bool,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let set = manifests::set_replay_decisions_on_retry;
        let work = set(api.db(), caller.tenant, &external_ids, replay);
        let action = Action::SetManifestsReplayDecisionsOnRetry;
        asked_to(context, action, &listed(&external_ids), work).await.map(response)
    }

    /// Asks every run of a manifest to stop.
    async fn cancel_manifest(
        &self,
        context: &Context<'_>,
        external_id: String,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let work = manifests::cancel(api.db(), caller.tenant, &external_id);
        asked_to(context, Action::CancelManifest, &external_id, work).await.map(response)
    }

    /// Notes what a decision should have been, in place of what was noted before.
    async fn label_decision(
        &self,
        context: &Context<'_>,
        id: i64,
        correct: String,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let by = &caller.name;
        let work = decisions::label(api.db(), caller.tenant, DecisionId(id), &correct, by);
        asked_to(context, Action::LabelDecision, &id.to_string(), work).await.map(response)
    }

    /// Asks a run to stop.
    async fn cancel_execution(&self, context: &Context<'_>, id: i64) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let work = runs::cancel(api.db(), caller.tenant, RunId(id));
        asked_to(context, Action::CancelExecution, &id.to_string(), work).await.map(response)
    }

    /// Asks runs to stop.
    async fn cancel_executions(
        &self,
        context: &Context<'_>,
        ids: Vec<i64>,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let runs: Vec<RunId> = ids.iter().copied().map(RunId).collect();
        let work = runs::cancel_batch(api.db(), caller.tenant, &runs);
        asked_to(context, Action::CancelExecutions, &listed(&ids), work).await.map(response)
    }

    /// Queues a run with the input of another, from the top.
    async fn requeue_execution(
        &self,
        context: &Context<'_>,
        id: i64,
        #[graphql(default)] ask_afresh: bool,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let work = requeue::execution(api.db(), caller.tenant, RunId(id), ask_afresh);
        asked_to(context, Action::RequeueExecution, &id.to_string(), work).await.map(response)
    }

    /// Queues a run that resumes another after its latest checkpoint, or at a step after one.
    async fn resume_execution(
        &self,
        context: &Context<'_>,
        id: i64,
        from: Option<String>,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let work = resume::execution(api.db(), caller.tenant, RunId(id), from.as_deref());
        asked_to(context, Action::ResumeExecution, &id.to_string(), work).await.map(response)
    }

    /// Groups of manifests.
    async fn manifest_groups(&self) -> ManifestGroupsMutation {
        ManifestGroupsMutation
    }

    /// What waits to run.
    async fn work_queue(&self) -> WorkQueueMutation {
        WorkQueueMutation
    }

    /// Manifests that failed too often.
    async fn dead_letters(&self) -> DeadLettersMutation {
        DeadLettersMutation
    }
}

async fn triggered(
    context: &Context<'_>,
    action: Action,
    external_id: &str,
    trigger: Trigger,
) -> Result<OperationResponse> {
    let (api, caller) = asked(context)?;
    let work = triggers::manifest(api.db(), caller.tenant, external_id, trigger);
    let done = asked_to(context, action, external_id, work).await?;
    Ok(response(done.map(|it| Outcome::done(it.message()).with_id(it.work_queue_id.0))))
}

async fn switched(
    context: &Context<'_>,
    action: Action,
    external_ids: Vec<String>,
    is_enabled: bool,
) -> Result<OperationResponse> {
    let (api, caller) = asked(context)?;
    let work = manifests::set_enabled(api.db(), caller.tenant, &external_ids, is_enabled);
    asked_to(context, action, &listed(&external_ids), work).await.map(response)
}

/// What operators change about groups of manifests.
pub struct ManifestGroupsMutation;

#[Object]
impl ManifestGroupsMutation {
    /// Switches groups on or off.
    async fn set_manifest_groups_enabled(
        &self,
        context: &Context<'_>,
        names: Vec<String>,
        enabled: bool,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let work = groups::set_enabled(api.db(), caller.tenant, &names, enabled);
        let target = names.join(" ");
        asked_to(context, Action::SetManifestGroupsEnabled, &target, work).await.map(response)
    }

    /// Runs every manifest of a group now that has a schedule of its own.
    async fn trigger_group(
        &self,
        context: &Context<'_>,
        name: String,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let names = [name];
        let work = groups::trigger(api.db(), caller.tenant, &names);
        asked_to(context, Action::TriggerGroup, &names[0], work).await.map(response)
    }
}

/// What operators change about the queue.
pub struct WorkQueueMutation;

#[Object]
impl WorkQueueMutation {
    /// Queues a run of a train.
    async fn queue_train(
        &self,
        context: &Context<'_>,
        train_name: String,
        input_json: Option<String>,
        #[graphql(default)] priority: i32,
        scheduled_at: Option<DateTime>,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let asked = Asked {
            train: &train_name,
            input: input_json.as_deref(),
            // At most 31, so it fits.
            priority: i16::try_from(priority.clamp(0, 31)).unwrap_or(0),
            when: scheduled_at.map_or(When::Now, |at| When::At(at.0)),
        };
        let work = enqueue::enqueue(api.db(), caller.tenant, &asked);
        asked_to(context, Action::QueueTrain, &train_name, work).await.map(response)
    }

    /// Withdraws an entry that is queued.
    async fn cancel_work_queue_entry(
        &self,
        context: &Context<'_>,
        id: i64,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let work = queue::cancel(api.db(), caller.tenant, EntryId(id));
        asked_to(context, Action::CancelWorkQueueEntry, &id.to_string(), work).await.map(response)
    }

    /// Withdraws entries that are queued.
    async fn cancel_work_queue_entries(
        &self,
        context: &Context<'_>,
        ids: Vec<i64>,
    ) -> Result<OperationResponse> {
        let (api, caller) = asked(context)?;
        let entries: Vec<EntryId> = ids.iter().copied().map(EntryId).collect();
        let work = queue::cancel_batch(api.db(), caller.tenant, &entries);
        asked_to(context, Action::CancelWorkQueueEntries, &listed(&ids), work).await.map(response)
    }
}

/// What operators change about dead letters.
pub struct DeadLettersMutation;

#[Object]
impl DeadLettersMutation {
    /// Queues a new run of a dead letter's manifest.
    async fn requeue_dead_letter(
        &self,
        context: &Context<'_>,
        id: i64,
        #[graphql(default)] ask_afresh: bool,
    ) -> Result<DeadLetterResponse> {
        let (api, caller) = asked(context)?;
        let work = dead_letters::requeue(api.db(), caller.tenant, DeadLetterId(id), ask_afresh);
        let done = asked_to(context, Action::RequeueDeadLetter, &id.to_string(), work).await?;
        let OperationResponse { success, id, message, .. } = response(done);
        Ok(DeadLetterResponse { success, work_queue_id: id, message })
    }

    /// Resolves a dead letter as one that needs nothing more.
    async fn acknowledge_dead_letter(
        &self,
        context: &Context<'_>,
        id: i64,
        note: Option<String>,
    ) -> Result<DeadLetterResponse> {
        let (api, caller) = asked(context)?;
        let tenant = caller.tenant;
        let work = dead_letters::acknowledge(api.db(), tenant, DeadLetterId(id), note.as_deref());
        let done = asked_to(context, Action::AcknowledgeDeadLetter, &id.to_string(), work).await?;
        let OperationResponse { success, message, .. } = response(done);
        Ok(DeadLetterResponse { success, work_queue_id: None, message })
    }

    /// Queues a new run of each manifest that has one of these dead letters.
    async fn requeue_dead_letters(
        &self,
        context: &Context<'_>,
        ids: Vec<i64>,
        #[graphql(default)] ask_afresh: bool,
    ) -> Result<BatchResponse> {
        let (api, caller) = asked(context)?;
        let letters: Vec<DeadLetterId> = ids.iter().copied().map(DeadLetterId).collect();
        let work = dead_letters::requeue_batch(api.db(), caller.tenant, &letters, ask_afresh);
        let done = asked_to(context, Action::RequeueDeadLetters, &listed(&ids), work).await?;
        Ok(done.unwrap_or_else(Outcome::refused).into())
    }

    /// Resolves dead letters as ones that need nothing more.
    async fn acknowledge_dead_letters(
        &self,
        context: &Context<'_>,
        ids: Vec<i64>,
        note: Option<String>,
    ) -> Result<BatchResponse> {
        let (api, caller) = asked(context)?;
        let letters: Vec<DeadLetterId> = ids.iter().copied().map(DeadLetterId).collect();
        let work =
            dead_letters::acknowledge_batch(api.db(), caller.tenant, &letters, note.as_deref());
        let done = asked_to(context, Action::AcknowledgeDeadLetters, &listed(&ids), work).await?;
        Ok(done.unwrap_or_else(Outcome::refused).into())
    }

    /// Requeues every dead letter that awaits somebody, in the background of this node; read the job by its id.
    async fn requeue_all_dead_letters(
        &self,
        context: &Context<'_>,
        #[graphql(default)] ask_afresh: bool,
    ) -> Result<DeadLetterRequeueJob> {
        let (api, caller) = asked(context)?;
        let work = api.jobs().start(caller.tenant, ask_afresh);
        match act(api.db(), caller, Action::RequeueAllDeadLetters, "all", work).await {
            Ok(job) => Ok(job.into()),
            Err(error) => Err(masked(error)),
        }
    }

    /// Resolves every dead letter that awaits somebody as one that needs nothing more.
    async fn acknowledge_all_dead_letters(
        &self,
        context: &Context<'_>,
        note: Option<String>,
    ) -> Result<BatchResponse> {
        let (api, caller) = asked(context)?;
        let tenant = caller.tenant;
        let work = dead_letters::acknowledge_all(api.db(), tenant, Scope::All, note.as_deref());
        let done = asked_to(context, Action::AcknowledgeAllDeadLetters, "all", work).await?;
        Ok(done.unwrap_or_else(Outcome::refused).into())
    }
}
