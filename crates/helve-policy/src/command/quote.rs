//! Quotes words of a command, so that it can be shown as one text.

use helve_text::shell::Word;

/// Characters with a special meaning in a shell.
pub(super) const SHELL_SPECIAL: &str = " \t\n'\"\\$`*?[]{}()<>|&;#!~";
/// Characters that would make one word look like two.
pub(super) const WORD_BREAKING: &str = " \t\n'\"";

/// Quotes a word if it is empty or contains a special character.
pub(super) fn quote(word: &Word, special: &str) -> String {
    match word {
        Word::Literal(text) if text.is_empty() || text.contains(|c| special.contains(c)) => {
            quote_text(text)
        }
        Word::Literal(_) | Word::Glob(_) | Word::Dynamic(_) => word.shown().to_string(),
    }
}

pub(super) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
