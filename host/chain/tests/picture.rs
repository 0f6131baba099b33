//! Pictures of runs: how far each has come, by what was recorded of it.

use crate::chain::Chain;
use crate::chain::picture::{Known, Line, NodeState, picture};
use crate::chain::testing::{
    Draft, about, checkpoint, choice, extract, junction, parallel, switch,
};

/// Reads, asks, goes left or right, stores, forks, and ends.
fn chain(is_sensitive: bool) -> Chain {
    let mut lane = choice("Lane", &["Left", "Right"]);
    lane.sensitive = is_sensitive;
    let mut draft = Draft::new().types(&["Routed", "A", "B"]).question(lane);
    let left = draft.track("Left", vec![junction("GoLeft", &["Order"], &["Routed"])]);
    let right = draft.track("Right", vec![junction("GoRight", &["Order"], &["Routed"])]);
    let a = draft.track("a", vec![junction("MakeA", &["Routed"], &["A"])]);
    let b = draft.track("b", vec![junction("MakeB", &["Routed"], &["B"])]);
    draft.shape("Order", crate::chain::testing::BASKET_SCHEMA);
    draft.train.types.remove(0);
    draft
        .types(&["Card"])
        .root(vec![
            extract("Order", "card", "Card"),
            switch("Lane", Some(about("Order")), &[("Left", left), ("Right", right)], None),
            checkpoint("Routed"),
            parallel(&[a, b]),
            junction("Join", &["A", "B"], &["Receipt"]),
        ])
        .chain()
}

/// The picture, a word or two a line.
fn drawn(chain: &Chain, known: &Known) -> Vec<String> {
    let line = |line: &Line<'_>| match line {
        Line::Node { depth, node, state, taken: _, is_stored } => {
            let (indent, stored) = ("  ".repeat(*depth), if *is_stored { " *" } else { "" });
            format!("{indent}{} {}{stored}", node.name, state.as_str())
        }
        Line::Track { depth, name, is_taken } => {
            format!("{}/{name} {is_taken:?}", "  ".repeat(*depth))
        }
        Line::Withheld { depth } => format!("{}withheld", "  ".repeat(*depth)),
    };
    picture(chain, known).iter().map(line).collect()
}

fn known(chain: &Chain, steps: &[(&str, NodeState)]) -> Known {
    let mut known = Known::default();
    for (name, state) in steps {
        let node = chain.nodes().iter().find(|node| node.id.contains(name)).unwrap();
        known.steps.insert(node.id.clone(), *state);
    }
    known
}

#[test]
fn a_run_that_has_not_begun_has_reached_nothing() {
    let chain = chain(false);
    let lines = drawn(&chain, &Known::default());
    assert!(
        lines.iter().all(|line| line.ends_with("NOT_REACHED") || line.ends_with("None")),
        "{lines:#?}"
    );
    assert_eq!(lines.len(), chain.nodes().len() + 4);
}

#[test]
fn a_failed_run_shows_where_it_is() {
    use NodeState::{Completed, Failed, InProgress};
    let chain = chain(false);
    let mut known = known(
        &chain,
        &[
            ("Decide", Completed),
            ("Switch", Completed),
            ("GoLeft", Completed),
            ("MakeA", Failed),
            ("MakeB", InProgress),
        ],
    );
    known.tracks.insert("Switch<Lane>#0".to_owned(), "Left".to_owned());
    known.checkpoints.insert("Checkpoint<Routed>#0".to_owned());

    assert_eq!(
        drawn(&chain, &known),
        [
            "Extract<Order, Card> COMPLETED",
            "Decide<ChoiceDecision<Lane>> COMPLETED",
            "Switch<Lane> COMPLETED",
            "  /Left Some(true)",
            "  GoLeft COMPLETED",
            "  /Right Some(false)",
            "  GoRight SKIPPED",
            "Checkpoint<Routed> COMPLETED *",
            "Parallel FAILED",
            "  /a Some(true)",
            "  MakeA FAILED",
            "  /b Some(true)",
            "  MakeB IN_PROGRESS",
            "Join NOT_REACHED",
            "Resolve NOT_REACHED",
        ]
    );
}

#[test]
fn a_resumed_run_shows_what_it_did_not_do_itself() {
    let chain = chain(false);
    let mut known = known(&chain, &[("Join", NodeState::Completed)]);
    (known.is_resumed, known.is_completed) = (true, true);
    let resumed = drawn(&chain, &known);
    assert_eq!(resumed[0], "Extract<Order, Card> COMPLETED");
    assert_eq!(resumed[4], "  GoLeft NOT_REACHED");
    assert_eq!(
        resumed[8..],
        [
            "Parallel COMPLETED",
            "  /a Some(true)",
            "  MakeA RESTORED",
            "  /b Some(true)",
            "  MakeB RESTORED",
            "Join COMPLETED",
            "Resolve COMPLETED"
        ]
    );
    assert_eq!(resumed[1], "Decide<ChoiceDecision<Lane>> RESTORED");

    // Without a run before it, what is missing was not recorded.
    known.is_resumed = false;
    assert_eq!(drawn(&chain, &known)[1], "Decide<ChoiceDecision<Lane>> NOT_RECORDED");
}

/// O14: of a sensitive question it is not told which track was taken, nor what is in it.
#[test]
fn the_tracks_of_a_sensitive_question_are_withheld() {
    let chain = chain(true);
    let mut known =
        known(&chain, &[("GoLeft", NodeState::Completed), ("Switch", NodeState::Completed)]);
    known.tracks.insert("Switch<Lane>#0".to_owned(), "Left".to_owned());
    let is_told = |line: &Line<'_>| matches!(line, Line::Node { taken: Some(_), .. });
    assert!(!picture(&chain, &known).iter().any(is_told));
    let lines = drawn(&chain, &known);
    assert_eq!(
        lines[2..5],
        ["Switch<Lane> COMPLETED", "  withheld", "Checkpoint<Routed> NOT_REACHED"]
    );
    assert!(lines.iter().all(|line| !line.contains("Left")), "{lines:#?}");
}
