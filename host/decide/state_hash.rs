//! What a state is known by: a recorded answer is replayed only for the state it was given for.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::chain::schema::Types;
use crate::model::question::Question;
use crate::model::value::Value;

/// The least bytes of a key: those of the hash it keys. A shorter one can be guessed before the hash can.
pub const KEY_BYTES_MIN: usize = 32;
/// The most bytes of a state that is hashed. Larger states are asked about afresh.
pub const STATE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A key that is too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the state hash key has {0} bytes; give it at least {KEY_BYTES_MIN}")]
pub struct KeyTooShort(pub usize);

/// Hashes states, under a key or without one. Hashes under different keys, or with and without one, never match.
#[derive(Clone)]
pub struct StateHasher {
    key: Option<Hmac<Sha256>>,
    is_unresolved: bool,
}

impl fmt::Debug for StateHasher {
    /// Leaves out the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (self.is_keyed(), self.is_unresolved) {
            (true, _) => "keyed",
            (false, true) => "unresolved",
            (false, false) => "unkeyed",
        };
        write!(f, "StateHasher({kind})")
    }
}

impl StateHasher {
    /// Hashes without a key. Whoever sees such a hash can try states until one matches, so sensitive states get none.
    pub fn unkeyed() -> Self {
        Self { key: None, is_unresolved: false }
    }

    /// Hashes under a key.
    ///
    /// # Errors
    /// [`KeyTooShort`] when the key has less than [`KEY_BYTES_MIN`] bytes.
    pub fn keyed(key: &[u8]) -> Result<Self, KeyTooShort> {
        let too_short = KeyTooShort(key.len());
        if key.len() < KEY_BYTES_MIN {
            return Err(too_short);
        }
        let key = Hmac::new_from_slice(key).map_err(|_| too_short)?;
        Ok(Self { key: Some(key), is_unresolved: false })
    }

    /// Hashes under a key in base64.
    ///
    /// # Errors
    /// [`KeyTooShort`] when it is none, or has less than [`KEY_BYTES_MIN`] bytes.
    pub fn of_base64(text: &str) -> Result<Self, KeyTooShort> {
        Self::keyed(&base64(text.trim()).unwrap_or_default())
    }

    /// Hashes nothing, so that nothing is replayed: there should be a key, and it cannot be had.
    pub fn unresolved() -> Self {
        Self { key: None, is_unresolved: true }
    }

    /// Whether there should be a key that cannot be had.
    pub fn is_unresolved(&self) -> bool {
        self.is_unresolved
    }

    /// Whether there is a key.
    pub fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// The hash of a state about which this question is asked. `None` when the answer is not to be replayed: the
    /// type is not declared, the state is larger than [`STATE_BYTES_MAX`], the state or the question is sensitive and
    /// there is no key, or the key cannot be had.
    pub fn hash_for(&self, types: &Types, state: &Value, question: &Question) -> Option<String> {
        let is_sensitive = question.sensitive || types.is_sensitive(&state.type_name);
        let is_hashed = !self.is_unresolved && (self.is_keyed() || !is_sensitive);
        if state.json.len() > STATE_BYTES_MAX || !is_hashed {
            return None;
        }
        Some(self.hash(state, &types.shape_fingerprint(&state.type_name)?))
    }

    /// `k1:` and the HMAC-SHA256 in lowercase hex with a key, `s1:` and the SHA-256 without one.
    ///
    /// The hashed bytes are `trax state 1`, a line feed, the type's name, the fingerprint of its shape and the
    /// canonical JSON, with the length in bytes of each of the three before it as 8 bytes, most significant first.
    /// Another layout takes another number, there and in the prefix.
    fn hash(&self, state: &Value, shape_fingerprint: &str) -> String {
        let fields = [&*state.type_name, shape_fingerprint, &*state.json];
        let feed = |update: &mut dyn FnMut(&[u8])| {
            update(b"trax state 1\n");
            for field in fields {
                update(&(field.len() as u64).to_be_bytes());
                update(field.as_bytes());
            }
        };
        if let Some(mut keyed) = self.key.clone() {
            feed(&mut |bytes| Mac::update(&mut keyed, bytes));
            return format!("k1:{}", hex::encode(keyed.finalize().into_bytes()));
        }
        let mut plain = Sha256::new();
        feed(&mut |bytes| Digest::update(&mut plain, bytes));
        format!("s1:{}", hex::encode(plain.finalize()))
    }
}

