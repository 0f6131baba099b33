//! Which run the next one of a manifest takes over from: whose answers it replays, and whose checkpoint it resumes at.
//!
//! It is the manifest's latest finished run, and only while the next run is a retry of it. Every other run asks its
//! deciders afresh and starts at the top; that is never an error.

use std::time::Duration;

use crate::model::ids::{ManifestId, RunId, VersionId};
use crate::model::timestamp::Timestamp;

/// The latest finished run of a manifest, attempts that were never delivered left out, beside what the manifest is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each of which a rule of its own asks for"
)]
pub struct Source {
    /// The manifest.
    pub manifest: ManifestId,
    /// The run.
    pub run: RunId,
    /// Whether it failed.
    pub has_failed: bool,
    /// When it started.
    pub start_time: Timestamp,
    /// How long failures of the manifest count, if it says so.
    pub failure_window_seconds: Option<i32>,
    /// Whether a dead letter of the manifest was resolved since.
    pub is_resolved: bool,
    /// Whether the manifest's retries replay decisions.
    pub replay_decisions_on_retry: bool,
    /// Whether the run is of the train that the manifest runs.
    pub is_of_train: bool,
    /// Whether it recorded its decisions.
    pub decisions_recorded: bool,
    /// The run whose answers it replayed.
    pub replay_decisions_of: Option<RunId>,
    /// Whether it asked its deciders after all.
    pub replay_abandoned: bool,
    /// Whether another run, in whatever state, or a queued entry replays it.
    pub is_replayed: bool,
    /// Whether the manifest depends on another that has succeeded since the run was dispatched.
    pub is_fired_again: bool,
    /// Whether it came out of an entry of the manifest.
    pub has_entry: bool,
    /// Whether that entry had a subject.
    pub has_subject_key: bool,
    /// Whether that entry's input, and its type, are those of the manifest, letter by letter.
    pub has_same_input: bool,
    /// Whether it has an answer that it acted on.
    pub has_acted_on: bool,
    /// Whether it stored a checkpoint.
    pub has_checkpoint: bool,
    /// The run that it resumed.
    pub resume_from: Option<RunId>,
    /// The node that it resumed at.
    pub resume_at: Option<String>,
    /// The state machine whose step started it.
    pub invoking_machine: Option<String>,
    /// The version of the component that it ran.
    pub component_version_id: Option<VersionId>,
}

/// Whose answers the next run replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// Those of this run.
    Of(RunId),
    /// Nobody's: the manifest asks afresh on every retry.
    OptedOut,
    /// Nobody's, for this reason.
    Afresh(&'static str),
    /// Nobody's: there is no failed run to retry, or it acted on no answer.
    Nothing,
}

/// What the next run of a manifest takes over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakeOver {
    /// The run whose answers it replays.
    pub replay_decisions_of: Option<RunId>,
    /// The run that it resumes.
    pub resume_from: Option<RunId>,
    /// Whether it would have replayed answers that are replayed already.
    pub is_spent: bool,
}

/// Whose checkpoint the next run resumes at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// The latest one of this run, as far as its chain lets it.
    From(RunId),
    /// Nobody's, for this reason.
    FromTheTop(&'static str),
    /// Nobody's: there is no failed run to retry, or none of its line stored a checkpoint.
    Nothing,
}

impl Replay {
    /// Whether it is nobody's because another run or a queued entry has them.
    pub fn is_spent(self) -> bool {
        self == Self::Afresh(REPLAYED_ALREADY)
    }
}

const OTHER_TRAIN: &str = "it is not a run of this manifest's train";
const NOT_RECORDED: &str = "it did not record its decisions";
const REPLAYED_ITSELF: &str =
    "it replayed another run's answers and failed, so they are not replayed again";
const REPLAYED_ALREADY: &str = "its answers are already being, or have been, replayed once";
const MACHINE: &str = "a state machine invoked it, and only the machine retries it";
const FIRED_AGAIN: &str =
    "its parent succeeded again since, so this run is a new firing, not a retry";
const NO_ENTRY: &str = "it has no work queue entry of this manifest to compare inputs with";
const SUBJECT: &str = "it was queued under a subject key";
const OTHER_INPUT: &str = "it was given a different input from the one the retry is given";

