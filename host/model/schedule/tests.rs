//! Tests of schedules: tables of cases a person can check, and the rules as they are written against the search.

use proptest::prelude::*;

use super::exclusion::is_excluded;
use super::*;

const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond()).unwrap()
}

/// A time of the first of June 2026 in UTC.
fn june(time: &str) -> Timestamp {
    at(&format!("2026-06-01T{time}Z"))
}

fn zone(name: &str) -> Zone {
    Zone::of_name(name).unwrap()
}

fn cron(expression: &str, zone_name: &str) -> Cron {
    Cron::parse(expression, zone(zone_name)).unwrap()
}

fn schedule(timer: Timer, misfire: Misfire) -> Schedule {
    Schedule { timer, misfire, exclusions: Vec::new(), zone: Zone::UTC }
}

fn succeeded(at: Timestamp) -> Anchors {
    Anchors { last_success: Some(at), ..Anchors::default() }
}

/// The next occurrences after an instant, as the clock of the zone shows them.
fn occurrences(cron: &Cron, after: &str, count: usize) -> Vec<String> {
    let mut instant = at(after);
    let mut shown = Vec::new();
    for _ in 0..count {
        instant = cron.next_after(instant).unwrap();
        shown.push(cron.zone().shown(instant));
    }
    shown
}

/// M11, M12: an interval counts from the last success, or from a later cancellation, which ignores what was stored.
#[test]
fn intervals_count_from_the_latest_anchor() {
    let five = schedule(Timer::Interval(5 * MINUTE), Misfire::FireOnceNow);
    let cases = [
        ((None, None, None), "12:00:00"),
        ((Some("10:00:00"), None, None), "10:05:00"),
        ((Some("10:00:00"), None, Some("10:05:20")), "10:05:20"),
        ((Some("10:00:00"), Some("09:50:00"), Some("10:05:20")), "10:05:20"),
        ((Some("10:00:00"), Some("10:02:00"), Some("10:05:20")), "10:07:00"),
        ((None, Some("10:02:00"), None), "10:07:00"),
        ((Some("11:59:00"), None, None), "12:04:00"),
    ];
    for ((success, cancelled, next), expected) in cases {
        let anchors = Anchors {
            last_success: success.map(june),
            last_cancelled: cancelled.map(june),
            next: next.map(june),
            last_occurrence: None,
        };
        let due = five.due_at(&anchors, june("12:00:00"));
        assert_eq!(due, Some(june(expected)), "{success:?} {cancelled:?} {next:?}");
    }
    let none = schedule(Timer::Interval(Duration::from_millis(999)), Misfire::FireOnceNow);
    assert_eq!(none.due_at(&Anchors::default(), june("12:00:00")), None);
}

/// M13, R27: a cron counts from the occurrence of its last success, however late that came.
#[test]
fn crons_count_from_the_last_occurrence() {
    let hourly = schedule(Timer::Cron(cron("0 * * * *", "UTC")), Misfire::FireOnceNow);
    let none = Anchors::default();
    let cases = [
        // First stated at 10:30: it waits for its first occurrence.
        (Anchors { next: Some(june("11:00:00")), ..none }, "10:40:00", "11:00:00"),
        // The run of 10:00 succeeded on a retry at 11:05: 11:00 is not skipped.
        (
            Anchors { last_occurrence: Some(june("10:00:00")), ..succeeded(june("11:05:00")) },
            "11:05:00",
            "11:00:00",
        ),
        // A trigger off the schedule has no occurrence: what counts is when it succeeded.
        (succeeded(june("10:20:00")), "10:30:00", "11:00:00"),
        // A later cancellation ignores both.
        (
            Anchors {
                last_occurrence: Some(june("08:00:00")),
                last_cancelled: Some(june("10:20:00")),
                next: Some(june("09:00:40")),
                ..succeeded(june("08:01:00"))
            },
            "10:30:00",
            "11:00:00",
        ),
        // Neither: it was stated by another program.
        (none, "10:30:00", "10:30:00"),
    ];
    for (anchors, now, expected) in cases {
        assert_eq!(hourly.due_at(&anchors, june(now)), Some(june(expected)), "{anchors:?}");
    }
}

