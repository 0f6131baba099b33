//! Workers: each takes a claimed run from where it stands to where it leaves this host.

mod ahead;
mod opening;

use std::sync::Arc;
use std::time::Duration;

use ahead::Ahead;
use opening::{Opened, Prepared, Undelivered, memory_of, run_info};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::chain::next::End;
use crate::chain::snapshot::Snapshot;
use crate::clock::Clock;
use crate::deciders::rules::RuleDecider;
use crate::deciders::scripted::ScriptedDecider;
use crate::deciders::{Decider, Deciders};
use crate::engine::completion::{Completions, Finish, Outcome};
use crate::engine::config::Shared;
use crate::engine::error::{EngineError, causes};
use crate::engine::events::{Ending, EngineEvent};
use crate::engine::job_runner::{Driven, HandOver, JobRunner};
use crate::engine::replay::{self, Unloaded};
use crate::engine::run_journal::RunJournal;
use crate::engine::running::Running;
use crate::engine::seal::{self, Sealed};
use crate::engine::tenant_names::TenantNames;
use crate::engine::trains::{Ready, Trains, Unready};
use crate::guest::GuestError;
use crate::guest::component::GuestHost;
use crate::guest::run_log::RunLog;
use crate::model::failure::Failure;
use crate::model::ids::{Claim, EntryId, ManifestId, RunId, TenantId};
use crate::model::value::Shown;
use crate::store::claim::ClaimedRun;
use crate::store::parked::Continued;
use crate::store::{ParkReason, StoreError};

/// How long a worker that is free may wait for others before the dispatcher looks for work.
const CLAIM_PAUSE: Duration = Duration::from_millis(2);
/// How often a run's end is written if the store refuses it: as it is, and then as a failure.
const ENDS_MAX: u32 = 2;

/// A run that this host has claimed.
#[derive(Debug)]
pub enum Work {
    /// It starts.
    Fresh(TenantId, Box<ClaimedRun>),
    /// It goes on from where it was parked.
    Continued(Continued),
}

impl Work {
    /// The right to write to it.
    pub(in crate::engine) const fn claim(&self) -> Claim {
        match self {
            Self::Fresh(_, run) => run.claim(),
            Self::Continued(run) => Claim { run: run.run, token: run.claim_token },
        }
    }

    const fn tenant(&self) -> TenantId {
        match self {
            Self::Fresh(tenant, _) => *tenant,
            Self::Continued(run) => run.tenant_id,
        }
    }

    const fn entry(&self) -> Option<EntryId> {
        match self {
            Self::Fresh(_, run) => Some(run.entry),
            Self::Continued(_) => None,
        }
    }
}

/// The workers of a host.
#[derive(Clone)]
pub struct Workers(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    trains: Trains,
    tenants: TenantNames,
    completions: Completions,
    slots: Arc<Semaphore>,
    ahead: Ahead,
    tasks: TaskTracker,
    running: Running,
}

/// A run on its way off this host.
struct Left {
    outcome: Outcome,
    journal: Option<Arc<RunJournal>>,
}

impl Left {
    fn failed(failure: Failure) -> Self {
        Self { outcome: Outcome::Failed { junction: None, failure }, journal: None }
    }

    /// A run that has done nothing here: it goes on elsewhere, or later.
    fn put_back(work: &Work) -> Self {
        let outcome = Outcome::Parked { reason: ParkReason::Capacity, memory: memory_of(work) };
        Self { outcome, journal: None }
    }
}

impl Workers {
    /// As many as the configuration says. Must be called in a runtime.
    pub fn new(shared: Arc<Shared>, guests: Arc<GuestHost>) -> Self {
        Self(Arc::new(Inner {
            trains: Trains::new(shared.db.clone(), guests),
            tenants: TenantNames::default(),
            completions: Completions::start(Arc::clone(&shared)),
            slots: Arc::new(Semaphore::new(shared.config.worker_count)),
            ahead: Ahead::new(shared.config.claim_ahead, shared.config.claim_ahead_for),
            tasks: TaskTracker::new(),
            running: Running::default(),
            shared,
        }))
    }

