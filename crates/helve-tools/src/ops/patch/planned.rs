//! The changes on disk that lead to the result of a patch: at most one for each path.

use helve_core::Resolved;
use helve_core::change::{ChangeKind, FileChange, Rebase};
use helve_core::commit::{FileMode, HardLinks};
use helve_core::journal::FileImage;
use helve_text::diff::UnifiedDiff;

use super::PatchedFile;
use super::pending::{EXECUTABLE, PendingFile};
use crate::ops::change::diff::difference;
use crate::ops::change::syntax::Draft;

/// A change to one path, or the move of a file from one path to another.
pub(super) enum PlannedChange {
    /// Writes or removes a file. `origin` is set if the content was moved from a path that the patch then
    /// gave to another file.
    Single {
        file: PendingFile,
        origin: Option<Resolved>,
    },
    Move {
        source: PendingFile,
        target: PendingFile,
    },
}

/// Returns the changes, in the order in which the patch first named the paths. Paths that stay as they are have none.
pub(super) fn plan(files: Vec<PendingFile>) -> Vec<PlannedChange> {
    let mut files: Vec<Option<PendingFile>> = files.into_iter().map(Some).collect();
    let mut changes: Vec<(usize, PlannedChange)> = Vec::new();
    for index in 0..files.len() {
        let origin = files[index].as_ref().and_then(|file| file.moved_from);
        let is_free = |at: usize| files[at].as_ref().is_some_and(|file| file.content.is_none());
        let keeps_mode = files[index].as_ref().is_some_and(|file| file.mode == FileMode::Keep);
        if let Some(at) = origin.filter(|at| is_free(*at) && keeps_mode)
            && let (Some(source), Some(target)) = (files[at].take(), files[index].take())
        {
            changes.push((at.min(index), PlannedChange::Move { source, target }));
        }
    }
    let origins: Vec<Option<(Resolved, u32)>> = files
        .iter()
        .map(|file| {
            let source = files[file.as_ref()?.moved_from?].as_ref()?;
            Some((source.path.clone(), source.base.as_ref()?.mode))
        })
        .collect();
    for (index, (file, origin)) in files.into_iter().zip(origins).enumerate() {
        let Some(mut file) = file else { continue };
        if let (Some((_, mode)), FileMode::Keep) = (&origin, file.mode) {
            file.mode = FileMode::Set(*mode);
        }
        let base = file.base.as_ref().map(|base| &base.bytes[..]);
        let changes_mode = file.content.is_some() && file.mode != FileMode::Keep;
        if base != file.content.as_deref() || changes_mode {
            let origin = origin.map(|(path, _)| path);
            changes.push((index, PlannedChange::Single { file, origin }));
        }
    }
    changes.sort_by_key(|(index, _)| *index);
    changes.into_iter().map(|(_, change)| change).collect()
}

impl PlannedChange {
    /// Returns every path that changes.
    pub(super) fn paths(&self) -> Vec<&Resolved> {
        match self {
            PlannedChange::Single { file, .. } => vec![&file.path],
            PlannedChange::Move { source, target } => vec![&source.path, &target.path],
        }
    }

    /// Returns the file as it was, and as it will be.
    fn sides(&self) -> (&PendingFile, &PendingFile) {
        match self {
            PlannedChange::Single { file, .. } => (file, file),
            PlannedChange::Move { source, target } => (source, target),
        }
    }

    pub(super) fn difference(&self) -> UnifiedDiff {
        let (before, after) = self.sides();
        let base = before.base.as_ref().map(|base| &base.bytes[..]);
        difference(before.path.display(), base, after.content.as_deref())
    }

    pub(super) fn draft(&self) -> Draft {
        let (before, after) = self.sides();
        let display_path = after.path.display().to_string();
        if before.base.as_ref().is_some_and(FileImage::is_link) {
            return Draft { display_path, old: None, new: None };
        }
        let old = before.base.as_ref().map(|base| base.bytes.clone());
        Draft { display_path, old, new: after.content.clone() }
    }

    /// Returns the preview of this change for the person who is asked.
    pub(super) fn preview(&self, diff: &UnifiedDiff) -> String {
        let first = match self {
            PlannedChange::Move { source, target } => {
                let lost = target.base.as_ref().map_or("", |_| ", and replaces what is there");
                format!("{} is moved to {}{lost}\n", source.path.display(), target.path.display())
            }
            PlannedChange::Single { file, origin: Some(origin) } => {
                format!("{} is moved to {}\n", origin.display(), file.path.display())
            }
            PlannedChange::Single { file, origin: None } => match file.mode {
                FileMode::Set(mode) if mode & EXECUTABLE != 0 => {
                    format!("{} becomes executable\n", file.path.display())
                }
                FileMode::Set(_) => format!("{} is no longer executable\n", file.path.display()),
                FileMode::Keep => String::new(),
            },
        };
        first + &diff.text
    }

    pub(super) fn summary(&self) -> PatchedFile {
        let display_path = |file: &PendingFile| file.path.display().to_string();
        match self {
            PlannedChange::Move { source, target } => {
                PatchedFile::Moved { display_path: display_path(source), to: display_path(target) }
            }
            PlannedChange::Single { file, origin: Some(origin) } => {
                PatchedFile::Moved { display_path: origin.display().into(), to: display_path(file) }
            }
            PlannedChange::Single { file, origin: None } => match (&file.base, &file.content) {
                (None, _) => PatchedFile::Added { display_path: display_path(file) },
                (Some(_), None) => PatchedFile::Deleted { display_path: display_path(file) },
                (Some(_), Some(_)) => PatchedFile::Modified { display_path: display_path(file) },
            },
        }
    }

    pub(super) fn into_change(self, links: HardLinks) -> FileChange {
        match self {
            PlannedChange::Move { source, target } => {
                let bytes = target.content.unwrap_or_default();
                let kind =
                    ChangeKind::Move { to: Box::new(target.path), target_base: target.base, bytes };
                FileChange { path: source.path, base: source.base, kind, rebase: Rebase::Merge }
            }
            PlannedChange::Single {
                file: PendingFile { path, base, content, mode, .. }, ..
            } => {
                let kind = match content {
                    None => ChangeKind::Remove,
                    Some(bytes) => ChangeKind::Write { bytes, mode, links },
                };
                FileChange { path, base, kind, rebase: Rebase::Merge }
            }
        }
    }
}
