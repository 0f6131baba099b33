//! What verification refuses in single steps.

use crate::chain::declaration::{BranchFailure, Parallel, Step};
use crate::chain::node::NodeKind;
use crate::chain::testing::{
    about, checkpoint, decide, extract, gate, junction, parallel, scale, short_circuit, switch,
    work,
};
use crate::chain::tests::{expect, sell, shop};

/// C9: what a junction names must exist, and a name stands for one signature.
#[test]
fn junctions_name_what_exists() {
    let asking = |keys: &[&str]| {
        let mut asking = work("Sell", &["Order"], &["Receipt"]);
        asking.asks = keys.iter().map(ToString::to_string).collect();
        Step::Junction(asking)
    };
    let other = "step 2: the junction 'Sell' has other inputs, outputs or questions than where the train names it \
                 first. A name stands for the same work wherever it appears.";
    expect(vec![
        (shop().root(vec![sell(), sell()]), &[]),
        (shop().root(vec![asking(&["Team", "Fraud"])]), &[]),
        (shop().root(vec![sell(), asking(&["Team"])]), &[other]),
        (shop().root(vec![sell(), short_circuit("Sell", &[], &["Receipt"])]), &[other]),
        (shop().root(vec![asking(&["Mood"])]), &["step 1: the train has no question 'Mood'."]),
        (
            shop().root(vec![asking(&["Team", "Team"])]),
            &["step 1: the junction names the question 'Team' twice."],
        ),
        (
            shop().root(vec![sell(), junction("A", &["Order"], &["Payment", "Payment"])]),
            &["step 2: the junction gives 'Payment' twice."],
        ),
        (
            shop().root(vec![sell(), junction("A", &[], &["Nowhere"])]),
            &["step 2: the junction gives 'Nowhere', which is not a type."],
        ),
        (
            shop().root(vec![
                sell(),
                junction("A", &[], &["YesNoDecision<Fraud>", "TrackTaken<Fraud>"]),
            ]),
            &[
                "step 2: the junction gives 'YesNoDecision<Fraud>', which only the host makes.",
                "step 2: the junction gives 'TrackTaken<Fraud>', which only the host makes.",
            ],
        ),
        (
            shop().root(vec![
                sell(),
                junction("Resolve", &[], &[]),
                junction("Parallel", &[], &[]),
            ]),
            &[
                "step 2: 'Resolve' is a step of the host's own; name the junction differently.",
                "step 3: 'Parallel' is a step of the host's own; name the junction differently.",
            ],
        ),
    ]);
}

/// C9: a type that only the host makes exists when its question does and is of that kind.
#[test]
fn host_made_types_follow_their_questions() {
    for (name, exists) in [
        ("ChoiceDecision<Team>", true),
        ("ScoreDecision<Urgency>", true),
        ("YesNoDecision<Fraud>", true),
        ("TrackTaken<Team>", true),
        ("ScoreDecision<Team>", false),
        ("ChoiceDecision<Mood>", false),
        ("TrackTaken<Mood>", false),
        ("Choice<Team>", false),
        ("ChoiceDecision<Team", false),
        ("<Team>", false),
        ("", false),
    ] {
        let faults = shop().root(vec![sell(), junction("A", &[name], &[])]).faults();
        let refused = format!("step 2: the junction takes '{name}', which is not a type.");
        assert_eq!(faults.contains(&refused), !exists, "{name}: {faults:?}");
    }
}

/// C9: an extract takes a member that its type has, between declared types.
#[test]
fn extracts_name_declared_types() {
    expect(vec![
        (
            shop().root(vec![sell(), extract("Order", "card", "Nowhere")]),
            &["step 2: 'Nowhere' is not a type of the train."],
        ),
        (
            shop().root(vec![
                sell(),
                decide("Order", &["Fraud"]),
                extract("YesNoDecision<Fraud>", "probability", "Payment"),
            ]),
            &["step 3: 'YesNoDecision<Fraud>' is made by the host; only junctions can take it."],
        ),
    ]);
}

