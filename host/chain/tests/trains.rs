//! What verification refuses in a train as a whole, and how it meets hostile ones.

use crate::chain::declaration::{DirectoryWant, Step};
use crate::chain::faults::FAULTS_MAX;
use crate::chain::testing::{Draft, about, decide, gate, junction, parallel, switch, yes_no};
use crate::chain::tests::{sell, shop};
use crate::model::limits::NODES_MAX;

/// C9: every track belongs to exactly one step, so that there is no cycle, no sharing and nothing unread.
#[test]
fn a_track_belongs_to_exactly_one_step() {
    let with = |make: &dyn Fn(&mut Draft) -> Vec<Step>| {
        let mut draft = shop();
        let steps = make(&mut draft);
        draft.root(steps).faults()
    };
    let by_team = |track| switch("Team", Some(about("Order")), &[("Tech", track)], None);
    assert_eq!(
        with(&|_| vec![sell(), by_team(7)]),
        ["step 2: it names the track with index 7, and the train has 0 tracks."]
    );
    assert_eq!(
        with(&|draft| {
            let track = draft.track("Tech", vec![]);
            vec![sell(), by_team(track), by_team(track)]
        }),
        [
            "step 3: it names the track 'Tech' (index 0), which belongs to a step already. Declare one of its own."
        ]
    );
    assert_eq!(
        with(&|draft| {
            draft.track("Lost", vec![]);
            vec![sell()]
        }),
        ["the track 'Lost' (index 0) belongs to no step that the chain leads to."]
    );
    assert_eq!(
        with(&|draft| {
            let own = draft.track("Tech", vec![by_team(0)]);
            vec![sell(), by_team(own)]
        }),
        [
            "step 2: track 'Tech', step 1: it names the track 'Tech' (index 0), which belongs to a step already. \
             Declare one of its own."
        ]
    );
    assert_eq!(
        with(&|draft| {
            draft.track("One", vec![by_team(1)]);
            draft.track("Two", vec![by_team(0)]);
            vec![sell()]
        })
        .len(),
        2
    );
}

/// C9, C15: names of tracks are parts of ids: fit for that, and unique in their step.
#[test]
fn names_of_tracks_are_fit_for_ids() {
    let named = |first: &str, second: &str| {
        let mut draft = shop();
        let (first, second) = (draft.track(first, vec![]), draft.track(second, vec![]));
        draft.root(vec![sell(), gate("Fraud", Some(about("Order")), first, second, None)]).faults()
    };
    let nothing: [&str; 0] = [];
    assert_eq!(named("Café", "No"), nothing);
    assert_eq!(named("Yes", "Yes"), ["step 2: it has two tracks named 'Yes'."]);
    for bad in ["a/b", "a#0", " ", "", "a\u{7}"] {
        let faults = named(bad, "No");
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].contains("characters without '/', '#' and control characters"),
            "{faults:?}"
        );
    }
}

/// C9: what the train says about itself is checked, too.
#[test]
fn trains_are_checked() {
    let changed = |change: &dyn Fn(&mut crate::chain::declaration::Train)| {
        let mut draft = shop().root(vec![sell()]);
        change(&mut draft.train);
        draft.faults()
    };
    let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let identifier = "1 to 100 of ASCII letters, digits, '_', '-' and '.'";
    assert_eq!(
        changed(&|train| train.name = "a b".to_string()),
        [format!("the train's name 'a b' is not {identifier}.")]
    );
    assert_eq!(
        changed(&|train| train.input = "YesNoDecision<Fraud>".to_string())[0],
        "the train's input 'YesNoDecision<Fraud>' is not a type of the train."
    );
    assert_eq!(
        changed(&|train| train.output = "Nowhere".to_string()),
        [
            "the train's output 'Nowhere' is not a type of the train.",
            "the chain ends without 'Nowhere' in Memory."
        ]
    );
    assert_eq!(
        changed(&|train| train.questions.push(yes_no("Fraud"))),
        ["the train has two questions with the key 'Fraud'."]
    );
    assert_eq!(
        changed(&|train| train.questions[0].instructions.clear()),
        ["question 'Team': its instructions are blank; say what is asked."]
    );
    assert_eq!(
        changed(&|train| train.deciders = strings(&["rules", "x y", "rules"])),
        [
            format!("the decider 'x y' is not {identifier}."),
            "the decider 'rules' is named twice.".to_string()
        ]
    );
    assert_eq!(
        changed(&|train| train.default_decider = Some(String::new())),
        [format!("the default decider '' is not {identifier}.")]
    );
    assert_eq!(
        changed(&|train| train.description = "\0".to_string()),
        ["a description holds NUL (U+0000), which cannot be stored; remove it."]
    );
    assert_eq!(
        changed(&|train| train.wants.secrets = strings(&["key", "key"])),
        ["the wanted secret 'key' is named twice."]
    );
    assert_eq!(
        changed(&|train| train.wants.config = strings(&["a/b"])),
        [format!("the wanted config value 'a/b' is not {identifier}.")]
    );
    let directory = |name: &str| DirectoryWant { name: name.to_string(), writable: true };
    assert_eq!(
        changed(&|train| train.wants.directories = vec![directory("/etc")]),
        [format!("the wanted directory '/etc' is not {identifier}.")]
    );
    assert!(!changed(&|train| train.types[2].name = "Pay ment".to_string()).is_empty());
    assert!(!changed(&|train| train.types.push(train.types[0].clone())).is_empty());
}

