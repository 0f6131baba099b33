//! Reading tables of TOML files so that every fault names its file, line and key, and all are found at once.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::operations::duration;

/// How alike two keys must be for one to be meant by the other, from 0 to 1.
const ALIKE: f64 = 0.6;

/// A place in a file's text, in bytes.
pub type Place = Range<usize>;

/// What is wrong with a file.
#[derive(Debug)]
pub struct Faults<'f> {
    path: &'f Path,
    text: &'f str,
    found: Vec<(usize, String)>,
}

impl<'f> Faults<'f> {
    /// None yet.
    pub fn new(path: &'f Path, text: &'f str) -> Self {
        Self { path, text, found: Vec::new() }
    }

    /// Notes a fault.
    pub fn add(&mut self, place: &Place, what: impl Display, problem: impl Display) {
        let line = self.line(place);
        self.found.push((line, format!("{}:{line}: {what}: {problem}", self.path.display())));
    }

    /// Notes that the text is no TOML.
    pub fn add_syntax(&mut self, error: &toml::de::Error) {
        let place = error.span().unwrap_or(0..0);
        let message = error.message().replace('\n', ", ");
        self.add(&place, "not TOML", message);
    }

    /// The line of a place, from 1.
    pub fn line(&self, place: &Place) -> usize {
        let before = self.text.as_bytes().iter().take(place.start);
        1 + before.filter(|&&byte| byte == b'\n').count()
    }

    /// The faults in the order of the file, one per line; nothing if there are none.
    pub fn into_text(mut self) -> Option<String> {
        self.found.sort_by_key(|(line, _)| *line);
        let lines: Vec<_> = self.found.into_iter().map(|(_, text)| text).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// A table whose keys are known.
#[derive(Debug, Clone)]
pub struct Section<'t> {
    table: &'t DeTable<'t>,
    /// Where it stands.
    pub place: Place,
    /// What it is, for faults: `manifest 'hello'`.
    pub title: String,
}

impl<'t> Section<'t> {
    /// A table, in which every other key is a fault.
    pub fn new(
        table: &'t DeTable<'t>,
        place: Place,
        title: impl Into<String>,
        keys: &[&str],
        faults: &mut Faults<'_>,
    ) -> Self {
        let section = Self { table, place, title: title.into() };
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                faults.add(&key.span(), &section.title, unknown("key", name, keys));
            }
        }
        section
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Where a key's value stands; where the table does, if it is absent.
    pub fn place_of(&self, key: &str) -> Place {
        self.value(key).map_or_else(|| self.place.clone(), Spanned::span)
    }

    /// Notes a fault of a key.
    pub fn fault(&self, key: &str, problem: impl Display, faults: &mut Faults<'_>) {
        faults.add(&self.place_of(key), format_args!("{}: {key}", self.title), problem);
    }

