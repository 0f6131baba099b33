//! Manifest files: TOML that states manifests, their groups, and options of the scheduler.
//!
//! ```toml
//! [scheduler]
//! retry_delay = "5m"
//!
//! [[manifest]]
//! id = "nightly-report"
//! train = "report"
//! every = "1d"
//! input = { region = "north" }
//! ```
//!
//! What is not stated stays as it is stored. A file is read whole: either all of it is right, or every fault is named.

pub mod agreement;
mod decisions;
mod input;
mod schedule;
mod scheduler;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::model::json::Json;
use crate::model::name::is_label;
use crate::operations::error::OperationError;
pub use crate::operations::manifest_file::decisions::Decisions;
use crate::operations::manifest_file::input::read_input;
pub use crate::operations::manifest_file::schedule::{StatedSchedule, StatedTimer};
pub use crate::operations::manifest_file::scheduler::Scheduler;
use crate::operations::table::{Faults, Place, Section};
use crate::store::MisfirePolicy;
use crate::store::manifests::Setting;

/// Ten years: the longest time that a setting may name.
const TEN_YEARS: Duration = Duration::from_hours(3_650 * 24);
const SECOND: Duration = Duration::from_secs(1);
const PRIORITIES: std::ops::RangeInclusive<i64> = 0..=31;

const MISFIRES: [(&str, MisfirePolicy); 2] =
    [("fire_once_now", MisfirePolicy::FireOnceNow), ("do_nothing", MisfirePolicy::DoNothing)];

const MANIFEST_KEYS: [&str; 21] = [
    "id",
    "train",
    "every",
    "cron",
    "time_zone",
    "once",
    "after",
    "dormant",
    "exclude",
    "variance",
    "input",
    "input_file",
    "enabled",
    "group",
    "priority",
    "max_retries",
    "failure_window",
    "timeout",
    "misfire",
    "misfire_threshold",
    "replay_decisions_on_retry",
];

const GROUP_KEYS: [&str; 4] = ["name", "max_active_jobs", "priority", "enabled"];

/// What a file states.
#[derive(Debug, Clone)]
pub struct ManifestFile {
    /// Which application states it: only that one removes what is no longer stated. No file says so itself.
    pub owner: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// Its text, for the lines of faults.
    pub text: String,
    /// Options of the scheduler.
    pub scheduler: Scheduler,
    /// Options of decisions.
    pub decisions: Decisions,
    /// Groups, in order.
    pub groups: Vec<StatedGroup>,
    /// Manifests, in order.
    pub manifests: Vec<StatedManifest>,
}

/// A group of manifests.
#[derive(Debug, Clone)]
pub struct StatedGroup {
    /// Its name.
    pub name: String,
    /// How many of its runs may be active.
    pub max_active_jobs: Setting<i32>,
    /// Groups of a higher one go first.
    pub priority: Option<i16>,
    /// Whether anything of it is dispatched.
    pub is_enabled: Option<bool>,
}

/// A manifest.
#[derive(Debug, Clone)]
pub struct StatedManifest {
    /// The name by which it is stated again.
    pub id: String,
    /// The train it runs.
    pub train: String,
    /// When it runs.
    pub schedule: StatedSchedule,
    /// The input of its runs; an empty object if nothing is stated.
    pub input: Json,
    /// Whether it is scheduled.
    pub is_enabled: Option<bool>,
    /// Its group, if not one of its own.
    pub group: Option<String>,
    /// From 0 to 31.
    pub priority: Option<i16>,
    /// How many retries before a dead letter.
    pub max_retries: Option<i32>,
    /// How long a failure counts.
    pub failure_window_seconds: Setting<i32>,
    /// How long a run may take.
    pub timeout_seconds: Setting<i32>,
    /// What happens to a missed occurrence.
    pub misfire: Option<MisfirePolicy>,
    /// How late is not missed.
    pub misfire_threshold_seconds: Option<i32>,
    /// Whether a retry replays the answers of the run that failed.
    pub replay_decisions_on_retry: Option<bool>,
    /// Where it names its train.
    pub train_place: Place,
    /// Where its input stands.
    pub input_place: Place,
}

