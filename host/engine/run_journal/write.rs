//! What each event writes, in a transaction that the journal commits. Writing the same event again changes nothing.

use crate::chain::decision::stored_answer;
use crate::chain::next::Routed;
use crate::engine::journal::{Decided, Event};
use crate::engine::run_journal::RunJournal;
use crate::model::ids::DecisionId;
use crate::model::value::Value;
use crate::store::checkpoints::{self, NewCheckpoint};
use crate::store::decisions::{self, NewDecision};
use crate::store::junction_runs::{self, NewStep, StepEnd};
use crate::store::{JunctionRunKind, JunctionRunState, StoreError, Tx, runs};

/// What an event has written, to be noted once it is durable.
pub(super) enum Written {
    /// A step is in progress at this position.
    Opened(i32),
    /// A decision, and its answer as it is shown.
    Decided(Option<DecisionId>, String),
    /// The tracks taken since the decision about a question in a branch.
    Routed((String, String), Vec<String>),
    /// Nothing that comes later depends on.
    Other,
}

impl RunJournal {
    /// Writes an event; a step that begins is at this position.
    pub(super) async fn write(
        &self,
        tx: &mut Tx<'_>,
        event: &Event,
        position: i32,
    ) -> Result<Written, StoreError> {
        // What starts a junction notes by itself that decisions are recorded: most runs begin so.
        let is_junction = matches!(event, Event::JunctionStarted { .. });
        if !is_junction || self.is_abandoned {
            self.begin(tx).await?;
        }
        match event {
            Event::JunctionStarted { node, junction } => {
                let is_recorded = self.shared.config.records_decisions;
                if runs::at_junction(tx, self.claim, junction, is_recorded).await? {
                    self.cancel.cancel();
                }
                let step = self.step(position, JunctionRunKind::Junction, junction, node);
                junction_runs::begin(tx, self.claim, &step).await?;
                Ok(Written::Opened(position))
            }
            Event::Decided(decided) => self.decided(tx, decided).await,
            Event::Routed { node, question_key, track, fallback_reason } => {
                let taken = serde_json::json!({
                    "track": track, "fallback_reason": fallback_reason,
                });
                let step = NewStep {
                    question_key: Some(question_key),
                    ..self.step(position, JunctionRunKind::Route, track, node)
                };
                self.routed(tx, question_key, taken.to_string(), &step).await
            }
            Event::Checkpoint { node, state, tracks } => {
                self.checkpoint(tx, node, state, tracks).await?;
                Ok(Written::Other)
            }
            Event::JunctionEnded { .. } => Ok(Written::Other),
        }
    }

    async fn decided(&self, tx: &mut Tx<'_>, decided: &Decided) -> Result<Written, StoreError> {
        let question = &decided.question;
        let answer = decided.answer.as_ref();
        let stored =
            answer.map(|answer| stored_answer(&answer.kind, decided.replay_refused.as_deref()));
        let shown = match (&decided.refused, answer) {
            (Some(refused), _) => refused.clone(),
            (None, _) if question.sensitive => "(withheld)".to_owned(),
            (None, answer) => {
                answer.map(|answer| stored_answer(&answer.kind, None)).unwrap_or_default()
            }
        };
        if !self.shared.config.records_decisions {
            return Ok(Written::Decided(None, shown));
        }
        let asked = serde_json::json!({
            "instructions": question.instructions, "criteria": question.kind,
        });
        let new = NewDecision {
            branch_path: &decided.branch,
            question_key: &question.key,
            occurrence: i32::try_from(decided.occurrence).unwrap_or(i32::MAX),
            asked_by: if decided.is_inside_junction { &decided.node } else { "" },
            fingerprint: &decided.fingerprint,
            kind: question.kind.as_str(),
            question: &asked.to_string(),
            answer: stored.as_deref(),
            refused: decided.refused.as_deref(),
            model: answer.and_then(|answer| answer.model.as_deref()),
            decider: decided.decider.as_deref(),
            is_replayed: decided.decider.is_none(),
            shadows: None,
            state_hash: decided.state_hash.as_deref(),
        };
        let id = decisions::record(tx, self.claim, &new).await?;
        Ok(Written::Decided(Some(id), shown))
    }

    async fn routed(
        &self,
        tx: &mut Tx<'_>,
        key: &str,
        taken: String,
        step: &NewStep<'_>,
    ) -> Result<Written, StoreError> {
        let mut written = Written::Other;
        if let Some((of, decision, mut routes)) = self.routed_by(step.branch_path, key) {
            routes.push(taken);
            let list = format!("[{}]", routes.join(","));
            decisions::set_routes(tx, self.claim, decision, &list).await?;
            written = Written::Routed(of, routes);
        }
        junction_runs::begin(tx, self.claim, step).await?;
        let end = StepEnd {
            state: JunctionRunState::Completed,
            failure: None,
            answer: None,
            confidence: None,
            is_replayed: false,
        };
        junction_runs::end(tx, self.claim.run, step.position, &end).await?;
        Ok(written)
    }

    /// The decision by which a track is taken, with its tracks so far: the latest one in the branch, or else the latest
    /// before the fork.
    fn routed_by(
        &self,
        branch: Option<&str>,
        key: &str,
    ) -> Option<((String, String), DecisionId, Vec<String>)> {
        let state = self.state();
        let mut branch = branch.unwrap_or_default();
        loop {
            let of = (branch.to_owned(), key.to_owned());
            if let Some((decision, routes)) = state.decided.get(&of) {
                return Some((of, *decision, routes.clone()));
            }
            if branch.is_empty() {
                return None;
            }
            // A branch is named after the branch that forks it and the parallel block.
            branch = branch.rsplit_once('/').map_or("", |(outer, _)| outer);
        }
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
