//! `multiedit`: several replacements in one file, all or none; `edit` is the case of one.

use bytes::Bytes;
use helve_core::change::{Made, Rebase, Then, Wanted};
use helve_core::commit::FileMode;
use helve_core::{
    Ask, ErrorKind, Kind, Resolved, Shown, Tool, ToolContext, ToolError, ToolOutput, Traits,
};
use helve_text::diff::Unified;
use helve_text::edit::{AppliedAll, Change, Edit, Match, apply_all};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::settings::Settings;
use super::change::syntax::{self, Draft};
use super::words::change::{counts, difference, leniently, made, refused};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file to change
    #[schemars(length(min = 1))]
    file_path: String,
    /// What to replace, in order
    #[schemars(length(min = 1, max = 500))]
    edits: Vec<Replacement>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replacement {
    /// The same file, if it is named at all
    pub(super) file_path: Option<String>,
    /// The text to replace
    pub(super) old_string: String,
    /// The text to put in its place
    pub(super) new_string: String,
    /// Replace every place instead of the only one
    #[serde(default)]
    pub(super) replace_all: bool,
}

pub(super) struct MultiEdit {
    pub(super) settings: Settings,
}

impl Tool for MultiEdit {
    type Args = Args;
    const NAME: &'static str = "multiedit";
    const ABOUT: &'static str = include_str!("multiedit.txt");
    const GROUP: &'static str = "edit";
    const TRAITS: Traits = Traits::MUTATES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        run(ctx, self.settings, Self::NAME, &args.file_path, args.edits).await
    }
}

/// Resolves, loads, computes, asks, commits, says: for one replacement or several.
pub(super) async fn run(
    ctx: &ToolContext,
    settings: Settings,
    tool: &'static str,
    file: &str,
    edits: Vec<Replacement>,
) -> Result<ToolOutput, ToolError> {
    let path = ctx.files.resolve(file).await?;
    if path.kind() == Some(Kind::Folder) {
        let message = format!("{} is a folder.", path.shown());
        return Err(ToolError::new(ErrorKind::InvalidArgs, message).hint("Name a file in it."));
    }
    same_file(ctx, &path, &edits).await?;
    let base = ctx.files.load(&path).await?;
    let had_moved_on = match &base {
        Some(base) => matches!(ctx.files.shown(&path, base).await, Shown::Changed { .. }),
        None => false,
    };
    if base.is_none() && creation(&edits).is_none() {
        return Err(super::read::not_found(ctx, &path).await);
    }
    let shown = path.shown().to_string();
    let old = base.as_ref().map(|base| base.bytes.clone());
    let computing = {
        let (shown, old) = (shown.clone(), old.clone());
        ctx.compute(move || computed(&shown, old.as_deref(), &edits, settings.matching))
    };
    let (applied, diff) = computing.await??;
    let bytes = Bytes::from(applied.bytes);
    let drafts = [Draft { shown: shown.clone(), old, new: Some(bytes.clone()) }];
    syntax::demand(ctx, settings.syntax, &drafts).await?;
    let grant = ctx.ask(Ask::to(path.editing(tool)).preview(&diff.text)).await?;
    let looking = syntax::look(ctx, settings.syntax, drafts.into());
    let word = if base.is_none() { "Created" } else { "Edited" };
    let then = Then::Write { bytes, mode: FileMode::Keep, links: settings.links };
    let wanted = Wanted { path, base, then, rebase: Rebase::Merge };
    let done = ctx.files.commit(&grant, vec![wanted]).await?;
    let diffs = [diff];
    let mut first = format!("{word} {shown}: {}.", counts(&diffs));
    first.push_str(&each(&applied.changes, had_moved_on, &shown));
    let text = made(&first, &done, &diffs) + &looking.await;
    Ok(said(&shown, text, &done).with("diff", diffs[0].text.as_str()))
}

/// The file after the edits, and how it differs from what is there.
fn computed(
    shown: &str,
    old: Option<&[u8]>,
    edits: &[Replacement],
    matching: Match,
) -> Result<(AppliedAll, Unified), ToolError> {
    let applied = match creation(edits) {
        Some(content) => {
            not_there(shown, old)?;
            replaced(shown, content.as_bytes(), edits, 1, matching)?
        }
        None => replaced(shown, old.unwrap_or_default(), edits, 0, matching)?,
    };
    let diff = difference(shown, old, Some(&applied.bytes));
    Ok((applied, diff))
}

/// What each edit did, where there is something to say of it.
fn each(changes: &[Change], had_moved_on: bool, shown: &str) -> String {
    let mut text = String::new();
    if had_moved_on {
        text.push_str(&format!(
            "\n{shown} had changed since you read it; the quoted text was still there."
        ));
    }
    let several = changes.len() > 1;
    for (at, change) in changes.iter().enumerate() {
        let which = if several { format!("Edit {}: ", at + 1) } else { String::new() };
        if several || change.count > 1 {
            let places = if change.count == 1 { "place" } else { "places" };
            text.push_str(&format!("\n{which}{} {places} replaced.", change.count));
        }
        if let Some(how) = leniently(change.tolerances.iter()) {
            text.push_str(&format!("\n{which}{how}"));
        }
    }
    text
}