/// The bytes behind base64, with padding or without it.
fn base64(text: &str) -> Option<Vec<u8>> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0_u32);
    for letter in text.trim_end_matches('=').bytes() {
        let value = LETTERS.iter().position(|it| *it == letter)?;
        bits = (bits << 6 | u32::try_from(value).ok()?) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::declaration::TypeShape;
    use crate::model::question::QuestionKind;

    const KEY: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

    fn ticket() -> Value {
        Value::new("Ticket", r#"{"id":7}"#)
    }

    fn question(sensitive: bool) -> Question {
        Question {
            key: "Refund".to_owned(),
            instructions: "Refund it?".to_owned(),
            kind: QuestionKind::YesNo { yes: None, no: None },
            sensitive,
        }
    }

    fn types() -> Types {
        let shape = |name: &str, schema: &str, sensitive| TypeShape {
            name: name.to_owned(),
            schema: schema.to_owned(),
            sensitive,
        };
        Types::compile(&[
            shape("Text", r#"{"type":"string"}"#, false),
            shape("Card", r#"{"type":"string"}"#, true),
            shape("Payment", r#"{"items":{"$ref":"Card"},"type":"array"}"#, false),
        ])
        .unwrap()
    }

    /// Q25, Q30: the layout is stored with decisions, so it never changes under the same number.
    #[test]
    fn the_layout_is_fixed() {
        let plain = StateHasher::unkeyed().hash(&ticket(), "shape");
        let keyed = StateHasher::keyed(KEY).unwrap().hash(&ticket(), "shape");
        assert_eq!(plain, "s1:b934bb49f40270d9c58cc0de952b85aebecef39b421b70953e2f1a10e562c6ff");
        assert_eq!(keyed, "k1:27da616ac962d92df5a0b936306ed7acc08f506147bf55cd3ce9c017383ea02d");
    }

    /// Q25, Q27, Q30: the key, the type's name, its shape and the state's bytes each have a part in it.
    #[test]
    fn everything_about_the_state_has_a_part_in_it() {
        let plain = StateHasher::unkeyed();
        let keyed = StateHasher::keyed(KEY).unwrap();
        let other_key = StateHasher::keyed(b"0123456789abcdef0123456789abcdeF").unwrap();
        let mut hashes = vec![
            plain.hash(&ticket(), "shape"),
            plain.hash(&ticket(), "shap"),
            plain.hash(&Value::new("Order", r#"{"id":7}"#), "shape"),
            plain.hash(&Value::new("Ticket", r#"{"id":8}"#), "shape"),
            plain.hash(&Value::new("Ticketshape", r#"{"id":7}"#), ""),
            keyed.hash(&ticket(), "shape"),
            other_key.hash(&ticket(), "shape"),
        ];
        assert_eq!(hashes[0], plain.hash(&ticket(), "shape"));
        let hex = |hash: &String| hash[3..].to_owned();
        hashes = hashes.iter().map(hex).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 7);
    }

    /// Q26: a key is given in base64; what is none is no key.
    #[test]
    fn a_key_is_read_from_base64() {
        let state = |hasher: StateHasher| hasher.hash(&ticket(), "shape");
        let of = |text: &str| StateHasher::of_base64(text).map(state);
        let expected = state(StateHasher::keyed(KEY).unwrap());
        for text in [
            "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
            "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY",
            " MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n",
        ] {
            assert_eq!(of(text), Ok(expected.clone()), "{text}");
        }
        assert_eq!(base64("/+8="), Some(vec![0xff, 0xef]));
        for text in [
            "",
            "MDEy",
            "0123456789abcdef0123456789abcde!",
            "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZQ==",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    /// Q25: a key has at least 32 bytes, and is never printed.
    #[test]
    fn short_keys_are_refused() {
        for length in [0, 1, 31] {
            let refused = StateHasher::keyed(&KEY[..length]).map(|_| ());
            assert_eq!(refused, Err(KeyTooShort(length)));
        }
        let keyed = StateHasher::keyed(&[b'x'; 100]).unwrap();
        assert_eq!(format!("{keyed:?}"), "StateHasher(keyed)");
    }

    /// Q26, Q28, Q29: without a key nothing sensitive is hashed; nothing too large or unknown ever is, and nothing at
    /// all without a key that there should be.
    #[test]
    fn some_states_have_no_hash() {
        let types = types();
        let large = "x".repeat(STATE_BYTES_MAX + 1);
        for (type_name, json, is_question_sensitive, plain, keyed) in [
            ("Text", "\"a\"", false, true, true),
            ("Text", "\"a\"", true, false, true),
            ("Card", "\"a\"", false, false, true),
            ("Payment", "[\"a\"]", false, false, true),
            ("Unknown", "\"a\"", false, false, false),
            ("Text", large.as_str(), false, false, false),
        ] {
            let (state, question) = (Value::new(type_name, json), question(is_question_sensitive));
            let has_hash =
                |hasher: StateHasher| hasher.hash_for(&types, &state, &question).is_some();
            assert_eq!(has_hash(StateHasher::unkeyed()), plain, "{type_name} without a key");
            assert_eq!(has_hash(StateHasher::keyed(KEY).unwrap()), keyed, "{type_name} with a key");
            assert!(
                !has_hash(StateHasher::unresolved()),
                "{type_name} without the key there should be"
            );
        }
    }
}
