//! The steps of a run that are not written yet. They are for people only: they wait for the next write that something
//! depends on, and a step that takes long is shown after a while.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::clock::Clock;
use crate::model::failure::FailureClass;
use crate::model::ids::DecisionId;
use crate::store::junction_runs::StepRow;
use crate::store::{JunctionRunKind, JunctionRunState};

/// A step.
#[derive(Debug, Clone)]
struct Step {
    kind: JunctionRunKind,
    name: String,
    node: String,
    branch: Option<String>,
    question: Option<String>,
    started: Instant,
    end: Option<End>,
    is_shown: bool,
}

#[derive(Debug, Clone)]
struct End {
    at: Instant,
    failure: Option<(FailureClass, String)>,
}

/// What is not written yet, by position.
#[derive(Default)]
pub(super) struct Steps {
    next: i32,
    unwritten: BTreeMap<i32, Step>,
    /// By node, the step that is in progress.
    open: BTreeMap<String, i32>,
    /// By decision, the tracks taken since as a JSON list.
    routes: BTreeMap<DecisionId, String>,
}

/// A step that begins, or a track that is taken.
pub(super) struct Begun<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a str,
    pub(super) branch: Option<&'a str>,
}

/// What a write takes in, to be noted once it is durable.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) rows: Vec<StepRow>,
    pub(super) routes: Vec<(DecisionId, String)>,
    /// The junction that runs now, if that was not shown.
    pub(super) junction: Option<String>,
}

impl Steps {
    /// No step yet; positions go on from this one.
    pub(super) fn from(next: i32) -> Self {
        Self { next, ..Self::default() }
    }

    /// A junction begins.
    pub(super) fn begin(&mut self, begun: &Begun<'_>) {
        let position = self.add(JunctionRunKind::Junction, begun, None);
        self.open.insert(begun.node.to_owned(), position);
    }

    /// A junction has ended.
    pub(super) fn end(&mut self, node: &str, failure: Option<(FailureClass, String)>) {
        let open = self.open.remove(node).and_then(|position| self.unwritten.get_mut(&position));
        if let Some(step) = open {
            step.end = Some(End { at: Clock.instant(), failure });
        }
    }

    /// A track is taken; with the decision by which it is, and all that were taken by it.
    pub(super) fn route(
        &mut self,
        begun: &Begun<'_>,
        question: &str,
        taken: Option<(DecisionId, String)>,
    ) {
        let position = self.add(JunctionRunKind::Route, begun, Some(question));
        if let Some(step) = self.unwritten.get_mut(&position) {
            step.end = Some(End { at: step.started, failure: None });
        }
        self.routes.extend(taken);
    }

    fn add(&mut self, kind: JunctionRunKind, begun: &Begun<'_>, question: Option<&str>) -> i32 {
        let position = self.next;
        self.next += 1;
        let step = Step {
            kind,
            name: begun.name.to_owned(),
            node: begun.node.to_owned(),
            branch: begun.branch.map(str::to_owned),
            question: question.map(str::to_owned),
            started: Clock.instant(),
            end: None,
            is_shown: false,
        };
        self.unwritten.insert(position, step);
        position
    }

    /// Everything that a write can take in now.
    pub(super) fn take(&self) -> Taken {
        let now = Clock.instant();
        let is_new = |step: &Step| step.end.is_some() || !step.is_shown;
        let unwritten = self.unwritten.iter().filter(|(_, step)| is_new(step));
        let row = |(position, step): (&i32, &Step)| StepRow {
            position: *position,
            kind: step.kind,
            name: step.name.clone(),
            node_id: Some(step.node.clone()),
            branch_path: step.branch.clone(),
            question_key: step.question.clone(),
            state: match &step.end {
                None => JunctionRunState::InProgress,
                Some(End { failure: None, .. }) => JunctionRunState::Completed,
                Some(End { failure: Some(_), .. }) => JunctionRunState::Failed,
            },
            started_before: now.duration_since(step.started),
            ended_before: step.end.as_ref().map(|end| now.duration_since(end.at)),
            failure: step.end.as_ref().and_then(|end| end.failure.clone()),
        };
        // Of several branches', the one that began last.
        let latest = self.open.values().max().and_then(|position| self.unwritten.get(position));
        Taken {
            rows: unwritten.map(row).collect(),
            routes: self.routes.iter().map(|(id, routes)| (*id, routes.clone())).collect(),
            junction: latest.filter(|step| !step.is_shown).map(|step| step.name.clone()),
        }
    }

    /// What was taken in is durable. What came since waits for the next write.
    pub(super) fn written(&mut self, taken: &Taken) {
        for row in &taken.rows {
            if row.ended_before.is_some() {
                self.unwritten.remove(&row.position);
            } else if let Some(step) = self.unwritten.get_mut(&row.position) {
                step.is_shown = true;
            }
        }
        for (id, routes) in &taken.routes {
            if self.routes.get(id) == Some(routes) {
                self.routes.remove(id);
            }
        }
    }
}
