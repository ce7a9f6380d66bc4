//! `undo`: undoes the changes of a call. It belongs to no dialect: only people use it, through `helve undo` and the library.

use std::path::Path;
use std::sync::Arc;

use helve_core::journal::RecordedChange;
use helve_core::{
    AnyTool, Audience, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, Traits, paths,
};
use helve_text::diff::Unified;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::EditSettings;
use crate::ops::undo::{UndoError, UndoMode, UndoRequest, UndoResult, Undone, undo};
use crate::words::change::{counts, made};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Args {
    /// The call to take back; the last that changed a file, unless given
    call: Option<String>,
    /// Say what would be done, and do nothing
    #[serde(default)]
    dry_run: bool,
}

/// The number of files named in the summary.
const MAX_NAMED: usize = 3;

struct Undo {
    settings: EditSettings,
}

/// The tool. It can be called and is never offered.
pub fn tool(settings: EditSettings) -> Arc<dyn AnyTool> {
    Arc::new(Undo { settings })
}

impl Tool for Undo {
    type Args = Args;
    const NAME: &'static str = "undo";
    const ABOUT: &'static str = include_str!("undo.txt");
    const GROUP: &'static str = "edit";
    const TRAITS: Traits = Traits::MUTATES;
    const AUDIENCE: Audience = Audience::NOBODY;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mode = if args.dry_run { UndoMode::DryRun } else { UndoMode::Write };
        let request = UndoRequest { call: args.call.as_deref(), mode };
        undo(ctx, self.settings, Self::NAME, request).await.map(said).map_err(error)
    }
}

fn said(undone: Undone) -> ToolOutput {
    let Undone { change, notes, result } = undone;
    let what = summary(&change);
    let notes: String = notes.iter().map(|note| format!("\n{note}")).collect();
    match result {
        UndoResult::NothingToDo => {
            let text =
                format!("Everything is as it was before {what}; nothing was written.{notes}");
            ToolOutput::text("undo", text)
        }
        UndoResult::DryRun { diffs } => {
            let all: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
            let text = format!("Taking back {what} would change this:{notes}\n\n{all}");
            ToolOutput::text("undo (not done)", text)
        }
        UndoResult::Written { diffs, made: done } => {
            let first = format!("Took back {what}: {}.{notes}", counts(&diffs));
            ToolOutput::text("undo", made(&first, &done, &diffs)).with("undone", change.call)
        }
    }
}

fn summary(change: &RecordedChange) -> String {
    let names = change.files.iter().take(MAX_NAMED).map(|file| file_name(&file.path));
    let more = if change.files.len() > MAX_NAMED { " …" } else { "" };
    let names = names.collect::<Vec<_>>().join(", ");
    format!("{} of {names}{more} ({})", change.tool, change.call)
}

fn file_name(path: &Path) -> String {
    paths::shown(path.file_name().unwrap_or(path.as_os_str()).as_ref()).into_owned()
}

fn error(error: UndoError) -> ToolError {
    let stale = |message: String| ToolError::new(ErrorKind::Stale, message);
    let later = "Take back the later change first.";
    match error {
        UndoError::Context(error) => error,
        UndoError::Unknown { call } => {
            let message = match call {
                Some(call) => format!("No change of a call {call} is known here."),
                None => "Nothing was changed here yet.".into(),
            };
            ToolError::new(ErrorKind::NotFound, message)
                .hint("`helve history` lists what can be taken back.")
        }
        UndoError::Overlap { shown, later } => stale(format!(
            "{shown} was changed since, in the same lines. Nothing was written. This was changed since:\n{}",
            later.text.trim_end()
        ))
        .hint("Take back the later change first, or edit the file by hand."),
        UndoError::Removed { shown } => {
            stale(format!("{shown} was removed since. Nothing was written.")).hint(later)
        }
        UndoError::CreatedAgain { shown } => {
            stale(format!("{shown} was created again since. Nothing was written.")).hint(later)
        }
        UndoError::Changed { shown } => {
            stale(format!("{shown} was changed since. Nothing was written.")).hint(later)
        }
        UndoError::Interrupted { shown, diff } => {
            let why = "The call was interrupted, and the file was changed since by others.";
            unknown_author(&shown, why, &diff)
        }
        UndoError::Forgotten { shown, diff } => {
            let why = "What the call left there is no longer known, so what others changed since cannot be told from it.";
            unknown_author(&shown, why, &diff)
        }
    }
}

