//! When a schedule is due. A failure moves nothing here: what was due before it is due after it.
//!
//! [`cron`] and [`exclusion`] read what a person writes, in a [`zone`]; [`share`] says whose turn it is when more is
//! due than one pass queues, and [`cycle`] which groups would wait for each other.

pub mod cron;
pub mod cycle;
pub mod exclusion;
pub mod share;
#[cfg(test)]
mod tests;
pub mod zone;

use std::time::Duration;

use crate::model::schedule::cron::Cron;
use crate::model::schedule::exclusion::{Exclusion, next_allowed};
use crate::model::schedule::zone::Zone;
use crate::model::timestamp::Timestamp;

/// The shortest interval.
pub const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// How often exclusions and missed occurrences may put off each other before the search stops. It goes on from there
/// when the instant it gave has come.
const STEPS_MAX: usize = 400;

/// What a schedule is measured from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anchors {
    /// The last success.
    pub last_success: Option<Timestamp>,
    /// The occurrence that it ran for, if a schedule made it run.
    pub last_occurrence: Option<Timestamp>,
    /// The last cancellation: it uses up an occurrence too.
    pub last_cancelled: Option<Timestamp>,
    /// The next occurrence as it was computed after the last success, or when a cron was first stated.
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

/// What makes a manifest due by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timer {
    /// A length of time after the last success: at least [`INTERVAL_MIN`].
    Interval(Duration),
    /// Whenever the clock says so.
    Cron(Cron),
    /// Once, from an instant on.
    Once(Timestamp),
}

/// A timer, what it leaves out, and what happens to what it missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What makes it due.
    pub timer: Timer,
    /// What happens to missed occurrences.
    pub misfire: Misfire,
    /// When it does not run.
    pub exclusions: Vec<Exclusion>,
    /// The zone of the exclusions.
    pub zone: Zone,
}

/// An occurrence: the one that comes next after the anchor.
#[derive(Debug, Clone, Copy)]
struct Coming {
    /// Where counting started. `None`: at the occurrence itself.
    anchor: Option<Timestamp>,
    /// When it is due.
    due: Timestamp,
    /// Whether it may be missed.
    can_misfire: bool,
}

impl Schedule {
    /// The instant from which on it is due, seen from `now`: not after `now` when it is due. `None`: never, as things
    /// are.
    ///
    /// Where exclusions and missed occurrences put off each other for long, it may be an instant at which it is not due
    /// yet; asked then, the answer is a later one. No instant at which it is due lies between.
    pub fn due_at(&self, anchors: &Anchors, now: Timestamp) -> Option<Timestamp> {
        let coming = self.coming(anchors, now)?;
        let mut instant = now.max(coming.due);
        for _ in 0..STEPS_MAX {
            let allowed = next_allowed(&self.exclusions, &self.zone, instant);
            let firing = self.firing(coming, allowed)?;
            if firing == allowed {
                return Some(if allowed <= now { self.nominal(coming, now) } else { allowed });
            }
            instant = firing;
        }
        Some(instant)
    }

    /// The occurrence that a run queued now stands for: the latest one, when several were missed.
    pub fn occurrence(&self, anchors: &Anchors, now: Timestamp) -> Option<Timestamp> {
        let coming = self.coming(anchors, now).filter(|coming| coming.due <= now)?;
        match self.timer {
            Timer::Cron(_) if coming.can_misfire => Some(self.boundary(coming, now)),
            Timer::Interval(_) | Timer::Cron(_) | Timer::Once(_) => Some(coming.due),
        }
    }

    /// The occurrence after a success, moved by `extra`.
    pub fn after_success(
        &self,
        success: Timestamp,
        occurrence: Option<Timestamp>,
        extra: Duration,
    ) -> Option<Timestamp> {
        let base = match &self.timer {
            Timer::Interval(every) => success.saturating_add(*every),
            Timer::Cron(cron) => cron.next_after(occurrence.unwrap_or(success))?,
            Timer::Once(_) => return None,
        };
        Some(base.saturating_add(extra))
    }

    /// What comes next after whatever it is measured from.
    fn coming(&self, anchors: &Anchors, now: Timestamp) -> Option<Coming> {
        let is_cancelled_later = anchors.last_cancelled > anchors.last_success;
        let (anchor, next) = if is_cancelled_later {
            (anchors.last_cancelled, None)
        } else {
            (anchors.last_success, anchors.next)
        };
        let due = match &self.timer {
            Timer::Interval(every) if *every < INTERVAL_MIN => return None,
            Timer::Interval(every) => match anchor {
                None => return Some(Coming { anchor, due: now, can_misfire: false }),
                Some(anchor) => next.unwrap_or_else(|| anchor.saturating_add(*every)),
            },
            Timer::Cron(cron) => {
                let occurrence = anchors.last_occurrence.filter(|_| !is_cancelled_later);
                let anchor = occurrence.or(anchor);
                let due = match (next, anchor) {
                    (Some(next), _) => next,
                    (None, Some(anchor)) => cron.next_after(anchor)?,
                    // Stated by another program, which left its first occurrence to be found.
                    (None, None) => {
                        cron.next_after(now)?;
                        return Some(Coming { anchor, due: now, can_misfire: false });
                    }
                };
                return Some(Coming { anchor, due, can_misfire: true });
            }
            Timer::Once(at) => {
                let is_used_up =
                    anchors.last_success.is_some() || anchors.last_cancelled >= Some(*at);
                return (!is_used_up).then_some(Coming { anchor, due: *at, can_misfire: false });
            }
        };
        Some(Coming { anchor, due, can_misfire: true })
    }

    /// The first instant from `from` on at which the policy lets it fire.
    fn firing(&self, coming: Coming, from: Timestamp) -> Option<Timestamp> {
        let Misfire::DoNothing(threshold) = self.misfire else { return Some(from) };
        if !coming.can_misfire || from.since(coming.due) <= threshold {
            return Some(from);
        }
        let boundary = self.boundary(coming, from);
        if from.since(boundary) <= threshold {
            return Some(from);
        }
        match &self.timer {
            Timer::Interval(every) => Some(boundary.saturating_add(*every)),
            Timer::Cron(cron) => cron.next_after(from),
            Timer::Once(_) => Some(from),
        }
    }

    /// When it has been due since, told as the occurrence that fires now.
    fn nominal(&self, coming: Coming, now: Timestamp) -> Timestamp {
        match self.misfire {
            Misfire::DoNothing(threshold)
                if coming.can_misfire && now.since(coming.due) > threshold =>
            {
                self.boundary(coming, now)
            }
            Misfire::DoNothing(_) | Misfire::FireOnceNow => coming.due,
        }
    }

    /// The latest occurrence up to an instant that is not before the one that is coming.
    fn boundary(&self, coming: Coming, until: Timestamp) -> Timestamp {
        let latest = match &self.timer {
            Timer::Interval(every) => coming.anchor.map(|anchor| {
                let past = until.since(anchor).as_micros() % every.as_micros().max(1);
                until.saturating_sub(Duration::from_micros(u64::try_from(past).unwrap_or(0)))
            }),
            Timer::Cron(cron) => {
                let before = coming.due.saturating_sub(Duration::from_micros(1));
                cron.latest_in(coming.anchor.unwrap_or(before), until)
            }
            Timer::Once(_) => None,
        };
        latest.unwrap_or(coming.due)
    }
}
