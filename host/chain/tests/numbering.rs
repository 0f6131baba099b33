//! Node ids, graphs and hashes.

use crate::chain::Chain;
use crate::chain::declaration::Step;
use crate::chain::node::NodeKind;
use crate::chain::testing::{
    BASKET_SCHEMA, Draft, about, checkpoint, choice, decide, extract, gate, junction, parallel,
    scale, score, short_circuit, switch, yes_no,
};
use crate::chain::tests::sell;

fn ids(chain: &Chain) -> Vec<&str> {
    chain.nodes().iter().map(|node| node.id.as_str()).collect()
}

/// A train with a step of every kind but a short circuit, which no checkpoint may follow.
fn everything() -> Draft {
    let mut draft = Draft::new()
        .types(&["Findings", "Papers", "Score"])
        .question(choice("Source", &["Papers", "Web"]))
        .question(score("Depth", &["Low", "High"]))
        .question(yes_no("Fraud"));
    draft.shape("Basket", BASKET_SCHEMA);
    let search = || junction("SearchPapers", &["Order"], &[]);
    let papers = draft.track("Papers", vec![search(), checkpoint("Order"), search()]);
    let web = draft.track("Web", vec![search()]);
    draft.train.tracks[0].description = Some("Looks \"into\" papers.".to_string());
    let deep = draft.track("deep", vec![junction("Dig", &[], &[])]);
    let other = draft.track("other", vec![]);
    let yes = draft.track("Yes", vec![scale("Depth", None, &[("Low", deep)], Some(other))]);
    let no = draft.track("No", vec![]);
    let cited = draft.track("cocitation", vec![search(), junction("X", &[], &["Score"])]);
    let authors = draft.track("authors", vec![decide("Order", &["Fraud"])]);
    draft.root(vec![
        junction("Fill", &["Order"], &["Basket", "Findings"]),
        extract("Basket", "card", "Papers"),
        decide("Order", &["Source", "Depth"]),
        switch("Source", None, &[("Papers", papers)], Some(web)),
        gate("Fraud", Some(about("Order")), yes, no, None),
        parallel(&[cited, authors]),
        sell(),
    ])
}

/// C14, C15, C19: every kind of step has its key, numbers restart in each track and branch, and asking is a node.
#[test]
fn ids_are_keys_and_ordinals_per_scope() {
    assert_eq!(
        ids(&everything().chain()),
        [
            "Fill#0",
            "Extract<Basket, Papers>#0",
            "Decide<ChoiceDecision<Source>, ScoreDecision<Depth>>#0",
            "Switch<Source>#0",
            "Switch<Source>#0/Papers/SearchPapers#0",
            "Switch<Source>#0/Papers/Checkpoint<Order>#0",
            "Switch<Source>#0/Papers/SearchPapers#1",
            "Switch<Source>#0/Web/SearchPapers#0",
            "Decide<YesNoDecision<Fraud>>#0",
            "Gate<Fraud>#0",
            "Gate<Fraud>#0/Yes/Scale<Depth>#0",
            "Gate<Fraud>#0/Yes/Scale<Depth>#0/deep/Dig#0",
            "Parallel#0",
            "Parallel#0/cocitation/SearchPapers#0",
            "Parallel#0/cocitation/X#0",
            "Parallel#0/authors/Decide<YesNoDecision<Fraud>>#0",
            "Sell#0",
            "Resolve#0",
        ]
    );
}

/// C14: ordinals count the same key, and a short circuit has its junction's.
#[test]
fn ordinals_count_the_same_key() {
    let draft = Draft::new().root(vec![
        junction("A", &[], &[]),
        junction("B", &[], &[]),
        junction("A", &[], &[]),
        short_circuit("Cached", &[], &["Receipt"]),
        junction("Cached", &[], &["Receipt"]),
    ]);
    let chain = draft.chain();
    assert_eq!(ids(&chain), ["A#0", "B#0", "A#1", "Cached#0", "Cached#1", "Resolve#0"]);
    assert_eq!(chain.nodes()[3].kind, NodeKind::ShortCircuit);
    assert_eq!(chain.nodes()[4].kind, NodeKind::Chain);
}

