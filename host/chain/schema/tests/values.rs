//! Which values fit, and the message for those that do not.

use super::*;

const TAGGED: &str = concat!(
    r#"{"oneOf":[{"additionalProperties":false,"properties":{"kind":{"const":"card"},"#,
    r#""number":{"type":"string"}},"required":["kind","number"],"type":"object"},"#,
    r#"{"additionalProperties":false,"properties":{"kind":{"const":"cash"}},"required":["kind"],"#,
    r#""type":"object"}]}"#,
);
const NAMED: &str = concat!(
    r#"{"oneOf":[{"enum":["None","All"]},{"additionalProperties":false,"#,
    r#""properties":{"Some":{"type":"integer"}},"required":["Some"],"type":"object"},"#,
    r#"{"additionalProperties":false,"properties":{"Up":{"type":"number"}},"required":["Up"],"#,
    r#""type":"object"}]}"#,
);

/// Values by their type, and what is said of those that do not fit.
const VALUES: &[(&str, &str, &str)] = &[
    ("Ticket", r#"{"level":1,"id":"a"}"#, ""),
    ("Ticket", r#"{"id":"a"}"#, ""),
    ("Ticket", r#"{"id":7}"#, r#" at /id: value is not of type "string""#),
    ("Ticket", r#"{"level":1}"#, " at /id: the required member is missing"),
    ("Ticket", r#"{"id":"a","more":1}"#, " at /more: there is no such member; remove it"),
    ("Ticket", "[]", r#": value is not of type "object""#),
    (
        "Ticket",
        r#"{"level":"x","z/~":1}"#,
        concat!(
            r#" at /level: value is not of type "integer"; at /z~1~0: there is no such member; "#,
            r#"remove it; at /id: the required member is missing"#,
        ),
    ),
    ("Map", r#"{"a":true,"b":false}"#, ""),
    ("Map", r#"{"a":true,"b":0}"#, r#" at /b: value is not of type "boolean""#),
    ("List", "[null]", ""),
    ("List", "[]", ": value has fewer than 1 items"),
    (
        "List",
        "[null,null,0]",
        r#": value has more than 2 items; at /2: value is not of type "null""#,
    ),
    ("Pair", r#"["a"]"#, ""),
    ("Pair", r#"["a",5]"#, ""),
    ("Pair", r#"["a",6]"#, " at /1: value is greater than the maximum of 5"),
    ("Pair", r#"["a",5,5]"#, ": value has more than 2 items"),
    ("Pair", "[]", ": value has fewer than 1 items"),
    ("Word", r#""äöü""#, ""),
    ("Word", r#""ä""#, ": value has fewer than 2 characters"),
    ("Word", r#""abcd""#, ": value has more than 3 characters"),
    ("Level", "-5", ""),
    ("Level", "-6", ": value is less than the minimum of -5"),
    (
        "Level",
        "1.0",
        ": value is not of type \"integer\", which is written without fraction or exponent",
    ),
    (
        "Level",
        "1e0",
        ": value is not of type \"integer\", which is written without fraction or exponent",
    ),
    (
        "Level",
        "-0",
        ": value is not of type \"integer\", which is written without fraction or exponent",
    ),
    ("Ratio", "0.25", ""),
    ("Ratio", "1.0", ""),
    ("Ratio", "0.2499999999999999999999999", ": value is less than the minimum of 0.25"),
    ("Ratio", "1.0000000000000000000000001", ": value is greater than the maximum of 1"),
    ("Lane", r#""Fast""#, ""),
    ("Lane", r#""fast""#, r#": value is not one of "Fast", "Slow""#),
    ("Lane", "1", r#": value is not one of "Fast", "Slow""#),
    ("Maybe", "null", ""),
    ("Maybe", r#"{"id":"a"}"#, ""),
    ("Maybe", r#"{"id":null}"#, r#" at /id: value is not of type "string""#),
    ("Maybe", "true", r#": value is not of type "null" or "object""#),
    ("Payment", r#"{"kind":"cash"}"#, ""),
    ("Payment", r#"{"kind":"card","number":"1"}"#, ""),
    ("Payment", r#"{"kind":"card"}"#, " at /number: the required member is missing"),
    (
        "Payment",
        r#"{"kind":"cash","number":"1"}"#,
        " at /number: there is no such member; remove it",
    ),
    ("Payment", r#"{"kind":"coin"}"#, r#" at /kind: value is not one of "card", "cash""#),
    ("Payment", r#"{"kind":1}"#, r#" at /kind: value is not one of "card", "cash""#),
    ("Payment", "{}", " at /kind: the required member is missing"),
    ("Payment", "1", r#": value is not of type "object""#),
    ("External", r#""All""#, ""),
    ("External", r#"{"Some":1}"#, ""),
    ("External", r#"{"Up":1.5}"#, ""),
    (
        "External",
        r#"{"Some":1.5}"#,
        " at /Some: value is not of type \"integer\", which is written without fraction or \
         exponent",
    ),
    ("External", r#""Other""#, r#": value is not one of "All", "None""#),
    (
        "External",
        r#"{"Some":1,"Up":1}"#,
        r#": value is not an object with one of the members "Some", "Up""#,
    ),
    ("External", "null", r#": value is not of type "string" or "object""#),
    ("MaybeExternal", "null", ""),
    ("MaybeExternal", r#"{"Up":2}"#, ""),
    ("MaybeExternal", "0", r#": value is not of type "null" or "string" or "object""#),
];

#[test]
fn values_fit_or_say_where_not() {
    let types = types(&[
        ("Ticket", TICKET),
        ("Map", r#"{"additionalProperties":{"type":"boolean"},"type":"object"}"#),
        ("List", r#"{"items":{"type":"null"},"maxItems":2,"minItems":1,"type":"array"}"#),
        (
            "Pair",
            concat!(
                r#"{"items":false,"minItems":1,"prefixItems":[{"type":"string"},"#,
                r#"{"$ref":"Level"}],"type":"array"}"#,
            ),
        ),
        ("Word", r#"{"maxLength":3,"minLength":2,"type":"string"}"#),
        ("Level", r#"{"maximum":5,"minimum":-5,"type":"integer"}"#),
        ("Ratio", r#"{"maximum":1,"minimum":0.25,"type":"number"}"#),
        ("Lane", r#"{"enum":["Slow","Fast"]}"#),
        ("Maybe", r#"{"oneOf":[{"type":"null"},{"$ref":"Ticket"}]}"#),
        ("Payment", TAGGED),
        ("External", NAMED),
        ("MaybeExternal", r#"{"oneOf":[{"$ref":"External"},{"type":"null"}]}"#),
    ]);
    for (type_name, text, expected) in VALUES {
        let found = types.admit(type_name, text).err().map(|fault| fault.to_string());
        let expected = (!expected.is_empty())
            .then(|| format!("does not match the schema of '{type_name}'{expected}"));
        assert_eq!(found, expected, "{type_name} {text}");
    }
}

#[test]
fn at_most_five_places_are_named_and_no_value_is_quoted() {
    let types = types(&[
        ("List", r#"{"items":{"$ref":"Item"},"type":"array"}"#),
        ("Item", r#"{"maxLength":1,"type":"string"}"#),
    ]);

    let fault =
        types.admit("List", &format!("[{}\"secret\"]", "\"secret\",".repeat(20))).unwrap_err();

    let ValueFault::Mismatch { mismatches, .. } = &fault else { panic!("{fault}") };
    assert_eq!(mismatches.len(), MISMATCHES_MAX);
    assert_eq!(mismatches[4].pointer, "/4");
    assert!(!fault.to_string().contains("secret"));
}

#[test]
fn keys_of_sensitive_values_are_not_named() {
    let schema = concat!(
        r#"{"additionalProperties":{"type":"null"},"properties":{"known":{"type":"null"}},"#,
        r#""type":"object"}"#,
    );
    let closed = r#"{"additionalProperties":false,"type":"object"}"#;
    let mut shapes = [shape("Map", schema), shape("Closed", closed)];
    for sensitive in [false, true] {
        for shape in &mut shapes {
            shape.sensitive = sensitive;
        }
        let types = Types::compile(&shapes).unwrap();
        for (type_name, text) in [
            ("Map", r#"{"hidden":1}"#),
            ("Map", r#"{"hidden":null,"hidden":null}"#),
            ("Closed", r#"{"hidden":1}"#),
        ] {
            let fault = types.admit(type_name, text).unwrap_err().to_string();
            assert_eq!(fault.contains("hidden"), !sensitive, "{fault}");
        }
        let known = types.admit("Map", r#"{"known":1}"#).unwrap_err().to_string();
        assert!(known.contains(" at /known:"), "{known}");
    }
}

#[test]
fn admitted_values_are_canonical_and_keep_every_digit() {
    let types = types(&[("Any", r#"{"additionalProperties":{"type":"integer"},"type":"object"}"#)]);
    let text = "{ \"b\" : 123456789012345678901234567890, \"a\": 9007199254740993 }";
    let expected = r#"{"a":9007199254740993,"b":123456789012345678901234567890}"#;

    let value = types.admit("Any", text).unwrap();

    assert_eq!(value, Value::new("Any", expected));
    assert_eq!(types.admit_json("Any", &Json::parse(text).unwrap()).unwrap(), value);
}

#[test]
fn what_is_not_json_or_not_declared_is_refused() {
    let types = types(&[("Ticket", TICKET)]);
    assert_eq!(
        types.admit("Ticket", "{\"id\":").unwrap_err().to_string(),
        "is not JSON that 'Ticket' can be kept as: the text ends in the middle of a value at line \
         1, column 7"
    );
    assert_eq!(
        types.admit("Order", "1").unwrap_err().to_string(),
        "has the type 'Order', which the train does not declare"
    );
    assert!(types.contains("Ticket") && !types.contains("Order"));
    assert_eq!((types.schema("Ticket"), types.schema("Order")), (Some(TICKET), None));
}
