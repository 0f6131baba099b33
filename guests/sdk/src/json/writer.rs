//! Writes JSON text.

use std::fmt::Write as _;

use super::WriteError;

/// JSON text under construction.
#[derive(Default)]
pub struct Writer {
    text: String,
    has_unwritable: bool,
}

impl Writer {
    /// Adds text as it is.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a JSON string.
    pub fn string(&mut self, text: &str) {
        self.text.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            self.text.push_str(&rest[..at]);
            self.escape(rest.as_bytes()[at]);
            rest = &rest[at + 1..];
        }
        self.text.push_str(rest);
        self.text.push('"');
    }

    fn escape(&mut self, byte: u8) {
        const HEX: [u8; 16] = *b"0123456789abcdef";
        match byte {
            b'"' => self.text.push_str("\\\""),
            b'\\' => self.text.push_str("\\\\"),
            b'\n' => self.text.push_str("\\n"),
            b'\r' => self.text.push_str("\\r"),
            b'\t' => self.text.push_str("\\t"),
            8 => self.text.push_str("\\b"),
            12 => self.text.push_str("\\f"),
            other => {
                self.text.push_str("\\u00");
                self.text.push(char::from(HEX[usize::from(other >> 4)]));
                self.text.push(char::from(HEX[usize::from(other & 15)]));
            }
        }
    }

    /// Adds an integer.
    pub fn integer(&mut self, number: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "{number}");
    }

    /// Adds a number, in the fewest digits that read back as the same number.
    pub fn float(&mut self, number: f64) {
        if number.is_finite() {
            let _ = write!(self.text, "{number}");
        } else {
            self.has_unwritable = true;
        }
    }

    /// Adds a number of 32 bits, in the fewest digits that read back as the same number.
    pub fn float32(&mut self, number: f32) {
        if number.is_finite() {
            let _ = write!(self.text, "{number}");
        } else {
            self.has_unwritable = true;
        }
    }

    /// Opens the object `{"name":` that holds the content of an enum's variant.
    pub fn tag(&mut self, name: &str) {
        self.text.push('{');
        self.string(name);
        self.text.push(':');
    }

    /// The text.
    ///
    /// # Errors
    /// A number was not finite.
    pub fn finish(self) -> Result<String, WriteError> {
        if self.has_unwritable { Err(WriteError) } else { Ok(self.text) }
    }
}
