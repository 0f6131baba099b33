//! Requeueing all dead letters as a job of a node.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use trax::model::ids::{ManifestId, TenantId};
use trax::model::timestamp::Timestamp;
use trax::operations::dead_letters::{Scope, acknowledge_all};
use trax::operations::requeue_jobs::{JobStatus, RETAINED_MAX, RETENTION, RequeueJob, RequeueJobs};
use trax::store::{Db, Faults, Tx, dead_letters, manifests};
use uuid::Uuid;

use crate::engine::dead_letters::many;
use crate::engine::world::{World, at};

const FAILED: &str = "The requeue stopped on a server failure; the server's log has the detail. Dead letters it \
                      requeued stay requeued; requeueAllDeadLetters again requeues the rest.";
const CANCELED: &str = "The requeue stopped because the server was shutting down. Dead letters it requeued stay \
                        requeued; requeueAllDeadLetters again requeues the rest.";

/// A node with a clock that stands still, and that can be stopped at the next page of a fold.
struct Node {
    jobs: RequeueJobs,
    clock: Arc<Mutex<Timestamp>>,
    stops_at_next_page: Arc<AtomicBool>,
    stopping: CancellationToken,
}

impl Node {
    fn new(db: &Db) -> Self {
        let (clock, stops) = (Arc::new(Mutex::new(at(0))), Arc::new(AtomicBool::new(false)));
        let stopping = CancellationToken::new();
        let now = {
            let (clock, stops, stopping) = (clock.clone(), stops.clone(), stopping.clone());
            // A fold reads the clock after each page, before it looks whether the node stops.
            move || {
                if stops.load(Ordering::Relaxed) {
                    stopping.cancel();
                }
                *clock.lock().unwrap()
            }
        };
        let jobs = RequeueJobs::with_clock(db.clone(), stopping.clone(), Box::new(now));
        Self { jobs, clock, stops_at_next_page: stops, stopping }
    }

    fn advance(&self, duration: Duration) {
        let mut clock = self.clock.lock().unwrap();
        *clock = clock.saturating_add(duration);
    }

    async fn ended(&self, tenant: TenantId, id: Uuid) -> RequeueJob {
        self.jobs.idle().await;
        self.jobs.get(tenant, id).unwrap()
    }
}

impl World {
    async fn awaiting(&self) -> usize {
        self.store
            .rows("SELECT CAST(id AS TEXT) FROM dead_letter WHERE status = 'awaiting_intervention'")
            .await
            .len()
    }

    /// A transaction in the way of a manifest's page of a fold, until it is dropped.
    async fn hold(&self, manifest: ManifestId) -> Tx<'static> {
        let mut tx = self.store.db.begin().await.unwrap();
        manifests::locked(&mut tx, self.store.tenant, manifest).await.unwrap();
        tx
    }
}

/// R106, R114, R119: a job starts at once, tells after each page how far it is, and can be read by its id.
async fn a_job_starts_at_once_and_tells_how_far_it_is(w: Arc<World>) {
    many(&w, 1_001, 2).await;
    let node = Node::new(&w.store.db);
    let mut changes = node.jobs.watch();

    let job = node.jobs.start(w.store.tenant, false).await.unwrap();

    assert_eq!(job.status, JobStatus::Running);
    assert_eq!((job.awaiting_at_start, job.processed, job.started), (2_002, 0, true));
    assert_eq!((job.count, job.finished_at, job.started_at), (None, None, at(0)));
    assert_eq!(job.message, "Requeueing 2002 dead letter(s) awaiting intervention.");
    let ended = node.ended(w.store.tenant, job.id).await;
    let mut told = Vec::new();
    while let Ok((tenant, change)) = changes.try_recv() {
        assert_eq!((tenant, change.id), (w.store.tenant, job.id));
        told.push((change.processed, change.message));
    }
    let so_far =
        |n: i64| format!("Requeued {n} of 2002 dead letter(s) awaiting intervention so far.");
    let summary = "2002 dead letter(s) requeued; 1001 folded into another dead letter's entry for the same manifest.";
    assert_eq!(told, [(2_000, so_far(2_000)), (2_002, so_far(2_002)), (2_002, summary.to_owned())]);
    assert_eq!(ended.message, summary);
}

/// R116, R121, R133: it succeeds with what the fold says, one entry per manifest, and a count of all it processed.
async fn a_job_succeeds_with_the_summary_of_the_fold(w: Arc<World>) {
    let (busy, _) = w.given_up("busy", 2).await;
    w.trigger(busy).await;
    w.given_up("a", 3).await;
    w.given_up("b", 1).await;
    let node = Node::new(&w.store.db);

    let job = node.jobs.start(w.store.tenant, false).await.unwrap();
    let ended = node.ended(w.store.tenant, job.id).await;

    assert_eq!(ended.status, JobStatus::Succeeded);
    assert_eq!((ended.count, ended.processed, ended.awaiting_at_start), (Some(4), 4, 6));
    assert_eq!(
        ended.message,
        "4 dead letter(s) requeued; 2 folded into another dead letter's entry for the same manifest; 2 skipped \
         because their manifest already has a queued entry."
    );
    let queued = "SELECT CAST(COUNT(*) AS TEXT) FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.store.rows(queued).await, ["3"]);
    acknowledge_all(&w.store.db, w.store.tenant, Scope::All, None).await.unwrap();
}