    /// A text.
    pub fn text(&self, key: &str, faults: &mut Faults<'_>) -> Option<&'t str> {
        let value = self.value(key)?.get_ref();
        let text = value.as_str();
        if text.is_none() {
            self.expected(key, "text in quotes", value, faults);
        }
        text
    }

    /// A list of texts.
    pub fn texts(&self, key: &str, faults: &mut Faults<'_>) -> Option<Vec<String>> {
        let value = self.value(key)?.get_ref();
        let texts = value.as_array().and_then(|items| {
            items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        });
        if texts.is_none() {
            self.expected(key, "a list of texts in quotes", value, faults);
        }
        texts
    }

    /// `true` or `false`.
    pub fn boolean(&self, key: &str, faults: &mut Faults<'_>) -> Option<bool> {
        let value = self.value(key)?.get_ref();
        let boolean = value.as_bool();
        if boolean.is_none() {
            self.expected(key, "true or false", value, faults);
        }
        boolean
    }

    /// A whole number in a range.
    pub fn whole<T: TryFrom<i64>>(
        &self,
        key: &str,
        range: RangeInclusive<i64>,
        faults: &mut Faults<'_>,
    ) -> Option<T> {
        let value = self.value(key)?.get_ref();
        let number = value.as_integer().and_then(|integer| {
            i64::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .filter(|n| range.contains(n))
        });
        let converted = number.and_then(|number| T::try_from(number).ok());
        if converted.is_none() {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.expected(key, &expected, value, faults);
        }
        converted
    }

    /// A number of at least 1.
    pub fn factor(&self, key: &str, faults: &mut Faults<'_>) -> Option<f64> {
        let is_factor = |number: f64| number.is_finite() && number >= 1.0;
        self.number(key, "a number of at least 1", is_factor, faults)
    }

    /// A number from 0 to 1.
    pub fn share(&self, key: &str, faults: &mut Faults<'_>) -> Option<f64> {
        self.number(key, "a number from 0 to 1", |number| (0.0..=1.0).contains(&number), faults)
    }

    fn number(
        &self,
        key: &str,
        expected: &str,
        fits: impl Fn(f64) -> bool,
        faults: &mut Faults<'_>,
    ) -> Option<f64> {
        let value = self.value(key)?.get_ref();
        let text = match value {
            DeValue::Integer(integer) if integer.radix() == 10 => Some(integer.as_str()),
            DeValue::Float(float) => Some(float.as_str()),
            _ => None,
        };
        let number = text.and_then(|text| text.parse::<f64>().ok()).filter(|number| fits(*number));
        if number.is_none() {
            self.expected(key, expected, value, faults);
        }
        number
    }

    /// A duration in a range.
    pub fn duration(
        &self,
        key: &str,
        range: RangeInclusive<Duration>,
        faults: &mut Faults<'_>,
    ) -> Option<Duration> {
        let value = self.value(key)?.get_ref();
        let Some(text) = value.as_str() else {
            self.expected(key, "a duration in quotes, such as \"30s\"", value, faults);
            return None;
        };
        let Some(duration) = duration::parse(text) else {
            let problem = format!(
                "'{}' is no duration; write whole numbers with units, such as \"30s\", \"5m\", \"1h30m\" or \"2d\"",
                text.escape_debug()
            );
            self.fault(key, problem, faults);
            return None;
        };
        if !range.contains(&duration) {
            let (least, most) =
                (duration::written(*range.start()), duration::written(*range.end()));
            self.fault(key, format!("'{text}' is not from {least} to {most}"), faults);
            return None;
        }
        Some(duration)
    }

    /// One of several words.
    pub fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        faults: &mut Faults<'_>,
    ) -> Option<T> {
        let text = self.text(key, faults)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.fault(key, unknown("value", text, &known), faults);
        }
        found.map(|(_, meaning)| *meaning)
    }

    fn expected(&self, key: &str, expected: &str, found: &DeValue<'_>, faults: &mut Faults<'_>) {
        let found = match found {
            DeValue::Integer(integer) => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            other => other.type_str(),
        };
        self.fault(key, format!("expected {expected}, found {found}"), faults);
    }
}

/// Says that a name is not known, and which one was probably meant, or which there are.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let shown: String = name.escape_debug().take(100).collect();
    let likeness = |other: &&str| {
        // A part that was left out, such as a prefix, weighs little to a reader.
        let is_part =
            other.len() > 3 && name.len() > 3 && (other.contains(name) || name.contains(*other));
        if is_part { 1.0 } else { strsim::normalized_damerau_levenshtein(name, other) }
    };
    let nearest = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|nearest| likeness(nearest) >= ALIKE) {
        Some(nearest) => format!("unknown {what} '{shown}'; did you mean '{nearest}'?"),
        None if known.is_empty() => format!("unknown {what} '{shown}'; there is none"),
        None => format!("unknown {what} '{shown}'; there is {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_answered_with_the_one_that_was_meant() {
        let known = ["every", "max_retries", "retry_delay"];
        let cases = [
            ("evry", "unknown key 'evry'; did you mean 'every'?"),
            ("max_retry", "unknown key 'max_retry'; did you mean 'max_retries'?"),
            (
                "default_retry_delay",
                "unknown key 'default_retry_delay'; did you mean 'retry_delay'?",
            ),
            ("colour", "unknown key 'colour'; there is every, max_retries, retry_delay"),
        ];
        for (name, expected) in cases {
            assert_eq!(unknown("key", name, &known), expected);
        }
        assert_eq!(unknown("train", "a", &[]), "unknown train 'a'; there is none");
    }
}
