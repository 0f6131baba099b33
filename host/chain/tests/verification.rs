//! What verification refuses because a value is missing, and how it says so.

use crate::chain::declaration::Step;
use crate::chain::testing::{
    about, checkpoint, decide, gate, junction, scale, short_circuit, switch,
};
use crate::chain::tests::{expect, sell, shop};

/// C1, C8: a declaration is data; reading it gives the chain or its faults and runs nothing.
#[test]
fn a_declaration_without_faults_becomes_a_chain() {
    expect(vec![(shop().root(vec![sell()]), &[])]);
    assert_eq!(shop().root(vec![sell()]).chain().train().name, "orders");
}

/// C9, C10: a value that nothing earlier produces is named with the step that needs it.
#[test]
fn a_missing_value_is_named_with_the_step_that_needs_it() {
    expect(vec![
        (
            shop().root(vec![sell(), junction("ChargeCard", &["Payment"], &[])]),
            &[
                "step 2 (ChargeCard) needs 'Payment' in Memory and nothing before it puts one there.",
            ],
        ),
        (
            shop().root(vec![
                junction("ChargeCard", &["Payment", "Refund"], &[]),
                junction("Late", &[], &["Payment"]),
                sell(),
            ]),
            &[
                "step 1 (ChargeCard) needs 'Payment' in Memory and nothing before it puts one there.",
                "step 1 (ChargeCard) needs 'Refund' in Memory and nothing before it puts one there.",
            ],
        ),
        (
            shop().root(vec![decide("Payment", &["Team"]), sell()]),
            &[
                "step 1 (Decide<ChoiceDecision<Team>>) needs 'Payment' in Memory and nothing before it puts one there.",
            ],
        ),
        (
            shop().root(vec![junction("Read", &["ScoreDecision<Urgency>"], &[]), sell()]),
            &[
                "step 1 (Read) needs 'ScoreDecision<Urgency>' in Memory and nothing before it puts one there.",
            ],
        ),
        (
            shop().root(vec![checkpoint("Payment"), sell()]),
            &[
                "step 1 (Checkpoint<Payment>) checkpoints 'Payment' and nothing before it puts one in Memory.",
            ],
        ),
        (shop().root(vec![]), &["the chain ends without 'Receipt' in Memory."]),
    ]);
}

/// C10: refusals come first, and an end that merely follows a refusal is not a fault of its own.
#[test]
fn refusals_come_first_and_suppress_the_end_that_follows_them() {
    expect(vec![
        (
            shop().root(vec![
                junction("ChargeCard", &["Payment"], &[]),
                junction("not a junction", &["Order"], &[]),
            ]),
            &[
                "step 2: the junction's name 'not a junction' is not 1 to 100 of ASCII letters, digits, '_', '-' and \
                 '.'.",
                "step 1 (ChargeCard) needs 'Payment' in Memory and nothing before it puts one there.",
            ],
        ),
        (
            {
                let mut draft = shop();
                draft.train.subject_key = Some("order".to_string());
                draft
            },
            &[
                "the subject key 'order' is not a JSON pointer, which is '' or begins with '/', with '~' as '~0'.",
                "the chain ends without 'Receipt' in Memory.",
            ],
        ),
    ]);
}

/// C10, C11: a fault inside a track names the track, at every depth.
#[test]
fn a_fault_inside_a_track_names_the_track() {
    let mut draft = shop();
    let inner = draft.track("Yes", vec![junction("Charge", &["Payment"], &[])]);
    let no = draft.track("No", vec![junction("bad name", &[], &[])]);
    let refund = draft.track(
        "Refund",
        vec![junction("A", &[], &[]), gate("Fraud", Some(about("Order")), inner, no, None)],
    );
    let steps = vec![sell(), switch("Team", Some(about("Order")), &[("Billing", refund)], None)];
    expect(vec![(
        draft.root(steps),
        &[
            "step 2: track 'Refund', step 2: track 'No', step 1: the junction's name 'bad name' is not 1 to 100 of \
             ASCII letters, digits, '_', '-' and '.'.",
            "step 2: track 'Refund', step 2: track 'Yes', step 1 (Charge) needs 'Payment' in Memory and nothing \
             before it puts one there.",
        ],
    )]);
}

