//! Answers questions about code, such as where a symbol is defined, by asking language servers.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_core::language::{
    CodeAnswer, CodeError, CodeIntelligence, CodeOperation, CodePlace, CodePosition, CodeQuery,
    CodeReply, FileRewrite,
};
use helve_core::{BoxFuture, Place};
use helve_text::position::{ColumnUnit, LineIndex, RangeEdit, TextPosition, apply_edits};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::after_write::{MAX_DOCUMENT, document_text, one_line, to_diagnostic};
use crate::client::Client;
use crate::connection::RequestError;
use crate::servers::{LanguageServers, extension};
use crate::table::language_id;
use crate::wire::{ServerDiagnostic, WireRange};
use helve_text::file_uri;

/// How long a question may take, including the start of the server.
const QUERY_TIME: Duration = Duration::from_secs(30);
/// Maximum number of places in an answer.
const MAX_PLACES: usize = 100;
/// Maximum number of files that a rename may change.
const MAX_FILES: usize = 1_000;
/// Maximum length of a source line in an answer, in bytes.
const MAX_LINE: usize = 200;
/// Maximum length of a hover text, in bytes.
const MAX_HOVER: usize = 8_000;
/// Maximum size of a server's result that is passed on unchanged in [`CodeReply::raw`], in bytes.
const MAX_RAW: usize = 1 << 20;
/// Maximum depth of nested symbols.
const MAX_DEPTH: usize = 20;

/// Answers questions with the language servers of a workspace.
pub struct LanguageQueries(pub Arc<LanguageServers>);

impl CodeIntelligence for LanguageQueries {
    fn ask(&self, query: CodeQuery) -> BoxFuture<'_, Result<CodeReply, CodeError>> {
        Box::pin(async move {
            match timeout(QUERY_TIME, self.0.answer(query)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let why = format!("no answer within {} s", QUERY_TIME.as_secs());
                    Err(CodeError::Failed { why })
                }
            }
        })
    }
}

/// A server that is being asked a question.
struct AskedServer<'a> {
    client: &'a Client,
    /// The last result that the server sent; `None` if it is larger than [`MAX_RAW`].
    raw: Mutex<Option<Value>>,
}

impl Deref for AskedServer<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
    }
}

/// The file in question, and the server that is asked.
struct Subject<'a> {
    asked: &'a AskedServer<'a>,
    path: &'a Path,
    text: Arc<str>,
    /// The position that the question is about, in the server's unit.
    at: TextPosition,
}

impl LanguageServers {
    /// Asks the servers of a file one after another, until one gives an answer that is not empty.
    async fn answer(self: &Arc<Self>, query: CodeQuery) -> Result<CodeReply, CodeError> {
        let servers = self.servers_of(&query.path).await;
        if servers.is_empty() {
            return Err(CodeError::NoServer { candidates: self.candidates(&query.path) });
        }
        if !self.is_trusted().await {
            return Err(CodeError::Untrusted);
        }
        let text = self.read_text(&query.path).await.ok_or(CodeError::NotText)?;
        let mut fallback = None;
        for server in servers {
            let deadline = Instant::now() + QUERY_TIME;
            let result = match self.client(&server, |_| deadline).await {
                Ok(client) => {
                    self.refresh_documents(&client, &[]).await;
                    let asked = AskedServer { client: &client, raw: Mutex::default() };
                    let answer = self.ask_server(&asked, &query, &text).await;
                    answer.map(|answer| CodeReply { answer, raw: asked.raw.into_inner() })
                }
                Err(error) => Err(CodeError::Failed { why: error.to_string() }),
            };
            match result {
                Ok(reply) if !answer_is_empty(&reply.answer) => return Ok(reply),
                Ok(reply) => fallback = Some(Ok(reply)),
                Err(error) => fallback = fallback.or(Some(Err(error))),
            }
        }
        fallback.unwrap_or(Err(CodeError::NoServer { candidates: Vec::new() }))
    }

    /// Returns the ids of servers that could be installed for a file, with their install instructions.
    fn candidates(&self, path: &Path) -> Vec<(String, String)> {
        let extension = extension(path);
        let matching = self.setup.servers.iter().filter(|it| it.extensions.contains(&extension));
        let matching = matching.filter(|it| !it.needs_marker && !it.install.is_empty());
        matching.map(|it| (it.id.clone(), it.install.clone())).collect()
    }

