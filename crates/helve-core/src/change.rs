//! Changing files: load, compute, ask, commit. This is the only way from new content to a file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::{Act, Action, Refusal};
use helve_text::merge;

use crate::after::{Diagnostic, WrittenFile};
use crate::call::CallRef;
use crate::dialect::CommitFailure;
use crate::event::{EventKind, now};
use crate::files::Files;
use crate::gate::Grant;
use crate::journal::{self, BeforeImage, EntryId, FileImage, JournalEntry};
use crate::machine::commit::{
    self, CommitError, Committed, ContentHash, ExpectedContent, FileMode, HardLinks, MovedContent,
};
use crate::machine::{FileContent, Machine, MachineError};
use crate::output::ToolError;
use crate::paths;
use crate::resolved::Resolved;
use crate::session::Session;
use crate::shown::Shown;

/// The largest file that is loaded as a whole.
pub const MAX_BYTES: u64 = 64 << 20;
/// How often an approved change is rebased onto a file that keeps changing.
const MAX_REBASES: usize = 8;
/// How long a formatter or language server may take.
const FORMAT_TIMEOUT: Duration = Duration::from_secs(10);

/// A change that a tool asks for.
pub struct FileChange {
    pub path: Resolved,
    /// The content that the change was computed from; `None` if there was no file.
    pub base: Option<FileImage>,
    pub then: ChangeKind,
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
    /// The file gets another name and this content.
    Move {
        to: Box<Resolved>,
        over: Option<FileImage>,
        bytes: Bytes,
    },
}

/// Whether a change may be rebased onto a file that has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebase {
    Never,
    /// Only if other lines changed.
    Merge,
}

/// Changes that were applied, and problems found afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChanges {
    pub written: Vec<WrittenFile>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Files {
    /// Loads a file for the tool's own use; `None` if there is none.
    ///
    /// Fails if reading is denied. If reading must be asked about, the file is loaded, but nothing about it may be reported before the call has asked.
    pub async fn load(&self, path: &Resolved) -> Result<Option<FileImage>, ToolError> {
        let words = self.session.dialect.words;
        for part in path.read_request().parts {
            let verdict = self.session.gate.judge(&part).await;
            match verdict.action {
                Action::Allow => {}
                Action::Ask => self.unasked.lock().push(part),
                Action::Deny => {
                    return Err(words.refused(&Refusal::Forbidden(Box::new((part, verdict)))));
                }
            }
        }
        match path.machine.read(&path.place, MAX_BYTES).await {
            Ok(whole) => Ok(Some(image(whole))),
            Err(MachineError::NotFound) => Ok(None),
            Err(err) => Err(words.machine_error(path.shown(), &err)),
        }
    }

    /// Whether the session has seen or written the file in its present state.
    pub async fn shown(&self, path: &Resolved, now: &FileImage) -> Shown {
        self.session.was_shown(&path.real(), now).await
    }

    /// Returns what a call changed, or the last change in this folder.
    pub async fn recorded_change(
        &self,
        call: Option<&str>,
    ) -> Result<Option<journal::RecordedChange>, ToolError> {
        let found = self.session.workspace.recorded_change(call).await;
        found.map_err(|err| self.session.dialect.words.memory_failed(&err.to_string()))
    }

    /// Applies changes, all or none. Once started it is not cancelled with its call.
    pub async fn commit(
        &self,
        grant: &Grant<'_>,
        wanted: Vec<FileChange>,
    ) -> Result<AppliedChanges, ToolError> {
        let words = self.session.dialect.words;
        let mut acts = wanted.iter().flat_map(|want| want.touches());
        if !acts.all(|path| grant.covers(&Act::Edit(path.real()))) {
            return Err(words.not_granted());
        }
        let Some(first) = wanted.first() else {
            return Ok(AppliedChanges { written: Vec::new(), diagnostics: Vec::new() });
        };
        let shown = first.path.shown().to_string();
        let job = CommitJob { session: self.session.clone(), call: self.call.clone() };
        let committing = tokio::spawn(async move { job.commit(wanted).await });
        let made = committing.await.unwrap_or_else(|failed| {
            let why = MachineError::Other(failed.to_string());
            Err(CommitFailure::Journal { why: why.to_string() })
        });
        match made {
            Ok((made, edited)) => {
                for path in edited {
                    self.recorder.emit(&self.call, EventKind::Edited { path });
                }
                Ok(made)
            }
            Err(unmade) => Err(words.commit_failed(&shown, &unmade)),
        }
    }
}

