//! What queries and mutations give.

use async_graphql::{Enum, OutputType, Scalar, ScalarType, SimpleObject, Value};
use async_graphql::{InputValueError, InputValueResult};
use uuid::Uuid;

use crate::model::timestamp::Timestamp;
use crate::operations::outcome::Outcome;
use crate::operations::requeue_jobs::{JobStatus, RequeueJob};
use crate::operations::{dead_letters, health, manifests, queue, runs};
use crate::store::groups::Group;

/// An instant in RFC 3339, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTime(pub Timestamp);

#[Scalar]
impl ScalarType for DateTime {
    fn parse(value: Value) -> InputValueResult<Self> {
        let Value::String(text) = &value else { return Err(InputValueError::expected_type(value)) };
        let problem = "not an instant; write RFC 3339 such as 2026-12-24T18:00:00Z";
        Timestamp::parse(text).map(Self).ok_or_else(|| InputValueError::custom(problem))
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

/// What came of an action.
#[derive(Debug, SimpleObject)]
pub struct OperationResponse {
    /// Whether it was done.
    pub success: bool,
    /// The id of what it made or changed.
    pub id: Option<i64>,
    /// How many things it changed.
    pub count: Option<i64>,
    /// What was done, or why not.
    pub message: String,
}

impl From<Outcome> for OperationResponse {
    fn from(outcome: Outcome) -> Self {
        let Outcome { is_done, id, count, message, .. } = outcome;
        Self { success: is_done, id, count, message }
    }
}

/// How the trains are doing.
#[derive(Debug, SimpleObject)]
pub struct Health {
    /// Healthy, or Degraded: dead letters await somebody, or more than ten runs failed in the last hour.
    pub status: &'static str,
    /// Why.
    pub description: String,
    /// Entries that are queued.
    pub queue_depth: i64,
    /// Runs in progress.
    pub in_progress: i64,
    /// Runs that failed in the last hour.
    pub failed_last_hour: i64,
    /// Dead letters that await somebody.
    pub dead_letters: i64,
}

impl From<health::Health> for Health {
    fn from(health: health::Health) -> Self {
        let health::Health { status, description, load } = health;
        Self {
            status,
            description,
            queue_depth: load.queue_depth,
            in_progress: load.in_progress,
            failed_last_hour: load.failed_lately,
            dead_letters: load.dead_letters,
        }
    }
}

/// What came of an action on one dead letter.
#[derive(Debug, SimpleObject)]
pub struct DeadLetterResponse {
    /// Whether it was done.
    pub success: bool,
    /// The entry that runs its manifest again.
    pub work_queue_id: Option<i64>,
    /// What was done, or why not.
    pub message: String,
}

/// What came of an action on several things.
#[derive(Debug, SimpleObject)]
pub struct BatchResponse {
    /// How many were changed.
    pub count: i64,
    /// What was done, or why not.
    pub message: String,
}

impl From<Outcome> for BatchResponse {
    fn from(outcome: Outcome) -> Self {
        Self { count: outcome.count.unwrap_or(0), message: outcome.message }
    }
}

/// How far a requeue of all dead letters is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum DeadLetterRequeueJobStatus {
    /// It goes on.
    Running,
    /// Every page was requeued.
    Succeeded,
    /// The server failed.
    Failed,
    /// The server stopped.
    Canceled,
}

/// A requeue of all dead letters, in the background of one node.
#[derive(Debug, SimpleObject)]
pub struct DeadLetterRequeueJob {
    id: Uuid,
    status: DeadLetterRequeueJobStatus,
    awaiting_at_start: i64,
    started_at: DateTime,
    finished_at: Option<DateTime>,
    count: Option<i64>,
    processed: i64,
    message: String,
    ask_afresh: bool,
    started: bool,
}

impl From<RequeueJob> for DeadLetterRequeueJob {
    fn from(job: RequeueJob) -> Self {
        Self {
            id: job.id,
            status: match job.status {
                JobStatus::Running => DeadLetterRequeueJobStatus::Running,
                JobStatus::Succeeded => DeadLetterRequeueJobStatus::Succeeded,
                JobStatus::Failed => DeadLetterRequeueJobStatus::Failed,
                JobStatus::Canceled => DeadLetterRequeueJobStatus::Canceled,
            },
            awaiting_at_start: job.awaiting_at_start,
            started_at: DateTime(job.started_at),
            finished_at: job.finished_at.map(DateTime),
            count: job.count,
            processed: job.processed,
            message: job.message,
            ask_afresh: job.ask_afresh,
            started: job.started,
        }
    }
}

/// Some of many, newest first.
#[derive(Debug, SimpleObject)]
#[graphql(concrete(name = "ExecutionPage", params(Execution)))]
#[graphql(concrete(name = "DeadLetterPage", params(DeadLetter)))]
#[graphql(concrete(name = "WorkQueuePage", params(WorkQueueEntry)))]
pub struct Page<T: OutputType> {
    /// What this page holds.
    pub items: Vec<T>,
    /// `afterId` of the next page; null: this is the last one.
    pub next_cursor: Option<i64>,
}

impl<T: OutputType> Page<T> {
    /// A page of what was read: one thing more than it holds, if there are more.
    pub fn of<R>(
        mut read: Vec<R>,
        take: u32,
        id: impl Fn(&R) -> i64,
        item: impl Fn(R) -> T,
    ) -> Self {
        let take = take as usize;
        let has_more = read.len() > take;
        read.truncate(take);
        let next_cursor = read.last().map(id).filter(|_| has_more);
        Self { items: read.into_iter().map(item).collect(), next_cursor }
    }
}

/// A run.
#[derive(Debug, SimpleObject)]
pub struct Execution {
    id: i64,
    external_id: String,
    train_name: String,
    train_state: &'static str,
    manifest: Option<String>,
    start_time: DateTime,
    end_time: Option<DateTime>,
    failure_class: Option<&'static str>,
    failure_junction: Option<String>,
    failure_exception: Option<String>,
    failure_reason: Option<String>,
    currently_running_junction: Option<String>,
    host_name: Option<String>,
    cancel_requested: bool,
    is_parked: bool,
    replay_decisions_of: Option<i64>,
    replay_abandoned: bool,
    resume_from: Option<i64>,
}

impl From<runs::Listed> for Execution {
    fn from(listed: runs::Listed) -> Self {
        let runs::Listed { run, manifest } = listed;
        Self {
            id: run.id.0,
            external_id: run.external_id,
            train_name: run.name,
            train_state: run.train_state.as_str(),
            manifest,
            start_time: DateTime(run.start_time),
            end_time: run.end_time.map(DateTime),
            failure_class: run.failure_exception.is_some().then(|| run.failure_class.as_str()),
            failure_junction: run.failure_junction,
            failure_exception: run.failure_exception,
            failure_reason: run.failure_reason,
            currently_running_junction: run.currently_running_junction,
            host_name: run.host_name,
            cancel_requested: run.cancel_requested,
            is_parked: run.parked_at.is_some(),
            replay_decisions_of: run.replay_decisions_of.map(|run| run.0),
            replay_abandoned: run.replay_abandoned,
            resume_from: run.resume_from.map(|run| run.0),
        }
    }
}

/// A manifest that failed too often.
#[derive(Debug, SimpleObject)]
pub struct DeadLetter {
    id: i64,
    manifest: String,
    train_name: String,
    status: &'static str,
    reason: String,
    dead_lettered_at: DateTime,
    #[graphql(name = "retryCountAtDeadLetter")]
    failures: i32,
    resolved_at: Option<DateTime>,
    resolution_note: Option<String>,
    work_queue_id: Option<i64>,
    retry_metadata_id: Option<i64>,
}

impl From<dead_letters::Listed> for DeadLetter {
    fn from(listed: dead_letters::Listed) -> Self {
        let dead_letters::Listed { dead_letter, manifest, train } = listed;
        Self {
            id: dead_letter.id.0,
            manifest,
            train_name: train,
            status: dead_letter.status.as_str(),
            reason: dead_letter.reason,
            dead_lettered_at: DateTime(dead_letter.dead_lettered_at),
            failures: dead_letter.retry_count_at_dead_letter,
            resolved_at: dead_letter.resolved_at.map(DateTime),
            resolution_note: dead_letter.resolution_note,
            work_queue_id: dead_letter.work_queue_id.map(|entry| entry.0),
            retry_metadata_id: dead_letter.retry_metadata_id.map(|run| run.0),
        }
    }
}

/// An entry of the queue.
#[derive(Debug, SimpleObject)]
pub struct WorkQueueEntry {
    id: i64,
    external_id: String,
    train_name: String,
    status: &'static str,
    manifest: Option<String>,
    priority: i32,
    created_at: DateTime,
    scheduled_at: Option<DateTime>,
    dispatched_at: Option<DateTime>,
    metadata_id: Option<i64>,
    subject_key: Option<String>,
    replay_decisions_of: Option<i64>,
    resume_from: Option<i64>,
}

impl From<queue::Listed> for WorkQueueEntry {
    fn from(listed: queue::Listed) -> Self {
        let queue::Listed { entry, manifest } = listed;
        Self {
            id: entry.id.0,
            external_id: entry.external_id,
            train_name: entry.train_name,
            status: entry.status.as_str(),
            manifest,
            priority: entry.priority.into(),
            created_at: DateTime(entry.created_at),
            scheduled_at: entry.scheduled_at.map(DateTime),
            dispatched_at: entry.dispatched_at.map(DateTime),
            metadata_id: entry.metadata_id.map(|run| run.0),
            subject_key: entry.subject_key,
            replay_decisions_of: entry.replay_decisions_of.map(|run| run.0),
            resume_from: entry.resume_from.map(|run| run.0),
        }
    }
}

/// What runs by a schedule.
#[derive(Debug, SimpleObject)]
pub struct Manifest {
    id: i64,
    external_id: String,
    train_name: String,
    group: String,
    is_enabled: bool,
    schedule_type: &'static str,
    priority: i32,
    max_retries: i32,
    replay_decisions_on_retry: bool,
    next_scheduled_run: Option<DateTime>,
    last_successful_run: Option<DateTime>,
}

impl From<manifests::Listed> for Manifest {
    fn from(listed: manifests::Listed) -> Self {
        let manifests::Listed { manifest, group } = listed;
        Self {
            id: manifest.id.0,
            external_id: manifest.external_id,
            train_name: manifest.name,
            group,
            is_enabled: manifest.is_enabled,
            schedule_type: manifest.schedule_type.as_str(),
            priority: manifest.priority.into(),
            max_retries: manifest.max_retries,
            replay_decisions_on_retry: manifest.replay_decisions_on_retry,
            next_scheduled_run: manifest.next_scheduled_run.map(DateTime),
            last_successful_run: manifest.last_successful_run.map(DateTime),
        }
    }
}

/// Manifests that share limits.
#[derive(Debug, SimpleObject)]
pub struct ManifestGroup {
    id: i64,
    name: String,
    is_enabled: bool,
    max_active_jobs: Option<i32>,
    priority: i32,
}

impl From<Group> for ManifestGroup {
    fn from(group: Group) -> Self {
        Self {
            id: group.id.0,
            name: group.name,
            is_enabled: group.is_enabled,
            max_active_jobs: group.max_active_jobs,
            priority: group.priority.into(),
        }
    }
}