    /// Asks one server, after sending it the current text of the file.
    async fn ask_server(
        &self,
        asked: &AskedServer<'_>,
        query: &CodeQuery,
        text: &Arc<str>,
    ) -> Result<CodeAnswer, CodeError> {
        let language = language_id(&extension(&query.path));
        let path = query.path.as_path();
        if query.operation == CodeOperation::Diagnostics {
            let found = asked.current_diagnostics(path, language, text).await;
            let diagnostics = found.ok_or(CodeError::Failed { why: "the server ended".into() })?;
            *asked.raw.lock() = Some(diagnostics.iter().map(ServerDiagnostic::to_json).collect());
            let (index, display_path) = (LineIndex::new(text), self.display_path(path));
            let diagnostics =
                diagnostics.iter().map(|it| to_diagnostic(it, &display_path, asked, &index));
            return Ok(CodeAnswer::Diagnostics(diagnostics.take(MAX_PLACES).collect()));
        }
        let (capability, method) = capability_and_method(query.operation);
        if !asked.offers(capability, method) {
            return Err(CodeError::NotOffered { server: asked.server.clone() });
        }
        asked.prepare(path, language, text).await;
        asked.sync(path, language, text).await;
        let at = find_position(text, &query.position, query.operation, asked.unit)?;
        let subject = Subject { asked, path, text: text.clone(), at };
        match query.operation {
            CodeOperation::IncomingCalls | CodeOperation::OutgoingCalls => {
                self.calls(&subject, query.operation).await
            }
            CodeOperation::Rename | CodeOperation::Format => self.rewrites(&subject, query).await,
            CodeOperation::CodeActions => code_actions(&subject).await,
            CodeOperation::Hover => {
                let answer = request(asked, method, subject.params()).await?;
                Ok(CodeAnswer::Text(hover_text(&answer["contents"])))
            }
            CodeOperation::WorkspaceSymbols => {
                let answer = request(asked, method, json!({"query": query.text})).await?;
                self.places(asked, &answer).await
            }
            CodeOperation::References => {
                let mut params = subject.params();
                params["context"] = json!({"includeDeclaration": true});
                let answer = request(asked, method, params).await?;
                self.places(asked, &answer).await
            }
            CodeOperation::DocumentSymbols => {
                let answer = request(asked, method, subject.params()).await?;
                self.symbols(&subject, &answer).await
            }
            CodeOperation::Definition
            | CodeOperation::Implementation
            | CodeOperation::CallHierarchy
            | CodeOperation::Diagnostics => {
                let answer = request(asked, method, subject.params()).await?;
                self.places(asked, &answer).await
            }
        }
    }

    /// Returns the callers of the function at the position, or the functions that it calls.
    async fn calls(
        &self,
        subject: &Subject<'_>,
        operation: CodeOperation,
    ) -> Result<CodeAnswer, CodeError> {
        let asked = subject.asked;
        let prepare = "textDocument/prepareCallHierarchy";
        let items = request(asked, prepare, subject.params()).await?;
        let Some(item) = items.as_array().and_then(|items| items.first()) else {
            return Ok(CodeAnswer::Places { places: Vec::new(), left_out: 0 });
        };
        let (method, side) = match operation {
            CodeOperation::IncomingCalls => ("callHierarchy/incomingCalls", "from"),
            _ => ("callHierarchy/outgoingCalls", "to"),
        };
        let answer = request(asked, method, json!({"item": item})).await?;
        let calls = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        let items: Vec<Value> = calls.iter().map(|call| call[side].clone()).collect();
        self.places(asked, &Value::Array(items)).await
    }

    /// Converts a server's list of locations, location links, symbols or call hierarchy items.
    async fn places(
        &self,
        asked: &AskedServer<'_>,
        answer: &Value,
    ) -> Result<CodeAnswer, CodeError> {
        let list = match answer {
            Value::Array(list) => list.as_slice(),
            Value::Null => &[],
            single => std::slice::from_ref(single),
        };
        let left_out = list.len().saturating_sub(MAX_PLACES);
        let mut places = Vec::new();
        for item in list.iter().take(MAX_PLACES) {
            let location = if item["location"].is_object() { &item["location"] } else { item };
            let uri = location["uri"].as_str().or_else(|| location["targetUri"].as_str());
            let ranges = ["selectionRange", "targetSelectionRange", "range", "targetRange"];
            let range = ranges.iter().find_map(|key| WireRange::parse(&location[*key]));
            let Some(path) = uri.and_then(file_uri::to_path) else { continue };
            let start = range.map_or(TextPosition { line: 0, column: 0 }, |range| range.start);
            places.push(self.place(asked, path, start, (label(item), 0)).await);
        }
        Ok(CodeAnswer::Places { places, left_out })
    }