/// M14, R31: a one-off is due from its instant on until it succeeded, or was cancelled since.
#[test]
fn a_one_off_is_due_until_it_is_used_up() {
    let once = schedule(Timer::Once(june("10:00:00")), Misfire::DoNothing(Duration::ZERO));
    let due = |anchors: Anchors| once.due_at(&anchors, june("12:00:00"));
    let cancelled = |time| Anchors { last_cancelled: Some(june(time)), ..Anchors::default() };

    assert_eq!(due(Anchors::default()), Some(june("10:00:00")));
    assert_eq!(due(cancelled("09:59:59")), Some(june("10:00:00")));
    assert_eq!(due(cancelled("10:00:00")), None);
    assert_eq!(due(succeeded(june("09:00:00"))), None);
}

/// M16: every 5 minutes, last at 10:00, with 60 seconds allowed: 13:02 is missed and 13:00:30 is not.
#[test]
fn missed_occurrences_fire_by_the_policy() {
    let due = |misfire, now| {
        let five = schedule(Timer::Interval(5 * MINUTE), misfire);
        five.due_at(&succeeded(june("10:00:00")), june(now)).unwrap()
    };
    let leave_out = Misfire::DoNothing(MINUTE);
    assert_eq!(due(Misfire::FireOnceNow, "13:02:00"), june("10:05:00"));
    assert_eq!(due(leave_out, "13:02:00"), june("13:05:00"));
    assert_eq!(due(leave_out, "13:00:30"), june("13:00:00"));
    assert_eq!(due(leave_out, "13:01:00"), june("13:00:00"));
    assert_eq!(due(leave_out, "10:06:00"), june("10:05:00"));
    assert_eq!(due(leave_out, "10:01:40"), june("10:05:00"));
}

/// M16: twelve hours of downtime, under each policy and for each kind of timer.
#[test]
fn twelve_hours_of_downtime() {
    let interval = Timer::Interval(HOUR);
    let hourly = Timer::Cron(cron("0 * * * *", "UTC"));
    let daily = Timer::Cron(cron("0 13 * * *", "UTC"));
    let once = Timer::Once(june("11:00:00"));
    let leave_out = Misfire::DoNothing(MINUTE);
    let ten = Anchors { last_occurrence: Some(june("10:00:00")), ..succeeded(june("10:00:00")) };
    let never = Anchors::default();
    // Back at 22:00:40 or at 22:20: when is it due, and for which occurrence does it run then.
    let cases = [
        (&interval, Misfire::FireOnceNow, ten, "22:20:00", "11:00:00", Some("11:00:00")),
        (&interval, leave_out, ten, "22:20:00", "23:00:00", None),
        (&interval, leave_out, ten, "22:00:40", "22:00:00", Some("11:00:00")),
        (&hourly, Misfire::FireOnceNow, ten, "22:20:00", "11:00:00", Some("22:00:00")),
        (&hourly, leave_out, ten, "22:20:00", "23:00:00", None),
        (&hourly, leave_out, ten, "22:00:40", "22:00:00", Some("22:00:00")),
        (&daily, Misfire::FireOnceNow, ten, "22:20:00", "13:00:00", Some("13:00:00")),
        (&once, Misfire::FireOnceNow, never, "22:20:00", "11:00:00", Some("11:00:00")),
        // The policy is about what recurs.
        (&once, leave_out, never, "22:20:00", "11:00:00", Some("11:00:00")),
    ];
    for (timer, misfire, anchors, now, expected, occurrence) in cases {
        let schedule = schedule(timer.clone(), misfire);
        let due = schedule.due_at(&anchors, june(now)).unwrap();
        assert_eq!(due, june(expected), "{timer:?} {misfire:?} {now}");
        let stands_for = schedule.occurrence(&anchors, june(now)).filter(|_| due <= june(now));
        assert_eq!(stands_for, occurrence.map(june), "{timer:?} {misfire:?} {now}");
    }
    let missed = schedule(daily, leave_out).due_at(&ten, june("22:20:00"));
    assert_eq!(missed, Some(at("2026-06-02T13:00:00Z")));
}

