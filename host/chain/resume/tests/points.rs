//! Which points are allowed, and what is said of those that are not, word for word.

use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::node::NodeIndex;
use crate::chain::resume::{Point, Start, Stored, check};
use crate::chain::testing::{
    BASKET_SCHEMA, Draft, about, checkpoint, decide, extract, gate, junction, parallel,
    short_circuit, switch, yes_no,
};
use crate::model::ids::RunId;
use crate::model::question::Question;

/// The checkpoints with these ids, as a run of this chain stores them.
pub(super) fn stored(chain: &Chain, ids: &[&str]) -> Vec<Stored> {
    ids.iter().map(|id| row(chain, 1, id)).collect()
}

pub(super) fn row(chain: &Chain, run: i64, id: &str) -> Stored {
    let state = chain.find(id).map(|node| chain.node(node).inputs[0].to_string());
    let fingerprint = state.and_then(|state| chain.types().shape_fingerprint(&state));
    Stored {
        run: RunId(run),
        node_id: id.to_owned(),
        chain_hash: chain.hash().to_owned(),
        state_fingerprint: fingerprint.unwrap_or_default(),
        tracks: "[]".to_owned(),
    }
}

/// The point as text: what is restored, and where the run starts.
pub(super) fn shown(chain: &Chain, point: &Point) -> String {
    let id = |node: NodeIndex| chain.node(node).id.clone();
    let restored: Vec<String> = point.checkpoints().map(id).collect();
    let start = match point.start {
        Start::Top => "top".to_owned(),
        Start::After(node) => format!("after {}", id(node)),
        Start::At(node) => format!("at {}", id(node)),
    };
    format!("{} {start}", restored.join("+"))
}

fn verdict(chain: &Chain, ids: &[&str], at: Option<&str>) -> String {
    match check(chain, &stored(chain, ids), at) {
        Ok(point) => shown(chain, &point),
        Err(refusal) => format!("{}: {}", refusal.code.as_str(), refusal.message),
    }
}

fn verdicts(chain: &Chain, cases: &[(&[&str], Option<&str>, &str)]) {
    for (ids, at, expected) in cases {
        assert_eq!(verdict(chain, ids, *at), *expected, "{ids:?} at {at:?}");
    }
}

fn sell(inputs: &[&str]) -> crate::chain::declaration::Step {
    junction("Sell", inputs, &["Receipt"])
}

/// `Find`, checkpoint, `Pay`, checkpoint, `Sell`: each step takes only what the one before gives.
pub(super) fn shop() -> Chain {
    Draft::new()
        .types(&["Goods", "Payment"])
        .root(vec![
            junction("Find", &["Order"], &["Goods"]),
            checkpoint("Goods"),
            junction("Pay", &["Goods"], &["Payment"]),
            checkpoint("Payment"),
            sell(&["Payment"]),
        ])
        .chain()
}

const GOODS: &str = "Checkpoint<Goods>#0";
const PAYMENT: &str = "Checkpoint<Payment>#0";

/// K14, K19, R96: without a point a run resumes after the latest checkpoint outside branches; without one it does not.
#[test]
fn a_run_resumes_after_its_latest_checkpoint() {
    verdicts(
        &shop(),
        &[
            (&[GOODS], None, "Checkpoint<Goods>#0 after Checkpoint<Goods>#0"),
            (&[PAYMENT, GOODS], None, "Checkpoint<Payment>#0 after Checkpoint<Payment>#0"),
            (
                &[],
                None,
                "no-checkpoint: The run wrote no checkpoint, so it can only run again from the top.",
            ),
            (
                &["Checkpoint<Gone>#0"],
                None,
                "no-checkpoint: The run wrote no checkpoint, so it can only run again from the top.",
            ),
        ],
    );
}

/// K15, K19, K13c: a named step takes the latest checkpoint before it, and names that there is none, or no such step.
#[test]
fn a_run_resumes_at_a_named_step() {
    let both: &[&str] = &[GOODS, PAYMENT];
    verdicts(
        &shop(),
        &[
            (both, Some("Pay#0"), "Checkpoint<Goods>#0 at Pay#0"),
            (
                both,
                Some(PAYMENT),
                "missing-input: 'Checkpoint<Payment>#0' needs 'Payment' in Memory, and no checkpoint \
              before the resume point holds one. 'Sell#0' needs 'Payment' in Memory, and no checkpoint before the \
              resume point holds one.",
            ),
            (both, Some("Sell#0"), "Checkpoint<Payment>#0 at Sell#0"),
            (
                both,
                Some("Find#0"),
                "no-checkpoint: No checkpoint the run wrote comes before 'Find#0', so it can only run again from the \
                 top.",
            ),
            (
                both,
                Some(GOODS),
                "no-checkpoint: No checkpoint the run wrote comes before 'Checkpoint<Goods>#0', so it can only run \
                 again from the top.",
            ),
            (both, Some("Sell#1"), "unknown-step: The chain declares no step 'Sell#1'."),
            (
                both,
                Some("Resolve#0"),
                "not-a-step: 'Resolve#0' is not a step a run can start at. Resume at the step after it.",
            ),
        ],
    );
}