    /// Makes a place from a server's position. Reads the file for the source line, if it is in the workspace.
    async fn place(
        &self,
        asked: &AskedServer<'_>,
        path: PathBuf,
        at: TextPosition,
        (label, depth): (String, usize),
    ) -> CodePlace {
        let display_path = self.display_path(&path);
        let text = self.read_text(&path).await;
        let (at, source_line) = match &text {
            Some(text) => {
                let index = LineIndex::new(text);
                let line = one_line(index.line(at.line), MAX_LINE);
                (index.convert(at, asked.unit, ColumnUnit::Utf32), Some(line))
            }
            None => (at, None),
        };
        let (line, column) = (at.line + 1, at.column + 1);
        CodePlace { path, display_path, line, column, label, depth, source_line }
    }

    /// Converts the symbols of a document. Servers send them either nested or as a flat list.
    async fn symbols(
        &self,
        subject: &Subject<'_>,
        answer: &Value,
    ) -> Result<CodeAnswer, CodeError> {
        let list = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        if list.iter().any(|item| item["location"].is_object()) {
            return self.places(subject.asked, answer).await;
        }
        let mut flat = Vec::new();
        flatten_symbols(list, 0, &mut flat);
        let left_out = flat.len().saturating_sub(MAX_PLACES);
        let mut places = Vec::new();
        for (item, depth) in flat.into_iter().take(MAX_PLACES) {
            let Some(range) = WireRange::parse(&item["selectionRange"]) else { continue };
            let path = subject.path.to_path_buf();
            let place = self.place(subject.asked, path, range.start, (label(item), depth)).await;
            places.push(place);
        }
        Ok(CodeAnswer::Places { places, left_out })
    }

    /// Asks for the edits of a rename or of formatting, and returns the changed files.
    async fn rewrites(
        &self,
        subject: &Subject<'_>,
        query: &CodeQuery,
    ) -> Result<CodeAnswer, CodeError> {
        let (_, method) = capability_and_method(query.operation);
        let mut params = subject.params();
        let changes = match query.operation {
            CodeOperation::Format => {
                let tab_size = if subject.text.contains("\n  ") { 2 } else { 4 };
                let has_tabs = subject.text.contains("\n\t");
                params["options"] = json!({"tabSize": tab_size, "insertSpaces": !has_tabs});
                let answer = request(subject.asked, method, params).await?;
                vec![(subject.path.to_path_buf(), answer)]
            }
            _ => {
                params["newName"] = query.text.clone().into();
                let answer = request(subject.asked, method, params).await?;
                workspace_edits(&answer)?
            }
        };
        if changes.len() > MAX_FILES {
            let why = format!("{} files would change; the limit is {MAX_FILES}", changes.len());
            return Err(CodeError::Failed { why });
        }
        let mut rewrites = Vec::new();
        for (path, edits) in changes {
            rewrites.extend(self.rewrite(subject.asked, path, &edits).await?);
        }
        rewrites.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(CodeAnswer::Rewrites(rewrites))
    }

    /// Applies a server's edits to the content of a file, without writing it. Returns `None` if they change nothing.
    async fn rewrite(
        &self,
        asked: &AskedServer<'_>,
        path: PathBuf,
        edits: &Value,
    ) -> Result<Option<FileRewrite>, CodeError> {
        let display_path = self.display_path(&path);
        let failed = |why: &str| CodeError::Failed { why: format!("{display_path}: {why}") };
        let root = &self.setup.root;
        let beneath = path.strip_prefix(root);
        let beneath = beneath.map_err(|_| failed("it is outside the workspace"))?.to_path_buf();
        let place = Place { anchor: root.clone(), beneath };
        let content = self.setup.host.machine().read(&place, MAX_DOCUMENT as u64).await;
        let old = content.map_err(|error| failed(&error.to_string()))?.bytes;
        let text = document_text(&old).ok_or_else(|| failed("it is not UTF-8 text"))?;
        let index = LineIndex::new(&text);
        let list = edits.as_array().map(Vec::as_slice).unwrap_or_default();
        let edits = list.iter().filter_map(|edit| {
            let range = WireRange::parse(&edit["range"])?;
            let offset = |at| index.offset(at, asked.unit);
            let range = offset(range.start)..offset(range.end);
            Some(RangeEdit { range, new: edit["newText"].as_str()?.to_owned() })
        });
        let new = apply_edits(&text, edits.collect());
        let new = new.map_err(|_| failed("the server's edits overlap"))?;
        if *new == *text {
            return Ok(None);
        }
        // `text`, which was sent to the server, lacks the file's byte order mark.
        let mut bytes = old[..old.len() - text.len()].to_vec();
        bytes.extend_from_slice(new.as_bytes());
        Ok(Some(FileRewrite { path, old, new: Bytes::from(bytes) }))
    }
}

