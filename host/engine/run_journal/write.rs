//! What each event writes, in a transaction that the journal commits. Writing the same event again changes nothing.

use std::collections::BTreeMap;

use crate::chain::decision::stored_answer;
use crate::chain::next::Routed;
use crate::chain::resume::tracks;
use crate::engine::journal::{Decided, Event, Shadowed};
use crate::engine::run_journal::RunJournal;
use crate::engine::run_journal::steps::{Begun, Taken};
use crate::engine::shadows::ShadowAnswer;
use crate::model::ids::DecisionId;
use crate::model::value::Value;
use crate::store::checkpoints::{self, NewCheckpoint};
use crate::store::decisions::{self, NewDecision};
use crate::store::{StoreError, Tx, runs};

/// What an event has written, to be noted once it is durable.
pub(super) enum Written {
    /// A decision, and its answer as it is shown.
    Decided(Option<DecisionId>, String),
    /// Nothing that comes later depends on.
    Other,
}

impl RunJournal {
    /// Writes an event beside the steps that were taken in with it.
    pub(super) async fn write(
        &self,
        tx: &mut Tx<'_>,
        event: Option<&Event>,
        taken: &Taken,
    ) -> Result<Written, StoreError> {
        if let Some(junction) = &taken.junction
            && runs::at_junction(tx, self.claim, junction).await?
        {
            self.cancel.cancel();
        }
        match event {
            Some(Event::Decided(decided)) => self.decided(tx, decided).await,
            Some(Event::Shadowed(shadowed)) => {
                self.shadowed(tx, shadowed).await?;
                Ok(Written::Other)
            }
            Some(Event::Checkpoint { node, state, tracks }) => {
                self.checkpoint(tx, node, state, tracks).await?;
                Ok(Written::Other)
            }
            _ => Ok(Written::Other),
        }
    }

    /// Notes a step that begins or ends, or a track. What is noted is written with what comes next.
    pub(super) fn note_step(&self, event: &Event) {
        match event {
            Event::JunctionStarted { node, junction } => {
                let begun = Begun { name: junction, node, branch: self.branch(node) };
                self.state().steps.begin(&begun);
            }
            Event::JunctionEnded { node, failure, .. } => {
                let failure = failure.as_ref().map(|it| (it.class, it.name.clone()));
                self.state().steps.end(node, failure);
            }
            Event::Routed { node, question_key, track, fallback_reason } => {
                let taken = serde_json::json!({
                    "track": track, "fallback_reason": fallback_reason,
                });
                let begun = Begun { name: track, node, branch: self.branch(node) };
                self.note_track(&begun, question_key, taken.to_string());
            }
            Event::Decided(_) | Event::Shadowed(_) | Event::Checkpoint { .. } => {}
        }
    }

    fn note_track(&self, begun: &Begun<'_>, key: &str, taken: String) {
        let mut state = self.state();
        let routes = routed_by(&mut state.decided, begun.branch, key).map(|(decision, routes)| {
            routes.push(taken);
            (*decision, format!("[{}]", routes.join(",")))
        });
        state.steps.route(begun, key, routes);
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
            state_hash: decided.state_hash.as_deref(),
        };
        let id = decisions::record(tx, self.claim, &new).await?;
        Ok(Written::Decided(Some(id), shown))
    }

    async fn shadowed(&self, tx: &mut Tx<'_>, shadowed: &Shadowed) -> Result<(), StoreError> {
        if !self.shared.config.records_decisions {
            return Ok(());
        }
        let asking = decisions::Asking {
            branch_path: &shadowed.branch,
            question_key: &shadowed.key,
            occurrence: i32::try_from(shadowed.occurrence).unwrap_or(i32::MAX),
            asked_by: if shadowed.is_inside_junction { &shadowed.node } else { "" },
        };
        let answers: Vec<_> = shadowed.answers.iter().map(ShadowAnswer::to_json).collect();
        let answers = serde_json::Value::from(answers).to_string();
        decisions::set_shadows(tx, self.claim, &asking, &answers).await
    }

    async fn checkpoint(
        &self,
        tx: &mut Tx<'_>,
        node: &str,
        state: &Value,
        tracks: &[Routed],
    ) -> Result<(), StoreError> {
        let shape = self.chain.types().shape_fingerprint(&state.type_name);
        let new = NewCheckpoint {
            node_id: node,
            branch_path: self.branch(node),
            state_type: &state.type_name,
            state: &state.json,
            tracks: &tracks::to_json(&self.chain, tracks),
            chain_hash: self.chain.hash(),
            state_fingerprint: shape.as_deref().unwrap_or_default(),
        };
        checkpoints::record(tx, self.claim, &new).await
    }

    fn branch(&self, id: &str) -> Option<&str> {
        self.chain.nodes().iter().find(|node| node.id == id)?.branch.as_deref()
    }
}

/// The decision by which a track is taken, with its tracks so far: the latest one in the branch, or else the latest
/// before the fork.
fn routed_by<'a>(
    decided: &'a mut BTreeMap<(String, String), (DecisionId, Vec<String>)>,
    branch: Option<&str>,
    key: &str,
) -> Option<&'a mut (DecisionId, Vec<String>)> {
    let mut branch = branch.unwrap_or_default();
    loop {
        let of = (branch.to_owned(), key.to_owned());
        if decided.contains_key(&of) {
            return decided.get_mut(&of);
        }
        if branch.is_empty() {
            return None;
        }
        // A branch is named after the branch that forks it and the parallel block.
        branch = branch.rsplit_once('/').map_or("", |(outer, _)| outer);
    }
}
