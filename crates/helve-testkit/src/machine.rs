//! A machine with files in memory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use helve_core::BoxFuture;
use helve_core::commit::{
    CommitChange, CommitError, Committed, ContentHash, ExpectedContent, MovedContent,
};
use helve_core::machine::{
    ContentFingerprint, DirListing, FileContent, FileKind, FindFlow, FindRequest, LineSpan,
    ListedEntry, LocatedPath, Machine, MachineError, Place, SearchFlow, SearchRequest, WindowLines,
    WindowRequest,
};
use helve_text::view::{Encoding, View};
use parking_lot::Mutex;

use crate::tree::{self, MemoryNode};

/// Files in memory, by absolute path.
#[derive(Default)]
pub struct MemoryMachine(pub Mutex<BTreeMap<PathBuf, MemoryNode>>);

/// The permission bits of every file.
pub(crate) const MODE: u32 = 0o644;
/// The limit of Linux.
const MAX_LINKS: usize = 40;

impl MemoryMachine {
    pub fn write(&self, path: impl Into<PathBuf>, text: impl Into<Bytes>) {
        self.0.lock().insert(path.into(), MemoryNode::File(text.into()));
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        let nodes = self.0.lock();
        match nodes.get(path) {
            Some(MemoryNode::File(_) | MemoryNode::Locked) => Some(FileKind::File),
            Some(MemoryNode::Link(_)) => Some(FileKind::DeadLink),
            Some(MemoryNode::Special(kind)) => Some(*kind),
            None => {
                let beneath = |other: &PathBuf| other.starts_with(path) && other != path;
                let folder = path == Path::new("/") || nodes.keys().any(beneath);
                folder.then_some(FileKind::Folder)
            }
        }
    }

    fn follow(&self, path: &Path) -> Result<LocatedPath, MachineError> {
        let mut pending = reversed_components(path);
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = pending.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&part);
            let target = match self.0.lock().get(&next) {
                Some(MemoryNode::Link(target)) => Some(target.clone()),
                Some(_) | None => None,
            };
            match target {
                None => real = next,
                Some(_) if links == MAX_LINKS => return Err(MachineError::LinkLoop),
                Some(target) => {
                    links += 1;
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    pending.extend(reversed_components(&target));
                }
            }
        }
        Ok(LocatedPath { kind: self.kind(&real), real })
    }

    fn open(&self, at: &Place) -> Result<Bytes, MachineError> {
        let path = at.path();
        let node = self.0.lock().get(&path).cloned();
        match node {
            Some(MemoryNode::File(bytes)) => Ok(bytes),
            Some(MemoryNode::Locked) => Err(MachineError::NotPermitted),
            Some(MemoryNode::Link(_)) => Err(MachineError::PathChanged),
            Some(MemoryNode::Special(kind)) => Err(MachineError::NotAFile(kind)),
            None => Err(self.kind(&path).map_or(MachineError::NotFound, MachineError::NotAFile)),
        }
    }
}

/// The components of a path in reverse order.
fn reversed_components(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<OsString> = named.collect();
    parts.reverse();
    parts
}

impl Machine for MemoryMachine {
    fn locate<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<LocatedPath, MachineError>> {
        Box::pin(async move { self.follow(path) })
    }

    fn window<'a>(
        &'a self,
        at: &'a Place,
        want: WindowRequest,
    ) -> BoxFuture<'a, Result<WindowLines, MachineError>> {
        Box::pin(async move { Ok(window(&self.open(at)?, want)) })
    }

    fn list<'a>(
        &'a self,
        at: &'a Place,
        most: usize,
    ) -> BoxFuture<'a, Result<DirListing, MachineError>> {
        Box::pin(async move {
            let folder = at.path();
            if self.kind(&folder) != Some(FileKind::Folder) {
                return Err(MachineError::NotAFolder);
            }
            let paths: Vec<PathBuf> = self.0.lock().keys().cloned().collect();
            let mut names: Vec<OsString> = paths
                .iter()
                .filter_map(|path| path.strip_prefix(&folder).ok())
                .filter_map(|beneath| beneath.components().next())
                .map(|first| first.as_os_str().to_os_string())
                .collect();
            names.dedup();
            let left_out = names.len().saturating_sub(most) as u64;
            names.truncate(most);
            let mut entries = Vec::new();
            for name in names {
                let located = self.follow(&folder.join(&name));
                let kind = located.ok().and_then(|located| located.kind);
                let node = self.0.lock().get(&folder.join(&name)).cloned();
                let is_link = matches!(node, Some(MemoryNode::Link(_)));
                entries.push(ListedEntry {
                    name,
                    kind: kind.unwrap_or(FileKind::DeadLink),
                    is_link,
                });
            }
            Ok(DirListing { entries, left_out })
        })
    }

    fn read<'a>(
        &'a self,
        at: &'a Place,
        most: u64,
    ) -> BoxFuture<'a, Result<FileContent, MachineError>> {
        Box::pin(async move {
            let bytes = self.open(at)?;
            let size = bytes.len() as u64;
            if size > most {
                return Err(MachineError::TooLarge { size, limit: most });
            }
            let hash = ContentHash::of(&bytes);
            Ok(FileContent { bytes, mode: MODE, hash })
        })
    }

    fn commit(
        &self,
        changes: Vec<CommitChange>,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>> {
        let made = commit(&mut self.0.lock(), changes);
        Box::pin(async { made })
    }

    fn find(&self, want: FindRequest) -> FindFlow {
        tree::find(&self.0.lock(), &want)
    }

    fn search(&self, want: SearchRequest) -> SearchFlow {
        tree::search(&self.0.lock(), &want)
    }
}