impl Source {
    /// Whether the manifest's next run is a retry of this one: it failed, and the failure still counts. `window` is how
    /// long failures count where the manifest does not say.
    pub fn is_retried(&self, now: Timestamp, window: Duration) -> bool {
        let own = self.failure_window_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let window_start = now.saturating_sub(own.map_or(window, Duration::from_secs));
        self.has_failed && !self.is_resolved && self.start_time >= window_start
    }

    /// Whose answers the manifest's next run replays. The first condition that does not hold is the reason.
    pub fn replay(&self, now: Timestamp, window: Duration) -> Replay {
        if !self.is_retried(now, window) {
            return Replay::Nothing;
        }
        if !self.replay_decisions_on_retry {
            return Replay::OptedOut;
        }
        let has_own_answers = self.replay_decisions_of.is_none() || self.replay_abandoned;
        let conditions = [
            (self.is_of_train, OTHER_TRAIN),
            (self.decisions_recorded, NOT_RECORDED),
            (has_own_answers, REPLAYED_ITSELF),
            (!self.is_replayed, REPLAYED_ALREADY),
        ];
        match first_missed(&conditions).or_else(|| self.other_entry()) {
            Some(reason) => Replay::Afresh(reason),
            None if self.has_acted_on => Replay::Of(self.run),
            None => Replay::Nothing,
        }
    }

    /// Whose checkpoint the manifest's next run resumes at. The first condition that does not hold is the reason.
    pub fn resume(&self, now: Timestamp, window: Duration) -> Resume {
        if !self.is_retried(now, window) || !(self.has_checkpoint || self.resume_from.is_some()) {
            return Resume::Nothing;
        }
        let is_nobodys = self.invoking_machine.is_none();
        let conditions = [(self.is_of_train, OTHER_TRAIN), (is_nobodys, MACHINE)];
        match first_missed(&conditions).or_else(|| self.other_entry()) {
            Some(reason) => Resume::FromTheTop(reason),
            None => Resume::From(self.run),
        }
    }

    /// Why what queued the run is not what queues the next one, if it is not.
    fn other_entry(&self) -> Option<&'static str> {
        first_missed(&[
            (!self.is_fired_again, FIRED_AGAIN),
            (self.has_entry, NO_ENTRY),
            (!self.has_subject_key, SUBJECT),
            (self.has_same_input, OTHER_INPUT),
        ])
    }
}