/// C15, C22: a node knows the path of the innermost branch around it, also inside a track, and no branch outside.
#[test]
fn nodes_know_their_branch() {
    let mut draft = Draft::new().question(yes_no("Fraud"));
    let inner = draft.track("inner", vec![junction("C", &[], &[])]);
    let yes = draft.track("Yes", vec![junction("B", &[], &[]), parallel(&[inner])]);
    let no = draft.track("No", vec![]);
    let outer = draft.track(
        "outer",
        vec![junction("A", &[], &[]), gate("Fraud", Some(about("Order")), yes, no, None)],
    );
    let chain = draft.root(vec![parallel(&[outer]), sell()]).chain();
    let branches: Vec<(&str, Option<&str>)> =
        chain.nodes().iter().map(|node| (node.name.as_str(), node.branch.as_deref())).collect();
    let outer = Some("Parallel#0/outer");
    assert_eq!(
        branches,
        [
            ("Parallel", None),
            ("A", outer),
            ("Decide<YesNoDecision<Fraud>>", outer),
            ("Gate<Fraud>", outer),
            ("B", outer),
            ("Parallel", outer),
            ("C", Some("Parallel#0/outer/Gate<Fraud>#0/Yes/Parallel#0/inner")),
            ("Sell", None),
            ("Resolve", None),
        ]
    );
}

/// O14: a node in a track of a sensitive question names the outermost such step, and its own name tells no track.
#[test]
fn nodes_in_sensitive_tracks_are_withheld() {
    let mut draft = Draft::new().question(yes_no("Fraud")).question(yes_no("Ill"));
    draft.train.questions[1].sensitive = true;
    let asking = || Some(about("Order"));
    let deep = draft.track("Yes", vec![junction("C", &[], &[])]);
    let rest = draft.track("No", vec![]);
    let ill = draft
        .track("Yes", vec![junction("B", &[], &[]), gate("Fraud", asking(), deep, rest, None)]);
    let well = draft.track("No", vec![]);
    let root = vec![gate("Ill", asking(), ill, well, None), junction("A", &[], &[]), sell()];
    let chain = draft.root(root).chain();
    let withheld: Vec<&str> = chain
        .nodes()
        .iter()
        .filter(|node| node.withheld_by.is_some_and(|by| chain.node(by).id == "Gate<Ill>#0"))
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(withheld, ["B", "Decide<YesNoDecision<Fraud>>", "Gate<Fraud>", "C"]);
}

/// C17: properties stand in a fixed order, nothing is spaced or escaped for HTML, and what is absent is null.
#[test]
fn the_graph_is_canonical() {
    let mut draft = Draft::new().question(yes_no("Fraud"));
    let yes = draft.track("Yes", vec![checkpoint("Order")]);
    let (no, maybe) = (draft.track("No", vec![]), draft.track("Maybe", vec![]));
    draft.train.tracks[0].description = Some("Is \"fraud\".".to_string());
    let chain = draft
        .root(vec![
            gate("Fraud", Some(about("Order")), yes, no, Some(maybe)),
            junction("Sell", &["Order", "YesNoDecision<Fraud>"], &["Receipt"]),
        ])
        .chain();
    let expected = concat!(
        r#"{"train":"orders","input":"Order","output":"Receipt","nodes":["#,
        r#"{"id":"Decide<YesNoDecision<Fraud>>#0","kind":"DECIDE","junction":null,"in":"Order","#,
        r#""out":"YesNoDecision<Fraud>","opaque":false,"tracks":null},"#,
        r#"{"id":"Gate<Fraud>#0","kind":"GATE","junction":null,"in":"YesNoDecision<Fraud>","#,
        r#""out":"TrackTaken<Fraud>","opaque":false,"tracks":["#,
        r#"{"name":"Yes","description":"Is \"fraud\".","isFallback":false,"nodes":["#,
        r#"{"id":"Gate<Fraud>#0/Yes/Checkpoint<Order>#0","kind":"CHECKPOINT","junction":null,"in":"Order","#,
        r#""out":null,"opaque":false,"tracks":null}]},"#,
        r#"{"name":"No","description":null,"isFallback":false,"nodes":[]},"#,
        r#"{"name":"Maybe","description":null,"isFallback":false,"nodes":[]}]},"#,
        r#"{"id":"Sell#0","kind":"CHAIN","junction":"Sell","in":"Order, YesNoDecision<Fraud>","out":"Receipt","#,
        r#""opaque":false,"tracks":null},"#,
        r#"{"id":"Resolve#0","kind":"RESOLVE","junction":null,"in":"Receipt","out":null,"opaque":false,"#,
        r#""tracks":null}],"refusals":[]}"#,
    );
    assert_eq!(chain.graph_json(), expected);
}