    /// How many runs they can take up: some of them at once, the others soon.
    pub fn free(&self) -> usize {
        self.0.free()
    }

    /// Gives a run to a worker.
    pub fn take_up(&self, work: Work) {
        let inner = Arc::clone(&self.0);
        let claim = work.claim();
        let cancel = inner.running.enter(claim);
        self.0.tasks.spawn(async move {
            match inner.slot().await {
                Some(slot) => inner.live(work, cancel, slot).await,
                None => inner.give_back(&work).await,
            }
            inner.running.leave(claim);
            if inner.is_mostly_busy() {
                // One claim for several workers is cheaper than one for each.
                Clock.sleep(CLAIM_PAUSE).await;
            }
            inner.shared.dispatcher_nudge.notify_one();
        });
    }

    /// Asks a run on this host to stop, at once. False: it is not here.
    pub fn cancel(&self, run: RunId) -> bool {
        self.0.running.cancel(run)
    }

    /// Stops a run of which this host has lost the claim: nothing that it still does is kept.
    pub(in crate::engine) fn lose(&self, claim: Claim) {
        self.0.running.lose(claim);
    }

    /// The claims of the runs that are here, those that are about to leave too.
    pub(in crate::engine) fn claims(&self) -> Vec<Claim> {
        self.0.running.claims()
    }

    /// Waits until no run is in progress here.
    pub async fn idle(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.tasks.reopen();
    }
}

impl Inner {
    /// How many runs may be here.
    fn room(&self) -> usize {
        self.shared.config.worker_count.saturating_add(self.ahead.allowed())
    }

    fn free(&self) -> usize {
        self.room().saturating_sub(self.running.count())
    }

    /// Whether more runs are here than could come.
    fn is_mostly_busy(&self) -> bool {
        self.free() * 2 < self.room()
    }

