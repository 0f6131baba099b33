//! Numbers from a seed that is printed, so that what failed can be tried again.

use std::fmt::Display;
use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;

/// Prints something that is shown when the test fails.
pub(crate) fn say(what: impl Display) {
    writeln!(std::io::stderr().lock(), "{what}").ok();
}

/// `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    /// From `TRAX_TEST_SEED`, or a new seed each time.
    pub(crate) fn of_this_run() -> Self {
        let new = || trax::clock::random::<8>().map(u64::from_le_bytes).unwrap();
        let stated = std::env::var("TRAX_TEST_SEED").ok();
        let seed = stated.map_or_else(new, |seed| seed.parse().unwrap());
        say(format_args!("TRAX_TEST_SEED={seed}"));
        Self(seed)
    }

    /// From a seed.
    pub(crate) const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % u64::try_from(end).unwrap()).unwrap()
    }

    /// A time in a range of microseconds.
    pub(crate) fn micros(&mut self, range: Range<u64>) -> Duration {
        Duration::from_micros(range.start + self.number() % (range.end - range.start))
    }
}
