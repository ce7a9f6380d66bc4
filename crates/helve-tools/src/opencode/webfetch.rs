//! `webfetch`: fetches a web page.

use helve_core::ForeignParameters;
use std::sync::Arc;
use std::time::Duration;

use helve_core::web::{PageFormat, PageStyle};
use helve_core::{Content, Media, Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use helve_text::cut::Keep;
use schemars::JsonSchema;
use serde::Deserialize;

use super::foreign;
use crate::ops::read::{LineWindow, ReadLimits};
use crate::ops::web::{FetchContent, FetchRequest, FetchResult, fetch};
use crate::words::read::{format_name, page_note};
use crate::words::web::{enclose, fetch_failure, page_notes, question};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The address, starting with http:// or https://
    #[schemars(length(min = 1))]
    url: String,
    /// How a web page is shown, default markdown
    format: Option<Format>,
    /// Seconds, default 30, at most 120
    timeout: Option<f64>,
    /// First line to show, counted from 1
    offset: Option<u64>,
    /// Show only the main content of a web page, without its frame
    main: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    Text,
    Markdown,
    Html,
}

const MAX_LINES: u64 = 2000;
const LIMITS: ReadLimits = ReadLimits { line_chars: 2000, bytes: 48 << 10 };
const DEFAULT_SECONDS: f64 = 30.0;
const MAX_SECONDS: f64 = 120.0;

pub(super) struct WebFetch {
    pub(super) media: Arc<dyn Media>,
}

impl Tool for WebFetch {
    type Args = Args;
    const NAME: &'static str = "webfetch";
    const ABOUT: &'static str = include_str!("webfetch.txt");
    const FOREIGN: ForeignParameters = foreign::WEBFETCH;
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let style = match args.format {
            None | Some(Format::Markdown) => PageStyle::Markdown,
            Some(Format::Text) => PageStyle::Text,
            Some(Format::Html) => PageStyle::Source,
        };
        let seconds = args.timeout.filter(|seconds| *seconds > 0.0).unwrap_or(DEFAULT_SECONDS);
        let request = FetchRequest {
            url: &args.url,
            format: PageFormat { style, main_only: args.main.unwrap_or(false) },
            timeout: Duration::from_secs_f64(seconds.clamp(0.1, MAX_SECONDS)),
            window: LineWindow { first: args.offset.unwrap_or(1).max(1), count: MAX_LINES },
            limits: LIMITS,
        };
        fetch(ctx, &*self.media, request, question).await.map(answer).map_err(fetch_failure)
    }
}

fn answer(result: FetchResult) -> ToolOutput {
    let FetchResult { page, content } = result;
    let url = page.response.url.to_string();
    let mime = page.response.content_type.split(';').next().unwrap_or_default().trim();
    let title = if mime.is_empty() { url.clone() } else { format!("{url} ({mime})") };
    let (lines, page_info, saved) = match content {
        FetchContent::Picture { format, picture } => {
            let size = format!("{} × {} pixels", picture.size.width, picture.size.height);
            let text = format!("{}, {size}, from {url}. It is attached.", format_name(format));
            let mut output = ToolOutput::text(title, text);
            output.content.push(Content::Media { mime: picture.mime.into(), data: picture.bytes });
            return output;
        }
        FetchContent::Text { lines, page_info, saved } => (lines, page_info, saved),
    };
    let mut text = String::new();
    if let Some(title) = page_info.title.as_ref().filter(|_| lines.first == 1) {
        text.push_str(&format!("Title: {title}\n\n"));
    }
    for line in &lines.lines {
        text.push_str(&line.text);
        text.push_str(if line.is_cut { " … (line cut at 2000 characters)\n" } else { "\n" });
    }
    let mut text = enclose(&url, text.trim_end());
    let mut notes = page_notes(&page, &page_info);
    notes.extend(lines.notes.iter().map(page_note));
    if lines.lines.is_empty() {
        notes.push("The page has no text".into());
    }
    if lines.has_more || lines.first > 1 {
        let last = lines.next() - 1;
        let more = if lines.has_more {
            format!(". Use offset={} to continue", last + 1)
        } else {
            String::new()
        };
        notes.push(format!("Lines {}-{last} of {}{more}", lines.first, lines.total.seen()));
    }
    if let Some(saved) = &saved {
        notes.push(format!("The whole text is saved in {}", saved.path.display()));
    }
    for note in notes {
        text.push_str(&format!("\n({note}.)"));
    }
    let mut output =
        ToolOutput::text(title, text).keep(Keep::All).with_metadata("truncated", lines.has_more);
    output.saved = saved;
    let attached = lines.attachments.into_iter();
    output.content.extend(attached.map(|each| Content::Media { mime: each.mime, data: each.data }));
    output
}