/// Q11: a step that asks has its tracks looked at before: without them there is no chain, and so nobody to ask.
#[test]
fn a_step_with_wrong_tracks_asks_nobody() {
    let asking = |tracks: &[&str]| {
        let mut draft = shop();
        let track = draft.track("Billing", vec![sell()]);
        let tracks: Vec<_> = tracks.iter().map(|option| (*option, track)).collect();
        draft.root(vec![switch("Team", Some(about("Order")), &tracks, None), sell()])
    };
    assert!(asking(&["Billing"]).chain().nodes().iter().any(|node| node.kind == NodeKind::Decide));
    for tracks in [&[][..], &["Nobody"], &["Billing", "Billing"]] {
        let faults = asking(tracks).faults();
        assert!(faults.iter().any(|fault| fault.starts_with("step 1: ")), "{faults:?}");
    }
}

/// Q4, Q10: what a step asks exists and is asked once, and its deciders are names, each in one role.
#[test]
fn askings_are_checked() {
    let asking = |change: &dyn Fn(&mut crate::chain::declaration::Decide)| {
        let mut draft = shop();
        draft.train.default_decider = Some("rules".to_string());
        let Step::Decide(mut step) = decide("Order", &["Team"]) else { panic!("not a decide") };
        change(&mut step);
        draft.root(vec![Step::Decide(step), sell()]).faults()
    };
    let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let identifier = "1 to 100 of ASCII letters, digits, '_', '-' and '.'";
    assert!(asking(&|_| {}).is_empty());
    assert!(asking(&|step| step.wait_for_shadows_ms = Some(0)).is_empty());
    assert_eq!(asking(&|step| step.questions.clear()), ["step 1: it asks no question."]);
    assert_eq!(
        asking(&|step| step.questions.push(step.questions[0].clone())),
        ["step 1: it asks 'Team' twice."]
    );
    assert_eq!(
        asking(&|step| step.questions[0].key = "Mood".to_string()),
        ["step 1: the train has no question 'Mood'."]
    );
    assert_eq!(
        asking(&|step| step.questions[0].instructions = Some(" ".to_string())),
        ["step 1: it asks 'Team' with no words."]
    );
    assert_eq!(
        asking(&|step| step.decider = Some("a b".to_string())),
        [format!("step 1: the name of its decider 'a b' is not {identifier}.")]
    );
    assert_eq!(
        asking(&|step| step.shadows = strings(&["", "model"])),
        [format!("step 1: the name of its shadow '' is not {identifier}.")]
    );
    assert_eq!(
        asking(&|step| step.shadows = strings(&["model", "other", "model"])),
        ["step 1: it names the shadow 'model' twice."]
    );
    assert_eq!(
        asking(&|step| step.shadows = strings(&["rules"])),
        ["step 1: its shadow 'rules' is its decider as well."]
    );
    assert_eq!(
        asking(&|step| step.wait_for_shadows_ms = Some(u64::MAX)),
        ["step 1: it waits for shadows longer than 600000 milliseconds."]
    );
}

