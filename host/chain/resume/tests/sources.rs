//! Whether a run may be resumed, apart from its chain.

use crate::chain::resume::source::{Source, check, is_same_input};
use crate::model::ids::RunId;

fn source() -> Source {
    Source {
        train: "orders".to_owned(),
        state: "Failed".to_owned(),
        is_failed: true,
        is_resumed: false,
        input: Some(r#"{"a":1,"b":[2]}"#.to_owned()),
    }
}

/// K13: the run that is resumed must exist, be of this train, have failed, on this input, and not be done.
#[test]
fn a_source_that_cannot_be_trusted_is_refused() {
    let input = Some(r#"{"b":[2],"a":1}"#);
    let verdict = |source: Option<&Source>| match check(RunId(7), source, "orders", input) {
        Ok(()) => "ok".to_owned(),
        Err(refusal) => format!("{}: {}", refusal.code.as_str(), refusal.message),
    };
    assert_eq!(verdict(Some(&source())), "ok");
    assert_eq!(verdict(None), "unknown-run: no run 7 exists.");
    let cases = [
        (
            Source { train: "other".to_owned(), ..source() },
            "another-train: run 7 is a run of train 'other', not of this train.",
        ),
        (
            Source { state: "InProgress".to_owned(), is_failed: false, ..source() },
            "not-failed: run 7 is InProgress; only a failed or cancelled run can be resumed.",
        ),
        (
            Source { is_resumed: true, ..source() },
            "already-resumed: a resume of run 7 already completed, so its work is done. Requeue it to run it again \
             from the top.",
        ),
        (
            Source { input: Some("{}".to_owned()), ..source() },
            "different-input: run 7 ran on a different input, so its checkpoints hold state computed for another \
             request.",
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(verdict(Some(&source)), expected);
    }
}

/// K13a: inputs are compared as JSON; what is not JSON byte by byte; one that was not stored counts as the same.
#[test]
fn inputs_are_compared_as_json() {
    for (stored, now, expected) in [
        (Some(r#"{"a":1,"b":2}"#), Some(r#"{ "b":2, "a":1 }"#), true),
        (Some("[1,2]"), Some("[2,1]"), false),
        (Some("1"), Some("1.0"), false),
        (Some("no json"), Some("no json"), true),
        (Some("no json"), Some("no  json"), false),
        (Some("{}"), Some("no json"), false),
        (None, Some("{}"), true),
        (Some("null"), None, true),
        (Some("{}"), None, false),
    ] {
        assert_eq!(is_same_input(stored, now), expected, "{stored:?} and {now:?}");
    }
}
