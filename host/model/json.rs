//! JSON as Trax keeps it: a tree whose numbers are kept to the letter, and its one canonical text.
//!
//! Canonical text has no space, members sorted by the UTF-8 bytes of their names, the shortest escapes, and every
//! number exactly as it was written, so that no integer ever passes through a float. Equal values of equal types have
//! equal text, whichever language wrote them; recording, replay and resume compare that text.

use std::fmt;

use thiserror::Error;

/// How deep arrays and objects may nest. A deeper value is almost always an attack on a recursive reader.
pub const DEPTH_MAX: usize = 64;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(String),
    /// Text, without its escapes.
    String(String),
    /// A list.
    Array(Vec<Self>),
    /// Members sorted by the UTF-8 bytes of their names.
    Object(Vec<(String, Self)>),
}

/// Text that is not JSON as Trax takes it: what, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem} at line {line}, column {column}")]
pub struct JsonError {
    /// What is wrong.
    pub problem: Problem,
    /// Line of the first byte that is wrong, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

/// What can be wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The text ends too early.
    #[error("the text ends in the middle of a value")]
    Ended,
    /// A byte that cannot stand here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// More text after the value.
    #[error("more text after the value")]
    Trailing,
    /// A member named twice.
    #[error("the member '{0}' stands twice in one object; keep one of them")]
    Duplicate(String),
    /// Arrays and objects nested too deep.
    #[error("nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// NUL, which neither C guests nor Postgres can hold in text.
    #[error("text holds NUL (U+0000), which cannot be stored; remove it")]
    Nul,
    /// A surrogate without its other half.
    #[error("text holds half of a surrogate pair")]
    Surrogate,
    /// A control character that is not escaped.
    #[error("text holds a control character that is not escaped")]
    Control,
    /// An escape that JSON does not have.
    #[error("text holds an escape that JSON does not have")]
    Escape,
}

impl Json {
    /// Reads one JSON value and nothing after it.
    ///
    /// # Errors
    /// [`JsonError`] says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
        let value = reader.document();
        value.map_err(|problem| {
            let before = &text.as_bytes()[..reader.at.min(text.len())];
            let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1);
            let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
            JsonError { problem, line, column: 1 + before.len() - line_start }
        })
    }

    /// The member of an object, if this is one and has it.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let at = members.binary_search_by(|(n, _)| n.as_bytes().cmp(name.as_bytes())).ok()?;
        Some(&members[at].1)
    }

    /// What stands where a JSON pointer points.
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |json, token| {
            let token = token.replace("~1", "/").replace("~0", "~");
            match json {
                Self::Object(_) => json.member(&token),
                Self::Array(items) => {
                    let is_index = token == "0" || !token.starts_with(['0', '+']);
                    token.parse::<usize>().ok().filter(|_| is_index).and_then(|at| items.get(at))
                }
                Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
            }
        })
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// An object of these members, sorted. Later members of the same name are dropped.
    pub fn object(members: impl IntoIterator<Item = (String, Self)>) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        members.dedup_by(|later, kept| later.0 == kept.0);
        Self::Object(members)
    }

    /// The value as `serde_json` has it, for libraries. Numbers beyond 64 bits lose digits there; nothing that is
    /// stored or compared goes through it.
    pub fn to_serde(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(*b),
            Self::Number(text) => number_to_serde(text),
            Self::String(text) => Value::String(text.clone()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_serde).collect()),
            Self::Object(members) => {
                Value::Object(members.iter().map(|(n, v)| (n.clone(), v.to_serde())).collect())
            }
        }
    }
}

fn number_to_serde(text: &str) -> serde_json::Value {
    if let Ok(n) = text.parse::<u64>() {
        return n.into();
    }
    if let Ok(n) = text.parse::<i64>() {
        return n.into();
    }
    let float = text.parse::<f64>().unwrap_or(f64::MAX);
    let finite = float.clamp(f64::MIN, f64::MAX);
    serde_json::Number::from_f64(finite).map_or(serde_json::Value::Null, Into::into)
}

