//! How often, and after which waits, an entry is dispatched again that could not be delivered.

use std::time::Duration;

/// What happens to an entry that cannot be delivered to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchPolicy {
    /// After how many attempts a run that no worker could take up has failed for good; 0: at once.
    pub attempts_max: i32,
    /// After how many attempts an entry has failed for good whose train no active component declares. They span some
    /// 20 minutes: long enough for a deployment that is late.
    pub unknown_attempts_max: i32,
    /// The wait after the first attempt. It doubles with each.
    pub wait: Duration,
    /// The longest wait.
    pub wait_max: Duration,
}

impl Default for DispatchPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            unknown_attempts_max: 10,
            wait: Duration::from_secs(5),
            wait_max: Duration::from_mins(5),
        }
    }
}

impl DispatchPolicy {
    /// How long an entry waits after this attempt, counted from 1.
    pub fn wait_after(&self, attempt: i32) -> Duration {
        let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(0).min(30);
        self.wait.saturating_mul(1 << doublings).min(self.wait_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let policy = DispatchPolicy::default();

        let waits: Vec<_> = (1..=8).map(|attempt| policy.wait_after(attempt).as_secs()).collect();

        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(policy.wait_after(i32::MAX), policy.wait_max);
        assert_eq!(policy.wait_after(i32::MIN), policy.wait);
        let all: u64 =
            (1..policy.unknown_attempts_max).map(|n| policy.wait_after(n).as_secs()).sum();
        assert!((900..=1_500).contains(&all), "{all}");
    }
}
