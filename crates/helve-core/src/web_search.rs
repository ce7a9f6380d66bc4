//! Searches the web with the configured service, after asking.

use helve_policy::{Act, Ask, Part, Pattern};
use helve_text::url::WebUrl;

use crate::context::ToolContext;
use crate::web::{FetchError, SearchAnswer, SearchProvider, SearchQuery, WebError};

impl ToolContext {
    /// Returns a hash of the session id, which identifies the session without revealing its name.
    fn session_hash(&self) -> String {
        blake3::hash(self.session.id.as_bytes()).to_hex()[..16].to_string()
    }

    /// Searches the web. Asks for permission with the query as the subject. `preview` says where the query is sent to.
    pub async fn search_web(
        &self,
        mut query: SearchQuery,
        preview: impl FnOnce(&SearchProvider) -> String,
    ) -> Result<(SearchProvider, SearchAnswer), FetchError> {
        let web = self.session.workspace.web().cloned().ok_or(FetchError::NoWeb)?;
        let provider = web.search_provider(query.kind).ok_or(FetchError::NoWeb)?;
        let act = Act::Fetch { origin: provider.origin.clone(), local: None };
        let part = Part::new(query.kind.permission(), query.text.clone());
        let part = part.remember_as(Pattern::any());
        let ask = Ask::default().add(act.clone(), part).preview(preview(&provider));
        let grant = self.ask(ask).await?;
        if !grant.covers(&act) {
            return Err(self.words().not_granted().into());
        }
        query.session = self.session_hash();
        let failed = |error: WebError| match WebUrl::parse(&provider.origin) {
            Ok(url) => FetchError::Web { url: Box::new(url), error },
            Err(error) => FetchError::BadUrl(error),
        };
        let answer = tokio::select! {
            answer = web.search(query) => answer.map_err(failed)?,
            () = self.cancel.cancelled() => return Err(self.words().aborted().into()),
        };
        Ok((provider, answer))
    }
}