/// Q6, Q7, Q8: a routing step has the tracks and bars that its kind needs, for options and levels that exist.
#[test]
fn routing_steps_are_checked() {
    let routed = |make: &dyn Fn(&[u32]) -> Step| {
        let mut draft = shop();
        let tracks: Vec<u32> =
            ["A", "B", "C"].iter().map(|name| draft.track(name, vec![])).collect();
        let step = make(&tracks);
        let used = step.tracks().len();
        draft.train.tracks.truncate(used);
        draft.root(vec![decide("Order", &["Team", "Urgency", "Fraud"]), step, sell()]).faults()
    };
    let gated = |yes: f64, no: f64| {
        routed(&|tracks| {
            let Step::Gate(mut step) = gate("Fraud", None, tracks[0], tracks[1], None) else {
                panic!("not a gate")
            };
            (step.yes_at_least, step.no_below) = (yes, no);
            Step::Gate(step)
        })
    };
    let nothing: [&str; 0] = [];
    assert_eq!(gated(0.8, 0.3), nothing);
    assert_eq!(gated(0.0, 0.0), nothing);
    assert_eq!(gated(0.3, 0.8), ["step 2: its bars cross: no below 0.8 and yes from 0.3."]);
    assert_eq!(gated(1.1, 0.5), ["step 2: its bar for yes is 1.1, and bars are from 0 to 1."]);
    assert_eq!(gated(f64::NAN, 0.5), ["step 2: its bar for yes is NaN, and bars are from 0 to 1."]);
    assert_eq!(gated(0.5, -0.1), ["step 2: its bar for no is -0.1, and bars are from 0 to 1."]);

    let switched = |tracks: &[&str], key: &str| {
        routed(&|indices| {
            let named: Vec<(&str, u32)> =
                tracks.iter().copied().zip(indices.iter().copied()).collect();
            switch(key, None, &named, None)
        })
    };
    assert_eq!(switched(&["Billing"], "Team"), nothing);
    assert_eq!(switched(&[], "Team"), ["step 2: it has no tracks."]);
    assert_eq!(switched(&["Sales"], "Team"), ["step 2: the question has no option 'Sales'."]);
    assert_eq!(switched(&["Tech", "Tech"], "Team"), ["step 2: its option 'Tech' has two tracks."]);
    assert_eq!(switched(&["Tech"], "Mood")[0], "step 2: the train has no question 'Mood'.");
    assert_eq!(
        switched(&["Tech"], "Urgency"),
        ["step 2: Switch<Urgency> routes by a question that is answered by score."]
    );

    let scaled = |tracks: &[&str]| {
        routed(&|indices| {
            let named: Vec<(&str, u32)> =
                tracks.iter().copied().zip(indices.iter().copied()).collect();
            scale("Urgency", None, &named, None)
        })
    };
    let lowest = "step 2: its lowest level 'Low' has no track, so a low score would lead nowhere.";
    assert_eq!(scaled(&["High", "Low"]), nothing);
    assert_eq!(scaled(&["Low"]), nothing);
    assert_eq!(scaled(&["High"]), [lowest]);
    assert_eq!(scaled(&[]), ["step 2: it has no tracks.", lowest]);
    assert_eq!(scaled(&["Low", "Middle"]), ["step 2: the question has no level 'Middle'."]);
}

/// Q6, Q8: bars of switches and scales are from 0 to 1.
#[test]
fn bars_are_from_zero_to_one() {
    for (bar, is_fit) in [(0.0, true), (1.0, true), (-0.1, false), (1.5, false), (f64::NAN, false)]
    {
        let mut draft = shop();
        let [a, b, c] = ["A", "B", "C"].map(|name| draft.track(name, vec![]));
        let Step::Switch(mut by_team) =
            switch("Team", Some(about("Order")), &[("Tech", a), ("Billing", b)], None)
        else {
            panic!("not a switch")
        };
        by_team.require_confidence = bar;
        by_team.tracks[1].require_confidence = Some(bar);
        let Step::Scale(mut by_urgency) =
            scale("Urgency", Some(about("Order")), &[("Low", c)], None)
        else {
            panic!("not a scale")
        };
        by_urgency.require_confidence = bar;
        let faults =
            draft.root(vec![Step::Switch(by_team), Step::Scale(by_urgency), sell()]).faults();
        let expected = [
            format!("step 1: its bar is {bar}, and bars are from 0 to 1."),
            format!("step 1: the bar of 'Billing' is {bar}, and bars are from 0 to 1."),
            format!("step 2: its bar is {bar}, and bars are from 0 to 1."),
        ];
        assert_eq!(faults, if is_fit { vec![] } else { expected.to_vec() });
    }
}

/// K3, C9: a checkpoint holds a declared state that may be stored, where a resume could go on from it.
#[test]
fn checkpoints_hold_what_may_be_stored() {
    let mut sensitive = shop();
    sensitive.train.types[2].sensitive = true;
    let mut secret = shop();
    secret.train.questions[2].sensitive = true;
    let inner = secret.track("Inner", vec![checkpoint("Order")]);
    let yes =
        secret.track("Yes", vec![switch("Team", Some(about("Order")), &[("Tech", inner)], None)]);
    let no = secret.track("No", vec![]);
    expect(vec![
        (
            sensitive.root(vec![sell(), junction("A", &[], &["Payment"]), checkpoint("Payment")]),
            &[
                "step 3: it checkpoints 'Payment', which is sensitive or contains a sensitive type, and checkpoints \
                 are stored.",
            ],
        ),
        (
            secret.root(vec![sell(), gate("Fraud", Some(about("Order")), yes, no, None)]),
            &[
                "step 2: track 'Yes', step 1: track 'Inner', step 1: a checkpoint in a track of Gate<Fraud> would \
                 tell which track was taken, and the question is sensitive.",
            ],
        ),
        (
            shop().root(vec![
                short_circuit("Cached", &[], &["Receipt"]),
                checkpoint("Order"),
                sell(),
            ]),
            &[
                "step 2: a checkpoint after a ShortCircuit could not restore the result it may have given; move it \
                 before.",
            ],
        ),
        (
            shop().root(vec![
                decide("Order", &["Fraud"]),
                checkpoint("YesNoDecision<Fraud>"),
                sell(),
            ]),
            &["step 2: 'YesNoDecision<Fraud>' is made by the host; only junctions can take it."],
        ),
    ]);
}

