//! Who may do what: roles, and what callers of the API present.

use std::fmt;

/// What a caller may do. Each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Runs, cancels, requeues, switches on and off.
    Operator,
    /// Deploys components and states manifests.
    Author,
    /// Manages tokens and what the tenant may use.
    Admin,
}

impl Role {
    /// All of them, the one that may do least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Author, Self::Admin];

    /// The name in rows, arguments and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Author => "author",
            Self::Admin => "admin",
        }
    }

    /// The role of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What every token begins with, so that one in the wrong place is recognised.
const PREFIX: &str = "trax_";

/// How many characters follow the prefix: 32 bytes in hex.
const SECRET_LENGTH: usize = 64;

/// A token as it is presented. It prints as its prefix only.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token of 32 random bytes.
    pub fn of_random(bytes: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", hex::encode(bytes)))
    }

    /// What was presented, if it has the form of a token.
    pub fn parse(text: &str) -> Option<Self> {
        let secret = text.strip_prefix(PREFIX)?;
        let is_hex = secret.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (secret.len() == SECRET_LENGTH && is_hex).then(|| Self(text.to_owned()))
    }

    /// The whole token, to be shown once to whoever asked for it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}..")
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, Token};

    #[test]
    fn each_role_may_do_what_those_before_it_may() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(Role::of_name(role.as_str()), Some(role));
        }
        assert_eq!(Role::of_name("root"), None);
    }

    #[test]
    fn what_has_not_the_form_of_a_token_is_none() {
        let token = Token::of_random([7; 32]);
        assert_eq!(Token::parse(token.reveal()), Some(token.clone()));
        assert_eq!(format!("{token:?}"), "trax_..");
        let cut = &token.reveal()[..token.reveal().len() - 1];
        for other in ["", "trax_", cut, &token.reveal().to_uppercase(), &format!("{cut}g")] {
            assert_eq!(Token::parse(other), None, "{other}");
        }
    }
}
