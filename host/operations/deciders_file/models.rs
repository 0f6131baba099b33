//! Deciders that ask a model over HTTP.

use std::env;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::deciders::Decider;
use crate::deciders::model_client::ClientError;
use crate::deciders::model_client::settings::{ApiKey, MAX_RETRY_DELAY_MAX, OPTIONS_MAX, Settings};
use crate::deciders::openai::OpenAi;
use crate::deciders::system_one::SystemOne;
use crate::operations::deciders_file::required;
use crate::operations::table::{Faults, Section};

/// The keys of a decider that asks a model, and those of its kind alone.
macro_rules! keys {
    ($($own:literal),*) => {
        [
            "kind", "endpoint", "model", "allow_floating_model", "api_key_env", "api_key_file",
            "attempt_timeout", "max_attempts", "retry_delay", "max_retry_delay", "max_options",
            "max_questions", "max_concurrent_requests", $($own),*
        ]
    };
}

pub(super) const SYSTEM_ONE_KEYS: [&str; 14] = keys!["preset"];
pub(super) const OPENAI_KEYS: [&str; 14] = keys!["log_probabilities"];

const HOUR: Duration = Duration::from_hours(1);
const COUNT_MAX: i64 = 10_000;

pub(super) fn system_one(
    section: &Section<'_>,
    folder: &Path,
    faults: &mut Faults<'_>,
) -> Option<Decider> {
    let endpoint = required(section, "endpoint", faults);
    let is_nimble = section.word("preset", &[("nimble", true)], faults).unwrap_or(false);
    let model =
        if is_nimble { section.text("model", faults) } else { required(section, "model", faults) };
    let mut settings =
        if is_nimble { Settings::nimble(endpoint?) } else { Settings::new(endpoint?, model?) };
    if let Some(model) = model {
        model.clone_into(&mut settings.model);
    }
    patience(section, &mut settings, faults);
    settings.api_key = api_key(section, folder, faults)?;
    made(section, SystemOne::new(settings), faults).map(Decider::SystemOne)
}

pub(super) fn openai(
    section: &Section<'_>,
    folder: &Path,
    faults: &mut Faults<'_>,
) -> Option<Decider> {
    let endpoint = required(section, "endpoint", faults);
    let model = required(section, "model", faults);
    let mut settings = Settings::new(endpoint?, model?);
    patience(section, &mut settings, faults);
    settings.api_key = api_key(section, folder, faults)?;
    let asks = section.boolean("log_probabilities", faults).unwrap_or(true);
    made(section, OpenAi::new(settings, asks), faults).map(Decider::OpenAi)
}

fn made<T>(
    section: &Section<'_>,
    made: Result<T, ClientError>,
    faults: &mut Faults<'_>,
) -> Option<T> {
    made.map_err(|problem| faults.add(&section.place, &section.title, problem)).ok()
}

/// The settings that are stated; the others stay as they are.
fn patience(section: &Section<'_>, settings: &mut Settings, faults: &mut Faults<'_>) {
    let milli = Duration::from_millis(1);
    let options_max = i64::try_from(OPTIONS_MAX).unwrap_or(i64::MAX);
    let Settings { attempt_timeout, max_attempts, retry_delay, max_retry_delay, .. } = settings;
    set(attempt_timeout, section.duration("attempt_timeout", milli..=HOUR, faults));
    set(max_attempts, section.whole("max_attempts", 1..=100, faults));
    set(retry_delay, section.duration("retry_delay", milli..=HOUR, faults));
    set(max_retry_delay, section.duration("max_retry_delay", milli..=MAX_RETRY_DELAY_MAX, faults));
    set(&mut settings.max_options, section.whole("max_options", 2..=options_max, faults));
    set(&mut settings.max_questions, section.whole("max_questions", 1..=COUNT_MAX, faults));
    set(&mut settings.allows_floating_model, section.boolean("allow_floating_model", faults));
    let most = section.whole("max_concurrent_requests", 1..=COUNT_MAX, faults);
    settings.max_concurrent_requests = most.or(settings.max_concurrent_requests);
}

fn set<T>(setting: &mut T, stated: Option<T>) {
    if let Some(stated) = stated {
        *setting = stated;
    }
}

/// The key, from where the file says that it is. `None`: it says so, and there is none.
#[expect(clippy::option_option, reason = "no key is stated, or one that cannot be had")]
fn api_key(
    section: &Section<'_>,
    folder: &Path,
    faults: &mut Faults<'_>,
) -> Option<Option<ApiKey>> {
    let variable = section.text("api_key_env", faults);
    let file = section.text("api_key_file", faults);
    let (key, problem) = match (variable, file) {
        (None, None) => return Some(None),
        (Some(_), Some(_)) => {
            section.fault("api_key_file", "there is an api_key_env too; state one of them", faults);
            return None;
        }
        (Some(variable), None) => {
            let key = env::var(variable).ok();
            (key, ("api_key_env", "the environment variable is not set, or holds no key"))
        }
        (None, Some(file)) => {
            let key = fs::read_to_string(folder.join(file)).ok();
            (key, ("api_key_file", "the file cannot be read, or holds no key"))
        }
    };
    let key = key.and_then(|text| ApiKey::new(&text));
    if key.is_none() {
        section.fault(problem.0, problem.1, faults);
        return None;
    }
    Some(key)
}
