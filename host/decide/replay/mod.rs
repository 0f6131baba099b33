//! Replays: which answers of earlier runs a run is given in place of its deciders, and which it is not.
//!
//! A run that replays another may have been replayed itself. The runs behind it make a line, the nearest first; for
//! each asking the nearest run's answer counts. Its age is counted from when a decider gave it, however often it was
//! replayed since.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::chain::decision;
use crate::decide::check;
use crate::decide::state_hash::StateHasher;
use crate::model::answer::Answer;
use crate::model::ids::RunId;
use crate::model::question::Question;
use crate::model::timestamp::Timestamp;

/// How many runs back a line goes.
pub const RUNS_MAX: usize = 32;

/// How long an answer is replayed, unless a host is told otherwise.
pub const ANSWERS_FOR: Duration = Duration::from_hours(24);

/// Which asking of a run: branch, question, the node whose junction asked or nothing, and the how many-th.
pub type Key = (String, String, String, u32);

/// A run of a line, as far as the line goes on from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The run.
    pub run: RunId,
    /// Its train.
    pub train: String,
    /// The run whose answers it replays.
    pub replay_decisions_of: Option<RunId>,
    /// Whether it asked its deciders after all.
    pub replay_abandoned: bool,
    /// Whether it recorded its decisions.
    pub decisions_recorded: bool,
}

impl Link {
    /// The run whose answers it replays, unless it asked its deciders after all.
    fn replays(&self) -> Option<RunId> {
        self.replay_decisions_of.filter(|_| !self.replay_abandoned)
    }
}

/// An answer that a run of a line acted on.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The run.
    pub run: RunId,
    /// Which asking of it.
    pub key: Key,
    /// `choice`, `score` or `yes_no`.
    pub kind: String,
    /// As it is stored.
    pub answer: String,
    /// The model that gave it.
    pub model: Option<String>,
    /// Identifies the asking as it was declared.
    pub fingerprint: String,
    /// Identifies the state that it was about.
    pub state_hash: Option<String>,
    /// Whether the run replayed it.
    pub is_replayed: bool,
    /// When it was given or replayed.
    pub decided_at: Timestamp,
}

/// Why a replay cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The line leads back to a run that it passed.
    Circle(RunId),
    /// The line is too long.
    TooLong,
    /// The run that is replayed does not exist, or never did.
    Missing(RunId),
    /// A run further back is gone: that run, and the one that replays it.
    Gone(RunId, RunId),
    /// A run is of another train.
    OtherTrain(RunId, String),
    /// A run recorded nothing and replayed nothing.
    NotRecorded(RunId),
    /// The host that the run is on records no decisions.
    HostRecordsNothing,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Circle(run) => write!(f, "the runs it replays lead back to run {run}"),
            Self::TooLong => write!(f, "the runs it replays go back more than {RUNS_MAX} runs"),
            Self::Missing(run) => write!(f, "no run {run} exists"),
            Self::Gone(run, by) => {
                write!(f, "run {run}, whose decisions run {by} replays, no longer exists")
            }
            Self::OtherTrain(run, name) => {
                write!(f, "run {run} is a run of train '{name}', not of this train")
            }
            Self::NotRecorded(run) => write!(
                f,
                "run {run} ran without recording its decisions, so what it decided cannot be known"
            ),
            Self::HostRecordsNothing => f.write_str("this host does not record decisions"),
        }
    }
}

/// The runs behind a run, the nearest first. `known` are those that exist.
///
/// # Errors
/// [`Broken`] when the line does not end as it should.
pub fn line(run: &Link, known: &BTreeMap<RunId, Link>) -> Result<Vec<RunId>, Broken> {
    let mut passed = BTreeSet::from([run.run]);
    let mut line = Vec::new();
    let mut at = run;
    while let Some(next) = at.replays() {
        if !passed.insert(next) {
            return Err(Broken::Circle(next));
        }
        if line.len() == RUNS_MAX {
            return Err(Broken::TooLong);
        }
        let Some(found) = known.get(&next) else {
            let is_first = line.is_empty();
            return Err(if is_first { Broken::Missing(next) } else { Broken::Gone(next, at.run) });
        };
        if found.train != run.train {
            return Err(Broken::OtherTrain(next, found.train.clone()));
        }
        // One that recorded nothing because it never started leads on to the run that it would have replayed.
        if !found.decisions_recorded && found.replays().is_none() {
            return Err(Broken::NotRecorded(next));
        }
        line.push(next);
        at = found;
    }
    Ok(line)
}

