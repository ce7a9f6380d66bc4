//! Fetches a page: asks, sends, asks again if the host turns out to be in the local network, follows redirects.

use std::sync::Arc;

use helve_policy::{Act, Action, AddressAccess, AddressKind, Ask, Part, Verdict};
use helve_text::url::{WebHost, WebScheme, WebUrl};

use crate::context::ToolContext;
use crate::gate::Grant;
use crate::web::{
    CacheKey, ConvertedPage, FetchError, FetchedPage, LocalTarget, PageFormat, PageRequest, Route,
    Web, WebError, WebRequest, WebResponse,
};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 10;

impl ToolContext {
    /// Fetches a page. `preview` returns the text that is shown to the person with the URL.
    ///
    /// The call asks once, for the URL, before anything is sent. It asks again only if the name then resolves to an
    /// address in the local network, or if a redirect leads to a URL that another rule decides on.
    pub async fn fetch(
        &self,
        request: PageRequest,
        preview: impl Fn(&WebUrl, &Route) -> String + Send,
    ) -> Result<FetchedPage, FetchError> {
        let web = self.session.workspace.web().cloned().ok_or(FetchError::NoWeb)?;
        let fetch = Fetch { ctx: self, web: &*web, request: &request, preview: &preview };
        let (grant, verdict) = fetch.ask(&request.url).await?;
        let key = CacheKey {
            session: self.session.id.clone(),
            url: request.url.to_string(),
            accept: request.accept,
        };
        let cache = self.session.workspace.page_cache();
        if let Some(page) = cache.get(&key) {
            return Ok(page);
        }
        let running = fetch.follow(grant, verdict);
        let page = tokio::select! {
            page = running => page?,
            () = self.cancel.cancelled() => return Err(self.words().aborted().into()),
        };
        if (200..300).contains(&page.response.status) {
            cache.put(key, &page);
        }
        Ok(page)
    }

    /// Converts a fetched page into text.
    pub async fn convert_page(&self, page: &Arc<WebResponse>, format: PageFormat) -> ConvertedPage {
        match self.session.workspace.web() {
            Some(web) => web.convert(page.clone(), format).await,
            None => ConvertedPage::default(),
        }
    }
}

/// The fetch of one page, in progress.
struct Fetch<'a, Q> {
    ctx: &'a ToolContext,
    web: &'a dyn Web,
    request: &'a PageRequest,
    preview: &'a Q,
}

/// Whether a URL leads into the local network, as far as that is known before its name is resolved.
enum LocalCheck {
    /// The URL has a public address, or a name that has to be resolved first.
    NotKnownToBeLocal,
    /// The host is in the local network. `address` is its address, or its name if the address is not known.
    Local { address: String, target: LocalTarget },
}

impl<'a, Q: Fn(&WebUrl, &Route) -> String> Fetch<'a, Q> {
    /// Asks for permission to fetch a URL. Also returns the verdict, for comparison with those on redirects.
    async fn ask(&self, url: &WebUrl) -> Result<(Grant<'a>, Verdict), FetchError> {
        let part = match check_local(url, &self.web.route(url))? {
            LocalCheck::NotKnownToBeLocal => Part::for_url(url),
            LocalCheck::Local { address, .. } => Part::for_local_url(url, address),
        };
        let verdict = self.ctx.session.gate.judge(&part).await;
        Ok((self.ask_for(url, part).await?, verdict))
    }

