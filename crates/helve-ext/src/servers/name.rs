//! From a server's words to a tool's name that every provider takes. Pure.

use std::collections::BTreeSet;

/// The longest name of a tool; what several providers take.
const MOST: usize = 64;
/// How much of that the server's name may have.
const MOST_SERVER: usize = 30;

/// What the names of all of a server's tools begin with.
pub(super) fn prefix(server: &str) -> String {
    shortened(&safe(server), server, MOST_SERVER) + "_"
}

/// `server_tool`, or that with a number where the name is taken.
pub(super) fn name(server: &str, tool: &str, taken: &BTreeSet<String>) -> String {
    let prefix = prefix(server);
    let whole = shortened(&(prefix.clone() + &safe(tool)), &format!("{server}\0{tool}"), MOST);
    let free = |name: &str| !taken.contains(&name.to_ascii_lowercase());
    if free(&whole) {
        return whole;
    }
    let numbered = (2..).map(|number| {
        let end = format!("_{number}");
        whole.get(..MOST.saturating_sub(end.len())).unwrap_or(&whole).to_owned() + &end
    });
    // There are more numbers than names that can be taken.
    numbered.take(taken.len() + 1).find(|name| free(name)).unwrap_or(whole)
}

fn safe(text: &str) -> String {
    let keeps = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    // Whatever is longer is cut off anyway.
    let safe: String =
        text.chars().take(4 * MOST).map(|c| if keeps(c) { c } else { '_' }).collect();
    if safe.is_empty() { "unnamed".into() } else { safe }
}

/// Cut to `most`, with a hash of the whole in place of what is gone, so that it stays one of a kind.
fn shortened(safe: &str, whole: &str, most: usize) -> String {
    if safe.len() <= most {
        return safe.into();
    }
    let hash = blake3::hash(whole.as_bytes()).to_hex();
    format!("{}_{}", safe.get(..most - 9).unwrap_or(safe), &hash[..8])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(server: &str, tool: &str, taken: &[&str], expected: &str) {
        let taken = taken.iter().map(ToString::to_string).collect();
        assert_eq!(name(server, tool, &taken), expected);
    }

    #[test]
    fn names_are_made_safe_and_short_and_free() {
        check("files", "read", &[], "files_read");
        check("my files", "../../etc/passwd", &[], "my_files_______etc_passwd");
        check("a", "", &[], "a_unnamed");
        check("a", "b", &["a_b"], "a_b_2");
        check("a", "B", &["a_b", "a_b_2"], "a_B_3");
        let long = "x".repeat(10_000);
        let made = name("files", &long, &BTreeSet::new());
        assert_eq!((made.len(), &made[..8]), (64, "files_xx"));
        assert_ne!(made, name("files", &(long + "y"), &BTreeSet::new()));
    }

    proptest! {
        #[test]
        fn any_words_make_a_name_that_is_free(server in "\\PC{0,80}", tool in "\\PC{0,80}", times in 1..5) {
            let mut taken = BTreeSet::new();
            for _ in 0..times {
                let made = name(&server, &tool, &taken);
                prop_assert!(made.len() <= MOST && !made.is_empty());
                prop_assert!(made.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                prop_assert!(made.starts_with(&prefix(&server)));
                prop_assert!(taken.insert(made.to_ascii_lowercase()));
            }
        }
    }
}
