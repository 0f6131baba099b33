//! Runs through chains, step by step.

use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::declaration::Step;
use crate::chain::next::{End, Next, RunFailure};
use crate::chain::testing::world::{World, chosen, scored, yes};
use crate::chain::testing::{
    BASKET_SCHEMA, Draft, about, checkpoint, choice, decide, extract, gate, junction, scale, score,
    short_circuit, switch, yes_no,
};
use crate::chain::tests::sell;
use crate::chain::walk::Walk;
use crate::model::answer::Answer;
use crate::model::failure::{Failure, FailureClass};
use crate::model::value::Value;

fn text(type_name: &str, text: &str) -> Value {
    Value::new(type_name, format!("\"{text}\""))
}

fn declined() -> Failure {
    Failure::unclassified("Declined", "the card was declined")
}

fn start(chain: Chain) -> Walk {
    Walk::start(Arc::new(chain), text("Order", "order"))
}

fn failed(end: End) -> RunFailure {
    match end {
        End::Failed(failure) => failure,
        other => panic!("did not fail: {other:?}"),
    }
}

/// C2, C5: a junction gets exactly its declared inputs, the newest of each type, and the chain ends with the output.
#[test]
fn junctions_get_their_inputs_and_give_their_outputs() {
    let chain = Draft::new()
        .types(&["Payment"])
        .root(vec![
            junction("Charge", &["Order"], &["Payment"]),
            junction("Charge2", &["Payment", "Order"], &["Payment", "Order"]),
            junction("Sell", &["Order", "Payment"], &["Receipt"]),
        ])
        .chain();
    let mut world = World::default();
    world.run(chain);
    assert_eq!(
        world.log,
        [
            "Charge#0 call \"order\"",
            "Charge2#0 call \"Charge\" \"order\"",
            "Sell#0 call \"Charge2\" \"Charge2\"",
            "completed \"Sell\"",
        ]
    );
}

/// C3, C4: a short circuit's value is the run's result, the latest of several, and later steps still run.
#[test]
fn a_short_circuit_gives_the_result_and_later_steps_still_run() {
    let chain = || {
        Draft::new()
            .root(vec![
                short_circuit("Cached", &["Order"], &["Receipt"]),
                short_circuit("Stored", &["Order"], &["Receipt"]),
                sell(),
                junction("Print", &["Receipt"], &[]),
            ])
            .chain()
    };
    for (failing, result) in
        [(vec![], "Stored"), (vec!["Stored"], "Cached"), (vec!["Cached", "Stored"], "Sell")]
    {
        let mut world = World::default();
        world.failing.extend(failing.iter().map(|name| (name.to_string(), declined())));
        assert_eq!(world.run(chain()), End::Completed(text("Receipt", result)), "{failing:?}");
        assert_eq!(world.log[3], "Print#0 call \"Sell\"");
    }
}

/// C3, C4: a failure wins over a short circuit's value.
#[test]
fn a_failure_wins_over_a_short_circuit() {
    let cached = short_circuit("Cached", &["Order"], &["Receipt"]);
    let mut world = World::default();
    world.failing.insert("Sell".to_string(), declined());
    assert_eq!(failed(world.run(Draft::new().root(vec![cached, sell()]).chain())).junction, "Sell");
}

/// C7: a failing junction's node and name come with its failure, and nothing after it runs.
#[test]
fn a_failure_stops_the_run_and_names_its_junction() {
    let chain =
        Draft::new().root(vec![junction("A", &[], &[]), sell(), junction("B", &[], &[])]).chain();
    let sell = chain.nodes().iter().position(|node| node.id == "Sell#0").unwrap();
    let mut world = World::default();
    world.failing.insert("Sell".to_string(), declined());

    let failure = failed(world.run(chain));

    assert_eq!(failure.node.unwrap().index(), sell);
    assert_eq!(failure.junction, "Sell");
    assert_eq!(failure.failure, declined());
    assert_eq!(world.log.len(), 3, "{:?}", world.log);
}