/// The result of a commit, one entry per change.
struct CommittedChanges {
    wanted: Vec<FileChange>,
    intended: Vec<Option<ContentHash>>,
    committed: Vec<Committed>,
    moved_on: Vec<bool>,
}

/// A commit in progress, from the journal to the formatters.
struct CommitJob {
    session: Arc<Session>,
    call: Arc<CallRef>,
}

impl CommitJob {
    async fn commit(
        &self,
        mut wanted: Vec<FileChange>,
    ) -> Result<(AppliedChanges, Vec<PathBuf>), CommitFailure> {
        let mut moved_on = vec![false; wanted.len()];
        let machine = self.session.workspace.host().machine().clone();
        for _ in 0..MAX_REBASES {
            let intended = self.hash_new_content(&wanted).await?;
            let entry = self.begin(&wanted, &intended).await?;
            let changes = wanted.iter().map(FileChange::change).collect();
            let conflict = match machine.commit(changes).await {
                Ok(committed) => {
                    let done = CommittedChanges { wanted, intended, committed, moved_on };
                    return self.finish(entry, done).await;
                }
                Err(CommitError::Conflict { at, .. }) => at,
                Err(error) => {
                    // Files that stayed changed can be restored from the journal.
                    if !matches!(error, CommitError::Torn { .. }) {
                        self.session.workspace.journal().discard(entry);
                    }
                    return Err(CommitFailure::Commit {
                        shown: self.error_path(&wanted, &error),
                        error,
                    });
                }
            };
            self.session.workspace.journal().discard(entry);
            let Some(index) = wanted.iter().position(|want| want.is_at(&conflict.path())) else {
                let error = CommitError::Conflict { at: conflict, found: None };
                return Err(CommitFailure::Commit {
                    shown: self.error_path(&wanted, &error),
                    error,
                });
            };
            rebase(&*machine, &mut wanted[index]).await?;
            moved_on[index] = true;
        }
        Err(CommitFailure::Stale { shown: wanted[0].path.shown().into(), now: None })
    }

    /// Hashes the new content of each file, off the runtime's threads.
    async fn hash_new_content(
        &self,
        wanted: &[FileChange],
    ) -> Result<Vec<Option<ContentHash>>, CommitFailure> {
        let contents: Vec<_> = wanted.iter().map(FileChange::content).collect();
        let hash = |bytes: Option<Bytes>| bytes.map(|bytes| ContentHash::of(&bytes));
        let hashing = move || contents.into_iter().map(hash).collect();
        let hash_new_content = tokio::task::spawn_blocking(hashing).await;
        hash_new_content.map_err(|failed| CommitFailure::Journal { why: failed.to_string() })
    }

    async fn begin(
        &self,
        wanted: &[FileChange],
        intended: &[Option<ContentHash>],
    ) -> Result<EntryId, CommitFailure> {
        let entry = JournalEntry {
            call: self.call.id.to_string(),
            session: self.session.id.to_string(),
            tool: self.call.tool.clone(),
            root: self.session.workspace.root().into(),
            at: now(),
            files: wanted
                .iter()
                .zip(intended)
                .flat_map(|(want, intended)| want.before(*intended))
                .collect(),
        };
        let begun = self.session.workspace.journal().begin(&entry).await;
        begun.map_err(|err| CommitFailure::Journal { why: err.to_string() })
    }

