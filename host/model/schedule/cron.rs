//! Cron expressions of 5 or 6 fields, in a time zone.
//!
//! When the clock is moved: an expression that names one time of day (one second, minute and hour) runs exactly once on
//! that day, right after the gap when its time is skipped, and at the first of two when its time comes twice. Any other
//! expression runs whenever the clock says so: not in a gap, and in both halves of what comes twice.

use std::time::Duration;

use croner::parser::{CronParser, Seconds, Year};
use thiserror::Error;

use super::zone::{Zone, of_jiff};
use crate::model::timestamp::Timestamp;

/// The longest expression.
const LETTERS_MAX: usize = 200;
const SECOND: Duration = Duration::from_secs(1);

/// A field of an expression: its name, its numbers, and words for some of them.
struct Field {
    name: &'static str,
    numbers: std::ops::RangeInclusive<u8>,
    words: &'static [(&'static str, u8)],
}

const FIELDS: [Field; 6] = [
    Field { name: "second", numbers: 0..=59, words: &[] },
    Field { name: "minute", numbers: 0..=59, words: &[] },
    Field { name: "hour", numbers: 0..=23, words: &[] },
    Field { name: "day of the month", numbers: 1..=31, words: &[] },
    Field {
        name: "month",
        numbers: 1..=12,
        words: &[
            ("JAN", 1),
            ("FEB", 2),
            ("MAR", 3),
            ("APR", 4),
            ("MAY", 5),
            ("JUN", 6),
            ("JUL", 7),
            ("AUG", 8),
            ("SEP", 9),
            ("OCT", 10),
            ("NOV", 11),
            ("DEC", 12),
        ],
    },
    Field {
        name: "day of the week",
        // 7 is Sunday too.
        numbers: 0..=7,
        words: &[
            ("SUN", 0),
            ("MON", 1),
            ("TUE", 2),
            ("WED", 3),
            ("THU", 4),
            ("FRI", 5),
            ("SAT", 6),
        ],
    },
];

/// How many days each month can have.
const MONTH_DAYS: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Why a text is no cron expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CronFault(String);

/// A cron expression in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    pattern: Box<croner::Cron>,
    zone: Zone,
}

impl Cron {
    /// Reads an expression: minute, hour, day of the month, month, day of the week, with the second in front if there
    /// are six. A field has numbers, ranges `1-5`, lists `1,3`, steps `*/15` and `*`; months and days of the week have
    /// names.
    ///
    /// # Errors
    /// What is wrong with it, also when it never occurs.
    pub fn parse(expression: &str, zone: Zone) -> Result<Self, CronFault> {
        if expression.len() > LETTERS_MAX {
            return Err(CronFault(format!("is longer than {LETTERS_MAX} letters")));
        }
        let texts: Vec<&str> = expression.split_ascii_whitespace().collect();
        let fields = match texts.len() {
            5 => &FIELDS[1..],
            6 => &FIELDS[..],
            count => {
                return Err(CronFault(format!(
                    "has {count} fields; an expression has 5 (minute, hour, day of the month, month, day of the week), \
                     or 6 with the second in front"
                )));
            }
        };
        let mut plain = Vec::with_capacity(texts.len());
        let mut sets = Vec::with_capacity(texts.len());
        for (field, text) in fields.iter().zip(&texts) {
            let (text, set) = field.read(text).map_err(CronFault)?;
            plain.push(text);
            sets.push(set);
        }
        if let [.., days, months, _] = sets[..]
            && plain.last().is_some_and(|weekdays| weekdays == "*")
            && !has_date(days, months)
        {
            return Err(CronFault("never occurs: no such month has such a day".to_owned()));
        }
        let parser =
            CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let pattern =
            parser.parse(&plain.join(" ")).map_err(|fault| CronFault(fault.to_string()))?;
        Ok(Self { pattern: Box::new(pattern), zone })
    }

    /// Its zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The first occurrence after an instant. `None`: the calendar ends before it.
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        let next = self.pattern.find_next_occurrence(&self.zone.at(instant), false).ok()?;
        // Whole seconds: an instant with a part of a second must not find its own second.
        of_jiff(next.timestamp()).filter(|next| *next > instant)
    }

    /// The last occurrence after `after` and up to `until`, found by halving what lies between.
    pub fn latest_in(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let is_in = |next: &Timestamp| *next <= until;
        let mut latest = self.next_after(after).filter(is_in)?;
        // Nothing occurs after `late` and up to `until`; `latest` is the first occurrence after `early`.
        let (mut early, mut late) = (after, until);
        while late.since(early) > SECOND {
            let middle = early.saturating_add(late.since(early) / 2);
            if let Some(next) = self.next_after(middle).filter(is_in) {
                (early, latest) = (middle, next);
            } else {
                late = middle;
            }
        }
        Some(latest)
    }
}

/// Whether one of the days exists in one of the months.
fn has_date(days: u64, months: u64) -> bool {
    let mut lengths = (1_u8..).zip(MONTH_DAYS);
    // Below the bit of the day after the last one.
    lengths.any(|(month, length)| months >> month & 1 == 1 && days & ((1 << (length + 1)) - 1) != 0)
}

impl Field {
    /// The text with numbers for words, and the numbers it stands for as bits.
    fn read(&self, text: &str) -> Result<(String, u64), String> {
        let mut set = 0;
        let mut plain = Vec::new();
        for part in text.split(',') {
            let (text, bits) = self.read_part(part).map_err(|problem| {
                let part: String = part.escape_debug().take(40).collect();
                format!("the {} '{part}' {problem}", self.name)
            })?;
            set |= bits;
            plain.push(text);
        }
        Ok((plain.join(","), set))
    }

    /// One of the parts between commas.
    fn read_part(&self, part: &str) -> Result<(String, u64), String> {
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => (range, Some(step)),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (*self.numbers.start(), *self.numbers.end()),
            None => (self.number(range)?, self.number(range)?),
            Some((first, last)) => {
                let (first, last) = (self.number(first)?, self.number(last)?);
                // A week may be said to end on Sunday.
                let is_to_sunday = self.numbers == (0..=7) && last == 0 && first > 0;
                (first, if is_to_sunday { 7 } else { last })
            }
        };
        if first > last {
            return Err("is a range that ends before it starts".to_owned());
        }
        let by = match step {
            None => 1,
            Some(_) if first == last => {
                return Err("has a step without a range; write `*/N` or `A-B/N`".to_owned());
            }
            Some(step) => step
                .parse()
                .ok()
                .filter(|by| (1..=*self.numbers.end()).contains(by))
                .ok_or_else(|| format!("has no step from 1 to {}", self.numbers.end()))?,
        };
        let set = (first..=last).step_by(by.into()).fold(0, |set, number| set | 1_u64 << number);
        let mut plain = match range {
            "*" => "*".to_owned(),
            _ if range.contains('-') => format!("{first}-{last}"),
            _ => first.to_string(),
        };
        if step.is_some() {
            plain = format!("{plain}/{by}");
        }
        Ok((plain, set))
    }

    fn number(&self, text: &str) -> Result<u8, String> {
        let word = self.words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        if let Some((_, number)) = word {
            return Ok(*number);
        }
        let is_number = !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
        if !is_number {
            return Err("is not made of numbers, `*`, `,`, `-` and `/`".to_owned());
        }
        let (least, most) = (self.numbers.start(), self.numbers.end());
        text.parse()
            .ok()
            .filter(|number| self.numbers.contains(number))
            .ok_or_else(|| format!("is not from {least} to {most}"))
    }
}
