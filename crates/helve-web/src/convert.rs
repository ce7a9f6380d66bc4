//! Converts the body of a response into text, by its content type and its content.

use encoding_rs::UTF_8;
use helve_core::web::{ConvertedPage, MainContent, PageFormat, PageKind, PageStyle, WebResponse};
use helve_text::visible;

use crate::charset;
use crate::feed;
use crate::html::{RenderOptions, render};
use crate::json;

/// Number of bytes at the start of a body that are examined to decide whether it is text.
const SAMPLE_BYTES: usize = 1024;

/// Converts a page. Never fails: what is not text is reported as such.
pub fn convert(page: &WebResponse, format: PageFormat) -> ConvertedPage {
    let mime = page.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if is_binary(&mime, &page.body) {
        return ConvertedPage { kind: PageKind::Binary, ..ConvertedPage::default() };
    }
    let decoded = charset::decode(&page.body, &page.content_type);
    let kind = page_kind(&mime, &decoded.text);
    let mut converted = ConvertedPage {
        kind,
        encoding: (decoded.encoding != UTF_8).then(|| decoded.encoding.name()),
        invalid_characters: decoded.invalid,
        ..ConvertedPage::default()
    };
    match (kind, format.style) {
        (_, PageStyle::Source) | (PageKind::Text | PageKind::Binary, _) => {
            converted.text = visible::escape_hidden(&decoded.text).into_owned();
        }
        (PageKind::Html, PageStyle::Markdown | PageStyle::Text) => {
            let options = RenderOptions {
                is_markdown: format.style == PageStyle::Markdown,
                main_only: format.main_only,
                base: &page.url,
            };
            let html = render(&decoded.text, &options);
            converted.text = html.text;
            converted.title = html.title.map(|title| visible::escape_hidden(&title).into_owned());
            converted.hidden = html.hidden;
            converted.is_flattened = html.is_flattened;
            converted.main = match (format.main_only, html.has_main) {
                (false, _) => MainContent::NotWanted,
                (true, true) => MainContent::Found,
                (true, false) => MainContent::NotFound,
            };
        }
        (PageKind::Json, _) => {
            let text = json::pretty(&decoded.text).unwrap_or(decoded.text);
            converted.text = visible::escape_hidden(&text).into_owned();
        }
        (PageKind::Feed | PageKind::Sitemap, _) => {
            (converted.title, converted.text) = feed::render(&decoded.text);
        }
    }
    converted
}

fn page_kind(mime: &str, text: &str) -> PageKind {
    let is_xml = mime.ends_with("/xml") || mime.ends_with("+xml");
    match mime {
        "text/html" | "application/xhtml+xml" => PageKind::Html,
        _ if mime.ends_with("/json") || mime.ends_with("+json") => PageKind::Json,
        "" if looks_like_html(text) => PageKind::Html,
        _ if is_xml || mime.is_empty() => match feed::kind_of(text) {
            Some(kind) => kind,
            None if is_xml && looks_like_html(text) => PageKind::Html,
            None => PageKind::Text,
        },
        _ => PageKind::Text,
    }
}

fn looks_like_html(text: &str) -> bool {
    let start = text.trim_start().get(..64).unwrap_or(text).trim_start().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.starts_with("<head")
}

/// Whether a body is not text.
fn is_binary(mime: &str, body: &[u8]) -> bool {
    let is_text_type = mime.starts_with("text/")
        || mime.ends_with("/json")
        || mime.ends_with("/xml")
        || mime.ends_with("+json")
        || mime.ends_with("+xml")
        || mime.contains("javascript")
        || mime.contains("yaml");
    let start = &body[..body.len().min(SAMPLE_BYTES)];
    let has_bom = encoding_rs::Encoding::for_bom(start).is_some();
    let control = start.iter().filter(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)).count();
    let looks_binary = !has_bom && (start.contains(&0) || control * 10 > start.len());
    let is_media = ["image/", "audio/", "video/", "font/"].iter().any(|it| mime.starts_with(it))
        && mime != "image/svg+xml";
    looks_binary || is_media && !is_text_type
}