/// C9: a junction gives exactly what it declares, in order; anything else is its failure.
#[test]
fn outputs_other_than_the_declared_ones_are_a_failure() {
    let receipt = || text("Receipt", "r");
    let order = || text("Order", "o");
    for (returned, got) in [
        (vec![], ""),
        (vec![receipt()], "Receipt"),
        (vec![order(), receipt()], "Order, Receipt"),
        (vec![receipt(), order(), order()], "Receipt, Order, Order"),
        (vec![receipt(), text("YesNoDecision<Fraud>", "")], "Receipt, YesNoDecision<Fraud>"),
    ] {
        let mut world = World::default();
        world.returning.insert("Sell".to_string(), returned);
        let chain = Draft::new().root(vec![junction("Sell", &[], &["Receipt", "Order"])]).chain();
        let failure = failed(world.run(chain)).failure;
        assert_eq!((failure.class, failure.name.as_str()), (FailureClass::Permanent, "BadOutput"));
        let expected =
            format!("'Sell#0' is declared to return [Receipt, Order] and returned [{got}].");
        assert_eq!(failure.message, expected);
    }
}

/// C4, C9: a short circuit that returns what it does not declare has not merely failed.
#[test]
fn a_short_circuit_is_held_to_its_declaration() {
    let mut world = World::default();
    world.returning.insert("Cached".to_string(), vec![text("Order", "o")]);
    let chain = Draft::new().root(vec![short_circuit("Cached", &[], &["Receipt"]), sell()]).chain();
    assert_eq!(failed(world.run(chain)).failure.name, "BadOutput");
}

/// C6: a cancelled run finishes the step it is at and skips every later one, whatever its kind.
#[test]
fn a_cancelled_run_skips_every_later_step() {
    let chain = || {
        let mut draft = Draft::new().question(yes_no("Fraud"));
        let yes = draft.track("Yes", vec![junction("A", &[], &[])]);
        let no = draft.track("No", vec![]);
        draft
            .root(vec![
                checkpoint("Order"),
                gate("Fraud", Some(about("Order")), yes, no, None),
                sell(),
            ])
            .chain()
    };
    for (cancel_at, steps) in [
        ("Checkpoint<Order>#0", 1),
        ("Decide<YesNoDecision<Fraud>>#0", 2),
        ("Gate<Fraud>#0", 3),
        ("Gate<Fraud>#0/Yes/A#0", 4),
    ] {
        let mut world = World { cancel_at: Some(cancel_at.to_string()), ..World::default() };
        assert_eq!(world.run(chain()), End::Cancelled, "{cancel_at}");
        assert_eq!(world.nodes.len(), steps, "{:?}", world.log);
    }
    let mut world = World { cancel_at: Some("Sell#0".to_string()), ..World::default() };
    assert!(matches!(world.run(chain()), End::Completed(_)), "nothing was left to skip");
}

/// C6: a run cancelled before it starts runs nothing; one whose caller gave up on a step ends as cancelled.
#[test]
fn a_run_can_be_cancelled_before_and_during_a_step() {
    let chain = || Draft::new().root(vec![sell()]).chain();
    let mut walk = start(chain());
    walk.cancel();
    assert!(matches!(walk.next(), Next::Done(End::Cancelled)));

    let mut walk = start(chain());
    assert!(matches!(walk.next(), Next::Call(_)));
    walk.cancel();
    assert!(matches!(walk.next(), Next::Done(End::Cancelled)));
    assert!(matches!(walk.next(), Next::Done(End::Cancelled)));
}

/// C6, C7: a failure to store a checkpoint is the run's failure, or its cancellation if it was cancelled meanwhile.
#[test]
fn a_checkpoint_that_is_not_stored_fails_the_run() {
    for (is_cancelled, expected) in [(false, "Checkpoint<Order>"), (true, "")] {
        let mut walk = start(Draft::new().root(vec![checkpoint("Order"), sell()]).chain());
        assert!(matches!(walk.next(), Next::Checkpoint(_)));
        if is_cancelled {
            walk.cancel();
        }
        walk.stored(Err(declined()));
        match walk.next() {
            Next::Done(End::Failed(failure)) => assert_eq!(failure.junction, expected),
            Next::Done(End::Cancelled) => assert!(is_cancelled),
            other => panic!("{other:?}"),
        }
    }
}

