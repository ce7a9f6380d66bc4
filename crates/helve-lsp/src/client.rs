//! One language server: its start, the documents that it has open, and their diagnostics.

mod check;
mod diagnostics;
mod initialize;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use helve_text::position::{ColumnUnit, LineIndex, single_edit};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::connection::{Connection, RequestError};
use crate::wire::ServerDiagnostic;
pub(crate) use check::{Checked, CheckedFile, CheckedText, FileToCheck, OtherFile};
use diagnostics::SentVersion;
use helve_text::file_uri;
use initialize::initialize;

/// Maximum number of documents that a server has open. The least recently used ones are closed.
const MAX_DOCUMENTS: usize = 40;
/// How long a server may take to start.
const START_TIME: Duration = Duration::from_secs(60);
/// How long the first question waits for the server to check a file.
const PREPARE_TIME: Duration = Duration::from_secs(15);
/// How long a server may take to shut down before its process is ended.
const SHUTDOWN_TIME: Duration = Duration::from_millis(500);
/// A server is ended if this many checks in a row are not answered and it sends no message at all during them.
const MAX_UNANSWERED: u32 = 3;

/// What [`Client::start`] needs.
pub(crate) struct ClientSetup {
    pub(crate) server: String,
    pub(crate) root: PathBuf,
    /// The `initializationOptions` of the protocol.
    pub(crate) initialization: Value,
    /// The settings from which `workspace/configuration` is answered.
    pub(crate) settings: Value,
    /// Whether the server reports with `experimental/serverStatus` when it has loaded the project.
    pub(crate) reports_readiness: bool,
}

/// A server that was started and initialized.
pub(crate) struct Client {
    pub(crate) server: String,
    pub(crate) root: PathBuf,
    pub(crate) connection: Arc<Connection>,
    pub(crate) capabilities: Value,
    /// The unit in which the server counts columns: bytes, UTF-16 units or characters.
    pub(crate) unit: ColumnUnit,
    documents: tokio::sync::Mutex<Documents>,
    /// Whether the server has ever returned diagnostics, which shows that it has started and loaded the project.
    is_warm: AtomicBool,
    /// Whether [`Client::prepare`] has already waited for a check once, successfully or not.
    is_prepared: AtomicBool,
    /// Number of unanswered checks in a row during which the server sent nothing.
    unanswered: AtomicU32,
    /// Number of messages that had been received at the last unanswered check.
    last_received: AtomicU64,
    last_used: Mutex<Instant>,
}

#[derive(Default)]
struct Documents {
    open: HashMap<PathBuf, OpenDocument>,
    /// Incremented with each use of a document, so that the least recently used one can be found.
    uses: u64,
}

/// The text of a file before a change; `None` if the file did not exist.
type OldText = Option<Arc<str>>;

/// A document as the server knows it.
struct OpenDocument {
    text: Arc<str>,
    /// The version of `text`, with the sequence number that separates older diagnostics from those of this version.
    sent: SentVersion,
    language: &'static str,
    /// The diagnostics of `text`, once known.
    diagnostics: Option<Vec<ServerDiagnostic>>,
    /// The last text that the server did check, kept while later changes are unchecked. The next check reports what is
    /// new compared with it. `None` if nothing is unchecked; `Some(None)` if the file did not exist then.
    last_checked_text: Option<OldText>,
    /// The value of [`Documents::uses`] at the last use of this document.
    last_use: u64,
}

