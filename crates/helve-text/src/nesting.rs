//! Measures how deeply JSON is nested, without recursion.

/// Returns the maximum nesting depth of objects and arrays: 2 for `{"a":[1]}`. The text need not be valid JSON.
pub fn json_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_measured() {
        for (text, expected) in [
            ("", 0),
            ("1", 0),
            ("{}", 1),
            (r#"{"a":[{"b":1}],"c":{}}"#, 3),
            (r#"{"a":"[[[{{","b":"\"[["}"#, 1),
            ("]]]][", 1),
            (r#""\\"[["#, 2),
        ] {
            assert_eq!(json_depth(text), expected, "{text}");
        }
        assert_eq!(json_depth(&"[".repeat(1_000_000)), 1_000_000);
    }
}