/// M16: what caught up does not catch up again: after the late run the next occurrence is one to come.
#[test]
fn several_missed_occurrences_fire_once() {
    let hourly = schedule(Timer::Cron(cron("0 * * * *", "UTC")), Misfire::FireOnceNow);
    let ten = Anchors { last_occurrence: Some(june("10:00:00")), ..succeeded(june("10:00:00")) };
    let now = june("22:20:00");

    let caught_up =
        Anchors { last_occurrence: hourly.occurrence(&ten, now), ..succeeded(june("22:21:00")) };

    assert_eq!(hourly.due_at(&caught_up, june("22:21:00")), Some(june("23:00:00")));
}

/// M13: in UTC the clock is never moved; in Berlin a time of day that is skipped runs after the gap, and a time that
/// comes twice runs the first time.
#[test]
fn a_time_of_day_runs_once_when_the_clock_is_moved() {
    let half_past_two = |zone| cron("30 2 * * *", zone);
    let spring = occurrences(&half_past_two("Europe/Berlin"), "2026-03-28T00:00:00Z", 3);
    assert_eq!(
        spring,
        ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]
    );
    let autumn = occurrences(&half_past_two("Europe/Berlin"), "2026-10-24T00:00:00Z", 3);
    assert_eq!(
        autumn,
        ["2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]
    );
    let utc = occurrences(&half_past_two("UTC"), "2026-03-28T03:00:00Z", 2);
    assert_eq!(utc, ["2026-03-29T02:30:00+00:00", "2026-03-30T02:30:00+00:00"]);
    let new_york = occurrences(&half_past_two("America/New_York"), "2026-03-08T00:00:00Z", 2);
    assert_eq!(new_york, ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"]);
}

/// M13: what recurs within a day follows the clock: not in a gap, and in both halves of what comes twice.
#[test]
fn what_recurs_within_a_day_follows_the_clock() {
    let half_hours = cron("*/30 * * * *", "Europe/Berlin");
    assert_eq!(
        occurrences(&half_hours, "2026-03-29T00:00:00Z", 3),
        ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]
    );
    assert_eq!(
        occurrences(&half_hours, "2026-10-24T23:45:00Z", 5),
        [
            "2026-10-25T02:00:00+02:00",
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T02:00:00+01:00",
            "2026-10-25T02:30:00+01:00",
            "2026-10-25T03:00:00+01:00",
        ]
    );
    // A clock that is moved by half an hour, and one whose day has no midnight.
    assert_eq!(
        occurrences(&cron("15 2 * * *", "Australia/Lord_Howe"), "2026-10-03T12:00:00Z", 1),
        ["2026-10-04T02:30:00+11:00"]
    );
    assert_eq!(
        occurrences(&cron("0 0 * * *", "America/Santiago"), "2026-09-05T12:00:00Z", 1),
        ["2026-09-06T01:00:00-03:00"]
    );
}

/// M13: the 29th of February comes every four years, and not in 2100.
#[test]
fn leap_days_come_when_they_come() {
    let leap = cron("0 12 29 2 *", "UTC");
    assert_eq!(
        occurrences(&leap, "2026-01-01T00:00:00Z", 2),
        ["2028-02-29T12:00:00+00:00", "2032-02-29T12:00:00+00:00"]
    );
    assert_eq!(occurrences(&leap, "2097-01-01T00:00:00Z", 1), ["2104-02-29T12:00:00+00:00"]);
    // Either the 13th or a Friday, as cron has always had it.
    assert_eq!(
        occurrences(&cron("0 0 13 * fri", "UTC"), "2026-06-10T12:00:00Z", 2),
        ["2026-06-12T00:00:00+00:00", "2026-06-13T00:00:00+00:00"]
    );
    assert_eq!(leap.next_after(Timestamp::MAX), None);
}