/// C11: after a routing step only what every track puts is there, fallbacks included.
#[test]
fn only_what_every_track_puts_is_there_afterwards() {
    let pay = |name: &str| junction(name, &[], &["Payment"]);
    let take = || junction("Take", &["Payment"], &["Receipt"]);
    let routed = |first: Vec<Step>, second: Vec<Step>, third: Option<Vec<Step>>, kind: &str| {
        let mut draft = shop();
        let (first, second) = (draft.track("First", first), draft.track("Second", second));
        let third = third.map(|steps| draft.track("Third", steps));
        let asking = Some(about("Order"));
        let step = match kind {
            "switch" => switch("Team", asking, &[("Billing", first), ("Tech", second)], third),
            "gate" => gate("Fraud", asking, first, second, third),
            _ => scale("Urgency", asking, &[("Low", first), ("High", second)], third),
        };
        draft.root(vec![step, take()])
    };
    for (kind, key) in [("switch", "Team"), ("gate", "Fraud"), ("scale", "Urgency")] {
        let missing =
            "step 2 (Take) needs 'Payment' in Memory and not every path to it puts one there."
                .to_string();
        let nothing: Vec<String> = Vec::new();
        let (all, none) = (vec![pay("A")], vec![]);
        assert_eq!(routed(all.clone(), all.clone(), None, kind).faults(), nothing);
        assert_eq!(routed(all.clone(), none.clone(), None, kind).faults(), [missing.as_str()]);
        assert_eq!(routed(none.clone(), all.clone(), None, kind).faults(), [missing.as_str()]);
        assert_eq!(routed(all.clone(), all.clone(), Some(none), kind).faults(), [missing.as_str()]);
        assert_eq!(routed(all.clone(), all.clone(), Some(all.clone()), kind).faults(), nothing);

        let mut taken = routed(all.clone(), all, None, kind);
        let inputs = [format!("TrackTaken<{key}>")];
        taken.train.root.push(junction("Report", &[&inputs[0]], &[]));
        assert_eq!(taken.faults(), nothing, "{kind}");
    }
}

/// C11: what one track puts is not there for another.
#[test]
fn a_track_does_not_see_its_siblings() {
    let mut draft = shop();
    let first = draft.track("First", vec![junction("A", &[], &["Payment"])]);
    let second = draft.track("Second", vec![junction("B", &["Payment"], &[])]);
    let steps = vec![gate("Fraud", Some(about("Order")), first, second, None), sell()];
    expect(vec![(
        draft.root(steps),
        &[
            "step 1: track 'Second', step 1 (B) needs 'Payment' in Memory and nothing before it puts one there.",
        ],
    )]);
}

/// C4, C9: a short circuit gives the train's output or fails, so that what it gives is not there for later steps.
#[test]
fn a_short_circuit_gives_the_output_or_nothing() {
    let cached = || short_circuit("Cached", &["Order"], &["Receipt"]);
    let refused = "step 1: a short circuit gives the train's output 'Receipt' and nothing else.";
    expect(vec![
        (shop().root(vec![cached(), sell()]), &[]),
        (
            shop().root(vec![cached()]),
            &["the chain ends without 'Receipt' in Memory on some paths."],
        ),
        (
            shop().root(vec![cached(), junction("Print", &["Receipt"], &[]), sell()]),
            &["step 2 (Print) needs 'Receipt' in Memory and not every path to it puts one there."],
        ),
        (shop().root(vec![short_circuit("Cached", &[], &["Payment"]), sell()]), &[refused]),
        (shop().root(vec![short_circuit("Cached", &[], &[]), sell()]), &[refused]),
        (
            shop().root(vec![short_circuit("Cached", &[], &["Receipt", "Payment"]), sell()]),
            &[refused],
        ),
    ]);
}

/// C9: a routing step that does not ask needs a decision made before it.
#[test]
fn routing_without_asking_needs_the_decision() {
    let mut draft = shop();
    let track = draft.track("Tech", vec![]);
    expect(vec![(
        draft.root(vec![switch("Team", None, &[("Tech", track)], None), sell()]),
        &[
            "step 1 (Switch<Team>) needs 'ChoiceDecision<Team>' in Memory and nothing before it puts one there.",
        ],
    )]);
}