impl Client {
    /// Initializes a server that was just started.
    pub(crate) async fn start(
        connection: Arc<Connection>,
        setup: ClientSetup,
    ) -> Result<Self, RequestError> {
        let ClientSetup { server, root, initialization, settings, reports_readiness } = setup;
        let has_settings = settings.as_object().is_some_and(|settings| !settings.is_empty());
        let initialize = connection.request("initialize", initialize(&root, initialization));
        let deadline = Instant::now() + START_TIME;
        let result = timeout_at(deadline, initialize).await.map_err(|_| {
            RequestError::Ended(format!("it did not start within {} s", START_TIME.as_secs()))
        })??;
        let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
        let capabilities = result["capabilities"].clone();
        if !capabilities.is_object() {
            return Err(RequestError::Invalid);
        }
        connection.notify("initialized", json!({})).await;
        if reports_readiness {
            connection.state.expect_readiness_report();
        }
        if has_settings {
            let params = json!({"settings": settings});
            connection.notify("workspace/didChangeConfiguration", params).await;
        }
        let unit = match capabilities["positionEncoding"].as_str() {
            Some("utf-8") => ColumnUnit::Utf8,
            Some("utf-32") => ColumnUnit::Utf32,
            _ => ColumnUnit::Utf16,
        };
        Ok(Self {
            server,
            root,
            connection,
            capabilities,
            unit,
            documents: tokio::sync::Mutex::default(),
            is_warm: AtomicBool::new(false),
            is_prepared: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
            last_received: AtomicU64::new(0),
            last_used: Mutex::new(Instant::now()),
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.connection.state.end_reason().is_some()
    }

    pub(crate) fn is_warm(&self) -> bool {
        self.is_warm.load(Ordering::Relaxed)
    }

    /// When the server last got a request or a check.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Sends a request and returns the parsed answer.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, RequestError> {
        self.sized_request(method, params).await.map(|(answer, _)| answer)
    }

    /// Sends a request and returns the parsed answer, with its size in bytes.
    pub(crate) async fn sized_request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<(Value, usize), RequestError> {
        *self.last_used.lock() = Instant::now();
        let answer = self.connection.request(method, params).await?;
        let parsed = serde_json::from_str(answer.get()).map_err(|_| RequestError::Invalid)?;
        Ok((parsed, answer.get().len()))
    }

    /// Whether the server supports a method: either it announced `capability` at its start, or it registered `method`
    /// later.
    pub(crate) fn offers(&self, capability: &str, method: &str) -> bool {
        let value = &self.capabilities[capability];
        value.is_object() || value == true || self.connection.state.registered(method).is_some()
    }

    /// Sends the server the current text of a file, unless the server has it already.
    pub(crate) async fn sync(&self, path: &Path, language: &'static str, text: &Arc<str>) {
        let documents = &mut *self.documents.lock().await;
        self.set_text(documents, path, language, text).await;
    }

    /// Returns the documents that the server has open, with their texts. Returns none while a check runs.
    pub(crate) fn open_documents(&self) -> Vec<(PathBuf, Arc<str>)> {
        let Ok(documents) = self.documents.try_lock() else { return Vec::new() };
        documents
            .open
            .iter()
            .map(|(path, document)| (path.clone(), document.text.clone()))
            .collect()
    }

    /// Sends the server the new text of an open document that another program changed. Without a text, closes the
    /// document.
    pub(crate) async fn replace_text(&self, path: &Path, text: Option<Arc<str>>) {
        let documents = &mut *self.documents.lock().await;
        let Some(document) = documents.open.get_mut(path) else { return };
        // Problems that another program introduced are not reported as those of an earlier change.
        document.last_checked_text = None;
        let language = document.language;
        match text {
            Some(text) => {
                self.set_text(documents, path, language, &text).await;
            }
            None => self.close(documents, path).await,
        }
    }

    /// Waits until the server has probably loaded the project: it no longer reports that it is busy, and has checked a
    /// file. Until then, some servers know only the open files, so a rename would be incomplete. For a server that
    /// never reports diagnostics, only the first call waits for a check.
    pub(crate) async fn prepare(&self, path: &Path, language: &'static str, text: &Arc<str>) {
        if self.is_warm() {
            return;
        }
        if self.is_prepared.load(Ordering::Relaxed) {
            return self.wait_until_ready().await;
        }
        let checking = self.current_diagnostics(path, language, text);
        tokio::time::timeout(PREPARE_TIME, checking).await.ok();
        self.is_prepared.store(true, Ordering::Relaxed);
    }

    /// Returns the diagnostics of a file with this text. Opens or updates the document first if necessary. Returns
    /// `None` if the server ended.
    pub(crate) async fn current_diagnostics(
        &self,
        path: &Path,
        language: &'static str,
        text: &Arc<str>,
    ) -> Option<Vec<ServerDiagnostic>> {
        if !self.is_warm() {
            self.wait_until_ready().await;
        }
        let documents = &mut *self.documents.lock().await;
        let document = documents.open.get(path).filter(|document| document.text == *text);
        if let Some(diagnostics) = document.and_then(|document| document.diagnostics.clone()) {
            return Some(diagnostics);
        }
        let sent = self.set_text(documents, path, language, text).await;
        let diagnostics = self.diagnostics(path, sent).await?;
        documents.set_diagnostics(path, diagnostics.clone());
        self.is_warm.store(true, Ordering::Relaxed);
        Some(diagnostics)
    }

    /// Shuts the server down.
    pub(crate) async fn stop(&self) {
        if self.has_ended() {
            // The server has closed its output. `end` waits until its process has ended too.
            return self.connection.end("it was stopped").await;
        }
        let shutdown = async {
            self.connection.request("shutdown", Value::Null).await.ok();
            self.connection.notify("exit", Value::Null).await;
        };
        tokio::time::timeout(SHUTDOWN_TIME, shutdown).await.ok();
        self.connection.end("it was stopped").await;
    }

    /// Whether the server reports that it is loading or working.
    pub(crate) fn is_busy(&self) -> bool {
        self.connection.state.busy_until().is_some()
    }

    /// Waits until the server no longer reports that it is loading or working.
    pub(crate) async fn wait_until_ready(&self) {
        let state = &self.connection.state;
        let mut changes = state.changes();
        while let Some(until) = state.busy_until() {
            if state.end_reason().is_some() {
                return;
            }
            if let Ok(Err(_)) = timeout_at(until, changes.changed()).await {
                return;
            }
        }
    }

    /// Opens a document, or sends its new text if it differs. Returns the version that the server then has.
    async fn set_text(
        &self,
        documents: &mut Documents,
        path: &Path,
        language: &'static str,
        text: &Arc<str>,
    ) -> SentVersion {
        let sequence = self.connection.state.sequence();
        documents.uses += 1;
        let last_use = documents.uses;
        if let Some(document) = documents.open.get_mut(path) {
            document.last_use = last_use;
            if document.text != *text {
                document.sent = SentVersion { version: document.sent.version + 1, sequence };
                document.diagnostics = None;
                let params = self.change_params(path, document, text);
                document.text = text.clone();
                self.connection.notify("textDocument/didChange", params).await;
            }
            return document.sent;
        }
        if documents.open.len() >= MAX_DOCUMENTS {
            self.close_oldest(documents).await;
        }
        let document = OpenDocument {
            text: text.clone(),
            sent: SentVersion { version: 1, sequence },
            language,
            diagnostics: None,
            last_checked_text: None,
            last_use,
        };
        let item = json!({
            "uri": file_uri::from_path(path),
            "languageId": document.language,
            "version": document.sent.version,
            "text": &**text,
        });
        documents.open.insert(path.to_path_buf(), document);
        self.connection.notify("textDocument/didOpen", json!({"textDocument": item})).await;
        SentVersion { version: 1, sequence }
    }

    /// Returns the parameters of `didChange`: the changed range if the server supports ranges, else the whole text.
    fn change_params(&self, path: &Path, document: &OpenDocument, text: &str) -> Value {
        let sync = &self.capabilities["textDocumentSync"];
        let is_incremental = sync.as_u64().or_else(|| sync["change"].as_u64()) == Some(2);
        let edit = single_edit(&document.text, text).filter(|_| is_incremental);
        let change = match edit {
            Some(edit) => {
                let index = LineIndex::new(&document.text);
                let position = |offset| {
                    let at = index.position(offset, self.unit);
                    json!({"line": at.line, "character": at.column})
                };
                let range =
                    json!({"start": position(edit.range.start), "end": position(edit.range.end)});
                json!({"range": range, "text": edit.new})
            }
            None => json!({"text": text}),
        };
        json!({
            "textDocument": {"uri": file_uri::from_path(path), "version": document.sent.version},
            "contentChanges": [change],
        })
    }

    async fn close_oldest(&self, documents: &mut Documents) {
        let oldest = documents.open.iter().min_by_key(|(_, document)| document.last_use);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.close(documents, &path).await;
        }
    }

