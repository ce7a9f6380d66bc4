//! Tests of printed diffs, and of properties that all diffs have.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::{
    edit::TextKind,
    patch::{self, FilePatch},
    view::Binary,
};

/// Compares the diff with the expectation, followed by the numbers of added and deleted lines: `+1 -2`.
fn check(old: &[u8], new: &[u8], expect: Expect) {
    let diff = unified(
        old,
        new,
        DiffLabels { old: "a/f", new: "b/f" },
        DiffLimits { context: 1, bytes: 200 },
    );
    expect.assert_eq(&match diff {
        Ok(UnifiedDiff { text, additions, deletions, cut }) => {
            format!("{text}+{additions} -{deletions}{}\n", if cut { " cut" } else { "" })
        }
        Err(Binary) => "binary\n".to_owned(),
    });
}

#[test]
fn changed_lines_are_shown_with_context() {
    check(
        b"a\nb\nc\nd\n",
        b"a\nB\nc\nd\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1,3 +1,3 @@
         a
        -b
        +B
         c
        +1 -1
    "#]],
    );
    check(
        b"a\nb\nc\nd\ne\nf\n",
        b"A\nb\nc\nd\ne\nF\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1,2 +1,2 @@
        -a
        +A
         b
        @@ -5,2 +5,2 @@
         e
        -f
        +F
        +2 -2
    "#]],
    );
    check(
        b"a\nb\nc\nd\n",
        b"A\nb\nc\nD\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1,4 +1,4 @@
        -a
        +A
         b
         c
        -d
        +D
        +2 -2
    "#]],
    );
    check(
        b"",
        b"a\nb\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -0,0 +1,2 @@
        +a
        +b
        +2 -0
    "#]],
    );
    check(
        b"a\nb\n",
        b"",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1,2 +0,0 @@
        -a
        -b
        +0 -2
    "#]],
    );
    check(
        b"a\n",
        b"a\n",
        expect![[r#"
        +0 -0
    "#]],
    );
}

#[test]
fn a_missing_final_newline_is_shown() {
    check(
        b"a\nb",
        b"a\nb\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1,2 +1,2 @@
         a
        -b
        \ No newline at end of file
        +b
        +1 -1
    "#]],
    );
    check(
        b"a",
        b"b",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1 +1 @@
        -a
        \ No newline at end of file
        +b
        \ No newline at end of file
        +1 -1
    "#]],
    );
}

#[test]
fn changed_line_endings_are_shown() {
    check(
        b"a\r\nb\r\n",
        b"a\r\nc\r\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1,2 +1,2 @@
         a
        -b
        +c
        +1 -1
    "#]],
    );
    check(
        b"a\r\nb\n",
        b"a\nb\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1,2 +1,2 @@
        -a␍
        +a
         b
        +1 -1
    "#]],
    );
}

#[test]
fn files_in_other_encodings_are_compared() {
    check(
        b"caf\xe9\n",
        b"th\xe9\n",
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1 +1 @@
        -café
        +thé
        +1 -1
    "#]],
    );
    check(
        b"a\0\n",
        b"b\n",
        expect![[r#"
        binary
    "#]],
    );
}

#[test]
fn a_diff_over_the_byte_limit_is_cut() {
    check(
        b"a\n",
        "é".repeat(200).as_bytes(),
        expect![[r#"
        --- a/f
        +++ b/f
        @@ -1 +1 @@
        -a
        +éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé+1 -1 cut
    "#]],
    );
}

#[test]
fn large_sequences_are_compared() {
    let line = |index: usize| index % 7;
    let old: Vec<usize> = (0..300_000).map(line).collect();
    let mut new = old.clone();
    new[100_000] = 9;
    new.remove(200_000);
    assert_eq!(
        hunks(&old, &new),
        [
            DiffHunk { old: 100_000..100_001, new: 100_000..100_001 },
            DiffHunk { old: 200_000..200_001, new: 200_000..200_000 },
        ]
    );
    let other: Vec<usize> = (0..300_000).map(|index| index * index % 5).collect();
    assert_eq!(apply_hunks(&hunks(&old, &other), &old, &other), other);
}

fn items_with_few_distinct_values() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..4_u8, 0..60)
}

/// Rebuilds the new side from the old side and the hunks.
fn apply_hunks<T: Clone>(hunks: &[DiffHunk], old: &[T], new: &[T]) -> Vec<T> {
    let mut rebuilt = Vec::new();
    let mut at = 0;
    for hunk in hunks {
        rebuilt.extend_from_slice(&old[at..hunk.old.start]);
        rebuilt.extend_from_slice(&new[hunk.new.clone()]);
        at = hunk.old.end;
    }
    rebuilt.extend_from_slice(&old[at..]);
    rebuilt
}

/// Applies a patch of one file.
fn apply_patch(old: &str, diff: &str) -> Vec<u8> {
    let Some(FilePatch::Update { hunks, .. }) = patch::parse(diff).unwrap().files.pop() else {
        panic!("{diff}");
    };
    patch::place::apply(old.as_bytes(), &hunks, TextKind::Unknown).unwrap().unwrap().bytes
}

proptest! {
    #[test]
    fn a_diff_of_a_large_file_applies(edits in prop::collection::vec((0..3000_usize, 0..3_usize), 1..4)) {
        let old: Vec<String> = (0..3000).map(|number| format!("line {number}\n")).collect();
        let mut new = old.clone();
        for (at, kind) in edits {
            match kind {
                0 => new[at] = String::new(),
                1 => new[at].push_str("more\n"),
                _ => new[at] = format!("another {at}\n"),
            }
        }
        let (old, new) = (old.concat(), new.concat());
        let labels = DiffLabels { old: "f", new: "f" };
        let diff = unified(old.as_bytes(), new.as_bytes(), labels, DiffLimits::DEFAULT).unwrap();
        let common_prefix = old.lines().zip(new.lines()).take_while(|(a, b)| a == b).count();
        let head = diff.text.lines().find_map(|line| line.strip_prefix("@@ -")).unwrap();
        let number: usize = head.split([',', ' ']).next().unwrap().parse().unwrap();
        prop_assert_eq!(number, common_prefix.saturating_sub(3) + 1);
        prop_assert_eq!(apply_patch(&old, &diff.text), new.into_bytes());
    }

    #[test]
    fn hunks_turn_old_into_new(old in items_with_few_distinct_values(), new in items_with_few_distinct_values()) {
        let hunks = hunks(&old, &new);
        prop_assert!(hunks.iter().all(|hunk| !hunk.old.is_empty() || !hunk.new.is_empty()));
        prop_assert!(hunks.windows(2).all(|pair| pair[0].old.end < pair[1].old.start));
        prop_assert_eq!(apply_hunks(&hunks, &old, &new), new);
    }

    #[test]
    fn anchors_are_in_order_on_both_sides(old in prop::collection::vec(0..80_usize, 0..60), new in prop::collection::vec(0..80_usize, 0..60)) {
        let anchors = unique_anchors(&old, &new);
        prop_assert!(anchors.iter().all(|(at, new_at)| old[*at] == new[*new_at]));
        prop_assert!(anchors.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        let mut list = HunkList { hunks: Vec::new() };
        list.add_gaps(&anchors, &old, &new, 0);
        prop_assert_eq!(apply_hunks(&list.hunks, &old, &new), new);
    }

    #[test]
    fn the_greedy_algorithm_changes_as_few_items_as_the_hunks(old in prop::collection::vec(0..4_usize, 0..60), new in prop::collection::vec(0..4_usize, 0..60)) {
        let common = greedy::common_items(&old, &new).expect("within the limits");
        prop_assert!(common.iter().all(|(at, new_at)| old[*at] == new[*new_at]));
        prop_assert!(common.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        let changed: usize = hunks(&old, &new).iter().map(|hunk| hunk.old.len() + hunk.new.len()).sum();
        prop_assert_eq!(old.len() + new.len() - 2 * common.len(), changed);
    }

    #[test]
    fn a_diff_stays_within_its_limits(old in "[ab\n\r]{0,80}", new in "[ab\n\r]{0,80}", bytes in 0..300_usize) {
        let diff = unified(old.as_bytes(), new.as_bytes(), DiffLabels { old: "a", new: "b" }, DiffLimits { context: 3, bytes }).expect("text");
        prop_assert!(diff.text.len() <= bytes);
        prop_assert_eq!(diff.additions + diff.deletions == 0, old == new);
    }
}
