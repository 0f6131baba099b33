//! What can be read.

use async_graphql::{Context, Object, Result};
use uuid::Uuid;

use super::types::{
    DeadLetter, DeadLetterRequeueJob, Execution, Health, Manifest, ManifestGroup, Page,
    WorkQueueEntry,
};
use super::{asked, masked};
use crate::model::ids::{DeadLetterId, EntryId, RunId};
use crate::operations::error::OperationError;
use crate::operations::{dead_letters, groups, health, manifests, queue, runs};
use crate::store::{DeadLetterStatus, EntryStatus, StoreError, TrainState};

/// The most things on a page.
const TAKE_MAX: i32 = 500;

/// Everything that can be read.
pub struct Query;

#[Object]
impl Query {
    /// What operators read.
    async fn operations(&self) -> Operations {
        Operations
    }
}

/// What operators read.
pub struct Operations;

#[Object]
impl Operations {
    /// Runs, newest first.
    #[graphql(complexity = "page_complexity(take, child_complexity)")]
    async fn executions(
        &self,
        context: &Context<'_>,
        #[graphql(default = 50)] take: i32,
        after_id: Option<i64>,
        train_state: Option<String>,
        train_name: Option<String>,
        manifest: Option<String>,
    ) -> Result<Page<Execution>> {
        let (api, caller) = asked(context)?;
        let take = clamped(take);
        let filter = runs::Filter {
            state: one_of(
                TrainState::ALL,
                train_state.as_deref(),
                TrainState::as_str,
                "trainState",
            )?,
            train: train_name,
            manifest,
            before: after_id.map(RunId),
        };
        let read = runs::list(api.db(), caller.tenant, &filter, more_than(take)).await;
        Ok(Page::of(read.map_err(masked)?, take, |it| it.run.id.0, Execution::from))
    }

    /// One run; null when there is none of that id.
    async fn execution(&self, context: &Context<'_>, id: i64) -> Result<Option<Execution>> {
        let (api, caller) = asked(context)?;
        let before = id.checked_add(1).map(RunId);
        let filter = runs::Filter { before, ..runs::Filter::default() };
        let read = runs::list(api.db(), caller.tenant, &filter, 1).await.map_err(masked)?;
        Ok(read.into_iter().find(|it| it.run.id.0 == id).map(Execution::from))
    }

    /// Manifests, by their external ids.
    #[graphql(complexity = "page_complexity(take, child_complexity)")]
    async fn manifests(
        &self,
        context: &Context<'_>,
        #[graphql(default = 50)] take: i32,
        after: Option<String>,
    ) -> Result<Vec<Manifest>> {
        let (api, caller) = asked(context)?;
        let after = after.as_deref();
        let read = manifests::list(api.db(), caller.tenant, after, clamped(take)).await;
        Ok(read.map_err(masked)?.into_iter().map(Manifest::from).collect())
    }

    /// Groups of manifests.
    async fn manifest_groups(&self) -> ManifestGroups {
        ManifestGroups
    }

    /// What waits to run, and what each run came out of.
    async fn work_queue(&self) -> WorkQueue {
        WorkQueue
    }

    /// Manifests that failed too often.
    async fn dead_letters(&self) -> DeadLetters {
        DeadLetters
    }

    /// How the trains are doing.
    async fn health(&self, context: &Context<'_>) -> Result<Health> {
        let (api, caller) = asked(context)?;
        let read = health::health(api.db(), caller.tenant).await;
        read.map(Health::from).map_err(masked)
    }