/// An answer of an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// The answer.
    pub answer: Answer,
    fingerprint: String,
    state_hash: Option<String>,
}

/// The answers that a run may replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replay {
    answers: BTreeMap<Key, Earlier>,
    /// Why answers are left out, for the log.
    pub left_out: Vec<String>,
    /// Answers that no trax wrote, and what is wrong with each.
    pub unreadable: Vec<String>,
}

impl Replay {
    /// Takes the answers of a line's runs. `max_age` is how old they may be; `None`: as old as they are.
    pub fn of(
        line: &[RunId],
        recorded: Vec<Recorded>,
        now: Timestamp,
        max_age: Option<Duration>,
    ) -> Self {
        let place: BTreeMap<RunId, usize> = line.iter().copied().zip(0..).collect();
        let mut by_key: BTreeMap<Key, Vec<(usize, Recorded)>> = BTreeMap::new();
        for row in recorded {
            if let Some(place) = place.get(&row.run) {
                by_key.entry(row.key.clone()).or_default().push((*place, row));
            }
        }
        let mut replay = Self::default();
        for (key, mut rows) in by_key {
            rows.sort_by_key(|(place, _)| *place);
            let given = rows.iter().find(|(_, row)| !row.is_replayed);
            let given_at = given.map(|(_, row)| row.decided_at);
            let Some((_, nearest)) = rows.into_iter().next() else { continue };
            let (run, question) = (nearest.run, key.1.clone());
            let Some(given_at) = given_at else {
                replay.left_out.push(format!(
                    "the answer run {run} replayed to '{question}' cannot be dated: the run that was given it is gone"
                ));
                continue;
            };
            if max_age.is_some_and(|max_age| now.since(given_at) >= max_age) {
                replay.left_out.push(format!(
                    "the answer run {run} recorded to '{question}' is too old to be replayed"
                ));
                continue;
            }
            match decision::read_answer(&nearest.kind, &nearest.answer) {
                Some(kind) => {
                    let answer = Answer { key: question, kind, model: nearest.model };
                    let Recorded { fingerprint, state_hash, .. } = nearest;
                    replay.answers.insert(key, Earlier { answer, fingerprint, state_hash });
                }
                None => replay.unreadable.push(format!(
                    "the answer run {run} recorded to '{question}' cannot be read: it is no answer to a {} question",
                    nearest.kind
                )),
            }
        }
        replay
    }

    /// The answer of an earlier run to an asking.
    pub fn find(&self, key: &Key) -> Option<&Earlier> {
        self.answers.get(key)
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

impl Earlier {
    /// Whether the answer is given again to this asking, about the state that has this hash.
    ///
    /// # Errors
    /// Why not, in words that never quote the answer.
    pub fn check(
        &self,
        question: &Question,
        fingerprint: &str,
        hasher: &StateHasher,
        state_hash: Option<&str>,
    ) -> Result<(), String> {
        if self.fingerprint != fingerprint {
            return Err(
                "the earlier answer was given to a question that was asked otherwise".to_owned()
            );
        }
        if let Some(problem) = check::problem(&question.kind, &self.answer.kind) {
            return Err(format!("the earlier answer no longer fits: {problem}"));
        }
        match self.other_state(hasher, state_hash) {
            Some(reason) => Err(format!("the earlier answer {reason}")),
            None => Ok(()),
        }
    }

    fn other_state(&self, hasher: &StateHasher, state_hash: Option<&str>) -> Option<&'static str> {
        if hasher.is_unresolved() {
            return Some("cannot be checked: the state hash key could not be resolved");
        }
        let Some(before) = self.state_hash.as_deref() else {
            return Some("was recorded without a hash of the state");
        };
        let Some(now) = state_hash else {
            return Some("cannot be checked: the state cannot be hashed");
        };
        let is_keyed = |hash: &str| hash.starts_with("k1:");
        match (is_keyed(before), is_keyed(now)) {
            _ if before == now => None,
            (true, false) => Some(
                "was recorded under a state hash key and this run hashes the state without one",
            ),
            (false, true) => Some(
                "was recorded without a state hash key and this run hashes the state under one",
            ),
            (true, true) => {
                Some("was given about a different state, or the state hash key has changed since")
            }
            (false, false) => Some("was given about a different state"),
        }
    }
}

#[cfg(test)]
mod tests;
