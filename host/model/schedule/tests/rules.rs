//! The rules of being due as they are written, against the search that finds the next instant.

use proptest::prelude::*;

use super::*;
use crate::model::schedule::exclusion::is_excluded;

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