/// Writes the canonical text.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => write_string(f, text),
            Self::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    write_string(f, name)?;
                    f.write_str(":")?;
                    value.fmt(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Writes text as a JSON string with the shortest escapes.
pub fn write_string(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        f.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'"' => f.write_str("\\\"")?,
            b'\\' => f.write_str("\\\\")?,
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\t' => f.write_str("\\t")?,
            8 => f.write_str("\\b")?,
            12 => f.write_str("\\f")?,
            other => write!(f, "\\u{other:04x}")?,
        }
        rest = &rest[at + 1..];
    }
    f.write_str(rest)?;
    f.write_str("\"")
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Json, Problem> {
        let value = self.value(0)?;
        self.space();
        if self.at < self.bytes.len() { Err(Problem::Trailing) } else { Ok(value) }
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, Problem> {
        self.bytes.get(self.at).copied().ok_or(Problem::Ended)
    }

    fn value(&mut self, depth: usize) -> Result<Json, Problem> {
        self.space();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Json::String),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'n' => self.word("null", Json::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(Problem::Expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, Problem> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Problem::Expected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Json, Problem> {
        self.open(depth)?;
        let mut items = Vec::new();
        self.space();
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.closed_by(b']', "',' or ']'")? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, Problem> {
        self.open(depth)?;
        let mut members = Vec::new();
        self.space();
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            if self.peek()? != b'"' {
                return Err(Problem::Expected("a member's name in quotes"));
            }
            let name = self.string()?;
            self.space();
            if self.peek()? != b':' {
                return Err(Problem::Expected("':'"));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            members.push((name, value));
            if self.closed_by(b'}', "',' or '}'")? {
                return sorted_members(members);
            }
        }
    }

    fn open(&mut self, depth: usize) -> Result<(), Problem> {
        if depth >= DEPTH_MAX {
            return Err(Problem::TooDeep);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the list ends here; otherwise a comma was read.
    fn closed_by(&mut self, end: u8, expected: &'static str) -> Result<bool, Problem> {
        self.space();
        let byte = self.peek()?;
        if byte != end && byte != b',' {
            return Err(Problem::Expected(expected));
        }
        self.at += 1;
        Ok(byte == end)
    }

    fn number(&mut self) -> Result<Json, Problem> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        let integer = self.digits()?;
        if integer > 1 && self.bytes[self.at - integer] == b'0' {
            self.at -= integer - 1;
            return Err(Problem::Expected("no digit after a leading zero"));
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text[start..self.at].to_owned()))
    }

    fn digits(&mut self) -> Result<usize, Problem> {
        let start = self.at;
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start {
            return Ok(self.at - start);
        }
        self.peek()?;
        Err(Problem::Expected("a digit"))
    }

    fn string(&mut self) -> Result<String, Problem> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek()?, b'"' | b'\\' | 0..=31) {
                self.at += 1;
            }
            text.push_str(&self.text[start..self.at]);
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => text.push(self.escape()?),
                0 => return Err(Problem::Nul),
                _ => return Err(Problem::Control),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Problem> {
        self.at += 1;
        let byte = self.peek()?;
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => {
                self.at -= 1;
                return Err(Problem::Escape);
            }
        })
    }

    fn unicode_escape(&mut self) -> Result<char, Problem> {
        let first = self.hex4()?;
        let code = match first {
            0 => return Err(Problem::Nul),
            0xD800..=0xDBFF => {
                if !self.text[self.at..].starts_with("\\u") {
                    return Err(Problem::Surrogate);
                }
                self.at += 2;
                let second = self.hex4()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err(Problem::Surrogate);
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            other => other,
        };
        char::from_u32(code).ok_or(Problem::Surrogate)
    }

    fn hex4(&mut self) -> Result<u32, Problem> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = char::from(self.peek()?).to_digit(16).ok_or(Problem::Escape)?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

fn sorted_members(mut members: Vec<(String, Json)>) -> Result<Json, Problem> {
    members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    match members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Problem::Duplicate(pair[0].0.clone())),
        None => Ok(Json::Object(members)),
    }
}

#[cfg(test)]
mod tests {
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
}
