//! Tests of schedules: tables of cases a person can check, and the rules as they are written against the search.

mod exclusions;
mod rules;

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
