//! What a resumed run does: it skips in place, restores, and goes on as the run from the top would.

use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::next::Next;
use crate::chain::resume::restore::Restored;
use crate::chain::resume::tests::player::{Luck, Trace, from_point, from_the_top, input};
use crate::chain::resume::tests::points::{shop, stored};
use crate::chain::resume::tracks::{Taken, note};
use crate::chain::resume::{Code, check};
use crate::chain::testing::{Draft, about, checkpoint, decide, gate, junction, parallel, yes_no};
use crate::chain::walk::Walk;
use crate::model::value::Value;

fn lines(chain: &Chain, trace: &Trace) -> Vec<String> {
    let line = |event: &crate::chain::resume::tests::player::Event| {
        let tracks: Vec<&str> = event.tracks.iter().map(|(_, track)| track.as_str()).collect();
        format!("{} {} {}", chain.node(event.node).id, event.what, tracks.join(","))
            .trim()
            .to_owned()
    };
    trace.events.iter().map(line).collect()
}

/// K8, K9, R91: skipped steps run nothing and ask nobody, and later askings and ids are those of the run from the top.
#[test]
fn skipped_steps_are_counted_and_not_run() {
    let mut draft = Draft::new().question(yes_no("Fraud"));
    let yes = draft.track("Yes", vec![decide("Order", &["Fraud"]), junction("J", &[], &[])]);
    let no = draft.track("No", vec![]);
    let chain = draft
        .root(vec![
            decide("Order", &["Fraud"]),
            gate("Fraud", Some(about("Order")), yes, no, None),
            junction("J", &[], &[]),
            checkpoint("Order"),
            decide("Order", &["Fraud"]),
            junction("J", &[], &[]),
            checkpoint("Order"),
            junction("Sell", &["TrackTaken<Fraud>"], &["Receipt"]),
        ])
        .chain();
    let chain = Arc::new(chain);
    let luck = Luck::default();
    let full = from_the_top(&chain, &luck);
    let point = check(&chain, &stored(&chain, &["Checkpoint<Order>#0"]), None).unwrap();
    let resumed = from_point(&chain, &luck, &point, &[&full]);
    assert_eq!(
        lines(&chain, &resumed),
        [
            "Decide<YesNoDecision<Fraud>>#2 ask \"order\" Fraud:3",
            "J#1 call",
            "Checkpoint<Order>#1 store \"order\" Yes",
            "Sell#0 call {\"fallbackReason\":null,\"track\":\"Yes\"}",
        ]
    );
    assert_eq!(resumed.end, full.end);
}

/// K12, K9: a run that resumes inside a track goes on there, and leaves the track as the run from the top does.
#[test]
fn a_track_is_entered_where_the_point_lies() {
    let mut draft = Draft::new().types(&["A"]).question(yes_no("Fraud"));
    let steps = vec![junction("Make", &[], &["A"]), checkpoint("A"), junction("Use", &["A"], &[])];
    let (yes, no) = (draft.track("Yes", steps), draft.track("No", vec![]));
    let chain = draft
        .root(vec![
            gate("Fraud", Some(about("Order")), yes, no, None),
            junction("Sell", &["Order"], &["Receipt"]),
        ])
        .chain();
    let chain = Arc::new(chain);
    let full = from_the_top(&chain, &Luck::default());
    let ids = ["Gate<Fraud>#0/Yes/Checkpoint<A>#0"];
    for (at, first) in [(None, 3), (Some("Gate<Fraud>#0/Yes/Use#0"), 3), (Some("Sell#0"), 4)] {
        let point = check(&chain, &stored(&chain, &ids), at).unwrap();
        let resumed = from_point(&chain, &Luck::default(), &point, &[&full]);
        assert_eq!(lines(&chain, &resumed), lines(&chain, &full)[first + 1..], "{at:?}");
        assert_eq!(resumed.end, full.end);
    }
}