/// K15: an extract is no step a run starts at, and a routing step that asks its own question is asked again.
#[test]
fn a_routing_step_is_asked_again() {
    let mut draft = Draft::new().types(&["Card"]).question(yes_no("Fraud"));
    draft.shape("Basket", BASKET_SCHEMA);
    let (yes, no) = (draft.track("Yes", vec![]), draft.track("No", vec![junction("J", &[], &[])]));
    let chain = draft
        .root(vec![
            junction("Fill", &[], &["Basket"]),
            checkpoint("Basket"),
            extract("Basket", "card", "Card"),
            gate("Fraud", Some(about("Card")), yes, no, None),
            decide("Order", &["Fraud"]),
            sell(&["Order"]),
        ])
        .chain();
    let stored: &[&str] = &["Checkpoint<Basket>#0"];
    verdicts(
        &chain,
        &[
            (
                stored,
                Some("Extract<Basket, Card>#0"),
                "not-a-step: 'Extract<Basket, Card>#0' is not a step a run can start at. Resume at the step after it.",
            ),
            (
                stored,
                Some("Gate<Fraud>#0"),
                "missing-input: 'Decide<YesNoDecision<Fraud>>#0' needs 'Card' in Memory, and no checkpoint before the \
                 resume point holds one.",
            ),
            (
                stored,
                Some("Decide<YesNoDecision<Fraud>>#1"),
                "Checkpoint<Basket>#0 at Decide<YesNoDecision<Fraud>>#1",
            ),
            (
                stored,
                Some("Gate<Fraud>#0/No/J#0"),
                "off-the-path: 'Gate<Fraud>#0/No/J#0' is in a track of a routing step after the checkpoint \
                 'Checkpoint<Basket>#0', which a resumed run would not ask. Resume at that routing step.",
            ),
        ],
    );
    let mut draft = Draft::new().question(yes_no("Fraud"));
    let (yes, no) = (draft.track("Yes", vec![]), draft.track("No", vec![]));
    let gate = gate("Fraud", Some(about("Order")), yes, no, None);
    let chain = draft.root(vec![checkpoint("Order"), gate, sell(&["Order"])]).chain();
    let at = verdict(&chain, &["Checkpoint<Order>#0"], Some("Gate<Fraud>#0"));
    assert_eq!(at, "Checkpoint<Order>#0 at Decide<YesNoDecision<Fraud>>#0");
}

/// K16, K19: a value that only a skipped step gave is missing; one that a skipped step replaced is stale.
#[test]
fn what_skipped_steps_gave_is_gone() {
    let chain = Draft::new()
        .types(&["A", "B"])
        .root(vec![
            junction("First", &["Order"], &["A", "B"]),
            checkpoint("A"),
            junction("Again", &[], &["Order"]),
            junction("Both", &["A"], &["A"]),
            junction("Last", &["A", "Order"], &[]),
            sell(&["B"]),
        ])
        .chain();
    let missing = "needs 'B' in Memory, and no checkpoint before the resume point holds one.";
    let stale = |node: &str, name: &str| {
        format!(
            "'{node}' reads '{name}', which a step before the resume point replaced; a resumed run would hold the \
                 older value."
        )
    };
    let after = format!("missing-input: 'Sell#0' {missing}");
    let at = format!(
        "missing-input: {} {} 'Sell#0' {missing}",
        stale("Last#0", "A"),
        stale("Last#0", "Order")
    );
    let stored: &[&str] = &["Checkpoint<A>#0"];
    verdicts(&chain, &[(stored, None, &after), (stored, Some("Last#0"), &at)]);

    let chain = Draft::new()
        .types(&["A"])
        .root(vec![
            junction("Change", &["Order"], &["Order", "A"]),
            checkpoint("A"),
            junction("Echo", &["Order"], &[]),
            sell(&["A"]),
        ])
        .chain();
    let expected = format!("stale-value: {}", stale("Echo#0", "Order"));
    verdicts(&chain, &[(stored, None, &expected)]);
}

