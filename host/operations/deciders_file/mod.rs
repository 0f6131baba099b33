//! The deciders of a host, as `trax.toml` states them.
//!
//! ```toml
//! [deciders.judge]
//! kind = "system-one"
//! endpoint = "https://models.example.com/v1/answers"
//! model = "judge-2"
//! api_key_env = "JUDGE_KEY"
//!
//! [decisions]
//! default = "judge"
//!
//! [decisions.questions]
//! Team = "judge"
//!
//! [decisions.shadows]
//! Urgency = ["judge"]
//! ```
//!
//! The file holds no keys: it names the environment variable or the file that has them.

mod cascades;
mod models;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::deciders::Decider;
use crate::deciders::host::HostDeciders;
use crate::deciders::scripted::ScriptedDecider;
use crate::operations::deciders_file::cascades::StatedCascade;
use crate::operations::error::OperationError;
use crate::operations::table::{Faults, Section, unknown};

/// How long a run may be made to wait for shadows.
const WAITS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_mins(10);

const KINDS: [(&str, Kind); 4] = [
    ("system-one", Kind::SystemOne),
    ("openai", Kind::OpenAi),
    ("cascade", Kind::Cascade),
    ("scripted", Kind::Scripted),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    SystemOne,
    OpenAi,
    Cascade,
    Scripted,
}

/// Reads the file. Other files that it names are beside it.
///
/// # Errors
/// [`OperationError::File`] when it cannot be read, [`OperationError::Stated`] names everything wrong with it.
pub fn read(path: &Path) -> Result<HostDeciders, OperationError> {
    let text = fs::read_to_string(path)
        .map_err(|source| OperationError::File { path: path.to_owned(), source })?;
    let mut faults = Faults::new(path, &text);
    let (document, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        faults.add_syntax(error);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let deciders = if errors.is_empty() {
        read_document(document.get_ref(), folder, &mut faults)
    } else {
        HostDeciders::default()
    };
    match faults.into_text() {
        Some(text) => Err(OperationError::Stated(text)),
        None => Ok(deciders),
    }
}

fn read_document(document: &DeTable<'_>, folder: &Path, faults: &mut Faults<'_>) -> HostDeciders {
    let file = Section::new(document, 0..0, "the file", &["deciders", "decisions"], faults);
    let mut host = HostDeciders::default();
    let mut cascades = BTreeMap::new();
    if let Some(table) = table(&file, "deciders", faults) {
        for (name, value) in table {
            let title = format!("decider '{}'", name.get_ref().escape_debug());
            let Some(table) = value.get_ref().as_table() else {
                faults.add(&value.span(), title, "expected a table");
                continue;
            };
            let name = name.get_ref().clone().into_owned();
            match read_decider(table, value, &title, folder, faults) {
                Some(Stated::Decider(decider)) => {
                    host.by_name.insert(name, decider);
                }
                Some(Stated::Cascade(cascade)) => {
                    cascades.insert(name, cascade);
                }
                None => {}
            }
        }
    }
    cascades::add(&mut host.by_name, cascades, faults);
    read_decisions(&file, &mut host, faults);
    host
}

enum Stated<'t> {
    Decider(Arc<Decider>),
    Cascade(StatedCascade<'t>),
}

fn read_decider<'t>(
    table: &'t DeTable<'t>,
    value: &Spanned<DeValue<'t>>,
    title: &str,
    folder: &Path,
    faults: &mut Faults<'_>,
) -> Option<Stated<'t>> {
    let keys = |kind: Kind| match kind {
        Kind::SystemOne => models::SYSTEM_ONE_KEYS.as_slice(),
        Kind::OpenAi => models::OPENAI_KEYS.as_slice(),
        Kind::Cascade => cascades::KEYS.as_slice(),
        Kind::Scripted => ["kind", "file"].as_slice(),
    };
    let stated = table.get("kind").and_then(|kind| kind.get_ref().as_str());
    let known = KINDS.iter().find(|(word, _)| Some(*word) == stated).map(|(_, kind)| *kind);
    let Some(kind) = known else {
        let any = Section::new(
            table,
            value.span(),
            title,
            &["kind"],
            &mut Faults::new(Path::new(""), ""),
        );
        if any.value("kind").is_none() {
            any.fault("kind", "it is missing; say which kind of decider it is", faults);
        } else {
            any.word("kind", &KINDS, faults);
        }
        return None;
    };
    let section = Section::new(table, value.span(), title, keys(kind), faults);
    let decider = match kind {
        Kind::SystemOne => models::system_one(&section, folder, faults),
        Kind::OpenAi => models::openai(&section, folder, faults),
        Kind::Scripted => scripted(&section, folder, faults),
        Kind::Cascade => return cascades::read(section, faults).map(Stated::Cascade),
    };
    decider.map(|decider| Stated::Decider(Arc::new(decider)))
}

