//! Which proxy a request goes through, according to the usual environment variables.

use helve_text::url::WebUrl;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

/// Proxies for requests.
#[derive(Debug)]
pub struct ProxySettings(Option<Matcher>);

/// The proxy for one request.
pub(crate) struct ProxyChoice(Intercept);

impl ProxySettings {
    pub fn none() -> Self {
        Self(None)
    }

    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same names in lower case.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let find = |name: &str| {
            let found = variable(&name.to_lowercase()).or_else(|| variable(name));
            found.filter(|value| !value.trim().is_empty())
        };
        let all = find("ALL_PROXY");
        // A web server passes the header `Proxy` of its client as HTTP_PROXY to programs that it runs.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let http = if is_cgi { None } else { find("HTTP_PROXY") };
        let https = find("HTTPS_PROXY");
        if all.is_none() && http.is_none() && https.is_none() {
            return Self::none();
        }
        let mut builder = Matcher::builder();
        if let Some(proxy) = all {
            builder = builder.all(proxy);
        }
        if let Some(proxy) = http {
            builder = builder.http(proxy);
        }
        if let Some(proxy) = https {
            builder = builder.https(proxy);
        }
        Self(Some(builder.no(find("NO_PROXY").unwrap_or_default()).build()))
    }

    pub(crate) fn proxy_for(&self, url: &WebUrl) -> Option<ProxyChoice> {
        let uri = url.as_str().parse().ok()?;
        self.0.as_ref()?.intercept(&uri).map(ProxyChoice)
    }
}

impl ProxyChoice {
    /// Returns the proxy's URL without credentials.
    pub(crate) fn display(&self) -> String {
        let uri = self.0.uri();
        let host = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        format!("{}://{host}", uri.scheme_str().unwrap_or("http"))
    }

    pub(crate) fn to_reqwest(&self) -> Result<reqwest::Proxy, reqwest::Error> {
        let mut proxy = reqwest::Proxy::all(self.display())?;
        if let Some(authorization) = self.0.basic_auth() {
            proxy = proxy.custom_http_auth(authorization.clone());
        }
        Ok(proxy)
    }
}
