//! Gets the diagnostics of changed files before and after the change, waiting no longer than a deadline.
//!
//! A change that a server did not check in time is checked together with the next change. In that case three texts are
//! compared: before the first unchecked change, before the latest change, and after it. This way each problem is
//! attributed to the right change.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::{Client, Documents, MAX_UNANSWERED, OldText};
use crate::connection::Published;
use crate::wire::ServerDiagnostic;

/// Maximum number of changed files that are checked at once. Together with [`MAX_EARLIER`] it must not exceed
/// [`super::MAX_DOCUMENTS`], because servers report nothing about closed documents.
const MAX_CHECKED: usize = 30;
/// Maximum number of files that are checked because of earlier changes only.
const MAX_EARLIER: usize = 5;

/// A changed file to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileToCheck {
    pub(crate) path: PathBuf,
    pub(crate) language: &'static str,
    /// The text before the change; `None` for a new file.
    pub(crate) before: Option<Arc<str>>,
    pub(crate) after: Arc<str>,
}

/// A text of a file and its diagnostics.
#[derive(Clone, Default)]
pub(crate) struct CheckedText {
    pub(crate) text: Arc<str>,
    pub(crate) diagnostics: Vec<ServerDiagnostic>,
}

/// The diagnostics of a file before and after a change.
pub(crate) struct CheckedFile {
    pub(crate) path: PathBuf,
    /// The text before the earlier changes that the server did not check in time; `None` if there are no such changes.
    pub(crate) last_checked_text: Option<CheckedText>,
    pub(crate) before: CheckedText,
    pub(crate) after: CheckedText,
}

/// The result of a check.
#[derive(Default)]
pub(crate) struct Checked {
    /// Empty if the server did not answer in time.
    pub(crate) files: Vec<CheckedFile>,
    /// Other files for which the server published diagnostics during the check.
    pub(crate) others: Vec<OtherFile>,
}

/// A file that was not part of a check, but got new diagnostics during it.
pub(crate) struct OtherFile {
    pub(crate) path: PathBuf,
    /// The diagnostics that were published before the check.
    pub(crate) before: Vec<ServerDiagnostic>,
    /// The diagnostics that were published during the check.
    pub(crate) after: Arc<Published>,
}

/// A text to check: the text of a document before or after a change.
struct DocumentText {
    path: PathBuf,
    language: &'static str,
    text: Arc<str>,
}

impl Client {
    /// Sends changed files to the server and waits for their diagnostics until the deadline. Afterwards the server has
    /// the new texts, whether it answered in time or not. `unsent` are earlier changes that were not sent to it. If
    /// another check runs until the deadline, nothing is sent, and all files are returned as `Err`.
    pub(crate) async fn check(
        &self,
        mut files: Vec<FileToCheck>,
        mut unsent: Vec<FileToCheck>,
        deadline: Instant,
    ) -> Result<Checked, Vec<FileToCheck>> {
        *self.last_used.lock() = Instant::now();
        let Ok(mut documents) = timeout_at(deadline, self.documents.lock()).await else {
            unsent.append(&mut files);
            return Err(unsent);
        };
        let documents = &mut *documents;
        for file in unsent {
            self.send_unchecked(documents, file, deadline).await;
        }
        // Further files are not checked, but the server must not keep their old texts.
        for file in files.split_off(files.len().min(MAX_CHECKED)) {
            if documents.open.contains_key(&file.path) {
                self.set_text(documents, &file.path, file.language, &file.after).await;
            }
        }
        let earlier = documents.unchecked_files(&files);
        let mut checked = Checked::default();
        let checking = self.check_files(documents, &files, &earlier, &mut checked);
        let is_answered = timeout_at(deadline, checking).await.ok().flatten().is_some();
        if is_answered {
            self.is_warm.store(true, Ordering::Relaxed);
            self.unanswered.store(0, Ordering::Relaxed);
        } else {
            checked = Checked::default();
            self.count_unanswered().await;
        }
        for file in files.into_iter().chain(earlier) {
            match is_answered {
                true => documents.clear_unchecked(&file.path),
                false => self.send_unchecked(documents, file, deadline).await,
            }
        }
        Ok(checked)
    }

