//! The only way files change: lock, compare, write beside, sync, rename, read back, unlock; all files or none.

#[cfg(any(test, feature = "faults"))]
pub(crate) mod faults;
mod folders;
mod locks;
mod seen;
mod stage;
mod sweep;
mod sys;
mod target;
mod types;

use helve_core::{MachineError, Place};
use rustix::io::Errno;

use self::folders::Folders;
pub(crate) use self::locks::Locks;
use self::seen::look;
use self::stage::Rights;
pub(crate) use self::sweep::Swept;
pub(crate) use self::sys::Sys;
use self::target::{Progress, Target, Trouble, Wanted};
pub use self::types::{
    Change, CommitError, Committed, Content, ContentHash, Expect, FileMode, HardLinks, Left,
};
use crate::errors::machine_error;

/// How often a step is tried that takes something back or clears up.
const TRIES: usize = 3;

/// Makes all changes or none. Blocks, and cannot be stopped once begun.
pub(crate) fn commit(
    sys: &Sys,
    locks: &Locks,
    swept: &Swept,
    changes: &[Change],
) -> Result<Vec<Committed>, CommitError> {
    let places = places(changes)?;
    let _held = locks.hold(sys, &places)?;
    let mut work = Work { sys, swept, folders: Folders::new(sys), targets: Vec::new() };
    for change in changes {
        work.plan(change)?;
    }
    match work.run() {
        Ok(()) => {
            work.clear_up();
            Ok(work.committed(changes))
        }
        Err((index, trouble)) => Err(work.take_back(index, trouble)),
    }
}

/// Every place that changes, each once.
fn places(changes: &[Change]) -> Result<Vec<&Place>, CommitError> {
    let each = changes.iter().flat_map(|change| match change {
        Change::Write { at, .. } | Change::Remove { at, .. } => vec![at],
        Change::Move { from, to, .. } => vec![from, to],
    });
    let mut places: Vec<(_, &Place)> = each.map(|place| (place.path(), place)).collect();
    places.sort_by(|one, other| one.0.cmp(&other.0));
    match places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(CommitError::Twice { at: pair[0].1.clone() }),
        None => Ok(places.into_iter().map(|(_, place)| place).collect()),
    }
}

struct Work<'a> {
    sys: &'a Sys,
    swept: &'a Swept,
    folders: Folders<'a>,
    targets: Vec<Target<'a>>,
}

impl<'a> Work<'a> {
    /// Compares what is there with what is expected. Touches nothing.
    fn plan(&mut self, change: &'a Change) -> Result<(), CommitError> {
        match change {
            Change::Write { at, expect, bytes, mode, links } => {
                let mode = *mode;
                let index =
                    self.target(at, *expect, Wanted::Content { bytes, mode, rights_of: None })?;
                let target = &mut self.targets[index];
                let has_links = target.there.as_ref().is_some_and(|seen| seen.stat.st_nlink > 1);
                if has_links && *links == HardLinks::InPlace {
                    target.wanted = Wanted::InPlace { bytes, mode };
                }
            }
            Change::Remove { at, expect } => {
                self.target(at, *expect, Wanted::Nothing)?;
            }
            Change::Move { from, expect, to, over, content } => {
                // The new name comes first: at no moment has the file none.
                let source = self.targets.len() + 1;
                let wanted = match content {
                    Content::Same => Wanted::FileOf(source),
                    Content::New(bytes) => {
                        Wanted::Content { bytes, mode: FileMode::Keep, rights_of: Some(source) }
                    }
                };
                self.target(to, *over, wanted)?;
                self.target(from, *expect, Wanted::Nothing)?;
                if self.targets[source].there.is_none() {
                    return Err(CommitError::Conflict { at: from.clone(), found: None });
                }
            }
        }
        Ok(())
    }

    fn target(
        &mut self,
        at: &'a Place,
        expect: Expect,
        wanted: Wanted<'a>,
    ) -> Result<usize, CommitError> {
        let fail = |errno| CommitError::Failed { at: at.clone(), why: machine_error(errno) };
        let (folder, name) = self.folders.find(at).map_err(fail)?;
        let there = match self.folders.get(folder) {
            Some(folder) => look(self.sys, folder, &name, at)?,
            None => None,
        };
        let found = there.as_ref().map(|seen| seen.hash);
        let expected = match expect {
            Expect::Absent => None,
            Expect::Hash(hash) => Some(hash),
        };
        if found != expected {
            return Err(CommitError::Conflict { at: at.clone(), found });
        }
        self.targets.push(Target {
            at,
            folder,
            name,
            there,
            wanted,
            progress: Progress::default(),
        });
        Ok(self.targets.len() - 1)
    }

