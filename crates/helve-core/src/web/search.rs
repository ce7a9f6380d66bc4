//! Queries to search services, and their answers.

use std::time::Duration;

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchKind {
    Web,
    /// Documentation and source code of libraries.
    Code,
}

impl SearchKind {
    /// The tool's permission key.
    pub fn permission(self) -> &'static str {
        match self {
            SearchKind::Web => "websearch",
            SearchKind::Code => "codesearch",
        }
    }
}

/// A configured search service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchProvider {
    /// Display name, such as `Exa`.
    pub name: &'static str,
    /// Where requests go: `https://mcp.exa.ai`.
    pub origin: String,
}

/// A query for a search service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    pub kind: SearchKind,
    pub text: String,
    pub max_results: usize,
    /// Maximum number of characters of all excerpts together.
    pub max_characters: Option<usize>,
    pub depth: SearchDepth,
    /// Whether the service should fetch pages live instead of using its cache, if it can.
    pub is_live: bool,
    /// Identifies the conversation, for services that want to know it.
    pub session: String,
    pub timeout: Duration,
}

/// How thorough a search is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchDepth {
    #[default]
    Auto,
    Fast,
    Deep,
}

/// What a search service found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchAnswer {
    Items(Vec<SearchItem>),
    /// Text that the service composed itself.
    Text(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchItem {
    pub title: String,
    pub url: String,
    pub date: Option<String>,
    pub excerpt: String,
}