/// R126, R127, R128: while one runs nothing else starts, and a call in the other mode is told to ask again.
async fn one_job_of_a_tenant_runs_at_a_time(w: Arc<World>) {
    let tenant = w.store.tenant;
    for (first, mode) in [(false, "replays recorded decisions"), (true, "asks its deciders afresh")]
    {
        let node = Node::new(&w.store.db);
        let (manifest, _) = w.given_up(mode, 1).await;
        let held = w.hold(manifest).await;
        let job = node.jobs.start(tenant, first).await.unwrap();

        let same = node.jobs.start(tenant, first).await.unwrap();
        let other = node.jobs.start(tenant, !first).await.unwrap();

        assert_eq!(same, RequeueJob { started: false, ..job.clone() });
        let message = format!(
            "A requeue-all that {mode} is already running on this node, so this one was not started. Read \
             requeueAllJob(id) until it finishes, then ask again."
        );
        assert_eq!(other, RequeueJob { started: false, message, ..job.clone() });
        assert_eq!(node.jobs.get(tenant, job.id), Some(job.clone()), "the job itself is unchanged");
        drop(held);
        assert_eq!(node.ended(tenant, job.id).await.status, JobStatus::Succeeded);
        let next = node.jobs.start(tenant, !first).await.unwrap();
        assert!(next.started && next.id != job.id);
        node.jobs.idle().await;
    }
}

/// R108, R123, R124: leaving while it counts starts nothing; leaving later stops nothing.
async fn a_caller_that_leaves_cancels_the_count_only(w: Arc<World>) {
    let node = Node::new(&w.store.db);
    let tenant = w.store.tenant;
    let mut tries = 0;
    loop {
        tries += 1;
        w.given_up(&format!("m{tries}"), 1).await;
        let mut counting = Box::pin(node.jobs.start(tenant, false));
        let polled = poll_fn(|context| Poll::Ready(counting.as_mut().poll(context))).await;
        drop(counting);
        node.jobs.idle().await;
        // A store that has counted by the first look leaves nothing to cancel.
        if polled.is_pending() {
            break;
        }
        assert_eq!(w.awaiting().await, 0);
    }
    assert_eq!(w.awaiting().await, 1, "nothing was started");

    let job = node.jobs.start(tenant, false).await.unwrap();
    assert!(job.started, "nothing was running");
    assert_eq!(node.ended(tenant, job.id).await.status, JobStatus::Succeeded);
    assert_eq!(w.awaiting().await, 0);
}

/// R120: dead letters that arrive meanwhile are requeued too, so more can be processed than there were.
async fn more_can_be_processed_than_there_were(w: Arc<World>) {
    let (manifest, _) = w.given_up("a", 1).await;
    let node = Node::new(&w.store.db);
    let tenant = w.store.tenant;
    let mut held = w.hold(manifest).await;
    let job = node.jobs.start(tenant, false).await.unwrap();
    dead_letters::add(&mut held, tenant, manifest, 0, "reason").await.unwrap();
    held.commit().await.unwrap();

    let ended = node.ended(tenant, job.id).await;

    assert_eq!((ended.awaiting_at_start, ended.processed, ended.count), (1, 2, Some(2)));
}

/// R125, R136, R139: a node that stops ends the fold between two pages; another start does the rest.
async fn a_node_that_stops_ends_the_fold_between_pages(w: Arc<World>) {
    let first = many(&w, 1_001, 1).await;
    let node = Node::new(&w.store.db);
    let tenant = w.store.tenant;
    let held = w.hold(first).await;
    let job = node.jobs.start(tenant, false).await.unwrap();
    node.stops_at_next_page.store(true, Ordering::Relaxed);
    drop(held);

    let ended = node.ended(tenant, job.id).await;

    assert!(node.stopping.is_cancelled());
    assert_eq!((ended.status, ended.message.as_str()), (JobStatus::Canceled, CANCELED));
    assert_eq!((ended.count, ended.processed, ended.finished_at), (None, 1_000, Some(at(0))));
    assert_eq!(w.awaiting().await, 1);
    let next = Node::new(&w.store.db);
    let job = next.jobs.start(tenant, false).await.unwrap();
    assert_eq!(next.ended(tenant, job.id).await.count, Some(1));
    assert_eq!(w.awaiting().await, 0);
}

