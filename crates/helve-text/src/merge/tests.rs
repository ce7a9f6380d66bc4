//! Tests of merges of small files, and of properties that all merges have.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Merges, and compares the result with the expectation, in which a space stands for a newline.
fn check(base: &str, mine: &str, theirs: &str, expect: Expect) {
    let shown = match merge3(base.as_bytes(), mine.as_bytes(), theirs.as_bytes()) {
        Ok(merged) => String::from_utf8_lossy(&merged).replace('\n', " "),
        Err(conflict) => format!("{conflict:?}"),
    };
    expect.assert_eq(&shown);
}

#[test]
fn separate_changes_are_merged() {
    check("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nC\nd\n", expect!["A b C d "]);
    check("a\nb\nc\nd\n", "x\na\nb\nc\nd\n", "a\nb\nc\n", expect!["x a b c "]);
    check("a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n", expect!["a c d "]);
}

#[test]
fn equal_changes_are_merged_once() {
    check("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n", expect!["a B c "]);
    check("a\nb\nc\nd\ne\n", "a\nB\nc\nd\ne\n", "a\nB\nc\nd\nE\n", expect!["a B c d E "]);
}

#[test]
fn touching_changes_conflict() {
    check(
        "a\nb\nc\n",
        "a\nB\nc\n",
        "a\nX\nc\n",
        expect!["Conflict { base: 1..2, mine: 1..2, theirs: 1..2 }"],
    );
    check(
        "a\nb\nc\n",
        "A\nb\nc\n",
        "a\nB\nc\n",
        expect!["Conflict { base: 0..2, mine: 0..2, theirs: 0..2 }"],
    );
    check(
        "a\nb\nc\n",
        "a\nx\nb\nc\n",
        "a\nB\nc\n",
        expect!["Conflict { base: 1..2, mine: 1..3, theirs: 1..2 }"],
    );
    check(
        "a\nb\n",
        "a\nx\nb\n",
        "a\ny\nb\n",
        expect!["Conflict { base: 1..1, mine: 1..2, theirs: 1..2 }"],
    );
    // The added line could also be the first or the third of the equal lines.
    check(
        "a\nx\nx\nb\n",
        "a\nx\nx\nx\nb\n",
        "A\nx\nx\nb\n",
        expect!["Conflict { base: 0..3, mine: 0..4, theirs: 0..3 }"],
    );
}

#[test]
fn binary_files_merge_only_if_one_side_changed() {
    check(
        "a\0\nb\nc\n",
        "A\0\nb\nc\n",
        "a\0\nb\nC\n",
        expect!["Conflict { base: 0..1, mine: 0..1, theirs: 0..1 }"],
    );
    check("a\0\n", "a\0\n", "b\0\n", expect!["b\0 "]);
}

#[test]
fn utf16_files_are_merged() {
    let utf16_bytes =
        |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let merged = merge3(
        &utf16_bytes("\u{feff}a\nb\nc\n"),
        &utf16_bytes("\u{feff}A\nb\nc\n"),
        &utf16_bytes("\u{feff}a\nb\n\u{a05}\n"),
    );
    assert_eq!(merged, Ok(utf16_bytes("\u{feff}A\nb\n\u{a05}\n")));
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec!["a\n", "b\n", "c\r\n", "\n", "\u{e9}\n"]);
    (prop::collection::vec(line, 0..12), prop::sample::select(vec!["", "z"]))
        .prop_map(|(lines, last)| (lines.concat() + last).into_bytes())
}

proptest! {
    #[test]
    fn a_change_of_one_side_or_an_equal_change_of_both_is_the_result(base in lines(), other in lines()) {
        prop_assert_eq!(merge3(&base, &base, &other), Ok(other.clone()));
        prop_assert_eq!(merge3(&base, &other, &base), Ok(other.clone()));
        prop_assert_eq!(merge3(&base, &other, &other), Ok(other));
    }

    #[test]
    fn merging_is_symmetric(base in lines(), mine in lines(), theirs in lines()) {
        prop_assert_eq!(merge3(&base, &mine, &theirs).ok(), merge3(&base, &theirs, &mine).ok());
    }

    #[test]
    fn distant_changes_merge(base in lines(), mine in "[x-z]{0,3}", theirs in "[x-z]{0,3}") {
        let file = |head: &str, tail: &str| [head.as_bytes(), b"one\ntwo\n", &base, b"\nthree\nfour\n", tail.as_bytes()].concat();
        let merged = merge3(&file("head\n", "tail\n"), &file(&format!("{mine}\n"), "tail\n"), &file("head\n", &format!("{theirs}\n")));
        prop_assert_eq!(merged, Ok(file(&format!("{mine}\n"), &format!("{theirs}\n"))));
    }
}
