//! What follows from the types that a type reaches: sensitivity, fingerprints, and members as values.

use super::*;

#[test]
fn a_type_is_sensitive_when_it_reaches_one() {
    let list = |of: &str| format!(r#"{{"items":{{"$ref":"{of}"}},"type":"array"}}"#);
    let mut shapes = vec![
        shape("Card", r#"{"type":"string"}"#),
        shape("Wallet", &list("Card")),
        shape("Person", &list("Wallet")),
        shape("Plain", &list("Loop")),
        shape("Loop", &list("Plain")),
    ];
    shapes[0].sensitive = true;
    let types = Types::compile(&shapes).unwrap();
    for (name, expected) in [
        ("Card", true),
        ("Wallet", true),
        ("Person", true),
        ("Plain", false),
        ("Loop", false),
        ("Unknown", false),
    ] {
        assert_eq!(types.is_sensitive(name), expected, "{name}");
        let is_shown = !expected && name != "Unknown";
        let shown = if is_shown { Shown::Plain("1".to_owned()) } else { Shown::Sensitive };
        assert_eq!(types.shown(name, "1"), shown, "{name}");
    }
}

#[test]
fn members_are_taken_when_their_schema_is_the_target() {
    let order = concat!(
        r#"{"additionalProperties":false,"properties":{"alias":{"$ref":"Id2"},"#,
        r#""count":{"type":"integer"},"id":{"$ref":"Id"},"spelled":{"maxLength":9,"#,
        r#""type":"string"}},"required":["alias","id","spelled"],"type":"object"}"#,
    );
    let types = types(&[
        ("Order", order),
        ("Id", r#"{"maxLength":9,"type":"string"}"#),
        ("Id2", r#"{"$ref":"Id"}"#),
        ("Count", r#"{"type":"integer"}"#),
        ("Order2", r#"{"$ref":"Order"}"#),
    ]);
    for (from, field, to, expected) in [
        ("Order", "id", "Id", ""),
        ("Order", "id", "Id2", ""),
        ("Order", "alias", "Id", ""),
        ("Order", "spelled", "Id", ""),
        ("Order2", "id", "Id", ""),
        ("Order2", "spelled", "Id", ""),
        (
            "Order",
            "id",
            "Count",
            "the member 'id' of 'Order' is not a 'Count'; write its schema as {\"$ref\":\"Count\"}",
        ),
        (
            "Order",
            "count",
            "Count",
            "the member 'count' of 'Order' may be missing; name it in 'required'",
        ),
        (
            "Order",
            "x",
            "Id",
            r#"'Order' has no member 'x'; it has "alias", "count", "id", "spelled""#,
        ),
        ("Id", "x", "Id", "'Id' is not an object, so it has no member 'x'"),
        ("None", "x", "Id", "the type 'None' is not declared"),
        ("Order", "id", "None", "the type 'None' is not declared"),
    ] {
        let problem = types.assignable(from, field, to).err().unwrap_or_default();
        assert_eq!(problem, expected, "{from} {field} {to}");
    }
}

#[test]
fn shape_fingerprints_cover_all_that_is_reached() {
    let ticket = concat!(
        r#"{"additionalProperties":false,"properties":{"id":{"$ref":"Id"}},"required":["id"],"#,
        r#""type":"object"}"#,
    );
    let id = r#"{"type":"integer"}"#;
    let of = |shapes: &[(&str, &str)]| types(shapes).shape_fingerprint("Ticket").unwrap();
    let original = of(&[("Ticket", ticket), ("Id", id)]);

    // The layout is stored with checkpoints and state hashes, so it never changes under the same number.
    assert_eq!(original, "74dbb89281606bd50c74b91e20c39aab01661f7ff5ed12bb67e8c9ced384c49b");
    assert_eq!(of(&[("Id", id), ("Other", TICKET), ("Ticket", ticket)]), original);
    assert_ne!(of(&[("Ticket", ticket), ("Id", r#"{"type":"string"}"#)]), original);
    assert_ne!(of(&[("Ticket", &ticket.replace("Id", "Id2")), ("Id2", id)]), original);
    assert_eq!(types(&[("Ticket", TICKET)]).shape_fingerprint("Other"), None);
}