/// R117, R134, R135: a page that the store does not take ends the job without a count; the pages before it stay done,
/// and what went wrong is in the log only.
async fn a_failing_store_ends_the_job_and_keeps_its_pages(w: Arc<World>) {
    many(&w, 1_001, 1).await;
    let faults = Faults::none();
    let node = Node::new(&w.faulty(&faults).await);
    let tenant = w.store.tenant;
    faults.go_away_after(faults.commits() + 1);

    let job = node.jobs.start(tenant, false).await.unwrap();
    let ended = node.ended(tenant, job.id).await;

    assert_eq!((ended.status, ended.message.as_str()), (JobStatus::Failed, FAILED));
    assert_eq!((ended.count, ended.processed, ended.finished_at), (None, 1_000, Some(at(0))));
    assert_eq!(w.awaiting().await, 1, "the first page stays requeued");
    acknowledge_all(&w.store.db, tenant, Scope::All, None).await.unwrap();
}

/// R129, R130, R138: a job is known to its own node and tenant, until 24 hours after its end.
async fn a_job_is_known_on_its_node_for_a_day(w: Arc<World>) {
    let node = Node::new(&w.store.db);
    let other = Node::new(&w.store.db);
    let tenant = w.store.tenant;
    let job = node.jobs.start(tenant, false).await.unwrap();
    let ended = node.ended(tenant, job.id).await;

    assert_eq!(other.jobs.get(tenant, job.id), None, "another node, or this one after a restart");
    assert_eq!(node.jobs.get(TenantId(99), job.id), None, "another tenant");
    assert_eq!(node.jobs.get(tenant, Uuid::nil()), None);
    node.advance(RETENTION);
    assert_eq!(node.jobs.get(tenant, job.id), Some(ended));
    node.advance(Duration::from_micros(1));
    assert_eq!(node.jobs.get(tenant, job.id), None);
}

/// R131, R132, L12: of those that ended a hundred are known, the oldest are forgotten first, and never one that runs.
async fn a_hundred_ended_jobs_are_known(w: Arc<World>) {
    let node = Node::new(&w.store.db);
    let tenant = w.store.tenant;
    let mut ids = Vec::new();
    for _ in 0..=RETAINED_MAX {
        let job = node.jobs.start(tenant, false).await.unwrap();
        node.jobs.idle().await;
        node.advance(Duration::from_secs(1));
        ids.push(job.id);
    }

    assert_eq!(node.jobs.get(tenant, ids[0]), None);
    assert!(ids[1..].iter().all(|id| node.jobs.get(tenant, *id).is_some()));

    let (manifest, _) = w.given_up("a", 1).await;
    let held = w.hold(manifest).await;
    let running = node.jobs.start(tenant, false).await.unwrap();
    node.advance(RETENTION * 2);
    assert_eq!(node.jobs.get(tenant, running.id), Some(running.clone()));
    assert_eq!(node.jobs.get(tenant, ids[RETAINED_MAX]), None);
    drop(held);
    assert_eq!(node.ended(tenant, running.id).await.count, Some(1));
}

/// R109, R115: all who use a node's jobs use the same ones, and a fold does not need whoever started it.
async fn whoever_uses_a_nodes_jobs_uses_the_same_ones(w: Arc<World>) {
    let (manifest, _) = w.given_up("a", 1).await;
    let node = Node::new(&w.store.db);
    let tenant = w.store.tenant;
    let held = w.hold(manifest).await;
    let caller = node.jobs.clone();
    let job = caller.start(tenant, false).await.unwrap();
    drop(caller);

    assert_eq!(node.jobs.get(tenant, job.id), Some(job.clone()));
    assert!(!node.jobs.clone().start(tenant, false).await.unwrap().started);
    drop(held);
    assert_eq!(node.ended(tenant, job.id).await.count, Some(1));
}

/// R110, R112, R141: jobs are in no table; what starts one and reads one is all there is.
async fn no_table_has_jobs(w: Arc<World>) {
    let tables = if w.store.url.starts_with("postgres") {
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'trax'"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
    };
    let tables = w.store.rows(tables).await;
    assert!(tables.len() > 10, "{tables:?}");
    assert!(!tables.iter().any(|name| name.contains("job")), "{tables:?}");
}

engine_cases!(
    a_job_starts_at_once_and_tells_how_far_it_is,
    a_job_succeeds_with_the_summary_of_the_fold,
    one_job_of_a_tenant_runs_at_a_time,
    a_caller_that_leaves_cancels_the_count_only,
    more_can_be_processed_than_there_were,
    a_node_that_stops_ends_the_fold_between_pages,
    a_failing_store_ends_the_job_and_keeps_its_pages,
    a_job_is_known_on_its_node_for_a_day,
    a_hundred_ended_jobs_are_known,
    whoever_uses_a_nodes_jobs_uses_the_same_ones,
    no_table_has_jobs,
);