/// K16: decisions made before the checkpoint are not stored; tracks taken are, unless the question is sensitive.
#[test]
fn decisions_are_not_restored_and_open_tracks_are() {
    let chain = |is_sensitive: bool, inputs: &[&str]| {
        let question = Question { sensitive: is_sensitive, ..yes_no("Fraud") };
        let mut draft = Draft::new().question(question);
        let (yes, no) = (draft.track("Yes", vec![]), draft.track("No", vec![]));
        let gate = gate("Fraud", Some(about("Order")), yes, no, None);
        draft.root(vec![gate, checkpoint("Order"), sell(inputs)]).chain()
    };
    let stored: &[&str] = &["Checkpoint<Order>#0"];
    let allowed = "Checkpoint<Order>#0 after Checkpoint<Order>#0";
    verdicts(&chain(false, &["TrackTaken<Fraud>"]), &[(stored, None, allowed)]);
    for (is_sensitive, name) in [(false, "YesNoDecision<Fraud>"), (true, "TrackTaken<Fraud>")] {
        let expected = format!(
            "missing-input: 'Sell#0' needs '{name}' in Memory, and no checkpoint before the resume point holds one."
        );
        verdicts(&chain(is_sensitive, &[name]), &[(stored, None, &expected)]);
    }
    let mut draft = Draft::new().question(crate::chain::testing::choice("Team", &["A", "B"]));
    let (a, b) = (draft.track("A", vec![]), draft.track("B", vec![]));
    let later = switch("Team", None, &[("A", a), ("B", b)], None);
    let root = vec![decide("Order", &["Team"]), checkpoint("Order"), later, sell(&["Order"])];
    verdicts(
        &draft.root(root).chain(),
        &[(
            stored,
            None,
            "missing-input: 'Switch<Team>#0' needs 'ChoiceDecision<Team>' in Memory, and no checkpoint before the \
             resume point holds one.",
        )],
    );
}

/// K16: the result of a short circuit that is skipped is gone.
#[test]
fn a_skipped_short_circuit_is_stale() {
    let chain = Draft::new()
        .root(vec![
            checkpoint("Order"),
            short_circuit("Known", &["Order"], &["Receipt"]),
            sell(&["Order"]),
        ])
        .chain();
    let stored: &[&str] = &["Checkpoint<Order>#0"];
    let lost = "stale-value: 'Resolve#0' reads the result, which a step before the resume point, 'Known#0', may have \
                given; a resumed run would not have it.";
    verdicts(
        &chain,
        &[
            (stored, None, "Checkpoint<Order>#0 after Checkpoint<Order>#0"),
            (stored, Some("Known#0"), "Checkpoint<Order>#0 at Known#0"),
            (stored, Some("Sell#0"), lost),
        ],
    );
}

/// Two branches with checkpoints, with more or less before them and in them.
fn branches(before: Vec<crate::chain::declaration::Step>) -> Chain {
    let mut draft = Draft::new().types(&["A", "B", "C"]);
    let inner = draft.track("in", vec![junction("MakeC", &[], &["C"]), checkpoint("C")]);
    let x =
        draft.track("x", vec![junction("MakeA", &[], &["A"]), checkpoint("A"), checkpoint("A")]);
    let y = draft.track("y", vec![junction("MakeB", &[], &["B"]), parallel(&[inner])]);
    let mut root = before;
    root.extend([parallel(&[x, y]), sell(&["A", "B"])]);
    draft.root(root).chain()
}

const IN_X: [&str; 2] = ["Parallel#0/x/Checkpoint<A>#0", "Parallel#0/x/Checkpoint<A>#1"];
const NESTED: &str = "Parallel#0/y/Parallel#0/in/Checkpoint<C>#0";

