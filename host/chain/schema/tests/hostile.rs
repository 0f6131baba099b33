//! Schemas and values that are made to take long, to recurse deep or to use much memory.

use super::*;
use crate::model::json::DEPTH_MAX;

fn list_of(schemas: &[String]) -> String {
    let schemas = schemas.join(",");
    format!(r#"{{"items":false,"prefixItems":[{schemas}],"type":"array"}}"#)
}

fn tagged(count: usize) -> String {
    let alternative = |i: usize| {
        let properties = format!(r#""properties":{{"k":{{"const":"v{i}"}}}}"#);
        format!(r#"{{"additionalProperties":false,{properties},"required":["k"],"type":"object"}}"#)
    };
    let alternatives: Vec<_> = (0..count).map(alternative).collect();
    format!(r#"{{"oneOf":[{}]}}"#, alternatives.join(","))
}

#[test]
fn values_as_deep_as_json_may_be_are_checked() {
    let nullable_tree = r#"{"oneOf":[{"type":"null"},{"$ref":"Tree"}]}"#;
    let types = types(&[
        ("Tree", r#"{"items":{"$ref":"Maybe"},"type":"array"}"#),
        ("Maybe", nullable_tree),
    ]);
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    types.admit("Maybe", &nested(DEPTH_MAX)).unwrap();
    let fault = types.admit("Maybe", &nested(DEPTH_MAX + 1)).unwrap_err().to_string();
    assert!(fault.contains("nested deeper than 64 levels"), "{fault}");
    let wrong = "[".repeat(DEPTH_MAX) + "1" + &"]".repeat(DEPTH_MAX);
    let fault = types.admit("Maybe", &wrong).unwrap_err().to_string();
    assert!(fault.contains(&format!(" at {}: value is not", "/0".repeat(DEPTH_MAX))), "{fault}");
}

#[test]
fn alternatives_that_name_one_another_again_and_again_do_not_multiply() {
    // Tried one by one, a value of T0 would meet the leaf 4^8 times.
    let link = |i: usize| {
        let next = format!(r#"{{"$ref":"T{}"}}"#, i + 1);
        shape(&format!("T{i}"), &format!(r#"{{"oneOf":[{next},{next},{next},{next}]}}"#))
    };
    let mut shapes: Vec<_> = (0..8).map(link).collect();
    shapes.push(shape("T8", r#"{"type":"null"}"#));
    let faults = Types::compile(&shapes).unwrap_err();
    assert_eq!(faults.len(), 8);
    assert!(faults[0].problem.contains("more than 1000 alternatives"), "{}", faults[0]);
    assert!(faults[7].problem.contains("more than one alternative takes"), "{}", faults[7]);
}

#[test]
fn alternatives_are_bounded_per_list_and_per_train() {
    types(&[("T", &tagged(1_000))]);
    let too_many = faults(&[("T", &tagged(1_001))]);
    assert_eq!(
        too_many,
        ["type 'T', at /oneOf: it has more than 1000 alternatives; leave some \
     out"]
    );

    let uses = vec![r#"{"oneOf":[{"$ref":"L"}]}"#.to_owned(); 200];
    let again_and_again = faults(&[("L", &tagged(900)), ("T", &list_of(&uses))]);
    assert_eq!(again_and_again.len(), 1);
    assert!(
        again_and_again[0].contains("more than 100000 alternatives together"),
        "{again_and_again:?}"
    );
}

#[test]
fn names_that_are_not_for_printing_are_shown_short_and_on_one_line() {
    let long = "x".repeat(10_000);
    let found = faults(&[("T", &format!(r#"{{"$ref":"{long}"}}"#))]);
    assert!(found[0].len() < 200, "{found:?}");
    let found = faults(&[("T", r#"{"$ref":"a\n\u001b[31m"}"#)]);
    assert!(!found[0].contains(char::is_control), "{found:?}");

    let types = types(&[("Closed", r#"{"additionalProperties":false,"type":"object"}"#)]);
    let fault = types.admit("Closed", &format!(r#"{{"{long}":1}}"#)).unwrap_err().to_string();
    assert!(fault.len() < 200, "{fault}");
}

#[test]
fn a_long_value_stops_being_checked_at_the_fifth_fault() {
    let types = types(&[(
        "Rows",
        r#"{"items":{"additionalProperties":false,"type":"object"},"type":"array"}"#,
    )]);
    let rows = format!("[{}]", vec![r#"{"a":1,"b":2}"#; 1_000].join(","));
    let ValueFault::Mismatch { mismatches, .. } = types.admit("Rows", &rows).unwrap_err() else {
        panic!("another fault");
    };
    let pointers: Vec<_> = mismatches.iter().map(|m| &*m.pointer).collect();
    assert_eq!(pointers, ["/0/a", "/0/b", "/1/a", "/1/b", "/2/a"]);
}
