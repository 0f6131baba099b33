//! Whether a manifest that failed is tried again, when, and from when on it is a dead letter.
//!
//! A retry is no run of its own kind: it is the run that the schedule makes due anyway, held back by a delay.

use std::time::Duration;

use crate::model::message;
use crate::model::timestamp::Timestamp;

/// How long retries wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// The wait after the first failure. Zero: retries do not wait at all.
    pub delay: Duration,
    /// How much longer each wait is than the one before; at least 1.
    pub multiplier: f64,
    /// The longest wait.
    pub delay_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { delay: Duration::from_mins(5), multiplier: 2.0, delay_max: Duration::from_hours(1) }
    }
}

impl RetryPolicy {
    /// The wait after so many failures: `delay * multiplier ^ (failures - 1)`, and never more than `delay_max`.
    pub fn delay_after(&self, failures: u64) -> Duration {
        if self.delay.is_zero() {
            return Duration::ZERO;
        }
        #[expect(clippy::cast_precision_loss, reason = "the cap is reached long before")]
        let exponent = failures.saturating_sub(1) as f64;
        let seconds = self.delay.as_secs_f64() * self.multiplier.max(1.0).powf(exponent);
        // Infinity is no duration, and means the cap too.
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(self.delay_max)
    }

    /// A warning when so many retries wait as long as failures count, or longer: then the first failure no longer
    /// counts when the last retry fails, and a manifest that always fails never becomes a dead letter.
    pub fn warning(&self, max_retries: u32, window: Duration) -> Option<String> {
        let waits = self.sum_of_delays(max_retries, window);
        (max_retries > 0 && waits >= window).then(|| {
            format!(
                "the delays of DefaultMaxRetries ({max_retries}) retries add up to {waits:?} or more, and \
                 failures count for FailureCountWindow ({window:?}) only: a manifest that always fails never \
                 becomes a dead letter; raise FailureCountWindow, or lower DefaultMaxRetries"
            )
        })
    }

    /// The delays of the first retries together, or as much of it as reaches the limit.
    fn sum_of_delays(&self, retries: u32, limit: Duration) -> Duration {
        // Past this many a delay hardly grows any more; taking it for the rest is never too much.
        const SUMMED_ONE_BY_ONE: u32 = 100_000;
        let mut sum = Duration::ZERO;
        for failures in 1..=retries.min(SUMMED_ONE_BY_ONE) {
            sum = sum.saturating_add(self.delay_after(u64::from(failures)));
            if sum >= limit {
                return sum;
            }
        }
        let rest = retries.saturating_sub(SUMMED_ONE_BY_ONE);
        sum.saturating_add(self.delay_after(SUMMED_ONE_BY_ONE.into()).saturating_mul(rest))
    }
}

/// A failed run, as far as counting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedRun {
    /// When it started.
    pub started_at: Timestamp,
    /// False: an attempt at dispatching it that never reached a worker, which is nobody's failure.
    pub was_delivered: bool,
}

impl FailedRun {
    /// Whether it counts: it was delivered, it started in the window, and after the last dead letter was resolved.
    pub fn counts(&self, window_start: Timestamp, last_resolved: Option<Timestamp>) -> bool {
        self.was_delivered
            && self.started_at >= window_start
            && last_resolved.is_none_or(|resolved| self.started_at > resolved)
    }
}

/// What a manifest's runs came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The failures that count.
    pub failures: i64,
    /// Whether the newest finished run failed.
    pub has_last_failed: bool,
    /// How many retries it has.
    pub max_retries: i32,
}

/// What follows for a manifest that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A run like any other.
    Run,
    /// A retry, held back this long.
    Retry {
        /// May be zero.
        delay: Duration,
    },
    /// No run until somebody resolves the dead letter.
    DeadLetter {
        /// What it says.
        reason: String,
    },
}

impl Facts {
    /// Whether the budget of retries is used up.
    pub fn is_exhausted(&self) -> bool {
        self.failures > 0 && self.failures > i64::from(self.max_retries)
    }

    /// What follows.
    pub fn next(&self, policy: &RetryPolicy) -> Next {
        if self.is_exhausted() {
            let reason = message::retries_exceeded(self.failures, self.max_retries);
            return Next::DeadLetter { reason };
        }
        match u64::try_from(self.failures) {
            Ok(failures @ 1..) if self.has_last_failed => {
                Next::Retry { delay: policy.delay_after(failures) }
            }
            _ => Next::Run,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000).unwrap()
    }

    /// R18, R19, T2: by default 5, 10, 20 and 40 minutes, then an hour each.
    #[test]
    fn the_default_series() {
        let policy = RetryPolicy::default();
        let minutes = [1, 2, 3, 4, 5, 6, u64::MAX].map(|n| policy.delay_after(n).as_secs() / 60);
        assert_eq!(minutes, [5, 10, 20, 40, 60, 60, 60]);
        assert_eq!(policy.sum_of_delays(3, Duration::MAX), Duration::from_mins(35));
    }

