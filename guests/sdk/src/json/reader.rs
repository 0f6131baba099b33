//! Reads JSON text straight into types.

use std::borrow::Cow;
use std::fmt;

/// Where text does not fit the type that is read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// What is wrong.
    pub problem: Cow<'static, str>,
    /// The byte at which it is wrong, from 0.
    pub at: usize,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

impl std::error::Error for ReadError {}

/// JSON text that is being read.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the beginning.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// An error at this place.
    pub fn error(&self, problem: impl Into<Cow<'static, str>>) -> ReadError {
        ReadError { problem: problem.into(), at: self.at }
    }

    /// The error of a member that the type does not have.
    #[inline(never)]
    pub fn unknown_member(&self, name: &str) -> ReadError {
        self.error(format!("the type has no member '{name}'"))
    }

    /// The error of a variant that the type does not have.
    #[inline(never)]
    pub fn unknown_variant(&self, name: &str) -> ReadError {
        self.error(format!("the type has no variant '{name}'"))
    }

    /// A member of an object that has been read, or what stands for it when it was left out.
    ///
    /// # Errors
    /// It is not there and has to be.
    pub fn member<T>(
        &self,
        name: &str,
        found: Option<T>,
        absent: fn() -> Option<T>,
    ) -> Result<T, ReadError> {
        found.or_else(absent).ok_or_else(|| self.missing_member(name))
    }

    #[inline(never)]
    fn missing_member(&self, name: &str) -> ReadError {
        self.error(format!("the member '{name}' is missing before here"))
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// More text follows.
    pub fn end(&mut self) -> Result<(), ReadError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("more text after the value")),
        }
    }

    /// The next byte that is no space, without taking it.
    #[inline(never)]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    #[inline(never)]
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn take(&mut self, byte: u8, problem: &'static str) -> Result<(), ReadError> {
        if self.takes(byte) { Ok(()) } else { Err(self.error(problem)) }
    }

    #[inline(never)]
    fn takes_word(&mut self, word: &str) -> bool {
        self.peek();
        let is_next = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    /// Takes `null` if it is next.
    pub fn takes_null(&mut self) -> bool {
        self.takes_word("null")
    }

    /// Reads `null`.
    pub fn null(&mut self) -> Result<(), ReadError> {
        if self.takes_null() { Ok(()) } else { Err(self.error("expected null")) }
    }

    /// Reads `true` or `false`.
    pub fn bool(&mut self) -> Result<bool, ReadError> {
        if self.takes_word("true") {
            Ok(true)
        } else if self.takes_word("false") {
            Ok(false)
        } else {
            Err(self.error("expected true or false"))
        }
    }

    /// Reads the text of a number.
    #[inline(never)]
    pub fn number(&mut self) -> Result<&'a str, ReadError> {
        self.peek();
        let rest = &self.text[self.at..];
        let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.as_bytes().iter().take_while(|b| is_part(b)).count();
        if length == 0 {
            return Err(self.error("expected a number"));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// Reads a string.
    #[inline(never)]
    pub fn string(&mut self) -> Result<Cow<'a, str>, ReadError> {
        self.take(b'"', "expected text")?;
        let rest = &self.text[self.at..];
        let Some(length) = rest.find(['"', '\\']) else {
            return Err(self.error("the text has no end"));
        };
        self.at += length;
        if self.takes(b'"') {
            return Ok(Cow::Borrowed(&rest[..length]));
        }
        let mut text = rest[..length].to_owned();
        loop {
            let rest = &self.text[self.at..];
            let Some(length) = rest.find(['"', '\\']) else {
                return Err(self.error("the text has no end"));
            };
            text.push_str(&rest[..length]);
            self.at += length + 1;
            if rest.as_bytes()[length] == b'"' {
                return Ok(Cow::Owned(text));
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, ReadError> {
        let Some(&byte) = self.text.as_bytes().get(self.at) else {
            return Err(self.error("the text has no end"));
        };
        let letter = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.error("an escape that JSON does not have")),
        };
        self.at += 1;
        Ok(letter)
    }

    fn unicode(&mut self) -> Result<char, ReadError> {
        let first = self.hex()?;
        let mut code = first;
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            }
        }
        char::from_u32(code).ok_or_else(|| self.error("half of a surrogate pair"))
    }

    fn hex(&mut self) -> Result<u32, ReadError> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        if digits.len() != 4 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(self.error("expected four hexadecimal digits"));
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| self.error("expected a code point"))
    }

    /// Reads the start of a list.
    pub fn start_array(&mut self) -> Result<(), ReadError> {
        self.take(b'[', "expected a list")
    }

    /// Reads the end of a list.
    pub fn end_array(&mut self) -> Result<(), ReadError> {
        self.take(b']', "expected the end of the list")
    }

    /// Reads a comma.
    pub fn comma(&mut self) -> Result<(), ReadError> {
        self.take(b',', "expected a comma")
    }

    /// Reads a list of any length.
    #[inline(never)]
    pub fn array(
        &mut self,
        item: &mut dyn FnMut(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.start_array()?;
        if self.takes(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.takes(b',') {
                return self.end_array();
            }
        }
    }

    /// Reads an object, a member at a time.
    #[inline(never)]
    pub fn object(
        &mut self,
        member: &mut dyn FnMut(&mut Self, &str) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.take(b'{', "expected an object")?;
        if self.takes(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.take(b':', "expected a colon")?;
            member(self, &name)?;
            if !self.takes(b',') {
                return self.take(b'}', "expected the end of the object");
            }
        }
    }

    /// Reads a variant of an enum: its name, or an object of its name and what it holds.
    pub fn variant<T>(
        &mut self,
        unit: impl FnOnce(&mut Self, &str) -> Result<T, ReadError>,
        tagged: impl FnOnce(&mut Self, &str) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if self.peek() == Some(b'"') {
            let name = self.string()?;
            return unit(self, &name);
        }
        self.take(b'{', "expected a variant")?;
        let name = self.string()?;
        self.take(b':', "expected a colon")?;
        let value = tagged(self, &name)?;
        self.take(b'}', "expected the end of the variant")?;
        Ok(value)
    }
}
