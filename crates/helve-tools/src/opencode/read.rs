//! `read`: reads a file or lists a folder.

#[cfg(test)]
mod tests;

use helve_core::ForeignParameters;
use std::sync::Arc;

use helve_core::media::{Frames, MediaFormat, Picture};
use helve_core::{Content, ErrorKind, Media, Tool, ToolContext, ToolError, ToolOutput};
use helve_text::cut::Keep;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::foreign;
use crate::ops::read::lines::{LinePage, LineTotal};
use crate::ops::read::{
    FolderPage, ReadContent, ReadError, ReadLimits, ReadRequest, ReadResult, WindowStart, read,
    read_several,
};
use crate::words::read::{binary, format_name, mislabelled, page_note, undecodable};
use crate::words::{clip, count, missing_file, other_spelling_text};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file or folder to read
    #[schemars(length(min = 1))]
    file_path: String,
    /// First line (or entry) to read, counted from 1; negative numbers count from the end: -20 reads the last 20
    offset: Option<i64>,
    /// Number of lines (or entries) to read, default 2000
    limit: Option<u64>,
    /// Further files to read in this call; offset and limit apply to each
    #[schemars(length(max = 19))]
    further_paths: Option<Vec<String>>,
}

const MAX_LINES: u64 = 2000;
const LIMITS: ReadLimits = ReadLimits { line_chars: 2000, bytes: 50 << 10 };
/// The number of lines in the preview for a person.
const PREVIEW_LINES: usize = 20;

pub(super) struct Read {
    pub(super) media: Arc<dyn Media>,
}

impl Tool for Read {
    type Args = Args;
    const NAME: &'static str = "read";
    const ABOUT: &'static str = include_str!("read.txt");
    const FOREIGN: ForeignParameters = foreign::READ;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let offset = args.offset.unwrap_or(1);
        let start = match offset < 0 {
            true => WindowStart::FromEnd(offset.unsigned_abs()),
            false => WindowStart::At(offset.unsigned_abs().max(1)),
        };
        let count = args.limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES);
        let request = ReadRequest { path: &args.file_path, start, count, limits: LIMITS };
        let further = args.further_paths.as_deref().unwrap_or_default();
        if further.is_empty() {
            return read(ctx, &*self.media, request).await.map(answer).map_err(error);
        }
        let paths = std::iter::once(&args.file_path).chain(further).map(String::as_str);
        let paths: Vec<&str> = paths.collect();
        let results = read_several(ctx, &*self.media, &paths, request, MAX_LINES).await?;
        several(&paths, results)
    }
}

fn answer(result: ReadResult) -> ToolOutput {
    let ReadResult { display_path, content, other_spelling } = result;
    let mut output = match content {
        ReadContent::Folder(page) => folder(&display_path, &page),
        ReadContent::Lines(page) => lines(&display_path, page),
        ReadContent::Picture { format, picture } => self::picture(&display_path, format, picture),
    };
    if let (Some(other), Some(Content::Text(text))) = (&other_spelling, output.content.first_mut())
    {
        text.push_str(&format!("\n({})", other_spelling_text(other, &display_path)));
    }
    output
}