fn said(shown: &str, text: String, done: &Made) -> ToolOutput {
    let moved_on = done.written.iter().any(|written| written.moved_on);
    ToolOutput::text(shown, text).with("movedOn", moved_on)
}

/// The content of a new file, when the first edit quotes nothing.
fn creation(edits: &[Replacement]) -> Option<&str> {
    edits.first().filter(|edit| edit.old_string.is_empty()).map(|edit| edit.new_string.as_str())
}

fn not_there(shown: &str, old: Option<&[u8]>) -> Result<(), ToolError> {
    if old.is_none() {
        return Ok(());
    }
    let message =
        format!("{shown} exists, and an empty oldString creates a new file. Nothing was written.");
    Err(ToolError::new(ErrorKind::InvalidArgs, message)
        .hint("Quote what is to be replaced, or use write for the whole file."))
}

/// All edits but the first `skipped`, made on `base`.
fn replaced(
    shown: &str,
    base: &[u8],
    edits: &[Replacement],
    skipped: usize,
    matching: Match,
) -> Result<AppliedAll, ToolError> {
    let list: Vec<Edit<'_>> = edits[skipped..]
        .iter()
        .map(|edit| Edit { old: &edit.old_string, new: &edit.new_string, all: edit.replace_all })
        .collect();
    apply_all(base, &list, matching).map_err(|refused_at| {
        let which = if edits.len() > 1 {
            format!("Edit {} of {}: ", skipped + refused_at.index + 1, edits.len())
        } else {
            String::new()
        };
        refused(shown, &which, &refused_at.refusal)
    })
}

