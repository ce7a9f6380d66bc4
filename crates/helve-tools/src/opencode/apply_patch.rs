//! `apply_patch`: changes several files with one patch. Changes all files or none.

use helve_core::ForeignParameters;
use helve_core::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::with_preview;
use super::foreign;
use crate::EditSettings;
use crate::ops::patch::{PatchApplied, PatchRequest, PatchedFile, apply};
use crate::words::change::{change_summary, introduced_errors_text, line_counts, tolerances_text};
use crate::words::patch::patch_error;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The whole patch
    #[schemars(length(min = 1))]
    patch_text: String,
}

pub(super) struct ApplyPatch {
    pub(super) settings: EditSettings,
}

impl Tool for ApplyPatch {
    type Args = Args;
    const NAME: &'static str = "apply_patch";
    const ABOUT: &'static str = include_str!("apply_patch.txt");
    const FOREIGN: ForeignParameters = foreign::APPLY_PATCH;
    const GROUP: &'static str = "edit";
    const PROPERTIES: ToolProperties = ToolProperties::CHANGES_FILES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let request = PatchRequest { key: Self::NAME, text: &args.patch_text };
        apply(ctx, self.settings, request).await.map(answer).map_err(patch_error)
    }
}

fn answer(applied: PatchApplied) -> ToolOutput {
    let PatchApplied { files, inexact, diffs, applied, errors } = applied;
    let verb = if applied.is_some() { "Applied the patch" } else { "The patch can be applied" };
    let mut first = format!("{verb}: {}.", line_counts(&diffs));
    for file in &files {
        first.push_str(&format!("\n{}", file_line(file)));
    }
    for (display_path, tolerances) in inexact {
        let how = tolerances_text(tolerances.into_iter());
        first.extend(how.map(|how| format!("\n{display_path}: {how}")));
    }
    let title = format!("{} {}", files.len(), if files.len() == 1 { "file" } else { "files" });
    let all: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
    let text = change_summary(&first, applied.as_ref(), &diffs)
        + &introduced_errors_text(&errors, applied.as_ref());
    let output = ToolOutput::text(title, text)
        .with_metadata("additions", diffs.iter().map(|diff| diff.additions).sum::<usize>())
        .with_metadata("deletions", diffs.iter().map(|diff| diff.deletions).sum::<usize>())
        .with_metadata("diff", all);
    with_preview(output, applied.is_none())
}