/// Reads a file.
///
/// # Errors
/// [`OperationError::File`], or [`OperationError::Stated`] with every fault.
pub fn read(path: &Path) -> Result<ManifestFile, OperationError> {
    let bytes =
        fs::read(path).map_err(|source| OperationError::File { path: path.to_owned(), source })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let problem = format!("{} is not UTF-8 text from byte {at} on", path.display());
        OperationError::Stated(problem)
    })?;
    parse(path, text)
}

/// Reads the text of a file.
pub(in crate::operations) fn parse(
    path: &Path,
    text: String,
) -> Result<ManifestFile, OperationError> {
    let mut faults = Faults::new(path, &text);
    let (document, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        faults.add_syntax(error);
    }
    let read = if errors.is_empty() {
        read_document(document.get_ref(), path, &mut faults)
    } else {
        Document::default()
    };
    if let Some(found) = faults.into_text() {
        return Err(OperationError::Stated(found));
    }
    let Document { scheduler, decisions, groups, manifests } = read;
    drop(document);
    let path = path.to_owned();
    Ok(ManifestFile { owner: None, path, text, scheduler, decisions, groups, manifests })
}

/// What a text states.
#[derive(Default)]
struct Document {
    scheduler: Scheduler,
    decisions: Decisions,
    groups: Vec<StatedGroup>,
    manifests: Vec<StatedManifest>,
}

/// The table `[key]`, if there is one.
fn table<'t>(
    root: &Section<'t>,
    key: &str,
    faults: &mut Faults<'_>,
) -> Option<(Place, &'t DeTable<'t>)> {
    let value = root.value(key)?;
    let DeValue::Table(table) = value.get_ref() else {
        root.fault(key, format!("is no table; write `[{key}]`"), faults);
        return None;
    };
    Some((value.span(), table))
}

fn read_document(document: &DeTable<'_>, path: &Path, faults: &mut Faults<'_>) -> Document {
    let keys = ["scheduler", "decisions", "group", "manifest"];
    let root = Section::new(document, 0..0, "the file", &keys, faults);
    let scheduler = table(&root, "scheduler", faults)
        .map(|(place, table)| Scheduler::read(table, place, faults))
        .unwrap_or_default();
    let decisions = table(&root, "decisions", faults)
        .map(|(place, table)| Decisions::read(table, place, faults))
        .unwrap_or_default();
    let mut groups = Vec::new();
    let mut names = HashMap::new();
    for (place, table) in tables(&root, "group", faults) {
        let Some(group) = read_group(table, place.clone(), faults) else { continue };
        if let Some(first) = names.insert(group.name.clone(), place.clone()) {
            repeated(&place, &first, "group", &group.name, faults);
        }
        groups.push(group);
    }
    let mut manifests = Vec::new();
    let mut ids = HashMap::new();
    for (place, table) in tables(&root, "manifest", faults) {
        let Some(manifest) = read_manifest(table, place.clone(), path, faults) else { continue };
        if let Some(first) = ids.insert(manifest.id.clone(), place.clone()) {
            repeated(&place, &first, "manifest", &manifest.id, faults);
        }
        manifests.push(manifest);
    }
    Document { scheduler, decisions, groups, manifests }
}

/// The tables of a list `[[key]]`, with their places.
fn tables<'t>(
    root: &Section<'t>,
    key: &str,
    faults: &mut Faults<'_>,
) -> Vec<(Place, &'t DeTable<'t>)> {
    let Some(value) = root.value(key) else { return Vec::new() };
    let DeValue::Array(items) = value.get_ref() else {
        root.fault(key, format!("is no list of tables; write `[[{key}]]`"), faults);
        return Vec::new();
    };
    let mut tables = Vec::new();
    for item in items {
        match item.get_ref() {
            DeValue::Table(table) => tables.push((item.span(), table)),
            other => {
                let problem = format!("expected a table, found {}", other.type_str());
                faults.add(&item.span(), key, problem);
            }
        }
    }
    tables
}

fn repeated(place: &Place, first: &Place, what: &str, name: &str, faults: &mut Faults<'_>) {
    let line = faults.line(first);
    let problem = format!("is stated in line {line} already; keep one of them");
    faults.add(place, format_args!("{what} '{}'", name.escape_debug()), problem);
}

