//! `undo`: undoes the changes of a call. The tool belongs to no dialect, because only people use it, through `helve
//! undo` and the library.

use std::path::Path;
use std::sync::Arc;

use helve_core::journal::{RecordedChange, short_id};
use helve_core::{
    AnyTool, Audience, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolProperties, paths,
};
use helve_text::diff::UnifiedDiff;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::EditSettings;
use crate::ops::undo::{
    CallsToUndo, LaterCall, LaterChanges, SessionCall, UndoConflict, UndoError, UndoMode,
    UndoRequest, UndoResult, Undone, undo,
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
    /// Discard later changes to the same lines
    #[serde(default)]
    force: bool,
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
        let later_changes = if args.force { LaterChanges::Discard } else { LaterChanges::Refuse };
        let request = UndoRequest { calls, later_changes, mode };
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
            ToolOutput::text("undo (dry run)", text).with_metadata("diff", all)
        }
        UndoResult::Written { diffs, applied } => {
            let first = format!("Undid {undone_call}: {}.{notes}", line_counts(&diffs));
            let all: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
            ToolOutput::text("undo", change_summary(&first, Some(&applied), &diffs))
                .with_metadata("undone", call_list(&changes))
                .with_metadata("diff", all)
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
        [change] => format!("the {} of {names}{more} ({})", change.tool, short_id(&change.call)),
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
        .hint(
            "`helve history` lists all changes; `helve undo` with the id of an undo takes it back.",
        ),
        UndoError::Conflict { display_path, call, conflict, later_call } => {
            conflict_error(&display_path, &conflict)
                .hint(ways_out(short_id(&call), later_call.as_ref()))
        }
    }
}

/// Returns the error for a file that was changed after the call.
fn conflict_error(display_path: &str, conflict: &UndoConflict) -> ToolError {
    let shown = |what: &str, diff: &UnifiedDiff| format!(" {what}:\n{}", diff.text.trim_end());
    let (why, changes) = match conflict {
        UndoConflict::Overlap(later) => {
            ("has been changed since the call, in the same lines.", shown("Later changes", later))
        }
        UndoConflict::Removed => ("has been removed since the call.", String::new()),
        UndoConflict::CreatedAgain => ("has been created again since the call.", String::new()),
        UndoConflict::Changed => ("has been changed since the call.", String::new()),
        UndoConflict::Interrupted(diff) => (
            "has been changed by others since the call, which was interrupted.",
            shown("Changes from before the call until now", diff),
        ),
        UndoConflict::Forgotten(diff) => (
            "may have been changed since the call; the content that the call wrote is no longer known.",
            shown("Changes from before the call until now", diff),
        ),
    };
    let message = format!("{display_path} {why} Nothing was written.{changes}");
    ToolError::new(ErrorKind::Stale, message)
}

/// Says what a person can do about a later change.
fn ways_out(call: &str, later: Option<&LaterCall>) -> String {
    let first = match later {
        Some(LaterCall { tool, call }) => {
            format!("`helve undo {}` undoes the later {tool} first.", short_id(call))
        }
        None => {
            "A command or another program made the later change, so Helve cannot undo that; take it back yourself, then undo again.".into()
        }
    };
    format!(
        "{first} Or discard it: `helve undo {call} --force` makes the file what it was before the call, and `helve redo` then brings the later change back."
    )
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
--- call undo {"force": true}
--- call undo {"redo": true}
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
                A command or another program made the later change, so Helve cannot undo that; take it back yourself, then undo again. Or discard it: `helve undo call_1 --force` makes the file what it was before the call, and `helve redo` then brings the later change back.
                == undo
                Undid the edit of a.txt (call_1): 1 line added, 1 removed.
                a.txt: later changes to it are discarded.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -uno
                +1
                >> a.txt
                1
                == undo
                Undid the undo of a.txt (call_3): 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -1
                +uno
                >> a.txt
                uno
            "#]],
        );
    }

    #[test]
    fn a_later_call_that_is_in_the_way_is_named() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
1
--- call edit {"filePath": "a.txt", "oldString": "1", "newString": "one"}
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "uno"}
--- call undo {"call": "call_1"}
--- call undo {"call": "call_1", "force": true, "dryRun": true}
--- call undo {"last": 2}
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
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +uno
                >> a.txt
                uno
                !! Stale
                a.txt has been changed since the call, in the same lines. Nothing was written. Later changes:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +uno
                `helve undo call_2` undoes the later edit first. Or discard it: `helve undo call_1 --force` makes the file what it was before the call, and `helve redo` then brings the later change back.
                == undo (dry run)
                Undoing the edit of a.txt (call_1) would make these changes:
                a.txt: later changes to it are discarded.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -uno
                +1
                == undo
                Undid 2 calls that changed a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -uno
                +1
                >> a.txt
                1
            "#]],
        );
    }

    #[test]
    fn a_later_call_that_changed_other_lines_is_not_in_the_way() {
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
--- call edit {"filePath": "a.txt", "oldString": "5", "newString": "five"}
--- write a.txt
uno
2
3
4
five
--- call undo {"call": "call_1"}
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
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -2,4 +2,4 @@
                 2
                 3
                 4
                -5
                +five
                >> a.txt
                one
                2
                3
                4
                five
                !! Stale
                a.txt has been changed since the call, in the same lines. Nothing was written. Later changes:
                --- a.txt
                +++ a.txt
                @@ -1,5 +1,5 @@
                -one
                +uno
                 2
                 3
                 4
                -5
                +five
                A command or another program made the later change, so Helve cannot undo that; take it back yourself, then undo again. Or discard it: `helve undo call_1 --force` makes the file what it was before the call, and `helve redo` then brings the later change back.
            "#]],
        );
    }

    #[test]
    fn a_later_call_that_cannot_be_undone_either_is_not_suggested() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
1
--- call edit {"filePath": "a.txt", "oldString": "1", "newString": "one"}
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "uno"}
--- write a.txt
eins
--- call undo {"call": "call_1"}
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
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +uno
                >> a.txt
                uno
                !! Stale
                a.txt has been changed since the call, in the same lines. Nothing was written. Later changes:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +eins
                A command or another program made the later change, so Helve cannot undo that; take it back yourself, then undo again. Or discard it: `helve undo call_1 --force` makes the file what it was before the call, and `helve redo` then brings the later change back.
            "#]],
        );
    }

    #[test]
    fn a_removed_file_is_restored_only_by_force() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
1
--- call edit {"filePath": "a.txt", "oldString": "1", "newString": "one"}
--- call apply_patch {"patchText": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}
--- call undo {"call": "call_1"}
--- call undo {"call": "call_1", "force": true}
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
                == 1 file
                Applied the patch: 0 lines added, 1 removed.
                D a.txt

                --- a.txt
                +++ /dev/null
                @@ -1 +0,0 @@
                -one
                >> a.txt is gone
                !! Stale
                a.txt has been removed since the call. Nothing was written.
                `helve undo call_2` undoes the later apply_patch first. Or discard it: `helve undo call_1 --force` makes the file what it was before the call, and `helve redo` then brings the later change back.
                == undo
                Undid the edit of a.txt (call_1): 1 line added, 0 removed.
                a.txt: later changes to it are discarded.

                --- /dev/null
                +++ a.txt
                @@ -0,0 +1 @@
                +1
                >> a.txt
                1
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
                a.txt has been changed by others since the call, which was interrupted. Nothing was written. Changes from before the call until now:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +three
                A command or another program made the later change, so Helve cannot undo that; take it back yourself, then undo again. Or discard it: `helve undo killed --force` makes the file what it was before the call, and `helve redo` then brings the later change back.
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
