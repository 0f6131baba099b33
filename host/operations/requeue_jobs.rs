//! Requeueing every dead letter as a job of this node: the fold over a large backlog is bound by neither a request nor
//! the connection of whoever asked for it.
//!
//! Jobs live in this process's memory. Another node does not know them, and a restart forgets them; nothing is lost by
//! that, because what a fold requeued no longer awaits anybody and the next fold does the rest.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::clock::Clock;
use crate::engine::error::causes;
use crate::model::ids::TenantId;
use crate::model::message;
use crate::model::timestamp::Timestamp;
use crate::operations::dead_letters::{self, Scope};
use crate::store::{Db, StoreError, dead_letters as letters};

/// How long a job that has ended is known.
pub const RETENTION: Duration = Duration::from_hours(24);

/// The most jobs of a tenant that are known after they have ended.
pub const RETAINED_MAX: usize = 100;

/// How many changes a watcher may lag behind.
const BACKLOG: usize = 256;

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    /// It goes on.
    Running,
    /// Every page was requeued.
    Succeeded,
    /// The store gave up on a page.
    Failed,
    /// This node stopped between two pages.
    Canceled,
}

impl JobStatus {
    /// The status as people and programs read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }
}

/// A job as it stood when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequeueJob {
    /// Names it on this node.
    pub id: Uuid,
    /// How far it is.
    pub status: JobStatus,
    /// How many dead letters awaited somebody when it was started.
    pub awaiting_at_start: i64,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How many dead letters it requeued, once it has succeeded.
    pub count: Option<i64>,
    /// What an operator is told of it.
    pub message: String,
    /// Whether the new runs ask their deciders afresh instead of replaying recorded decisions.
    pub ask_afresh: bool,
    /// Whether the call that gave this copy started it.
    pub started: bool,
    /// How many dead letters it has requeued so far. It can pass `awaiting_at_start`: others may arrive meanwhile.
    pub processed: i64,
}

/// The jobs of this node.
#[derive(Clone)]
pub struct RequeueJobs(Arc<Inner>);

struct Inner {
    db: Db,
    /// Set when this node stops.
    stopping: CancellationToken,
    now: Now,
    folds: TaskTracker,
    changes: broadcast::Sender<(TenantId, RequeueJob)>,
    jobs: Mutex<BTreeMap<TenantId, Vec<RequeueJob>>>,
}

/// Tells the time by which jobs are stamped and forgotten.
pub type Now = Box<dyn Fn() -> Timestamp + Send + Sync>;

impl RequeueJobs {
    /// No job yet, on this node's own clock.
    pub fn new(db: Db, stopping: CancellationToken) -> Self {
        let now = || Timestamp::from_micros(Clock.unix_micros()).unwrap_or(Timestamp::MIN);
        Self::with_clock(db, stopping, Box::new(now))
    }

    /// No job yet, on a clock of the caller's.
    pub fn with_clock(db: Db, stopping: CancellationToken, now: Now) -> Self {
        let (folds, changes) = (TaskTracker::new(), broadcast::Sender::new(BACKLOG));
        let jobs = Mutex::default();
        Self(Arc::new(Inner { db, stopping, now, folds, changes, jobs }))
    }

    /// Counts a tenant's dead letters that await somebody, starts the fold over them in the background, and gives the
    /// job at once. While another one of the tenant runs, nothing is started and that one is given. Dropping this
    /// future cancels the count and starts nothing; a fold that has started goes on whoever leaves. Must be called in
    /// a runtime.
    ///
    /// # Errors
    /// Those of the store, while it counts.
    pub async fn start(
        &self,
        tenant: TenantId,
        ask_afresh: bool,
    ) -> Result<RequeueJob, StoreError> {
        if let Some(running) = self.0.running(tenant, ask_afresh) {
            return Ok(running);
        }
        let mut tx = self.0.db.read().await?;
        let awaiting = letters::count_awaiting(&mut tx, tenant).await?;
        drop(tx);
        let job = match self.0.add(tenant, awaiting, ask_afresh) {
            Ok(job) => job,
            Err(running) => return Ok(running),
        };
        let fold = Fold { inner: Arc::clone(&self.0), tenant, job: job.id, ask_afresh };
        self.0.folds.spawn(fold.run());
        Ok(job)
    }

    /// A tenant's job of that id, if this node knows it.
    pub fn get(&self, tenant: TenantId, id: Uuid) -> Option<RequeueJob> {
        let mut jobs = self.0.jobs(tenant);
        let jobs = jobs.entry(tenant).or_default();
        jobs.iter().find(|job| job.id == id).cloned()
    }

    /// Every change of a job from now on, after each page and at its end. A watcher that is too slow misses some.
    pub fn watch(&self) -> broadcast::Receiver<(TenantId, RequeueJob)> {
        self.0.changes.subscribe()
    }

    /// Waits until no fold is running.
    pub async fn idle(&self) {
        self.0.folds.close();
        self.0.folds.wait().await;
        self.0.folds.reopen();
    }
}

