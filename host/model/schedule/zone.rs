//! Time zones: what the clock on the wall says at an instant, and when it says something.
//!
//! The rules of the zones are bundled with trax, so that every host of a database reads the same ones.

use std::fmt;

use jiff::Zoned;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousTimestamp, TimeZone};

use crate::model::timestamp::Timestamp;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC, in which a clock is never moved.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The zone of an IANA name such as `Europe/Berlin`, if there is one.
    pub fn of_name(name: &str) -> Option<Self> {
        // The letters of a name may be of either case there; here one zone has one name.
        let zone = jiff::tz::db().get(name).ok()?;
        (zone.iana_name() == Some(name)).then_some(Self(zone))
    }

    /// The names of all zones.
    pub fn names() -> impl Iterator<Item = String> {
        jiff::tz::db().available().map(|name| name.as_str().to_owned())
    }

    /// Its IANA name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// An instant as the clock shows it, with the zone's offset from UTC: `2026-03-29T03:00:00+02:00`.
    pub fn shown(&self, instant: Timestamp) -> String {
        let zoned = self.at(instant);
        zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// What the clock says at an instant.
    pub(super) fn at(&self, instant: Timestamp) -> Zoned {
        let instant = jiff::Timestamp::from_microsecond(instant.as_micros());
        // Every instant of the model is one of the calendar.
        instant.unwrap_or(jiff::Timestamp::MAX).to_zoned(self.0.clone())
    }

    /// The first instant after `after` at which the clock says this, or, where it skips that, the instant it says what
    /// comes next. `None`: after the end of the calendar, or not after `after`.
    pub(super) fn when(&self, said: DateTime, after: Timestamp) -> Option<Timestamp> {
        let said: AmbiguousTimestamp = self.0.to_ambiguous_timestamp(said);
        let candidates = [said.earlier().ok(), said.later().ok()];
        let mut candidates = candidates.into_iter().flatten().filter_map(of_jiff);
        candidates.find(|candidate| *candidate > after)
    }

    /// The start of a day, if it is after `after`.
    pub(super) fn start_of(&self, day: Date, after: Timestamp) -> Option<Timestamp> {
        self.when(day.at(0, 0, 0, 0), after)
    }

    /// The next instant at which the clock is moved.
    pub(super) fn next_move(&self, after: Timestamp) -> Option<Timestamp> {
        let after = jiff::Timestamp::from_microsecond(after.as_micros()).ok()?;
        self.0.following(after).next().and_then(|moved| of_jiff(moved.timestamp()))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The instant, if it is one of the model.
pub(super) fn of_jiff(instant: jiff::Timestamp) -> Option<Timestamp> {
    Timestamp::from_micros(instant.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_the_bundled_ones_by_their_exact_names() {
        assert_eq!(Zone::of_name("Europe/Berlin").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::of_name("UTC").unwrap(), Zone::UTC);
        for name in ["Europe/Berln", "europe/berlin", "", "../etc/passwd", "+02:00", "CET+1"] {
            assert_eq!(Zone::of_name(name), None, "{name}");
        }
        assert!(Zone::names().count() > 400);
    }

    #[test]
    fn an_instant_is_shown_with_the_offset_of_the_zone() {
        let berlin = Zone::of_name("Europe/Berlin").unwrap();
        let moved = of_jiff("2026-03-29T01:00:00Z".parse().unwrap()).unwrap();

        assert_eq!(berlin.shown(moved), "2026-03-29T03:00:00+02:00");
        assert_eq!(Zone::UTC.shown(moved), "2026-03-29T01:00:00+00:00");
        assert_eq!(
            berlin.next_move(moved.saturating_sub(std::time::Duration::from_secs(1))),
            Some(moved)
        );
        assert_eq!(Zone::UTC.next_move(moved), None);
    }
}
