//! When a schedule is due. A failure moves nothing here: what was due before it is due after it.

use std::time::Duration;

use crate::model::timestamp::Timestamp;

/// The shortest interval.
pub const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// What a schedule is measured from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anchors {
    /// The last success.
    pub last_success: Option<Timestamp>,
    /// The last cancellation: it uses up an occurrence too.
    pub last_cancelled: Option<Timestamp>,
    /// The next occurrence as it was computed after the last success.
    pub next: Option<Timestamp>,
}

/// What happens to occurrences that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfire {
    /// They fire once, late.
    FireOnceNow,
    /// They are left out, unless the latest one is no longer ago than this.
    DoNothing(Duration),
}

/// A length of time after the last success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// At least [`INTERVAL_MIN`]; a shorter one is never due.
    pub every: Duration,
    /// What happens to missed occurrences.
    pub misfire: Misfire,
}

impl Interval {
    /// The instant from which on it is due. Never run: now. `None`: it is no valid interval.
    pub fn due_at(&self, anchors: &Anchors, now: Timestamp) -> Option<Timestamp> {
        if self.every < INTERVAL_MIN {
            return None;
        }
        let is_cancelled_later = anchors.last_cancelled > anchors.last_success;
        let (anchor, next) = match (anchors.last_success, anchors.last_cancelled) {
            (_, Some(cancelled)) if is_cancelled_later => (cancelled, None),
            (Some(success), _) => (success, anchors.next),
            (None, _) => return Some(now),
        };
        let due = next.unwrap_or_else(|| anchor.saturating_add(self.every));
        let Misfire::DoNothing(threshold) = self.misfire else { return Some(due) };
        if due >= now || now.since(due) <= threshold {
            return Some(due);
        }
        let boundary = self.latest_boundary(anchor, now);
        let is_recent = now.since(boundary) <= threshold;
        Some(if is_recent { boundary } else { boundary.saturating_add(self.every) })
    }

    /// The next occurrence after a success, moved by `extra`.
    pub fn after(&self, success: Timestamp, extra: Duration) -> Timestamp {
        success.saturating_add(self.every).saturating_add(extra)
    }

    /// The latest instant up to now that is a whole number of intervals after the anchor.
    fn latest_boundary(&self, anchor: Timestamp, now: Timestamp) -> Timestamp {
        let past = now.since(anchor);
        let since = past.as_micros() % self.every.as_micros().max(1);
        now.saturating_sub(Duration::from_micros(u64::try_from(since).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000).unwrap()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn due(success: Option<i64>, cancelled: Option<i64>, next: Option<i64>) -> Option<Timestamp> {
        let interval = Interval { every: seconds(300), misfire: Misfire::FireOnceNow };
        let anchors = Anchors {
            last_success: success.map(at),
            last_cancelled: cancelled.map(at),
            next: next.map(at),
        };
        interval.due_at(&anchors, at(5_000))
    }

    /// M11, M12: an interval counts from the last success, or from a later cancellation, which ignores what was stored.
    #[test]
    fn intervals_count_from_the_latest_anchor() {
        let cases = [
            ((None, None, None), 5_000),
            ((Some(1_000), None, None), 1_300),
            ((Some(1_000), None, Some(1_320)), 1_320),
            ((Some(1_000), Some(900), Some(1_320)), 1_320),
            ((Some(1_000), Some(1_100), Some(1_320)), 1_400),
            ((None, Some(1_100), None), 1_400),
            ((Some(4_900), None, None), 5_200),
        ];
        for ((success, cancelled, next), expected) in cases {
            assert_eq!(
                due(success, cancelled, next),
                Some(at(expected)),
                "{success:?} {cancelled:?}"
            );
        }
        let short = Interval { every: seconds(0), misfire: Misfire::FireOnceNow };
        assert_eq!(short.due_at(&Anchors::default(), at(0)), None);
    }

    /// M16: what was missed fires once, or only close to the latest boundary.
    #[test]
    fn missed_occurrences_fire_by_the_policy() {
        let ten = 10 * 3_600;
        let due = |misfire, now| {
            let anchors = Anchors { last_success: Some(at(ten)), ..Anchors::default() };
            Interval { every: seconds(300), misfire }.due_at(&anchors, at(now)).unwrap()
        };
        let (late, recent) = (ten + 3 * 3_600 + 120, ten + 3 * 3_600 + 30);
        assert_eq!(due(Misfire::FireOnceNow, late), at(ten + 300));
        assert_eq!(due(Misfire::DoNothing(seconds(60)), late), at(ten + 3 * 3_600 + 300));
        assert_eq!(due(Misfire::DoNothing(seconds(60)), recent), at(ten + 3 * 3_600));
        assert_eq!(due(Misfire::DoNothing(seconds(60)), ten + 360), at(ten + 300));
        assert_eq!(due(Misfire::DoNothing(seconds(60)), ten + 100), at(ten + 300));
    }
}
