//! Which track a decision takes: pure rules from a step, its question and an answer.

use crate::chain::declaration::{Gate, Scale, Switch};
use crate::chain::step::Routing;
use crate::model::answer::AnswerKind;
use crate::model::failure::Failure;
use crate::model::question::{Criterion, Question, QuestionKind};

/// The track to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Index into the train's tracks.
    pub track: u32,
    /// Why the decision is not followed, if it is not: names what was answered, how surely, and the bar it missed.
    pub fallback_reason: Option<String>,
}

/// Takes the track that the step declares for this answer.
///
/// - A switch follows a choice that has a track when its confidence reaches the track's bar, or else the switch's.
/// - A gate takes yes from its upper bar, no under its lower bar, and unsure between. That is no fallback: unsure is a
///   declared track.
/// - A scale rounds the score to the nearest level, halves up, and takes the track of the highest level up to that one.
/// - What is not followed takes `otherwise`.
///
/// # Errors
/// A permanent failure that names the step, when no track is left to take. Its text tells nothing of the answer when
/// the question is sensitive, because operators see failures.
pub fn route(
    routing: Routing<'_>,
    question: &Question,
    answer: &AnswerKind,
) -> Result<Route, Failure> {
    let (followed, otherwise) = match (routing, answer) {
        (Routing::Switch(switch), AnswerKind::Choice { choice, confidence, .. }) => {
            (switched(switch, choice, *confidence), switch.otherwise)
        }
        (Routing::Gate(gate), AnswerKind::YesNo { probability }) => {
            (gated(gate, *probability), None)
        }
        (Routing::Scale(scale), AnswerKind::Score { score, confidence, .. }) => {
            (scaled(scale, question, *score, *confidence), scale.otherwise)
        }
        (Routing::Switch(_) | Routing::Gate(_) | Routing::Scale(_), _) => {
            (Err(format!("an answer of kind {} takes no track here", answer.as_str())), None)
        }
    };
    let reason = match followed {
        Ok(track) => return Ok(Route { track, fallback_reason: None }),
        Err(reason) => reason,
    };
    if let Some(track) = otherwise {
        return Ok(Route { track, fallback_reason: Some(reason) });
    }
    let (key, shown) =
        (routing.key(), if question.sensitive { "its question is sensitive" } else { &reason });
    Err(Failure::permanent("NoTrack", format!("{key} has no track to take: {shown}.")))
}

fn switched(switch: &Switch, choice: &str, confidence: f64) -> Result<u32, String> {
    let when = switch.tracks.iter().find(|when| when.option_name == choice);
    let bar = when.and_then(|when| when.require_confidence).unwrap_or(switch.require_confidence);
    match when {
        Some(when) if confidence >= bar => Ok(when.track),
        Some(_) => Err(format!(
            "'{choice}' was chosen with confidence {confidence}, under its bar of {bar}"
        )),
        None => Err(format!(
            "'{choice}' was chosen with confidence {confidence} (bar {bar}) and has no track"
        )),
    }
}

fn gated(gate: &Gate, probability: f64) -> Result<u32, String> {
    let (yes, no) = (gate.yes_at_least, gate.no_below);
    if probability >= yes {
        return Ok(gate.yes);
    }
    if probability < no {
        return Ok(gate.no);
    }
    gate.unsure.ok_or_else(|| {
        format!("the probability {probability} is under its bar for yes of {yes} and not under its bar for no of {no}")
    })
}

fn scaled(scale: &Scale, question: &Question, score: f64, confidence: f64) -> Result<u32, String> {
    let QuestionKind::Score(levels) = &question.kind else {
        return Err(format!("the question {} has no levels", question.key));
    };
    let nearest = nearest_level(score, levels.len());
    let rank = |name: &str| levels.iter().position(|level| level.name == name);
    let reached = scale
        .tracks
        .iter()
        .filter_map(|at_least| rank(&at_least.level).map(|rank| (rank, at_least)))
        .filter(|(rank, _)| nearest.is_some_and(|nearest| *rank <= nearest))
        .max_by_key(|(rank, _)| *rank);
    let level = nearest.and_then(|nearest| levels.get(nearest)).map_or("none", level_name);
    let bar = scale.require_confidence;
    match reached {
        Some((_, at_least)) if confidence >= bar => Ok(at_least.track),
        Some(_) => Err(format!(
            "the score {score} ('{level}') was given with confidence {confidence}, under the bar of {bar}"
        )),
        None => Err(format!(
            "the score {score} ('{level}', confidence {confidence}, bar {bar}) reaches no level"
        )),
    }
}

