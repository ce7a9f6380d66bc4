//! Changes files: either all files of a commit or none. Every change that Helve makes to a file goes through here. The
//! steps: lock, write a temporary file, compare the old file, read back, sync, rename, unlock.

mod existing;
#[cfg(any(test, feature = "faults"))]
pub(crate) mod faults;
mod folders;
mod locks;
mod stage;
mod sweep;
mod sys;
mod target;

use std::os::fd::OwnedFd;

use helve_core::{MachineError, Place};
use rustix::io::Errno;

use self::existing::{has_content, inspect, inspect_link};
use self::folders::Folders;
pub(crate) use self::locks::PathLocks;
use self::stage::FileRights;
pub(crate) use self::sweep::SweptFolders;
pub(crate) use self::sys::Syscalls;
use self::target::{CommitTarget, InstallError, NewState, TargetProgress};
use crate::errors::machine_error;
pub use helve_core::commit::{
    AwaitRecorded, CommitChange, CommitError, Committed, ComputeChange, ContentHash,
    ExpectedContent, FileMode, HardLinks, MovedContent, NotRecorded, NotRolledBack, is_link_mode,
};

/// How many times a step of a rollback or cleanup is attempted.
const MAX_ATTEMPTS: usize = 3;

/// The result of a commit that was applied.
#[derive(Debug)]
pub(crate) struct AppliedCommit {
    pub(crate) committed: Vec<Committed>,
    /// The files that were replaced or removed. Closing the last handle of a large file takes a while, because its
    /// blocks are freed.
    #[expect(dead_code, reason = "held only to be closed later")]
    replaced: Vec<OwnedFd>,
}

/// Applies all changes or none. Blocks, and cannot be cancelled once started.
pub(crate) fn commit(
    sys: &Syscalls,
    locks: &PathLocks,
    swept: &SweptFolders,
    changes: &[CommitChange],
    recorded: AwaitRecorded,
) -> Result<AppliedCommit, CommitError> {
    let places = places(changes)?;
    let _locked = locks.acquire(sys, &places)?;
    let mut transaction =
        Transaction { sys, swept, folders: Folders::new(sys), targets: Vec::new() };
    for change in changes {
        transaction.plan(change)?;
    }
    match transaction.run(recorded) {
        Ok(()) => {
            transaction.clean_up();
            let committed = transaction.committed(changes);
            let replaced = transaction.targets.into_iter().filter_map(|target| target.existing);
            Ok(AppliedCommit { committed, replaced: replaced.map(|file| file.file).collect() })
        }
        Err((index, error)) => Err(transaction.roll_back(index, error)),
    }
}

/// Returns every place that changes; an error if one is named twice.
fn places(changes: &[CommitChange]) -> Result<Vec<&Place>, CommitError> {
    let all = changes.iter().flat_map(|change| match change {
        CommitChange::Write { at, .. } | CommitChange::Remove { at, .. } => vec![at],
        CommitChange::Move { from, to, .. } => vec![from, to],
    });
    let mut places: Vec<(_, &Place)> = all.map(|place| (place.path(), place)).collect();
    places.sort_by(|first, second| first.0.cmp(&second.0));
    match places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(CommitError::DuplicateFile { at: pair[0].1.clone() }),
        None => Ok(places.into_iter().map(|(_, place)| place).collect()),
    }
}

struct Transaction<'a> {
    sys: &'a Syscalls,
    swept: &'a SweptFolders,
    folders: Folders<'a>,
    targets: Vec<CommitTarget<'a>>,
}