    /// Asks for permission to fetch a URL, under the given part.
    async fn ask_for(&self, url: &WebUrl, part: Part) -> Result<Grant<'a>, FetchError> {
        let local = part.local_address().map(String::from);
        let act = Act::Fetch { origin: url.origin().into(), local };
        let preview = (self.preview)(url, &self.web.route(url));
        Ok(self.ctx.ask(Ask::default().add(act, part).preview(preview)).await?)
    }

    /// Sends the request, and follows redirects. `verdict` is the one on the first URL.
    async fn follow(
        &self,
        mut grant: Grant<'a>,
        verdict: Verdict,
    ) -> Result<FetchedPage, FetchError> {
        let deadline = tokio::time::Instant::now() + self.request.timeout;
        let mut url = self.request.url.clone();
        let mut redirected_from = Vec::new();
        loop {
            let response = self.send(&grant, &url, deadline).await?;
            let Some(location) = redirect_target(&response) else {
                let response = Arc::new(response);
                return Ok(FetchedPage { response, redirected_from, age: None });
            };
            let next = check_redirect(&url, &location)?;
            redirected_from.push(std::mem::replace(&mut url, next));
            if redirected_from.len() > MAX_REDIRECTS {
                return Err(FetchError::TooManyRedirects {
                    url: Box::new(self.request.url.clone()),
                });
            }
            grant = self.ask_for_redirect(grant, &url, &verdict).await?;
        }
    }

    /// Asks about the target of a redirect. Does not ask if the grant covers the target and, in addition, a rule allows
    /// it or the rule that decided on the first URL decides on it too.
    async fn ask_for_redirect(
        &self,
        grant: Grant<'a>,
        url: &WebUrl,
        verdict: &Verdict,
    ) -> Result<Grant<'a>, FetchError> {
        let part = Part::for_url(url);
        let next = self.ctx.session.gate.judge(&part).await;
        let same_rule_decides = next.action == verdict.action && next.rule == verdict.rule;
        let covers = |local: Option<String>| {
            grant.covers(&Act::Fetch { origin: url.origin().into(), local })
        };
        let local_address = match check_local(url, &self.web.route(url))? {
            LocalCheck::Local { address, .. } => Some(address),
            LocalCheck::NotKnownToBeLocal => None,
        };
        if (next.action == Action::Allow || same_rule_decides) && covers(local_address) {
            return Ok(grant);
        }
        Ok(self.ask(url).await?.0)
    }

    /// Sends a request. If the name leads into the local network, asks about that first.
    async fn send(
        &self,
        grant: &Grant<'a>,
        url: &WebUrl,
        deadline: tokio::time::Instant,
    ) -> Result<WebResponse, FetchError> {
        let local = match check_local(url, &self.web.route(url))? {
            LocalCheck::Local { address, target } => {
                self.require_grant(grant, url, Some(address))?;
                Some(target)
            }
            LocalCheck::NotKnownToBeLocal => {
                self.require_grant(grant, url, None)?;
                None
            }
        };
        let address = match self.web.send(self.web_request(url, local, deadline)).await {
            Err(WebError::LocalNetwork { address, .. }) => address,
            outcome => return outcome.map_err(|error| self.error(url, error)),
        };
        let part = Part::for_local_url(url, address.to_string());
        // Time that a person needs for the answer does not count.
        let asked = tokio::time::Instant::now();
        self.ask_for(url, part).await?;
        let deadline = deadline + asked.elapsed();
        let request = self.web_request(url, Some(LocalTarget::Address(address)), deadline);
        self.web.send(request).await.map_err(|error| self.error(url, error))
    }

    /// Fails unless the grant covers fetching this URL.
    fn require_grant(
        &self,
        grant: &Grant<'a>,
        url: &WebUrl,
        local: Option<String>,
    ) -> Result<(), FetchError> {
        let act = Act::Fetch { origin: url.origin().into(), local };
        match grant.covers(&act) {
            true => Ok(()),
            false => Err(self.ctx.words().not_granted().into()),
        }
    }

    fn web_request(
        &self,
        url: &WebUrl,
        local: Option<LocalTarget>,
        deadline: tokio::time::Instant,
    ) -> WebRequest {
        WebRequest {
            url: url.clone(),
            accept: self.request.accept,
            timeout: deadline.saturating_duration_since(tokio::time::Instant::now()),
            max_bytes: self.request.max_bytes,
            local,
        }
    }

    fn error(&self, url: &WebUrl, error: WebError) -> FetchError {
        let error = match error {
            // Reports the whole timeout, not what was left of it after redirects.
            WebError::TimedOut(_) => WebError::TimedOut(self.request.timeout),
            error => error,
        };
        FetchError::Web { url: Box::new(url.clone()), error }
    }
}

/// Checks whether a URL leads into the local network, without resolving its name. Forbidden addresses are an error.
fn check_local(url: &WebUrl, route: &Route) -> Result<LocalCheck, FetchError> {
    let (kind, target) = match (url.host(), route) {
        (WebHost::Address(address), _) => {
            (Some(AddressKind::of(*address)), LocalTarget::Address(*address))
        }
        (WebHost::Name(name), Route::Proxy(_)) => (AddressKind::of_name(name), LocalTarget::Named),
        // Without a proxy, the addresses that a name resolves to are checked later; only names of this machine, such as
        // `localhost`, are recognized here.
        (WebHost::Name(name), Route::Direct) => {
            let is_loopback = |kind: &AddressKind| *kind == AddressKind::Loopback;
            (AddressKind::of_name(name).filter(is_loopback), LocalTarget::Named)
        }
    };
    let Some(kind) = kind else { return Ok(LocalCheck::NotKnownToBeLocal) };
    match kind.access() {
        AddressAccess::Allowed => Ok(LocalCheck::NotKnownToBeLocal),
        AddressAccess::AskUnlessRuleNamesHost => {
            let address = match &target {
                LocalTarget::Address(address) => address.to_string(),
                LocalTarget::Named => url.host().to_string(),
            };
            Ok(LocalCheck::Local { address, target })
        }
        AddressAccess::Refused => {
            let (host, address) = (url.host().to_string(), url.host().to_string());
            let error = WebError::ForbiddenAddress { host, address, kind };
            Err(FetchError::Web { url: Box::new(url.clone()), error })
        }
    }
}

fn redirect_target(response: &WebResponse) -> Option<String> {
    match response.status {
        301 | 302 | 303 | 307 | 308 => response.location.clone(),
        _ => None,
    }
}

/// Returns the target of a redirect, if it may be followed: the same host, and not from `https` to `http`.
fn check_redirect(from: &WebUrl, location: &str) -> Result<WebUrl, FetchError> {
    let to = from.join(location).map_err(|error| FetchError::BadRedirect {
        from: Box::new(from.clone()),
        location: location.into(),
        error,
    })?;
    let schemes = (from.scheme(), to.scheme());
    let has_default_ports = [from, &to].iter().all(|url| matches!(url.port(), 80 | 443));
    if from.host() == to.host() && schemes == (WebScheme::Https, WebScheme::Http) {
        return Err(FetchError::Downgrade { from: Box::new(from.clone()), to: Box::new(to) });
    }
    let is_upgrade = schemes == (WebScheme::Http, WebScheme::Https) && has_default_ports;
    if from.host() != to.host() || from.port() != to.port() && !is_upgrade {
        return Err(FetchError::OtherHost { from: Box::new(from.clone()), to: Box::new(to) });
    }
    Ok(to)
}