/// The name of a table, which every fault of it then gives.
fn name(section: &Section<'_>, key: &str, faults: &mut Faults<'_>) -> Option<String> {
    if section.value(key).is_none() {
        section.fault(key, format!("is missing; write `{key} = \"...\"`"), faults);
        return None;
    }
    let text = section.text(key, faults)?;
    if !is_label(text) {
        let problem = "a name has 1 to 100 characters, without '/', '#' and control characters";
        section.fault(key, problem, faults);
        return None;
    }
    Some(text.to_owned())
}

/// A table with its name in the title, so that faults of unknown keys give it too.
fn named<'t>(
    table: &'t DeTable<'t>,
    place: Place,
    what: &str,
    key: &str,
    keys: &[&str],
    faults: &mut Faults<'_>,
) -> Section<'t> {
    let name = table.get(key).map(Spanned::get_ref).and_then(DeValue::as_str);
    let title = name.map_or_else(
        || what.to_owned(),
        |name| format!("{what} '{}'", name.escape_debug().take(100).collect::<String>()),
    );
    Section::new(table, place, title, keys, faults)
}

fn read_group<'t>(
    table: &'t DeTable<'t>,
    place: Place,
    faults: &mut Faults<'_>,
) -> Option<StatedGroup> {
    let section = named(table, place, "group", "name", &GROUP_KEYS, faults);
    let max_active_jobs = or_none(&section, "max_active_jobs", faults, |section, faults| {
        section.whole("max_active_jobs", 0..=i64::from(i32::MAX), faults)
    });
    let priority = section.whole("priority", PRIORITIES, faults);
    let is_enabled = section.boolean("enabled", faults);
    let name = name(&section, "name", faults)?;
    Some(StatedGroup { name, max_active_jobs, priority, is_enabled })
}

fn read_manifest<'t>(
    table: &'t DeTable<'t>,
    place: Place,
    path: &Path,
    faults: &mut Faults<'_>,
) -> Option<StatedManifest> {
    let section = named(table, place, "manifest", "id", &MANIFEST_KEYS, faults);
    let schedule = StatedSchedule::read(&section, faults);
    let (input, input_place) = read_input(&section, path, faults);
    let is_enabled = section.boolean("enabled", faults);
    let priority = section.whole("priority", PRIORITIES, faults);
    let max_retries = section.whole("max_retries", 0..=i64::from(i32::MAX), faults);
    let failure_window_seconds = or_none(&section, "failure_window", faults, |section, faults| {
        whole_seconds(section, "failure_window", SECOND, faults)
    });
    let timeout_seconds = or_none(&section, "timeout", faults, |section, faults| {
        whole_seconds(section, "timeout", SECOND, faults)
    });
    let misfire = section.word("misfire", &MISFIRES, faults);
    let misfire_threshold_seconds =
        whole_seconds(&section, "misfire_threshold", Duration::ZERO, faults);
    let replay_decisions_on_retry = section.boolean("replay_decisions_on_retry", faults);
    let group = section.value("group").and_then(|_| name(&section, "group", faults));
    let train_place = section.place_of("train");
    let (id, train) = (name(&section, "id", faults), name(&section, "train", faults));
    Some(StatedManifest {
        id: id?,
        train: train?,
        schedule,
        input,
        is_enabled,
        group,
        priority,
        max_retries,
        failure_window_seconds,
        timeout_seconds,
        misfire,
        misfire_threshold_seconds,
        replay_decisions_on_retry,
        train_place,
        input_place,
    })
}

/// A setting that may be stated as `"none"`.
fn or_none<T>(
    section: &Section<'_>,
    key: &str,
    faults: &mut Faults<'_>,
    read: impl FnOnce(&Section<'_>, &mut Faults<'_>) -> Option<T>,
) -> Setting<T> {
    match section.value(key).map(Spanned::get_ref) {
        Some(value) if value.as_str() == Some("none") => Setting::Clear,
        // A value that is wrong is a fault, and then nothing is stated at all.
        _ => read(section, faults).map_or(Setting::Keep, Setting::Set),
    }
}

fn whole_seconds(
    section: &Section<'_>,
    key: &str,
    least: Duration,
    faults: &mut Faults<'_>,
) -> Option<i32> {
    let duration = section.duration(key, least..=TEN_YEARS, faults)?;
    if duration.subsec_nanos() > 0 {
        section.fault(key, "has a part of a second; write whole seconds", faults);
    }
    i32::try_from(duration.as_secs()).ok()
}
