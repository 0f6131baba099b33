//! The journal of a run in the store: what happens is durable when [`Journal::record`] returns.
//!
//! What is only for people, which steps there were and what a guest logged, waits for the next write: it must not cost
//! a commit of its own. A junction that takes long is shown after a while.
//!
//! A database that is away is waited for. A write whose answer was lost is made again, and every one is made by a key,
//! so that it is there once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::chain::Chain;
use crate::chain::decision::read_answer;
use crate::clock::Clock;
use crate::decide::replay::{Earlier, Key, Replay};
use crate::engine::config::Shared;
use crate::engine::error::causes;
use crate::engine::events::EngineEvent;
use crate::engine::journal::{Asking, Event, Journal, Recalled};
use crate::engine::pauses::Pauses;
use crate::engine::replay::Loaded;
use crate::engine::run_journal::write::Written;
use crate::guest::context::BoxFuture;
use crate::guest::run_log::{self, RunLog};
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::ids::{Claim, DecisionId, TenantId};
use crate::model::value::Shown;
use crate::store::decisions;
use crate::store::junction_runs::{self, StepRow};
use crate::store::logs::{self, NewLine};
use crate::store::{JunctionRunState, LogLevel, StoreError, Tx, runs};

mod steps;
mod write;

use steps::{Steps, Taken};

/// How many decisions are read at once.
const PAGE: u32 = 500;

/// Records one run under its claim.
pub struct RunJournal {
    shared: Arc<Shared>,
    claim: Claim,
    chain: Arc<Chain>,
    log: Arc<RunLog>,
    /// Set when the store says that somebody asked to cancel the run.
    cancel: CancellationToken,
    recorded: HashMap<Key, Recalled>,
    replay: Replay,
    /// Whether the run should have replayed and asks its deciders after all.
    is_abandoned: bool,
    /// Whether the run's row says already that its decisions are recorded.
    is_noted: bool,
    /// How many lines the log had when the run started or continued here.
    logged_before: i64,
    stalls: Stalls,
    state: Mutex<State>,
    /// Held by whoever writes.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    steps: Steps,
    logged: usize,
    /// By branch and question, the decision that a track would be taken by, with its tracks so far.
    decided: BTreeMap<(String, String), (DecisionId, Vec<String>)>,
    /// Whether the run has written anything.
    is_begun: bool,
    broken: Option<StoreError>,
    /// Whether the last write may have been durable although the store did not say so.
    is_unsure: bool,
}

/// What was written with something else, to be noted once it is durable.
#[derive(Debug)]
pub(in crate::engine) struct Flushed {
    taken: Taken,
    logged: usize,
}

