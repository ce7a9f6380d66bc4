//! `undo`: undoes the changes of a call. The tool belongs to no dialect, because only people use it, through `helve undo`
//! and the library.

use std::path::Path;
use std::sync::Arc;

use helve_core::journal::RecordedChange;
use helve_core::{
    AnyTool, Audience, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolProperties, paths,
};
use helve_text::diff::UnifiedDiff;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::EditSettings;
use crate::ops::undo::{
    CallsToUndo, SessionCall, UndoError, UndoMode, UndoRequest, UndoResult, Undone, undo,
};
use crate::words::change::{change_summary, line_counts};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// The call to undo, or the beginning or end of its id; by default the last one whose changes are in effect
    call: Option<String>,
    /// How many of the last changes to undo
    last: Option<usize>,
    /// Make the changes again that the last undo took back
    #[serde(default)]
    redo: bool,
    /// Several calls of sessions, oldest first, undone together; those that changed nothing are skipped
    #[serde(default)]
    calls: Vec<CallArgs>,
    /// Show what would change, and change nothing
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
struct CallArgs {
    session: String,
    call: String,
}

/// The number of files named in the summary.
const MAX_NAMED: usize = 3;

struct Undo {
    settings: EditSettings,
}

/// Returns the tool `undo`, which can be called but is never offered to a model.
pub fn tool(settings: EditSettings) -> Arc<dyn AnyTool> {
    Arc::new(Undo { settings })
}

impl Tool for Undo {
    type Args = Args;
    const NAME: &'static str = "undo";
    const ABOUT: &'static str = include_str!("undo.txt");
    const GROUP: &'static str = "edit";
    const PROPERTIES: ToolProperties = ToolProperties::MUTATES;
    const AUDIENCE: Audience = Audience::HIDDEN;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mode = if args.dry_run { UndoMode::DryRun } else { UndoMode::Write };
        let calls = match &args.call {
            _ if !args.calls.is_empty() => {
                let calls = args.calls.iter();
                CallsToUndo::Several(
                    calls.map(|CallArgs { session, call }| SessionCall { session, call }).collect(),
                )
            }
            Some(call) => CallsToUndo::One(call),
            None if args.redo => CallsToUndo::LastUndo,
            None => CallsToUndo::Last(args.last.unwrap_or(1)),
        };
        let request = UndoRequest { calls, mode };
        undo(ctx, self.settings, Self::NAME, request).await.map(answer).map_err(error)
    }
}

fn answer(undone: Undone) -> ToolOutput {
    let Undone { changes, notes, result } = undone;
    let undone_call = summary(&changes);
    let notes: String = notes.iter().map(|note| format!("\n{note}")).collect();
    match result {
        UndoResult::NothingToDo => {
            let text = format!(
                "Everything is as it was before {undone_call}; nothing was written.{notes}"
            );
            ToolOutput::text("undo", text)
        }
        UndoResult::DryRun { diffs } => {
            let all: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
            let text = format!("Undoing {undone_call} would make these changes:{notes}\n\n{all}");
            ToolOutput::text("undo (dry run)", text)
        }
        UndoResult::Written { diffs, applied } => {
            let first = format!("Undid {undone_call}: {}.{notes}", line_counts(&diffs));
            ToolOutput::text("undo", change_summary(&first, Some(&applied), &diffs))
                .with_metadata("undone", call_list(&changes))
        }
    }
}

