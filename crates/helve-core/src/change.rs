//! Changes files: load, compute, ask, commit. Tools can write files in no other way.

mod direct;
mod file_change;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::Act;
use helve_text::merge;
use tokio::task::JoinHandle;

use crate::BoxFuture;
use crate::after::{DiagnosticReport, WrittenFile};
use crate::call::CallRef;
use crate::dialect::CommitFailure;
use crate::event::{EventKind, now};
use crate::files::Files;
use crate::gate::Grant;
use crate::journal::{self, EntryId, FileImage, JournalEntry, LazyHash, UndoneCall};
use crate::machine::commit::{
    self, AwaitRecorded, CommitError, Committed, ExpectedContent, FileMode, HardLinks, Recorded,
};
use crate::machine::{FileContent, Machine, MachineError};
use crate::output::ToolError;
use crate::paths;
use crate::resolved::Resolved;
use crate::seen::{KnownContent, SeenState};
use crate::session::Session;

pub use direct::{ComputedContent, DirectChange};

/// The largest file that is loaded as a whole.
pub const MAX_BYTES: u64 = 64 << 20;
/// How many times an approved change is rebased onto a file that keeps changing.
const MAX_REBASES: usize = 100;
/// Time limit for each formatter and for each language server.
const FORMAT_TIMEOUT: Duration = Duration::from_secs(10);

/// A change to one file that a tool asks for.
pub struct FileChange {
    pub path: Resolved,
    /// The file that the change was computed from; `None` if there was none.
    pub base: Option<FileImage>,
    pub kind: ChangeKind,
    pub rebase: Rebase,
}

/// What to do with a file.
pub enum ChangeKind {
    Write {
        bytes: Bytes,
        mode: FileMode,
        links: HardLinks,
    },
    Remove,
    /// Moves the file and gives it this content.
    Move {
        to: Box<Resolved>,
        /// The file that was at the target when the change was computed; `None` if there was none.
        target_base: Option<FileImage>,
        bytes: Bytes,
    },
}

/// Whether a change may be rebased if somebody else changes the file first.
#[derive(Clone)]
pub enum Rebase {
    Never,
    /// Only if the other change is in other lines.
    Merge,
    /// The new content is computed again from the current content. The function returns `None` if the result would no
    /// longer be the approved change.
    Recompute(Arc<RecomputeFn>),
}

/// Computes the new content from the current content.
pub type RecomputeFn = dyn Fn(&[u8]) -> Option<Bytes> + Send + Sync;

/// Files that were changed, and problems that language servers then found in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChanges {
    pub written: Vec<WrittenFile>,
    pub report: DiagnosticReport,
}

/// A file that a call is about to change.
pub struct FileToChange<'p> {
    pub path: &'p Resolved,
    /// Whether the call may create the file. Creating a file needs no permission to read it.
    pub may_be_new: bool,
}

/// Permission to open certain files in order to change or compare them. See [`ToolContext::permit_change`].
///
/// [`ToolContext::permit_change`]: crate::ToolContext::permit_change
#[derive(Default)]
pub struct LoadPermit<'call> {
    /// Files that may be opened, with every link followed.
    readable: HashSet<PathBuf>,
    /// Files that did not exist when permission was given. They are not opened.
    new_files: HashSet<PathBuf>,
    /// The grant to change the files, if they had to be asked about before they were opened.
    pub grant: Option<Grant<'call>>,
    /// Whether the rules allow the change, so that nobody needs to see it before.
    pub is_change_allowed: bool,
}

impl LoadPermit<'_> {
    pub(crate) fn add_readable(&mut self, path: &Resolved) {
        self.readable.insert(path.real());
    }

    pub(crate) fn add_new_file(&mut self, path: &Resolved) {
        self.new_files.insert(path.real());
    }
}

