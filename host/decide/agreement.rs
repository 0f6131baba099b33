//! Whether a shadow's answer would have had the same effect as the one that was acted on.

use crate::chain::route::{nearest_level, route};
use crate::chain::step::Routing;
use crate::decide::check;
use crate::model::answer::AnswerKind;
use crate::model::question::{Question, QuestionKind};

/// Whether a shadow agrees with the live answer to the same question.
///
/// Where a routing step asks, both take the same track by the bars of that step. Elsewhere both choose the same option,
/// are nearest to the same level, or lie on the same side of 0.5. An answer that does not fit the question never
/// agrees, and none agrees with a live answer that takes no track.
pub fn agrees(
    routing: Option<Routing<'_>>,
    question: &Question,
    live: &AnswerKind,
    shadow: &AnswerKind,
) -> bool {
    let is_unfit = |answer| check::problem(&question.kind, answer).is_some();
    if is_unfit(live) || is_unfit(shadow) {
        return false;
    }
    let Some(routing) = routing else { return is_same(&question.kind, live, shadow) };
    match (route(routing, question, live), route(routing, question, shadow)) {
        (Ok(live), Ok(shadow)) => live.track == shadow.track,
        _ => false,
    }
}

/// Whether two answers say the same, however sure either is.
pub fn is_same(question: &QuestionKind, one: &AnswerKind, other: &AnswerKind) -> bool {
    match (one, other) {
        (AnswerKind::Choice { choice: one, .. }, AnswerKind::Choice { choice: other, .. }) => {
            one == other
        }
        (AnswerKind::Score { score: one, .. }, AnswerKind::Score { score: other, .. }) => {
            let QuestionKind::Score(levels) = question else { return false };
            let level = |score: f64| nearest_level(score, levels.len());
            level(*one).is_some() && level(*one) == level(*other)
        }
        (AnswerKind::YesNo { probability: one }, AnswerKind::YesNo { probability: other }) => {
            (*one >= 0.5) == (*other >= 0.5)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::declaration::Step;
    use crate::chain::testing::world::{chosen, scored, yes};
    use crate::chain::testing::{choice, gate, scale, score, switch, yes_no};

    /// Q21: without a routing step the same option, the nearest level or the side of 0.5 is what counts.
    #[test]
    fn answers_agree_by_what_they_say() {
        let team = choice("Team", &["Billing", "Tech"]);
        let urgency = score("Urgency", &["Low", "Middle", "High"]);
        let fraud = yes_no("Fraud");
        let cases = [
            (&team, chosen("Billing", 1.0), chosen("Billing", 0.0), true),
            (&team, chosen("Billing", 1.0), chosen("Tech", 1.0), false),
            (&team, chosen("Billing", 1.0), chosen("Sales", 1.0), false),
            (&team, chosen("Sales", 1.0), chosen("Sales", 1.0), false),
            (&team, chosen("Billing", 1.0), chosen("Billing", 1.5), false),
            (&team, chosen("Billing", 1.0), yes(1.0), false),
            (&urgency, scored(0.5, 1.0), scored(1.49, 0.1), true),
            (&urgency, scored(0.49, 1.0), scored(0.5, 1.0), false),
            (&urgency, scored(1.5, 1.0), scored(2.0, 1.0), true),
            (&urgency, scored(2.0, 1.0), scored(2.1, 1.0), false),
            (&urgency, scored(2.0, 1.0), scored(f64::NAN, 1.0), false),
            (&fraud, yes(0.5), yes(1.0), true),
            (&fraud, yes(0.49), yes(0.0), true),
            (&fraud, yes(0.49), yes(0.5), false),
            (&fraud, yes(f64::NAN), yes(0.0), false),
        ];
        for (question, live, shadow, expected) in cases {
            assert_eq!(agrees(None, question, &live, &shadow), expected, "{live:?} {shadow:?}");
        }
    }

    /// Q21: where a routing step asks, the track by that step's bars is what counts.
    #[test]
    fn answers_to_a_routing_step_agree_by_the_track() {
        let team = choice("Team", &["Billing", "Tech", "Sales"]);
        let mut by_team = switch("Team", None, &[("Billing", 1), ("Tech", 1)], Some(9));
        let mut strict = switch("Team", None, &[("Billing", 1), ("Tech", 2)], None);
        for step in [&mut by_team, &mut strict] {
            let Step::Switch(switch) = step else { panic!("not a switch") };
            switch.require_confidence = 0.5;
        }
        let urgency = score("Urgency", &["Low", "Middle", "High"]);
        let by_urgency = scale("Urgency", None, &[("Low", 1), ("High", 2)], None);
        let fraud = yes_no("Fraud");
        let mut by_fraud = gate("Fraud", None, 1, 2, Some(3));
        let Step::Gate(bars) = &mut by_fraud else { panic!("not a gate") };
        (bars.yes_at_least, bars.no_below) = (0.9, 0.1);
        let cases = [
            // Two options on one track, and what is not followed takes one track too.
            (&by_team, &team, chosen("Billing", 0.9), chosen("Tech", 0.5), true),
            (&by_team, &team, chosen("Billing", 0.9), chosen("Billing", 0.4), false),
            (&by_team, &team, chosen("Billing", 0.4), chosen("Sales", 1.0), true),
            (&by_team, &team, chosen("Billing", 0.4), chosen("Other", 1.0), false),
            (&strict, &team, chosen("Billing", 0.9), chosen("Tech", 0.9), false),
            // The live answer takes no track.
            (&strict, &team, chosen("Sales", 0.9), chosen("Sales", 0.9), false),
            (&strict, &team, chosen("Billing", 0.9), chosen("Billing", 0.1), false),
            (&by_urgency, &urgency, scored(0.0, 1.0), scored(1.4, 1.0), true),
            (&by_urgency, &urgency, scored(1.4, 1.0), scored(1.5, 1.0), false),
            (&by_fraud, &fraud, yes(0.6), yes(0.4), true),
            (&by_fraud, &fraud, yes(0.8), yes(0.9), false),
        ];
        for (step, question, live, shadow, expected) in cases {
            let agreed = agrees(step.routing(), question, &live, &shadow);
            assert_eq!(agreed, expected, "{live:?} {shadow:?}");
        }
    }
}
