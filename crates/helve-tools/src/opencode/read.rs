//! `read`: a window of a text file, or the names in a folder.

use std::time::Duration;

use helve_core::machine::{Listing, Window, Windowed};
use helve_core::{Ask, ErrorKind, Kind, Resolved, Tool, ToolContext, ToolError, ToolOutput};
use helve_text::cut::Keep;
use helve_text::lines;
use helve_text::near;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file or folder to read
    #[schemars(length(min = 1))]
    file_path: String,
    /// The line (or entry) to start from, counted from 1
    offset: Option<u64>,
    /// How many lines (or entries) to read, 2000 unless given
    limit: Option<u64>,
}

const LINES: u64 = 2000;
const LINE_CHARS: usize = 2000;
const BYTES: usize = 50 << 10;
/// A character has at most four bytes.
const LINE_BYTES: usize = LINE_CHARS * 4;
const DEADLINE: Duration = Duration::from_secs(30);
/// How many names of a folder are looked at.
const NAMES: usize = 100_000;
/// How many lines a person who watches is shown.
const PREVIEW: usize = 20;

pub(super) struct Read;

impl Tool for Read {
    type Args = Args;
    const NAME: &'static str = "read";
    const ABOUT: &'static str = include_str!("read.txt");

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = ctx.files.resolve(&args.file_path).await?;
        let grant = ctx.ask(Ask::to_read(&path)).await?;
        let first = args.offset.unwrap_or(1).max(1);
        let most = args.limit.unwrap_or(LINES).clamp(1, LINES);
        match path.kind() {
            None => Err(not_found(ctx, &path).await),
            Some(Kind::Folder) => {
                let listing = ctx.files.list(&grant, &path, NAMES).await?;
                folder(&path, &listing, first, most)
            }
            Some(_) => {
                let want = Window {
                    first,
                    lines: most,
                    line_bytes: LINE_BYTES,
                    most_bytes: BYTES,
                    deadline: DEADLINE,
                };
                file(&path, &ctx.files.window(&grant, &path, want).await?)
            }
        }
    }
}

fn file(path: &Resolved, got: &Windowed) -> Result<ToolOutput, ToolError> {
    let shown = path.shown();
    if is_binary(&got.sample) {
        let message = format!("{shown} is not text: it is a binary file of {} bytes.", got.size);
        let hint = "Use a tool that knows its format.";
        return Err(ToolError::new(ErrorKind::Failed, message).hint(hint));
    }
    if got.lines.is_empty() && got.first > 1 {
        let message = format!(
            "{shown} has {}; there is no line {}.",
            count(got.seen, "line", "lines"),
            got.first
        );
        let hint = format!("Call again with an offset of at most {}.", got.seen.max(1));
        return Err(ToolError::new(ErrorKind::InvalidArgs, message).hint(hint));
    }
    let mut text = String::from("<file>\n");
    let (mut number, mut preview) = (got.first, Vec::new());
    for (bytes, skipped) in got.each() {
        let line = String::from_utf8_lossy(bytes);
        let (line, clipped) = lines::clip(&line, LINE_CHARS);
        let cut = if clipped || skipped > 0 { " … (line cut at 2000 characters)" } else { "" };
        text.push_str(&format!("{number:05}| {line}{cut}\n"));
        if preview.len() < PREVIEW {
            preview.push(line.to_string());
        }
        number += 1;
    }
    text.push_str(&format!("\n({})\n</file>", ending(got, number)));
    Ok(ToolOutput::text(shown, text)
        .keep(Keep::All)
        .with("preview", preview.join("\n"))
        .with("truncated", got.more))
}

/// Where the window ended, and how to go on. `next` is the first line that was not shown.
fn ending(got: &Windowed, next: u64) -> String {
    if !got.more {
        return format!("End of file, {}", count(got.seen, "line", "lines"));
    }
    format!(
        "Lines {}-{} are shown and more follow. Use offset={next} to go on.",
        got.first,
        next - 1
    )
}

/// NULs, or mostly control characters, in the first bytes.
fn is_binary(sample: &[u8]) -> bool {
    let odd = |byte: &&u8| **byte < 9 || (14..32).contains(*byte) && **byte != 27;
    sample.contains(&0) || sample.iter().filter(odd).count() * 10 > sample.len() * 3
}