    proptest! {
        /// R17: the formula where it can be computed, the cap where it cannot.
        #[test]
        fn delays_follow_the_formula_and_never_overflow(
            delay in 0_u64..10_000, multiplier in prop_oneof![1.0..4.0, 1.0..1e308],
            delay_max in 0_u64..100_000, failures in prop_oneof![1_u64..40, any::<u64>()],
        ) {
            let policy = RetryPolicy {
                delay: Duration::from_secs(delay), multiplier, delay_max: Duration::from_secs(delay_max),
            };
            let mut expected = Duration::from_secs(delay).as_secs_f64();
            for _ in 1..failures.min(2_000) {
                expected = (expected * multiplier).min(1e18);
            }
            let expected = expected.min(Duration::from_secs(delay_max).as_secs_f64());
            let got = policy.delay_after(failures).as_secs_f64();
            // Past 2000 factors of nearly 1 the product is not computed here.
            if failures <= 2_000 || expected >= Duration::from_secs(delay_max).as_secs_f64() {
                prop_assert!((got - expected).abs() <= expected * 1e-9 + 1e-8, "{got} {expected}");
            }
            prop_assert!(policy.delay_after(failures) <= policy.delay_max);
            prop_assert!(policy.delay_after(failures) <= policy.delay_after(failures.saturating_add(1)));
        }
    }

    /// R17: the formula by hand, and the cap where no number holds it.
    #[test]
    fn delays_of_few_and_of_very_many_failures() {
        let day = Duration::from_hours(24);
        let second = Duration::from_secs(1);
        let twice = RetryPolicy { delay: second, multiplier: 2.0, delay_max: Duration::MAX };
        let capped = RetryPolicy { delay_max: day, ..twice };
        let steep = RetryPolicy { multiplier: 1e308, ..capped };
        let flat = RetryPolicy { multiplier: 1.0, ..capped };
        let cases = [
            (0, second, second, second, second),
            (1, second, second, second, second),
            (2, 2 * second, 2 * second, day, second),
            (62, Duration::from_secs(1 << 61), day, day, second),
            (63, Duration::from_secs(1 << 62), day, day, second),
            (64, Duration::from_secs(1 << 63), day, day, second),
            (310, Duration::MAX, day, day, second),
            (u64::from(u32::MAX), Duration::MAX, day, day, second),
        ];
        for (failures, uncapped, by_two, by_much, by_one) in cases {
            assert_eq!(twice.delay_after(failures), uncapped, "{failures}");
            assert_eq!(capped.delay_after(failures), by_two, "{failures}");
            assert_eq!(steep.delay_after(failures), by_much, "{failures}");
            assert_eq!(flat.delay_after(failures), by_one, "{failures}");
        }
    }

    /// R25: without a delay retries do not wait, however many there were.
    #[test]
    fn no_delay_stays_none() {
        let policy =
            RetryPolicy { delay: Duration::ZERO, multiplier: 1e308, ..RetryPolicy::default() };
        assert_eq!(policy.delay_after(u64::MAX), Duration::ZERO);
    }

    /// R22, T3: a warning when the delays together reach the window.
    #[test]
    fn configurations_that_never_dead_letter_are_warned_of() {
        let (policy, day) = (RetryPolicy::default(), Duration::from_hours(24));
        assert_eq!(policy.sum_of_delays(3, day), 35 * MINUTE);
        assert_eq!(policy.sum_of_delays(24, day), 21 * 60 * MINUTE + 15 * MINUTE);
        let cases = [(0, false), (3, false), (24, false), (30, true), (u32::MAX, true)];
        for (max_retries, is_warned) in cases {
            assert_eq!(policy.warning(max_retries, day).is_some(), is_warned, "{max_retries}");
        }
        let text = policy.warning(30, day).unwrap();
        assert!(
            text.contains("FailureCountWindow") && text.contains("DefaultMaxRetries (30)"),
            "{text}"
        );
        let at_once = RetryPolicy { delay: Duration::ZERO, ..policy };
        assert_eq!(at_once.warning(u32::MAX, day), None);
        let second = RetryPolicy { delay: Duration::from_secs(1), multiplier: 1.0, ..policy };
        assert!(second.warning(86_400, day).is_some());
        assert_eq!(second.warning(86_399, day), None);
    }

    /// R7, R8, R15: what counts.
    #[test]
    fn failures_count_in_the_window_and_after_the_last_resolution() {
        let run = |seconds| FailedRun { started_at: at(seconds), was_delivered: true };
        let cases = [
            (run(100), None, true),
            (run(99), None, false),
            (run(150), Some(at(149)), true),
            (run(150), Some(at(150)), false),
            (run(150), Some(at(151)), false),
            (FailedRun { was_delivered: false, ..run(150) }, None, false),
        ];
        for (run, resolved, counts) in cases {
            assert_eq!(run.counts(at(100), resolved), counts, "{run:?} {resolved:?}");
        }
    }

    /// R16, R20: a delay when the newest finished run failed and still counts, and only then.
    #[test]
    fn only_a_counted_last_failure_is_retried() {
        let policy = RetryPolicy::default();
        let next = |failures, has_last_failed| {
            Facts { failures, has_last_failed, max_retries: 3 }.next(&policy)
        };
        let after = |minutes| Next::Retry { delay: minutes * MINUTE };
        assert_eq!(
            [next(0, false), next(0, true), next(3, false)],
            [Next::Run, Next::Run, Next::Run]
        );
        assert_eq!([next(1, true), next(3, true)], [after(5), after(20)]);
    }

    /// R4, R5, R6: a manifest runs one time more often than it has retries.
    #[test]
    fn the_budget_is_one_more_than_the_retries() {
        for max_retries in 0..=5 {
            let is_exhausted =
                |failures| Facts { failures, has_last_failed: true, max_retries }.is_exhausted();
            let runs = (1..=1_000).find(|failures| is_exhausted(*failures)).unwrap();
            assert_eq!(runs, i64::from(max_retries) + 1);
        }
        assert!(!Facts { failures: 0, has_last_failed: false, max_retries: -1 }.is_exhausted());
    }
}