/// The changes of the call cannot be told from those of others.
fn unknown_author(shown: &str, why: &str, diff: &Unified) -> ToolError {
    let message = format!(
        "{shown}: {why} Nothing was written. From what was there before the call to what is there now:\n{}",
        diff.text.trim_end()
    );
    ToolError::new(ErrorKind::Stale, message)
        .hint("Take back what is not wanted of this with edit.")
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
    fn the_last_change_is_taken_back_and_back_again() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "two"}
--- call undo {"dryRun": true}
--- call undo
--- call undo
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
                == undo (not done)
                Taking back edit of a.txt (call_1) would change this:

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                == undo
                Took back edit of a.txt (call_1): 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                >> a.txt
                one
                == undo
                Took back undo of a.txt (call_3): 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +two
                >> a.txt
                two
            "#]],
        );
    }

    #[test]
    fn later_changes_to_other_lines_stay() {
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
                Took back edit of a.txt (call_1): 1 line added, 1 removed.

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
    fn overlapping_changes_refuse_with_both_sides() {
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
                a.txt was changed since, in the same lines. Nothing was written. This was changed since:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +uno
                Take back the later change first, or edit the file by hand.
            "#]],
        );
    }

    #[test]
    fn a_created_file_goes_and_nothing_to_undo_is_said() {
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
                Nothing was changed here yet.
                `helve history` lists what can be taken back.
                == a.txt
                Created a.txt: 1 line added, 0 removed.
                >> a.txt
                x
                == undo
                Took back write of a.txt (call_2): 0 lines added, 1 removed.

                --- a.txt
                +++ /dev/null
                @@ -1 +0,0 @@
                -x
                >> a.txt is gone
                !! NotFound
                No change of a call call_none is known here.
                `helve history` lists what can be taken back.
            "#]],
        );
    }

    #[test]
    fn an_interrupted_call_goes_back_as_far_as_it_came() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- begun killed a.txt
two
--- call undo {"call": "killed"}
--- write a.txt
two
--- call undo {"call": "killed", "dryRun": true}
--- call undo {"call": "killed"}
--- write a.txt
three
--- call undo {"call": "killed"}
--- begun born b.txt
new
--- call undo
--- write b.txt
new
--- call undo {"call": "born"}
"#,
            expect![[r#"
                == undo
                Everything is as it was before edit of a.txt (killed); nothing was written.
                a.txt: the call was interrupted before it changed this file, which is as it was.
                == undo (not done)
                Taking back edit of a.txt (killed) would change this:
                a.txt: the call was interrupted after it changed this file; what it wrote goes back.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                == undo
                Took back edit of a.txt (killed): 1 line added, 1 removed.
                a.txt: the call was interrupted after it changed this file; what it wrote goes back.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -two
                +one
                >> a.txt
                one
                !! Stale
                a.txt: The call was interrupted, and the file was changed since by others. Nothing was written. From what was there before the call to what is there now:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +three
                Take back what is not wanted of this with edit.
                == undo
                Everything is as it was before edit of b.txt (born); nothing was written.
                b.txt: the call was interrupted before it changed this file, which is as it was.
                == undo
                Took back edit of b.txt (born): 0 lines added, 1 removed.
                b.txt: the call was interrupted after it changed this file; what it wrote goes back.

                --- b.txt
                +++ /dev/null
                @@ -1 +0,0 @@
                -new
                >> b.txt is gone
            "#]],
        );
    }
}