    /// A worker, as soon as one is free. `None`: it took too long, or this host takes up nothing any more.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        // The first one is there at once, whatever else is true.
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(slot);
        }
        let waiting = Clock.timeout(self.ahead.lease(), Arc::clone(&self.slots).acquire_owned());
        tokio::select! {
            biased;
            () = self.shared.drain.cancelled() => None,
            slot = waiting => match slot {
                Ok(slot) => slot.ok(),
                Err(_elapsed) => {
                    self.ahead.waited_too_long();
                    None
                }
            },
        }
    }

    /// Gives a run back that has waited here for a worker.
    async fn give_back(&self, work: &Work) {
        tracing::debug!(run = %work.claim().run, "no worker is free for a run; it is given back");
        self.leave(work.claim(), work.tenant(), None, Left::put_back(work)).await;
    }

    /// The life of a run on this host: open, run, leave. Its worker is free once there is only its end to write.
    async fn live(&self, work: Work, cancel: CancellationToken, slot: OwnedSemaphorePermit) {
        let began = Clock.instant();
        let (claim, tenant) = (work.claim(), work.tenant());
        let opened = match self.open(&work).await {
            Ok(opened) => opened,
            Err(error) => {
                let error = causes(&error);
                tracing::error!(run = %claim.run, error, "a claimed run could not be read; it is put back");
                self.leave(claim, tenant, None, Left::put_back(&work)).await;
                return;
            }
        };
        let left = match self.prepare(&work, &opened).await {
            Ok(prepared) => {
                self.announce(&work, &opened);
                match self.run(&work, &opened, prepared, cancel).await {
                    Ok(left) => Some(left),
                    Err(Unready::Host(EngineError::Store(StoreError::LostClaim(_)))) => None,
                    Err(Unready::Host(error)) if error.is_passing() => {
                        Some(put_back(&work, &error))
                    }
                    Err(unready) => Some(Left::failed(failure_of(unready))),
                }
            }
            Err(Undelivered { unready: Unready::Host(error), .. }) if error.is_passing() => {
                Some(put_back(&work, &error))
            }
            Err(undelivered) => Some(undelivered.left(&work)),
        };
        drop(slot);
        self.ahead.took(began.elapsed());
        let ending = match left {
            Some(left) => self.leave(claim, tenant, opened.run.manifest_id, left).await,
            None => Some(Ending::ClaimLost),
        };
        if let Some(ending) = ending {
            self.shared.manager_nudge.notify_one();
            self.shared.events.publish(EngineEvent::RunEnded {
                run: claim.run,
                train: opened.run.name,
                manifest: opened.manifest.map(|manifest| manifest.external_id),
                ending,
            });
        }
    }

    fn announce(&self, work: &Work, opened: &Opened) {
        let (run, train) = (opened.run.id, opened.run.name.clone());
        self.shared.events.publish(match work {
            Work::Continued(_) => EngineEvent::RunContinued { run, train },
            Work::Fresh(..) => EngineEvent::RunStarted {
                run,
                train,
                manifest: opened.manifest.as_ref().map(|manifest| manifest.external_id.clone()),
                attempt: opened.attempt,
            },
        });
    }

    /// Runs it to its end, or to where it stops.
    async fn run(
        &self,
        work: &Work,
        opened: &Opened,
        prepared: Prepared,
        cancel: CancellationToken,
    ) -> Result<Left, Unready> {
        let (claim, tenant) = (work.claim(), work.tenant());
        let Prepared { ready, input, walk } = prepared;
        let limits = &self.shared.config.limits;
        let log = Arc::new(RunLog::new(limits));
        let loaded = replay::load(&self.shared, tenant, &opened.run).await?;
        let journal = RunJournal::open(
            Arc::clone(&self.shared),
            tenant,
            claim,
            Arc::clone(&ready.chain),
            Arc::clone(&log),
            cancel.clone(),
            matches!(work, Work::Continued(_)),
        );
        let journal = Arc::new(journal.await?.replaying(loaded, opened.run.decisions_recorded));
        let runner = JobRunner {
            deciders: Arc::new(self.deciders(&ready).map_err(Unready::Failed)?),
            run: run_info(opened, &ready),
            chain: ready.chain,
            component: ready.component,
            journal: Arc::clone(&journal) as _,
            limits: limits.clone(),
            log,
            cancel,
            hasher: self.shared.config.hasher.clone(),
        };
        let hand_over =
            HandOver { at_boundary: self.shared.drain.clone(), at_once: self.shared.halt.clone() };
        let driven = runner.drive(&input, walk, hand_over).await;
        if let Some(lost @ (StoreError::LostClaim(_) | StoreError::Injected)) = journal.broken() {
            return Err(Unready::Host(lost.into()));
        }
        Ok(Left { outcome: self.outcome(claim.run, driven), journal: Some(journal) })
    }

    fn deciders(&self, ready: &Ready) -> Result<Deciders, Failure> {
        let train = ready.chain.train();
        let config = &self.shared.config;
        let mut deciders = Deciders::new(train.default_decider.clone());
        for name in &train.deciders {
            let component = Arc::clone(&ready.component);
            let rules = RuleDecider::new(component, name.clone(), config.limits.clone());
            deciders.add(name.clone(), Decider::Rules(rules));
        }
        deciders.add_host(&config.deciders);
        if let Some(answers) = &config.answers {
            let script = ScriptedDecider::from_json(answers)
                .map_err(|error| Failure::permanent("BadAnswers", error.to_string()))?;
            deciders.add_in_place_of_all("answers", Decider::Scripted(script));
        }
        Ok(deciders)
    }

    fn outcome(&self, run: RunId, driven: Result<Driven, GuestError>) -> Outcome {
        let fault = |what: String| Outcome::Failed {
            junction: None,
            failure: Failure::unclassified("HostFault", what),
        };
        match driven {
            Ok(Driven::Ended(End::Completed(value))) => {
                Outcome::Completed { output: value.json.to_string() }
            }
            Ok(Driven::Ended(End::Failed(failed))) => {
                Outcome::Failed { junction: Some(failed.junction), failure: failed.failure }
            }
            Ok(Driven::Ended(End::Cancelled)) => Outcome::Cancelled,
            Ok(Driven::Ended(End::BranchCompleted)) => {
                fault("the run ended as a branch does; this is a bug of the host".to_owned())
            }
            Ok(Driven::Stopped(snapshot)) => match self.sealed(run, &snapshot) {
                Ok(memory) => {
                    Outcome::Parked { reason: ParkReason::HandOver, memory: Some(memory) }
                }
                Err(why) => fault(format!("the run could not be handed over: {why}")),
            },
            Err(error) => fault(error.to_string()),
        }
    }

    fn sealed(&self, run: RunId, snapshot: &Snapshot) -> Result<Sealed, String> {
        let text = serde_json::to_vec(snapshot).map_err(|error| error.to_string())?;
        seal::seal(self.shared.config.memory_key.as_ref(), run, text)
    }

    /// Writes how the run leaves, for as long as the store may come back. An end that the store refuses for what it is
    /// becomes a failure that says so. `None`: nothing is told. Its entry is queued again; or nothing was written, and
    /// the run is taken for lost once this host is gone.
    async fn leave(
        &self,
        claim: Claim,
        tenant: TenantId,
        manifest: Option<ManifestId>,
        left: Left,
    ) -> Option<Ending> {
        let Left { mut outcome, mut journal } = left;
        for _ in 0..ENDS_MAX {
            let finish = Finish {
                claim,
                tenant,
                manifest,
                journal: journal.clone(),
                outcome: outcome.clone(),
            };
            match self.completions.write(finish).await {
                Ok(true) => return Some(ending(outcome, journal.as_deref())),
                Err(EngineError::Store(StoreError::LostClaim(_))) => {
                    return Some(Ending::ClaimLost);
                }
                Ok(false)
                | Err(EngineError::Store(StoreError::Injected) | EngineError::GivenUp(_)) => {
                    return None;
                }
                Err(error) => {
                    let what = causes(&error);
                    tracing::error!(run = %claim.run, error = what, "the store refuses the end of a run");
                    let what = format!("the end of the run could not be stored: {what}");
                    let failure = Failure::unclassified("HostFault", what);
                    // The journal's last lines may be what is refused.
                    (outcome, journal) = (Outcome::Failed { junction: None, failure }, None);
                }
            }
        }
        None
    }
}