    async fn close(&self, documents: &mut Documents, path: &Path) {
        if documents.open.remove(path).is_some() {
            let params = json!({"textDocument": {"uri": file_uri::from_path(path)}});
            self.connection.notify("textDocument/didClose", params).await;
        }
    }

    /// Notifies the server that a file was saved, if it wants to know.
    async fn notify_saved(&self, path: &Path, text: &str) {
        let save = &self.capabilities["textDocumentSync"]["save"];
        if !(save.is_object() || save == true) {
            return;
        }
        let mut params = json!({"textDocument": {"uri": file_uri::from_path(path)}});
        if save["includeText"] == true {
            params["text"] = text.into();
        }
        self.connection.notify("textDocument/didSave", params).await;
    }

    /// Notifies the server that files have changed on disk. Closes the documents of deleted files.
    pub(crate) async fn notify_changed_files(&self, files: &[(PathBuf, FileEvent)]) {
        let changes = files
            .iter()
            .map(|(path, event)| json!({"uri": file_uri::from_path(path), "type": *event as u8}));
        let params = json!({"changes": changes.collect::<Vec<_>>()});
        self.connection.notify("workspace/didChangeWatchedFiles", params).await;
        let removed = files.iter().filter(|(_, event)| *event == FileEvent::Deleted);
        for (path, _) in removed {
            let documents = &mut *self.documents.lock().await;
            self.close(documents, path).await;
        }
    }
}

/// What happened to a file. The numbers are those of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEvent {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl Documents {
    fn set_diagnostics(&mut self, path: &Path, diagnostics: Vec<ServerDiagnostic>) {
        if let Some(document) = self.open.get_mut(path) {
            document.diagnostics = Some(diagnostics);
        }
    }
}