/// M13: five fields or six; anything else is named with its field, and so is what never occurs.
#[test]
fn an_expression_is_read_or_its_fault_is_named() {
    for good in [
        "* * * * *",
        "*/5 * * * * *",
        "0 7 * * 1-5",
        "0 7 * jan-mar mon,Wed",
        "0 0 * * 7",
        "0 0 * * fri-sun",
        "0 0 31 1,3 *",
        "5-55/10 0-23/2 * * *",
        "0 0 30 2 mon",
        " 0  0 29 2 * ",
    ] {
        assert!(Cron::parse(good, Zone::UTC).is_ok(), "{good}");
    }
    let cases = [
        ("", "has 0 fields; an expression has 5"),
        ("* * * *", "has 4 fields"),
        ("0 0 0 * * * 2026", "has 7 fields"),
        ("60 * * * *", "the minute '60' is not from 0 to 59"),
        ("0 24 * * *", "the hour '24' is not from 0 to 23"),
        ("0 0 0 * *", "the day of the month '0' is not from 1 to 31"),
        ("0 0 * 13 *", "the month '13' is not from 1 to 12"),
        ("0 0 * * 8", "the day of the week '8' is not from 0 to 7"),
        ("61 0 0 * * *", "the second '61' is not from 0 to 59"),
        ("0 0 L * *", "the day of the month 'L' is not made of numbers"),
        ("0 0 15W * *", "the day of the month '15W' is not made of numbers"),
        ("0 0 * * 5#2", "the day of the week '5#2' is not made of numbers"),
        ("0 0 ? * *", "the day of the month '?' is not made of numbers"),
        ("0 0 1 * +mon", "the day of the week '+mon' is not made of numbers"),
        ("@daily", "has 1 fields"),
        ("mon * * * *", "the minute 'mon' is not made of numbers"),
        ("5-1 * * * *", "the minute '5-1' is a range that ends before it starts"),
        ("*/0 * * * *", "the minute '*/0' has no step from 1 to 59"),
        ("*/ * * * *", "the minute '*/' has no step"),
        ("5/10 * * * *", "the minute '5/10' has a step without a range"),
        ("1,,2 * * * *", "the minute '' is not made of numbers"),
        ("-1 * * * *", "the minute '-1' is not made of numbers"),
        ("99999999999999999999 * * * *", "the minute '99999999999999999999' is not from"),
        ("\u{661} * * * *", "the minute '\u{661}' is not made of numbers"),
        ("0 0 30 2 *", "never occurs: no such month has such a day"),
        ("0 0 31 2,4,6 *", "never occurs"),
    ];
    for (expression, expected) in cases {
        let fault = Cron::parse(expression, Zone::UTC).unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{expression}\nexpected {expected}\nfound    {fault}");
    }
    assert!(Cron::parse(&"*".repeat(300), Zone::UTC).is_err());
}

fn excluding(exclusion: Exclusion, zone: Zone) -> Schedule {
    let daily = Cron::parse("0 * * * *", zone.clone()).unwrap();
    Schedule {
        timer: Timer::Cron(daily),
        misfire: Misfire::FireOnceNow,
        exclusions: vec![exclusion],
        zone,
    }
}