/// An edit that names another file is a mistake, not a wish.
async fn same_file(
    ctx: &ToolContext,
    path: &Resolved,
    edits: &[Replacement],
) -> Result<(), ToolError> {
    for (at, edit) in edits.iter().enumerate() {
        let Some(named) = &edit.file_path else { continue };
        if ctx.files.resolve(named).await?.real() != path.real() {
            let message = format!(
                "Edit {} names {named}, and the call is about {}. Nothing was written.",
                at + 1,
                path.shown()
            );
            return Err(ToolError::new(ErrorKind::InvalidArgs, message)
                .hint("Make one call for each file."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn one_place_is_replaced_and_the_rest_keeps_its_bytes() {
        check(
            "--- reply once\n--- file a.rs\nfn a() {\r\n    1\n}\n--- call edit {\"filePath\": \"a.rs\", \"oldString\": \"    1\", \"newString\": \"    2\"}\n",
            expect![[r#"
                edit a.rs [lasting: this]
                --- a.rs
                +++ a.rs
                @@ -1,3 +1,3 @@
                 fn a() {
                -    1
                +    2
                 }
                -> Yes(Once)
                == a.rs
                Edited a.rs: 1 line added, 1 removed.

                --- a.rs
                +++ a.rs
                @@ -1,3 +1,3 @@
                 fn a() {
                -    1
                +    2
                 }
                >> a.rs
                fn a() {␍
                    2
                }
            "#]],
        );
    }

    #[test]
    fn dollars_and_backslashes_are_what_they_are() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
price
--- call edit {"filePath": "a.txt", "oldString": "price", "newString": "$1 $& \\1 \\n"}
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -price
                +$1 $& \1 \n
                >> a.txt
                $1 $& \1 \n
            "#]],
        );
    }

    #[test]
    fn what_cannot_be_found_shows_the_nearest_place() {
        check(
            r#"
--- rule edit * allow
--- file a.py
def area(w, h):
    return w * h * 2
--- call edit {"filePath": "a.py", "oldString": "    return w * h * 3", "newString": "    return 0"}
--- call edit {"filePath": "a.py", "oldString": "import os", "newString": "import sys"}
--- call edit {"filePath": "a.py", "oldString": "h", "newString": "x"}
--- call edit {"filePath": "b.py", "oldString": "h", "newString": "x"}
--- call edit {"filePath": "a.py", "oldString": "", "newString": "x"}
--- call edit {"filePath": "a.py", "oldString": "h", "newString": "h"}
"#,
            expect![[r#"
                !! Stale
                oldString is not in a.py. Nothing was written. The nearest place is line 2: a value is another one now.
                They part at line 2, column 20 (line 1 of oldString): the file has "2" (U+0032), oldString has "3" (U+0033).
                00002|     return w * h * 2
                Quote these lines as they stand, without their numbers, and call again.
                !! Stale
                oldString is not in a.py, and nothing in it is similar. Nothing was written.
                Read the file; it may be another one, or have changed.
                !! Stale
                oldString is in a.py 2 times, at lines 1, 2. Nothing was written.
                Quote more lines around the one you mean, or set replaceAll to change all of them.
                !! NotFound
                b.py does not exist.
                Did you mean a.py?
                !! InvalidArgs
                a.py exists, and an empty oldString creates a new file. Nothing was written.
                Quote what is to be replaced, or use write for the whole file.
                !! InvalidArgs
                oldString and newString are the same. Nothing was written.
            "#]],
        );
    }

    #[test]
    fn a_lenient_match_is_said() {
        check(
            r#"
--- rule edit * allow
--- file a.go
	if x {
		y()
	}
--- call edit {"filePath": "a.go", "oldString": "if x {\n    y()\n}", "newString": "if x {\n    z()\n}"}
"#,
            expect![[r#"
                == a.go
                Edited a.go: 1 line added, 1 removed.
                The quotation differed from the file in indentation; the file's own form was kept.

                --- a.go
                +++ a.go
                @@ -1,3 +1,3 @@
                 	if x {
                -		y()
                +		z()
                 	}
                >> a.go
                	if x {
                		z()
                	}
            "#]],
        );
    }

    #[test]
    fn several_edits_are_made_in_order_or_not_at_all() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
two
--- call multiedit {"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "1"}, {"oldString": "1\ntwo", "newString": "1\n2"}]}
--- call multiedit {"filePath": "a.txt", "edits": [{"oldString": "1", "newString": "one"}, {"oldString": "three", "newString": "3"}]}
--- call multiedit {"filePath": "a.txt", "edits": [{"filePath": "b.txt", "oldString": "1", "newString": "one"}]}
--- call multiedit {"filePath": "new.txt", "edits": [{"oldString": "", "newString": "x\n"}, {"oldString": "x", "newString": "y"}]}
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 2 lines added, 2 removed.
                Edit 1: 1 place replaced.
                Edit 2: 1 place replaced.

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
                !! Stale
                Edit 2 of 2: oldString is not in a.txt, and nothing in it is similar. Nothing was written.
                Read the file; it may be another one, or have changed.
                !! InvalidArgs
                Edit 1 names b.txt, and the call is about a.txt. Nothing was written.
                Make one call for each file.
                == new.txt
                Created new.txt: 1 line added, 0 removed.

                --- /dev/null
                +++ new.txt
                @@ -0,0 +1 @@
                +y
                >> new.txt
                y
            "#]],
        );
    }

    #[test]
    fn every_place_is_replaced_when_that_is_asked_for() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
a b
a
--- call edit {"filePath": "a.txt", "oldString": "a", "newString": "c", "replaceAll": true}
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 2 lines added, 2 removed.
                2 places replaced.

                --- a.txt
                +++ a.txt
                @@ -1,2 +1,2 @@
                -a b
                -a
                +c b
                +c
                >> a.txt
                c b
                c
            "#]],
        );
    }

    #[test]
    fn a_file_that_moved_on_is_edited_where_the_quotation_still_stands() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
two
--- call read {"filePath": "a.txt"}
--- write a.txt
zero
one
two
--- call edit {"filePath": "a.txt", "oldString": "two", "newString": "2"}
"#,
            expect![[r#"
                == a.txt
                <file>
                00001| one
                00002| two

                (End of file, 2 lines)
                </file>
                == a.txt
                Edited a.txt: 1 line added, 1 removed.
                a.txt had changed since you read it; the quoted text was still there.

                --- a.txt
                +++ a.txt
                @@ -1,3 +1,3 @@
                 zero
                 one
                -two
                +2
                >> a.txt
                zero
                one
                2
            "#]],
        );
    }

    #[test]
    fn faults_of_syntax_that_an_edit_brought_in_are_told() {
        check(
            r#"
--- rule edit * allow
--- file a.rs
fn a() {
    b();
}
--- call edit {"filePath": "a.rs", "oldString": "    b();\n}", "newString": "    c();"}
--- call edit {"filePath": "a.rs", "oldString": "    c();", "newString": "    c();\n}"}
"#,
            expect![[r#"
                == a.rs
                Edited a.rs: 1 line added, 2 removed.

                --- a.rs
                +++ a.rs
                @@ -1,3 +1,2 @@
                 fn a() {
                -    b();
                -}
                +    c();

                This change brought in faults of syntax:
                - a.rs:2: } is missing
                >> a.rs
                fn a() {
                    c();
                == a.rs
                Edited a.rs: 1 line added, 0 removed.

                --- a.rs
                +++ a.rs
                @@ -1,2 +1,3 @@
                 fn a() {
                     c();
                +}
                >> a.rs
                fn a() {
                    c();
                }
            "#]],
        );
    }

    #[test]
    fn a_no_changes_nothing() {
        check(
            r#"
--- reply no: keep it
--- file a.txt
one
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "two"}
"#,
            expect![[r#"
                edit a.txt [lasting: this]
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +two
                -> No { word: Some("keep it") }
                !! Denied
                The user said no to this call: keep it
            "#]],
        );
    }
}
