//! The journal of a run in the store: what happens is durable when [`Journal::record`] returns.
//!
//! What is only for people, how a step ended and what a guest logged, waits for the next write: it must not cost a
//! commit of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::chain::Chain;
use crate::chain::decision::{decision_answer, decision_value};
use crate::chain::next::Routed;
use crate::engine::config::Shared;
use crate::engine::events::EngineEvent;
use crate::engine::journal::{Asking, Decided, Event, Journal, Recalled};
use crate::guest::context::BoxFuture;
use crate::guest::run_log::{self, RunLog};
use crate::model::answer::Answer;
use crate::model::failure::{Failure, FailureClass};
use crate::model::ids::{Claim, DecisionId, TenantId};
use crate::model::value::Shown;
use crate::model::value::Value;
use crate::store::checkpoints::{self, NewCheckpoint};
use crate::store::decisions::{self, NewDecision};
use crate::store::junction_runs::{self, NewStep, StepEnd};
use crate::store::logs::{self, NewLine};
use crate::store::{JunctionRunKind, JunctionRunState, LogLevel, StoreError, Tx, runs};

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
    state: Mutex<State>,
}

/// Branch, question, asking node, occurrence.
type Key = (String, String, String, u32);

#[derive(Default)]
struct State {
    next_position: i32,
    open: Option<i32>,
    ended: Vec<Ended>,
    logged: usize,
    /// By question, the decision that a track would be taken by, with its tracks so far.
    decided: BTreeMap<String, (DecisionId, Vec<String>)>,
    broken: Option<StoreError>,
}

