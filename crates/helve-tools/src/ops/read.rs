//! Reads a window of a file as lines of text, decodes a picture or document, or lists a directory.

pub(crate) mod lines;
mod media;
mod notebook;
mod text;

use std::time::Duration;

use helve_core::machine::{DirListing, WindowLines, WindowRequest};
use helve_core::media::{MediaContent, MediaError, MediaFormat, Picture};
use helve_core::{Ask, FileKind, Grant, Media, Resolved, ToolContext, ToolError, paths};

use super::missing::{GivenSpelling, MissingFile, describe_missing, resolve_in_any_spelling};
use lines::{LinePage, PageNote};
pub(crate) use media::document_window;

/// A file or directory to read.
pub(crate) struct ReadRequest<'a> {
    pub(crate) path: &'a str,
    pub(crate) start: WindowStart,
    pub(crate) count: u64,
    pub(crate) limits: ReadLimits,
}

/// Lines of a file, or entries of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineWindow {
    /// The first line or entry, counted from 1.
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// Where a window starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowStart {
    /// The number of a line or entry, counted from 1.
    At(u64),
    /// This many lines or entries before the end.
    FromEnd(u64),
}

impl WindowStart {
    /// Returns the number of the first line, for a text with `total` lines.
    fn of_total(self, total: u64) -> u64 {
        match self {
            WindowStart::At(first) => first,
            WindowStart::FromEnd(count) => total.saturating_sub(count) + 1,
        }
    }
}

/// The maximum size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadLimits {
    /// Maximum number of characters of a line. Longer lines are cut.
    pub(crate) line_chars: usize,
    pub(crate) bytes: usize,
}

/// What was read, and its display path.
pub(crate) struct ReadResult {
    pub(crate) display_path: String,
    pub(crate) content: ReadContent,
    /// Set if the path was spelled differently, for example with another Unicode form.
    pub(crate) other_spelling: Option<GivenSpelling>,
}

pub(crate) enum ReadContent {
    Folder(FolderPage),
    Lines(LinePage),
    Picture { format: MediaFormat, picture: Picture },
}

/// Some entries of a directory, sorted by name.
pub(crate) struct FolderPage {
    pub(crate) first: u64,
    pub(crate) entries: Vec<FolderEntry>,
    /// The number of entries in the directory.
    pub(crate) total: u64,
}

pub(crate) struct FolderEntry {
    pub(crate) name: String,
    pub(crate) is_folder: bool,
}

/// Why nothing was read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// An error of the context, already worded in the session's dialect.
    Context(ToolError),
    Missing(MissingFile),
    /// The window starts after the last line.
    NoSuchLine {
        display_path: String,
        line: u64,
        total: u64,
    },
    /// The window starts after the last entry of a directory.
    NoSuchEntry {
        display_path: String,
        total: u64,
    },
    /// `kind` names the format with its article, such as "a gzip archive".
    Binary {
        display_path: String,
        kind: &'static str,
        size: u64,
    },
    /// The name promises a format that the content does not have.
    Mislabelled {
        display_path: String,
        format: MediaFormat,
        content: ActualContent,
    },
    Undecodable {
        display_path: String,
        format: MediaFormat,
        reason: MediaError,
    },
}

/// The content of a file that is named like a picture or document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActualContent {
    Nothing,
    LfsPointer,
    Text,
    Other,
}

impl From<ToolError> for ReadError {
    fn from(error: ToolError) -> Self {
        ReadError::Context(error)
    }
}

const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of directory entries that are looked at.
const MAX_ENTRIES: usize = 100_000;
/// The largest picture or document that is loaded.
const MAX_MEDIA_BYTES: u64 = 64 << 20;
/// The largest notebook that is rendered by cell.
const MAX_NOTEBOOK_BYTES: u64 = 16 << 20;
/// Maximum number of bytes in a UTF-8 character.
const CHAR_BYTES: usize = 4;

/// Reads a file or directory. `media` decodes pictures and documents.
pub(crate) async fn read(
    ctx: &ToolContext,
    media: &dyn Media,
    request: ReadRequest<'_>,
) -> Result<ReadResult, ReadError> {
    let (path, other_spelling) = resolve_in_any_spelling(ctx, request.path).await?;
    let grant = ctx.ask(Ask::for_request(path.read_request())).await?;
    let result = read_granted(ctx, media, &grant, &path, &request).await?;
    Ok(ReadResult { other_spelling, ..result })
}