/// Q5, C19: several questions are asked in one call and routed on later; a routing step with a state asks by itself.
#[test]
fn decisions_are_asked_and_routed_on() {
    let mut draft = Draft::new()
        .question(choice("Team", &["Billing", "Tech"]))
        .question(score("Urgency", &["Low", "High"]))
        .question(yes_no("Fraud"));
    let tech = draft.track("Technicians", vec![junction("Look", &["ChoiceDecision<Team>"], &[])]);
    let rest = draft.track("Rest", vec![]);
    let (low, high) = (draft.track("Low", vec![]), draft.track("High", vec![]));
    let (yes_track, no_track) = (draft.track("Yes", vec![]), draft.track("No", vec![]));
    let chain = draft
        .root(vec![
            decide("Order", &["Team", "Urgency"]),
            switch("Team", None, &[("Tech", tech)], Some(rest)),
            scale("Urgency", None, &[("Low", low), ("High", high)], None),
            gate("Fraud", Some(about("Order")), yes_track, no_track, None),
            junction("Sell", &["TrackTaken<Team>", "YesNoDecision<Fraud>"], &["Receipt"]),
        ])
        .chain();
    let mut world = World::default();
    world.answers.insert("Team".to_string(), vec![chosen("Tech", 0.9)]);
    world.answers.insert("Urgency".to_string(), vec![scored(0.6, 1.0)]);
    world.answers.insert("Fraud".to_string(), vec![yes(0.25)]);
    world.run(chain);
    assert_eq!(
        world.log,
        [
            "Decide<ChoiceDecision<Team>, ScoreDecision<Urgency>>#0 ask \"order\" Team:0 Urgency:0",
            "Switch<Team>#0 take Technicians",
            "Switch<Team>#0/Technicians/Look#0 call {\"choice\":\"Tech\",\"confidence\":0.9}",
            "Scale<Urgency>#0 take High",
            "Decide<YesNoDecision<Fraud>>#0 ask \"order\" Fraud:0",
            "Gate<Fraud>#0 take No",
            "Sell#0 call {\"fallbackReason\":null,\"track\":\"Technicians\"} {\"probability\":0.25}",
            "completed \"Sell\"",
        ]
    );
}

/// Q9: what is not followed takes the fallback, and Memory and the record have the reason.
#[test]
fn a_decision_that_is_not_followed_leaves_its_reason() {
    let mut draft = Draft::new().question(choice("Team", &["Billing", "Tech"]));
    let (tech, rest) = (draft.track("Tech", vec![]), draft.track("Rest", vec![]));
    let chain = draft
        .root(vec![
            switch("Team", Some(about("Order")), &[("Tech", tech)], Some(rest)),
            junction("Sell", &["TrackTaken<Team>"], &["Receipt"]),
        ])
        .chain();
    let mut world = World::default();
    world.run(chain);
    let reason = "'Billing' was chosen with confidence 1 (bar 0) and has no track";
    assert_eq!(world.log[1], format!("Switch<Team>#0 take Rest because {reason}"));
    assert_eq!(
        world.log[2],
        format!("Sell#0 call {{\"fallbackReason\":\"{reason}\",\"track\":\"Rest\"}}")
    );
}

/// Q14: without a track to take the run fails for good, at the routing step.
#[test]
fn no_track_to_take_fails_the_run() {
    let mut draft = Draft::new().question(choice("Team", &["Billing", "Tech"]));
    let tech = draft.track("Tech", vec![]);
    let chain = draft
        .root(vec![switch("Team", Some(about("Order")), &[("Tech", tech)], None), sell()])
        .chain();
    let failure = failed(World::default().run(chain));
    assert_eq!(failure.junction, "Switch<Team>");
    assert_eq!(failure.failure.class, FailureClass::Permanent);
}

