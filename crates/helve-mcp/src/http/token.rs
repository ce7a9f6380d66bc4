//! The secret that every request must carry.

use std::fmt;

/// A secret, stored as its hash so that it can be compared but not shown.
#[derive(Clone)]
pub struct Token(blake3::Hash);

/// Minimum length of a secret.
const MIN_LEN: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("the token is too short: it must have at least {MIN_LEN} characters")]
    TooShort,
    #[error(
        "the token contains characters that are not allowed in a header: use letters and digits"
    )]
    InvalidCharacter,
}

impl Token {
    pub fn new(secret: &str) -> Result<Self, BadToken> {
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadToken::InvalidCharacter);
        }
        if secret.len() < MIN_LEN {
            return Err(BadToken::TooShort);
        }
        Ok(Self(blake3::hash(secret.as_bytes())))
    }

    /// Compares hashes in constant time.
    pub(super) fn matches(&self, given: &[u8]) -> bool {
        self.0 == blake3::hash(given)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