impl Files {
    /// Loads a file for the tool's own use; `None` if the file does not exist.
    pub async fn load(
        &self,
        permit: &LoadPermit<'_>,
        path: &Resolved,
    ) -> Result<Option<FileImage>, ToolError> {
        let words = self.session.dialect.words;
        if permit.new_files.contains(&path.real()) {
            return Ok(None);
        }
        if !permit.readable.contains(&path.real()) {
            return Err(words.not_granted());
        }
        if let Some(target) = &path.link_target {
            return Ok(Some(FileImage::link(target.clone())));
        }
        match path.machine.read(&path.place, MAX_BYTES).await {
            Ok(content) => Ok(Some(to_image(content))),
            Err(MachineError::NotFound) => Ok(None),
            Err(err) => Err(words.machine_error(path.display(), &err)),
        }
    }

    /// Whether the session has seen or written the current content of a file.
    pub async fn seen_state(&self, path: &Resolved, current: &FileImage) -> SeenState {
        self.session.seen_state(&path.real(), current).await
    }

    /// Returns what the call with this id changed or, if `call` is `None`, the last change in this workspace.
    pub async fn recorded_change(
        &self,
        call: Option<&str>,
    ) -> Result<Option<journal::RecordedChange>, ToolError> {
        let change = self.session.workspace.recorded_change(call).await;
        change.map_err(|err| self.session.dialect.words.store_failed(&err.to_string()))
    }

    /// Returns the newest changes in this workspace, newest first, without content.
    pub async fn recorded_changes(
        &self,
        max: usize,
    ) -> Result<Vec<journal::RecordedChange>, ToolError> {
        let workspace = &self.session.workspace;
        let changes = workspace.journal().changes(workspace.root(), max).await;
        changes.map_err(|err| self.session.dialect.words.store_failed(&err.to_string()))
    }

    /// Returns what a call of the given session changed.
    pub async fn change_in_session(
        &self,
        session: &str,
        call: &str,
    ) -> Result<Option<journal::RecordedChange>, ToolError> {
        let change = self.session.workspace.change_in_session(session, call).await;
        change.map_err(|err| self.session.dialect.words.store_failed(&err.to_string()))
    }

    /// Applies changes, all or none. Once started, a commit completes even if its call is cancelled.
    pub async fn commit(
        &self,
        grant: &Grant<'_>,
        changes: Vec<FileChange>,
    ) -> Result<AppliedChanges, ToolError> {
        self.commit_undo(grant, changes, Vec::new()).await
    }

    /// Like [`Files::commit`], for changes that undo those of other calls. The journal records which calls.
    pub async fn commit_undo(
        &self,
        grant: &Grant<'_>,
        changes: Vec<FileChange>,
        undoes: Vec<UndoneCall>,
    ) -> Result<AppliedChanges, ToolError> {
        let words = self.session.dialect.words;
        let mut paths = changes.iter().flat_map(FileChange::paths);
        if !paths.all(|path| grant.covers(&Act::Edit(path.real()))) {
            return Err(words.not_granted());
        }
        let Some(first) = changes.first() else {
            return Ok(AppliedChanges { written: Vec::new(), report: DiagnosticReport::default() });
        };
        let display_path = first.path.display().to_string();
        let job = CommitJob { session: self.session.clone(), call: self.call.clone(), undoes };
        let committing = tokio::spawn(async move { job.commit(changes, None).await });
        self.await_commit(committing, &display_path).await
    }

    /// Waits for a commit, and reports the files that it changed.
    async fn await_commit(
        &self,
        committing: JoinHandle<CommitOutcome>,
        display_path: &str,
    ) -> Result<AppliedChanges, ToolError> {
        let outcome = committing.await.unwrap_or_else(|failed| {
            let why = MachineError::Other(failed.to_string());
            Err(CommitFailure::Journal { why: why.to_string() })
        });
        match outcome {
            Ok((applied, edited)) => {
                for path in edited {
                    self.recorder.emit(&self.call, EventKind::Edited { path });
                }
                Ok(applied)
            }
            Err(failure) => Err(self.session.dialect.words.commit_failed(display_path, &failure)),
        }
    }
}

