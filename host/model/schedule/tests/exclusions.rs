//! What is left out of a schedule, and what the misfire policy makes of it.

use super::*;

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