    /// Counts a check that was not answered in time. Ends a server that repeatedly sends nothing at all.
    async fn count_unanswered(&self) {
        let received = self.connection.state.received();
        let is_silent = self.last_received.swap(received, Ordering::Relaxed) == received;
        if !is_silent || self.is_busy() {
            return;
        }
        if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_UNANSWERED {
            self.connection.end("it no longer answered").await;
        }
    }

    /// Sends the server the new text of a file, and records that the change was not checked.
    async fn send_unchecked(
        &self,
        documents: &mut Documents,
        file: FileToCheck,
        deadline: Instant,
    ) {
        let FileToCheck { path, language, before, after } = file;
        // The deadline may have passed already. Without a grace period, the server would keep the old text.
        let grace = deadline.max(Instant::now()) + Duration::from_millis(20);
        let setting = self.set_text(documents, &path, language, &after);
        timeout_at(grace, setting).await.ok();
        if let Some(document) = documents.open.get_mut(&path) {
            document.last_checked_text.get_or_insert(before);
        }
    }

    /// Checks the changed files, and those in `earlier`, which this change does not touch, but whose earlier changes
    /// were never checked. Fills in `checked`. Returns `None` if the server ended.
    async fn check_files(
        &self,
        documents: &mut Documents,
        files: &[FileToCheck],
        earlier: &[FileToCheck],
        checked: &mut Checked,
    ) -> Option<()> {
        if !self.is_warm() {
            self.wait_until_ready().await;
        }
        // First, the texts before this change. A server that has been running still has them open.
        let before = files.iter().map(|file| file.document_text(file.before.as_ref()));
        let current = earlier.iter().map(|file| file.document_text(Some(&file.after)));
        let mut before = self.check_texts(documents, before.chain(current).collect()).await?;
        let current = before.split_off(files.len());

        // Then the texts before the earlier changes that were not checked.
        let all: Vec<&FileToCheck> = files.iter().chain(earlier).collect();
        let old_texts: Vec<_> =
            all.iter().map(|file| documents.last_checked_text(&file.path)).collect();
        // Two kinds of files have no such text: those without unchecked changes (the outer `None`), and those that did
        // not exist when they were last checked (the inner `None`).
        let texts = old_texts
            .iter()
            .zip(&all)
            .map(|(old_text, file)| file.document_text(old_text.as_ref()?.as_ref()));
        let checked_texts = self.check_texts(documents, texts.collect()).await?;
        let mut last_checked_texts = old_texts
            .into_iter()
            .zip(checked_texts)
            .map(|(old_text, checked)| old_text.map(|_| checked.unwrap_or_default()));

        // Last, the texts after this change, which the server keeps.
        let others_before = self.connection.state.all_published();
        for file in files {
            self.set_text(documents, &file.path, file.language, &file.after).await;
            self.notify_saved(&file.path, &file.after).await;
        }
        let after = files.iter().map(|file| file.document_text(Some(&file.after)));
        let after = self.check_texts(documents, after.collect()).await?;
        for (file, (before, after)) in files.iter().zip(before.into_iter().zip(after)) {
            let (path, oldest) = (file.path.clone(), last_checked_texts.next().flatten());
            let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
            checked.files.push(CheckedFile { path, last_checked_text: oldest, before, after });
        }
        for (file, current) in earlier.iter().zip(current.into_iter().flatten()) {
            self.set_text(documents, &file.path, file.language, &file.after).await;
            documents.set_diagnostics(&file.path, current.diagnostics.clone());
            let (path, oldest) = (file.path.clone(), last_checked_texts.next().flatten());
            checked.files.push(CheckedFile {
                path,
                last_checked_text: oldest,
                before: current.clone(),
                after: current,
            });
        }
        checked.others = self.other_files(&all, &others_before);
        Some(())
    }