/// What was applied, and the paths that changed.
type CommitOutcome = Result<(AppliedChanges, Vec<PathBuf>), CommitFailure>;

/// A commit that the machine works on. It changes nothing until `recorded` is confirmed.
struct CommitAttempt {
    recorded: Recorded,
    committing: BoxFuture<'static, Result<Vec<Committed>, CommitError>>,
}

/// Changes that the machine has committed. Each list has one entry per change.
struct CommittedChanges {
    changes: Vec<FileChange>,
    new_hashes: NewHashes,
    committed: Vec<Committed>,
    is_rebased: Vec<bool>,
}

/// Hashes of the new content, one per change; `None` for a removed file.
type NewHashes = Vec<Option<LazyHash>>;

/// A commit in progress, from the journal to the formatters.
struct CommitJob {
    session: Arc<Session>,
    call: Arc<CallRef>,
    undoes: Vec<UndoneCall>,
}

impl CommitJob {
    /// Commits changes, and rebases those that conflict. The first attempt may have been started already.
    async fn commit(
        &self,
        mut changes: Vec<FileChange>,
        mut started: Option<CommitAttempt>,
    ) -> CommitOutcome {
        let mut is_rebased = vec![false; changes.len()];
        let machine = self.session.workspace.host().machine().clone();
        for _ in 0..MAX_REBASES {
            let CommitAttempt { recorded, committing } =
                started.take().unwrap_or_else(|| start_commit(&*machine, &changes));
            let new_hashes: NewHashes =
                changes.iter().map(|change| change.content().map(LazyHash::of)).collect();
            // The machine writes temporary files while the journal hashes and records the old content.
            let (entry, committed) =
                tokio::join!(self.begin_entry(&changes, &new_hashes, recorded), committing);
            let entry = entry?;
            let conflict = match committed {
                Ok(committed) => {
                    let result = CommittedChanges { changes, new_hashes, committed, is_rebased };
                    return self.finish(entry, result).await;
                }
                Err(CommitError::Conflict { at, .. }) => at,
                Err(error) => {
                    // After a torn commit some files stay changed. They can be restored from the journal.
                    if !matches!(error, CommitError::Torn { .. }) {
                        self.session.workspace.journal().discard(entry);
                    }
                    return Err(CommitFailure::Commit {
                        display_path: self.error_path(&changes, &error),
                        error,
                    });
                }
            };
            self.session.workspace.journal().discard(entry);
            let Some(index) = changes.iter().position(|change| change.is_at(&conflict.path()))
            else {
                let error = CommitError::Conflict { at: conflict, found: None };
                return Err(CommitFailure::Commit {
                    display_path: self.error_path(&changes, &error),
                    error,
                });
            };
            rebase(&*machine, &mut changes[index]).await?;
            is_rebased[index] = true;
        }
        Err(CommitFailure::Stale {
            display_path: changes[0].path.display().into(),
            base: None,
            now: None,
        })
    }

    /// Records the old content of all files in the journal, then permits the commit to change them.
    async fn begin_entry(
        &self,
        changes: &[FileChange],
        new_hashes: &NewHashes,
        recorded: Recorded,
    ) -> Result<EntryId, CommitFailure> {
        let entry = JournalEntry {
            call: self.call.id.to_string(),
            session: self.session.id.to_string(),
            tool: self.call.tool.clone(),
            root: self.session.workspace.root().into(),
            at: now(),
            undoes: self.undoes.clone(),
            files: changes
                .iter()
                .zip(new_hashes)
                .flat_map(|(change, new_hash)| change.before_images(new_hash.as_ref()))
                .collect(),
        };
        let id = self.session.workspace.journal().begin(&entry).await;
        let id = id.map_err(|err| CommitFailure::Journal { why: err.to_string() })?;
        recorded.confirm();
        Ok(id)
    }