impl Subject<'_> {
    fn params(&self) -> Value {
        json!({
            "textDocument": {"uri": file_uri::from_path(self.path)},
            "position": {"line": self.at.line, "character": self.at.column},
        })
    }
}

/// Returns the capability that a server must have for an operation, and the method to call.
fn capability_and_method(operation: CodeOperation) -> (&'static str, &'static str) {
    match operation {
        CodeOperation::Definition => ("definitionProvider", "textDocument/definition"),
        CodeOperation::Implementation => ("implementationProvider", "textDocument/implementation"),
        CodeOperation::References => ("referencesProvider", "textDocument/references"),
        CodeOperation::Hover => ("hoverProvider", "textDocument/hover"),
        CodeOperation::DocumentSymbols => ("documentSymbolProvider", "textDocument/documentSymbol"),
        CodeOperation::WorkspaceSymbols => ("workspaceSymbolProvider", "workspace/symbol"),
        CodeOperation::CallHierarchy
        | CodeOperation::IncomingCalls
        | CodeOperation::OutgoingCalls => {
            ("callHierarchyProvider", "textDocument/prepareCallHierarchy")
        }
        CodeOperation::Diagnostics => ("diagnosticProvider", "textDocument/diagnostic"),
        CodeOperation::CodeActions => ("codeActionProvider", "textDocument/codeAction"),
        CodeOperation::Rename => ("renameProvider", "textDocument/rename"),
        CodeOperation::Format => ("documentFormattingProvider", "textDocument/formatting"),
    }
}

async fn request(asked: &AskedServer<'_>, method: &str, params: Value) -> Result<Value, CodeError> {
    let answer = asked.sized_request(method, params).await;
    let (answer, size) = answer.map_err(|error| CodeError::Failed {
        why: match error {
            RequestError::Response(error) => {
                format!("{} answered: {}", asked.server, one_line(&error.message, 500))
            }
            RequestError::Ended(why) => format!("{} ended: {why}", asked.server),
            RequestError::Invalid => format!("{} sent an invalid answer", asked.server),
        },
    })?;
    *asked.raw.lock() = (size <= MAX_RAW).then(|| answer.clone());
    Ok(answer)
}

async fn code_actions(subject: &Subject<'_>) -> Result<CodeAnswer, CodeError> {
    let line = subject.at.line;
    let start = json!({"line": line, "character": subject.at.column});
    let params = json!({
        "textDocument": {"uri": file_uri::from_path(subject.path)},
        "range": {"start": start, "end": start},
        "context": {"diagnostics": []},
    });
    let answer = request(subject.asked, "textDocument/codeAction", params).await?;
    let list = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    let titles = list.iter().filter_map(|item| item["title"].as_str());
    Ok(CodeAnswer::Actions(titles.take(MAX_PLACES).map(|it| one_line(it, MAX_LINE)).collect()))
}

/// Finds the position that a question is about, in the server's unit.
fn find_position(
    text: &str,
    given: &CodePosition,
    operation: CodeOperation,
    unit: ColumnUnit,
) -> Result<TextPosition, CodeError> {
    let index = LineIndex::new(text);
    let line = given.line.saturating_sub(1);
    let uses_symbol =
        !matches!(operation, CodeOperation::DocumentSymbols | CodeOperation::WorkspaceSymbols);
    let column = match given.symbol.as_deref().filter(|_| uses_symbol) {
        None => given.column.saturating_sub(1),
        Some(symbol) => {
            let source = index.line(line);
            let offset = find_word(source, symbol);
            let offset =
                offset.ok_or_else(|| CodeError::NoSymbol { line: one_line(source, MAX_LINE) })?;
            source[..offset].chars().count() as u64
        }
    };
    Ok(index.convert(TextPosition { line, column }, ColumnUnit::Utf32, unit))
}

