//! When a manifest runs, and when it does not: `every`, `cron`, `once` or `after`, and what goes with them.

use std::time::Duration;

use toml::de::DeValue;

use crate::model::schedule::cron::Cron;
use crate::model::schedule::exclusion::Exclusion;
use crate::model::schedule::zone::Zone;
use crate::model::timestamp::Timestamp;
use crate::operations::duration;
use crate::operations::manifest_file::{SECOND, TEN_YEARS, name, whole_seconds};
use crate::operations::table::{Faults, Place, Section, unknown};

/// Keys that say what makes a manifest due. At most one of them stands in a manifest.
const TIMERS: [&str; 4] = ["every", "cron", "once", "after"];

/// What makes a manifest due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatedTimer {
    /// Nothing: it runs on demand.
    OnDemand,
    /// The time from a success to the next run.
    Every(Duration),
    /// The clock.
    Cron(String),
    /// An instant.
    OnceAt(Timestamp),
    /// An instant this long after it is stated.
    OnceIn(Duration),
    /// Each success of another manifest, or, dormant, that one's runs when they ask for it.
    After {
        /// The other one.
        parent: String,
        /// Whether only its parent's runs make it run.
        is_dormant: bool,
        /// Where it is named.
        place: Place,
    },
}

/// When a manifest runs, and when it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedSchedule {
    /// What makes it due.
    pub timer: StatedTimer,
    /// The zone of its cron and of what it leaves out.
    pub zone: Zone,
    /// When it does not run.
    pub exclusions: Vec<Exclusion>,
    /// The most that an occurrence is moved by, at random.
    pub variance_seconds: Option<i32>,
}

impl StatedSchedule {
    pub(super) fn read(section: &Section<'_>, faults: &mut Faults<'_>) -> Self {
        let mut stated = TIMERS.iter().filter(|key| section.value(key).is_some());
        if let (Some(first), Some(second)) = (stated.next(), stated.next()) {
            section.fault(second, format!("stands beside `{first}`; keep one of them"), faults);
        }
        let zone = read_zone(section, faults);
        let timer = read_timer(section, &zone, faults);
        let is_timed = matches!(timer, StatedTimer::Every(_) | StatedTimer::Cron(_));
        if section.value("dormant").is_some() && section.value("after").is_none() {
            section.fault("dormant", "needs `after`, which names whose runs make it run", faults);
        }
        let variance_seconds = whole_seconds(section, "variance", Duration::ZERO, faults);
        if variance_seconds.is_some() && !is_timed {
            section.fault("variance", "needs `every` or `cron`", faults);
        }
        let exclusions = read_exclusions(section, faults);
        let is_once = matches!(timer, StatedTimer::OnceAt(_) | StatedTimer::OnceIn(_));
        if !exclusions.is_empty() && !is_timed && !is_once {
            section.fault("exclude", "needs `every`, `cron` or `once`", faults);
        }
        Self { timer, zone, exclusions, variance_seconds }
    }
}

fn read_zone(section: &Section<'_>, faults: &mut Faults<'_>) -> Zone {
    let Some(text) = section.text("time_zone", faults) else { return Zone::UTC };
    Zone::of_name(text).unwrap_or_else(|| {
        let names: Vec<String> = Zone::names().collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut problem = unknown("time zone", text, &known);
        if !problem.contains("did you mean") {
            problem = format!(
                "unknown time zone '{}'; write an IANA name, such as Europe/Berlin",
                text.escape_debug()
            );
        }
        section.fault("time_zone", problem, faults);
        Zone::UTC
    })
}

fn read_timer(section: &Section<'_>, zone: &Zone, faults: &mut Faults<'_>) -> StatedTimer {
    if section.value("every").is_some() {
        let every = section.duration("every", SECOND..=TEN_YEARS, faults);
        if every.is_some_and(|every| every.subsec_nanos() > 0) {
            section.fault("every", "has a part of a second; write whole seconds", faults);
        }
        return every.map_or(StatedTimer::OnDemand, StatedTimer::Every);
    }
    if let Some(text) = section.text("cron", faults) {
        if let Err(fault) = Cron::parse(text, zone.clone()) {
            section.fault("cron", fault, faults);
        }
        return StatedTimer::Cron(text.to_owned());
    }
    if let Some(text) = section.text("once", faults) {
        return read_once(text).unwrap_or_else(|problem| {
            section.fault("once", problem, faults);
            StatedTimer::OnDemand
        });
    }
    let place = section.place_of("after");
    let parent = section.value("after").and_then(|_| name(section, "after", faults));
    let is_dormant = section.boolean("dormant", faults).unwrap_or(false);
    parent.map_or(StatedTimer::OnDemand, |parent| StatedTimer::After { parent, is_dormant, place })
}

fn read_once(text: &str) -> Result<StatedTimer, String> {
    if let Some(delay) = duration::parse(text).filter(|delay| *delay <= TEN_YEARS) {
        return Ok(StatedTimer::OnceIn(delay));
    }
    Timestamp::parse(text).map(StatedTimer::OnceAt).ok_or_else(|| {
        let text: String = text.escape_debug().take(40).collect();
        format!("'{text}' is neither an instant, such as \"2026-12-24T18:00:00+01:00\", nor a delay, such as \"10m\"")
    })
}

fn read_exclusions(section: &Section<'_>, faults: &mut Faults<'_>) -> Vec<Exclusion> {
    let Some(value) = section.value("exclude") else { return Vec::new() };
    let Some(items) = value.get_ref().as_array() else {
        section.fault("exclude", "is no list; write `[{ days = [\"sun\"] }]`", faults);
        return Vec::new();
    };
    let mut exclusions = Vec::new();
    for item in items {
        match read_exclusion(item.get_ref()) {
            Ok(exclusion) => exclusions.push(exclusion),
            Err(problem) => {
                faults.add(&item.span(), format_args!("{}: exclude", section.title), problem);
            }
        }
    }
    exclusions
}

fn read_exclusion(item: &DeValue<'_>) -> Result<Exclusion, String> {
    const KINDS: &str = "write one of { days = [\"sat\", \"sun\"] }, { dates = [\"2026-12-24\"] }, \
        { from = \"2026-08-01\", to = \"2026-08-31\" } and { from = \"22:00\", to = \"06:00\" }";
    let table = item.as_table().ok_or(KINDS)?;
    let text = |key: &str| table.get(key).and_then(|value| value.get_ref().as_str());
    let texts = |key: &str| -> Option<Vec<&str>> {
        table.get(key)?.get_ref().as_array()?.iter().map(|text| text.get_ref().as_str()).collect()
    };
    match (table.len(), texts("days"), texts("dates"), text("from"), text("to")) {
        (1, Some(days), ..) => Exclusion::days_of_week(&days),
        (1, _, Some(dates), ..) => Exclusion::dates(&dates),
        (2, _, _, Some(from), Some(to)) => Exclusion::between(from, to),
        _ => Err(KINDS.to_owned()),
    }
}
