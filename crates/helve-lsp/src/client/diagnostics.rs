//! Waits for the diagnostics of a document. Some servers publish them by themselves (push), others must be asked for
//! them (pull).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Client;
use crate::connection::{Published, RequestError};
use crate::wire::{DiagnosticList, MAX_DIAGNOSTICS, PullResult, ResponseError, ServerDiagnostic};
use helve_text::file_uri;

/// How long published diagnostics that name the document's version must stay the same before they count as complete.
/// Some servers publish syntax errors first and other errors later.
const SETTLE_VERSIONED: Duration = Duration::from_millis(30);
/// Like [`SETTLE_VERSIONED`], for diagnostics that do not name the document's version.
const SETTLE_UNVERSIONED: Duration = Duration::from_millis(150);
/// Like [`SETTLE_VERSIONED`], for a server that was still loading when it published an empty list.
const SETTLE_LOADED: Duration = Duration::from_millis(500);
/// How many times a busy server is asked for its diagnostics before its answer is accepted even though it is busy.
/// There is a limit because some servers report progress while they answer, and so always seem to be busy.
const MAX_ATTEMPTS_WHILE_BUSY: usize = 2;
/// The command of typescript-language-server that passes a request to tsserver. The diagnostics that
/// typescript-language-server publishes come late, have no version, and are not published again if there are still
/// none.
const TSSERVER_REQUEST: &str = "typescript.tsserverRequest";
/// The method that asks a server for diagnostics.
const PULL_METHOD: &str = "textDocument/diagnostic";
/// Error codes after which a request is sent again: `ContentModified` and `ServerCancelled`.
const RETRY_CODES: [i64; 2] = [-32801, -32802];
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// A version of a document that was sent to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentVersion {
    pub(super) version: i64,
    /// The sequence number of the last message that the server had sent before it got this version. Diagnostics with a
    /// higher number are newer.
    pub(super) sequence: u64,
}

impl SentVersion {
    /// Whether published diagnostics belong to this version or a later one.
    fn is_answered_by(self, published: &Published) -> bool {
        match published.version {
            Some(version) => version >= self.version && published.sequence > self.sequence,
            None => published.sequence > self.sequence,
        }
    }
}

impl Client {
    /// Waits for the diagnostics of a document in the version that was sent. Returns `None` if the server ended.
    ///
    /// While a server is loading, it may report an empty list. Such a list counts only once the server is ready.
    pub(super) async fn diagnostics(
        &self,
        path: &Path,
        sent: SentVersion,
    ) -> Option<Vec<ServerDiagnostic>> {
        let mut min_settle = Duration::ZERO;
        for _ in 0..MAX_ATTEMPTS_WHILE_BUSY {
            let finished_before = self.connection.state.finished_count();
            let found = self.reported_diagnostics(path, sent, min_settle).await?;
            let was_busy = finished_before != self.connection.state.finished_count();
            if !found.is_empty() || !(was_busy || self.is_busy()) {
                return Some(found);
            }
            self.wait_until_ready().await;
            if self.has_ended() {
                return None;
            }
            min_settle = SETTLE_LOADED;
        }
        self.reported_diagnostics(path, sent, min_settle).await
    }

    /// Returns the diagnostics that the server reports for a version of a document, even if it is still loading.
    /// Published diagnostics must stay the same for at least `min_settle`.
    async fn reported_diagnostics(
        &self,
        path: &Path,
        sent: SentVersion,
        min_settle: Duration,
    ) -> Option<Vec<ServerDiagnostic>> {
        if self.has_tsserver_request() {
            return self.tsserver_diagnostics(path).await;
        }
        match self.pull_diagnostics(path).await {
            Some(mut pulled) => {
                let published = self.connection.state.published(path);
                let is_new = |it: &&Arc<Published>| sent.is_answered_by(it);
                for diagnostic in published.iter().filter(is_new).flat_map(|it| &it.diagnostics) {
                    if !pulled.contains(diagnostic) {
                        pulled.push(diagnostic.clone());
                    }
                }
                Some(pulled)
            }
            None => tokio::select! {
                published = self.wait_for_published(path, sent, min_settle) => published,
                // Some servers announce only after initialization that they can be asked.
                () = self.wait_for_pull_support(), if !self.can_pull() => self.pull_diagnostics(path).await,
            },
        }
    }