/// C17: the kinds of every step, and only `otherwise` is a fallback.
#[test]
fn the_graph_has_every_kind() {
    let chain = everything().chain();
    let mut kinds: Vec<&str> = chain.nodes().iter().map(|node| node.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "CHAIN",
            "CHECKPOINT",
            "DECIDE",
            "EXTRACT",
            "GATE",
            "PARALLEL",
            "RESOLVE",
            "SCALE",
            "SWITCH"
        ]
    );
    assert_eq!(NodeKind::ShortCircuit.as_str(), "SHORT_CIRCUIT");
    let fallbacks: Vec<&str> = chain
        .graph_json()
        .split("{\"name\":")
        .filter(|rest| rest.contains("\"isFallback\":true"))
        .filter_map(|rest| rest.split('"').nth(1))
        .collect();
    assert_eq!(fallbacks, ["Web", "other"]);
    assert!(crate::model::json::Json::parse(chain.graph_json()).is_ok());
}

/// C18: the hash is the text's SHA-256, and stored checkpoints depend on it staying what it is.
#[test]
fn the_hash_is_golden() {
    let chain = Draft::new().root(vec![sell()]).chain();
    assert_eq!(chain.hash(), "9685cc04160137d1c06aadc3f2451bae716f4ac1bace9816ce09a0e52c7ce8f9");
    assert_eq!(
        everything().chain().hash(),
        "6ecb1e2822eb433650410a20e8ce2b508a26a00d066ce965c994c910412bf946"
    );
}

/// C18: the hash covers names, types and tracks, and no bar, wording, decider or description of the train.
#[test]
fn the_hash_covers_names_types_and_tracks() {
    let hash = |change: &dyn Fn(&mut Draft)| {
        let mut draft = everything();
        change(&mut draft);
        draft.chain().hash().to_string()
    };
    let original = hash(&|_| {});
    let same: [&dyn Fn(&mut Draft); 5] = [
        &|draft| match &mut draft.train.root[4] {
            Step::Gate(gate) => (gate.yes_at_least, gate.no_below) = (0.9, 0.1),
            _ => panic!("not a gate"),
        },
        &|draft| match &mut draft.train.root[3] {
            Step::Switch(switch) => switch.require_confidence = 0.7,
            _ => panic!("not a switch"),
        },
        &|draft| draft.train.questions[0].instructions = "Otherwise?".to_string(),
        &|draft| draft.train.default_decider = Some("model".to_string()),
        &|draft| draft.train.description = "Other.".to_string(),
    ];
    for (position, change) in same.into_iter().enumerate() {
        assert_eq!(hash(change), original, "change {position}");
    }
    let other: [&dyn Fn(&mut Draft); 6] = [
        &|draft| draft.train.name = "others".to_string(),
        &|draft| draft.train.tracks[0].name = "Articles".to_string(),
        &|draft| draft.train.tracks[0].description = None,
        &|draft| draft.train.tracks[3].steps.push(junction("New", &[], &[])),
        &|draft| draft.train.root.push(junction("New", &[], &[])),
        &|draft| draft.train.root[0] = junction("Fill", &["Order"], &["Findings", "Basket"]),
    ];
    for (position, change) in other.into_iter().enumerate() {
        assert_ne!(hash(change), original, "change {position}");
    }
}
