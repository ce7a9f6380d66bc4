//! Diagnostics after a write: sends changed files to their servers and reports what the change introduced.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::join_all;
use helve_core::{
    Diagnostic, DiagnosticReport, DiagnosticSeverity, MissedCheck, Place, UncheckedReason,
    WrittenFile, paths,
};
use helve_text::position::{ColumnUnit, LineIndex, TextPosition};
use helve_text::visible;
use tokio::time::{Instant, timeout_at};

use crate::client::{Checked, CheckedFile, CheckedText, Client, FileEvent, FileToCheck, OtherFile};
use crate::compare::{LineMap, introduced};
use crate::servers::{LanguageServers, ServerForFile, Unavailable, extension};
use crate::table::language_id;
use crate::wire::ServerDiagnostic;

/// Maximum number of diagnostics in a report.
const MAX_REPORTED: usize = 20;
/// Maximum number of diagnostics that are reported per server for files that the call did not change.
const MAX_OTHER_FILE_DIAGNOSTICS: usize = 5;
/// Larger files are not sent to servers.
pub(crate) const MAX_DOCUMENT: usize = 4 << 20;
/// Maximum length of a diagnostic's message in a report, in bytes.
const MAX_MESSAGE: usize = 500;

/// Where a diagnostic comes from. The report lists the variants in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DiagnosticOrigin {
    /// A file that the call changed.
    ChangedFile,
    /// A file that the call did not change, but that the change affects.
    OtherFile,
    /// An earlier change, which its server did not check in time.
    EarlierChange,
}

type RankedDiagnostic = (DiagnosticOrigin, Diagnostic);

/// The result of a check by one server, or the reason why the server did not check the files.
type CheckResult = Result<(Arc<Client>, Checked), MissedCheck>;

impl LanguageServers {
    /// Returns the problems that a change introduced, if the servers report them before the deadline.
    pub(crate) async fn check_written(
        self: &Arc<Self>,
        written: &[WrittenFile],
    ) -> DiagnosticReport {
        let started = Instant::now();
        let clients = self.running();
        if clients.is_empty() && !written.iter().any(|file| self.may_serve(&file.path)) {
            return DiagnosticReport::default();
        }
        if !self.is_trusted().await {
            return DiagnosticReport::default();
        }
        notify_clients(&clients, written).await;
        let groups = self.group_by_server(written).await;
        let limits = self.setup.limits;
        let checks = groups.into_iter().map(async |(server, files)| {
            let deadline = |client: Option<&Client>| match client {
                Some(client) if client.is_warm() => started + limits.warm_timeout,
                Some(_) | None => started + limits.first_timeout,
            };
            self.check_with(&server, files, deadline).await
        });
        let results: Vec<CheckResult> = join_all(checks).await.into_iter().flatten().collect();
        self.report(written, results).await
    }

    /// Checks files with a server. Returns `None` if the server could not be started or has ended.
    async fn check_with(
        self: &Arc<Self>,
        server: &ServerForFile,
        files: Vec<FileToCheck>,
        deadline: impl Fn(Option<&Client>) -> Instant,
    ) -> Option<CheckResult> {
        let program = server.definition.id.clone();
        let client = match self.client(server, &deadline).await {
            Ok(client) => client,
            Err(Unavailable::Starting { .. }) => {
                self.add_unsent(server, files);
                return Some(Err(MissedCheck { program, reason: UncheckedReason::Starting }));
            }
            Err(Unavailable::Failed { .. }) => return None,
        };
        let refreshing = self.refresh_documents(&client, &files);
        timeout_at(deadline(Some(&client)), refreshing).await.ok();
        let unsent = self.take_unsent(server);
        match client.check(files, unsent, deadline(Some(&client))).await {
            Ok(checked) if !checked.files.is_empty() => return Some(Ok((client, checked))),
            Ok(_) => {}
            Err(files) => self.add_unsent(server, files),
        }
        let reason = match client.is_busy() {
            true => UncheckedReason::Loading,
            false => UncheckedReason::NoAnswer,
        };
        (!client.has_ended()).then_some(Err(MissedCheck { program, reason }))
    }

    /// Updates the server's open documents that other programs, such as shell commands, have changed on disk. Leaves
    /// out `files`, which are about to be checked.
    pub(crate) async fn refresh_documents(&self, client: &Client, files: &[FileToCheck]) {
        let mut open = client.open_documents();
        open.retain(|(path, _)| !files.iter().any(|file| file.path == *path));
        let on_disk = join_all(open.iter().map(|(path, _)| self.read_text(path))).await;
        for ((path, server_text), disk_text) in open.iter().zip(on_disk) {
            if disk_text.as_ref() != Some(server_text) {
                client.replace_text(path, disk_text).await;
            }
        }
    }