/// K18, K14: a branch holds its latest checkpoint when nothing but extracts lies before its parallel step.
#[test]
fn a_branch_resumes_from_its_own_checkpoint() {
    let chain = branches(vec![]);
    let held = "Parallel#0/x/Checkpoint<A>#1 top";
    verdicts(
        &chain,
        &[
            (&IN_X, None, held),
            (&[IN_X[0]], None, "Parallel#0/x/Checkpoint<A>#0 top"),
            (&[IN_X[0], IN_X[1], NESTED], None, held),
            (&IN_X, Some("Parallel#0"), "Parallel#0/x/Checkpoint<A>#1 at Parallel#0"),
            (
                &[NESTED],
                None,
                "no-checkpoint: The run wrote no checkpoint, so it can only run again from the top.",
            ),
        ],
    );
    let chain = branches(vec![checkpoint("Order"), junction("Look", &[], &[])]);
    let stored: &[&str] = &["Checkpoint<Order>#0", IN_X[1]];
    verdicts(
        &chain,
        &[
            (stored, None, "Checkpoint<Order>#0 after Checkpoint<Order>#0"),
            (stored, Some("Look#0"), "Checkpoint<Order>#0 at Look#0"),
            (
                stored,
                Some("Parallel#0"),
                "Checkpoint<Order>#0+Parallel#0/x/Checkpoint<A>#1 at Parallel#0",
            ),
            (
                &IN_X,
                None,
                "no-checkpoint: The run wrote no checkpoint, so it can only run again from the top.",
            ),
        ],
    );
    let chain = branches(vec![junction("Look", &[], &[]), checkpoint("Order")]);
    let both = "Checkpoint<Order>#0+Parallel#0/x/Checkpoint<A>#1 after Checkpoint<Order>#0";
    verdicts(&chain, &[(stored, None, both)]);
}

/// K15, K19: a step inside a branch is no point; its parallel step is.
#[test]
fn a_step_inside_a_branch_is_no_point() {
    let chain = branches(vec![]);
    let inside = |id: &str, path: &str| {
        format!(
            "inside-a-branch: '{id}' is inside the Parallel branch '{path}'. Resume at the Parallel step: each branch \
             resumes from its own checkpoint."
        )
    };
    let nested = "Parallel#0/y/Parallel#0/in/MakeC#0";
    verdicts(
        &chain,
        &[
            (&IN_X, Some(IN_X[0]), &inside(IN_X[0], "Parallel#0/x")),
            (&IN_X, Some(nested), &inside(nested, "Parallel#0/y/Parallel#0/in")),
        ],
    );
}

/// K18: what a branch put before its checkpoint, and the checkpoint does not hold, is missing at the join.
#[test]
fn a_join_that_needs_more_than_the_checkpoint_is_refused() {
    let mut draft = Draft::new().types(&["A", "B"]);
    let x = draft.track("x", vec![junction("Make", &[], &["A", "B"]), checkpoint("A")]);
    let chain = draft.root(vec![parallel(&[x]), sell(&["A", "B"])]).chain();
    verdicts(
        &chain,
        &[(
            &["Parallel#0/x/Checkpoint<A>#0"],
            None,
            "missing-input: 'Sell#0' needs 'B' in Memory, and no checkpoint before the resume point holds one.",
        )],
    );
}

/// K17, K19, R97: a checkpoint of another version of the chain, or of another shape of its state, is refused.
#[test]
fn a_checkpoint_of_another_version_is_refused() {
    let chain = Arc::new(shop());
    let mut rows = stored(&chain, &[GOODS]);
    rows[0].chain_hash = "0".repeat(64);
    let refused = check(&chain, &rows, None).unwrap_err();
    assert_eq!(refused.code.as_str(), "chain-changed");
    assert_eq!(
        refused.message,
        "The checkpoint 'Checkpoint<Goods>#0' was written by a different version of the chain, so its steps may not \
         line up. Run it again from the top."
    );
    let mut rows = stored(&chain, &[GOODS]);
    rows[0].state_fingerprint = "0".repeat(64);
    let refused = check(&chain, &rows, None).unwrap_err();
    assert_eq!(refused.code.as_str(), "state-changed");
    assert_eq!(
        refused.message,
        "The checkpoint 'Checkpoint<Goods>#0' stored 'Goods' in a shape the type no longer has, so reading it back \
         would quietly default members. Run it again from the top."
    );
    // One that is not used does not matter.
    let mut rows = stored(&chain, &[GOODS, PAYMENT]);
    rows[0].chain_hash = "0".repeat(64);
    assert!(check(&chain, &rows, None).is_ok());
}

/// K17, K7: the hash of the chain and the fingerprint of the state's shape are the same on every host and every build.
#[test]
fn the_identities_of_chain_and_state_are_stable() {
    let chain = shop();
    assert_eq!(chain.hash(), "f67056136c081b64d5e5bee005328fafb244a8a5398fbc9fdaa3827e108555b5");
    assert_eq!(
        chain.types().shape_fingerprint("Goods").unwrap(),
        "49a491802609bf47f2f6f3f874b961cdb20e399dd20fac085ef3b144f0fdc4dd"
    );
}
