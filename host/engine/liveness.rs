//! Whether the dispatcher of this host still passes: whatever watches the process starts it anew when it does not.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::Clock;

/// A dispatcher that passes more often than this is alive, however short its interval.
const PATIENCE_MIN: Duration = Duration::from_secs(30);

/// When the dispatcher last completed a pass.
#[derive(Debug)]
pub struct Liveness(Mutex<Instant>);

impl Default for Liveness {
    /// A host that starts has not missed anything.
    fn default() -> Self {
        Self(Mutex::new(Clock.instant()))
    }
}

impl Liveness {
    /// A pass was completed.
    pub(in crate::engine) fn passed(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Clock.instant();
    }

    /// How long ago that was.
    pub fn silence(&self) -> Duration {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Clock.instant().saturating_duration_since(last)
    }
}

/// How long a dispatcher with this interval may be silent, unless an operator says so.
pub fn patience(interval: Duration, stated: Option<Duration>) -> Duration {
    stated.unwrap_or_else(|| interval.saturating_mul(10).max(PATIENCE_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W27: ten intervals of the dispatcher, at least 30 seconds, or what is stated.
    #[test]
    fn a_dispatcher_may_miss_ten_passes() {
        let seconds = Duration::from_secs;
        for (interval, stated, expected) in [
            (seconds(2), None, seconds(30)),
            (seconds(3), None, seconds(30)),
            (seconds(4), None, seconds(40)),
            (Duration::MAX, None, Duration::MAX),
            (seconds(4), Some(seconds(5)), seconds(5)),
        ] {
            assert_eq!(patience(interval, stated), expected, "{interval:?} {stated:?}");
        }
    }
}