    /// Formats the changed files, completes the journal entry, and collects diagnostics.
    async fn finish(&self, entry: EntryId, result: CommittedChanges) -> CommitOutcome {
        let CommittedChanges { changes, new_hashes, committed, is_rebased } = result;
        let (mut written, mut after, mut final_images) = (Vec::new(), Vec::new(), Vec::new());
        for (at, change) in changes.iter().enumerate() {
            let image = new_hashes[at].clone().zip(committed[at].mode);
            let image = image.map(|(hash, mode)| FileImage::with_hash(hash, mode));
            let (file, final_image) =
                self.finish_file(change, image, &committed[at], is_rebased[at]).await;
            written.push(file);
            after.extend(change.after_images(final_image.clone()));
            final_images.push(final_image);
        }
        // The files are changed already, so nothing depends on the result.
        drop(self.session.workspace.journal().mark_applied(entry, after));
        for ((change, file), image) in changes.iter().zip(&written).zip(&final_images) {
            self.remember_written(change, &file.path, final_file(image));
        }
        let edited = changes.iter().flat_map(FileChange::paths).map(Resolved::real).collect();
        let report = self.diagnose(&written).await;
        Ok((AppliedChanges { written, report }, edited))
    }

    /// Formats a written file, and returns its final content.
    async fn finish_file(
        &self,
        change: &FileChange,
        image: Option<FileImage>,
        committed: &Committed,
        is_rebased: bool,
    ) -> (WrittenFile, Option<FileImage>) {
        let target = change.target();
        let (mut final_image, mut before_formatting) = (image, None);
        if let Some(image) = &mut final_image
            && !image.is_link()
            && let Some(formatted) = self.format(target, image, change.links()).await
        {
            before_formatting = Some(std::mem::replace(image, formatted).bytes);
        }
        let written = WrittenFile {
            path: target.real(),
            display_path: target.display().into(),
            before: change.base.as_ref().filter(|it| !it.is_link()).map(|it| it.bytes.clone()),
            bytes: final_file(&final_image).map(|image| image.bytes.clone()),
            moved_from: match &change.kind {
                ChangeKind::Move { .. } => Some(change.path.real()),
                ChangeKind::Write { .. } | ChangeKind::Remove => None,
            },
            rebased: is_rebased,
            hard_links: committed.links,
            link_mode: change.links(),
            before_formatting,
        };
        (written, final_image)
    }

    /// Updates the session's record of a file that was written, moved or removed.
    fn remember_written(&self, change: &FileChange, path: &Path, image: Option<&FileImage>) {
        if let ChangeKind::Move { .. } = change.kind {
            self.session.forget(&change.path.real());
        }
        match image {
            Some(image) => self.session.mark_content(path, KnownContent::of(image)),
            None => self.session.forget(path),
        }
    }

    /// Runs the formatters on a written file. The formatted content is written by a second compare-and-swap, so that it
    /// never replaces what somebody else wrote. Returns the formatted file; `None` if nothing changed.
    async fn format(
        &self,
        path: &Resolved,
        image: &FileImage,
        links: HardLinks,
    ) -> Option<FileImage> {
        let mut formatted_image = None;
        for formatter in self.session.workspace.after_write() {
            let current = formatted_image.as_ref().unwrap_or(image);
            let formatting = formatter.format(path, &current.bytes);
            let Ok(Some(formatted)) = tokio::time::timeout(FORMAT_TIMEOUT, formatting).await else {
                continue;
            };
            if formatted == current.bytes {
                continue;
            }
            let change = commit::CommitChange::Write {
                at: path.place.clone(),
                expect: ExpectedContent::File(current.bytes.clone()),
                bytes: formatted.clone(),
                mode: FileMode::Keep,
                links,
            };
            // There is nothing to record, because the journal has the content from before the first commit of the call.
            let committing = path.machine.commit(vec![change], AwaitRecorded::nothing());
            if committing.await.is_ok() {
                formatted_image = Some(FileImage::new(formatted, current.mode));
            }
        }
        formatted_image
    }

