//! When a schedule does not run, as the clock of its zone says it: days of the week, dates, ranges of dates, and times
//! of every day.

use jiff::civil::{Date, Time, Weekday};

use super::zone::Zone;
use crate::model::json::Json;
use crate::model::timestamp::Timestamp;

/// Names of days, in the order of [`Weekday::to_monday_zero_offset`].
const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// How many ends of exclusions are looked at in a row. Whoever finds none looks again from where this stopped.
const STEPS_MAX: usize = 1_000;

/// Something that a schedule leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusion {
    /// These days of every week.
    DaysOfWeek(Vec<Weekday>),
    /// These days.
    Dates(Vec<Date>),
    /// From one day to another, both included.
    DateRange {
        /// The first day.
        from: Date,
        /// The last one.
        to: Date,
    },
    /// From a time of every day up to another one, which is not included. Past midnight when it is the earlier one.
    TimeWindow {
        /// The first time.
        from: Time,
        /// The first time that is not left out.
        to: Time,
    },
}

impl Exclusion {
    /// Reads a list as it is stored: a JSON array of objects with `days`, with `dates`, or with `from` and `to`, which
    /// are dates or times.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let json = Json::parse(text).map_err(|error| error.to_string())?;
        let Json::Array(items) = json else { return Err("is no list".to_owned()) };
        items.iter().map(Self::read).collect()
    }

    fn read(item: &Json) -> Result<Self, String> {
        let texts = |name| -> Option<Result<Vec<&str>, String>> {
            let Json::Array(items) = item.member(name)? else {
                return Some(Err(format!("{name} is no list")));
            };
            let texts = items.iter().map(|item| {
                item.as_str().ok_or_else(|| format!("{name} has something that is no text"))
            });
            Some(texts.collect())
        };
        let end = |name| item.member(name).and_then(Json::as_str);
        if let Some(days) = texts("days") {
            Self::days_of_week(&days?)
        } else if let Some(dates) = texts("dates") {
            Self::dates(&dates?)
        } else if let (Some(from), Some(to)) = (end("from"), end("to")) {
            Self::between(from, to)
        } else {
            Err("has neither `days`, nor `dates`, nor `from` and `to`".to_owned())
        }
    }

    /// Days of the week by their English names, or the first three letters of these.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn days_of_week(names: &[&str]) -> Result<Self, String> {
        let mut days = Vec::new();
        for name in names {
            let is_it =
                |day: &&str| day.eq_ignore_ascii_case(name) || day[..3].eq_ignore_ascii_case(name);
            let found = DAYS.iter().position(is_it).ok_or_else(|| {
                let name: String = name.escape_debug().take(40).collect();
                format!("'{name}' is no day; write monday, tue, ...")
            })?;
            let day =
                i8::try_from(found).ok().and_then(|day| Weekday::from_monday_zero_offset(day).ok());
            days.extend(day.filter(|day| !days.contains(day)));
        }
        if days.len() == DAYS.len() {
            return Err("leaves out every day of the week".to_owned());
        }
        days.sort_by_key(|day: &Weekday| day.to_monday_zero_offset());
        Ok(Self::DaysOfWeek(days))
    }

    /// Days by their dates.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn dates(texts: &[&str]) -> Result<Self, String> {
        let mut dates: Vec<Date> = texts.iter().map(|text| date(text)).collect::<Result<_, _>>()?;
        dates.sort_unstable();
        dates.dedup();
        Ok(Self::Dates(dates))
    }

    /// A range of dates, or a window of times: both ends are of one kind.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn between(from: &str, to: &str) -> Result<Self, String> {
        if from.contains(':') || to.contains(':') {
            let (from, to) = (time(from)?, time(to)?);
            if from == to {
                return Err("starts and ends at one time, so nothing is left out".to_owned());
            }
            return Ok(Self::TimeWindow { from, to });
        }
        let (from, to) = (date(from)?, date(to)?);
        if from > to {
            return Err(format!("ends on {to}, before it starts on {from}"));
        }
        Ok(Self::DateRange { from, to })
    }

    /// A list as it is stored.
    pub fn write_all(exclusions: &[Self]) -> String {
        Json::Array(exclusions.iter().map(Self::to_json).collect()).to_string()
    }

    fn to_json(&self) -> Json {
        let text = |text: &dyn std::fmt::Display| Json::String(text.to_string());
        let list =
            |name: &str, items: Vec<Json>| Json::object([(name.to_owned(), Json::Array(items))]);
        let ends =
            |from: Json, to: Json| Json::object([("from".to_owned(), from), ("to".to_owned(), to)]);
        match self {
            Self::DaysOfWeek(days) => {
                let name = |day: &Weekday| {
                    let day = usize::try_from(day.to_monday_zero_offset()).unwrap_or(0);
                    text(&DAYS[day])
                };
                list("days", days.iter().map(name).collect())
            }
            Self::Dates(dates) => list("dates", dates.iter().map(|date| text(date)).collect()),
            Self::DateRange { from, to } => ends(text(from), text(to)),
            Self::TimeWindow { from, to } => ends(text(from), text(to)),
        }
    }

    /// Whether an instant is left out, and if so until when at least.
    fn end(&self, zone: &Zone, instant: Timestamp) -> Option<Timestamp> {
        let said = zone.at(instant);
        let (day, time) = (said.date(), said.time());
        let last_day = match self {
            Self::DaysOfWeek(days) => days.contains(&day.weekday()).then_some(day),
            Self::Dates(dates) => dates.contains(&day).then_some(day),
            Self::DateRange { from, to } => (*from <= day && day <= *to).then_some(*to),
            Self::TimeWindow { from, to } => {
                let end = match (from < to, *from <= time, time < *to) {
                    // Either within one day, or past midnight and already on the next day.
                    (true, true, true) | (false, false, true) => day.to_datetime(*to),
                    (false, true, _) => day.tomorrow().ok()?.to_datetime(*to),
                    _ => return None,
                };
                return Some(before_move(zone, instant, zone.when(end, instant)));
            }
        }?;
        let next_day = last_day.tomorrow().ok();
        let end = next_day.and_then(|next_day| zone.start_of(next_day, instant));
        Some(before_move(zone, instant, end))
    }
}