    fn run(&mut self) -> Result<(), (usize, Trouble)> {
        for folder in self.folders.existing() {
            self.swept.sweep(self.sys, folder);
        }
        for index in 0..self.targets.len() {
            self.stage(index).map_err(|errno| (index, errno.into()))?;
        }
        for (index, target) in self.targets.iter_mut().enumerate() {
            if let Some(folder) = self.folders.get(target.folder) {
                target.install(self.sys, folder).map_err(|trouble| (index, trouble))?;
            }
        }
        self.folders.sync().map_err(|errno| (0, errno.into()))?;
        for (index, target) in self.targets.iter().enumerate() {
            target.verify(self.sys).map_err(|trouble| (index, trouble))?;
        }
        Ok(())
    }

    /// Writes new content beside the place it is for.
    fn stage(&mut self, index: usize) -> Result<(), Errno> {
        let id = self.targets[index].folder;
        let wanted = self.targets[index].wanted;
        if let (Wanted::Content { .. } | Wanted::FileOf(_), None) = (wanted, self.folders.get(id)) {
            self.folders.make(id)?;
        }
        let Some(folder) = self.folders.get(id) else { return Ok(()) };
        let staged = match wanted {
            Wanted::Content { bytes, mode, rights_of } => {
                let like = self.targets[rights_of.unwrap_or(index)].there.as_ref();
                let rights = like.map_or(Rights::Usual, Rights::Like);
                stage::write(self.sys, folder, bytes, rights, mode)?
            }
            Wanted::FileOf(source) => {
                let source = &self.targets[source];
                match (self.folders.get(source.folder), &source.there) {
                    (Some(from), Some(seen)) => {
                        stage::link(self.sys, (from, &source.name, seen), folder)?
                    }
                    (Some(_), None) | (None, _) => return Err(Errno::NOENT),
                }
            }
            Wanted::InPlace { .. } | Wanted::Nothing => return Ok(()),
        };
        self.targets[index].progress.staged = Some(staged);
        Ok(())
    }

    fn clear_up(&self) {
        for target in &self.targets {
            if let Some(folder) = self.folders.get(target.folder) {
                target.clear_up(self.sys, folder);
            }
        }
    }

    fn take_back(mut self, index: usize, trouble: Trouble) -> CommitError {
        let mut left = Vec::new();
        for target in self.targets.iter_mut().rev() {
            if let Some(folder) = self.folders.get(target.folder) {
                left.extend(target.take_back(self.sys, folder).err());
            }
        }
        self.folders.take_back();
        // The old state is in place; if it cannot be made to last, the next start of the machine may show the new one.
        self.folders.sync().unwrap_or(());
        let Target { at, folder, name, .. } = &self.targets[index];
        let why = match trouble {
            Trouble::Failed(why) => why,
            Trouble::Interfered if left.is_empty() => {
                let again = self
                    .folders
                    .get(*folder)
                    .map_or(Ok(None), |folder| look(self.sys, folder, name, at));
                return again.map_or_else(
                    |error| error,
                    |seen| CommitError::Conflict {
                        at: (*at).clone(),
                        found: seen.map(|seen| seen.hash),
                    },
                );
            }
            Trouble::Interfered => MachineError::Moved,
        };
        match left.is_empty() {
            true => CommitError::Failed { at: (*at).clone(), why },
            false => CommitError::Torn { at: (*at).clone(), why, left },
        }
    }

    fn committed(&self, changes: &[Change]) -> Vec<Committed> {
        let mut targets = self.targets.iter();
        let mut next = || {
            let target = targets.next();
            let there = target.and_then(|target| target.there.as_ref());
            (target.and_then(Target::mode), there)
        };
        let links = |seen: Option<&seen::Seen>| seen.map_or(0, |seen| seen.stat.st_nlink);
        changes
            .iter()
            .map(|change| {
                let (mode, seen) = match change {
                    Change::Write { .. } | Change::Remove { .. } => next(),
                    Change::Move { .. } => {
                        let (mode, _) = next();
                        (mode, next().1)
                    }
                };
                Committed { mode, was: seen.map(|seen| seen.hash), links: links(seen) }
            })
            .collect()
    }
}

/// Tries a step again that must not fail because of an accident.
fn surely<T>(mut step: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut result = step();
    for _ in 1..TRIES {
        if matches!(result, Ok(_) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST)) {
            break;
        }
        result = step();
    }
    result
}

#[cfg(test)]
mod tests;