impl RunJournal {
    /// The journal of a run that starts, or of one that continues and knows what it recorded.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open(
        shared: Arc<Shared>,
        tenant: TenantId,
        claim: Claim,
        chain: Arc<Chain>,
        log: Arc<RunLog>,
        cancel: CancellationToken,
        is_continued: bool,
    ) -> Result<Self, StoreError> {
        let mut recorded = HashMap::new();
        let mut state = State::default();
        let mut logged_before = 0;
        if is_continued {
            let mut tx = shared.db.read().await?;
            let steps = junction_runs::of_run(&mut tx, tenant, claim.run).await?;
            let ended = steps.iter().filter(|step| step.state != JunctionRunState::InProgress);
            state.steps = Steps::from(ended.map(|step| step.position + 1).max().unwrap_or(0));
            recorded = recorded_by(&mut tx, tenant, claim, &mut state).await?;
            logged_before = logs::count(&mut tx, claim.run).await?;
        }
        let (stalls, state) = (Stalls::default(), Mutex::new(state));
        Ok(Self {
            shared,
            claim,
            chain,
            log,
            cancel,
            recorded,
            replay: Replay::default(),
            is_abandoned: false,
            is_noted: false,
            logged_before,
            stalls,
            state,
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// The same, of a run that is given answers of earlier ones, and whose row may say already that its decisions are
    /// recorded.
    #[must_use]
    pub fn replaying(self, loaded: Loaded, is_noted: bool) -> Self {
        Self { replay: loaded.replay, is_abandoned: loaded.is_abandoned, is_noted, ..self }
    }

    /// What of the run's output is told to whoever watches.
    pub fn shown(&self, output: &str) -> Shown {
        self.chain.types().shown(&self.chain.train().output, output)
    }

    /// Why the store did not take an event, if that is why the run failed: then the failure is not the run's.
    pub fn broken(&self) -> Option<StoreError> {
        self.state().broken.take()
    }

    /// Writes what waits for the next write. Called with whatever ends the run here, before the run is no longer its
    /// claim's.
    ///
    /// # Errors
    /// When the store does not take it.
    pub(in crate::engine) async fn flush(&self, tx: &mut Tx<'_>) -> Result<Flushed, StoreError> {
        self.begin(tx).await?;
        let (taken, is_unsure, logged) = {
            let state = self.state();
            (state.steps.take(), state.is_unsure, state.logged)
        };
        junction_runs::write(tx, self.claim, &taken.rows).await?;
        for (decision, routes) in &taken.routes {
            decisions::set_routes(tx, self.claim, *decision, routes).await?;
        }
        // Lines have no key by which one that is there already would be found; only this run writes to its log.
        let logged = if is_unsure {
            let there = logs::count(tx, self.claim.run).await? - self.logged_before;
            usize::try_from(there).unwrap_or(0)
        } else {
            logged
        };
        let lines = self.log.lines();
        let new: Vec<NewLine<'_>> = lines
            .iter()
            .skip(logged)
            .map(|line| NewLine {
                level: level(line.level),
                category: &line.node,
                message: &line.message,
            })
            .collect();
        if !new.is_empty() {
            logs::append(tx, self.claim.run, &new).await?;
        }
        Ok(Flushed { taken, logged: lines.len() })
    }

    /// The steps that [`Self::flush`] would write, if it would write nothing else.
    pub(in crate::engine) fn only_steps(&self) -> Option<Vec<StepRow>> {
        let state = self.state();
        let has_begun = state.is_begun
            || (!self.is_abandoned && (self.is_noted || !self.shared.config.records_decisions));
        if !has_begun || state.is_unsure || self.log.lines().len() > state.logged {
            return None;
        }
        let taken = state.steps.take();
        taken.routes.is_empty().then_some(taken.rows)
    }

    /// Notes that what [`Self::flush`] wrote is durable.
    fn flushed(&self, flushed: &Flushed) {
        let mut state = self.state();
        state.steps.written(&flushed.taken);
        state.logged = flushed.logged;
        state.is_begun = true;
        state.is_unsure = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes on the run itself, if nothing has been written of it yet, that its decisions are recorded, and whether it
    /// asks although it should have replayed.
    ///
    /// # Errors
    /// When the store does not take it.
    async fn begin(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        if self.state().is_begun {
            return Ok(());
        }
        if self.is_abandoned {
            runs::abandon_replay(tx, self.claim).await?;
        }
        if self.shared.config.records_decisions && !self.is_noted {
            runs::set_decisions_recorded(tx, self.claim).await?;
        }
        Ok(())
    }

    async fn keep(&self, event: Option<&Event>) -> Result<(), StoreError> {
        // Branches of a run record beside each other.
        let _writing = self.writing.lock().await;
        let mut tx = self.shared.db.begin().await?;
        let flushed = self.flush(&mut tx).await?;
        let written = self.write(&mut tx, event, &flushed.taken).await?;
        tx.commit().await?;
        self.flushed(&flushed);
        self.note(event, written);
        Ok(())
    }

    fn note(&self, event: Option<&Event>, written: Written) {
        if let (Written::Decided(id, answer), Some(Event::Decided(decided))) = (written, event) {
            let question = decided.question.key.clone();
            if let Some(id) = id.filter(|_| !decided.is_inside_junction) {
                let of = (decided.branch.clone(), question.clone());
                self.state().decided.insert(of, (id, Vec::new()));
            }
            let decider = decided.decider.clone();
            let run = self.claim.run;
            self.shared.events.publish(EngineEvent::Decided { run, question, answer, decider });
        }
    }

    /// Writes an event, or what waits for one, for as long as the store may come back and the claim may be held: what
    /// the run did is not done again because a database was away.
    async fn insist(&self, event: Option<&Event>) -> Result<(), StoreError> {
        let mut pauses = Pauses::new();
        let mut stall = None;
        loop {
            let error = match self.keep(event).await {
                Err(error) if error.is_transient() => error,
                other => return other,
            };
            let error = causes(&error);
            tracing::warn!(run = %self.claim.run, error, "a run waits for the store");
            // The answer of a commit may be what was lost.
            self.state().is_unsure = true;
            stall.get_or_insert_with(|| self.stalls.begin());
            Clock.sleep(pauses.longer()).await;
        }
    }
}

impl Journal for RunJournal {
    fn record(&self, event: Event) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.note_step(&event);
            let is_shown_at_once = self.shared.config.step_delay.is_zero();
            let event = match event {
                Event::JunctionEnded { .. } => return Ok(()),
                Event::JunctionStarted { .. } | Event::Routed { .. } if !is_shown_at_once => {
                    return Ok(());
                }
                Event::JunctionStarted { .. } | Event::Routed { .. } => None,
                Event::Decided(_) | Event::Shadowed(_) | Event::Checkpoint { .. } => Some(event),
            };
            self.insist(event.as_ref()).await.map_err(|error| {
                if matches!(error, StoreError::LostClaim(_)) {
                    // Whatever the run still does here is for nothing.
                    self.cancel.cancel();
                }
                let what = causes(&error);
                let failure = if error.is_refusal_of_value() {
                    Failure::permanent("NotRecorded", what)
                } else {
                    Failure::transient("NotRecorded", what)
                };
                self.state().broken = Some(error);
                failure
            })
        })
    }

    fn recall(&self, asking: Asking<'_>) -> Option<Recalled> {
        self.recorded.get(&asking.key()).cloned()
    }

    fn earlier(&self, asking: Asking<'_>) -> Option<&Earlier> {
        self.replay.find(&asking.key())
    }

    fn stalled(&self) -> Duration {
        self.stalls.total()
    }

    fn overdue(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let delay = self.shared.config.step_delay;
            if delay.is_zero() {
                return std::future::pending().await;
            }
            Clock.sleep(delay).await;
            // Should this be dropped while the store commits, nobody knows whether it has.
            self.state().is_unsure = true;
            if let Err(error) = self.insist(None).await {
                if matches!(error, StoreError::LostClaim(_)) {
                    self.cancel.cancel();
                }
                self.state().broken = Some(error);
            }
        })
    }
}