    /// The version of this server.
    async fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

/// Groups of manifests.
pub struct ManifestGroups;

#[Object(name = "ManifestGroupsQuery")]
impl ManifestGroups {
    /// Groups, by their names.
    #[graphql(complexity = "page_complexity(take, child_complexity)")]
    async fn groups(
        &self,
        context: &Context<'_>,
        #[graphql(default = 50)] take: i32,
        after: Option<String>,
    ) -> Result<Vec<ManifestGroup>> {
        let (api, caller) = asked(context)?;
        let read = groups::list(api.db(), caller.tenant, after.as_deref(), clamped(take)).await;
        Ok(read.map_err(masked)?.into_iter().map(ManifestGroup::from).collect())
    }
}

/// The queue.
pub struct WorkQueue;

#[Object(name = "WorkQueueQuery")]
impl WorkQueue {
    /// Entries, newest first.
    #[graphql(complexity = "page_complexity(take, child_complexity)")]
    async fn work_queues(
        &self,
        context: &Context<'_>,
        #[graphql(default = 50)] take: i32,
        after_id: Option<i64>,
        status: Option<String>,
    ) -> Result<Page<WorkQueueEntry>> {
        let (api, caller) = asked(context)?;
        let take = clamped(take);
        let status = one_of(EntryStatus::ALL, status.as_deref(), EntryStatus::as_str, "status")?;
        let before = after_id.map(EntryId);
        let read = queue::list(api.db(), caller.tenant, status, before, more_than(take)).await;
        Ok(Page::of(read.map_err(masked)?, take, |it| it.entry.id.0, WorkQueueEntry::from))
    }
}

/// Dead letters.
pub struct DeadLetters;

#[expect(clippy::unused_async, reason = "every field is asynchronous to the schema")]
#[Object(name = "DeadLettersQuery")]
impl DeadLetters {
    /// Dead letters, newest first.
    #[graphql(complexity = "page_complexity(take, child_complexity)")]
    async fn dead_letters(
        &self,
        context: &Context<'_>,
        #[graphql(default = 50)] take: i32,
        after_id: Option<i64>,
        status: Option<String>,
        manifest: Option<String>,
    ) -> Result<Page<DeadLetter>> {
        let (api, caller) = asked(context)?;
        let take = clamped(take);
        let all = DeadLetterStatus::ALL;
        let filter = dead_letters::Filter {
            status: one_of(all, status.as_deref(), DeadLetterStatus::as_str, "status")?,
            manifest,
            before: after_id.map(DeadLetterId),
        };
        let read = dead_letters::list(api.db(), caller.tenant, &filter, more_than(take)).await;
        Ok(Page::of(read.map_err(masked)?, take, |it| it.dead_letter.id.0, DeadLetter::from))
    }

    /// One dead letter; null when there is none of that id.
    async fn dead_letter(&self, context: &Context<'_>, id: i64) -> Result<Option<DeadLetter>> {
        let (api, caller) = asked(context)?;
        match dead_letters::detail(api.db(), caller.tenant, DeadLetterId(id)).await {
            Ok(found) => Ok(Some(found.into())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(masked(error)),
        }
    }

    /// A requeue of all dead letters that was started on this node; null when it does not know it.
    async fn requeue_all_job(
        &self,
        context: &Context<'_>,
        id: Uuid,
    ) -> Result<Option<DeadLetterRequeueJob>> {
        let (api, caller) = asked(context)?;
        Ok(api.jobs().get(caller.tenant, id).map(DeadLetterRequeueJob::from))
    }
}

fn clamped(take: i32) -> u32 {
    take.clamp(1, TAKE_MAX).unsigned_abs()
}

/// One more than a page holds tells whether there is another page.
const fn more_than(take: u32) -> u32 {
    take + 1
}

fn page_complexity(take: i32, child_complexity: usize) -> usize {
    1 + clamped(take) as usize * child_complexity
}

/// The value of that name, if one is given.
fn one_of<T: Copy>(
    all: &[T],
    name: Option<&str>,
    as_str: impl Fn(T) -> &'static str,
    argument: &str,
) -> Result<Option<T>> {
    let Some(name) = name else { return Ok(None) };
    let found = all.iter().copied().find(|it| as_str(*it).eq_ignore_ascii_case(name));
    found.map(Some).ok_or_else(|| {
        let all: Vec<&str> = all.iter().map(|it| as_str(*it)).collect();
        let problem = format!("{argument} cannot be '{name}'; it is one of {}", all.join(", "));
        masked(OperationError::Invalid(problem))
    })
}