    async fn diagnose(&self, written: &[WrittenFile]) -> DiagnosticReport {
        let mut all = DiagnosticReport::default();
        for checker in self.session.workspace.after_write() {
            let diagnosing = checker.diagnose(written);
            all.add(tokio::time::timeout(FORMAT_TIMEOUT, diagnosing).await.unwrap_or_default());
        }
        all
    }

    /// Returns the displayed path of the file that a commit failed on.
    fn error_path(&self, changes: &[FileChange], error: &CommitError) -> String {
        let at = match error {
            CommitError::Conflict { at, .. }
            | CommitError::ReadOnly { at }
            | CommitError::DuplicateFile { at }
            | CommitError::Busy { at, .. }
            | CommitError::NotRecorded { at }
            | CommitError::Failed { at, .. }
            | CommitError::Torn { at, .. } => at.path(),
            CommitError::Lock { folder, .. } => folder.clone(),
        };
        let mut paths = changes.iter().flat_map(FileChange::paths);
        let changed = paths.find(|path| path.real() == at);
        changed.map_or_else(|| paths::display(&at).into_owned(), |path| path.display().into())
    }
}

fn start_commit(machine: &dyn Machine, changes: &[FileChange]) -> CommitAttempt {
    let (recorded, awaited) = commit::record_signal();
    let changes = changes.iter().map(FileChange::to_commit_change).collect();
    CommitAttempt { recorded, committing: machine.commit(changes, awaited) }
}

/// Returns the image of a regular file; `None` for a symbolic link.
fn final_file(image: &Option<FileImage>) -> Option<&FileImage> {
    image.as_ref().filter(|image| !image.is_link())
}

fn to_image(FileContent { bytes, mode }: FileContent) -> FileImage {
    FileImage::new(bytes, mode)
}

/// Rebases an approved change onto the current content of its file, if [`FileChange::rebase`] permits it.
async fn rebase(machine: &dyn Machine, change: &mut FileChange) -> Result<(), CommitFailure> {
    let display_path = change.path.display().to_string();
    if change.base.as_ref().is_some_and(FileImage::is_link) {
        return Err(CommitFailure::Stale { display_path, base: None, now: None });
    }
    let theirs = match machine.read(&change.path.place, MAX_BYTES).await {
        Ok(content) => Some(to_image(content)),
        Err(MachineError::NotFound) => None,
        Err(why) => {
            let error = CommitError::Failed { at: change.path.place.clone(), why };
            return Err(CommitFailure::Commit { display_path, error });
        }
    };
    let stale = || CommitFailure::Stale {
        display_path: display_path.clone(),
        base: change.base.as_ref().map(|base| base.bytes.clone()),
        now: theirs.as_ref().map(|theirs| theirs.bytes.clone()),
    };
    let (Some(base), Some(theirs)) = (&change.base, &theirs) else { return Err(stale()) };
    let bytes = match &mut change.kind {
        ChangeKind::Write { bytes, .. } | ChangeKind::Move { bytes, .. } => bytes,
        ChangeKind::Remove => return Err(stale()),
    };
    let rebased = match &change.rebase {
        Rebase::Never => None,
        Rebase::Merge => merge::merge3(&base.bytes, bytes, &theirs.bytes).ok().map(Bytes::from),
        Rebase::Recompute(compute) => {
            let (compute, theirs) = (compute.clone(), theirs.bytes.clone());
            let computing = tokio::task::spawn_blocking(move || compute(&theirs));
            computing.await.ok().flatten()
        }
    };
    *bytes = rebased.ok_or_else(stale)?;
    change.base = Some(theirs.clone());
    Ok(())
}