fn folder(
    path: &Resolved,
    listing: &Listing,
    first: u64,
    most: u64,
) -> Result<ToolOutput, ToolError> {
    let shown = path.shown();
    let total = listing.entries.len() as u64 + listing.left_out;
    if first > total.max(1) {
        let message = format!("{shown} has {}.", count(total, "entry", "entries"));
        let hint = format!("Call again with an offset of at most {}.", total.max(1));
        return Err(ToolError::new(ErrorKind::InvalidArgs, message).hint(hint));
    }
    let skip = usize::try_from(first - 1).unwrap_or(usize::MAX);
    let take = usize::try_from(most).unwrap_or(usize::MAX);
    let mut text = String::from("<folder>\n");
    let mut last = first - 1;
    for entry in listing.entries.iter().skip(skip).take(take) {
        let slash = if entry.kind == Kind::Folder { "/" } else { "" };
        text.push_str(&format!("{}{slash}\n", entry.name.to_string_lossy()));
        last += 1;
    }
    let end = if last < total {
        format!("{first}-{last} of {total} entries. Use offset={} to go on.", last + 1)
    } else {
        count(total, "entry", "entries")
    };
    text.push_str(&format!("\n({end})\n</folder>"));
    Ok(ToolOutput::text(shown, text).with("truncated", last < total))
}