    async fn finish(
        &self,
        entry: EntryId,
        done: CommittedChanges,
    ) -> Result<(AppliedChanges, Vec<PathBuf>), CommitFailure> {
        let CommittedChanges { wanted, intended, committed, moved_on } = done;
        let (mut written, mut after) = (Vec::new(), Vec::new());
        for (at, want) in wanted.iter().enumerate() {
            let now = want.content().zip(intended[at]).zip(committed[at].mode);
            let now = now.map(|((bytes, hash), mode)| FileImage { bytes, mode, hash });
            let (made, left) = self.written(want, now, &committed[at], moved_on[at]).await;
            written.push(made);
            after.extend(want.after(left));
        }
        // The files are changed. An entry that cannot be completed still has the old content.
        self.session.workspace.journal().done(entry, &after).await.ok();
        let edited = wanted.iter().flat_map(|want| want.touches()).map(Resolved::real).collect();
        let diagnostics = self.diagnose(&written).await;
        Ok((AppliedChanges { written, diagnostics }, edited))
    }

    /// Formats a written file, updates the session's record of it, and returns its final content.
    async fn written(
        &self,
        want: &FileChange,
        now: Option<FileImage>,
        done: &Committed,
        moved_on: bool,
    ) -> (WrittenFile, Option<FileImage>) {
        let target = want.target();
        let (mut now, mut is_formatted) = (now, false);
        if let Some(image) = &mut now
            && let Some(formatted) = self.format(target, image, want.links()).await
        {
            (*image, is_formatted) = (formatted, true);
        }
        let written = WrittenFile {
            path: target.real(),
            shown: target.shown().into(),
            bytes: now.as_ref().map(|image| image.bytes.clone()),
            rebased: moved_on,
            hard_links: done.links,
            link_mode: want.links(),
            formatted: is_formatted,
        };
        if let ChangeKind::Move { .. } = want.then {
            self.session.forget(&want.path.real());
        }
        match &now {
            Some(image) => self.session.wrote(&written.path, image),
            None => self.session.forget(&written.path),
        }
        (written, now)
    }

    /// Writes formatted content by a second compare-and-swap, which replaces only our own bytes.
    async fn format(
        &self,
        path: &Resolved,
        image: &FileImage,
        links: HardLinks,
    ) -> Option<FileImage> {
        let mut now = image.clone();
        for neighbour in self.session.workspace.after() {
            let formatting = neighbour.format(path, &now.bytes);
            let Ok(Some(better)) = tokio::time::timeout(FORMAT_TIMEOUT, formatting).await else {
                continue;
            };
            if better == now.bytes {
                continue;
            }
            let change = commit::CommitChange::Write {
                at: path.place.clone(),
                expect: ExpectedContent::Hash(now.hash),
                bytes: better.clone(),
                mode: FileMode::Keep,
                links,
            };
            if path.machine.commit(vec![change]).await.is_ok() {
                now = FileImage::new(better, now.mode);
            }
        }
        (now.bytes != image.bytes).then_some(now)
    }

    async fn diagnose(&self, written: &[WrittenFile]) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        for neighbour in self.session.workspace.after() {
            let looking = neighbour.diagnose(written);
            all.extend(tokio::time::timeout(FORMAT_TIMEOUT, looking).await.unwrap_or_default());
        }
        all
    }

    fn error_path(&self, wanted: &[FileChange], error: &CommitError) -> String {
        let at = match error {
            CommitError::Conflict { at, .. }
            | CommitError::ReadOnly { at }
            | CommitError::Twice { at }
            | CommitError::Busy { at, .. }
            | CommitError::Failed { at, .. }
            | CommitError::Torn { at, .. } => at.path(),
            CommitError::Lock { folder, .. } => folder.clone(),
        };
        let touched = wanted.iter().flat_map(|want| want.touches());
        let known = touched.into_iter().find(|path| path.real() == at);
        known.map_or_else(|| paths::display(&at).into_owned(), |path| path.shown().into())
    }
}

fn image(FileContent { bytes, mode, hash }: FileContent) -> FileImage {
    FileImage { bytes, mode, hash }
}

