//! The pauses between tries while the store does not take what must be written.

use std::time::Duration;

/// Short, because most outages are: a connection that broke, a lock that somebody held.
const FIRST: Duration = Duration::from_millis(50);
/// A store that comes back is found within this time.
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses, each twice as long as the one before, up to the longest.
#[derive(Debug)]
pub(in crate::engine) struct Pauses(Duration);

impl Pauses {
    /// From the shortest.
    pub(in crate::engine) const fn new() -> Self {
        Self(FIRST)
    }

    /// How long to wait before the next try.
    pub(in crate::engine) fn longer(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut pauses = Pauses::new();
        let grown: Vec<u128> = (0..9).map(|_| pauses.longer().as_millis()).collect();
        assert_eq!(grown, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    }
}