/// Says that a file is not there, with names near by if these may be told.
pub(super) async fn not_found(ctx: &ToolContext, path: &Resolved) -> ToolError {
    let names = ctx.files.beside(path, NAMES).await;
    let real = path.real();
    let wanted = real.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let near = near::nearest(&wanted, names.iter().map(String::as_str), 3);
    let error = ToolError::new(ErrorKind::NotFound, format!("{} does not exist.", path.shown()));
    if near.is_empty() {
        return error;
    }
    let near: Vec<String> = near
        .iter()
        .map(|name| match path.shown().rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{name}"),
            None => name.to_string(),
        })
        .collect();
    error.hint(format!("Did you mean {}?", near.join(", ")))
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn lines_are_numbered_from_one() {
        check(
            "--- file a.txt\none\n\ttwo\n--- call read {\"filePath\": \"a.txt\"}\n",
            expect![[r#"
                == a.txt
                <file>
                00001| one
                00002| 	two

                (End of file, 2 lines)
                </file>
            "#]],
        );
    }

    #[test]
    fn a_window_says_how_to_go_on() {
        check(
            r#"
--- file a.txt
1
2
3
4
--- call read {"filePath": "a.txt", "offset": 2, "limit": "2"}
--- call read {"filePath": "a.txt", "offset": 0, "limit": 1}
--- call read {"filePath": "a.txt", "offset": 5}
"#,
            expect![[r#"
                == a.txt
                <file>
                00002| 2
                00003| 3

                (Lines 2-3 are shown and more follow. Use offset=4 to go on.)
                </file>
                == a.txt
                <file>
                00001| 1

                (Lines 1-1 are shown and more follow. Use offset=2 to go on.)
                </file>
                !! InvalidArgs
                a.txt has 4 lines; there is no line 5.
                Call again with an offset of at most 4.
            "#]],
        );
    }

    #[test]
    fn a_folder_is_listed_by_name() {
        check(
            r#"
--- file src/b.rs
--- file src/a/x.rs
--- link src/dead -> nowhere
--- call read {"filePath": "src"}
--- call read {"filePath": "src", "limit": 1}
"#,
            expect![[r#"
                == src
                <folder>
                a/
                b.rs
                dead

                (3 entries)
                </folder>
                == src
                <folder>
                a/

                (1-1 of 3 entries. Use offset=2 to go on.)
                </folder>
            "#]],
        );
    }

    #[test]
    fn an_empty_file_is_no_error() {
        check(
            "--- file e\n--- call read {\"filePath\": \"e\"}\n",
            expect![[r#"
                == e
                <file>

                (End of file, 0 lines)
                </file>
            "#]],
        );
    }

    #[test]
    fn a_missing_file_names_near_ones() {
        check(
            r#"
--- file src/main.rs
--- file src/mian.py
--- call read {"filePath": "src/mian.rs"}
--- call read {"filePath": "zzz"}
"#,
            expect![[r#"
                !! NotFound
                src/mian.rs does not exist.
                Did you mean src/main.rs, src/mian.py?
                !! NotFound
                zzz does not exist.
            "#]],
        );
    }

    #[test]
    fn what_is_not_text_is_not_shown() {
        check(
            "--- file a.bin\na\0b\n--- fifo pipe\n--- locked secret\n--- call read {\"filePath\": \"a.bin\"}\n--- call read {\"filePath\": \"pipe\"}\n--- call read {\"filePath\": \"secret\"}\n",
            expect![[r#"
                !! Failed
                a.bin is not text: it is a binary file of 4 bytes.
                Use a tool that knows its format.
                !! Failed
                pipe is a FIFO, not a file. Reading it could wait for ever.
                Name a regular file.
                !! Failed
                secret cannot be opened: the system does not permit it to this user.
                Ask the user to change its permissions, or go on without it.
            "#]],
        );
    }

    #[test]
    fn secrets_and_places_outside_are_asked_for_in_one_question() {
        check(
            r#"
--- file .env
TOKEN=1
--- file /home/u/.ssh/id_rsa
KEY
--- reply once
--- reply session
--- call read {"filePath": ".env"}
--- call read {"filePath": "~/.ssh/id_rsa"}
--- call read {"filePath": "/home/u/.ssh/id_rsa", "limit": 1}
--- call read {"filePath": ".env"}
"#,
            expect![[r#"
                read .env [lasting: this]
                -> Yes(Once)
                == .env
                <file>
                00001| TOKEN=1

                (End of file, 1 line)
                </file>
                external_directory /home/u/.ssh/* [lasting: /home/u/.ssh/*]
                read /home/u/.ssh/id_rsa [lasting: this]
                -> Yes(Session)
                == /home/u/.ssh/id_rsa
                <file>
                00001| KEY

                (End of file, 1 line)
                </file>
                == /home/u/.ssh/id_rsa
                <file>
                00001| KEY

                (End of file, 1 line)
                </file>
                read .env [lasting: this]
                -> Unanswered
                !! Denied
                This needs permission, and nobody can be asked here: read .env (built-in rule read "*.env": ask).
                To allow it: --allow 'read:.env', or "permission": {"read": {".env": "allow"}} in the user's helve.json; --yes answers every such question.
            "#]],
        );
    }

    #[test]
    fn a_link_is_judged_by_where_it_leads_and_by_its_name() {
        check(
            r#"
--- file /etc/secret
S
--- file safe.txt
x
--- link inside.txt -> /etc/secret
--- link .env -> safe.txt
--- call read {"filePath": "inside.txt"}
--- call read {"filePath": ".env"}
"#,
            expect![[r#"
                external_directory /etc/* [lasting: /etc/*]
                read /etc/secret = inside.txt [lasting: this]
                -> Unanswered
                !! Denied
                This needs permission, and nobody can be asked here: external_directory /etc/* (built-in rule * "*": ask).
                To allow it: --allow 'external_directory:/etc/*', or "permission": {"external_directory": {"/etc/*": "allow"}} in the user's helve.json; --yes answers every such question.
                read safe.txt = .env [lasting: this]
                -> Unanswered
                !! Denied
                This needs permission, and nobody can be asked here: read safe.txt (built-in rule read "*.env": ask).
                To allow it: --allow 'read:.env', or "permission": {"read": {".env": "allow"}} in the user's helve.json; --yes answers every such question.
            "#]],
        );
    }

    #[test]
    fn a_denied_file_says_which_rule() {
        check(
            r#"
--- rule read secrets/* deny
--- file secrets/a
x
--- call read {"filePath": "secrets/../secrets/a"}
--- call read {"filePath": "/proc/self/environ"}
"#,
            expect![[r#"
                !! Denied
                A rule forbids this: read secrets/a (rule read "secrets/*": deny, set by the program). No approval lifts it.
                Go on without it, or tell the user which rule stands in the way.
                !! Denied
                A rule forbids this: read /proc/self/environ (built-in rule read "/proc/*/environ": deny). No approval lifts it.
                Go on without it, or tell the user which rule stands in the way.
            "#]],
        );
    }

    #[test]
    fn wrong_arguments_are_all_named_at_once() {
        check(
            r#"
--- call read {"file_path": "a", "limit": "many", "offset": -1}
--- call read {"filePath": "a
--- call read [1]
--- file a
x
--- call read {"filePath": "a", "colour": true}
"#,
            expect![[r#"
                !! InvalidArgs
                The arguments of read do not fit:
                - filePath: expected a string, found nothing (you gave file_path)
                - limit: expected an integer, found the string "many"
                - offset: expected at least 0, found -1
                Correct them and call again.
                !! InvalidArgs
                The arguments of read are cut off at line 1, column 15: the JSON ends in the middle. Nothing was done.
                Send the whole call again; if it was too long, split it.
                !! InvalidArgs
                The arguments of read do not fit:
                - the arguments: expected an object, found an array of 1
                Correct them and call again.
                == a
                <file>
                00001| x

                (End of file, 1 line)
                </file>
                (read has no parameter colour; it was ignored.)
            "#]],
        );
    }
}
