//! The secret that every request must bring.

use std::fmt;

/// A secret, kept as its hash: it can be compared, not shown.
#[derive(Clone)]
pub struct Token(blake3::Hash);

/// The shortest secret that is taken for one.
const LEAST: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("the token is too short: it must have {LEAST} characters or more")]
    Short,
    #[error("the token has characters that a header cannot carry: use letters and digits")]
    Odd,
}

impl Token {
    pub fn new(secret: &str) -> Result<Self, BadToken> {
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadToken::Odd);
        }
        if secret.len() < LEAST {
            return Err(BadToken::Short);
        }
        Ok(Self(blake3::hash(secret.as_bytes())))
    }

    /// Takes as long for a near miss as for a far one: hashes are compared, in constant time.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        self.0 == blake3::hash(given)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