/// A run that cannot go on here now, through nobody's fault.
fn put_back(work: &Work, error: &EngineError) -> Left {
    let (run, error) = (work.claim().run, causes(error));
    tracing::warn!(%run, error, "a run cannot start now; it is put back");
    Left::put_back(work)
}

impl From<Unloaded> for Unready {
    fn from(unloaded: Unloaded) -> Self {
        match unloaded {
            Unloaded::Failed(failure) => Self::Failed(failure),
            Unloaded::Store(error) => Self::Host(error.into()),
        }
    }
}

fn failure_of(unready: Unready) -> Failure {
    match unready {
        Unready::Failed(failure) => failure,
        Unready::Host(error) => Failure::transient("HostFault", causes(&error)),
    }
}

fn ending(outcome: Outcome, journal: Option<&RunJournal>) -> Ending {
    match outcome {
        Outcome::Completed { output } => Ending::Completed {
            output: journal.map_or(Shown::Sensitive, |journal| journal.shown(&output)),
        },
        Outcome::Failed { junction, failure } => {
            Ending::Failed { junction: junction.unwrap_or_default(), failure }
        }
        Outcome::Undelivered { .. } => Ending::never_started(),
        Outcome::Cancelled => Ending::Cancelled,
        Outcome::Parked { .. } => Ending::Parked,
    }
}
