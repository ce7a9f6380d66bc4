//! Sets up the web client from the configuration.

use std::ffi::OsString;
use std::sync::Arc;

use helve_core::Web;
use helve_core::web::SearchKind;
use helve_ext::config::WebSection;

/// Returns the web client, and the kinds of search that are configured.
#[cfg(feature = "web")]
pub(crate) fn client(
    config: &WebSection,
    environment: &[(OsString, OsString)],
) -> (Option<Arc<dyn Web>>, Vec<SearchKind>) {
    use helve_web::{ProxySettings, TrustedRoots, WebClient, WebSetup};

    let variable = |name: &str| {
        let found = environment.iter().find(|(variable, _)| variable.to_str() == Some(name));
        found.and_then(|(_, value)| value.to_str()).map(String::from)
    };
    let mut roots = TrustedRoots::system();
    for file in &config.ca {
        // Does not fail: files without valid certificates were rejected when the configuration was read.
        roots.add_pem(&file.pem).ok();
    }
    let web_search = service(&config.search);
    let code_search = service(&config.code_search);
    let configured = [(SearchKind::Web, &web_search), (SearchKind::Code, &code_search)];
    let searches = configured.into_iter().filter(|(_, it)| it.is_some()).map(|(kind, _)| kind);
    let searches = searches.collect();
    let client = WebClient::new(WebSetup {
        proxies: ProxySettings::from_environment(variable),
        roots,
        web_search,
        code_search,
        ..WebSetup::default()
    });
    (Some(Arc::new(client)), searches)
}

/// Returns a configured search service; `None` if none is configured.
#[cfg(feature = "web")]
fn service(config: &helve_ext::config::SearchConfig) -> Option<helve_web::SearchService> {
    let kind = helve_web::ServiceKind::named(&config.provider.as_ref()?.value)?;
    let url = config.url.as_ref().and_then(|url| helve_text::url::WebUrl::parse(url).ok());
    let key = config.key.as_ref().map(|key| key.value.clone());
    helve_web::SearchService::new(kind, url, key)
}

/// Returns no web client, because the feature `web` is off.
#[cfg(not(feature = "web"))]
pub(crate) fn client(
    _config: &WebSection,
    _environment: &[(OsString, OsString)],
) -> (Option<Arc<dyn Web>>, Vec<SearchKind>) {
    (None, Vec::new())
}