/// Reads several files or directories after one question about all of them. They share `max_lines` and the bytes of the
/// request: what one does not use is left for those after it. An error of one does not affect the others.
pub(crate) async fn read_several(
    ctx: &ToolContext,
    media: &dyn Media,
    paths: &[&str],
    request: ReadRequest<'_>,
    max_lines: u64,
) -> Result<Vec<Result<ReadResult, ReadError>>, ToolError> {
    let (mut found, mut ask) = (Vec::new(), Ask::default());
    for path in paths {
        let resolved = resolve_in_any_spelling(ctx, path).await;
        if let Ok((resolved, _)) = &resolved {
            ask = ask.add_request(resolved.read_request());
        }
        found.push(resolved);
    }
    let grant = ctx.ask(ask).await?;
    let (mut lines_left, mut bytes_left) = (max_lines, request.limits.bytes);
    let mut results = Vec::new();
    for (at, (found, path)) in found.into_iter().zip(paths).enumerate() {
        let waiting = paths.len() - at;
        let limits = ReadLimits { bytes: bytes_left / waiting, ..request.limits };
        let count = request.count.min(lines_left / waiting as u64).max(1);
        let request = ReadRequest { path, start: request.start, count, limits };
        let result = match found {
            Ok((resolved, other_spelling)) => {
                let result = read_granted(ctx, media, &grant, &resolved, &request).await;
                result.map(|result| ReadResult { other_spelling, ..result })
            }
            Err(error) => Err(error.into()),
        };
        if let Ok(result) = &result {
            let (lines, bytes) = result.content.size();
            lines_left = lines_left.saturating_sub(lines);
            bytes_left = bytes_left.saturating_sub(bytes);
        }
        results.push(result);
    }
    Ok(results)
}

async fn read_granted(
    ctx: &ToolContext,
    media: &dyn Media,
    grant: &Grant<'_>,
    path: &Resolved,
    request: &ReadRequest<'_>,
) -> Result<ReadResult, ReadError> {
    let ReadRequest { path: given, start, count, limits } = *request;
    let content = match path.kind() {
        None => return Err(ReadError::Missing(describe_missing(ctx, given, path).await)),
        Some(FileKind::Folder) => {
            let listing = ctx.files.list(grant, path, MAX_ENTRIES).await?;
            let first = start.of_total(listing.entries.len() as u64 + listing.left_out);
            ReadContent::Folder(folder_page(path, &listing, LineWindow { first, count })?)
        }
        Some(_) => {
            let request = |first| WindowRequest {
                first,
                lines: count,
                line_bytes: limits.line_chars * CHAR_BYTES,
                max_bytes: limits.bytes,
                timeout: TIMEOUT,
            };
            let first = match start {
                WindowStart::At(first) => first,
                WindowStart::FromEnd(_) => {
                    // Reading a window past the end only counts the lines.
                    let end = ctx.files.read_window(grant, path, request(u64::MAX)).await?;
                    start.of_total(end.lines_read)
                }
            };
            let window = LineWindow { first, count };
            let window_lines = ctx.files.read_window(grant, path, request(first)).await?;
            let file = OpenFile { ctx, grant, path, window_lines: &window_lines, window, limits };
            file.read(media).await?
        }
    };
    if let ReadContent::Lines(page) = &content
        && page.lines.is_empty()
        && page.first > 1
    {
        let (display_path, line, total) = (path.display().into(), page.first, page.total.seen());
        return Err(ReadError::NoSuchLine { display_path, line, total });
    }
    Ok(ReadResult { display_path: path.display().into(), content, other_spelling: None })
}

impl ReadContent {
    /// Returns the number of lines or entries, and of bytes.
    fn size(&self) -> (u64, usize) {
        match self {
            ReadContent::Folder(page) => {
                let bytes = page.entries.iter().map(|entry| entry.name.len()).sum();
                (page.entries.len() as u64, bytes)
            }
            ReadContent::Lines(page) => {
                (page.lines.len() as u64, page.lines.iter().map(|line| line.text.len()).sum())
            }
            ReadContent::Picture { .. } => (0, 0),
        }
    }
}

