//! Cases of reading and writing JSON, and what must hold for all of it.

use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    Json::parse(text).unwrap().to_string()
}

#[test]
fn canonical_text_sorts_members_and_keeps_numbers_to_the_letter() {
    let cases = [
        (r#" { "b" : 1 , "a" : [ true , null ] } "#, r#"{"a":[true,null],"b":1}"#),
        ("9007199254740993", "9007199254740993"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("[1.0,1e5,-0,0.10]", "[1.0,1e5,-0,0.10]"),
        (r#""\u0041\/\n\u001f\ud83d\ude00""#, "\"A/\\n\\u001f\u{1f600}\""),
        ("{\"\u{e9}\":1,\"z\":2}", "{\"z\":2,\"\u{e9}\":1}"),
    ];
    for (text, expected) in cases {
        assert_eq!(canonical(text), expected, "{text}");
    }
}

#[test]
fn text_that_is_not_json_is_refused_with_what_and_where() {
    let cases = [
        ("", "the text ends in the middle of a value at line 1, column 1"),
        ("{\"a\":1", "the text ends in the middle of a value at line 1, column 7"),
        (
            "{\n \"a\":1,\n \"a\":2}",
            "the member 'a' stands twice in one object; keep one of them at line 3, column 8",
        ),
        ("[1,]", "expected a value at line 1, column 4"),
        ("[1 2]", "expected ',' or ']' at line 1, column 4"),
        ("{a:1}", "expected a member's name in quotes at line 1, column 2"),
        ("01", "expected no digit after a leading zero at line 1, column 2"),
        ("1.", "the text ends in the middle of a value at line 1, column 3"),
        ("-x", "expected a digit at line 1, column 2"),
        ("NaN", "expected a value at line 1, column 1"),
        ("1 1", "more text after the value at line 1, column 3"),
        (
            "\"\\u0000\"",
            "text holds NUL (U+0000), which cannot be stored; remove it at line 1, column 8",
        ),
        (
            "\"a\0\"",
            "text holds NUL (U+0000), which cannot be stored; remove it at line 1, column 3",
        ),
        ("\"\\ud800\"", "text holds half of a surrogate pair at line 1, column 8"),
        ("\"\\udc00\"", "text holds half of a surrogate pair at line 1, column 8"),
        ("\"a\nb\"", "text holds a control character that is not escaped at line 1, column 3"),
        ("\"\\x\"", "text holds an escape that JSON does not have at line 1, column 3"),
    ];
    for (text, expected) in cases {
        assert_eq!(Json::parse(text).unwrap_err().to_string(), expected, "{text:?}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(Json::parse(&nested(DEPTH_MAX)).is_ok());
    for depth in [DEPTH_MAX + 1, 100_000] {
        assert_eq!(Json::parse(&nested(depth)).unwrap_err().problem, Problem::TooDeep);
    }
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i128>().prop_map(|n| Json::Number(n.to_string())),
        "[^\\x00]{0,8}".prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::vec(("[^\\x00]{0,4}", inner), 0..4).prop_map(Json::object),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_text_reads_back_as_itself(json in any_json()) {
        let text = json.to_string();
        let read = Json::parse(&text).unwrap();
        prop_assert_eq!(&read, &json);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn whatever_is_accepted_serde_json_accepts_too(text in "[\\[\\]{}\":,0-9a-z.\\\\ -]{0,24}") {
        if Json::parse(&text).is_ok() {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
        }
    }
}