fn summary(changes: &[RecordedChange]) -> String {
    let mut names: Vec<String> = Vec::new();
    for file in changes.iter().flat_map(|change| &change.files) {
        let name = file_name(&file.path);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > MAX_NAMED { " …" } else { "" };
    names.truncate(MAX_NAMED);
    let names = names.join(", ");
    match changes {
        [] => "calls that changed no file".into(),
        [change] => format!("the {} of {names}{more} ({})", change.tool, change.call),
        several => format!("{} calls that changed {names}{more}", several.len()),
    }
}

fn call_list(changes: &[RecordedChange]) -> String {
    changes.iter().map(|change| change.call.as_str()).collect::<Vec<_>>().join(", ")
}

fn file_name(path: &Path) -> String {
    paths::display(path.file_name().unwrap_or(path.as_os_str()).as_ref()).into_owned()
}

fn error(error: UndoError) -> ToolError {
    let stale = |message: String| ToolError::new(ErrorKind::Stale, message);
    let undo_later = "Undo the later change first.";
    match error {
        UndoError::Context(error) => error,
        UndoError::Unknown { call } => {
            let message = format!("No change by call {call} is recorded for this folder.");
            ToolError::new(ErrorKind::NotFound, message)
                .hint("`helve history` lists what can be undone.")
        }
        UndoError::Ambiguous { call, matches } => {
            let message = format!("{matches} calls have an id that begins or ends with {call}.");
            ToolError::new(ErrorKind::NotFound, message).hint("Give more of the id.")
        }
        UndoError::NothingToUndo => {
            ToolError::new(ErrorKind::NotFound, "There is no change here that is in effect.")
                .hint("`helve history` lists all changes; name one to undo it.")
        }
        UndoError::NothingToRedo => ToolError::new(
            ErrorKind::NotFound,
            "There is nothing to redo: no change was undone, or another one was made since.",
        )
        .hint("`helve history` lists all changes; `helve undo` with the id of an undo takes it back."),
        UndoError::Overlap { display_path, later } => stale(format!(
            "{display_path} has been changed since the call, in the same lines. Nothing was written. Later changes:\n{}",
            later.text.trim_end()
        ))
        .hint("Undo the later change first, or edit the file by hand."),
        UndoError::Removed { display_path } => {
            stale(format!("{display_path} has been removed since the call. Nothing was written.")).hint(undo_later)
        }
        UndoError::CreatedAgain { display_path } => {
            stale(format!("{display_path} has been created again since the call. Nothing was written.")).hint(undo_later)
        }
        UndoError::Changed { display_path } => {
            stale(format!("{display_path} has been changed since the call. Nothing was written.")).hint(undo_later)
        }
        UndoError::Interrupted { display_path, diff } => {
            let why = "The call was interrupted, and the file has been changed by others since then.";
            inseparable_changes_error(&display_path, why, &diff)
        }
        UndoError::Forgotten { display_path, diff } => {
            let why = "The content that the call wrote is no longer known, so later changes by others cannot be separated from it.";
            inseparable_changes_error(&display_path, why, &diff)
        }
    }
}

/// Returns the error for a file in which the changes of the call cannot be separated from changes by others.
fn inseparable_changes_error(display_path: &str, why: &str, diff: &UnifiedDiff) -> ToolError {
    let message = format!(
        "{display_path}: {why} Nothing was written. Changes from before the call until now:\n{}",
        diff.text.trim_end()
    );
    ToolError::new(ErrorKind::Stale, message).hint("Revert the unwanted parts with edit.")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use helve_core::NoMedia;

    use crate::EditSettings;
    use crate::opencode::{DIALECT, tools};

    #[track_caller]
    fn check(fixture: &str, expected: Expect) {
        let mut all = tools(Arc::new(NoMedia));
        all.push(super::tool(EditSettings::DEFAULT));
        helve_testkit::check(&DIALECT, all, fixture, expected);
    }

    #[test]
    fn undo_goes_back_and_redo_forward() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "two"}
--- call undo {"dryRun": true}
--- call undo
--- call undo
--- call undo {"redo": true}
--- call undo {"redo": true}
--- call undo {"call": "l_5"}
--- call undo {"call": "call"}
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +two
                >> a.txt
                two
                == undo (dry run)
                Undoing the edit of a.txt (call_1) would make these changes:

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                == undo
                Undid the edit of a.txt (call_1): 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                >> a.txt
                one
                !! NotFound
                There is no change here that is in effect.
                `helve history` lists all changes; name one to undo it.
                == undo
                Undid the undo of a.txt (call_3): 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +two
                >> a.txt
                two
                !! NotFound
                There is nothing to redo: no change was undone, or another one was made since.
                `helve history` lists all changes; `helve undo` with the id of an undo takes it back.
                !! NotFound
                No change by call l_5 is recorded for this folder.
                `helve history` lists what can be undone.
                !! NotFound
                3 calls have an id that begins or ends with call.
                Give more of the id.
            "#]],
        );
    }

    #[test]
    fn undo_keeps_later_changes_to_other_lines() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
