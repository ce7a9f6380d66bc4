//! How a result that contains a diff is shown at a terminal: coloured, and without a diff that a question has shown.

use helve::visible;

use crate::output;

/// Returns the text of a result for a terminal, with control characters escaped. `diff` is the diff in its metadata,
/// whose lines occur in the text in the same order; `omit` leaves them out.
pub(super) fn coloured(text: &str, diff: &str, omit: bool) -> String {
    let mut diff_lines = lines(diff).filter(|_| !diff.is_empty()).peekable();
    let mut shown = String::new();
    for line in lines(text) {
        if diff_lines.next_if_eq(&line).is_none() {
            shown.push_str(&format!("{}\n", visible::escape(line)));
        } else if !omit {
            shown.push_str(&output::colour_diff(line, ""));
        } else if shown.ends_with("\n\n") {
            // The empty line before an omitted diff separates nothing.
            shown.pop();
        }
    }
    shown
}

/// The lines of a text, with carriage returns.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const DIFF: &str = "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+\u{1b}2\n";

    /// Colours are shown as `<31>`.
    fn check(text: &str, diff: &str, omit: bool, expected: Expect) {
        let shown = coloured(text, diff, omit).replace("\u{1b}[0m", "");
        expected.assert_eq(&shown.replace("\u{1b}[", "<").replace('m', ">"));
    }

    #[test]
    fn diffs_are_coloured() {
        check(
            &format!("Edited a: +1 -1.\n\n{DIFF}\nNote.\n"),
            DIFF,
            false,
            expect![[r#"
            Edited a: +1 -1.

            <31>--- a
            <32>+++ a
            <36>@@ -1 +1 @@
            <31>-1
            <32>+\u{1b}2

            Note.
        "#]],
        );
    }

    #[test]
    fn several_diffs_with_text_between_them() {
        let other = DIFF.replace(" a", " b");
        let text = format!("Two.\n\n{DIFF}(cut)\n\n{other}");
        check(
            &text,
            &format!("{DIFF}{other}"),
            false,
            expect![[r#"
            Two.

            <31>--- a
            <32>+++ a
            <36>@@ -1 +1 @@
            <31>-1
            <32>+\u{1b}2
            (cut)

            <31>--- b
            <32>+++ b
            <36>@@ -1 +1 @@
            <31>-1
            <32>+\u{1b}2
        "#]],
        );
    }

    #[test]
    fn a_diff_that_a_question_showed_is_left_out() {
        check(
            &format!("Edited a: +1 -1.\n\n{DIFF}"),
            DIFF,
            true,
            expect![[r#"
            Edited a: +1 -1.
        "#]],
        );
        check(
            &format!("Edited a.\n\n{DIFF}\nNote.\n"),
            DIFF,
            true,
            expect![[r#"
            Edited a.

            Note.
        "#]],
        );
    }

    #[test]
    fn other_texts_are_only_escaped() {
        check(
            "one\n\n+two\u{1b}[2J",
            "",
            false,
            expect![[r#"
                one

                +two\u{1b}[2J
            "#]],
        );
    }
}
