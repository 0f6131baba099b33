//! Reads JSON text into a tree, and says what is wrong and where.

use super::{DEPTH_MAX, Json, Problem};

pub(super) struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0 }
    }

    /// The byte it has come to.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn document(&mut self) -> Result<Json, Problem> {
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