1
2
3
4
5
--- call edit {"filePath": "a.txt", "oldString": "1", "newString": "one"}
--- write a.txt
one
2
3
4
five
--- call undo
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1,4 +1,4 @@
                -1
                +one
                 2
                 3
                 4
                >> a.txt
                one
                2
                3
                4
                5
                == undo
                Undid the edit of a.txt (call_1): 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1,4 +1,4 @@
                -one
                +1
                 2
                 3
                 4
                >> a.txt
                1
                2
                3
                4
                five
            "#]],
        );
    }

    #[test]
    fn overlapping_later_changes_are_refused_with_a_diff() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
1
--- call edit {"filePath": "a.txt", "oldString": "1", "newString": "one"}
--- write a.txt
uno
--- call undo
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -1
                +one
                >> a.txt
                one
                !! Stale
                a.txt has been changed since the call, in the same lines. Nothing was written. Later changes:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +uno
                Undo the later change first, or edit the file by hand.
            "#]],
        );
    }

    #[test]
    fn undo_removes_created_files_and_reports_unknown_calls() {
        check(
            r#"
--- rule edit * allow
--- call undo
--- call write {"filePath": "a.txt", "content": "x\n"}
--- call undo
--- call undo {"call": "call_none"}
"#,
            expect![[r#"
                !! NotFound
                There is no change here that is in effect.
                `helve history` lists all changes; name one to undo it.
                == a.txt
                Created a.txt: 1 line added, 0 removed.
                >> a.txt
                x
                == undo
                Undid the write of a.txt (call_2): 0 lines added, 1 removed.

                --- a.txt
                +++ /dev/null
                @@ -1 +0,0 @@
                -x
                >> a.txt is gone
                !! NotFound
                No change by call call_none is recorded for this folder.
                `helve history` lists what can be undone.
            "#]],
        );
    }

    #[test]
    fn an_interrupted_call_is_undone_as_far_as_it_got() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- interrupted killed a.txt
two
--- call undo {"call": "killed"}
--- write a.txt
two
--- call undo {"call": "killed", "dryRun": true}
--- call undo {"call": "killed"}
--- write a.txt
three
--- call undo {"call": "killed"}
--- interrupted born b.txt
new
--- call undo
--- write b.txt
new
--- call undo {"call": "born"}
"#,
            expect![[r#"
                == undo
                Everything is as it was before the edit of a.txt (killed); nothing was written.
                a.txt: the call was interrupted before it changed this file.
                == undo (dry run)
                Undoing the edit of a.txt (killed) would make these changes:
                a.txt: the call was interrupted after it changed this file; its change is undone.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                == undo
                Undid the edit of a.txt (killed): 1 line added, 1 removed.
                a.txt: the call was interrupted after it changed this file; its change is undone.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                >> a.txt
                one
                !! Stale
                a.txt: The call was interrupted, and the file has been changed by others since then. Nothing was written. Changes from before the call until now:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +three
                Revert the unwanted parts with edit.
                == undo
                Everything is as it was before the edit of b.txt (born); nothing was written.
                b.txt: the call was interrupted before it changed this file.
                == undo
                Undid the edit of b.txt (born): 0 lines added, 1 removed.
                b.txt: the call was interrupted after it changed this file; its change is undone.

                --- b.txt
                +++ /dev/null
                @@ -1 +0,0 @@
                -new
                >> b.txt is gone
            "#]],
        );
    }
}