/// Renders a notebook as text; `None` if the bytes are not a notebook.
pub(crate) fn notebook_text(bytes: &[u8]) -> Option<String> {
    notebook::render(bytes).ok().map(|rendered| rendered.text)
}

/// A file that may be read, with the lines of the window.
struct OpenFile<'a> {
    ctx: &'a ToolContext,
    grant: &'a Grant<'a>,
    path: &'a Resolved,
    window_lines: &'a WindowLines,
    window: LineWindow,
    limits: ReadLimits,
}

impl OpenFile<'_> {
    async fn read(&self, media: &dyn Media) -> Result<ReadContent, ReadError> {
        let display_path = self.path.display();
        // If the content and the name of a file suggest different formats, the content decides.
        let format = MediaFormat::of_content(&self.window_lines.sample)
            .or_else(|| MediaFormat::of_name(display_path));
        if let Some(format) = format {
            let bytes = self.ctx.files.read_whole(self.grant, self.path, MAX_MEDIA_BYTES).await?;
            return match media.decode(bytes.clone(), format).await {
                Ok(MediaContent::Picture(picture)) => Ok(ReadContent::Picture { format, picture }),
                Ok(MediaContent::Document(document)) => Ok(ReadContent::Lines(document_window(
                    &bytes,
                    &document,
                    self.window,
                    self.limits,
                ))),
                Err(reason) => Err(media::error(display_path, format, &bytes, reason)),
            };
        }
        if text::is_binary(display_path, self.window_lines) {
            let kind = text::binary_kind(display_path, self.window_lines);
            return Err(ReadError::Binary {
                display_path: display_path.into(),
                kind,
                size: self.window_lines.size,
            });
        }
        self.ctx.files.mark_seen(self.path, self.window_lines);
        if display_path.ends_with(".ipynb") && self.window_lines.size <= MAX_NOTEBOOK_BYTES {
            return self.notebook(media).await.map(ReadContent::Lines);
        }
        Ok(ReadContent::Lines(text::page(self.window_lines, self.limits)))
    }

    async fn notebook(&self, media: &dyn Media) -> Result<LinePage, ReadError> {
        let bytes = self.ctx.files.read_whole(self.grant, self.path, MAX_NOTEBOOK_BYTES).await?;
        let rendered = match notebook::render(&bytes) {
            Ok(rendered) => rendered,
            Err(why) => {
                let mut page = text::page(self.window_lines, self.limits);
                page.notes.push(PageNote::NotANotebook(why));
                return Ok(page);
            }
        };
        let mut page = LinePage::of_text(&rendered.text, self.window, self.limits);
        let (cells, language) = (rendered.cells, rendered.language);
        page.notes.push(PageNote::Notebook { cells, language });
        for (number, output) in (1..).zip(rendered.pictures) {
            if !(page.first..page.next()).contains(&output.line) {
                continue;
            }
            match media.decode(output.bytes, output.format).await {
                Ok(MediaContent::Picture(picture)) => {
                    page.attachments.push(media::attachment(picture))
                }
                Ok(MediaContent::Document(_)) => {}
                Err(reason) => page.notes.push(PageNote::PictureFailed { number, reason }),
            }
        }
        Ok(page)
    }
}

fn folder_page(
    path: &Resolved,
    listing: &DirListing,
    window: LineWindow,
) -> Result<FolderPage, ReadError> {
    let total = listing.entries.len() as u64 + listing.left_out;
    if window.first > total.max(1) {
        return Err(ReadError::NoSuchEntry { display_path: path.display().into(), total });
    }
    let skip = usize::try_from(window.first - 1).unwrap_or(usize::MAX);
    let take = usize::try_from(window.count).unwrap_or(usize::MAX);
    let entries = listing.entries.iter().skip(skip).take(take).map(|entry| FolderEntry {
        name: paths::display(entry.name.as_ref()).into_owned(),
        is_folder: entry.kind == FileKind::Folder,
    });
    Ok(FolderPage { first: window.first, entries: entries.collect(), total })
}
