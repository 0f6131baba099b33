//! `[decisions]`: how a host records and replays what deciders answer.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeTable;

use crate::operations::manifest_file::{SECOND, TEN_YEARS};
use crate::operations::table::{Faults, Place, Section};
use crate::store::manifests::Setting;

const KEYS: [&str; 2] = ["recording", "replay_answers_for"];

/// Options of decisions. What is not stated keeps its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions {
    /// Whether decisions are recorded.
    pub recording: Option<bool>,
    /// How long an answer is replayed after a decider gave it; [`Setting::Clear`]: for as long as it is kept.
    pub replay_answers_for: Setting<Duration>,
}

impl Default for Decisions {
    fn default() -> Self {
        Self { recording: None, replay_answers_for: Setting::Keep }
    }
}

impl Decisions {
    /// The options stated. They hold for the host that runs, and none is stored.
    pub fn host_options(&self) -> Vec<&'static str> {
        let stated = [
            ("recording", self.recording.is_some()),
            ("replay_answers_for", self.replay_answers_for != Setting::Keep),
        ];
        stated.into_iter().filter(|(_, is_stated)| *is_stated).map(|(name, _)| name).collect()
    }

    pub(super) fn read<'t>(table: &'t DeTable<'t>, place: Place, faults: &mut Faults<'_>) -> Self {
        let section = Section::new(table, place, "decisions", &KEYS, faults);
        let key = "replay_answers_for";
        let replay_answers_for = match section.value(key).map(Spanned::get_ref) {
            Some(value) if value.as_str() == Some("max") => Setting::Clear,
            // A value that is wrong is a fault, and then nothing is stated at all.
            _ => {
                let read = section.duration(key, SECOND..=TEN_YEARS, faults);
                read.map_or(Setting::Keep, Setting::Set)
            }
        };
        Self { recording: section.boolean("recording", faults), replay_answers_for }
    }
}
