//! Tests of simulations: schedules, retries and dead letters as a table of what is told.

use std::path::Path;

use super::*;
use crate::operations::manifest_file::parse;

/// What a file's manifests do from an instant on, one line each: day and time in UTC, manifest, what.
fn told(text: &str, failing: &[(&str, Option<u32>)], from: &str, until: &str) -> Vec<String> {
    let file = parse(Path::new("m.toml"), text.to_owned()).unwrap();
    let (from, until) = (Timestamp::parse(from).unwrap(), Timestamp::parse(until).unwrap());
    let plans = of_files(&[file], from);
    let ids: Vec<String> = plans.iter().map(|plan| plan.id.clone()).collect();
    let failing = failing.iter().map(|(id, runs)| ((*id).to_owned(), *runs)).collect();
    let span = Span { from, until, events_max: 1_000 };
    let told = simulate(plans, failing, &RetryPolicy::default(), span);
    assert!(!told.is_cut);
    let line = |event: &Event| {
        let what = match &event.what {
            What::Run { fails: false, .. } => "runs".to_owned(),
            What::Run { fails: true, .. } => "fails".to_owned(),
            What::Retry { failures, fails, .. } => {
                format!("retry {failures} {}", if *fails { "fails" } else { "works" })
            }
            What::DeadLetter { .. } => "dead letter".to_owned(),
        };
        let at = event.at.to_string();
        format!("{} {} {what}", &at[5..16], ids[event.plan])
    };
    told.events.iter().map(line).collect()
}

fn manifest(id: &str, more: &str) -> String {
    format!("[[manifest]]\nid = \"{id}\"\ntrain = \"t\"\n{more}\n")
}

/// M12, M13: intervals count from a success, crons follow the clock, also where it is moved.
#[test]
fn schedules_fire_when_the_clock_says_so() {
    let berlin =
        |cron: &str| manifest("m", &format!("cron = \"{cron}\"\ntime_zone = \"Europe/Berlin\""));
    let cases: [(String, &str, &str, &[&str]); 6] = [
        (
            manifest("m", "every = \"8h\""),
            "2026-01-01T00:00:00Z",
            "2026-01-01T20:00:00Z",
            &["01-01T00:00 m runs", "01-01T08:00 m runs", "01-01T16:00 m runs"],
        ),
        // In spring half past two does not come; the run is right after the gap.
        (
            berlin("30 2 * * *"),
            "2026-03-28T00:00:00Z",
            "2026-03-30T12:00:00Z",
            &["03-28T01:30 m runs", "03-29T01:00 m runs", "03-30T00:30 m runs"],
        ),
        // In autumn it comes twice, and the run is at the first.
        (
            berlin("30 2 * * *"),
            "2026-10-24T12:00:00Z",
            "2026-10-26T12:00:00Z",
            &["10-25T00:30 m runs", "10-26T01:30 m runs"],
        ),
        (
            manifest("m", "cron = \"0 0 29 2 *\""),
            "2026-01-01T00:00:00Z",
            "2033-01-01T00:00:00Z",
            &["02-29T00:00 m runs", "02-29T00:00 m runs"],
        ),
        (
            manifest("m", "once = \"10m\""),
            "2026-01-01T00:00:00Z",
            "2026-02-01T00:00:00Z",
            &["01-01T00:10 m runs"],
        ),
        // Fridays and Sundays are left out; what falls there is made up for when the day is over.
        (
            manifest("m", "cron = \"0 7 * * *\"\nexclude = [{ days = [\"fri\", \"sun\"] }]"),
            "2026-01-01T00:00:00Z",
            "2026-01-03T12:00:00Z",
            &["01-01T07:00 m runs", "01-03T00:00 m runs", "01-03T07:00 m runs"],
        ),
    ];
    for (text, from, until, expected) in cases {
        assert_eq!(told(&text, &[], from, until), expected, "{text}");
    }
    let never = manifest("m", "cron = \"0 0 30 2 *\"");
    assert!(parse(Path::new("m.toml"), never).is_err());
}

/// M7, M16, R27: failures are retried with their delay until they are too many; what was missed meanwhile fires as its
/// policy says.
#[test]
fn failures_are_retried_and_become_dead_letters() {
    let hourly = manifest("m", "cron = \"0 * * * *\"\nmax_retries = 2");
    let (from, until) = ("2026-01-01T00:30:00Z", "2026-01-01T04:10:00Z");
    assert_eq!(
        told(&hourly, &[("m", None)], from, until),
        [
            "01-01T01:00 m fails",
            "01-01T01:05 m retry 1 fails",
            "01-01T01:15 m retry 2 fails",
            "01-01T01:15 m dead letter"
        ]
    );
    let late = manifest("m", "cron = \"0 * * * *\"\nmax_retries = 9");
    let expected = [
        "01-01T01:00 m fails",
        "01-01T01:05 m retry 1 fails",
        "01-01T01:15 m retry 2 fails",
        "01-01T01:35 m retry 3 fails",
        "01-01T02:15 m retry 4 works",
    ];
    let all = told(&late, &[("m", Some(4))], from, "2026-01-01T03:10:00Z");
    assert_eq!(all[..5], expected);
    // The retry worked after 02:00 was due too; it made up for that.
    assert_eq!(all[5..], ["01-01T03:00 m runs"]);
}

/// M19: a dependent runs after each success of its parent, and is held where it is disabled.
#[test]
fn dependents_follow_their_parents() {
    let text = manifest("a", "every = \"1h\"")
        + &manifest("b", "after = \"a\"\nmax_retries = 1")
        + &manifest("c", "after = \"a\"\nenabled = false")
        + &manifest("d", "after = \"b\"");
    let all = told(&text, &[("b", Some(1))], "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
    assert_eq!(
        all,
        [
            "01-01T00:00 a runs",
            "01-01T00:00 b fails",
            "01-01T00:05 b retry 1 works",
            "01-01T00:05 d runs",
            "01-01T01:00 a runs",
            "01-01T01:00 b runs",
            "01-01T01:00 d runs"
        ]
    );
}

#[test]
fn a_simulation_of_too_much_is_cut() {
    let file = parse(Path::new("m.toml"), manifest("m", "every = \"1s\"")).unwrap();
    let from = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let until = from.saturating_add(Duration::from_hours(24));
    let span = Span { from, until, events_max: 10 };
    let policy = RetryPolicy::default();
    let told = simulate(of_files(&[file], from), Failing::new(), &policy, span);
    assert_eq!((told.events.len(), told.is_cut), (10, true));
}
