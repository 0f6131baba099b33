//! An instant, as databases keep it.

use std::fmt;
use std::time::Duration;

/// Microseconds since 1970 in UTC: what both databases can hold and compare exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest instant that every database and the calendar can hold in every time zone, late in the year 9999.
    pub const MAX: Self = Self(253_402_207_199_999_999);
    /// The earliest: the start of the year 1.
    pub const MIN: Self = Self(-62_135_596_800_000_000);

    /// The instant this many microseconds after 1970, if the calendar has it.
    pub fn from_micros(micros: i64) -> Option<Self> {
        (Self::MIN.0..=Self::MAX.0).contains(&micros).then_some(Self(micros))
    }

    /// Reads RFC 3339 with an offset from UTC, such as `2026-12-24T18:00:00+01:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let instant: jiff::Timestamp = text.parse().ok()?;
        Self::from_micros(instant.as_microsecond())
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Later by this much, if that is not after [`MAX`](Self::MAX).
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let micros = i64::try_from(duration.as_micros()).ok()?;
        Self::from_micros(self.0.checked_add(micros)?)
    }

    /// Later by this much, and at most [`MAX`](Self::MAX).
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Self::MAX.0))
    }

    /// Earlier by this much, and at least [`MIN`](Self::MIN).
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros).max(Self::MIN.0))
    }

    /// How long after `earlier`; zero if it was not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// Writes RFC 3339 in UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => instant.fmt(f),
            Err(_) => write!(f, "{} microseconds after 1970", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_in_utc_and_never_leave_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (1_000_001, "1970-01-01T00:00:01.000001Z"),
            (Timestamp::MAX.0, "9999-12-30T21:59:59.999999Z"),
            (Timestamp::MIN.0, "0001-01-01T00:00:00Z"),
        ];
        for (micros, text) in cases {
            assert_eq!(Timestamp::from_micros(micros).unwrap().to_string(), text);
        }
        assert_eq!(Timestamp::from_micros(i64::MAX), None);
        assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.checked_add(Duration::MAX), None);
        assert_eq!(Timestamp::MAX.checked_add(Duration::from_micros(1)), None);
        assert_eq!(Timestamp::MIN.checked_add(Duration::ZERO), Some(Timestamp::MIN));
        assert_eq!(Timestamp::MIN.saturating_sub(Duration::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
    }
}