impl<'a> Transaction<'a> {
    /// Opens the existing files, and compares links and missing files with what is expected. Changes nothing.
    fn plan(&mut self, change: &'a CommitChange) -> Result<(), CommitError> {
        match change {
            CommitChange::Write { at, expect, bytes, mode, links } => {
                let mode = *mode;
                let new_state = match mode {
                    FileMode::Set(mode) if is_link_mode(mode) => NewState::Link { target: bytes },
                    FileMode::Set(_) | FileMode::Keep => {
                        NewState::Content { bytes, mode, permissions_of: None }
                    }
                };
                let is_file = matches!(new_state, NewState::Content { .. });
                let index = self.target(at, expect, new_state)?;
                let target = &mut self.targets[index];
                let has_links = target.existing.as_ref().is_some_and(|file| file.stat.st_nlink > 1);
                if is_file && has_links && *links == HardLinks::InPlace {
                    target.new_state = NewState::InPlace { bytes, mode };
                }
            }
            CommitChange::Remove { at, expect } => {
                self.target(at, expect, NewState::Absent)?;
            }
            CommitChange::Move { from, expect, to, expect_at_target, content } => {
                // The new name is created before the old one is removed, so that the file always has a name. So `to`
                // gets the next index, and `from` the one after it.
                let source = self.targets.len() + 1;
                let new_state = match content {
                    MovedContent::Same => NewState::MovedFrom(source),
                    MovedContent::New(bytes) if matches!(expect, ExpectedContent::Link(_)) => {
                        NewState::Link { target: bytes }
                    }
                    MovedContent::New(bytes) => NewState::Content {
                        bytes,
                        mode: FileMode::Keep,
                        permissions_of: Some(source),
                    },
                };
                self.target(to, expect_at_target, new_state)?;
                self.target(from, expect, NewState::Absent)?;
                if self.targets[source].existing.is_none() {
                    return Err(CommitError::Conflict { at: from.clone(), found: None });
                }
            }
        }
        Ok(())
    }

    /// Adds a target and returns its index.
    fn target(
        &mut self,
        at: &'a Place,
        expect: &'a ExpectedContent,
        new_state: NewState<'a>,
    ) -> Result<usize, CommitError> {
        let fail = |errno| CommitError::Failed { at: at.clone(), why: machine_error(errno) };
        let (folder, name) = self.folders.find(at).map_err(fail)?;
        let conflict = |found| Err(CommitError::Conflict { at: at.clone(), found });
        let existing = match (self.folders.get(folder), expect) {
            (Some(folder), ExpectedContent::Link(target)) => {
                match inspect_link(self.sys, folder, &name, at)? {
                    Some((link, found)) if *target == found.as_bytes() => Some(link),
                    Some((_, found)) => return conflict(Some(ContentHash::of(found.as_bytes()))),
                    None => return conflict(None),
                }
            }
            (Some(folder), ExpectedContent::Absent) => {
                match inspect(self.sys, folder, &name, at)? {
                    Some(file) => return conflict(Some(file.hash(self.sys).map_err(fail)?)),
                    None => None,
                }
            }
            (Some(folder), ExpectedContent::File(bytes)) => {
                match inspect(self.sys, folder, &name, at)? {
                    // If the sizes differ, the contents are compared now, else later while the disk writes the new
                    // content.
                    Some(file)
                        if file.size() != bytes.len() as u64
                            && !has_content(self.sys, &file.file, bytes).map_err(fail)? =>
                    {
                        return conflict(Some(file.hash(self.sys).map_err(fail)?));
                    }
                    Some(file) => Some(file),
                    None => return conflict(None),
                }
            }
            (None, ExpectedContent::Absent) => None,
            (None, ExpectedContent::File(_) | ExpectedContent::Link(_)) => return conflict(None),
        };
        self.targets.push(CommitTarget {
            at,
            folder,
            name,
            expect,
            existing,
            new_state,
            progress: TargetProgress::default(),
        });
        Ok(self.targets.len() - 1)
    }