/// M10, M18: days of the week, dates, ranges with both ends, and windows across midnight are left out, in the zone.
#[test]
fn what_is_left_out_is_not_due() {
    let utc = || Zone::UTC;
    let days = Exclusion::days_of_week(&["saturday", "Sun"]).unwrap();
    let dates = Exclusion::dates(&["2026-12-24", "2026-12-25"]).unwrap();
    let range = Exclusion::between("2026-08-01", "2026-08-31").unwrap();
    let night = Exclusion::between("22:00", "06:00").unwrap();
    let noon = Exclusion::between("12:00", "13:30").unwrap();
    let cases = [
        (excluding(days.clone(), utc()), "2026-06-05T23:00:00Z", "2026-06-05T23:00:00Z"),
        (excluding(days, utc()), "2026-06-06T00:00:00Z", "2026-06-08T00:00:00Z"),
        (excluding(dates, utc()), "2026-12-24T00:00:00Z", "2026-12-26T00:00:00Z"),
        (excluding(range.clone(), utc()), "2026-08-01T00:00:00Z", "2026-09-01T00:00:00Z"),
        (excluding(range.clone(), utc()), "2026-08-31T23:00:00Z", "2026-09-01T00:00:00Z"),
        (excluding(range, utc()), "2026-07-31T23:00:00Z", "2026-07-31T23:00:00Z"),
        (excluding(night.clone(), utc()), "2026-06-01T21:00:00Z", "2026-06-01T21:00:00Z"),
        (excluding(night.clone(), utc()), "2026-06-01T22:00:00Z", "2026-06-02T06:00:00Z"),
        (excluding(night.clone(), utc()), "2026-06-01T05:00:00Z", "2026-06-01T06:00:00Z"),
        (excluding(night.clone(), utc()), "2026-06-01T06:00:00Z", "2026-06-01T06:00:00Z"),
        (excluding(noon, utc()), "2026-06-01T13:00:00Z", "2026-06-01T13:30:00Z"),
        // 22:00 in Berlin is 20:00 in UTC in summer.
        (excluding(night, zone("Europe/Berlin")), "2026-06-01T20:00:00Z", "2026-06-02T04:00:00Z"),
        // A window that ends in the gap ends with it: the clock goes from 02:00 to 03:00.
        (
            excluding(Exclusion::between("01:00", "02:30").unwrap(), zone("Europe/Berlin")),
            "2026-03-29T00:00:00Z",
            "2026-03-29T01:00:00Z",
        ),
    ];
    for (schedule, occurrence, expected) in cases {
        let before = at(occurrence).saturating_sub(MINUTE);
        let anchors = Anchors { last_occurrence: Some(before), ..succeeded(before) };
        let due = schedule.due_at(&anchors, before).unwrap();
        assert_eq!(due, at(expected), "{:?} {occurrence}", schedule.exclusions);
    }
}

/// M16, M18: what an exclusion kept from running is caught up or missed by the policy once it ends.
#[test]
fn after_an_exclusion_the_policy_decides() {
    let night = Exclusion::between("22:00", "06:30").unwrap();
    let late = |misfire| Schedule { misfire, ..excluding(night.clone(), Zone::UTC) };
    let anchors =
        Anchors { last_occurrence: Some(june("21:00:00")), ..succeeded(june("21:00:00")) };
    let due = |misfire| late(misfire).due_at(&anchors, june("21:01:00")).unwrap();

    assert_eq!(due(Misfire::FireOnceNow), at("2026-06-02T06:30:00Z"));
    assert_eq!(due(Misfire::DoNothing(MINUTE)), at("2026-06-02T07:00:00Z"));
    assert_eq!(due(Misfire::DoNothing(30 * MINUTE)), at("2026-06-02T06:30:00Z"));
    // Nothing is ever left of it: the search gives up, far away, and goes on from there.
    let never = Schedule {
        timer: Timer::Cron(cron("0 3 * * *", "UTC")),
        ..late(Misfire::DoNothing(MINUTE))
    };
    assert!(never.due_at(&anchors, june("21:01:00")).unwrap() > at("2027-01-01T00:00:00Z"));
}

/// M18: what is written wrong is told.
#[test]
fn an_exclusion_is_read_or_its_fault_is_named() {
    let stored = r#"[{"days":["monday","sunday"]},{"dates":["2026-12-24"]},{"from":"2026-08-01","to":"2026-08-31"},{"from":"22:00:00","to":"06:30:00"}]"#;
    let read = Exclusion::read_all(stored).unwrap();
    assert_eq!(read[0], Exclusion::days_of_week(&["SUN", "mon", "monday"]).unwrap());
    assert_eq!(Exclusion::write_all(&read), stored);
    let cases = [
        (Exclusion::days_of_week(&["caturday"]), "'caturday' is no day; write monday, tue, ..."),
        (
            Exclusion::days_of_week(&["mon", "tue", "wed", "thu", "fri", "sat", "sun"]),
            "leaves out every day of the week",
        ),
        (Exclusion::dates(&["24.12.2026"]), "'24.12.2026' is no date; write 2026-12-24"),
        (Exclusion::dates(&["2026-02-30"]), "'2026-02-30' is no date; write 2026-12-24"),
        (Exclusion::between("25:00", "06:00"), "'25:00' is no time; write 22:00"),
        (Exclusion::between("22:00", "2026-08-01"), "'2026-08-01' is no time; write 22:00"),
        (
            Exclusion::between("2026-08-31", "2026-08-01"),
            "ends on 2026-08-01, before it starts on 2026-08-31",
        ),
        (
            Exclusion::between("06:00", "06:00"),
            "starts and ends at one time, so nothing is left out",
        ),
    ];
    for (read, expected) in cases {
        assert_eq!(read.unwrap_err(), expected);
    }
    for wrong in ["", "{}", "[1]", "[{}]", r#"[{"days":1}]"#, r#"[{"dates":[1]}]"#] {
        assert!(Exclusion::read_all(wrong).is_err(), "{wrong}");
    }
}

