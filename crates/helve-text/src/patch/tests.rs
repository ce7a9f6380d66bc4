//! Tests that parse patches and render the changes.

use std::fmt::Write;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{
    FilePatch, MAX_BYTES, Patch, PatchHunk, PatchLineKind, PatchParseError, PatchProblem, parse,
};

#[track_caller]
fn check(text: &str, expect: Expect) {
    expect.assert_eq(&match parse(text) {
        Ok(patch) => render(&patch),
        Err(PatchParseError { row, problem, found, .. }) => {
            format!("row {row}: {problem:?}, found {found:?}")
        }
    });
}

/// Checks a patch in the `apply_patch` format with this body.
#[track_caller]
fn check_body(body: &str, expect: Expect) {
    check(&format!("*** Begin Patch\n{body}\n*** End Patch\n"), expect);
}

/// Renders the changes. `=` marks a context line, and `⏏` a last line without a newline.
fn render(patch: &Patch) -> String {
    let mut out = String::new();
    for file in &patch.files {
        match file {
            FilePatch::Add { path, text, executable } => {
                writeln!(out, "add {path:?}{} {text:?}", mode(*executable)).unwrap();
            }
            FilePatch::Delete { path, content: None } => writeln!(out, "delete {path:?}").unwrap(),
            FilePatch::Delete { path, content: Some(content) } => {
                writeln!(out, "delete {path:?} {content:?}").unwrap()
            }
            FilePatch::Update { path, move_to, executable, hunks } => {
                let target = move_to.as_ref().map(|to| format!(" to {to:?}")).unwrap_or_default();
                writeln!(out, "update {path:?}{target}{}", mode(*executable)).unwrap();
                hunks.iter().for_each(|hunk| out.push_str(&render_hunk(hunk)));
            }
        }
    }
    out
}

fn mode(executable: Option<bool>) -> &'static str {
    match executable {
        None => "",
        Some(true) => " +x",
        Some(false) => " -x",
    }
}

fn render_hunk(hunk: &PatchHunk) -> String {
    let mut out = format!("  hunk in row {}", hunk.row);
    hunk.old_start.iter().for_each(|line| write!(out, " at {line}").unwrap());
    hunk.hints.iter().for_each(|hint| write!(out, " after {hint:?}").unwrap());
    for line in &hunk.lines {
        let sign = match line.kind {
            PatchLineKind::Keep => '=',
            PatchLineKind::Remove => '-',
            PatchLineKind::Add => '+',
        };
        write!(out, "\n    {sign}{}{}", line.text, if line.no_newline { "⏏" } else { "" }).unwrap();
    }
    out + if hunk.at_end { "\n    end of file\n" } else { "\n" }
}

mod apply_patch_format {
    use super::*;