/// The end, unless the clock is moved before it: then what it says is looked at again.
fn before_move(zone: &Zone, instant: Timestamp, end: Option<Timestamp>) -> Timestamp {
    let end = end.unwrap_or(Timestamp::MAX);
    zone.next_move(instant).map_or(end, |moved| end.min(moved))
}

fn date(text: &str) -> Result<Date, String> {
    let is_date = text.len() == 10;
    text.parse().ok().filter(|_| is_date).ok_or_else(|| {
        format!(
            "'{}' is no date; write 2026-12-24",
            text.escape_debug().take(40).collect::<String>()
        )
    })
}

fn time(text: &str) -> Result<Time, String> {
    let is_time = [5, 8].contains(&text.len());
    text.parse().ok().filter(|_| is_time).ok_or_else(|| {
        format!("'{}' is no time; write 22:00", text.escape_debug().take(40).collect::<String>())
    })
}

/// The first instant from `from` on that no exclusion leaves out, or one before it from which to look again.
pub fn next_allowed(exclusions: &[Exclusion], zone: &Zone, from: Timestamp) -> Timestamp {
    let mut instant = from;
    for _ in 0..STEPS_MAX {
        let ends = exclusions.iter().filter_map(|exclusion| exclusion.end(zone, instant));
        match ends.max() {
            Some(end) if instant < Timestamp::MAX => instant = end,
            _ => break,
        }
    }
    instant
}

/// Whether an instant is left out.
pub fn is_excluded(exclusions: &[Exclusion], zone: &Zone, instant: Timestamp) -> bool {
    exclusions.iter().any(|exclusion| exclusion.end(zone, instant).is_some())
}