/// C9: only HTTPS origins can be wanted, and only JSON pointers name a subject.
#[test]
fn wants_and_subject_keys_are_checked() {
    for (origin, is_fit) in [
        ("https://example.com", true),
        ("https://example.com:8443", true),
        ("https://[2001:db8::1]", true),
        ("https://[2001:db8::1]:8443", true),
        ("http://example.com", false),
        ("https://", false),
        ("https://example.com/", false),
        ("https://user@example.com", false),
        ("https://example.com:0", false),
        ("https://example.com:65536", false),
        ("https://example.com:+80", false),
        ("https://example.com:", false),
        ("https://*.example.com", false),
        ("https://[::1", false),
    ] {
        let mut draft = shop().root(vec![sell()]);
        draft.train.wants.http.push(origin.to_string());
        assert_eq!(draft.faults().is_empty(), is_fit, "{origin}");
    }
    for (pointer, is_fit) in [
        ("", true),
        ("/customer/id", true),
        ("/a~0b~1c/0", true),
        ("/", true),
        ("customer", false),
        ("/a~", false),
        ("/a~2", false),
    ] {
        let mut draft = shop().root(vec![sell()]);
        draft.train.subject_key = Some(pointer.to_string());
        assert_eq!(draft.faults().is_empty(), is_fit, "{pointer}");
    }
}

/// C8: every fault of a declaration is named in one go, and never more than a hundred of them.
#[test]
fn every_fault_is_named_up_to_a_bound() {
    let needy = |count: usize| {
        let steps = (0..count).map(|number| junction(&format!("J{number}"), &["Payment"], &[]));
        shop().root(steps.chain([sell()]).collect()).faults()
    };
    assert_eq!(needy(FAULTS_MAX).len(), FAULTS_MAX);
    let faults = needy(FAULTS_MAX + 5);
    assert_eq!(faults.len(), FAULTS_MAX + 1);
    assert_eq!(faults[FAULTS_MAX], "and 5 more faults like these.");
}

/// C8: declarations made to exhaust the host are refused at once, whatever their shape.
#[test]
fn hostile_declarations_are_refused() {
    let nested = |depth: u32| {
        let mut draft = shop();
        for level in 0..depth {
            let steps = if level + 1 == depth { vec![] } else { vec![parallel(&[level + 1])] };
            draft.track("x", steps);
        }
        draft.root(vec![sell(), parallel(&[0])])
    };
    assert_eq!(nested(64).faults(), [] as [&str; 0]);
    let too_deep = nested(65).faults();
    assert_eq!(too_deep.len(), 1);
    assert!(too_deep[0].contains("its track 'x' is nested deeper than 64 levels"), "{too_deep:?}");
    assert_eq!(nested(10_000).faults().len(), 1);
    // The last node is the result.
    let as_many = |steps: usize| shop().root(vec![sell(); steps]).faults();
    assert_eq!(as_many(NODES_MAX - 1), [] as [&str; 0]);
    assert_eq!(as_many(NODES_MAX).len(), 1);
    let enormous = nested(1_000_000).faults();
    assert_eq!(
        enormous,
        [
            format!("the train has 1000002 nodes, and {NODES_MAX} are the most."),
            format!("the train has 1000000 tracks, and {NODES_MAX} are the most.")
        ]
    );

    let long = "x".repeat(1_000_000);
    let steps = vec![sell(), junction(&long, &[], &[]), decide(&long, &[&long])];
    let faults = shop().root(steps).faults();
    assert!(faults.iter().all(|line| line.len() < 1_000), "{faults:?}");

    let keys: Vec<String> = (0..200).map(|number| format!("Q{number}")).collect();
    let mut draft = shop();
    draft.train.questions.extend(keys.iter().map(|key| yes_no(key)));
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let faults = draft.root(vec![sell(), decide("Order", &keys)]).faults();
    assert_eq!(
        faults,
        [
            "step 2: its id is longer than 2000 bytes. Ask fewer questions at once, nest fewer tracks or use shorter \
             names."
        ]
    );
}
