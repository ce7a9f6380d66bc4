//! `undo`: takes back what a call changed. Itself a call, so it can be taken back too. Never offered.

use std::path::Path;

use helve_core::change::{Rebase, Then, Wanted};
use helve_core::commit::{FileMode, HardLinks};
use helve_core::journal::{After, Change, Changed, Image};
use helve_core::{
    Ask, Audience, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, Traits, paths,
};
use helve_text::diff::Unified;
use helve_text::merge::merge3;
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::settings::Settings;
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

pub(super) struct Undo {
    pub(super) settings: Settings,
}

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
        let (mut wanted, mut notes, mut reading) = (Vec::new(), Vec::new(), Ask::default());
        for file in &change.files {
            let path = ctx.files.resolve_path(&file.path).await;
            let now = ctx.files.load(&path).await?;
            let links = self.settings.links;
            let back = Back { shown: path.shown(), file, now: now.as_ref(), links };
            let then = back.then()?;
            notes.extend(back.noted(then.as_ref()));
            reading = reading.also(path.reading());
            wanted.extend(then.map(|then| Wanted { path, base: now, then, rebase: Rebase::Merge }));
        }
        let notes: String = notes.concat();
        if wanted.is_empty() {
            ctx.ask(reading).await?;
            let text = format!(
                "Everything is as it was before {}; nothing was written.{notes}",
                told(&change)
            );
            return Ok(ToolOutput::text("undo", text));
        }
        let diffs: Vec<Unified> = wanted.iter().map(diffed).collect();
        let all: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
        if args.dry_run {
            ctx.ask(reading).await?;
            let text = format!("Taking back {} would change this:{notes}\n\n{all}", told(&change));
            return Ok(ToolOutput::text("undo (not done)", text));
        }
        let ask =
            wanted.iter().fold(Ask::default(), |ask, want| ask.also(want.path.editing(Self::NAME)));
        let preview = if notes.is_empty() { all } else { format!("{}\n{all}", notes.trim_start()) };
        let grant = ctx.ask(ask.preview(preview)).await?;
        let done = ctx.files.commit(&grant, wanted).await?;
        let first = format!("Took back {}: {}.{notes}", told(&change), counts(&diffs));
        Ok(ToolOutput::text("undo", made(&first, &done, &diffs)).with("undone", change.call))
    }
}

/// The way back of one file.
struct Back<'a> {
    shown: &'a str,
    file: &'a Changed,
    now: Option<&'a Image>,
    links: HardLinks,
}

impl Back<'_> {
    /// What brings the file back; `None` when it is back already.
    fn then(&self) -> Result<Option<Then>, ToolError> {
        let (before, now) = (self.file.before.as_ref(), self.now);
        let is_back = now.map(|now| now.hash) == before.map(|before| before.hash);
        match &self.file.after {
            After::Known(left) => self.from(left.as_ref()),
            // What it meant to leave and what it found may be the same bytes: then it was about the mode.
            After::Meant(meant) if *meant == now.map(|now| now.hash) => {
                Ok(before.map_or(now.map(|_| Then::Remove), |before| self.restored(before)))
            }
            After::Meant(_) | After::Lost if is_back => Ok(None),
            After::Meant(_) => Err(unlike(
                self.shown,
                (before, now),
                "The call was interrupted, and the file was changed since by others.",
            )),
            After::Lost => Err(unlike(
                self.shown,
                (before, now),
                "What the call left there is no longer known, so what others changed since cannot be told from it.",
            )),
        }
    }

    /// Backwards from what the call left, with what others changed since.
    fn from(&self, left: Option<&Image>) -> Result<Option<Then>, ToolError> {
        match (&self.file.before, left, self.now) {
            (None, _, None) => Ok(None),
            (None, Some(left), Some(now)) if left.bytes == now.bytes => Ok(Some(Then::Remove)),
            (Some(before), None, None) => Ok(self.restored(before)),
            (Some(before), None, Some(now)) if before.bytes == now.bytes => Ok(None),
            (Some(before), Some(left), Some(now)) => {
                let bytes = match &now.bytes {
                    bytes if *bytes == left.bytes || *bytes == before.bytes => before.bytes.clone(),
                    // The lines of the call go back, the others stay.
                    bytes => merge3(&left.bytes, &before.bytes, bytes)
                        .map_err(|_| overlapping(self.shown, &left.bytes, bytes))?
                        .into(),
                };
                let mode = if now.mode == left.mode { before.mode } else { now.mode };
                Ok(self.restored(&Image::new(bytes, mode)))
            }
            (_, left, now) => Err(gone_on(self.shown, left.is_some(), now.is_some())),
        }
    }

    /// Writes an image where it is not there already.
    fn restored(&self, image: &Image) -> Option<Then> {
        let has_mode = self.now.is_some_and(|now| now.mode == image.mode);
        if has_mode && self.now.is_some_and(|now| now.bytes == image.bytes) {
            return None;
        }
        let mode = if has_mode { FileMode::Keep } else { FileMode::Set(image.mode) };
        Some(Then::Write { bytes: image.bytes.clone(), mode, links: self.links })
    }

    /// What a difference of content does not show.
    fn noted(&self, then: Option<&Then>) -> Option<String> {
        let shown = self.shown;
        match (&self.file.after, then, self.now) {
            (After::Meant(_), None, _) => Some(format!(
                "\n{shown}: the call was interrupted before it changed this file, which is as it was."
            )),
            (After::Meant(_), Some(_), _) => Some(format!(
                "\n{shown}: the call was interrupted after it changed this file; what it wrote goes back."
            )),
            (_, Some(Then::Write { mode: FileMode::Set(mode), .. }), Some(now)) => {
                Some(format!("\n{shown}: its mode goes back from {:o} to {mode:o}.", now.mode))
            }
            (After::Known(_) | After::Lost, _, _) => None,
        }
    }
}

fn diffed(want: &Wanted) -> Unified {
    let old = want.base.as_ref().map(|base: &Image| &base.bytes[..]);
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
    paths::shown(path.file_name().unwrap_or(path.as_os_str()).as_ref()).into_owned()
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
fn overlapping(shown: &str, after: &[u8], now: &[u8]) -> ToolError {
    let theirs = difference(shown, Some(after), Some(now));
    stale(format!(
        "{shown} was changed since, in the same lines. Nothing was written. This was changed since:\n{}",
        theirs.text.trim_end()
    ))
    .hint("Take back the later change first, or edit the file by hand.")
}

fn gone_on(shown: &str, was_there: bool, is_there: bool) -> ToolError {
    let message = match (was_there, is_there) {
        (true, false) => format!("{shown} was removed since."),
        (false, true) => format!("{shown} was created again since."),
        (true, true) | (false, false) => format!("{shown} was changed since."),
    };
    stale(format!("{message} Nothing was written.")).hint("Take back the later change first.")
}

/// Neither what the call found nor what it left: whose it is cannot be told.
fn unlike(shown: &str, (before, now): (Option<&Image>, Option<&Image>), why: &str) -> ToolError {
    let before = before.map(|before| &before.bytes[..]);
    let diff = difference(shown, before, now.map(|now| &now.bytes[..]));
    stale(format!(
        "{shown}: {why} Nothing was written. From what was there before the call to what is there now:\n{}",
        diff.text.trim_end()
    ))
    .hint("Take back what is not wanted of this with edit.")
}

fn stale(message: String) -> ToolError {
    ToolError::new(ErrorKind::Stale, message)
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
