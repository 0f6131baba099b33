//! Values: the schemas they declare, to the letter, and their JSON there and back.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use trax_sdk::json::{self, Types};
use trax_sdk::{Shape, Value};

#[derive(Value, Debug, PartialEq, Clone)]
#[value(rename_all = "camelCase")]
struct Order {
    sequence_number: u32,
    lines: Vec<Line>,
    #[value(rename = "customer")]
    buyer: Customer,
    note: Option<String>,
    is_paid: bool,
    r#type: Kind,
}

#[derive(Value, Debug, PartialEq, Clone)]
struct Line(String, f64);

#[derive(Value, Debug, PartialEq, Clone)]
#[value(name = "Buyer", sensitive)]
struct Customer {
    tags: BTreeMap<String, i8>,
}

#[derive(Value, Debug, PartialEq, Clone)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Kind {
    InStore,
    #[serde(rename = "post")]
    ByPost,
}

#[derive(Value, Debug, PartialEq, Clone)]
enum Payment {
    Cash,
    Card(Email),
    Split(u8, i64),
    Invoice { due: Option<u64>, to: Box<Payment> },
}

#[derive(Value, Debug, PartialEq, Clone)]
struct Email(String);

#[derive(Value, Debug, PartialEq, Clone)]
struct Nothing;

#[derive(Value, Debug, PartialEq, Clone)]
struct Empty {}

#[derive(Value, Debug, PartialEq, Clone)]
struct Numbers {
    small: f32,
    pair: (u16, bool),
    map: HashMap<String, i32>,
    several: Vec<i16>,
}

fn declared<T: Value>() -> Vec<(String, String, bool)> {
    let mut types = Types::default();
    types.add::<T>();
    types.add::<T>();
    let shapes = types.into_shapes().into_iter();
    shapes.map(|shape| (shape.name, shape.schema, shape.sensitive)).collect()
}