    /// Returns the diagnostics of these texts. Sends the server the texts that it does not have yet. Returns `None` if
    /// the server ended.
    async fn check_texts(
        &self,
        documents: &mut Documents,
        texts: Vec<Option<DocumentText>>,
    ) -> Option<Vec<Option<CheckedText>>> {
        let mut unchecked = Vec::new();
        for DocumentText { path, language, text } in texts.iter().flatten() {
            let document = documents.open.get(path).filter(|document| document.text == *text);
            if document.is_none_or(|document| document.diagnostics.is_none()) {
                let sent = self.set_text(documents, path, language, text).await;
                unchecked.push((path.clone(), sent));
            }
        }
        let found =
            join_all(unchecked.iter().map(|(path, sent)| self.diagnostics(path, *sent))).await;
        for ((path, _), diagnostics) in unchecked.iter().zip(found) {
            documents.set_diagnostics(path, diagnostics?);
        }
        let checked = texts.into_iter().map(|text| {
            let DocumentText { path, text, .. } = text?;
            let document = documents.open.get(&path);
            let diagnostics = document.and_then(|document| document.diagnostics.clone());
            Some(CheckedText { text, diagnostics: diagnostics.unwrap_or_default() })
        });
        Some(checked.collect())
    }

    /// Returns the files besides `files` for which diagnostics were published since `before`.
    fn other_files(
        &self,
        files: &[&FileToCheck],
        before: &HashMap<PathBuf, Arc<Published>>,
    ) -> Vec<OtherFile> {
        // While a server loads a project, it publishes problems that existed before the change.
        if !self.is_warm() {
            return Vec::new();
        }
        let after = self.connection.state.all_published().into_iter();
        let mut others: Vec<_> = after
            .filter(|(path, _)| !files.iter().any(|file| file.path == *path))
            .filter(|(path, published)| {
                before.get(path).is_none_or(|before| before.sequence != published.sequence)
            })
            .map(|(path, published)| {
                let old = before.get(&path).map(|before| before.diagnostics.clone());
                OtherFile { path, before: old.unwrap_or_default(), after: published }
            })
            .collect();
        others.sort_by(|a, b| a.path.cmp(&b.path));
        others
    }
}

impl FileToCheck {
    /// Pairs a text with the path and language of this file.
    fn document_text(&self, text: Option<&Arc<str>>) -> Option<DocumentText> {
        let (path, language) = (self.path.clone(), self.language);
        text.map(|text| DocumentText { path, language, text: text.clone() })
    }
}

impl Documents {
    /// Returns the [`super::OpenDocument::last_checked_text`] of a document.
    fn last_checked_text(&self, path: &Path) -> Option<OldText> {
        self.open.get(path).and_then(|document| document.last_checked_text.clone())
    }

    /// Returns the files with unchecked changes besides `files`, the most recently used first, at most [`MAX_EARLIER`].
    fn unchecked_files(&self, files: &[FileToCheck]) -> Vec<FileToCheck> {
        let open = self.open.iter().filter(|(path, _)| !files.iter().any(|it| it.path == **path));
        let mut open: Vec<_> =
            open.filter_map(|(path, it)| Some((path, it, it.last_checked_text.clone()?))).collect();
        open.sort_by_key(|(_, document, _)| std::cmp::Reverse(document.last_use));
        let found = open.into_iter().take(MAX_EARLIER).map(|(path, document, before)| {
            let (language, after) = (document.language, document.text.clone());
            FileToCheck { path: path.clone(), language, before, after }
        });
        found.collect()
    }

    fn clear_unchecked(&mut self, path: &Path) {
        if let Some(document) = self.open.get_mut(path) {
            document.last_checked_text = None;
        }
    }
}