/// How long a run has waited for its store.
#[derive(Default)]
struct Stalls(Mutex<Stalled>);

#[derive(Default)]
struct Stalled {
    before: Duration,
    since: Option<Instant>,
    /// How many wait: branches may wait at once, which counts once.
    waiting: usize,
}

/// A wait that goes on until this is dropped.
struct Stall<'a>(&'a Stalls);

impl Stalls {
    fn begin(&self) -> Stall<'_> {
        let mut stalled = self.lock();
        stalled.since.get_or_insert_with(|| Clock.instant());
        stalled.waiting += 1;
        drop(stalled);
        Stall(self)
    }

    fn total(&self) -> Duration {
        self.lock().total()
    }

    fn lock(&self) -> MutexGuard<'_, Stalled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stalled {
    fn total(&self) -> Duration {
        let now = self.since.map(|since| Clock.instant().duration_since(since));
        self.before + now.unwrap_or_default()
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        let mut stalled = self.0.lock();
        stalled.waiting = stalled.waiting.saturating_sub(1);
        if stalled.waiting == 0 {
            *stalled = Stalled { before: stalled.total(), ..Stalled::default() };
        }
    }
}

/// The decisions that a run recorded before it stopped.
async fn recorded_by(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    claim: Claim,
    state: &mut State,
) -> Result<HashMap<Key, Recalled>, StoreError> {
    let mut recorded = HashMap::new();
    let mut after = DecisionId(0);
    loop {
        let page = decisions::of_run(tx, tenant, claim.run, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(recorded) };
        after = last.id;
        for row in page {
            let usable = row.answer.as_deref().filter(|_| row.refused.is_none());
            let kind = usable.and_then(|json| read_answer(&row.kind, json));
            let key = row.question_key.clone();
            let answer = kind.map(|kind| Answer { key, kind, model: row.model });
            if row.asked_by.is_empty() {
                let of = (row.branch_path.clone(), row.question_key.clone());
                state.decided.insert(of, (row.id, routes(row.routes.as_deref())));
            }
            let occurrence = u32::try_from(row.occurrence).unwrap_or(0);
            let key = (row.branch_path, row.question_key, row.asked_by, occurrence);
            let recalled =
                Recalled { fingerprint: row.fingerprint, state_hash: row.state_hash, answer };
            recorded.insert(key, recalled);
        }
    }
}

/// The tracks that a stored list has, each as JSON.
fn routes(list: Option<&str>) -> Vec<String> {
    let list: Option<Vec<serde_json::Value>> =
        list.and_then(|list| serde_json::from_str(list).ok());
    list.unwrap_or_default().iter().map(ToString::to_string).collect()
}

const fn level(level: run_log::LogLevel) -> LogLevel {
    match level {
        run_log::LogLevel::Trace => LogLevel::Trace,
        run_log::LogLevel::Debug => LogLevel::Debug,
        run_log::LogLevel::Info => LogLevel::Information,
        run_log::LogLevel::Warn => LogLevel::Warning,
        run_log::LogLevel::Error => LogLevel::Error,
    }
}