/// K18, C20: a branch whose checkpoint holds goes on after it; the others start anew, and all are joined.
#[test]
fn branches_go_on_from_their_checkpoints() {
    let mut draft = Draft::new().types(&["A", "B"]).question(yes_no("Fraud"));
    let x = vec![
        decide("Order", &["Fraud"]),
        junction("MakeA", &[], &["A"]),
        checkpoint("A"),
        decide("A", &["Fraud"]),
    ];
    let x = draft.track("x", x);
    let y = draft.track("y", vec![junction("MakeB", &[], &["B"])]);
    let root = vec![parallel(&[x, y]), junction("Sell", &["A", "B"], &["Receipt"])];
    let chain = Arc::new(draft.root(root).chain());
    let full = from_the_top(&chain, &Luck::default());
    let point = check(&chain, &stored(&chain, &["Parallel#0/x/Checkpoint<A>#0"]), None).unwrap();
    let resumed = from_point(&chain, &Luck::default(), &point, &[&full]);
    let state = full.stored[0].state.json.clone();
    let lines = lines(&chain, &resumed);
    assert_eq!(lines[0], "Parallel#0 fork");
    let asked = format!("Parallel#0/x/Decide<YesNoDecision<Fraud>>#1 ask {state} Fraud:1");
    assert_eq!(lines[1..3], [asked, "Parallel#0/y/MakeB#0 call".to_owned()]);
    assert!(lines[3].starts_with("Sell#0 call"), "{lines:?}");
    assert_eq!(resumed.end, full.end);

    // Handed over before the fork, it still does.
    let restored = vec![full.stored[0].clone()];
    let taken = Taken::new();
    let walk = Walk::resume(Arc::clone(&chain), input(&chain), &point, restored, &taken);
    let snapshot = serde_json::to_string(&walk.snapshot().unwrap()).unwrap();
    let mut walk =
        Walk::restore(Arc::clone(&chain), serde_json::from_str(&snapshot).unwrap()).unwrap();
    let Next::Fork(mut fork) = walk.next() else { panic!("no fork") };
    let Next::Ask(ask) = fork.branches[0].1.next() else { panic!("does not ask") };
    assert_eq!(ask.questions[0].occurrence, 1);
}

/// K13: a state that no longer fits its type, or tracks of another chain, cannot be read back.
#[test]
fn what_cannot_be_read_back_says_so() {
    let chain = shop();
    let node = chain.find("Checkpoint<Goods>#0").unwrap();
    let read = |state: &str, tracks: &str| match Restored::read(&chain, node, state, tracks) {
        Ok(restored) => Ok(restored.state),
        Err(refusal) => {
            assert_eq!(refusal.code, Code::Unreadable);
            Err(refusal.message)
        }
    };
    assert_eq!(read("\"ten\"", "[]"), Ok(Value::new("Goods", "\"ten\"")));
    let start = "The checkpoint 'Checkpoint<Goods>#0' could not be read back as 'Goods': ";
    for (state, tracks) in [
        ("7", "[]"),
        ("no json", "[]"),
        ("\"ten\"", "no json"),
        ("\"ten\"", r#"[{"key":"Team","step":"Gone#0","track":"A","fallbackReason":null}]"#),
    ] {
        let message = read(state, tracks).unwrap_err();
        assert!(message.starts_with(start) && !message.contains("ten"), "{message}");
    }
}

/// K7: tracks are stored with key, step, track and reason.
#[test]
fn tracks_are_stored_with_their_keys() {
    let mut draft = Draft::new().question(yes_no("Fraud"));
    let (yes, no) = (draft.track("Yes", vec![]), draft.track("No", vec![]));
    let gate = gate("Fraud", Some(about("Order")), yes, no, None);
    let sell = junction("Sell", &["Order"], &["Receipt"]);
    let chain = Arc::new(draft.root(vec![gate, checkpoint("Order"), sell]).chain());
    let full = from_the_top(&chain, &Luck::default());
    let text = full.rows(&chain, 1, 1).remove(0).tracks;
    assert_eq!(
        text,
        r#"[{"key":"Fraud","step":"Gate<Fraud>#0","track":"Yes","fallbackReason":null}]"#
    );
    let mut taken = Taken::new();
    note(&chain, &text, &mut taken);
    note(&chain, r#"[{"step":"Gate<Fraud>#0","track":"No","fallbackReason":null}]"#, &mut taken);
    assert_eq!(taken.into_values().collect::<Vec<_>>(), ["Yes"]);
}