/// V12: askings of one key are counted from 0, whichever step asks.
#[test]
fn askings_are_counted_per_key() {
    let draft = Draft::new().question(yes_no("Fraud")).question(yes_no("Ill"));
    let root = vec![
        decide("Order", &["Fraud"]),
        decide("Order", &["Ill", "Fraud"]),
        decide("Order", &["Fraud"]),
        sell(),
    ];
    let mut world = World::default();
    world.run(draft.root(root).chain());
    let asked: Vec<&str> = world
        .log
        .iter()
        .filter_map(|line| line.split_once("\"order\" "))
        .map(|(_, asked)| asked)
        .collect();
    assert_eq!(asked, ["Fraud:0", "Ill:0 Fraud:1", "Fraud:2"]);
}

/// Q2, Q5: a step asks in its own words and of its own decider where it has them.
#[test]
fn a_step_asks_in_its_words_and_of_its_decider() {
    let asked = |change: &dyn Fn(&mut crate::chain::declaration::Decide)| {
        let mut draft = Draft::new().question(yes_no("Fraud"));
        draft.train.default_decider = Some("rules".to_string());
        let Step::Decide(mut step) = decide("Order", &["Fraud"]) else { panic!("not a decide") };
        change(&mut step);
        match start(draft.root(vec![Step::Decide(step), sell()]).chain()).next() {
            Next::Ask(ask) => ask,
            other => panic!("{other:?}"),
        }
    };
    let plain = asked(&|_| {});
    assert_eq!(plain.questions[0].question, yes_no("Fraud"));
    assert_eq!(plain.decider, None);
    assert_eq!((plain.shadows.len(), plain.wait_for_shadows_ms), (0, None));
    let own = asked(&|step| {
        step.questions[0].instructions = Some("Really?".to_string());
        step.decider = Some("model".to_string());
        step.shadows = vec!["rules".to_string()];
        step.wait_for_shadows_ms = Some(7);
    });
    assert_eq!(own.questions[0].question.instructions, "Really?");
    assert_eq!(own.decider.as_deref(), Some("model"));
    assert_eq!(
        (own.shadows.as_slice(), own.wait_for_shadows_ms),
        (["rules".to_string()].as_slice(), Some(7))
    );
}

/// Q13, Q14: a decider's failure is the run's; answers to something else fail it for now.
#[test]
fn answers_that_do_not_fit_fail_the_run() {
    let answer = |key: &str, kind| Answer { key: key.to_string(), kind, model: None };
    for (outcome, name, class) in [
        (Err(declined()), "Declined", FailureClass::Unclassified),
        (Ok(vec![]), "BadAnswer", FailureClass::Transient),
        (Ok(vec![answer("Ill", yes(1.0))]), "BadAnswer", FailureClass::Transient),
        (Ok(vec![answer("Fraud", scored(1.0, 1.0))]), "BadAnswer", FailureClass::Transient),
        (Ok(vec![answer("Fraud", yes(f64::NAN))]), "BadAnswer", FailureClass::Transient),
        (
            Ok(vec![answer("Fraud", yes(1.0)), answer("Fraud", yes(1.0))]),
            "BadAnswer",
            FailureClass::Transient,
        ),
    ] {
        let draft = Draft::new().question(yes_no("Fraud"));
        let mut walk = start(draft.root(vec![decide("Order", &["Fraud"]), sell()]).chain());
        assert!(matches!(walk.next(), Next::Ask(_)));
        walk.answered(outcome);
        let Next::Done(end) = walk.next() else { panic!("went on") };
        let failure = failed(end);
        assert_eq!(failure.junction, "Decide<YesNoDecision<Fraud>>");
        assert_eq!((failure.failure.name.as_str(), failure.failure.class), (name, class));
    }
}