/// A step that ended, to be written with what comes next.
#[derive(Clone)]
struct Ended {
    position: i32,
    failure: Option<(FailureClass, String)>,
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
        if is_continued {
            let mut tx = shared.db.read().await?;
            let steps = junction_runs::of_run(&mut tx, tenant, claim.run).await?;
            let ended = steps.iter().filter(|step| step.state != JunctionRunState::InProgress);
            state.next_position = ended.map(|step| step.position + 1).max().unwrap_or(0);
            recorded = recorded_by(&mut tx, tenant, claim, &chain, &mut state).await?;
        }
        let state = Mutex::new(state);
        Ok(Self { shared, claim, chain, log, cancel, recorded, state })
    }

    /// What of the run's output is told to whoever watches.
    pub fn shown(&self, output: &str) -> Shown {
        self.chain.types().shown(&self.chain.train().output, output)
    }

    /// Why the store did not take an event, if that is why the run failed: then the failure is not the run's.
    pub fn broken(&self) -> Option<StoreError> {
        self.state().broken.take()
    }

    /// Writes what waits for the next write. Called with whatever ends the run here.
    ///
    /// # Errors
    /// When the store does not take it.
    pub async fn flush(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let (ended, skip) = {
            let state = self.state();
            (state.ended.clone(), state.logged)
        };
        for step in &ended {
            let failure = step.failure.as_ref();
            let end = StepEnd {
                state: match failure {
                    Some(_) => JunctionRunState::Failed,
                    None => JunctionRunState::Completed,
                },
                failure: failure.map(|(class, name)| (*class, name.as_str())),
                answer: None,
                confidence: None,
                is_replayed: false,
            };
            junction_runs::end(tx, self.claim.run, step.position, &end).await?;
        }
        let lines = self.log.lines();
        let lines: Vec<NewLine<'_>> = lines
            .iter()
            .skip(skip)
            .map(|line| NewLine {
                level: level(line.level),
                category: &line.node,
                message: &line.message,
            })
            .collect();
        if !lines.is_empty() {
            logs::append(tx, self.claim.run, &lines).await?;
        }
        Ok(())
    }

    /// Notes that what [`Self::flush`] wrote is durable.
    fn flushed(&self, ended: usize, logged: usize) {
        let mut state = self.state();
        state.ended.drain(..ended);
        state.logged = logged;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_position(&self) -> i32 {
        let mut state = self.state();
        state.next_position += 1;
        state.next_position - 1
    }

    async fn keep(&self, event: Event) -> Result<(), StoreError> {
        if let Event::JunctionEnded { failure, .. } = event {
            let mut state = self.state();
            if let Some(position) = state.open.take() {
                let failure = failure.map(|failure| (failure.class, failure.name));
                state.ended.push(Ended { position, failure });
            }
            return Ok(());
        }
        let (ended, logged) = (self.state().ended.len(), self.log.lines().len());
        let mut tx = self.shared.db.begin().await?;
        self.flush(&mut tx).await?;
        match event {
            Event::JunctionStarted { node, junction } => {
                self.junction(&mut tx, &node, &junction).await?;
            }
            Event::Decided(decided) => self.decided(&mut tx, &decided).await?,
            Event::Routed { node, question_key, track, fallback_reason } => {
                self.routed(&mut tx, &node, &question_key, &track, fallback_reason).await?;
            }
            Event::Checkpoint { node, state, tracks } => {
                self.checkpoint(&mut tx, &node, &state, &tracks).await?;
            }
            Event::JunctionEnded { .. } => {}
        }
        tx.commit().await?;
        self.flushed(ended, logged);
        Ok(())
    }

    async fn junction(
        &self,
        tx: &mut Tx<'_>,
        node: &str,
        junction: &str,
    ) -> Result<(), StoreError> {
        if runs::at_junction(tx, self.claim, junction).await? {
            self.cancel.cancel();
        }
        let position = self.take_position();
        let step = self.step(position, JunctionRunKind::Junction, junction, node);
        junction_runs::begin(tx, self.claim, &step).await?;
        self.state().open = Some(position);
        Ok(())
    }

    async fn decided(&self, tx: &mut Tx<'_>, decided: &Decided) -> Result<(), StoreError> {
        let question = &decided.question;
        let answer = decided.answer.as_ref().map(|answer| {
            let value = decision_value(question, &answer.kind);
            value.map_or_else(|| format!("{:?}", answer.kind), |value| value.json.to_string())
        });
        let occurrence = i32::try_from(decided.occurrence).unwrap_or(i32::MAX);
        let asked = serde_json::json!({
            "instructions": question.instructions, "criteria": question.kind,
        });
        let new = NewDecision {
            branch_path: &decided.branch,
            question_key: &question.key,
            occurrence,
            asked_by: if decided.is_inside_junction { &decided.node } else { "" },
            fingerprint: &decided.fingerprint,
            kind: question.kind.as_str(),
            question: &asked.to_string(),
            answer: answer.as_deref(),
            refused: decided.refused.as_deref(),
            model: decided.answer.as_ref().and_then(|answer| answer.model.as_deref()),
            decider: Some(&decided.decider),
            is_replayed: false,
            shadows: None,
            state_hash: decided.state_hash.as_deref(),
        };
        let id = decisions::record(tx, self.claim, &new).await?;
        if !decided.is_inside_junction {
            self.state().decided.insert(question.key.clone(), (id, Vec::new()));
        }
        let shown = match (&decided.refused, answer) {
            (Some(refused), _) => refused.clone(),
            (None, _) if question.sensitive => "(withheld)".to_owned(),
            (None, answer) => answer.unwrap_or_default(),
        };
        self.shared.events.publish(EngineEvent::Decided {
            run: self.claim.run,
            question: question.key.clone(),
            answer: shown,
            decider: decided.decider.clone(),
        });
        Ok(())
    }

    async fn routed(
        &self,
        tx: &mut Tx<'_>,
        node: &str,
        key: &str,
        track: &str,
        fallback_reason: Option<String>,
    ) -> Result<(), StoreError> {
        let taken = serde_json::json!({
            "step": node, "track": track, "fallbackReason": fallback_reason,
        });
        let routes = {
            let mut state = self.state();
            state.decided.get_mut(key).map(|(decision, routes)| {
                routes.push(taken.to_string());
                (*decision, format!("[{}]", routes.join(",")))
            })
        };
        if let Some((decision, routes)) = routes {
            decisions::set_routes(tx, self.claim, decision, &routes).await?;
        }
        let position = self.take_position();
        let step = NewStep {
            question_key: Some(key),
            ..self.step(position, JunctionRunKind::Route, track, node)
        };
        junction_runs::begin(tx, self.claim, &step).await?;
        let end = StepEnd {
            state: JunctionRunState::Completed,
            failure: None,
            answer: None,
            confidence: None,
            is_replayed: false,
        };
        junction_runs::end(tx, self.claim.run, position, &end).await
    }

    async fn checkpoint(
        &self,
        tx: &mut Tx<'_>,
        node: &str,
        state: &Value,
        tracks: &[Routed],
    ) -> Result<(), StoreError> {
        let tracks: Vec<_> = tracks
            .iter()
            .map(|routed| {
                serde_json::json!({
                    "step": self.chain.node(routed.node).id, "question": routed.question_key,
                    "track": routed.track, "fallbackReason": routed.fallback_reason,
                })
            })
            .collect();
        let shape = self.chain.types().shape_fingerprint(&state.type_name);
        let new = NewCheckpoint {
            node_id: node,
            branch_path: self.branch(node),
            state_type: &state.type_name,
            state: &state.json,
            tracks: &serde_json::Value::Array(tracks).to_string(),
            chain_hash: self.chain.hash(),
            state_fingerprint: shape.as_deref().unwrap_or_default(),
        };
        checkpoints::record(tx, self.claim, &new).await
    }

    fn step<'a>(
        &'a self,
        position: i32,
        kind: JunctionRunKind,
        name: &'a str,
        node: &'a str,
    ) -> NewStep<'a> {
        let branch_path = self.branch(node);
        NewStep { position, kind, name, node_id: Some(node), branch_path, question_key: None }
    }

    fn branch(&self, id: &str) -> Option<&str> {
        self.chain.nodes().iter().find(|node| node.id == id)?.branch.as_deref()
    }
}