fn first_missed(conditions: &[(bool, &'static str)]) -> Option<&'static str> {
    conditions.iter().find(|(holds, _)| !holds).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Break = fn(&mut Source);

    const HOUR: Duration = Duration::from_hours(1);
    const DAY: Duration = Duration::from_hours(24);

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_micros(hours * 3_600 * 1_000_000).unwrap()
    }

    /// A run that failed at 100 hours with an answer and a checkpoint; every condition holds.
    fn source() -> Source {
        Source {
            manifest: ManifestId(1),
            run: RunId(42),
            has_failed: true,
            start_time: at(100),
            failure_window_seconds: None,
            is_resolved: false,
            replay_decisions_on_retry: true,
            is_of_train: true,
            decisions_recorded: true,
            replay_decisions_of: None,
            replay_abandoned: false,
            is_replayed: false,
            is_fired_again: false,
            has_entry: true,
            has_subject_key: false,
            has_same_input: true,
            has_acted_on: true,
            has_checkpoint: true,
            resume_from: None,
            resume_at: None,
            invoking_machine: None,
            component_version_id: None,
        }
    }

    fn replay(change: impl FnOnce(&mut Source)) -> Replay {
        let mut source = source();
        change(&mut source);
        source.replay(at(101), DAY)
    }

    fn resume(change: impl FnOnce(&mut Source)) -> Resume {
        let mut source = source();
        change(&mut source);
        source.resume(at(101), DAY)
    }

    /// D23, R40, R41: each condition has its reason, and the order of the table decides.
    #[test]
    fn the_first_condition_that_does_not_hold_is_the_reason() {
        let breaks: [(Break, Replay); 10] = [
            (|s| s.replay_decisions_on_retry = false, Replay::OptedOut),
            (|s| s.is_of_train = false, Replay::Afresh("it is not a run of this manifest's train")),
            (|s| s.decisions_recorded = false, Replay::Afresh("it did not record its decisions")),
            (
                |s| s.replay_decisions_of = Some(RunId(41)),
                Replay::Afresh(
                    "it replayed another run's answers and failed, so they are not replayed again",
                ),
            ),
            (
                |s| s.is_replayed = true,
                Replay::Afresh("its answers are already being, or have been, replayed once"),
            ),
            (
                |s| s.is_fired_again = true,
                Replay::Afresh(
                    "its parent succeeded again since, so this run is a new firing, not a retry",
                ),
            ),
            (
                |s| s.has_entry = false,
                Replay::Afresh(
                    "it has no work queue entry of this manifest to compare inputs with",
                ),
            ),
            (|s| s.has_subject_key = true, Replay::Afresh("it was queued under a subject key")),
            (
                |s| s.has_same_input = false,
                Replay::Afresh("it was given a different input from the one the retry is given"),
            ),
            (|s| s.has_acted_on = false, Replay::Nothing),
        ];
        assert_eq!(replay(|_| ()), Replay::Of(RunId(42)));
        for (first, (change, expected)) in breaks.iter().enumerate() {
            assert_eq!(replay(*change), *expected);
            let all_after = |source: &mut Source| {
                breaks[first..].iter().for_each(|(change, _)| change(source));
            };
            assert_eq!(replay(all_after), *expected);
        }
    }

    /// R57: a run that abandoned its replay asked its deciders itself.
    #[test]
    fn a_run_that_abandoned_its_replay_has_answers_of_its_own() {
        let abandoned = |source: &mut Source| {
            source.replay_decisions_of = Some(RunId(41));
            source.replay_abandoned = true;
        };
        assert_eq!(replay(abandoned), Replay::Of(RunId(42)));
    }

    /// R38, R39, D21: only a failure that still counts is retried, however many there are.
    #[test]
    fn a_failure_that_does_not_count_is_not_retried() {
        let cases: [(Break, Timestamp, bool); 6] = [
            (|_| (), at(124), true),
            (|_| (), at(125), false),
            (|s| s.failure_window_seconds = Some(3_600), at(101), true),
            (|s| s.failure_window_seconds = Some(3_600), at(102), false),
            (|s| s.is_resolved = true, at(101), false),
            (|s| s.has_failed = false, at(101), false),
        ];
        for (change, now, is_retried) in cases {
            let mut source = source();
            change(&mut source);
            assert_eq!(source.is_retried(now, DAY), is_retried, "{source:?} {now:?}");
            let expected = if is_retried { Replay::Of(RunId(42)) } else { Replay::Nothing };
            assert_eq!(source.replay(now, DAY), expected);
        }
        assert!(!source().is_retried(at(102), HOUR));
    }

    /// K20, R93, R99: a resume has the conditions of a replay that are not about decisions, and no machine.
    #[test]
    fn a_resume_is_not_about_decisions() {
        let breaks: [(Break, Resume); 7] = [
            (|s| s.has_checkpoint = false, Resume::Nothing),
            (
                |s| s.is_of_train = false,
                Resume::FromTheTop("it is not a run of this manifest's train"),
            ),
            (
                |s| s.invoking_machine = Some("m".to_owned()),
                Resume::FromTheTop("a state machine invoked it, and only the machine retries it"),
            ),
            (
                |s| s.is_fired_again = true,
                Resume::FromTheTop(
                    "its parent succeeded again since, so this run is a new firing, not a retry",
                ),
            ),
            (
                |s| s.has_entry = false,
                Resume::FromTheTop(
                    "it has no work queue entry of this manifest to compare inputs with",
                ),
            ),
            (|s| s.has_subject_key = true, Resume::FromTheTop("it was queued under a subject key")),
            (
                |s| s.has_same_input = false,
                Resume::FromTheTop(
                    "it was given a different input from the one the retry is given",
                ),
            ),
        ];
        for (first, (change, expected)) in breaks.iter().enumerate() {
            assert_eq!(resume(*change), *expected);
            let all_after = |source: &mut Source| {
                breaks[first..].iter().for_each(|(change, _)| change(source));
            };
            assert_eq!(resume(all_after), *expected);
        }
        let not_about_it = |source: &mut Source| {
            source.replay_decisions_on_retry = false;
            source.decisions_recorded = false;
            source.is_replayed = true;
            source.has_acted_on = false;
            source.replay_decisions_of = Some(RunId(1));
            source.has_checkpoint = false;
            source.resume_from = Some(RunId(1));
        };
        assert_eq!(resume(not_about_it), Resume::From(RunId(42)));
        assert_eq!(resume(|s| s.has_failed = false), Resume::Nothing);
    }
}