/// C2: an extract takes the member of the value in Memory.
#[test]
fn extracts_take_a_member() {
    let chain = || {
        let mut draft = Draft::new().types(&["Card"]);
        draft.shape("Basket", BASKET_SCHEMA);
        let steps = vec![
            junction("Fill", &[], &["Basket"]),
            extract("Basket", "card", "Card"),
            junction("Sell", &["Card"], &["Receipt"]),
        ];
        draft.root(steps).chain()
    };
    let mut world = World::default();
    world.returning.insert("Fill".to_string(), vec![Value::new("Basket", r#"{"card":"4711"}"#)]);
    world.run(chain());
    assert_eq!(world.log[1], "Sell#0 call \"4711\"");

    let mut world = World::default();
    world.returning.insert("Fill".to_string(), vec![Value::new("Basket", "{}")]);
    let failure = failed(world.run(chain()));
    assert_eq!(
        (failure.junction.as_str(), failure.failure.name.as_str()),
        ("Extract<Basket, Card>", "BadExtract")
    );
}

/// K1, K7: a checkpoint holds the state and the tracks before it, but none of a sensitive question.
#[test]
fn a_checkpoint_has_the_state_and_the_open_tracks() {
    let mut draft =
        Draft::new().question(yes_no("Fraud")).question(yes_no("Ill")).question(yes_no("Late"));
    draft.train.questions[1].sensitive = true;
    let asking = || Some(about("Order"));
    let mut gated = |key: &str, name: &str, steps: Vec<Step>| {
        let (yes, no) = (draft.track(name, steps), draft.track("No", vec![]));
        gate(key, asking(), yes, no, None)
    };
    let inside = gated("Late", "late", vec![checkpoint("Order")]);
    let root = vec![
        gated("Fraud", "fraud", vec![junction("A", &[], &["Order"])]),
        gated("Ill", "ill", vec![]),
        gated("Fraud", "again", vec![inside]),
        sell(),
    ];
    let mut world = World::default();
    world.run(draft.root(root).chain());
    let stored: Vec<&String> = world.log.iter().filter(|line| line.contains(" store ")).collect();
    assert_eq!(
        stored,
        [
            r#"Gate<Fraud>#1/again/Gate<Late>#0/late/Checkpoint<Order>#0 store "A" ["fraud", "again", "late"]"#
        ]
    );
}

/// C7, O14: a failure inside a track of a sensitive question does not tell the track.
#[test]
fn a_failure_in_a_sensitive_track_does_not_tell_the_track() {
    let mut draft = Draft::new().question(yes_no("Ill"));
    draft.train.questions[0].sensitive = true;
    let yes_track = draft.track("Hospital", vec![junction("Admit", &[], &["Order"])]);
    let no_track = draft.track("Home", vec![]);
    let chain = draft
        .root(vec![gate("Ill", Some(about("Order")), yes_track, no_track, None), sell()])
        .chain();
    let mut world = World::default();
    world.returning.insert("Admit".to_string(), vec![]);
    let failure = failed(world.run(chain));
    assert_eq!(failure.junction, "Admit");
    assert_eq!(failure.failure.message, "'Admit' is declared to return [Order] and returned [].");
}

/// A caller that breaks the protocol ends the walk as failed; it never panics and never goes on.
#[test]
fn replies_out_of_turn_end_the_walk() {
    let breaches: [&dyn Fn(&mut Walk); 5] = [
        &|walk| walk.answered(Ok(vec![])),
        &|walk| walk.stored(Ok(())),
        &|walk| walk.joined(vec![]),
        &|walk| {
            walk.returned(Err(declined()));
            walk.returned(Ok(vec![]));
        },
        &|_| {},
    ];
    for (position, breach) in breaches.into_iter().enumerate() {
        let mut walk = start(Draft::new().root(vec![sell()]).chain());
        assert!(matches!(walk.next(), Next::Call(_)));
        breach(&mut walk);
        let Next::Done(end) = walk.next() else { panic!("breach {position} went on") };
        let expected = if position == 3 { "Declined" } else { "HostFault" };
        assert_eq!(failed(end).failure.name, expected, "breach {position}");
    }
    let mut walk = start(Draft::new().root(vec![sell()]).chain());
    walk.returned(Ok(vec![]));
    assert!(matches!(walk.next(), Next::Done(End::Failed(RunFailure { node: None, .. }))));
}
