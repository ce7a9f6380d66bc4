//! `websearch`: searches the web.

use helve_core::ForeignParameters;
use std::time::Duration;

use helve_core::web::{SearchAnswer, SearchDepth, SearchKind, SearchProvider, SearchQuery};
use helve_core::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::foreign;
use crate::ops::web::search;
use crate::words::web::{enclose, fetch_error, search_question, search_results};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// What to search for
    #[schemars(length(min = 1))]
    query: String,
    /// Number of results, default 8, at most 20
    num_results: Option<usize>,
    /// Whether pages are fetched anew: only if needed (fallback, the default) or if possible (preferred)
    livecrawl: Option<Livecrawl>,
    /// How thorough the search is, default auto
    r#type: Option<Depth>,
    /// Maximum number of characters of all excerpts
    context_max_characters: Option<usize>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Livecrawl {
    Fallback,
    Preferred,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Depth {
    Auto,
    Fast,
    Deep,
}

const DEFAULT_RESULTS: usize = 8;
const MAX_RESULTS: usize = 20;
const DEFAULT_CHARACTERS: usize = 10_000;
const MAX_CHARACTERS: usize = 50_000;
pub(super) const TIMEOUT: Duration = Duration::from_secs(25);

pub(super) struct WebSearch;

impl Tool for WebSearch {
    type Args = Args;
    const NAME: &'static str = "websearch";
    const ABOUT: &'static str = include_str!("websearch.txt");
    const FOREIGN: ForeignParameters = foreign::WEBSEARCH;
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let characters = args.context_max_characters.unwrap_or(DEFAULT_CHARACTERS);
        let query = SearchQuery {
            kind: SearchKind::Web,
            text: args.query.clone(),
            max_results: args.num_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS),
            max_characters: Some(characters.clamp(1, MAX_CHARACTERS)),
            depth: match args.r#type {
                None | Some(Depth::Auto) => SearchDepth::Auto,
                Some(Depth::Fast) => SearchDepth::Fast,
                Some(Depth::Deep) => SearchDepth::Deep,
            },
            is_live: args.livecrawl == Some(Livecrawl::Preferred),
            session: String::new(),
            timeout: TIMEOUT,
        };
        let (provider, found) = search(ctx, query, search_question).await.map_err(fetch_error)?;
        Ok(answer("Web Search", &args.query, &provider, &found))
    }
}

pub(super) fn answer(
    what: &str,
    query: &str,
    provider: &SearchProvider,
    found: &SearchAnswer,
) -> ToolOutput {
    let text = match search_results(found) {
        Some(results) => enclose(&provider.origin, &results),
        None => "No search results found. Please try a different query.".into(),
    };
    ToolOutput::text(format!("{} {what}: {query}", provider.name), text)
        .with_metadata("provider", provider.name)
}