    #[test]
    fn files_are_added_deleted_updated_and_moved() {
        check_body(
            "*** Add File: new.txt\n+one\n+\n+two\n*** Delete File: old.txt\n*** Update File: a.rs\n*** Move to: b.rs\n@@ fn main() {\n     let x = 1;\n-    let y = 2;\n+    let y = 3;\n",
            expect![[r#"
                add "new.txt" "one\n\ntwo\n"
                delete "old.txt"
                update "a.rs" to "b.rs"
                  hunk in row 9 after "fn main() {"
                    =    let x = 1;
                    -    let y = 2;
                    +    let y = 3;
                    =
            "#]],
        );
    }

    #[test]
    fn hunks_are_parsed() {
        check_body(
            "*** Update File: a\n one\n-two\n+2\n@@\n three\n+4",
            expect![[r#"
                update "a"
                  hunk in row 3
                    =one
                    -two
                    +2
                  hunk in row 6
                    =three
                    +4
            "#]],
        );
        check_body(
            "*** Update File: a\n@@ class A\n@@   def f(self):\n-x\n+y",
            expect![[r#"
                update "a"
                  hunk in row 3 after "class A" after "def f(self):"
                    -x
                    +y
            "#]],
        );
        check_body(
            "*** Update File: a\n@@\n-x\n+y\n*** End of File\n\n@@\n+z",
            expect![[r#"
                update "a"
                  hunk in row 3
                    -x
                    +y
                    end of file
                  hunk in row 8
                    +z
            "#]],
        );
        check_body(
            "*** Update File: a\n\n@@\n a\n\n b\n-\n+c\n",
            expect![[r#"
                update "a"
                  hunk in row 4
                    =a
                    =
                    =b
                    -
                    +c
                    =
            "#]],
        );
        check_body(
            "*** Update File: a\n@@ -3,2 +3,2 @@ fn f()\n-x\n+y\n@@ def g(): @@\n+z",
            expect![[r#"
                update "a"
                  hunk in row 3 at 3
                    -x
                    +y
                  hunk in row 6 after "def g():"
                    +z
            "#]],
        );
    }

    #[test]
    fn white_space_around_markers_is_ignored() {
        check(
            "\n  *** Begin Patch \r\n  *** Update File: a b.txt  \r\n-x\r\n+y\r\n *** End Patch  \r\n\r\n",
            expect![[r#"
                update "a b.txt"
                  hunk in row 4
                    -x
                    +y
            "#]],
        );
        check_body(
            "*** Update File: a\n *** Delete File: b\n-x\n+y",
            expect![[r#"
                update "a"
                  hunk in row 3
                    =*** Delete File: b
                    -x
                    +y
            "#]],
        );
        check_body(
            "*** Add File: a\n+x\n\n  *** Delete File: b\n\n",
            expect![[r#"
                add "a" "x\n"
                delete "b"
            "#]],
        );
    }

    #[test]
    fn here_documents_and_code_fences_are_unwrapped() {
        let patch = "*** Begin Patch\n*** Delete File: q\n*** End Patch";
        for (open, close) in [
            ("<<EOF", "EOF"),
            ("<<'EOF'", "EOF"),
            ("<<\"PATCH\"", "PATCH"),
            ("apply_patch <<'EOF'", "EOF"),
            ("```diff", "```"),
            ("```\n<<EOF", "EOF\n```"),
        ] {
            let text = format!("{open}\n{patch}\n{close}\n");
            assert_eq!(render(&parse(&text).unwrap()), "delete \"q\"\n", "{text}");
        }
        check(
            &format!("<<EOF\n{patch}\nPATCH"),
            expect![[r#"row 1: ExpectedBegin, found "<<EOF""#]],
        );
    }

    #[test]
    fn empty_files_and_plain_moves_are_parsed() {
        check_body(
            "*** Add File: empty",
            expect![[r#"
                add "empty" ""
            "#]],
        );
        check_body(
            "*** Update File: a\n*** Move to: b",
            expect![[r#"
                update "a" to "b"
            "#]],
        );
        check_body(
            "*** Update File: a\n*** Move to: a\n-x\n+y",
            expect![[r#"
                update "a"
                  hunk in row 4
                    -x
                    +y
            "#]],
        );
        check_body(
            "*** Add File: a\n+one\n\n+three\n\n*** Add File: b\n+",
            expect![[r#"
                add "a" "one\n\nthree\n"
                add "b" "\n"
            "#]],
        );
    }

    #[test]
    fn errors_name_the_row() {
        check("", expect![[r#"row 1: ExpectedBegin, found """#]]);
        check(
            "+++ b/a.rs\n@@ -1 +1 @@\n-a\n+b\n",
            expect![[r#"row 1: MissingOldName, found "+++ b/a.rs""#]],
        );
        check(
            "--- a/a.rs\n@@ -1 +1 @@\n-a\n+b\n",
            expect![[r#"row 1: MissingNewName, found "--- a/a.rs""#]],
        );
        check("please\napply", expect![[r#"row 1: ExpectedBegin, found "please""#]]);
        check("*** Begin Patch", expect![[r#"row 1: ExpectedEnd, found "*** Begin Patch""#]]);
        check(
            "*** Begin Patch\n*** Delete File: a",
            expect![[r#"row 2: ExpectedEnd, found "*** Delete File: a""#]],
        );
        check(
            "*** Begin Patch\n*** Delete File: a\n*** End Patch\nDone.",
            expect![[r#"row 4: AfterEnd, found "Done.""#]],
        );
        check(
            "*** Begin Patch\n*** End Patch\n*** Begin Patch\n*** End Patch",
            expect![[r#"row 3: AfterEnd, found "*** Begin Patch""#]],
        );
        check_body("", expect![[r#"row 3: NoChanges, found "*** End Patch""#]]);
        check_body(
            "*** Frobnicate File: a",
            expect![[r#"row 2: ExpectedFileHeader, found "*** Frobnicate File: a""#]],
        );
        check_body(
            "*** Add File:  \n+x",
            expect![[r#"row 2: ExpectedPath, found "*** Add File:  ""#]],
        );
        check_body("*** Add File: a\nx", expect![[r#"row 3: ExpectedAddition, found "x""#]]);
        check_body("*** Add File: a\n+x\ny", expect![[r#"row 4: ExpectedAddition, found "y""#]]);
        check_body("*** Delete File: a\n-x", expect![[r#"row 3: ExpectedFileHeader, found "-x""#]]);
        check_body(
            "*** Update File: a",
            expect![[r#"row 2: EmptyUpdate { path: "a" }, found "*** Update File: a""#]],
        );
        check_body("*** Update File: a\n@@", expect![[r#"row 3: EmptyHunk, found "@@""#]]);
        check_body(
            "*** Update File: a\n@@ f\n\n@@ g\n+x",
            expect![[r#"row 3: EmptyHunk, found "@@ f""#]],
        );
        check_body("*** Update File: a\nx", expect![[r#"row 3: ExpectedHunkLine, found "x""#]]);
        check_body(
            "*** Update File: a\n x\ny",
            expect![[r#"row 4: ExpectedHunkStart, found "y""#]],
        );
        check_body(
            "*** Update File: a\n*** End of File",
            expect![[r#"row 3: ExpectedHunkLine, found "*** End of File""#]],
        );
        check_body(
            "*** Update File: a\n-x\n*** End of File\n+y",
            expect![[r#"row 5: ExpectedHunkStart, found "+y""#]],
        );
        check_body(
            "*** Update File: a\n-x\n*** Move to: b",
            expect![[r#"row 4: ExpectedHunkStart, found "*** Move to: b""#]],
        );
        check_body(
            "*** Update File: a\n@@ -x,1 +1 @@\n-x",
            expect![[r#"
                update "a"
                  hunk in row 3 after "-x,1 +1"
                    -x
            "#]],
        );
        check_body(
            "*** Update File: a\n@@ -9,x +1 @@\n-x",
            expect![[r#"row 3: BadHunkHeader, found "@@ -9,x +1 @@""#]],
        );
    }
}

mod unified {
    use super::*;

    #[test]
    fn plain_diffs_are_parsed() {
        check(
            "--- a.txt\t2024-01-01 10:00:00\n+++ a.txt\t2024-01-02\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
            expect![[r#"
                update "a.txt"
                  hunk in row 3 at 1
                    =one
                    -two
                    +2
                    =three
            "#]],
        );
        check(
            "--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@ fn f()\n-x\n+y\n@@ -9,0 +10 @@\n+z\n",
            expect![[r#"
                update "x.rs"
                  hunk in row 3 at 1
                    -x
                    +y
                  hunk in row 6 at 10
                    +z
            "#]],
        );
        check(
            "Index: x\n=====\n--- x.orig\n+++ x\n@@ -1 +1 @@\n-x\n+y\n\n--- y\n+++ y\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"
                update "x"
                  hunk in row 5 at 1
                    -x
                    +y
                update "y"
                  hunk in row 11 at 1
                    -x
                    +y
            "#]],
        );
    }

    #[test]
    fn git_diffs_are_parsed() {
        check(
            "diff --git a/x b/x\nindex 111..222 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\ndiff --git a/new b/new\nnew file mode 100755\nindex 000..111\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\ndiff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
            expect![[r#"
                update "x"
                  hunk in row 5 at 1
                    -x
                    +y
                add "new" +x "one\ntwo"
                delete "old" "gone\n"
            "#]],
        );
        check(
            "diff --git a/a b/b\nsimilarity index 90%\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\ndiff --git a/c d b/e f\nsimilarity index 100%\nrename from c d\nrename to e f\n",
            expect![[r#"
                update "a" to "b"
                  hunk in row 7 at 1
                    -x
                    +y
                update "c d" to "e f"
            "#]],
        );
        check(
            "diff --git a/run b/run\nold mode 100644\nnew mode 100755\ndiff --git a/n b/n\nnew file mode 100644\nindex 000..e69\ndiff --git a/o b/o\ndeleted file mode 100644\n",
            expect![[r#"
                update "run" +x
                add "n" -x ""
                delete "o"
            "#]],
        );
        check(
            "diff --git \"a/\\303\\251 x\" \"b/\\303\\251 x\"\n--- \"a/\\303\\251 x\"\n+++ \"b/\\303\\251 x\"\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"
                update "é x"
                  hunk in row 4 at 1
                    -x
                    +y
            "#]],
        );
        check(
            "diff --git dir/x dir/x\n--- dir/x\n+++ dir/x\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"
                update "dir/x"
                  hunk in row 4 at 1
                    -x
                    +y
            "#]],
        );
        check(
            "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n",
            expect![[r#"
                add "new" "x\n"
                delete "old" "y\n"
            "#]],
        );
    }

    #[test]
    fn text_of_mails_and_logs_is_skipped() {
        check(
            "From 123\nSubject: x\n\n---\n a | 2 +-\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n-- \n2.40.0\n\n",
            expect![[r#"
                update "a"
                  hunk in row 10 at 1
                    -x
                    +y
            "#]],
        );
        check(
            "commit 1\n\n    message\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n\ncommit 2\n\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"
                update "a"
                  hunk in row 8 at 1
                    -x
                    +y
                update "b"
                  hunk in row 17 at 1
                    -x
                    +y
            "#]],
        );
    }

    #[test]
    fn last_lines_without_a_newline_are_marked() {
        check(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+y\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    =x
                    -y⏏
                    +y
                    end of file
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-x\n+z\n y\n\\ No newline at end of file\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    -x
                    +z
                    =y⏏
                    end of file
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n\\ No newline at end of file\n-y\n+z\n",
            expect![[r#"row 6: LineAfterNoNewlineMarker, found "-y""#]],
        );
        check(
            "--- a\n+++ a\n@@ -1 +1 @@\n\\ No newline at end of file\n-y\n+z\n",
            expect![[r#"row 4: ExpectedHunkLine, found "\\ No newline at end of file""#]],
        );
    }

    #[test]
    fn lines_that_look_like_headers_belong_to_the_hunk() {
        check(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n--- old\n+++ new\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    =x
                    --- old
                    +++ new
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,1 +1,1 @@\n--- a\n+++ b\n@@ -5 +5 @@\n-x\n+y\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    --- a
                    +++ b
                  hunk in row 6 at 5
                    -x
                    +y
            "#]],
        );
    }

    #[test]
    fn a_patch_may_contain_another_patch() {
        check(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n *** Begin Patch\n-x\n+y\n",
            expect![[r#"
            update "a"
              hunk in row 3 at 1
                =*** Begin Patch
                -x
                +y
        "#]],
        );
        check_body(
            "*** Update File: a\n --- a\n +++ a\n-@@\n+x",
            expect![[r#"
            update "a"
              hunk in row 3
                =--- a
                =+++ a
                -@@
                +x
        "#]],
        );
    }

    #[test]
    fn wrong_line_counts_are_tolerated() {
        check(
            "--- a\n+++ a\n@@ -1,1 +1,1 @@\n x\n-y\n+z\n w\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    =x
                    -y
                    +z
                    =w
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,9 +1,9 @@\n x\n-y\n+z\n@@ -20 +20 @@\n-x\n+y\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    =x
                    -y
                    +z
                  hunk in row 7 at 20
                    -x
                    +y
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,9 +1,9 @@\n-y\n+z\n--- b\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    -y
                    +z
                update "b"
                  hunk in row 8 at 1
                    -x
                    +y
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,9 +1,8 @@\n-y\n+z\n",
            expect![[r#"row 3: CutShort { old: 8, new: 7 }, found "@@ -1,9 +1,8 @@""#]],
        );
        check(
            "--- a\n+++ a\n@@ ... @@\n-y\n+z\n\n\n--- b\n+++ b\n@@ @@\n x\n\n-y\n\n",
            expect![[r#"
                update "a"
                  hunk in row 3
                    -y
                    +z
                update "b"
                  hunk in row 10
                    =x
                    =
                    -y
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,3 +1,3 @@\n-y\n+z\n\n w",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    -y
                    +z
                    =
                    =w
            "#]],
        );
    }

    #[test]
    fn carriage_returns_at_row_ends_are_dropped() {
        check(
            "--- a\r\n+++ a\r\n@@ -1 +1 @@\r\n-x\r\n+y\r\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    -x
                    +y
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\r\n-y\r\n+z\r\n",
            expect![[r#"
                update "a"
                  hunk in row 3 at 1
                    =x
                    -y
                    +z
            "#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\r\n+y\n",
            expect![[r#"row 5: OnlyLineEndingsDiffer, found "-y""#]],
        );
    }

    #[test]
    fn errors_name_the_row() {
        check("--- a\n+++ a\n", expect![[r#"row 1: EmptyUpdate { path: "a" }, found "--- a""#]]);
        check(
            "--- a\n+++ a\n@@ -1,x +1 @@\n-x\n",
            expect![[r#"row 3: BadHunkHeader, found "@@ -1,x +1 @@""#]],
        );
        check(
            "--- a\n+++ a\nnot a hunk\n@@ -1 +1 @@\n-x\n",
            expect![[r#"row 3: BadHunkHeader, found "not a hunk""#]],
        );
        check(
            "--- a\n+++ a\n@@ -1,3 +1,3 @@\n x\n-y\n+z\nforgotten\n",
            expect![[r#"row 7: ExpectedHunkStart, found "forgotten""#]],
        );
        check(
            "--- a\n+++ a\n@@ -1 +1 @@\nforgotten\n",
            expect![[r#"row 4: ExpectedHunkLine, found "forgotten""#]],
        );
        check("--- a\n+++ a\n@@ -1 +1 @@\n", expect![[r#"row 3: EmptyHunk, found "@@ -1 +1 @@""#]]);
        check(
            "--- old.c\n+++ new.c\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"row 1: TwoNames { old: "old.c", new: "new.c" }, found "--- old.c""#]],
        );
        check(
            "--- \"a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"row 1: BadQuoting, found "--- \"a""#]],
        );
        check(
            "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"row 2: ExpectedPath, found "+++ /dev/null""#]],
        );
        check(
            "--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"row 1: UnexpectedLineKind, found "--- /dev/null""#]],
        );
        check(
            "diff --git a/x b/x\n@@ -1 +1 @@\n-x\n+y\n",
            expect![[r#"row 2: ExpectedFileNames, found "@@ -1 +1 @@""#]],
        );
        check(
            "diff --git a/x b/x\nindex 1..2\n",
            expect![[r#"row 1: EmptyUpdate { path: "x" }, found "diff --git a/x b/x""#]],
        );
        check(
            "diff --git a/x b/y\nindex 1..2\n",
            expect![[r#"row 1: ExpectedPath, found "diff --git a/x b/y""#]],
        );
        check(
            "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
            expect![[r#"row 2: Binary, found "Binary files a/x and b/x differ""#]],
        );
        check(
            "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\n",
            expect![[r#"row 3: Binary, found "GIT binary patch""#]],
        );
        check(
            "diff --git a/x b/x\nnew file mode 120000\n",
            expect![[r#"row 2: Unsupported(Link), found "new file mode 120000""#]],
        );
        check(
            "diff --git a/x b/x\nnew file mode 160000\n",
            expect![[r#"row 2: Unsupported(Submodule), found "new file mode 160000""#]],
        );
        check(
            "diff --git a/x b/y\ncopy from x\ncopy to y\n",
            expect![[r#"row 2: Unsupported(Copy), found "copy from x""#]],
        );
        check(
            "diff --git a/x b/x\nnonsense\n",
            expect![[r#"row 2: ExpectedFileNames, found "nonsense""#]],
        );
        check(
            "--- a/x\n+++ b/x\n@@@ -1 -1 +1 @@@\n--x\n++y\n",
            expect![[r#"row 3: Unsupported(Merge), found "@@@ -1 -1 +1 @@@""#]],
        );
    }
}

#[test]
fn error_messages_quote_the_line() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    let body = |body: &str| error(&format!("*** Begin Patch\n{body}\n*** End Patch"));
    expect!["line 1: expected `*** Begin Patch`, or a unified diff"].assert_eq(&error(""));
    expect![[r#"line 2 ("*** Update File: a"): expected a change to "a""#]]
        .assert_eq(&body("*** Update File: a"));
    expect![[r#"line 4 ("y"): expected a line starting with a space, `+` or `-`, or `@@` for the next hunk, or the next file"#]].assert_eq(&body("*** Update File: a\n x\ny"));
    expect![[
        r#"line 3 ("@@ -1,9 +1,8 @@"): expected 8 more old and 7 more new lines in this hunk"#
    ]]
    .assert_eq(&error("--- a\n+++ a\n@@ -1,9 +1,8 @@\n-y\n+z\n"));
    expect![[r#"line 1 ("--- a"): expected one file name, not "a" and "b""#]]
        .assert_eq(&error("--- a\n+++ b\n@@ -1 +1 @@\n-y\n+z\n"));
}

#[test]
fn a_patch_that_is_too_large_is_refused() {
    let long = "x".repeat(MAX_BYTES + 1);
    assert_eq!(parse(&long).unwrap_err().problem, PatchProblem::TooLarge);
    assert_eq!(parse(&"\n".repeat(1_000_001)).unwrap_err().problem, PatchProblem::TooLarge);
}

#[test]
fn parsing_repetitive_text_terminates() {
    for row in [
        "\n",
        "```\n",
        "<<EOF\nEOF\n",
        "@@\n",
        "--- a\n+++ a\n",
        "diff --git a b\n",
        "*** Add File: a\n",
        " \n",
        "\\\n",
    ] {
        for start in [
            "",
            "*** Begin Patch\n*** Update File: a\n",
            "--- a\n+++ a\n@@\n-x\n\\\n",
            "--- a\n+++ a\n@@ -1 +1 @@\n",
        ] {
            let text = start.to_owned() + &row.repeat(60_000 / row.len());
            assert!(parse(&text).map_or_else(|bad| bad.row > 0, |patch| !patch.files.is_empty()));
        }
    }
}

fn rows() -> impl Strategy<Value = String> {
    let row = prop::sample::select(vec![
        "*** Begin Patch",
        "*** End Patch",
        "*** Add File: a",
        "*** Delete File: b",
        "*** Update File: c",
        "*** Move to: d",
        "*** End of File",
        "@@",
        "@@ x",
        "@@ -1,2 +1,2 @@",
        "@@ -0,0 +1 @@",
        " x",
        "-x",
        "+x",
        "",
        "x",
        "--- a/c",
        "+++ b/c",
        "--- /dev/null",
        "+++ /dev/null",
        "diff --git a/c b/c",
        "rename from c",
        "rename to e",
        "new file mode 100644",
        "deleted file mode 100644",
        "\\ No newline at end of file",
        "-- ",
        "<<EOF",
        "EOF",
        "```",
        "-x\r",
        "+é",
        "\"a\\303\"",
    ]);
    prop::collection::vec(row, 0..14).prop_map(|rows| rows.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn an_error_names_a_row_of_the_patch(text in rows()) {
        match parse(&text) {
            Ok(patch) => prop_assert!(!patch.files.is_empty()),
            Err(error) => prop_assert!((1..=text.lines().count().max(1)).contains(&error.row), "{error}"),
        }
    }

    #[test]
    fn text_without_a_patch_is_refused(text in "\\PC{0,60}") {
        prop_assert!(parse(&text).is_err());
    }

    #[test]
    fn apply_patch_lines_round_trip(
        added in prop::collection::vec("[a-z+*@ -]{0,8}", 0..6),
        lines in prop::collection::vec((prop::sample::select(vec![' ', '-', '+']), "[a-z+*@ -]{1,8}"), 1..8),
    ) {
        let mut text = "*** Begin Patch\n*** Add File: new\n".to_owned();
        added.iter().for_each(|line| writeln!(text, "+{line}").unwrap());
        text.push_str("*** Update File: old\n@@\n");
        lines.iter().for_each(|(sign, line)| writeln!(text, "{sign}{line}").unwrap());
        text.push_str("*** End Patch\n");
        let patch = parse(&text).unwrap();
        let [FilePatch::Add { text: new, .. }, FilePatch::Update { hunks, .. }] = patch.files.as_slice() else {
            return Err(TestCaseError::fail("two files"));
        };
        prop_assert_eq!(new, &added.iter().map(|line| format!("{line}\n")).collect::<String>());
        let parsed: Vec<_> = hunks[0].lines.iter().map(|line| line.text.as_str()).collect();
        prop_assert_eq!(parsed, lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>());
    }
}
