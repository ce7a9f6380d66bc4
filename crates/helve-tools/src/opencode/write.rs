//! `write`: a whole file, new or in place of an old one.

use bytes::Bytes;
use helve_core::change::{Rebase, Then, Wanted};
use helve_core::commit::FileMode;
use helve_core::{
    Ask, ErrorKind, Kind, Resolved, Tool, ToolContext, ToolError, ToolOutput, Traits,
};
use helve_text::diff::Unified;
use helve_text::edit::left_out;
use helve_text::view::{Ending, View};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::overwrite::check_shown;
use super::change::settings::Settings;
use super::change::syntax::{self, Draft};
use super::words::change::{counts, difference, made};
use super::words::clip;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file to write
    #[schemars(length(min = 1))]
    file_path: String,
    /// All of its content
    content: String,
}

pub(super) struct Write {
    pub(super) settings: Settings,
}

impl Tool for Write {
    type Args = Args;
    const NAME: &'static str = "write";
    const ABOUT: &'static str = include_str!("write.txt");
    const GROUP: &'static str = "edit";
    const TRAITS: Traits = Traits::MUTATES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = ctx.files.resolve(&args.file_path).await?;
        if path.kind() == Some(Kind::Folder) {
            let message = format!("{} is a folder.", path.shown());
            return Err(ToolError::new(ErrorKind::InvalidArgs, message).hint("Name a file in it."));
        }
        let base = ctx.files.load(&path).await?;
        let old = base.as_ref().map(|base| base.bytes.clone());
        let (shown, was) = (path.shown().to_string(), old.clone());
        let computed = ctx.compute(move || computed(&shown, was.as_deref(), args.content));
        let (bytes, diff) = computed.await??;
        if let Some(base) = &base {
            if bytes == base.bytes {
                return unchanged(ctx, &path).await;
            }
            check_shown(ctx, &path, base, "Read it first, then write it.").await?;
        }
        let drafts = [Draft { shown: path.shown().into(), old, new: Some(bytes.clone()) }];
        syntax::demand(ctx, self.settings.syntax, &drafts).await?;
        let ask = Ask::to(path.editing(Self::NAME)).preview(&diff.text);
        let grant = ctx.ask(ask).await?;
        let looking = syntax::look(ctx, self.settings.syntax, drafts.into());
        let word = if base.is_some() { "Wrote" } else { "Created" };
        let then = Then::Write { bytes, mode: FileMode::Keep, links: self.settings.links };
        let shown = path.shown().to_string();
        let wanted = Wanted { path, base, then, rebase: Rebase::Never };
        let done = ctx.files.commit(&grant, vec![wanted]).await?;
        let diffs = [diff];
        let first = format!("{word} {shown}: {}.", counts(&diffs));
        let [diff] = diffs;
        // The content is the model's own: only what became of it is news.
        let text = made(&first, &done, &[]) + &looking.await;
        Ok(ToolOutput::text(shown, text).with("diff", diff.text))
    }
}

/// The bytes to write, and how they differ from those that are there.
fn computed(
    shown: &str,
    old: Option<&[u8]>,
    content: String,
) -> Result<(Bytes, Unified), ToolError> {
    if let Some(old) = old.and_then(|old| View::new(old).ok())
        && let Some(text) = left_out(old.text().lines(), content.lines())
    {
        return Err(elided(shown, text));
    }
    let bytes = match old {
        None => content.into_bytes(),
        Some(old) => in_terms_of(shown, old, &content)?,
    };
    let diff = difference(shown, old, Some(&bytes));
    Ok((bytes.into(), diff))
}

/// Part of the old content would be gone, and a line that stands for it be there.
fn elided(shown: &str, text: &str) -> ToolError {
    let message = format!(
        "content leaves out what {shown} has: the line \"{}\" would be written as it stands. Nothing was written.",
        clip(text)
    );
    ToolError::new(ErrorKind::InvalidArgs, message)
        .hint("Give the whole content, or change the part that is meant with edit.")
}