fn level_name(level: &Criterion) -> &str {
    &level.name
}

/// The level nearest to a score, halves up; none for a score off the scale.
pub fn nearest_level(score: f64, levels: usize) -> Option<usize> {
    let at = |level: usize| f64::from(u32::try_from(level).unwrap_or(u32::MAX));
    let last = levels.checked_sub(1)?;
    if !(0.0..=at(last)).contains(&score) {
        return None;
    }
    // Comparing with each half is exact; adding a half to the score and cutting it off is not.
    Some((0..last).find(|level| score < at(*level) + 0.5).unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::declaration::Step;
    use crate::chain::testing::world::{chosen, scored, yes};
    use crate::chain::testing::{choice, gate, scale, score, switch, yes_no};
    use crate::model::failure::FailureClass;

    fn taken(
        step: &Step,
        question: &Question,
        answer: &AnswerKind,
    ) -> Result<(u32, Option<String>), String> {
        match route(step.routing().unwrap(), question, answer) {
            Ok(route) => Ok((route.track, route.fallback_reason)),
            Err(failure) => {
                assert_eq!(
                    (failure.class, failure.name.as_str()),
                    (FailureClass::Permanent, "NoTrack")
                );
                Err(failure.message)
            }
        }
    }

    /// Q6: a choice is followed when it has a track and its confidence reaches the track's bar, or else the switch's.
    #[test]
    fn switches_follow_sure_choices_that_have_a_track() {
        let team = choice("Team", &["Billing", "Tech", "Sales"]);
        let Step::Switch(mut declared) =
            switch("Team", None, &[("Billing", 1), ("Tech", 2)], Some(9))
        else {
            panic!("not a switch")
        };
        declared.require_confidence = 0.5;
        declared.tracks[1].require_confidence = Some(0.8);
        let step = Step::Switch(declared.clone());
        let fell_back = |reason: &str| Ok((9, Some(reason.to_string())));
        for (answer, expected) in [
            (chosen("Billing", 0.5), Ok((1, None))),
            (
                chosen("Billing", 0.49),
                fell_back("'Billing' was chosen with confidence 0.49, under its bar of 0.5"),
            ),
            (chosen("Tech", 0.8), Ok((2, None))),
            (
                chosen("Tech", 0.7),
                fell_back("'Tech' was chosen with confidence 0.7, under its bar of 0.8"),
            ),
            (
                chosen("Sales", 1.0),
                fell_back("'Sales' was chosen with confidence 1 (bar 0.5) and has no track"),
            ),
            (
                chosen("Tech", f64::NAN),
                fell_back("'Tech' was chosen with confidence NaN, under its bar of 0.8"),
            ),
        ] {
            assert_eq!(taken(&step, &team, &answer), expected, "{answer:?}");
        }

        declared.otherwise = None;
        assert_eq!(
            taken(&Step::Switch(declared), &team, &chosen("Tech", 0.7)).unwrap_err(),
            "Switch<Team> has no track to take: 'Tech' was chosen with confidence 0.7, under its bar of 0.8."
        );
    }

    /// Q6: the bar of a switch is 0 unless it says otherwise, so that any choice with a track is followed.
    #[test]
    fn a_switch_without_a_bar_follows_every_choice() {
        let team = choice("Team", &["Billing", "Tech"]);
        let step = switch("Team", None, &[("Billing", 1)], None);
        assert_eq!(taken(&step, &team, &chosen("Billing", 0.0)), Ok((1, None)));
    }

    /// Q7: yes from one bar, no under the other, and unsure between is a track without a reason.
    #[test]
    fn gates_take_yes_no_or_unsure() {
        let fraud = yes_no("Fraud");
        let Step::Gate(mut declared) = gate("Fraud", None, 1, 2, Some(3)) else {
            panic!("not a gate")
        };
        (declared.yes_at_least, declared.no_below) = (0.8, 0.3);
        let step = Step::Gate(declared.clone());
        for (probability, track) in
            [(1.0, 1), (0.8, 1), (0.79, 3), (0.5, 3), (0.3, 3), (0.29, 2), (0.0, 2)]
        {
            assert_eq!(taken(&step, &fraud, &yes(probability)), Ok((track, None)), "{probability}");
        }

        declared.unsure = None;
        assert_eq!(
            taken(&Step::Gate(declared), &fraud, &yes(0.5)).unwrap_err(),
            "Gate<Fraud> has no track to take: the probability 0.5 is under its bar for yes of 0.8 and not under its \
             bar for no of 0.3."
        );
        let even = gate("Fraud", None, 1, 2, None);
        assert_eq!(taken(&even, &fraud, &yes(0.5)), Ok((1, None)));
        assert_eq!(taken(&even, &fraud, &yes(0.499)), Ok((2, None)));
    }

    /// Q8: the highest level with a track up to the nearest level, halves up.
    #[test]
    fn scales_take_the_highest_level_reached() {
        let urgency = score("Urgency", &["Low", "Middle", "High", "Top"]);
        let step = scale("Urgency", None, &[("High", 3), ("Low", 1)], None);
        for (score, track) in [(0.0, 1), (1.0, 1), (1.49, 1), (1.5, 3), (2.0, 3), (3.0, 3)] {
            assert_eq!(taken(&step, &urgency, &scored(score, 0.0)), Ok((track, None)), "{score}");
        }

        let Step::Scale(mut declared) = step else { panic!("not a scale") };
        (declared.require_confidence, declared.otherwise) = (0.5, Some(9));
        assert_eq!(
            taken(&Step::Scale(declared.clone()), &urgency, &scored(2.4, 0.5)),
            Ok((3, None))
        );
        assert_eq!(
            taken(&Step::Scale(declared.clone()), &urgency, &scored(2.4, 0.4)),
            Ok((
                9,
                Some(
                    "the score 2.4 ('High') was given with confidence 0.4, under the bar of 0.5"
                        .to_string()
                )
            ))
        );
        declared.otherwise = None;
        assert_eq!(
            taken(&Step::Scale(declared.clone()), &urgency, &scored(2.4, 0.4)).unwrap_err(),
            "Scale<Urgency> has no track to take: the score 2.4 ('High') was given with confidence 0.4, under the \
             bar of 0.5."
        );
        assert!(taken(&Step::Scale(declared), &urgency, &scored(f64::NAN, 1.0)).is_err());
    }

    /// Q8: halves round up, and what is off the scale is near no level.
    #[test]
    fn scores_round_to_the_nearest_level() {
        for (score, levels, nearest) in [
            (0.0, 2, Some(0)),
            (0.499_999_999_999_999_94, 2, Some(0)),
            (0.5, 2, Some(1)),
            (1.0, 2, Some(1)),
            (2.5, 5, Some(3)),
            (4.0, 5, Some(4)),
            (4.1, 5, None),
            (-0.1, 5, None),
            (f64::NAN, 5, None),
            (0.0, 0, None),
        ] {
            assert_eq!(nearest_level(score, levels), nearest, "{score} of {levels}");
        }
    }

    /// Q14, O14: a failure of a sensitive step names the step and tells nothing of the answer.
    #[test]
    fn a_sensitive_answer_is_not_told() {
        let mut fraud = yes_no("Fraud");
        fraud.sensitive = true;
        let Step::Gate(mut declared) = gate("Fraud", None, 1, 2, None) else {
            panic!("not a gate")
        };
        declared.no_below = 0.1;
        assert_eq!(
            taken(&Step::Gate(declared), &fraud, &yes(0.25)).unwrap_err(),
            "Gate<Fraud> has no track to take: its question is sensitive."
        );
    }

    /// Q13: an answer of another kind takes no track, not even `otherwise`.
    #[test]
    fn an_answer_of_another_kind_takes_no_track() {
        let team = choice("Team", &["Billing", "Tech"]);
        let step = switch("Team", None, &[("Billing", 1)], Some(2));
        assert!(taken(&step, &team, &yes(1.0)).is_err());
    }
}
