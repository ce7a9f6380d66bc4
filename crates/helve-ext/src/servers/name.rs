//! Makes tool names that every provider accepts. Pure.

use std::collections::BTreeSet;

/// Maximum length of a tool name: the smallest limit among providers.
const MAX_LEN: usize = 64;
/// Maximum length of the server's part of a tool name.
const MAX_SERVER_LEN: usize = 30;

/// Returns the prefix of the names of all of a server's tools.
pub(super) fn prefix(server: &str) -> String {
    shorten(&replace_unsafe(server), server, MAX_SERVER_LEN) + "_"
}

/// Returns `server_tool`, with a number appended if the name is in use.
pub(super) fn tool_name(server: &str, tool: &str, used_names: &BTreeSet<String>) -> String {
    let prefix = prefix(server);
    let full =
        shorten(&(prefix.clone() + &replace_unsafe(tool)), &format!("{server}\0{tool}"), MAX_LEN);
    let is_free = |name: &str| !used_names.contains(&name.to_ascii_lowercase());
    if is_free(&full) {
        return full;
    }
    let numbered = (2..).map(|number| {
        let suffix = format!("_{number}");
        full.get(..MAX_LEN.saturating_sub(suffix.len())).unwrap_or(&full).to_owned() + &suffix
    });
    // There is one more candidate than used names, so at least one is free.
    numbered.take(used_names.len() + 1).find(|name| is_free(name)).unwrap_or(full)
}

/// Replaces characters that some provider does not accept.
fn replace_unsafe(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    // Longer texts are cut later anyway.
    let safe: String =
        text.chars().take(4 * MAX_LEN).map(|c| if is_safe(c) { c } else { '_' }).collect();
    if safe.is_empty() { "unnamed".into() } else { safe }
}

/// Cuts a name to `max` bytes. A hash of the full name replaces what was cut, so that the result stays unique.
fn shorten(safe: &str, full: &str, max: usize) -> String {
    if safe.len() <= max {
        return safe.into();
    }
    let hash = blake3::hash(full.as_bytes()).to_hex();
    format!("{}_{}", safe.get(..max - 9).unwrap_or(safe), &hash[..8])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(server: &str, tool: &str, used_names: &[&str], expected: &str) {
        let used_names = used_names.iter().map(ToString::to_string).collect();
        assert_eq!(tool_name(server, tool, &used_names), expected);
    }

    #[test]
    fn names_are_safe_short_and_unique() {
        check("files", "read", &[], "files_read");
        check("my files", "../../etc/passwd", &[], "my_files_______etc_passwd");
        check("a", "", &[], "a_unnamed");
        check("a", "b", &["a_b"], "a_b_2");
        check("a", "B", &["a_b", "a_b_2"], "a_B_3");
        let long = "x".repeat(10_000);
        let made = tool_name("files", &long, &BTreeSet::new());
        assert_eq!((made.len(), &made[..8]), (64, "files_xx"));
        assert_ne!(made, tool_name("files", &(long + "y"), &BTreeSet::new()));
    }

    proptest! {
        #[test]
        fn any_text_makes_a_free_name(server in "\\PC{0,80}", tool in "\\PC{0,80}", times in 1..5) {
            let mut used_names = BTreeSet::new();
            for _ in 0..times {
                let made = tool_name(&server, &tool, &used_names);
                prop_assert!(made.len() <= MAX_LEN && !made.is_empty());
                prop_assert!(made.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                prop_assert!(made.starts_with(&prefix(&server)));
                prop_assert!(used_names.insert(made.to_ascii_lowercase()));
            }
        }
    }
}
