//! Fetches web pages and searches the web.

use std::sync::Arc;
use std::time::Duration;

use helve_core::media::{MediaContent, MediaError, MediaFormat, Picture};
use helve_core::web::{
    ConvertedPage, FetchError, FetchedPage, PageFormat, PageKind, PageRequest, PageStyle, Route,
    SearchAnswer, SearchProvider, SearchQuery, WebResponse,
};
use helve_core::{Media, Saved, ToolContext};
use helve_text::url::WebUrl;

use super::read::lines::LinePage;
use super::read::{LineWindow, ReadLimits, document_window, notebook_text};

/// Maximum size of a decompressed body in bytes.
pub(crate) const MAX_BODY: usize = 5 << 20;

/// A page to fetch.
pub(crate) struct FetchRequest<'a> {
    pub(crate) url: &'a str,
    pub(crate) format: PageFormat,
    pub(crate) timeout: Duration,
    pub(crate) window: LineWindow,
    pub(crate) limits: ReadLimits,
}

/// A page that was fetched.
pub(crate) struct FetchResult {
    pub(crate) page: FetchedPage,
    pub(crate) content: FetchContent,
}

pub(crate) enum FetchContent {
    Text {
        lines: LinePage,
        /// The page without its text.
        page_info: ConvertedPage,
        /// Where the whole text is, if only a part of it is shown.
        saved: Option<Saved>,
    },
    Picture {
        format: MediaFormat,
        picture: Picture,
    },
}

/// Why a page is not shown.
pub(crate) enum FetchFailure {
    Fetch(FetchError),
    /// The server answered with an error. `text` is the start of what it said.
    Status {
        url: WebUrl,
        status: u16,
        text: String,
    },
    /// The body is neither text nor a picture or document.
    Binary {
        url: WebUrl,
        content_type: String,
        size: usize,
    },
    Undecodable {
        url: WebUrl,
        format: MediaFormat,
        reason: MediaError,
    },
    NoSuchLine {
        url: WebUrl,
        line: u64,
        total: u64,
    },
}

impl From<FetchError> for FetchFailure {
    fn from(error: FetchError) -> Self {
        FetchFailure::Fetch(error)
    }
}

/// Fetches a page. `question` returns the text of the question to the person.
pub(crate) async fn fetch(
    ctx: &ToolContext,
    media: &dyn Media,
    request: FetchRequest<'_>,
    question: fn(&WebUrl, &Route) -> String,
) -> Result<FetchResult, FetchFailure> {
    let url = WebUrl::parse(request.url).map_err(FetchError::BadUrl)?;
    let page_request = PageRequest {
        url,
        accept: accept_header(request.format.style),
        timeout: request.timeout,
        max_bytes: MAX_BODY,
    };
    let page = ctx.fetch(page_request, question).await?;
    let response = page.response.clone();
    if !(200..300).contains(&response.status) {
        let format = PageFormat { style: PageStyle::Text, main_only: false };
        let text = ctx.convert_page(&response, format).await.text;
        let (url, status) = (response.url.clone(), response.status);
        return Err(FetchFailure::Status { url, status, text });
    }
    let content = match media_content(media, &response, &request).await? {
        Some(content) => content,
        None => text_content(ctx, &response, &request).await?,
    };
    if let FetchContent::Text { lines, .. } = &content
        && lines.lines.is_empty()
        && lines.first > 1
    {
        let (url, line, total) = (response.url.clone(), lines.first, lines.total.seen());
        return Err(FetchFailure::NoSuchLine { url, line, total });
    }
    Ok(FetchResult { page, content })
}

fn accept_header(style: PageStyle) -> &'static str {
    match style {
        PageStyle::Markdown => {
            "text/markdown;q=1.0, text/x-markdown;q=0.9, text/html;q=0.8, text/plain;q=0.8, */*;q=0.1"
        }
        PageStyle::Text => "text/plain;q=1.0, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
        PageStyle::Source => {
            "text/html;q=1.0, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1"
        }
    }
}

/// Decodes pictures, documents and notebooks; `None` for everything else.
async fn media_content(
    media: &dyn Media,
    response: &Arc<WebResponse>,
    request: &FetchRequest<'_>,
) -> Result<Option<FetchContent>, FetchFailure> {
    let Some(format) = MediaFormat::of_content(&response.body) else {
        let is_notebook = response.url.path().ends_with(".ipynb")
            || response.content_type.starts_with("application/x-ipynb+json");
        let text = is_notebook.then(|| notebook_text(&response.body)).flatten();
        return Ok(text.map(|text| FetchContent::Text {
            lines: LinePage::of_text(&text, request.window, request.limits),
            page_info: ConvertedPage { text, ..ConvertedPage::default() },
            saved: None,
        }));
    };
    match media.decode(response.body.clone(), format).await {
        Ok(MediaContent::Picture(picture)) => Ok(Some(FetchContent::Picture { format, picture })),
        Ok(MediaContent::Document(document)) => {
            let lines = document_window(&response.body, &document, request.window, request.limits);
            Ok(Some(FetchContent::Text { lines, page_info: ConvertedPage::default(), saved: None }))
        }
        Err(reason) => Err(FetchFailure::Undecodable { url: response.url.clone(), format, reason }),
    }
}

async fn text_content(
    ctx: &ToolContext,
    response: &Arc<WebResponse>,
    request: &FetchRequest<'_>,
) -> Result<FetchContent, FetchFailure> {
    let mut converted = ctx.convert_page(response, request.format).await;
    if converted.kind == PageKind::Binary {
        return Err(FetchFailure::Binary {
            url: response.url.clone(),
            content_type: response.content_type.clone(),
            size: response.body.len(),
        });
    }
    let lines = LinePage::of_text(&converted.text, request.window, request.limits);
    let is_partial = lines.has_more || lines.first > 1 || lines.lines.iter().any(|it| it.is_cut);
    let saved = match is_partial {
        true => ctx.save_output(&converted.text).await,
        false => None,
    };
    // Only the lines are shown, so the whole text is not kept.
    converted.text = String::new();
    Ok(FetchContent::Text { lines, page_info: converted, saved })
}

/// Searches the web. `preview` returns the text of the question to the person.
pub(crate) async fn search(
    ctx: &ToolContext,
    query: SearchQuery,
    preview: fn(&SearchProvider) -> String,
) -> Result<(SearchProvider, SearchAnswer), FetchError> {
    ctx.search_web(query, preview).await
}
