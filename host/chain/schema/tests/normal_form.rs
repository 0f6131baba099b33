//! What is in the normal form, and the message for everything that is not.

use super::*;
use crate::model::limits::{SCHEMA_BYTES_MAX, TYPES_MAX};

#[test]
fn schemas_in_normal_form_compile() {
    for schema in [
        TICKET,
        r#"{"additionalProperties":false,"type":"object"}"#,
        r#"{"additionalProperties":{"type":"number"},"type":"object"}"#,
        r#"{"items":{"type":"string"},"maxItems":3,"minItems":3,"type":"array"}"#,
        concat!(
            r#"{"items":false,"minItems":2,"prefixItems":[{"type":"null"},{"$ref":"T"}],"#,
            r#""type":"array"}"#,
        ),
        r#"{"maxLength":10,"minLength":0,"type":"string"}"#,
        r#"{"maximum":123456789012345678901234567890,"minimum":-5,"type":"integer"}"#,
        r#"{"maximum":1.5e300,"minimum":0.1,"type":"number"}"#,
        r#"{"type":"boolean"}"#,
        r#"{"enum":["b","a",""]}"#,
        r#"{"const":"only"}"#,
        r#"{"oneOf":[{"const":"only"}]}"#,
        r#"{"oneOf":[{"type":"null"},{"items":{"$ref":"T"},"type":"array"}]}"#,
    ] {
        types(&[("T", schema)]);
    }
}