impl Journal for RunJournal {
    fn record(&self, event: Event) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.keep(event).await.map_err(|error| {
                let failure = Failure::transient("StoreUnavailable", error.to_string());
                self.state().broken = Some(error);
                failure
            })
        })
    }

    fn recall(&self, asking: Asking<'_>) -> Option<Recalled> {
        let Asking { branch, key, asked_by, occurrence } = asking;
        let key = (branch.to_owned(), key.to_owned(), asked_by.to_owned(), occurrence);
        self.recorded.get(&key).cloned()
    }
}

/// The decisions that a run recorded before it stopped.
async fn recorded_by(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    claim: Claim,
    chain: &Chain,
    state: &mut State,
) -> Result<HashMap<Key, Recalled>, StoreError> {
    let mut recorded = HashMap::new();
    let mut after = DecisionId(0);
    loop {
        let page = decisions::of_run(tx, tenant, claim.run, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(recorded) };
        after = last.id;
        for row in page {
            let question = chain.question(&row.question_key);
            let usable = row.answer.as_deref().filter(|_| row.refused.is_none());
            let kind = question.zip(usable).and_then(|(question, json)| {
                decision_answer(question, &Value::new(question.decision_type(), json))
            });
            let key = row.question_key.clone();
            let answer = kind.map(|kind| Answer { key, kind, model: row.model });
            if row.asked_by.is_empty() {
                state.decided.insert(row.question_key.clone(), (row.id, Vec::new()));
            }
            let occurrence = u32::try_from(row.occurrence).unwrap_or(0);
            let key = (row.branch_path, row.question_key, row.asked_by, occurrence);
            let recalled =
                Recalled { fingerprint: row.fingerprint, state_hash: row.state_hash, answer };
            recorded.insert(key, recalled);
        }
    }
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