/// Finds `word` where it is not part of a longer word. If there is no such place, finds it anywhere.
fn find_word(line: &str, word: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let is_whole = |at: &usize| {
        !line[..*at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    };
    let mut all = line.match_indices(word).map(|(at, _)| at);
    all.find(is_whole).or_else(|| line.find(word))
}

fn answer_is_empty(answer: &CodeAnswer) -> bool {
    match answer {
        CodeAnswer::Places { places, .. } => places.is_empty(),
        CodeAnswer::Text(text) => text.is_empty(),
        CodeAnswer::Diagnostics(list) => list.is_empty(),
        CodeAnswer::Actions(list) => list.is_empty(),
        CodeAnswer::Rewrites(list) => list.is_empty(),
    }
}

fn hover_text(contents: &Value) -> String {
    let text = match contents {
        Value::String(text) => text.clone(),
        Value::Array(items) => items
            .iter()
            .map(hover_text)
            .filter(|it| !it.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n"),
        Value::Object(_) => contents["value"].as_str().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    let text = helve_text::visible::strip_invisible(&text);
    text[..text.floor_char_boundary(MAX_HOVER)].trim().to_owned()
}

/// Returns the kind and the name of a symbol. Returns an empty text for a location, which has no name.
fn label(item: &Value) -> String {
    let Some(name) = item["name"].as_str() else { return String::new() };
    let kind = item["kind"].as_u64().and_then(|kind| SYMBOL_KINDS.get(usize::try_from(kind).ok()?));
    match kind {
        Some(kind) if !kind.is_empty() => one_line(&format!("{kind} {name}"), MAX_LINE),
        Some(_) | None => one_line(name, MAX_LINE),
    }
}

/// The protocol's `SymbolKind`s, indexed by their numbers.
const SYMBOL_KINDS: [&str; 27] = [
    "",
    "file",
    "module",
    "namespace",
    "package",
    "class",
    "method",
    "property",
    "field",
    "constructor",
    "enum",
    "interface",
    "function",
    "variable",
    "constant",
    "string",
    "number",
    "boolean",
    "array",
    "object",
    "key",
    "null",
    "enum member",
    "struct",
    "event",
    "operator",
    "type parameter",
];

fn flatten_symbols<'a>(list: &'a [Value], depth: usize, flat: &mut Vec<(&'a Value, usize)>) {
    if depth > MAX_DEPTH {
        return;
    }
    for item in list {
        flat.push((item, depth));
        if let Some(children) = item["children"].as_array() {
            flatten_symbols(children, depth + 1, flat);
        }
    }
}

/// Returns the text edits of a `WorkspaceEdit`, by file. Fails if it would also create, rename or delete files.
fn workspace_edits(answer: &Value) -> Result<Vec<(PathBuf, Value)>, CodeError> {
    let failed = |why: &str| CodeError::Failed { why: why.into() };
    let mut all = Vec::new();
    if let Some(changes) = answer["documentChanges"].as_array() {
        for change in changes {
            if change["kind"].is_string() {
                return Err(failed("the change would create, rename or delete files"));
            }
            let path = change["textDocument"]["uri"].as_str().and_then(file_uri::to_path);
            all.push((path.ok_or_else(|| failed("the change names no file"))?, &change["edits"]));
        }
    } else if let Some(changes) = answer["changes"].as_object() {
        for (uri, edits) in changes {
            let path = file_uri::to_path(uri).ok_or_else(|| failed("the change names no file"))?;
            all.push((path, edits));
        }
    }
    // A server may list a file twice.
    let mut merged: Vec<(PathBuf, Vec<Value>)> = Vec::new();
    for (path, edits) in all {
        let edits = edits.as_array().cloned().unwrap_or_default();
        match merged.iter_mut().find(|(other, _)| *other == path) {
            Some((_, earlier_edits)) => earlier_edits.extend(edits),
            None => merged.push((path, edits)),
        }
    }
    Ok(merged.into_iter().map(|(path, edits)| (path, Value::Array(edits))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_as_whole_words() {
        let check = |line: &str, word: &str, at: Option<usize>| {
            assert_eq!(find_word(line, word), at, "{line}");
        };
        check("foobar(foo)", "foo", Some(7));
        check("foobar()", "foo", Some(0));
        check("é = bar", "bar", Some(5));
        check("bar", "x", None);
    }

    #[test]
    fn edits_of_both_forms_are_understood_and_operations_on_files_refused() {
        let check = |answer: Value, expected: Result<usize, &str>| {
            let found = workspace_edits(&answer).map(|it| it.len());
            let expected = expected.map_err(|why| CodeError::Failed { why: why.into() });
            assert_eq!(found, expected);
        };
        check(Value::Null, Ok(0));
        check(json!({"changes": {"file:///a": [], "file:///b": []}}), Ok(2));
        let edit = json!({"textDocument": {"uri": "file:///a"}, "edits": []});
        check(json!({"documentChanges": [edit, edit]}), Ok(1));
        check(
            json!({"documentChanges": [{"kind": "delete", "uri": "file:///a"}]}),
            Err("the change would create, rename or delete files"),
        );
        check(json!({"changes": {"ftp://x": []}}), Err("the change names no file"));
    }
}
