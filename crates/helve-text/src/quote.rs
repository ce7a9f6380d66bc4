//! Quotes texts so that a person can copy them from a terminal into a shell or a JSON file.

use std::fmt::Write;

use crate::visible::is_invisible;

/// Quotes a text as one word for bash and zsh. Invisible characters are written as escapes, so that no terminal changes
/// them.
pub fn shell_word(text: &str) -> String {
    if !text.contains(is_invisible) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut quoted = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Writing to a string cannot fail.
            c if c.is_ascii() && is_invisible(c) => {
                write!(quoted, "\\x{:02x}", u32::from(c)).unwrap_or_default();
            }
            c if is_invisible(c) => write!(quoted, "\\U{:08x}", u32::from(c)).unwrap_or_default(),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

/// Quotes a text as a JSON string. Invisible characters are written as escapes.
pub fn json_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(quoted, "\\u{unit:04x}").unwrap_or_default();
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, word: &str, json: &str) {
        assert_eq!((shell_word(text).as_str(), json_string(text).as_str()), (word, json));
    }

    #[test]
    fn texts_are_quoted() {
        check("a b", "'a b'", r#""a b""#);
        check("echo 'x'", r"'echo '\''x'\'''", r#""echo 'x'""#);
        check(r#"say "\n""#, r#"'say "\n"'"#, r#""say \"\\n\"""#);
        check("a\nb's\\", r"$'a\nb\'s\\'", r#""a\nb's\\""#);
        check("\u{1}\u{202e}é", r"$'\x01\U0000202eé'", r#""\u0001\u202eé""#);
        check("\u{e0041}", r"$'\U000e0041'", r#""\udb40\udc41""#);
    }
}