    /// Groups the written files by the servers that check them. Leaves out files that no server can check.
    async fn group_by_server(
        &self,
        written: &[WrittenFile],
    ) -> Vec<(ServerForFile, Vec<FileToCheck>)> {
        let mut groups: HashMap<(String, PathBuf), (ServerForFile, Vec<FileToCheck>)> =
            HashMap::new();
        for file in written.iter().filter(|file| self.may_serve(&file.path)) {
            let Some(after) = file.bytes.as_deref().and_then(document_text) else { continue };
            let before = match &file.before {
                None => None,
                Some(bytes) => match document_text(bytes) {
                    Some(text) => Some(text),
                    None => continue,
                },
            };
            for server in self.servers_of(&file.path).await {
                let key = (server.definition.id.clone(), server.root.clone());
                let language = language_id(&extension(&file.path));
                let (before, after) = (before.clone(), after.clone());
                let check = FileToCheck { path: file.path.clone(), language, before, after };
                groups.entry(key).or_insert_with(|| (server, Vec::new())).1.push(check);
            }
        }
        groups.into_values().collect()
    }

    /// Combines the answers of all servers into one report.
    async fn report(&self, written: &[WrittenFile], results: Vec<CheckResult>) -> DiagnosticReport {
        let mut all: Vec<RankedDiagnostic> = Vec::new();
        let mut unchecked = Vec::new();
        for result in results {
            match result {
                Ok((client, checked)) => {
                    for file in &checked.files {
                        all.extend(self.introduced_in_file(written, &client, file).await);
                    }
                    all.extend(self.introduced_elsewhere(&client, &checked).await);
                }
                Err(server) => unchecked.push(server),
            }
        }
        unchecked.sort_by(|a, b| a.program.cmp(&b.program));
        DiagnosticReport { unchecked, ..limited_report(all) }
    }

    /// Returns the problems that this change, and earlier changes that were not checked in time, introduced in a file.
    async fn introduced_in_file(
        &self,
        written: &[WrittenFile],
        client: &Client,
        file: &CheckedFile,
    ) -> Vec<RankedDiagnostic> {
        let CheckedFile { path, last_checked_text, before, after } = file;
        let display_path = match written.iter().find(|it| it.path == *path) {
            Some(written) => written.display_path.clone(),
            None => {
                // Another program may have changed the file since then, so the diagnostics would be outdated.
                if self.read_text(path).await.as_ref() != Some(&after.text) {
                    return Vec::new();
                }
                self.display_path(path)
            }
        };
        let introduced_since = |old: &CheckedText| {
            let lines = LineMap::new(&old.text, &after.text);
            let mut found = introduced(&old.diagnostics, &after.diagnostics, &lines);
            found.retain(|it| self.is_reported(it));
            found
        };
        let from_this_change = introduced_since(before);
        let mut from_earlier_changes =
            last_checked_text.as_ref().map(introduced_since).unwrap_or_default();
        for diagnostic in &from_this_change {
            if let Some(at) = from_earlier_changes.iter().position(|it| it == diagnostic) {
                from_earlier_changes.remove(at);
            }
        }
        let index = LineIndex::new(&after.text);
        let ranked = |origin: DiagnosticOrigin, found: &[ServerDiagnostic]| {
            let convert = |it| (origin, to_diagnostic(it, &display_path, client, &index));
            found.iter().map(convert).collect::<Vec<_>>()
        };
        let mut all = ranked(DiagnosticOrigin::ChangedFile, &from_this_change);
        all.extend(ranked(DiagnosticOrigin::EarlierChange, &from_earlier_changes));
        all
    }

    /// Returns the problems that a change introduced in files that it did not change.
    async fn introduced_elsewhere(
        &self,
        client: &Client,
        checked: &Checked,
    ) -> Vec<RankedDiagnostic> {
        let mut all = Vec::new();
        for OtherFile { path, before, after } in &checked.others {
            // The file itself did not change, so its lines need no mapping.
            let lines = LineMap::new("", "");
            let found = introduced(before, &after.diagnostics, &lines);
            let found: Vec<_> = found.iter().filter(|it| self.is_reported(it)).collect();
            let remaining = MAX_OTHER_FILE_DIAGNOSTICS - all.len();
            if found.is_empty() || remaining == 0 {
                continue;
            }
            let Some(text) = self.read_text(path).await else { continue };
            let index = LineIndex::new(&text);
            let display_path = self.display_path(path);
            all.extend(found.into_iter().take(remaining).map(|it| {
                (DiagnosticOrigin::OtherFile, to_diagnostic(it, &display_path, client, &index))
            }));
        }
        all
    }