#[test]
fn a_type_is_declared_with_all_it_refers_to_in_normal_form() {
    let order = r#"{"additionalProperties":false,"properties":{"customer":{"$ref":"Buyer"},"isPaid":{"type":"boolean"},"#
        .to_owned()
        + r#""lines":{"items":{"$ref":"Line"},"type":"array"},"note":{"oneOf":[{"type":"null"},{"type":"string"}]},"#
        + r#""sequenceNumber":{"maximum":4294967295,"minimum":0,"type":"integer"},"type":{"$ref":"Kind"}},"#
        + r#""required":["customer","isPaid","lines","sequenceNumber","type"],"type":"object"}"#;
    let line = r#"{"items":false,"minItems":2,"prefixItems":[{"type":"string"},{"type":"number"}],"type":"array"}"#;
    let buyer = r#"{"additionalProperties":false,"properties":{"tags":{"additionalProperties":"#
        .to_owned()
        + r#"{"maximum":127,"minimum":-128,"type":"integer"},"type":"object"}},"required":["tags"],"type":"object"}"#;

    let types = declared::<Order>();

    let expected = [
        ("Order", order.as_str(), false),
        ("Buyer", buyer.as_str(), true),
        ("Line", line, false),
        ("Kind", r#"{"enum":["in_store","post"]}"#, false),
    ];
    assert_eq!(types, expected.map(|(name, schema, is)| (name.to_owned(), schema.to_owned(), is)));
}

#[test]
fn every_shape_has_one_schema() {
    let payment = r#"{"oneOf":[{"const":"Cash"},"#.to_owned()
        + r#"{"additionalProperties":false,"properties":{"Card":{"$ref":"Email"}},"required":["Card"],"type":"object"},"#
        + r#"{"additionalProperties":false,"properties":{"Split":{"items":false,"minItems":2,"prefixItems":["#
        + r#"{"maximum":255,"minimum":0,"type":"integer"},"#
        + r#"{"maximum":9223372036854775807,"minimum":-9223372036854775808,"type":"integer"}],"type":"array"}},"#
        + r#""required":["Split"],"type":"object"},"#
        + r#"{"additionalProperties":false,"properties":{"Invoice":{"additionalProperties":false,"properties":"#
        + r#"{"due":{"oneOf":[{"type":"null"},{"maximum":18446744073709551615,"minimum":0,"type":"integer"}]},"#
        + r#""to":{"$ref":"Payment"}},"required":["to"],"type":"object"}},"required":["Invoice"],"type":"object"}]}"#;
    let numbers = r#"{"additionalProperties":false,"properties":{"map":{"additionalProperties":"#
        .to_owned()
        + r#"{"maximum":2147483647,"minimum":-2147483648,"type":"integer"},"type":"object"},"#
        + r#""pair":{"items":false,"minItems":2,"prefixItems":[{"maximum":65535,"minimum":0,"type":"integer"},"#
        + r#"{"type":"boolean"}],"type":"array"},"several":{"items":{"maximum":32767,"minimum":-32768,"#
        + r#""type":"integer"},"type":"array"},"small":{"type":"number"}},"#
        + r#""required":["map","pair","several","small"],"type":"object"}"#;

    for (types, schema) in [
        (declared::<Payment>(), payment.as_str()),
        (declared::<Numbers>(), numbers.as_str()),
        (declared::<Email>(), r#"{"type":"string"}"#),
        (declared::<Nothing>(), r#"{"type":"null"}"#),
        (declared::<Empty>(), r#"{"additionalProperties":false,"properties":{},"type":"object"}"#),
    ] {
        assert_eq!(types[0].1, schema);
    }
}

/// Writes a value as exactly this text, and reads it back.
fn is_written<T: Shape + Debug + PartialEq>(value: &T, text: &str) {
    assert_eq!(json::to_string(value).expect("it can be written"), text);
    assert_eq!(&json::from_str::<T>(text).expect("it can be read"), value);
}

#[test]
fn values_are_written_as_canonical_json_and_read_back() {
    let order = Order {
        sequence_number: 7,
        lines: vec![Line("tea".to_owned(), 2.5), Line("cake".to_owned(), 3.0)],
        buyer: Customer { tags: BTreeMap::from([("vip".to_owned(), -1)]) },
        note: None,
        is_paid: true,
        r#type: Kind::ByPost,
    };
    let text = r#"{"customer":{"tags":{"vip":-1}},"isPaid":true,"lines":[["tea",2.5],["cake",3]],"#
        .to_owned()
        + r#""note":null,"sequenceNumber":7,"type":"post"}"#;
    is_written(&order, &text);
}

#[test]
fn enums_are_written_as_serde_writes_them() {
    is_written(&Payment::Cash, r#""Cash""#);
    is_written(&Payment::Card(Email("a@b".to_owned())), r#"{"Card":"a@b"}"#);
    is_written(&Payment::Split(1, -2), r#"{"Split":[1,-2]}"#);
    let invoice = Payment::Invoice { due: Some(3), to: Box::new(Payment::Cash) };
    is_written(&invoice, r#"{"Invoice":{"due":3,"to":"Cash"}}"#);
    is_written(&Nothing, "null");
    is_written(&Empty {}, "{}");
}

#[test]
fn a_member_that_is_an_option_may_be_left_out() {
    let read = json::from_str::<Payment>(r#"{"Invoice":{"to":"Cash"}}"#).expect("it can be read");

    assert_eq!(read, Payment::Invoice { due: None, to: Box::new(Payment::Cash) });
}

#[test]
fn numbers_and_text_keep_every_bit() {
    is_written(&u64::MAX, "18446744073709551615");
    is_written(&i64::MIN, "-9223372036854775808");
    is_written(&0.1_f64, "0.1");
    is_written(&f64::MIN_POSITIVE, &format!("{}", f64::MIN_POSITIVE));
    is_written(&0.1_f32, "0.1");
    is_written(&"a\"\\\n\r\t\u{8}\u{c}\u{1}é😀".to_owned(), r#""a\"\\\n\r\t\b\f\u0001é😀""#);
    assert_eq!(json::from_str::<String>(r#""\u00e9\ud83d\ude00\/""#).as_deref(), Ok("é😀/"));
    is_written(&HashMap::from([("b".to_owned(), 1_u8), ("a".to_owned(), 2)]), r#"{"a":2,"b":1}"#);
    assert!(json::to_string(&f64::NAN).is_err());
    assert!(json::to_string(&vec![1.0_f32, f32::INFINITY]).is_err());
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_panics() {
    for text in [
        "",
        "{",
        "{}",
        "[]",
        r#"{"tags":{"vip":200}}"#,
        r#"{"tags":{"vip":1.5}}"#,
        r#"{"tags":{},"more":1}"#,
        r#"{"tags":{}} x"#,
        r#"{"tags":{"vip":1"#,
        r#"{"tags":{"\u12"#,
        r#"{"tags":{"\ud800":1}}"#,
        r#"{"tags":{"é\u00é":1}}"#,
        r#"{"tags":{"a\"#,
        "nul",
        r#"{"tags" 1}"#,
    ] {
        assert!(json::from_str::<Customer>(text).is_err(), "{text}");
    }
    for text in ["\"Gift\"", "{\"Cash\":1}", "{\"Card\":\"a\",\"Split\":[1,2]}", "{\"Split\":[1]}"]
    {
        assert!(json::from_str::<Payment>(text).is_err(), "{text}");
    }
    let error = json::from_str::<Customer>(r#"{"colour":1}"#).expect_err("it has no colour");
    assert_eq!(error.to_string(), "the type has no member 'colour' at byte 10");
}