/// Rebases an approved change onto the present file, if other lines changed.
async fn rebase(machine: &dyn Machine, want: &mut FileChange) -> Result<(), CommitFailure> {
    let shown = want.path.shown().to_string();
    let theirs = match machine.read(&want.path.place, MAX_BYTES).await {
        Ok(whole) => Some(image(whole)),
        Err(MachineError::NotFound) => None,
        Err(why) => {
            let error = CommitError::Failed { at: want.path.place.clone(), why };
            return Err(CommitFailure::Commit { shown, error });
        }
    };
    let stale = || CommitFailure::Stale {
        shown: shown.clone(),
        now: theirs.as_ref().map(|theirs| theirs.bytes.clone()),
    };
    let (Rebase::Merge, Some(base), Some(theirs)) = (want.rebase, &want.base, &theirs) else {
        return Err(stale());
    };
    match &mut want.then {
        ChangeKind::Write { bytes, .. } | ChangeKind::Move { bytes, .. } => {
            let merged = merge::merge3(&base.bytes, bytes, &theirs.bytes);
            *bytes = merged.map_err(|_conflict| stale())?.into();
        }
        ChangeKind::Remove => return Err(stale()),
    }
    want.base = Some(theirs.clone());
    Ok(())
}

impl FileChange {
    fn change(&self) -> commit::CommitChange {
        let expect = |base: &Option<FileImage>| {
            base.as_ref().map_or(ExpectedContent::Absent, |base| ExpectedContent::Hash(base.hash))
        };
        let at = self.path.place.clone();
        match &self.then {
            ChangeKind::Write { bytes, mode, links } => commit::CommitChange::Write {
                at,
                expect: expect(&self.base),
                bytes: bytes.clone(),
                mode: *mode,
                links: *links,
            },
            ChangeKind::Remove => commit::CommitChange::Remove { at, expect: expect(&self.base) },
            ChangeKind::Move { to, over, bytes } => commit::CommitChange::Move {
                from: at,
                expect: expect(&self.base),
                to: to.place.clone(),
                over: expect(over),
                content: MovedContent::New(bytes.clone()),
            },
        }
    }

    /// Returns every path that changes.
    fn touches(&self) -> Vec<&Resolved> {
        match &self.then {
            ChangeKind::Write { .. } | ChangeKind::Remove => vec![&self.path],
            ChangeKind::Move { to, .. } => vec![&self.path, to.as_ref()],
        }
    }

    fn is_at(&self, path: &std::path::Path) -> bool {
        self.path.real() == path
    }

    /// The path that has the content afterwards.
    fn target(&self) -> &Resolved {
        match &self.then {
            ChangeKind::Write { .. } | ChangeKind::Remove => &self.path,
            ChangeKind::Move { to, .. } => to,
        }
    }

    /// What happens to other hard links. A moved file is a new one.
    fn links(&self) -> HardLinks {
        match &self.then {
            ChangeKind::Write { links, .. } => *links,
            ChangeKind::Remove | ChangeKind::Move { .. } => HardLinks::Replace,
        }
    }

    fn content(&self) -> Option<Bytes> {
        match &self.then {
            ChangeKind::Write { bytes, .. } | ChangeKind::Move { bytes, .. } => Some(bytes.clone()),
            ChangeKind::Remove => None,
        }
    }

    fn before(&self, intended: Option<ContentHash>) -> Vec<BeforeImage> {
        let own =
            |intended| BeforeImage { path: self.path.real(), image: self.base.clone(), intended };
        match &self.then {
            ChangeKind::Write { .. } | ChangeKind::Remove => vec![own(intended)],
            ChangeKind::Move { to, over, .. } => {
                vec![own(None), BeforeImage { path: to.real(), image: over.clone(), intended }]
            }
        }
    }

    /// The state afterwards, in the order of [`FileChange::before`].
    fn after(&self, left: Option<FileImage>) -> Vec<Option<FileImage>> {
        match &self.then {
            ChangeKind::Write { .. } | ChangeKind::Remove => vec![left],
            ChangeKind::Move { .. } => vec![None, left],
        }
    }
}
