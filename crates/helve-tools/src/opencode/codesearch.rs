//! `codesearch`: searches documentation and source code of libraries.

use helve_core::ForeignParameters;
use helve_core::web::{SearchDepth, SearchKind, SearchQuery};
use helve_core::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::foreign;
use super::websearch::{TIMEOUT, answer};
use crate::ops::web::search;
use crate::words::web::{fetch_error, search_question};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The library, API or programming question
    #[schemars(length(min = 1))]
    query: String,
    /// Length of the answer in tokens, 1000 to 50000, default 5000
    tokens_num: Option<usize>,
}

const DEFAULT_TOKENS: usize = 5000;
const MIN_TOKENS: usize = 1000;
const MAX_TOKENS: usize = 50_000;
/// About how many characters a token has.
const TOKEN_CHARACTERS: usize = 4;

pub(super) struct CodeSearch;

impl Tool for CodeSearch {
    type Args = Args;
    const NAME: &'static str = "codesearch";
    const ABOUT: &'static str = include_str!("codesearch.txt");
    const FOREIGN: ForeignParameters = foreign::WEBSEARCH;
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let tokens = args.tokens_num.unwrap_or(DEFAULT_TOKENS).clamp(MIN_TOKENS, MAX_TOKENS);
        let query = SearchQuery {
            kind: SearchKind::Code,
            text: args.query.clone(),
            max_results: 20,
            max_characters: Some(tokens * TOKEN_CHARACTERS),
            depth: SearchDepth::Auto,
            is_live: false,
            session: String::new(),
            timeout: TIMEOUT,
        };
        let (provider, found) = search(ctx, query, search_question).await.map_err(fetch_error)?;
        Ok(answer("Code Search", &args.query, &provider, &found))
    }
}