    /// Whether the server can be asked for diagnostics.
    fn can_pull(&self) -> bool {
        self.capabilities["diagnosticProvider"].is_object()
            || self.connection.state.registered(PULL_METHOD).is_some()
    }

    /// Waits until the server announces that it can be asked for diagnostics.
    async fn wait_for_pull_support(&self) {
        let mut changes = self.connection.state.changes();
        while !self.can_pull() && changes.changed().await.is_ok() {}
    }

    fn has_tsserver_request(&self) -> bool {
        let commands = self.capabilities["executeCommandProvider"]["commands"].as_array();
        commands.is_some_and(|commands| commands.iter().any(|it| it == TSSERVER_REQUEST))
    }

    async fn tsserver_diagnostics(&self, path: &Path) -> Option<Vec<ServerDiagnostic>> {
        let file = path.to_string_lossy();
        let ask = async |request: &str| {
            let arguments = json!([request, {"file": file}]);
            let params = json!({"command": TSSERVER_REQUEST, "arguments": arguments});
            let answer = self.request("workspace/executeCommand", params).await.ok()?;
            let list = answer["body"].as_array()?.iter();
            let list = list.filter_map(ServerDiagnostic::parse_tsserver);
            Some(list.take(MAX_DIAGNOSTICS).collect::<Vec<_>>())
        };
        let mut all = ask("syntacticDiagnosticsSync").await?;
        all.extend(ask("semanticDiagnosticsSync").await?);
        Some(all)
    }

    /// Asks the server for diagnostics. Returns `None` if it does not support that, or answers with an error.
    async fn pull_diagnostics(&self, path: &Path) -> Option<Vec<ServerDiagnostic>> {
        if !self.can_pull() {
            return None;
        }
        let registered = self.connection.state.registered(PULL_METHOD);
        let provider = &self.capabilities["diagnosticProvider"];
        let options = registered.as_ref().unwrap_or(provider);
        let mut params = json!({"textDocument": {"uri": file_uri::from_path(path)}});
        if options["identifier"].is_string() {
            params["identifier"] = options["identifier"].clone();
        }
        loop {
            let result = self.connection.request(PULL_METHOD, params.clone()).await;
            match result {
                Ok(result) => {
                    let parsed = serde_json::from_str::<Option<PullResult>>(result.get()).ok();
                    let DiagnosticList(items) = parsed.flatten()?.items;
                    return Some(items);
                }
                Err(RequestError::Response(ResponseError { code, .. }))
                    if RETRY_CODES.contains(&code) =>
                {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Err(_) => return None,
            }
        }
    }

    /// Waits until the server has published diagnostics for a version and does not replace them soon after.
    async fn wait_for_published(
        &self,
        path: &Path,
        sent: SentVersion,
        min_settle: Duration,
    ) -> Option<Vec<ServerDiagnostic>> {
        let state = &self.connection.state;
        let mut changes = state.changes();
        loop {
            let published = state.published(path).filter(|it| sent.is_answered_by(it));
            let Some(published) = published else {
                if state.end_reason().is_some() {
                    return None;
                }
                changes.changed().await.ok()?;
                continue;
            };
            let settle = match published.version {
                Some(_) => SETTLE_VERSIONED,
                None => SETTLE_UNVERSIONED,
            };
            let replacement = async {
                loop {
                    if changes.changed().await.is_err() {
                        return std::future::pending().await;
                    }
                    let latest = state.published(path);
                    if latest.is_some_and(|latest| latest.sequence != published.sequence) {
                        return;
                    }
                }
            };
            if tokio::time::timeout(settle.max(min_settle), replacement).await.is_err() {
                return Some(published.diagnostics.clone());
            }
        }
    }
}