/// Puts the answers about several files under one another, each with its path above it. Fails if all failed.
fn several(
    paths: &[&str],
    results: Vec<Result<ReadResult, ReadError>>,
) -> Result<ToolOutput, ToolError> {
    let (mut texts, mut attached, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let mut failure = None;
    for (path, result) in paths.iter().zip(results) {
        match result.map(answer).map_err(error) {
            Ok(output) => {
                texts.push(format!("{}:\n{}", output.title, output.joined_text()));
                let mut about = output.metadata;
                about.shift_remove("preview");
                about.insert("path".into(), output.title.into());
                files.push(Value::Object(about));
                let is_media = |content: &Content| !matches!(content, Content::Text(_));
                attached.extend(output.content.into_iter().filter(is_media));
            }
            Err(error) => {
                let text = [Some(error.message.as_str()), error.hint.as_deref()];
                let text = text.into_iter().flatten().collect::<Vec<_>>().join(" ");
                texts.push(format!("{}:\n(Not read: {text})", clip(path)));
                files.push(json!({"path": path, "error": error.message}));
                failure.get_or_insert(error);
            }
        }
    }
    let has_content = files.iter().any(|file| file.get("error").is_none());
    if let Some(error) = failure.filter(|_| !has_content) {
        return Err(ToolError::new(error.kind, texts.join("\n\n")));
    }
    let truncated = files.iter().any(|file| file["truncated"] == true);
    let mut output = ToolOutput::text(format!("{} files", paths.len()), texts.join("\n\n"))
        .keep(Keep::All)
        .with_metadata("truncated", truncated)
        .with_metadata("files", files);
    output.content.extend(attached);
    Ok(output)
}

fn folder(display_path: &str, page: &FolderPage) -> ToolOutput {
    let FolderPage { first, entries, total } = page;
    let mut text = String::from("<folder>\n");
    for entry in entries {
        let slash = if entry.is_folder { "/" } else { "" };
        text.push_str(&format!("{}{slash}\n", entry.name));
    }
    let last = first - 1 + entries.len() as u64;
    let is_cut = last < *total;
    let end = if is_cut {
        format!("{first}-{last} of {total} entries. Use offset={} to continue.", last + 1)
    } else {
        count(*total, "entry", "entries")
    };
    text.push_str(&format!("\n({end})\n</folder>"));
    ToolOutput::text(display_path, text).with_metadata("truncated", is_cut)
}

fn lines(display_path: &str, page: LinePage) -> ToolOutput {
    let mut text = String::from("<file>\n");
    for (number, line) in (page.first..).zip(&page.lines) {
        let cut = if line.is_cut { " … (line cut at 2000 characters)" } else { "" };
        text.push_str(&format!("{number:05}| {}{cut}\n", line.text));
    }
    text.push_str(&format!("\n({})\n", ending(&page)));
    for note in cut_lines_hint(&page).into_iter().chain(page.notes.iter().map(page_note)) {
        text.push_str(&format!("({note})\n"));
    }
    text.push_str("</file>");
    let total = match page.total {
        LineTotal::Exactly(total) => Some(total),
        LineTotal::MoreThan(_) => None,
    };
    let preview = page.lines.iter().take(PREVIEW_LINES).map(|line| &*line.text);
    let mut output = ToolOutput::text(display_path, text)
        .keep(Keep::All)
        .with_metadata("preview", preview.collect::<Vec<_>>().join("\n"))
        .with_metadata("truncated", page.has_more)
        .with_metadata("path", display_path)
        .with_metadata("lines", page.lines.len())
        .with_metadata("total", total);
    let attached = page.attachments.into_iter();
    output.content.extend(attached.map(|each| Content::Media { mime: each.mime, data: each.data }));
    output
}

/// Returns a sentence that says where the page ends and how to read on.
fn ending(page: &LinePage) -> String {
    if !page.has_more {
        return format!("End of file, {}", count(page.total.seen(), "line", "lines"));
    }
    let (first, next) = (page.first, page.next());
    let total = match page.total {
        LineTotal::Exactly(total) => total.to_string(),
        LineTotal::MoreThan(lines) => format!("more than {lines}"),
    };
    format!("Showing lines {first}-{} of {total}. Use offset={next} to continue.", next - 1)
}

/// Returns a sentence that says which lines were cut, and how to see the rest of them.
fn cut_lines_hint(page: &LinePage) -> Option<String> {
    let mut cut = (page.first..).zip(&page.lines).filter(|(_, line)| line.is_cut);
    let (first, _) = cut.next()?;
    let others = match cut.count() {
        0 => " is".to_string(),
        others => format!(" and {} are", count(others as u64, "other line", "other lines")),
    };
    Some(format!(
        "Line {first}{others} cut. To see the rest, grep for a part of it, or print it in a shell: sed -n {first}p FILE | cut -c 2001-4000"
    ))
}

fn picture(display_path: &str, format: MediaFormat, picture: Picture) -> ToolOutput {
    let (size, original) = (picture.size, picture.original);
    let name = format_name(format);
    let mut text =
        format!("{display_path}: {name}, {} × {} pixels.", original.width, original.height);
    if size != original {
        text.push_str(&format!(" Shown at {} × {}.", size.width, size.height));
    }
    match picture.frames {
        Frames::One => {}
        Frames::FirstOfMany => text.push_str(" It is animated; the first frame is shown."),
    }
    let mut output = ToolOutput::text(display_path, text.clone())
        .with_metadata("preview", text)
        .with_metadata("truncated", false)
        .with_metadata("mime", picture.mime);
    output.content.push(Content::Media { mime: picture.mime.into(), data: picture.bytes });
    output
}

fn error(error: ReadError) -> ToolError {
    let invalid = |message: String| ToolError::new(ErrorKind::InvalidArgs, message);
    let at_most = |total: u64| format!("Use an offset of at most {}.", total.max(1));
    match error {
        ReadError::Context(error) => error,
        ReadError::Missing(missing) => missing_file(&missing),
        ReadError::NoSuchLine { display_path, line, total } => {
            let lines = count(total, "line", "lines");
            invalid(format!("{display_path} has {lines}; there is no line {line}."))
                .hint(at_most(total))
        }
        ReadError::NoSuchEntry { display_path, total } => {
            invalid(format!("{display_path} has {}.", count(total, "entry", "entries")))
                .hint(at_most(total))
        }
        ReadError::Binary { display_path, kind, size } => binary(&display_path, kind, size),
        ReadError::Mislabelled { display_path, format, content } => {
            mislabelled(&display_path, format, content)
        }
        ReadError::Undecodable { display_path, format, reason } => {
            undecodable(&display_path, format, &reason)
        }
    }
}