/// Schemas with one fault, and how it is named.
const FAULTY: &[(&str, &str)] = &[
    (
        "",
        "type 'T': the schema is not JSON as Trax takes it: the text ends in the middle of a \
         value at line 1, column 1",
    ),
    (
        r#"{ "type":"null"}"#,
        "type 'T': the schema is not canonical JSON; sort members by their bytes, and leave \
                                 out spaces and needless escapes",
    ),
    ("true", r#"type 'T': this is no schema; write an object such as {"type":"string"}"#),
    (
        "{}",
        "type 'T': it would take any value; add one of 'type', 'enum', 'const', 'oneOf', '$ref'",
    ),
    (r#"{"const":"a","enum":["a"]}"#, "type 'T': 'enum' and 'const' exclude each other; keep one"),
    (
        r#"{"type":["null","string"]}"#,
        concat!(
            r#"type 'T', at /type: a type is one name; for a value that may be null write "#,
            r#"{"oneOf":[{"type":"null"},..]}"#,
        ),
    ),
    (
        r#"{"type":"date"}"#,
        "type 'T', at /type: there is no type 'date'; use object, array, string, integer, \
                                number, boolean or null",
    ),
    (
        r#"{"format":"email","type":"string"}"#,
        "type 'T': the keyword 'format' is not in the normal form; remove it",
    ),
    (
        r#"{"minimum":1,"type":"string"}"#,
        "type 'T': the keyword 'minimum' does not belong beside type 'string'; remove it",
    ),
    (
        r#"{"$ref":"T2","required":[]}"#,
        "type 'T': the keyword 'required' does not belong beside '$ref'; remove it",
    ),
    (
        r#"{"type":"object"}"#,
        concat!(
            r#"type 'T': an object says whether it has other members; add "#,
            r#""additionalProperties":false"#,
        ),
    ),
    (
        r#"{"additionalProperties":true,"type":"object"}"#,
        "type 'T', at /additionalProperties: an object's other members are not open; write false \
         or a schema",
    ),
    (
        r#"{"additionalProperties":false,"properties":[],"type":"object"}"#,
        "type 'T', at /properties: write an object with a schema per member",
    ),
    (
        concat!(
            r#"{"additionalProperties":false,"properties":{"a/b~":{"title":"A","type":"null"}},"#,
            r#""type":"object"}"#,
        ),
        "type 'T', at /properties/a~1b~0: the keyword 'title' is not in the normal form; remove it",
    ),
    (
        r#"{"additionalProperties":false,"required":"a","type":"object"}"#,
        "type 'T', at /required: write a list of names of members",
    ),
    (
        r#"{"additionalProperties":false,"required":["a"],"type":"object"}"#,
        "type 'T', at /required: 'a' is not in 'properties'; declare or remove it",
    ),
    (
        concat!(
            r#"{"additionalProperties":false,"properties":{"a":{"type":"null"},"#,
            r#""b":{"type":"null"}},"required":["b","a"],"type":"object"}"#,
        ),
        "type 'T', at /required: the names are not in the order of their bytes, each once; sort \
         them",
    ),
    (
        concat!(
            r#"{"additionalProperties":false,"properties":{"a":{"type":"null"}},"required":["a","#,
            r#""a"],"type":"object"}"#,
        ),
        "type 'T', at /required: the names are not in the order of their bytes, each once; sort \
         them",
    ),
    (
        r#"{"type":"array"}"#,
        "type 'T': an array says what its items are; add 'items' with a schema",
    ),
    (
        r#"{"items":false,"type":"array"}"#,
        "type 'T': an array says what its items are; add 'items' with a schema",
    ),
    (
        r#"{"items":{"type":"null"},"prefixItems":[{"type":"null"}],"type":"array"}"#,
        r#"type 'T': a tuple has no items but its own; add "items":false"#,
    ),
    (
        r#"{"items":false,"prefixItems":[],"type":"array"}"#,
        "type 'T', at /prefixItems: write a list with a schema per item",
    ),
    (
        r#"{"items":false,"minItems":2,"prefixItems":[{"type":"null"}],"type":"array"}"#,
        "type 'T', at /minItems: it is greater than the number of items, so no value fits; lower \
         it",
    ),
    (
        r#"{"minLength":-1,"type":"string"}"#,
        "type 'T', at /minLength: write a whole number that is not negative",
    ),
    (
        r#"{"maxLength":1.5,"type":"string"}"#,
        "type 'T', at /maxLength: write a whole number that is not negative",
    ),
    (
        r#"{"maxLength":1,"minLength":2,"type":"string"}"#,
        "type 'T': 'minLength' is greater than 'maxLength', so no value fits; change one of them",
    ),
    (
        r#"{"minimum":1.5,"type":"integer"}"#,
        "type 'T', at /minimum: write an integer without fraction or exponent",
    ),
    (r#"{"maximum":"9","type":"number"}"#, "type 'T', at /maximum: write a number"),
    (
        r#"{"maximum":9007199254740992,"minimum":9007199254740993,"type":"integer"}"#,
        "type 'T': 'minimum' is greater than 'maximum', so no value fits; change one of them",
    ),
    (r#"{"enum":[]}"#, "type 'T', at /enum: write a list of at least one string"),
    (r#"{"enum":[1]}"#, "type 'T', at /enum: write a list of at least one string"),
    (r#"{"enum":["a","b","a"]}"#, "type 'T', at /enum: 'a' stands twice; keep one"),
    (r#"{"const":1}"#, "type 'T', at /const: a constant is a string; write one"),
    (r#"{"oneOf":{}}"#, "type 'T', at /oneOf: write a list of schemas"),
    (r#"{"oneOf":[]}"#, "type 'T', at /oneOf: no value fits an empty list; add a schema"),
    (
        r##"{"$ref":"#/$defs/A"}"##,
        "type 'T', at /$ref: no type '#/$defs/A' is declared; declare it or name one that is",
    ),
    (r#"{"$ref":1}"#, "type 'T', at /$ref: a reference is the name of a type; write one"),
    (
        r#"{"oneOf":[{"type":"null"},{"type":"null"}]}"#,
        r#"type 'T', at /oneOf: more than one alternative takes a value of type "null"; keep one"#,
    ),
    (
        r#"{"oneOf":[{"type":"integer"},{"type":"number"}]}"#,
        concat!(
            r#"type 'T', at /oneOf: more than one alternative takes a value of type "number"; "#,
            r#"keep one"#,
        ),
    ),
    (
        r#"{"oneOf":[{"type":"string"},{"const":"a"}]}"#,
        "type 'T', at /oneOf: beside an alternative that takes any string another takes one too; \
         keep one of them",
    ),
    (
        r#"{"oneOf":[{"const":"a"},{"enum":["b","a"]}]}"#,
        r#"type 'T', at /oneOf: more than one alternative takes "a"; keep one"#,
    ),
    (
        concat!(
            r#"{"oneOf":[{"additionalProperties":false,"type":"object"},"#,
            r#"{"additionalProperties":{"type":"null"},"type":"object"}]}"#,
        ),
        "type 'T', at /oneOf: nothing tells the objects among the alternatives apart; give each a \
         required member of the same name with a 'const' of its own, or only one member, each \
         with another name",
    ),
];

#[test]
fn faults_name_the_place_and_the_remedy() {
    for (schema, expected) in FAULTY {
        let found = faults(&[("T", schema), ("T2", r#"{"type":"null"}"#)]);
        assert_eq!(found, [*expected], "{schema}");
    }
}

#[test]
fn all_faults_are_named_at_once_up_to_a_bound() {
    let three = faults(&[
        ("A", r#"{"minLength":-1,"title":"A","type":"string"}"#),
        ("a b", r#"{"type":"null"}"#),
        ("B", r#"{"$ref":"Missing"}"#),
        ("B", r#"{"type":"null"}"#),
        ("C", r#"{"$ref":"C"}"#),
    ]);
    assert_eq!(three.len(), 6, "{three:?}");

    let members = (0..150).map(|i| format!(r#""m{i:03}":{{}}"#)).collect::<Vec<_>>().join(",");
    let schema =
        format!(r#"{{"additionalProperties":false,"properties":{{{members}}},"type":"object"}}"#);
    let many = faults(&[("T", &schema)]);
    assert_eq!(many.len(), 100);
    assert!(many[99].ends_with("(and 50 more faults of types)"), "{}", many[99]);
}

#[test]
fn recursion_passes_through_objects_or_arrays() {
    let list = concat!(
        r#"{"additionalProperties":false,"properties":{"next":{"oneOf":[{"type":"null"},"#,
        r#"{"$ref":"List"}]}},"required":["next"],"type":"object"}"#,
    );
    let tree = r#"{"items":{"$ref":"Tree"},"type":"array"}"#;
    let types = types(&[("List", list), ("Tree", tree), ("Alias", r#"{"$ref":"List"}"#)]);
    types.admit("Alias", r#"{"next":{"next":null}}"#).unwrap();
    types.admit("Tree", "[[],[[]]]").unwrap();

    let ends_never = |name: &str| {
        format!(
            "'{name}' is made of itself with no object or array between, so no value could end; \
             put one between"
        )
    };
    let circle = faults(&[
        ("A", r#"{"oneOf":[{"type":"null"},{"$ref":"B"}]}"#),
        ("B", r#"{"$ref":"A"}"#),
        ("C", r#"{"$ref":"A"}"#),
    ]);
    assert_eq!(circle, [format!("type 'B': {}", ends_never("A"))]);
    assert_eq!(faults(&[("A", r#"{"$ref":"A"}"#)]), [format!("type 'A': {}", ends_never("A"))]);
}

#[test]
fn nesting_without_objects_or_arrays_is_bounded() {
    let chain = |length: usize| -> Vec<TypeShape> {
        let link = |i: usize| shape(&format!("T{i}"), &format!(r#"{{"$ref":"T{}"}}"#, i + 1));
        let end = shape(&format!("T{length}"), r#"{"type":"null"}"#);
        (0..length).map(link).chain([end]).collect()
    };
    let types = Types::compile(&chain(16)).unwrap();
    types.admit("T0", "null").unwrap();
    let faults = Types::compile(&chain(1_900)).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].problem.contains("more than 16 times"), "{}", faults[0]);
}

#[test]
fn too_much_is_refused_before_it_is_read() {
    let null = r#"{"type":"null"}"#;
    let many: Vec<_> = (0..=TYPES_MAX).map(|i| shape(&format!("T{i}"), null)).collect();
    let long = format!(r#"{{"const":"{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX));
    let large = format!(r#"{{"const":"{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX - 100));
    let heavy: Vec<_> = (0..20).map(|i| shape(&format!("T{i}"), &large)).collect();
    for (shapes, expected) in [
        (many, "type 'T2000': the train has 2001 types; declare at most 2000"),
        (
            vec![shape("T", &long)],
            "type 'T': the schema has 262156 bytes, more than 262144; make parts of it types of \
             their own",
        ),
        (
            heavy,
            "type 'T16': the schemas of the train are longer than 4194304 bytes together; shorten \
             them",
        ),
    ] {
        let faults = Types::compile(&shapes).unwrap_err();
        assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
