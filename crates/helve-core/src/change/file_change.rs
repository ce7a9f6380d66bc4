//! Converts a change into the form that the machine commits and the images that the journal records.

use std::path::Path;

use bytes::Bytes;

use super::{ChangeKind, FileChange};
use crate::journal::{BeforeImage, FileImage, LazyHash};
use crate::machine::commit::{self, ExpectedContent, HardLinks, MovedContent};
use crate::resolved::Resolved;

impl FileChange {
    pub(super) fn to_commit_change(&self) -> commit::CommitChange {
        let expect = |base: &Option<FileImage>| match base {
            None => ExpectedContent::Absent,
            Some(base) if base.is_link() => ExpectedContent::Link(base.bytes.clone()),
            Some(base) => ExpectedContent::File(base.bytes.clone()),
        };
        let at = self.path.place.clone();
        match &self.kind {
            ChangeKind::Write { bytes, mode, links } => commit::CommitChange::Write {
                at,
                expect: expect(&self.base),
                bytes: bytes.clone(),
                mode: *mode,
                links: *links,
            },
            ChangeKind::Remove => commit::CommitChange::Remove { at, expect: expect(&self.base) },
            ChangeKind::Move { to, target_base, bytes } => commit::CommitChange::Move {
                from: at,
                expect: expect(&self.base),
                to: to.place.clone(),
                expect_at_target: expect(target_base),
                content: MovedContent::New(bytes.clone()),
            },
        }
    }

    /// Returns every path that changes.
    pub(super) fn paths(&self) -> Vec<&Resolved> {
        match &self.kind {
            ChangeKind::Write { .. } | ChangeKind::Remove => vec![&self.path],
            ChangeKind::Move { to, .. } => vec![&self.path, to.as_ref()],
        }
    }

    /// Whether the change applies to this path. The target of a move does not count.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.path.real() == path
    }

    /// Returns the path of the new content or, for a removal, of the removed file.
    pub(super) fn target(&self) -> &Resolved {
        match &self.kind {
            ChangeKind::Write { .. } | ChangeKind::Remove => &self.path,
            ChangeKind::Move { to, .. } => to,
        }
    }

    /// What happens to the other hard links. A moved file is written as a new file.
    pub(super) fn links(&self) -> HardLinks {
        match &self.kind {
            ChangeKind::Write { links, .. } => *links,
            ChangeKind::Remove | ChangeKind::Move { .. } => HardLinks::Replace,
        }
    }

    /// Returns the new content; `None` if the file is removed.
    pub(super) fn content(&self) -> Option<Bytes> {
        match &self.kind {
            ChangeKind::Write { bytes, .. } | ChangeKind::Move { bytes, .. } => Some(bytes.clone()),
            ChangeKind::Remove => None,
        }
    }

    /// Returns what the journal records before the change: one image for each of [`FileChange::paths`].
    pub(super) fn before_images(&self, new_hash: Option<&LazyHash>) -> Vec<BeforeImage> {
        let new_hash = new_hash.cloned();
        let source =
            |intended| BeforeImage { path: self.path.real(), image: self.base.clone(), intended };
        match &self.kind {
            ChangeKind::Write { .. } | ChangeKind::Remove => vec![source(new_hash)],
            ChangeKind::Move { to, target_base, .. } => {
                let image = target_base.clone();
                let target = BeforeImage { path: to.real(), image, intended: new_hash };
                vec![source(None), target]
            }
        }
    }

    /// Returns the state after the change: one image for each of [`FileChange::paths`].
    pub(super) fn after_images(&self, final_image: Option<FileImage>) -> Vec<Option<FileImage>> {
        match &self.kind {
            ChangeKind::Write { .. } | ChangeKind::Remove => vec![final_image],
            ChangeKind::Move { .. } => vec![None, final_image],
        }
    }
}