/// M17: after a success the next occurrence is moved by what is extra, never back.
#[test]
fn variance_moves_the_next_occurrence() {
    let (ten, extra) = (june("10:00:10"), Duration::from_secs(7));
    let next = |timer, occurrence| {
        schedule(timer, Misfire::FireOnceNow).after_success(ten, occurrence, extra)
    };
    assert_eq!(next(Timer::Interval(HOUR), None), Some(june("11:00:17")));
    let hourly = || Timer::Cron(cron("0 * * * *", "UTC"));
    assert_eq!(next(hourly(), Some(june("09:00:00"))), Some(june("10:00:07")));
    assert_eq!(next(hourly(), None), Some(june("11:00:07")));
    assert_eq!(next(Timer::Once(ten), None), None);
}

/// The rules as they are written, asked of one instant.
fn is_due_by_the_rules(schedule: &Schedule, anchors: &Anchors, now: Timestamp) -> bool {
    if is_excluded(&schedule.exclusions, &schedule.zone, now) {
        return false;
    }
    let is_cancelled_later = anchors.last_cancelled > anchors.last_success;
    let (mut anchor, mut next) = (anchors.last_success, anchors.next);
    if is_cancelled_later {
        (anchor, next) = (anchors.last_cancelled, None);
    }
    let due = match &schedule.timer {
        Timer::Once(at) => {
            return anchors.last_success.is_none()
                && *at <= now
                && anchors.last_cancelled.is_none_or(|cancelled| cancelled < *at);
        }
        Timer::Interval(every) => match anchor {
            None => return true,
            Some(anchor) => next.unwrap_or(anchor.saturating_add(*every)),
        },
        Timer::Cron(cron) => {
            if !is_cancelled_later {
                anchor = anchors.last_occurrence.or(anchor);
            }
            match (next, anchor) {
                (None, None) => return cron.next_after(now).is_some(),
                (Some(next), _) => next,
                (None, Some(anchor)) => cron.next_after(anchor).unwrap(),
            }
        }
    };
    if due > now {
        return false;
    }
    let Misfire::DoNothing(threshold) = schedule.misfire else { return true };
    if now.since(due) <= threshold {
        return true;
    }
    let mut boundary = None;
    let mut step = match &schedule.timer {
        Timer::Interval(_) => anchor,
        // One that never ran counts from its first occurrence, which is one too.
        _ => Some(anchor.unwrap_or(due.saturating_sub(Duration::from_micros(1)))),
    };
    while let Some(from) = step {
        step = match &schedule.timer {
            Timer::Interval(every) => Some(from.saturating_add(*every)),
            Timer::Cron(cron) => cron.next_after(from),
            Timer::Once(_) => None,
        };
        if step.is_none_or(|step| step > now) {
            break;
        }
        boundary = step;
    }
    boundary.is_some_and(|boundary| now.since(boundary) <= threshold)
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let timer = prop_oneof![
        (1_u64..90).prop_map(|every| Timer::Interval(Duration::from_secs(every))),
        (1_u8..59).prop_map(|by| Timer::Cron(cron(&format!("*/{by} * * * * *"), "UTC"))),
        (0_i64..120).prop_map(|from| {
            Timer::Once(june("10:00:00").saturating_add(Duration::from_secs(from.unsigned_abs())))
        }),
    ];
    let misfire = prop_oneof![
        Just(Misfire::FireOnceNow),
        (0_u64..20).prop_map(|threshold| Misfire::DoNothing(Duration::from_secs(threshold))),
    ];
    let time = |second: u32| format!("10:{:02}:{:02}", second / 60, second % 60);
    let exclusion = (0_u32..300, 0_u32..300)
        .prop_filter_map("empty", move |(a, b)| Exclusion::between(&time(a), &time(b)).ok());
    (timer, misfire, prop::collection::vec(exclusion, 0..3)).prop_map(
        |(timer, misfire, exclusions)| Schedule { timer, misfire, exclusions, zone: Zone::UTC },
    )
}