/// The same content needs no writing, but it must not be told to who may not read it.
async fn unchanged(ctx: &ToolContext, path: &Resolved) -> Result<ToolOutput, ToolError> {
    ctx.ask(Ask::to(path.reading())).await?;
    let text = format!("{} has this content already; nothing was written.", path.shown());
    Ok(ToolOutput::text(path.shown(), text))
}

/// The content in the old file's encoding, with its line endings.
fn in_terms_of(shown: &str, old: &[u8], content: &str) -> Result<Vec<u8>, ToolError> {
    let Ok(view) = View::new(old) else { return Ok(content.as_bytes().to_vec()) };
    let content = match view.usual_ending() {
        Ending::CrLf if !content.contains('\r') => content.replace('\n', "\r\n"),
        Ending::Cr if !content.contains('\r') => content.replace('\n', "\r"),
        Ending::Cr | Ending::CrLf | Ending::Lf | Ending::None => content.to_string(),
    };
    let mut bytes = old[..view.mark()].to_vec();
    let unmarked = content.strip_prefix('\u{feff}').unwrap_or(&content);
    bytes.extend(view.encode(unmarked).map_err(|character| {
        let message = format!(
            "{shown} is in {}, which has no form for \"{character}\". Nothing was written.",
            view.encoding().name()
        );
        ToolError::new(ErrorKind::Failed, message)
            .hint("Use another character, or convert the file first.")
    })?);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn a_new_file_is_shown_before_it_is_made() {
        check(
            r#"
--- reply once
--- call write {"filePath": "src/new.rs", "content": "fn a() {}\n"}
"#,
            expect![[r#"
                edit src/new.rs by write [lasting: this]
                --- /dev/null
                +++ src/new.rs
                @@ -0,0 +1 @@
                +fn a() {}
                -> Yes(Once)
                == src/new.rs
                Created src/new.rs: 1 line added, 0 removed.
                >> src/new.rs
                fn a() {}
            "#]],
        );
    }

    #[test]
    fn an_existing_file_must_have_been_read() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- call write {"filePath": "a.txt", "content": "two\n"}
--- call read {"filePath": "a.txt"}
--- call write {"filePath": "a.txt", "content": "two\n"}
--- call write {"filePath": "a.txt", "content": "three\n"}
--- write a.txt
somebody else's
--- call write {"filePath": "a.txt", "content": "four\n"}
"#,
            expect![[r#"
                !! Stale
                a.txt exists and was not read in this conversation. Nothing was written.
                Read it first, then write it.
                == a.txt
                <file>
                00001| one

                (End of file, 1 line)
                </file>
                == a.txt
                Wrote a.txt: 1 line added, 1 removed.
                >> a.txt
                two
                == a.txt
                Wrote a.txt: 1 line added, 1 removed.
                >> a.txt
                three
                !! Stale
                a.txt changed since it was read. Nothing was written. This changed:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -three
                +somebody else's
                Read it again, then make the change with that in mind.
            "#]],
        );
    }

    #[test]
    fn what_others_wrote_since_is_not_overwritten_and_reading_again_helps() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
two
--- call read {"filePath": "a.txt", "limit": 1}
--- write a.txt
one
two
theirs
--- call write {"filePath": "a.txt", "content": "mine\n"}
--- call read {"filePath": "a.txt", "offset": 3}
--- call write {"filePath": "a.txt", "content": "mine\ntheirs\n"}
"#,
            expect![[r#"
                == a.txt
                <file>
                00001| one

                (Lines 1-1 are shown and more follow. Use offset=2 to go on.)
                </file>
                !! Stale
                a.txt changed since it was read. Nothing was written.
                Read it again, then make the change with that in mind.
                == a.txt
                <file>
                00003| theirs

                (End of file, 3 lines)
                </file>
                == a.txt
                Wrote a.txt: 1 line added, 2 removed.
                >> a.txt
                mine
                theirs
            "#]],
        );
    }

    #[test]
    fn what_is_left_out_in_words_is_not_written() {
        check(
            r#"
--- rule edit * allow
--- file a.js
a();
b();
--- call read {"filePath": "a.js"}
--- call write {"filePath": "a.js", "content": "a();\n// ... rest of the code unchanged ...\n"}
"#,
            expect![[r#"
                == a.js
                <file>
                00001| a();
                00002| b();

                (End of file, 2 lines)
                </file>
                !! InvalidArgs
                content leaves out what a.js has: the line "// ... rest of the code unchanged ..." would be written as it stands. Nothing was written.
                Give the whole content, or change the part that is meant with edit.
            "#]],
        );
    }

    #[test]
    fn the_same_content_is_said_and_not_written() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- call write {"filePath": "a.txt", "content": "one\n"}
"#,
            expect![[r#"
                == a.txt
                a.txt has this content already; nothing was written.
            "#]],
        );
    }

    #[test]
    fn encoding_mark_and_line_endings_of_the_file_are_kept() {
        check(
            "--- rule edit * allow\n--- file a.txt\n\u{feff}one\r\ntwo\r\n--- call read {\"filePath\": \"a.txt\"}\n--- call write {\"filePath\": \"a.txt\", \"content\": \"1\\n2\\n\"}\n",
            expect![[r#"
                == a.txt
                <file>
                00001| one
                00002| two

                (End of file, 2 lines)
                </file>
                == a.txt
                Wrote a.txt: 2 lines added, 2 removed.
                >> a.txt
                ﻿1␍
                2␍
            "#]],
        );
    }

    #[test]
    fn what_configures_programs_is_asked_for_even_where_edits_are_free() {
        check(
            r#"
--- rule edit * allow
--- call write {"filePath": ".git/hooks/pre-commit", "content": "x"}
--- call write {"filePath": "sub/.GIT/config", "content": "x"}
--- call write {"filePath": "/data/store.db", "content": "x"}
"#,
            expect![[r#"
                edit .git/hooks/pre-commit by write [lasting: this]
                --- /dev/null
                +++ .git/hooks/pre-commit
                @@ -0,0 +1 @@
                +x
                \ No newline at end of file
                -> Unanswered
                !! Denied
                This needs permission, and nobody can be asked here: edit .git/hooks/pre-commit (built-in rule edit ".git/*": ask).
                No rule allows it in advance: a person must say yes, or --yes be given.
                edit sub/.GIT/config by write [lasting: this]
                --- /dev/null
                +++ sub/.GIT/config
                @@ -0,0 +1 @@
                +x
                \ No newline at end of file
                -> Unanswered
                !! Denied
                This needs permission, and nobody can be asked here: edit sub/.GIT/config (built-in rule edit "*/.git/*": ask).
                No rule allows it in advance: a person must say yes, or --yes be given.
                !! Denied
                A rule forbids this: edit /data/store.db (built-in rule edit "/data/*": deny). No approval lifts it.
                Go on without it, or tell the user which rule stands in the way.
            "#]],
        );
    }

    #[test]
    fn nothing_is_said_of_a_file_that_must_be_asked_for() {
        check(
            r#"
--- rule edit * allow
--- file .env
TOKEN=1
--- call edit {"filePath": ".env", "oldString": "TOKEN=2", "newString": "x"}
--- call write {"filePath": ".env", "content": "TOKEN=1\n"}
"#,
            expect![[r#"
                !! Denied
                This cannot be done with that file, and reading it needs permission.
                Read the file first, so that permission can be asked for.
                read .env [lasting: this]
                -> Unanswered
                !! Denied
                This needs permission, and nobody can be asked here: read .env (built-in rule read "*.env": ask).
                To allow it: --allow 'read:.env', or "permission": {"read": {".env": "allow"}} in the user's helve.json; --yes answers every such question.
            "#]],
        );
    }
}