fn file_line(file: &PatchedFile) -> String {
    match file {
        PatchedFile::Added { display_path } => format!("A {display_path}"),
        PatchedFile::Deleted { display_path } => format!("D {display_path}"),
        PatchedFile::Modified { display_path } => format!("M {display_path}"),
        PatchedFile::Moved { display_path, to } => format!("R {display_path} -> {to}"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    /// Returns a call with the patch as its argument.
    fn patch(text: &str) -> String {
        format!("--- call apply_patch {}\n", serde_json::json!({"patchText": text}))
    }

    #[test]
    fn files_are_added_updated_deleted_and_moved_in_one_question() {
        let text = "*** Begin Patch\n*** Add File: new.txt\n+hi\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Delete File: old.txt\n*** Update File: from.txt\n*** Move to: to.txt\n*** End Patch\n";
        let files = "--- reply once\n--- file a.txt\none\ntwo\nthree\n--- file old.txt\nx\n--- file from.txt\ny\n";
        check(
            &format!("{files}{}", patch(text)),
            expect![[r#"
                edit new.txt by apply_patch [lasting approval: exactly this]
                edit a.txt by apply_patch [lasting approval: exactly this]
                edit old.txt by apply_patch [lasting approval: exactly this]
                edit from.txt by apply_patch [lasting approval: exactly this]
                edit to.txt by apply_patch [lasting approval: exactly this]
                --- /dev/null
                +++ new.txt
                @@ -0,0 +1 @@
                +hi

                --- a.txt
                +++ a.txt
                @@ -1,3 +1,3 @@
                 one
                -two
                +2
                 three

                --- old.txt
                +++ /dev/null
                @@ -1 +0,0 @@
                -x

                from.txt is moved to to.txt
                -> Yes(Once)
                == 4 files
                Applied the patch: 2 lines added, 2 removed.
                A new.txt
                M a.txt
                D old.txt
                R from.txt -> to.txt

                --- /dev/null
                +++ new.txt
                @@ -0,0 +1 @@
                +hi

                --- a.txt
                +++ a.txt
                @@ -1,3 +1,3 @@
                 one
                -two
                +2
                 three

                --- old.txt
                +++ /dev/null
                @@ -1 +0,0 @@
                -x
                >> a.txt
                one
                2
                three
                >> from.txt is gone
                >> new.txt
                hi
                >> old.txt is gone
                >> to.txt
                y
            "#]],
        );
    }

    #[test]
    fn one_mismatch_leaves_all_files_unchanged() {
        let text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Update File: b.txt\n-nine\n+9\n*** End Patch\n";
        let files = "--- rule edit * allow\n--- file a.txt\none\n--- file b.txt\ntwo\n";
        check(
            &format!("{files}{}", patch(text)),
            expect![[r#"
                !! Stale
                The hunk for b.txt (line 6 of the patch): its old text was not found in b.txt, and nothing in the file is similar. Nothing was written.
                Read the file: it may be the wrong one, or it may have changed.
            "#]],
        );
    }

    #[test]
    fn sections_for_one_file_apply_in_order() {
        let text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Update File: a.txt\n 1\n-two\n+2\n*** End Patch\n";
        check(
            &format!("--- rule edit * allow\n--- file a.txt\none\ntwo\n{}", patch(text)),
            expect![[r#"
                == 1 file
                Applied the patch: 2 lines added, 2 removed.
                M a.txt

                --- a.txt
                +++ a.txt
                @@ -1,2 +1,2 @@
                -one
                -two
                +1
                +2
                >> a.txt
                1
                2
            "#]],
        );
    }

    #[test]
    fn moving_a_file_onto_itself_does_not_delete_it() {
        let text = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: ./a.txt\n-one\n+1\n*** End Patch\n";
        check(
            &format!("--- rule edit * allow\n--- file a.txt\none\n{}", patch(text)),
            expect![[r#"
                == 1 file
                Applied the patch: 1 line added, 1 removed.
                M a.txt

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +1
                >> a.txt
                1
            "#]],
        );
    }

    #[test]
    fn adding_over_an_existing_file_requires_reading_it() {
        let text = "*** Begin Patch\n*** Add File: a.txt\n+new\n*** End Patch\n";
        let call = patch(text);
        check(
            &format!(
                "--- rule edit * allow\n--- file a.txt\none\n{call}--- call read {{\"filePath\": \"a.txt\"}}\n{call}"
            ),
            expect![[r#"
                !! Stale
                a.txt exists but was not read in this conversation. Nothing was written.
                Update the file instead, or read the file first if you want to replace it.
                == a.txt
                <file>
                00001| one

                (End of file, 1 line)
                </file>
                == 1 file
                Applied the patch: 1 line added, 1 removed.
                M a.txt

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +new
                >> a.txt
                new
            "#]],
        );
    }

    #[test]
    fn unified_diffs_are_applied() {
        let text = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
        check(
            &format!("--- rule edit * allow\n--- file a.txt\none\ntwo\n{}", patch(text)),
            expect![[r#"
                == 1 file
                Applied the patch: 1 line added, 1 removed.
                M a.txt

                --- a.txt
                +++ a.txt
                @@ -1,2 +1,2 @@
                 one
                -two
                +2
                >> a.txt
                one
                2
            "#]],
        );
    }

    #[test]
    fn malformed_ambiguous_and_missing_targets_are_explained() {
        let file = "--- rule edit * allow\n--- file a.txt\nsame\nsame\n";
        let ambiguous = "*** Begin Patch\n*** Update File: a.txt\n-same\n+x\n*** End Patch\n";
        let missing = "*** Begin Patch\n*** Update File: b.txt\n-same\n+x\n*** End Patch\n";
        let calls = [patch("hello"), patch(ambiguous), patch(missing)].concat();
        check(
            &format!("{file}{calls}"),
            expect![[r#"
                !! InvalidArgs
                The patch cannot be parsed: line 1 ("hello"): expected `*** Begin Patch`, or a unified diff. Nothing was written.
                Send the complete patch again, from *** Begin Patch to *** End Patch.
                !! Stale
                The hunk for a.txt (line 3 of the patch): its old text occurs 2 times in the file, at lines 1, 2. Nothing was written.
                Quote more lines around the old text, or name the function with @@.
                !! NotFound
                b.txt does not exist. Nothing was written.
                Did you mean a.txt?
            "#]],
        );
    }
}