fn any_anchors() -> impl Strategy<Value = Anchors> {
    let instant = || {
        let instant = (0_u64..200)
            .prop_map(|seconds| june("10:00:00").saturating_add(Duration::from_secs(seconds)));
        prop::option::of(instant)
    };
    // A success is not before the occurrence that it ran for, and what comes next is not before either.
    (instant(), instant(), instant(), instant()).prop_map(|(a, b, last_cancelled, next)| {
        let last_success = a.max(b);
        let last_occurrence = a.min(b).filter(|_| last_success.is_some());
        let next = next.filter(|next| Some(*next) > last_occurrence.max(last_success));
        Anchors { last_success, last_occurrence, last_cancelled, next }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// M11, M12, M16: the search finds the first instant at which the rules say due, and only that.
    #[test]
    fn the_search_agrees_with_the_rules(
        schedule in any_schedule(), anchors in any_anchors(), now in 0_u64..300,
    ) {
        let now = june("10:00:00").saturating_add(Duration::from_secs(now));
        let found = schedule.due_at(&anchors, now);

        prop_assert_eq!(
            found.is_some_and(|due| due <= now), is_due_by_the_rules(&schedule, &anchors, now)
        );
        for later in 1..400 {
            let later = now.saturating_add(Duration::from_secs(later));
            if found.is_none_or(|found| later < found) && found.is_none_or(|found| found > now) {
                prop_assert!(!is_due_by_the_rules(&schedule, &anchors, later), "{}", later);
            }
            if found == Some(later) {
                prop_assert!(is_due_by_the_rules(&schedule, &anchors, later), "{}", later);
            }
        }
    }

    /// M16: halving finds the occurrence that counting finds, also where the clock is moved.
    #[test]
    fn the_latest_occurrence_is_found_by_halving(
        minutes in 1_u8..59, start in 0_u64..10_000, length in 0_u64..40_000,
        day in prop_oneof![Just("2026-03-28"), Just("2026-10-24"), Just("2026-06-01")],
        expression in prop_oneof![
            Just("*/{} * * * *"), Just("{} * * * *"), Just("{} 2 * * *"), Just("*/{} 2,3 * * * *"),
        ],
    ) {
        let cron = cron(&expression.replace("{}", &minutes.to_string()), "Europe/Berlin");
        let after = at(&format!("{day}T22:00:00Z")).saturating_add(Duration::from_secs(start));
        let until = after.saturating_add(Duration::from_secs(length));
        let mut counted = None;
        let mut next = cron.next_after(after);
        while let Some(found) = next.filter(|found| *found <= until) {
            counted = Some(found);
            next = cron.next_after(found);
        }
        prop_assert_eq!(cron.latest_in(after, until), counted);
    }

    #[test]
    fn no_text_stops_the_reader(expression in ".{0,40}", stored in ".{0,60}") {
        if let Ok(cron) = Cron::parse(&expression, Zone::UTC) {
            cron.next_after(june("10:00:00"));
        }
        Exclusion::read_all(&stored).ok();
        Zone::of_name(&expression);
    }

    #[test]
    fn whatever_is_read_occurs_within_ten_years(
        fields in prop::collection::vec(prop_oneof![
            Just("*".to_owned()), Just("1".to_owned()), Just("29".to_owned()), Just("31".to_owned()),
            Just("*/7".to_owned()), Just("2-6/2".to_owned()), Just("2".to_owned()),
        ], 5..=6),
    ) {
        if let Ok(cron) = Cron::parse(&fields.join(" "), Zone::UTC) {
            let start = june("10:00:00");
            let next = cron.next_after(start).unwrap();
            prop_assert!(next.since(start) < Duration::from_hours(3_653 * 24));
        }
    }
}
