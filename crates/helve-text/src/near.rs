//! Suggests known names for a name that does not exist.

use strsim::osa_distance;

/// Maximum length of names that are compared for typos. Longer names are compared only for equality and containment.
const MAX_LENGTH: usize = 128;
/// Maximum number of character comparisons per query. A list of 100,000 ordinary names stays below this limit.
const MAX_COMPARISONS: usize = 50_000_000;
/// Minimum length of a name that counts as similar because another name contains it.
const MIN_CONTAINED: usize = 3;

/// Returns up to `max` of the `known` names that are similar to `wanted`, most similar first.
///
/// Names that differ only in case come first, then those that differ in case and separators, then those with a few
/// typos, then those that contain `wanted` or are contained in it. The result does not depend on the order of `known`.
pub fn nearest<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    // The names are sorted, so that the budget is always spent on the same names.
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    let wanted = NormalizedName::new(wanted);
    let mut budget = MAX_COMPARISONS;
    let mut similar: Vec<(Nearness, &str)> = known
        .into_iter()
        .filter_map(|name| {
            Some((nearness(&wanted, &NormalizedName::new(name), &mut budget)?, name))
        })
        .collect();
    similar.sort_unstable();
    similar.into_iter().take(max).map(|(_, name)| name).collect()
}

/// How a known name resembles the wanted name, most similar first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// The names differ only in case.
    SameButCase,
    /// The names differ only in case and in separators: `read_file`, `readFile`.
    SameButSeparators,
    /// The number of characters that are inserted, omitted, replaced, or swapped with their neighbour.
    Typos(usize),
    /// One name contains the other. The number is the difference in length.
    Contained(usize),
}

/// A name prepared for comparing.
struct NormalizedName {
    lower: String,
    /// `lower` without separators.
    letters: String,
    /// Number of characters in `lower`.
    length: usize,
}

impl NormalizedName {
    fn new(name: &str) -> NormalizedName {
        let lower = name.to_lowercase();
        let letters = lower.replace(['_', '-', '.', ' '], "");
        let length = lower.chars().count();
        NormalizedName { lower, letters, length }
    }
}

/// Returns how similar two names are, or `None` if they are not similar.
fn nearness(
    wanted: &NormalizedName,
    known: &NormalizedName,
    budget: &mut usize,
) -> Option<Nearness> {
    if wanted.lower == known.lower {
        return Some(Nearness::SameButCase);
    }
    if wanted.letters == known.letters && !known.letters.is_empty() {
        return Some(Nearness::SameButSeparators);
    }
    if let Some(typos) = typos(wanted, known, budget) {
        return Some(Nearness::Typos(typos));
    }
    let (short, long) =
        if wanted.length < known.length { (wanted, known) } else { (known, wanted) };
    let contained = short.length >= MIN_CONTAINED && long.lower.contains(&short.lower);
    contained.then(|| Nearness::Contained(long.length - short.length))
}

/// Returns the number of typos, if there is at most one per three characters.
fn typos(wanted: &NormalizedName, known: &NormalizedName, budget: &mut usize) -> Option<usize> {
    let allowed = wanted.length.max(known.length).max(3) / 3;
    if wanted.length.abs_diff(known.length) > allowed
        || wanted.length.max(known.length) > MAX_LENGTH
    {
        return None;
    }
    *budget = budget.checked_sub(wanted.length * known.length)?;
    let typos = osa_distance(&wanted.lower, &known.lower);
    // If every character differs, the names have nothing in common.
    (typos <= allowed && typos < wanted.length.max(known.length)).then_some(typos)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::nearest;

    /// Compares the three names nearest to `wanted` with the expectation. `known` is a list of names with blanks
    /// between.
    #[track_caller]
    fn check(wanted: &str, known: &str, expect: Expect) {
        expect.assert_eq(&nearest(wanted, known.split_whitespace(), 3).join(" "));
    }

    #[test]
    fn more_similar_names_come_first() {
        check(
            "readfile",
            "readfiles read_file file ReadFile reedfile write",
            expect!["ReadFile read_file readfiles"],
        );
        check("file", "profile filename tile File bash", expect!["File tile profile"]);
    }

    #[test]
    fn misspelled_tool_names_are_found() {
        const TOOLS: &str =
            "bash edit glob grep list multiedit read todoread todowrite webfetch write";
        check("Read", TOOLS, expect!["read todoread"]);
        check("todo_write", TOOLS, expect!["todowrite write"]);
        check("wirte", TOOLS, expect!["write"]);
        check("MultiEdit", TOOLS, expect!["multiedit edit"]);
        check("web_fetch", TOOLS, expect!["webfetch"]);
        check("grpe", TOOLS, expect!["grep"]);
        check("str_replace_editor", TOOLS, expect!["edit"]);
        check("launch_missiles", TOOLS, expect![""]);
    }

    #[test]
    fn misspelled_file_names_are_found() {
        const FILES: &str =
            "Cargo.toml README.md index.ts main.rs main_test.rs mod.rs utils-test.ts";
        check("index.js", FILES, expect!["index.ts"]);
        check("readme.MD", FILES, expect!["README.md"]);
        check("utils.test.ts", FILES, expect!["utils-test.ts"]);
        check("mian.rs", FILES, expect!["main.rs"]);
        check("main", FILES, expect!["main.rs main_test.rs"]);
        check("Cargo.lock", FILES, expect!["Cargo.toml"]);
    }

    #[test]
    fn short_names_need_a_close_match() {
        check("", "a ab abc", expect![""]);
        check("a", "b A ab", expect!["A ab"]);
        check("ls", "rs lsp lst l", expect!["l lsp lst"]);
        check("日本語", "日本 日本誤", expect!["日本 日本誤"]);
    }

    #[test]
    fn duplicates_are_removed() {
        check("read", "Read Read read", expect!["Read read"]);
    }

    #[test]
    fn long_names_and_lists_are_searched() {
        let long = "a".repeat(1_000_000);
        let list = vec!["abcdefghijklmnopqrstuvwxyz"; 100_000];
        assert!(nearest(&"b".repeat(1_000_000), [long.as_str()], 3).is_empty());
        assert_eq!(nearest("abcdefghijklmnopqrstuvwxy", list, 3).len(), 1);
    }

    proptest! {
        #[test]
        fn order_of_the_list_does_not_matter(wanted in "[abA_]{0,6}", known in prop::collection::vec("[abA_]{0,6}", 0..12), max in 0..6_usize) {
            let forward = nearest(&wanted, known.iter().map(String::as_str), max);
            let backward = nearest(&wanted, known.iter().rev().map(String::as_str), max);
            prop_assert_eq!(&forward, &backward);
            prop_assert!(forward.len() <= max);
        }

        #[test]
        fn the_same_name_is_always_near(name in "\\PC{1,20}") {
            prop_assert_eq!(nearest(&name, [name.as_str()], 1), [name.as_str()]);
        }
    }
}