impl Inner {
    /// The jobs, without those of a tenant that are forgotten by now.
    fn jobs(&self, tenant: TenantId) -> MutexGuard<'_, BTreeMap<TenantId, Vec<RequeueJob>>> {
        let mut all = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = all.get_mut(&tenant) {
            forget(jobs, (self.now)());
        }
        all
    }

    /// A copy of the tenant's running job, as a call is told of it that would have started another.
    fn running(&self, tenant: TenantId, ask_afresh: bool) -> Option<RequeueJob> {
        let jobs = self.jobs(tenant);
        running(jobs.get(&tenant)?, ask_afresh)
    }

    /// Adds a job that runs, unless one of the tenant does: then that one.
    fn add(
        &self,
        tenant: TenantId,
        awaiting: i64,
        ask_afresh: bool,
    ) -> Result<RequeueJob, RequeueJob> {
        let mut jobs = self.jobs(tenant);
        let jobs = jobs.entry(tenant).or_default();
        if let Some(running) = running(jobs, ask_afresh) {
            return Err(running);
        }
        let job = RequeueJob {
            id: Uuid::new_v4(),
            status: JobStatus::Running,
            awaiting_at_start: awaiting,
            started_at: (self.now)(),
            finished_at: None,
            count: None,
            message: message::requeue_job_started(awaiting),
            ask_afresh,
            started: true,
            processed: 0,
        };
        jobs.push(job.clone());
        Ok(job)
    }

    fn change(&self, tenant: TenantId, id: Uuid, change: impl FnOnce(&mut RequeueJob)) {
        let mut jobs = self.jobs(tenant);
        let job = jobs.get_mut(&tenant).and_then(|jobs| jobs.iter_mut().find(|job| job.id == id));
        if let Some(job) = job {
            change(job);
            // Nobody watching is fine.
            self.changes.send((tenant, job.clone())).ok();
        }
    }

    fn end(&self, tenant: TenantId, id: Uuid, status: JobStatus, message: String) {
        let now = (self.now)();
        self.change(tenant, id, |job| {
            job.status = status;
            job.count = (status == JobStatus::Succeeded).then_some(job.processed);
            job.finished_at = Some(now);
            job.message = message;
        });
    }
}

fn running(jobs: &[RequeueJob], ask_afresh: bool) -> Option<RequeueJob> {
    let mut job = jobs.iter().find(|job| job.status == JobStatus::Running)?.clone();
    job.started = false;
    if job.ask_afresh != ask_afresh {
        job.message = message::requeue_job_of_other_mode(job.ask_afresh);
    }
    Some(job)
}

/// Forgets jobs that ended long ago, and the oldest of too many. One that runs is never forgotten.
fn forget(jobs: &mut Vec<RequeueJob>, now: Timestamp) {
    jobs.retain(|job| job.finished_at.is_none_or(|at| now.since(at) <= RETENTION));
    let mut ends: Vec<(Timestamp, Uuid)> =
        jobs.iter().filter_map(|job| job.finished_at.map(|at| (at, job.id))).collect();
    ends.sort_unstable();
    let surplus = ends.len().saturating_sub(RETAINED_MAX);
    for (_, oldest) in &ends[..surplus] {
        jobs.retain(|job| job.id != *oldest);
    }
}

/// The fold of one job. However it ends, also by a panic, the job ends with it.
struct Fold {
    inner: Arc<Inner>,
    tenant: TenantId,
    job: Uuid,
    ask_afresh: bool,
}

impl Fold {
    async fn run(self) {
        let Inner { db, stopping, .. } = &*self.inner;
        let mut is_stopped = false;
        let progress = |processed: i64| {
            self.inner.change(self.tenant, self.job, |job| {
                job.processed = processed;
                job.message = message::requeue_job_so_far(processed, job.awaiting_at_start);
            });
            is_stopped = stopping.is_cancelled();
            if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done =
            dead_letters::requeue_all(db, self.tenant, Scope::All, self.ask_afresh, progress).await;
        let (status, message) = match done {
            Ok(_) if is_stopped => (JobStatus::Canceled, message::REQUEUE_JOB_CANCELED.to_owned()),
            Ok(outcome) => (JobStatus::Succeeded, outcome.message),
            Err(error) => {
                let error = causes(&error);
                tracing::error!(job = %self.job, error, "requeueing all dead letters stopped");
                (JobStatus::Failed, message::REQUEUE_JOB_FAILED.to_owned())
            }
        };
        self.inner.end(self.tenant, self.job, status, message);
    }
}

impl Drop for Fold {
    fn drop(&mut self) {
        let is_running =
            self.inner.running(self.tenant, false).is_some_and(|job| job.id == self.job);
        if is_running {
            tracing::error!(job = %self.job, "requeueing all dead letters ended without a result");
            let message = message::REQUEUE_JOB_FAILED.to_owned();
            self.inner.end(self.tenant, self.job, JobStatus::Failed, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R113, R137: how jobs are spelled, kept and explained.
    #[test]
    fn jobs_are_spelled_kept_and_explained_as_documented() {
        use JobStatus::{Canceled, Failed, Running, Succeeded};
        let spelled = [Running, Succeeded, Failed, Canceled].map(JobStatus::as_str);
        assert_eq!(spelled, ["Running", "Succeeded", "Failed", "Canceled"]);
        assert_eq!((RETENTION, RETAINED_MAX), (Duration::from_hours(24), 100));
        let ends = "Dead letters it requeued stay requeued; requeueAllDeadLetters again requeues the rest.";
        let failed = "The requeue stopped on a server failure; the server's log has the detail.";
        assert_eq!(message::REQUEUE_JOB_FAILED, format!("{failed} {ends}"));
        let canceled = "The requeue stopped because the server was shutting down.";
        assert_eq!(message::REQUEUE_JOB_CANCELED, format!("{canceled} {ends}"));
        assert_eq!(
            message::requeue_job_of_other_mode(true),
            "A requeue-all that asks its deciders afresh is already running on this node, so this one was not \
             started. Read requeueAllJob(id) until it finishes, then ask again."
        );
    }
}
