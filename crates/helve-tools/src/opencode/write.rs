//! `write`: writes a whole file.

use helve_core::ForeignParameters;
use helve_core::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::with_preview;
use super::foreign;
use crate::EditSettings;
use crate::ops::write::{WriteError, WriteOutcome, WriteRequest, write};
use crate::words::change::{
    cannot_encode, change_error, change_summary, introduced_errors_text, line_counts,
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file to write
    #[schemars(length(min = 1))]
    file_path: String,
    /// The whole content
    content: String,
}

pub(super) struct Write {
    pub(super) settings: EditSettings,
}

impl Tool for Write {
    type Args = Args;
    const NAME: &'static str = "write";
    const ABOUT: &'static str = include_str!("write.txt");
    const FOREIGN: ForeignParameters = foreign::WRITE;
    const GROUP: &'static str = "edit";
    const PROPERTIES: ToolProperties = ToolProperties::CHANGES_FILES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Args { file_path, content } = args;
        let request = WriteRequest { key: Self::NAME, path: &file_path, content };
        write(ctx, self.settings, request).await.map(answer).map_err(error)
    }
}

/// Formats the result. The model wrote the content itself, so the diff is left out.
fn answer(outcome: WriteOutcome) -> ToolOutput {
    let file = match outcome {
        WriteOutcome::Unchanged { display_path } => {
            let text = format!("{display_path} already has this content; nothing was written.");
            return ToolOutput::text(display_path, text);
        }
        WriteOutcome::Written(file) => file,
    };
    let verb = match (file.created, file.applied.is_some()) {
        (true, true) => "Created",
        (false, true) => "Wrote",
        (true, false) => "Would create",
        (false, false) => "Would write",
    };
    let diffs = [file.diff];
    let first = format!("{verb} {}: {}.", file.display_path, line_counts(&diffs));
    let is_preview = file.applied.is_none();
    let shown = if is_preview { &diffs[..] } else { &[] };
    let text = change_summary(&first, file.applied.as_ref(), shown)
        + &introduced_errors_text(&file.errors, file.applied.as_ref());
    let [diff] = diffs;
    let output = ToolOutput::text(file.display_path, text)
        .with_metadata("additions", diff.additions)
        .with_metadata("deletions", diff.deletions)
        .with_metadata("diff", diff.text);
    with_preview(output, is_preview)
}

fn error(error: WriteError) -> ToolError {
    match error {
        WriteError::Change(error) => change_error(error, "Read the file first, then write it."),
        WriteError::CannotEncode { display_path, encoding, character } => {
            cannot_encode(&display_path, encoding.name(), &format!("\"{character}\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn a_new_file_is_previewed() {
        check(
            r#"
--- reply once
--- call write {"filePath": "src/new.rs", "content": "fn a() {}\n"}
"#,
            expect![[r#"
                edit src/new.rs by write [lasting approval: exactly this]
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
                a.txt exists but was not read in this conversation. Nothing was written.
                Read the file first, then write it.
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
                a.txt changed since it was read. Nothing was written. Changes since then:
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -three
                +somebody else's
                Read the file again, then redo the change.
            "#]],
        );
    }

    #[test]
    fn later_changes_by_others_must_be_read_first() {
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

                (Showing lines 1-1 of 2. Use offset=2 to continue.)
                </file>
                !! Stale
                a.txt changed since it was read. Nothing was written. Changes since then:
                --- a.txt
                +++ a.txt
                @@ -1,2 +1,3 @@
                 one
                 two
                +theirs
                Read the file again, then redo the change.
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
    fn placeholders_for_omitted_code_are_refused() {
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
                The text for a.js omits code: the line "// ... rest of the code unchanged ..." would replace existing lines. Nothing was written.
                Write out every line, or quote less and leave the rest alone.
            "#]],
        );
    }

    #[test]
    fn identical_content_is_not_written() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- call write {"filePath": "a.txt", "content": "one\n"}
"#,
            expect![[r#"
                == a.txt
                a.txt already has this content; nothing was written.
            "#]],
        );
    }

    #[test]
    fn byte_order_mark_and_line_endings_are_kept() {
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
    fn program_configuration_is_asked_about_even_if_edits_are_allowed() {
        check(
            r#"
--- rule edit * allow
--- call write {"filePath": ".git/hooks/pre-commit", "content": "x"}
--- call write {"filePath": "sub/.GIT/config", "content": "x"}
--- call write {"filePath": "/data/store.db", "content": "x"}
"#,
            expect![[r#"
                edit .git/hooks/pre-commit by write [lasting approval: exactly this]
                --- /dev/null
                +++ .git/hooks/pre-commit
                @@ -0,0 +1 @@
                +x
                \ No newline at end of file
                -> Unanswered
                !! Unanswered
                This needs permission, and nobody can be asked here: edit .git/hooks/pre-commit (built-in rule edit ".git/*": ask).
                No rule can allow it in advance: a person must approve it, or use --yes.
                edit sub/.GIT/config by write [lasting approval: exactly this]
                --- /dev/null
                +++ sub/.GIT/config
                @@ -0,0 +1 @@
                +x
                \ No newline at end of file
                -> Unanswered
                !! Unanswered
                This needs permission, and nobody can be asked here: edit sub/.GIT/config (built-in rule edit "*/.git/*": ask).
                No rule can allow it in advance: a person must approve it, or use --yes.
                !! Denied
                A rule forbids this: edit /data/store.db (built-in rule edit "/data/*": deny). It cannot be approved.
                Continue without it, or tell the user which rule blocks it.
            "#]],
        );
    }

    #[test]
    fn answers_reveal_nothing_about_unapproved_files() {
        check(
            r#"
--- rule edit * allow
--- file .env
TOKEN=1
--- call edit {"filePath": ".env", "oldString": "TOKEN=2", "newString": "x"}
--- call write {"filePath": ".env", "content": "TOKEN=1\n"}
"#,
            expect![[r#"
                edit .env [lasting approval: exactly this]
                read .env [lasting approval: exactly this]
                The file is opened only if you agree. This is what the call requests:
                --- .env
                +++ .env
                @@ -1 +1 @@
                -TOKEN=2
                \ No newline at end of file
                +x
                \ No newline at end of file
                -> Unanswered
                !! Unanswered
                This needs permission, and nobody can be asked here: read .env (built-in rule read "*.env": ask).
                The user can allow it with --allow 'read:.env', or {"permission": {"read": {".env": "allow"}}} in their helve.json. --yes approves every such request.
                edit .env by write [lasting approval: exactly this]
                read .env [lasting approval: exactly this]
                The file is opened only if you agree. This is what the call requests:
                --- /dev/null
                +++ .env
                @@ -0,0 +1 @@
                +TOKEN=1
                -> Unanswered
                !! Unanswered
                This needs permission, and nobody can be asked here: read .env (built-in rule read "*.env": ask).
                The user can allow it with --allow 'read:.env', or {"permission": {"read": {".env": "allow"}}} in their helve.json. --yes approves every such request.
            "#]],
        );
    }
}