/// Checks every expectation, then applies every change.
fn commit(
    nodes: &mut BTreeMap<PathBuf, MemoryNode>,
    changes: Vec<CommitChange>,
) -> Result<Vec<Committed>, CommitError> {
    let hash = |nodes: &BTreeMap<PathBuf, MemoryNode>, at: &Place| match nodes.get(&at.path()) {
        Some(MemoryNode::File(bytes)) => Some(ContentHash::of(bytes)),
        Some(MemoryNode::Link(_) | MemoryNode::Special(_) | MemoryNode::Locked) | None => None,
    };
    let mut compared = Vec::new();
    for change in &changes {
        match change {
            CommitChange::Write { at, expect, .. } | CommitChange::Remove { at, expect } => {
                compared.push((at, expect));
            }
            CommitChange::Move { from, expect, to, over, .. } => {
                compared.extend([(from, expect), (to, over)]);
            }
        }
    }
    for (at, expect) in compared {
        let found = hash(nodes, at);
        let holds = match expect {
            ExpectedContent::Absent => found.is_none(),
            ExpectedContent::Hash(expected) => found == Some(*expected),
        };
        if nodes.get(&at.path()) == Some(&MemoryNode::Locked) {
            return Err(CommitError::ReadOnly { at: at.clone() });
        }
        if !holds {
            return Err(CommitError::Conflict { at: at.clone(), found });
        }
    }
    let mut made = Vec::new();
    for change in changes {
        let was = hash(nodes, change.at());
        let now = match change {
            CommitChange::Write { at, bytes, .. } => {
                nodes.insert(at.path(), MemoryNode::File(bytes.clone()));
                Some(ContentHash::of(&bytes))
            }
            CommitChange::Remove { at, .. } => {
                nodes.remove(&at.path());
                None
            }
            CommitChange::Move { from, to, content, .. } => {
                let old = nodes.remove(&from.path());
                let node = match content {
                    MovedContent::Same => old,
                    MovedContent::New(bytes) => Some(MemoryNode::File(bytes)),
                };
                nodes.extend(node.map(|node| (to.path(), node)));
                hash(nodes, &to)
            }
        };
        made.push(Committed { mode: now.map(|_| MODE), was, links: 1 });
    }
    Ok(made)
}

fn window(bytes: &Bytes, want: WindowRequest) -> WindowLines {
    if let Ok(view) = View::new(bytes)
        && matches!(view.encoding(), Encoding::Utf16Le | Encoding::Utf16Be)
    {
        let text = Bytes::copy_from_slice(view.text().as_bytes());
        return WindowLines {
            sample: bytes.slice(..bytes.len().min(4096)),
            size: bytes.len() as u64,
            range: 0..bytes.len() as u64,
            fingerprint: ContentFingerprint::Whole(ContentHash::of(bytes)),
            ..window(&text, want)
        };
    }
    let marked = bytes;
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mark = marked.len() - bytes.len();
    let all: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut kept, mut lines) = (Vec::new(), Vec::new());
    let before = usize::try_from(want.first - 1).unwrap_or(usize::MAX);
    for line in all.iter().skip(before).take(usize::try_from(want.lines).unwrap_or(usize::MAX)) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let keep = line.len().min(want.line_bytes);
        if !lines.is_empty() && kept.len() + keep > want.max_bytes {
            break;
        }
        kept.extend_from_slice(&line[..keep]);
        lines.push(LineSpan { end: kept.len(), skipped: (line.len() - keep) as u64 });
    }
    let after = before.saturating_add(lines.len());
    let until = |count: usize| all.iter().take(count).map(|line| line.len()).sum::<usize>();
    let range = until(before)..until(after);
    WindowLines {
        fingerprint: ContentFingerprint::Whole(ContentHash::of(marked)),
        range: (range.start + mark) as u64..(range.end + mark) as u64,
        bytes: kept.into(),
        first: want.first,
        more: after < all.len(),
        seen: after.min(all.len()) as u64,
        lines,
        size: marked.len() as u64,
        sample: marked.slice(..marked.len().min(4096)),
    }
}
