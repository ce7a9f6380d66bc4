//! Pretty-prints JSON that is on a single line.

use serde::de::IgnoredAny;

/// Returns JSON with line breaks and indentation; `None` if the text is not JSON, or already has several lines. Numbers
/// and strings are kept as they are written.
pub(crate) fn pretty(text: &str) -> Option<String> {
    let text = text.trim();
    if text.contains('\n') || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return None;
    }
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut chars = text.char_indices().peekable();
    let mut in_string = false;
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some((_, c)) = chars.next() {
        match c {
            '\\' if in_string => {
                out.push(c);
                out.extend(chars.next().map(|(_, c)| c));
            }
            '"' => {
                in_string = !in_string;
                out.push(c);
            }
            c if in_string => out.push(c),
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
                if let Some((_, end)) = chars.next_if(|(_, c)| matches!(c, '}' | ']')) {
                    out.push(end);
                    continue;
                }
                depth += 1;
                newline(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_one_line_is_broken_into_lines() {
        let text =
            r#"{"a":[1,2.50,{}],"b":"x, {\"y\": [1]}","c":[],"big":12345678901234567890123}"#;
        let expected = "{\n  \"a\": [\n    1,\n    2.50,\n    {}\n  ],\n  \"b\": \"x, {\\\"y\\\": [1]}\",\n  \"c\": [],\n  \"big\": 12345678901234567890123\n}";
        assert_eq!(pretty(text).as_deref(), Some(expected));
        assert_eq!(pretty("[1]\n").as_deref(), Some("[\n  1\n]"));
        assert_eq!(pretty("{\n}"), None);
        assert_eq!(pretty("{broken"), None);
        assert_eq!(pretty("7").as_deref(), Some("7"));
        assert_eq!(pretty(&"[".repeat(100_000)), None);
    }
}