    /// Stages everything, compares the existing files with what is expected, waits until the old content is recorded,
    /// then changes the files.
    fn run(&mut self, recorded: AwaitRecorded) -> Result<(), (usize, InstallError)> {
        for folder in self.folders.existing() {
            self.swept.sweep(self.sys, folder);
        }
        for index in 0..self.targets.len() {
            self.stage(index).map_err(|errno| (index, errno.into()))?;
        }
        // Large staged files are on their way to the disk now. Meanwhile the existing files are compared.
        for (index, target) in self.targets.iter().enumerate() {
            target.check_expected(self.sys).map_err(|error| (index, error))?;
        }
        for (index, target) in self.targets.iter().enumerate() {
            target.verify_and_sync_staged(self.sys).map_err(|error| (index, error))?;
        }
        recorded.wait_blocking().map_err(|NotRecorded| (0, InstallError::NotRecorded))?;
        for (index, target) in self.targets.iter_mut().enumerate() {
            if let Some(folder) = self.folders.get(target.folder) {
                target.install(self.sys, folder).map_err(|error| (index, error))?;
            }
        }
        self.folders.sync().map_err(|errno| (0, errno.into()))?;
        for (index, target) in self.targets.iter().enumerate() {
            target.verify_overwritten(self.sys).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// Writes new content to a temporary file in the target's folder.
    fn stage(&mut self, index: usize) -> Result<(), Errno> {
        let id = self.targets[index].folder;
        let new_state = self.targets[index].new_state;
        if let (NewState::Content { .. } | NewState::MovedFrom(_) | NewState::Link { .. }, None) =
            (new_state, self.folders.get(id))
        {
            self.folders.create(id)?;
        }
        let Some(folder) = self.folders.get(id) else { return Ok(()) };
        let staged = match new_state {
            NewState::Content { bytes, mode, permissions_of } => {
                let model = self.targets[permissions_of.unwrap_or(index)].existing.as_ref();
                let rights = model.map_or(FileRights::Default, FileRights::CopiedFrom);
                stage::write(self.sys, folder, bytes, rights, mode)?
            }
            NewState::MovedFrom(source) => {
                let source = &self.targets[source];
                match (self.folders.get(source.folder), &source.existing) {
                    (Some(from), Some(file)) => {
                        stage::link(self.sys, (from, &source.name, file), folder)?
                    }
                    (Some(_), None) | (None, _) => return Err(Errno::NOENT),
                }
            }
            NewState::Link { target } => stage::make_link(self.sys, folder, target)?,
            NewState::InPlace { .. } | NewState::Absent => return Ok(()),
        };
        self.targets[index].progress.staged = Some(staged);
        Ok(())
    }

    fn clean_up(&self) {
        for target in &self.targets {
            if let Some(folder) = self.folders.get(target.folder) {
                target.clean_up(self.sys, folder);
            }
        }
    }

    fn roll_back(mut self, index: usize, error: InstallError) -> CommitError {
        let mut not_restored = Vec::new();
        for target in self.targets.iter_mut().rev() {
            if let Some(folder) = self.folders.get(target.folder) {
                not_restored.extend(target.roll_back(self.sys, folder).err());
            }
        }
        self.folders.roll_back();
        // The old state is restored. If it cannot be synced, a crash may bring the new state back.
        self.folders.sync().unwrap_or(());
        let CommitTarget { at, folder, name, .. } = &self.targets[index];
        let why = match error {
            InstallError::Failed(why) => why,
            InstallError::ChangedConcurrently if not_restored.is_empty() => {
                let current = self
                    .folders
                    .get(*folder)
                    .map_or(Ok(None), |folder| inspect(self.sys, folder, name, at));
                return current.map_or_else(
                    |error| error,
                    |file| CommitError::Conflict {
                        at: (*at).clone(),
                        found: file.and_then(|file| file.hash(self.sys).ok()),
                    },
                );
            }
            InstallError::NotRecorded => return CommitError::NotRecorded { at: (*at).clone() },
            InstallError::ChangedConcurrently => MachineError::PathChanged,
        };
        match not_restored.is_empty() {
            true => CommitError::Failed { at: (*at).clone(), why },
            false => CommitError::Torn { at: (*at).clone(), why, left: not_restored },
        }
    }

    fn committed(&self, changes: &[CommitChange]) -> Vec<Committed> {
        let mut targets = self.targets.iter();
        let mut next = || {
            let target = targets.next();
            let existing = target.and_then(|target| target.existing.as_ref());
            (target.and_then(CommitTarget::mode), existing)
        };
        let links =
            |file: Option<&existing::ExistingFile>| file.map_or(0, |file| file.stat.st_nlink);
        changes
            .iter()
            .map(|change| {
                let (mode, file) = match change {
                    CommitChange::Write { .. } | CommitChange::Remove { .. } => next(),
                    CommitChange::Move { .. } => {
                        let (mode, _) = next();
                        (mode, next().1)
                    }
                };
                Committed { mode, links: links(file) }
            })
            .collect()
    }
}

/// Retries a step on transient errors.
fn retry<T>(mut step: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut result = step();
    for _ in 1..MAX_ATTEMPTS {
        if matches!(result, Ok(_) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST)) {
            break;
        }
        result = step();
    }
    result
}

#[cfg(test)]
mod tests;