fn scripted(section: &Section<'_>, folder: &Path, faults: &mut Faults<'_>) -> Option<Decider> {
    let file = required(section, "file", faults)?;
    let script = match fs::read_to_string(folder.join(file)) {
        Ok(text) => ScriptedDecider::from_json(&text).map_err(|error| error.to_string()),
        Err(error) => Err(format!("it cannot be read: {error}")),
    };
    match script {
        Ok(script) => Some(Decider::Scripted(script)),
        Err(problem) => {
            section.fault("file", problem, faults);
            None
        }
    }
}

fn read_decisions(file: &Section<'_>, host: &mut HostDeciders, faults: &mut Faults<'_>) {
    let Some(found) = table(file, "decisions", faults) else { return };
    let place = file.place_of("decisions");
    let keys = ["default", "questions", "shadows", "wait_for_shadows"];
    let section = Section::new(found, place, "[decisions]", &keys, faults);
    host.default = section.text("default", faults).map(str::to_owned);
    host.wait_for_shadows = section.duration("wait_for_shadows", WAITS, faults);
    if let Some(questions) = table(&section, "questions", faults) {
        for (key, value) in questions {
            let title = format!("[decisions.questions]: {}", key.get_ref().escape_debug());
            let Some(name) = value.get_ref().as_str() else {
                faults.add(&value.span(), title, "expected a decider's name in quotes");
                continue;
            };
            if !host.by_name.contains_key(name) {
                faults.add(&value.span(), title, no_decider(name, &host.by_name));
            }
            host.by_question.insert(key.get_ref().clone().into_owned(), name.to_owned());
        }
    }
    if let Some(shadows) = table(&section, "shadows", faults) {
        read_shadows(shadows, host, faults);
    }
    if let Some(name) = &host.default
        && !host.by_name.contains_key(name)
    {
        section.fault("default", no_decider(name, &host.by_name), faults);
    }
}

/// Names that are not of this file may be of deciders that a train ships.
fn read_shadows(table: &DeTable<'_>, host: &mut HostDeciders, faults: &mut Faults<'_>) {
    for (key, value) in table {
        let title = format!("[decisions.shadows]: {}", key.get_ref().escape_debug());
        let list = value.get_ref().as_array().map(|list| {
            list.iter().map(|name| name.get_ref().as_str().map(str::to_owned)).collect()
        });
        let Some(Some(names)) = list else {
            faults.add(&value.span(), title, "expected a list of deciders' names in quotes");
            continue;
        };
        let names: Vec<String> = names;
        let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
        if let Some((_, name)) = twice {
            let problem = format!("it names '{}' twice", name.escape_debug());
            faults.add(&value.span(), title, problem);
        }
        host.shadows.insert(key.get_ref().clone().into_owned(), names);
    }
}

fn no_decider(name: &str, known: &BTreeMap<String, Arc<Decider>>) -> String {
    let known: Vec<&str> = known.keys().map(String::as_str).collect();
    unknown("decider", name, &known)
}

fn table<'t>(section: &Section<'t>, key: &str, faults: &mut Faults<'_>) -> Option<&'t DeTable<'t>> {
    let found = section.value(key)?.get_ref().as_table();
    if found.is_none() {
        section.fault(key, "expected a table", faults);
    }
    found
}

/// A text that must be there.
fn required<'t>(section: &Section<'t>, key: &str, faults: &mut Faults<'_>) -> Option<&'t str> {
    if section.value(key).is_none() {
        section.fault(key, "it is missing", faults);
    }
    section.text(key, faults)
}