/// K3: "after" a short circuit means on the same path: in the same track or after the step that has the track.
#[test]
fn a_checkpoint_may_stand_beside_a_short_circuit() {
    let routed = |in_first: Vec<Step>, in_second: Vec<Step>, after: Vec<Step>| {
        let mut draft = shop();
        let (first, second) = (draft.track("A", in_first), draft.track("B", in_second));
        let mut steps = vec![gate("Fraud", Some(about("Order")), first, second, None)];
        steps.extend(after);
        steps.push(sell());
        draft.root(steps).faults().len()
    };
    let cached = || short_circuit("Cached", &[], &["Receipt"]);
    assert_eq!(routed(vec![cached()], vec![checkpoint("Order")], vec![]), 0);
    assert_eq!(routed(vec![checkpoint("Order"), cached()], vec![], vec![]), 0);
    assert_eq!(routed(vec![cached(), checkpoint("Order")], vec![], vec![]), 1);
    assert_eq!(routed(vec![cached()], vec![], vec![checkpoint("Order")]), 1);
}

/// C9, C20: branches are there, have unique names, put different types, and give no early result.
#[test]
fn parallel_steps_are_checked() {
    let branches = |before: Vec<Step>, left: Vec<Step>, right: Vec<Step>, after: Vec<Step>| {
        let mut draft = shop();
        let (left, right) = (draft.track("left", left), draft.track("right", right));
        let mut steps = before;
        steps.push(parallel(&[left, right]));
        steps.extend(after);
        steps.push(sell());
        draft.root(steps).faults()
    };
    let pay = |name: &str| junction(name, &[], &["Payment"]);
    let refund = || junction("Refund", &[], &["Refund"]);
    let nothing: [&str; 0] = [];
    let take = || junction("Take", &["Payment", "Refund"], &[]);
    assert_eq!(branches(vec![], vec![pay("A")], vec![refund()], vec![take()]), nothing);
    assert_eq!(
        branches(vec![], vec![pay("A"), pay("B")], vec![decide("Order", &["Fraud"])], vec![]),
        nothing
    );
    assert_eq!(
        branches(vec![], vec![pay("A")], vec![pay("B")], vec![]),
        [
            "step 1: the branches 'left' and 'right' both put 'Payment'. Give each a type of its own."
        ]
    );
    assert_eq!(
        branches(vec![pay("A")], vec![], vec![pay("B")], vec![]),
        [
            "step 2: the branch 'right' puts 'Payment', which may be in Memory before the branches start. Give it a \
             type of its own."
        ]
    );
    assert_eq!(
        branches(vec![], vec![pay("A")], vec![junction("B", &["Payment"], &[])], vec![]),
        [
            "step 1: branch 'right', step 1 (B) needs 'Payment' in Memory and nothing before it puts one there."
        ]
    );
    assert_eq!(
        branches(vec![], vec![short_circuit("C", &[], &["Receipt"])], vec![], vec![]),
        [
            "step 1: branch 'left', step 1: a short circuit in a branch would race the other branches for the run's \
             result; move it out."
        ]
    );
    let asks = || decide("Order", &["Fraud"]);
    assert_eq!(branches(vec![], vec![asks()], vec![asks()], vec![]), nothing);
    assert_eq!(
        branches(vec![], vec![asks()], vec![], vec![junction("B", &["YesNoDecision<Fraud>"], &[])]),
        ["step 2 (B) needs 'YesNoDecision<Fraud>' in Memory and nothing before it puts one there."]
    );
    let empty =
        Step::Parallel(Parallel { branches: vec![], on_failure: BranchFailure::WaitForAll });
    expect(vec![(shop().root(vec![sell(), empty]), &["step 2: it has no branches."])]);
}
