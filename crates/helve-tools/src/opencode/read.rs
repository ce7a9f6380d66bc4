//! `read`: a window of a file as text, a picture, or the names in a folder.

mod lines;
mod media;
mod notebook;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;
use std::time::Duration;

use helve_core::machine::{Listing, Window, Windowed};
use helve_core::media::{Format, Seen};
use helve_core::{
    Ask, ErrorKind, Grant, Kind, Media, Resolved, Tool, ToolContext, ToolError, ToolOutput, paths,
};
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

/// The largest picture or document that is loaded, and the largest notebook.
const MEDIA_BYTES: u64 = 64 << 20;
const NOTEBOOK_BYTES: u64 = 16 << 20;

pub(super) struct Read {
    pub(super) media: Arc<dyn Media>,
}

impl Tool for Read {
    type Args = Args;
    const NAME: &'static str = "read";
    const ABOUT: &'static str = include_str!("read.txt");

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = ctx.files.resolve(&args.file_path).await?;
        let grant = ctx.ask(Ask::to(path.reading())).await?;
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
                let got = ctx.files.window(&grant, &path, want).await?;
                let read = Reading { ctx, grant: &grant, path: &path, got: &got };
                read.say(&*self.media, media::Wanted { first, most }).await
            }
        }
    }
}

/// A file that may be read, with its first lines.
struct Reading<'a> {
    ctx: &'a ToolContext,
    grant: &'a Grant<'a>,
    path: &'a Resolved,
    got: &'a Windowed,
}

impl Reading<'_> {
    async fn say(&self, media: &dyn Media, wanted: media::Wanted) -> Result<ToolOutput, ToolError> {
        let shown = self.path.shown();
        // What a file holds counts for more than what it is called.
        let claim = Format::of_content(&self.got.sample).or_else(|| Format::of_name(shown));
        if let Some(format) = claim {
            let bytes = self.ctx.files.whole(self.grant, self.path, MEDIA_BYTES).await?;
            let seen = media.look(bytes.clone(), format).await;
            return media::say(shown, format, &bytes, seen, wanted);
        }
        if text::is_binary(shown, self.got) {
            return Err(text::binary(shown, self.got));
        }
        self.ctx.files.showed(self.path, self.got);
        if shown.ends_with(".ipynb") && self.got.size <= NOTEBOOK_BYTES {
            return self.notebook(media, wanted).await;
        }
        text::page(self.got).say(shown)
    }

    async fn notebook(
        &self,
        media: &dyn Media,
        wanted: media::Wanted,
    ) -> Result<ToolOutput, ToolError> {
        let shown = self.path.shown();
        let bytes = self.ctx.files.whole(self.grant, self.path, NOTEBOOK_BYTES).await?;
        let rendered = match notebook::render(&bytes) {
            Ok(rendered) => rendered,
            Err(why) => {
                let mut page = text::page(self.got);
                page.notes.push(format!("Not a valid notebook, so shown as text: {why}"));
                return page.say(shown);
            }
        };
        let mut page = lines::Page::of(&rendered.text, wanted.first, wanted.most);
        page.notes.push(rendered.about);
        let mut attached = Vec::new();
        for (number, drawn) in (1..).zip(rendered.pictures) {
            if !(page.first..page.next()).contains(&drawn.line) {
                continue;
            }
            match media.look(drawn.bytes, drawn.format).await {
                Ok(Seen::Picture(picture)) => attached.push(media::attached(&picture)),
                Ok(Seen::Document(_)) => {}
                Err(why) => page.notes.push(format!("Picture {number} cannot be shown: {why}")),
            }
        }
        let mut output = page.say(shown)?;
        output.content.extend(attached);
        Ok(output)
    }
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
        text.push_str(&format!("{}{slash}\n", paths::shown(entry.name.as_ref())));
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
    let wanted = paths::shown(real.file_name().unwrap_or_default().as_ref()).into_owned();
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
