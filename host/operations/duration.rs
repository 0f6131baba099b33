//! Lengths of time as people write them: `30s`, `1h30m`, `2d`.

use std::fmt::Write as _;
use std::time::Duration;

/// Units from the longest to the shortest, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads whole numbers with units, from the longest unit to the shortest, each at most once. No other text is a
/// duration.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut millis: u64 = 0;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, unit) = units.find(|(name, _)| *name == &rest[..letters])?;
        millis = millis.checked_add(number.checked_mul(*unit)?)?;
        rest = &rest[letters..];
    }
    (!text.trim().is_empty()).then_some(Duration::from_millis(millis))
}

/// Reads a length of time in ISO 8601, such as `PT1H30M`. Years, months and weeks have no fixed length, and are none.
pub fn parse_iso(text: &str) -> Option<Duration> {
    let is_iso = text.starts_with(['P', 'p']);
    let read: jiff::SignedDuration = text.parse().ok().filter(|_| is_iso)?;
    Duration::try_from(read).ok()
}

/// Writes a duration as [`parse`] reads it, down to milliseconds.
pub fn written(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (name, unit) in UNITS {
        if rest >= unit {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{name}", rest / unit);
            rest %= unit;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let cases = [
            ("30s", Some(30_000)),
            (" 5m ", Some(300_000)),
            ("1h30m", Some(5_400_000)),
            ("1d", Some(86_400_000)),
            ("250ms", Some(250)),
            ("0s", Some(0)),
            ("", None),
            ("30", None),
            ("s", None),
            ("30 seconds", None),
            ("30parsecs", None),
            ("1m1h", None),
            ("1s1s", None),
            ("-1s", None),
            ("1.5s", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), millis.map(Duration::from_millis), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(millis: u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&written(duration)), Some(duration));
        }
    }
}
