//! The input of a manifest: a TOML value as JSON, or a JSON file beside the manifest file.

use std::fs;
use std::path::Path;

use toml::de::DeValue;

use crate::model::json::{DEPTH_MAX, Json};
use crate::operations::table::{Faults, Place, Section};

/// The input of a manifest and where it stands. Absent, it is an empty object.
pub(super) fn read_input(
    section: &Section<'_>,
    path: &Path,
    faults: &mut Faults<'_>,
) -> (Json, Place) {
    let empty = || Json::Object(Vec::new());
    if section.value("input").is_some() && section.value("input_file").is_some() {
        section.fault("input_file", "stands beside `input`; keep one of them", faults);
        return (empty(), section.place.clone());
    }
    if let Some(value) = section.value("input") {
        let input = json(value.get_ref(), 0).unwrap_or_else(|problem| {
            section.fault("input", problem, faults);
            empty()
        });
        return (input, value.span());
    }
    let place = section.place_of("input_file");
    let Some(file) = section.text("input_file", faults) else { return (empty(), place) };
    // Relative to the manifest file, so that it does not matter where trax was started.
    let file = path.parent().unwrap_or(Path::new("")).join(file);
    let read = fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))
        .and_then(|text| {
            Json::parse(&text).map_err(|error| format!("{} is not JSON: {error}", file.display()))
        });
    let input = read.unwrap_or_else(|problem| {
        section.fault("input_file", problem, faults);
        empty()
    });
    (input, place)
}

/// A TOML value as JSON. Integers keep every digit.
fn json(value: &DeValue<'_>, depth: usize) -> Result<Json, String> {
    if depth >= DEPTH_MAX {
        return Err(format!("nests deeper than {DEPTH_MAX} levels"));
    }
    match value {
        DeValue::String(text) if text.contains('\0') => {
            Err("holds NUL (U+0000), which cannot be stored; remove it".to_owned())
        }
        DeValue::String(text) => Ok(Json::String(text.clone().into_owned())),
        DeValue::Integer(integer) => {
            let text = integer.as_str().trim_start_matches('+');
            if integer.radix() == 10 {
                return Ok(Json::Number(text.to_owned()));
            }
            let number = u64::from_str_radix(text, integer.radix());
            number
                .map(|number| Json::Number(number.to_string()))
                .map_err(|_| format!("holds the number '{text}', which has more than 64 bits"))
        }
        DeValue::Float(float) => {
            let text = float.as_str().trim_start_matches('+');
            // TOML allows what JSON has no number for: `inf` and `nan`.
            match Json::parse(text) {
                Ok(number) => Ok(number),
                Err(_) => Err(format!("holds the number '{text}', which JSON does not have")),
            }
        }
        DeValue::Boolean(truth) => Ok(Json::Bool(*truth)),
        DeValue::Datetime(instant) => {
            Err(format!("holds an instant; write it as text: \"{instant}\""))
        }
        DeValue::Array(items) => {
            let items = items.iter().map(|item| json(item.get_ref(), depth + 1));
            Ok(Json::Array(items.collect::<Result<_, _>>()?))
        }
        DeValue::Table(members) => {
            let members = members.iter().map(|(name, member)| {
                Ok((name.get_ref().clone().into_owned(), json(member.get_ref(), depth + 1)?))
            });
            Ok(Json::object(members.collect::<Result<Vec<_>, String>>()?))
        }
    }
}
