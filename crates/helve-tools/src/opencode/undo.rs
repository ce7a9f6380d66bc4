//! `undo`: takes back what a call changed. Itself a call, so it can be taken back too. Never offered.

use std::path::Path;

use bytes::Bytes;
use helve_core::change::{Loaded, Rebase, Then, Wanted};
use helve_core::commit::FileMode;
use helve_core::journal::{Change, Changed, Image};
use helve_core::{
    Ask, Audience, ErrorKind, Resolved, Tool, ToolContext, ToolError, ToolOutput, Traits,
};
use helve_text::diff::Unified;
use helve_text::merge::merge3;
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::change::{counts, difference, made};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The call to take back; the last that changed a file, unless given
    call: Option<String>,
    /// Say what would be done, and do nothing
    #[serde(default)]
    dry_run: bool,
}

pub(super) struct Undo;

impl Tool for Undo {
    type Args = Args;
    const NAME: &'static str = "undo";
    const ABOUT: &'static str = include_str!("undo.txt");
    const GROUP: &'static str = "edit";
    const TRAITS: Traits = Traits::MUTATES;
    const AUDIENCE: Audience = Audience::NOBODY;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let change = ctx.files.changed(args.call.as_deref()).await?;
        let Some(change) = change else { return Err(nothing(args.call.as_deref())) };
        let mut wanted = Vec::new();
        for file in &change.files {
            wanted.extend(back(ctx, file).await?);
        }
        if wanted.is_empty() {
            let text =
                format!("Everything is as it was before {}; nothing was written.", told(&change));
            return Ok(ToolOutput::text("undo", text));
        }
        let diffs: Vec<Unified> = wanted.iter().map(diffed).collect();
        let all: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
        let ask = wanted.iter().fold(Ask::default(), |ask, want| ask.edit(&want.path, Self::NAME));
        if args.dry_run {
            ctx.ask(wanted.iter().fold(Ask::default(), |ask, want| ask.read(&want.path))).await?;
            let text = format!("Taking back {} would change this:\n\n{all}", told(&change));
            return Ok(ToolOutput::text("undo (not done)", text));
        }
        let grant = ctx.ask(ask.preview(&all)).await?;
        let done = ctx.files.commit(&grant, wanted).await?;
        let first = format!("Took back {}: {}.", told(&change), counts(&diffs));
        Ok(ToolOutput::text("undo", made(&first, &done, &diffs)).with("undone", change.call))
    }
}

/// What brings one file back; `None` when it is back already.
async fn back(ctx: &ToolContext, file: &Changed) -> Result<Option<Wanted>, ToolError> {
    let path = ctx.files.resolve(&file.path.to_string_lossy()).await?;
    let base = ctx.files.load(&path).await?;
    let now = base.as_ref().map(|base| &base.bytes);
    let before = file.before.as_ref().map(|image| &image.bytes);
    if now == before {
        return Ok(None);
    }
    let then = match (&file.before, &file.after, now) {
        // As the call left it: back to the byte.
        (Some(image), after, now) if after.as_ref() == now => restored(image, now.is_none()),
        (None, after, now) if after.as_ref() == now => Then::Remove,
        // Changed since: the lines of the call go back, the others stay.
        (Some(image), Some(after), Some(now)) => {
            let merged = merge3(after, &image.bytes, now);
            let bytes: Bytes = merged.map_err(|_| overlapping(&path, after, now))?.into();
            Then::Write { bytes, mode: FileMode::Keep }
        }
        (_, after, now) => return Err(gone_on(&path, after.is_some(), now.is_some())),
    };
    Ok(Some(Wanted { path, base, then, rebase: Rebase::Merge }))
}

fn restored(image: &Image, is_gone: bool) -> Then {
    let mode = if is_gone { FileMode::Set(image.mode) } else { FileMode::Keep };
    Then::Write { bytes: image.bytes.clone(), mode }
}

fn diffed(want: &Wanted) -> Unified {
    let old = want.base.as_ref().map(|base: &Loaded| &base.bytes[..]);
    let new = match &want.then {
        Then::Write { bytes, .. } | Then::Move { bytes, .. } => Some(&bytes[..]),
        Then::Remove => None,
    };
    difference(want.path.shown(), old, new)
}

fn told(change: &Change) -> String {
    let names: Vec<String> = change.files.iter().take(3).map(|file| named(&file.path)).collect();
    let more = if change.files.len() > 3 { " …" } else { "" };
    format!("{} of {}{more} ({})", change.tool, names.join(", "), change.call)
}

fn named(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn nothing(call: Option<&str>) -> ToolError {
    let message = match call {
        Some(call) => format!("No change of a call {call} is known here."),
        None => "Nothing was changed here yet.".into(),
    };
    ToolError::new(ErrorKind::NotFound, message)
        .hint("`helve history` lists what can be taken back.")
}

/// Both sides changed the same lines: which to keep is a person's choice.
fn overlapping(path: &Resolved, after: &[u8], now: &[u8]) -> ToolError {
    let shown = path.shown();
    let theirs = difference(shown, Some(after), Some(now));
    let message = format!(
        "{shown} was changed since, in the same lines. Nothing was written. This was changed since:\n{}",
        theirs.text.trim_end()
    );
    ToolError::new(ErrorKind::Stale, message)
        .hint("Take back the later change first, or edit the file by hand.")
}

fn gone_on(path: &Resolved, was_there: bool, is_there: bool) -> ToolError {
    let shown = path.shown();
    let message = match (was_there, is_there) {
        (true, false) => format!("{shown} was removed since."),
        (false, true) => format!("{shown} was created again since."),
        (true, true) | (false, false) => format!("{shown} was changed since."),
    };
    ToolError::new(ErrorKind::Stale, format!("{message} Nothing was written."))
        .hint("Take back the later change first.")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

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
}