    fn is_reported(&self, diagnostic: &ServerDiagnostic) -> bool {
        diagnostic.severity == 1 || (diagnostic.severity == 2 && self.setup.reports_warnings)
    }

    /// Reads a file as text. Returns `None` if it is outside the workspace, unreadable, too large or not UTF-8.
    pub(crate) async fn read_text(&self, path: &Path) -> Option<Arc<str>> {
        let root = &self.setup.root;
        let beneath = path.strip_prefix(root).ok()?.to_path_buf();
        let place = Place { anchor: root.clone(), beneath };
        let content = self.setup.host.machine().read(&place, MAX_DOCUMENT as u64).await.ok()?;
        document_text(&content.bytes)
    }

    /// Returns a path for display: relative to the root of the workspace if it is inside.
    pub(crate) fn display_path(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.setup.root).unwrap_or(path);
        paths::display(inside).into_owned()
    }
}

/// Tells the running servers which files have changed on disk.
async fn notify_clients(clients: &[Arc<Client>], written: &[WrittenFile]) {
    for client in clients {
        let mut events = Vec::new();
        for file in written.iter().filter(|file| file.path.starts_with(&client.root)) {
            let event = match (&file.before, &file.bytes) {
                (_, None) => FileEvent::Deleted,
                (None, Some(_)) => FileEvent::Created,
                (Some(_), Some(_)) => FileEvent::Changed,
            };
            events.push((file.path.clone(), event));
            events.extend(file.moved_from.iter().map(|from| (from.clone(), FileEvent::Deleted)));
        }
        if !events.is_empty() {
            client.notify_changed_files(&events).await;
        }
    }
}

/// Returns the text of a file, without a byte order mark. Returns `None` if the file is too large or not UTF-8.
pub(crate) fn document_text(bytes: &[u8]) -> Option<Arc<str>> {
    if bytes.len() > MAX_DOCUMENT {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').unwrap_or(text).into())
}

/// Makes a report: sorts the diagnostics by origin, severity and place, removes duplicates, and keeps at most
/// [`MAX_REPORTED`].
fn limited_report(mut all: Vec<RankedDiagnostic>) -> DiagnosticReport {
    all.sort_by(|a, b| {
        let rank = |(origin, it): &RankedDiagnostic| {
            (*origin, it.severity, it.display_path.clone(), it.line, it.column)
        };
        rank(a).cmp(&rank(b))
    });
    all.dedup_by(|(_, a), (_, b)| {
        (&a.display_path, a.line, &a.message) == (&b.display_path, b.line, &b.message)
    });
    let mut report = DiagnosticReport {
        left_out: all.len().saturating_sub(MAX_REPORTED),
        ..DiagnosticReport::default()
    };
    for (origin, diagnostic) in all.into_iter().take(MAX_REPORTED) {
        match origin {
            DiagnosticOrigin::EarlierChange => report.earlier.push(diagnostic),
            DiagnosticOrigin::ChangedFile | DiagnosticOrigin::OtherFile => {
                report.diagnostics.push(diagnostic);
            }
        }
    }
    report
}

/// Converts a server's diagnostic to one for the report: lines and columns count from 1, texts are cut.
pub(crate) fn to_diagnostic(
    diagnostic: &ServerDiagnostic,
    display_path: &str,
    client: &Client,
    index: &LineIndex<'_>,
) -> Diagnostic {
    let ServerDiagnostic { range, severity, code, source, message } = diagnostic;
    let TextPosition { line, column } = index.convert(range.start, client.unit, ColumnUnit::Utf32);
    Diagnostic {
        display_path: display_path.into(),
        line: line + 1,
        column: column + 1,
        severity: match severity {
            1 => DiagnosticSeverity::Error,
            2 => DiagnosticSeverity::Warning,
            3 => DiagnosticSeverity::Information,
            _ => DiagnosticSeverity::Hint,
        },
        message: one_line(message, MAX_MESSAGE),
        code: code.as_deref().map(|code| one_line(code, 80)),
        source: Some(one_line(source.as_deref().unwrap_or(&client.server), 40)),
    }
}

/// Returns a server's text as one line, without invisible characters, cut after about `max` bytes.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let text = visible::strip_invisible(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.len() > max {
        true => format!("{}…", &line[..line.floor_char_boundary(max)]),
        false => line,
    }
}
