//! A machine with files in memory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use helve_core::BoxFuture;
use helve_core::commit::{
    AwaitRecorded, CommitChange, CommitError, Committed, ContentHash, ExpectedContent, FileMode,
    LINK_MODE, MovedContent, is_link_mode,
};
use helve_core::machine::{
    ContentFingerprint, DirListing, FileContent, FileKind, FindFlow, FindRequest, LineSpan,
    ListedEntry, LocatedPath, Machine, MachineError, Place, RestrictedFiles, RestrictedRequest,
    SearchFlow, SearchRequest, WindowLines, WindowRequest,
};
use helve_core::process::Processes;
use helve_text::view::{Encoding, View};
use parking_lot::Mutex;

use crate::tree::{self, MemoryNode};

/// Files in memory, by absolute path, and processes if a test provides them.
#[derive(Default)]
pub struct MemoryMachine {
    pub nodes: Arc<Mutex<BTreeMap<PathBuf, MemoryNode>>>,
    pub processes: Option<Arc<dyn Processes>>,
}

/// The permission bits of every file.
pub(crate) const MODE: u32 = 0o644;
/// How many symbolic links are followed, as on Linux.
const MAX_LINKS: usize = 40;

impl MemoryMachine {
    pub fn write(&self, path: impl Into<PathBuf>, text: impl Into<Bytes>) {
        self.nodes.lock().insert(path.into(), MemoryNode::File(text.into()));
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        let nodes = self.nodes.lock();
        match nodes.get(path) {
            Some(MemoryNode::File(_) | MemoryNode::Unreadable) => Some(FileKind::File),
            // The caller has resolved links, so a link that is left is dead.
            Some(MemoryNode::Link(_)) => Some(FileKind::UnfollowedLink),
            Some(MemoryNode::Special(kind)) => Some(*kind),
            None => {
                let is_inside = |other: &PathBuf| other.starts_with(path) && other != path;
                let is_folder = path == Path::new("/") || nodes.keys().any(is_inside);
                is_folder.then_some(FileKind::Folder)
            }
        }
    }

    /// Resolves all symbolic links of a path.
    fn resolve(&self, path: &Path) -> Result<LocatedPath, MachineError> {
        let mut pending = reversed_components(path);
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = pending.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&part);
            let target = match self.nodes.lock().get(&next) {
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

    /// Returns the content of a file.
    fn open(&self, at: &Place) -> Result<Bytes, MachineError> {
        let path = at.path();
        let node = self.nodes.lock().get(&path).cloned();
        match node {
            Some(MemoryNode::File(bytes)) => Ok(bytes),
            Some(MemoryNode::Unreadable) => Err(MachineError::NotPermitted),
            Some(MemoryNode::Link(_)) => Err(MachineError::PathChanged),
            Some(MemoryNode::Special(kind)) => Err(MachineError::NotAFile(kind)),
            None => Err(self.kind(&path).map_or(MachineError::NotFound, MachineError::NotAFile)),
        }
    }
}

/// Returns the components of a path in reverse order.
fn reversed_components(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<OsString> = names.collect();
    parts.reverse();
    parts
}

impl Machine for MemoryMachine {
    fn processes(&self) -> Option<Arc<dyn Processes>> {
        self.processes.clone()
    }

    fn locate<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<LocatedPath, MachineError>> {
        Box::pin(async move { self.resolve(path) })
    }

    fn window<'a>(
        &'a self,
        at: &'a Place,
        request: WindowRequest,
    ) -> BoxFuture<'a, Result<WindowLines, MachineError>> {
        Box::pin(async move { Ok(window(&self.open(at)?, request)) })
    }

    fn list<'a>(
        &'a self,
        at: &'a Place,
        max: usize,
    ) -> BoxFuture<'a, Result<DirListing, MachineError>> {
        Box::pin(async move {
            let folder = at.path();
            if self.kind(&folder) != Some(FileKind::Folder) {
                return Err(MachineError::NotAFolder);
            }
            let paths: Vec<PathBuf> = self.nodes.lock().keys().cloned().collect();
            let mut names: Vec<OsString> = paths
                .iter()
                .filter_map(|path| path.strip_prefix(&folder).ok())
                .filter_map(|inside| inside.components().next())
                .map(|first| first.as_os_str().to_os_string())
                .collect();
            names.dedup();
            let left_out = names.len().saturating_sub(max) as u64;
            names.truncate(max);
            let mut entries = Vec::new();
            for name in names {
                let located = self.resolve(&folder.join(&name));
                let kind = located.ok().and_then(|located| located.kind);
                let node = self.nodes.lock().get(&folder.join(&name)).cloned();
                let is_link = matches!(node, Some(MemoryNode::Link(_)));
                entries.push(ListedEntry {
                    name,
                    kind: kind.unwrap_or(FileKind::UnfollowedLink),
                    is_link,
                });
            }
            Ok(DirListing { entries, left_out })
        })
    }

    fn read<'a>(
        &'a self,
        at: &'a Place,
        max: u64,
    ) -> BoxFuture<'a, Result<FileContent, MachineError>> {
        Box::pin(async move {
            let bytes = self.open(at)?;
            let size = bytes.len() as u64;
            if size > max {
                return Err(MachineError::TooLarge { size, limit: max });
            }
            Ok(FileContent { bytes, mode: MODE })
        })
    }

    fn read_link<'a>(
        &'a self,
        at: &'a Place,
    ) -> BoxFuture<'a, Result<Option<Bytes>, MachineError>> {
        let target = match self.nodes.lock().get(&at.path()) {
            Some(MemoryNode::Link(target)) => {
                Some(Bytes::copy_from_slice(target.as_os_str().as_encoded_bytes()))
            }
            Some(_) | None => None,
        };
        Box::pin(async { Ok(target) })
    }

    fn commit(
        &self,
        changes: Vec<CommitChange>,
        recorded: AwaitRecorded,
    ) -> BoxFuture<'static, Result<Vec<Committed>, CommitError>> {
        let nodes = self.nodes.clone();
        Box::pin(async move {
            let Some(first) = changes.first().map(CommitChange::at).cloned() else {
                return Ok(Vec::new());
            };
            check_expectations(&nodes.lock(), &changes)?;
            if recorded.wait().await.is_err() {
                return Err(CommitError::NotRecorded { at: first });
            }
            commit(&mut nodes.lock(), changes)
        })
    }

    fn find(&self, request: FindRequest) -> FindFlow {
        tree::find(&self.nodes.lock(), &request)
    }

    fn search(&self, request: SearchRequest) -> SearchFlow {
        tree::search(&self.nodes.lock(), &request)
    }

    fn find_restricted(
        &self,
        request: RestrictedRequest,
    ) -> BoxFuture<'static, Result<RestrictedFiles, MachineError>> {
        let found = tree::find_restricted(&self.nodes.lock(), &request);
        Box::pin(async { Ok(found) })
    }
}

/// The hash of a file; `None` for anything else.
fn hash(nodes: &BTreeMap<PathBuf, MemoryNode>, at: &Place) -> Option<ContentHash> {
    match nodes.get(&at.path())? {
        MemoryNode::File(bytes) => Some(ContentHash::of(bytes)),
        MemoryNode::Link(_) | MemoryNode::Special(_) | MemoryNode::Unreadable => None,
    }
}

/// The hash of a symbolic link's target; `None` for anything else.
fn link_hash(nodes: &BTreeMap<PathBuf, MemoryNode>, at: &Place) -> Option<ContentHash> {
    match nodes.get(&at.path())? {
        MemoryNode::Link(target) => Some(ContentHash::of(target.as_os_str().as_encoded_bytes())),
        MemoryNode::File(_) | MemoryNode::Special(_) | MemoryNode::Unreadable => None,
    }
}

/// Returns an error if a path does not have the content that its change expects.
fn check_expectations(
    nodes: &BTreeMap<PathBuf, MemoryNode>,
    changes: &[CommitChange],
) -> Result<(), CommitError> {
    let mut expectations = Vec::new();
    for change in changes {
        match change {
            CommitChange::Write { at, expect, .. } | CommitChange::Remove { at, expect } => {
                expectations.push((at, expect));
            }
            CommitChange::Move { from, expect, to, expect_at_target, .. } => {
                expectations.extend([(from, expect), (to, expect_at_target)]);
            }
        }
    }
    for (at, expect) in expectations {
        let found = hash(nodes, at);
        let is_as_expected = match expect {
            ExpectedContent::Absent => found.is_none(),
            ExpectedContent::File(expected) => found == Some(ContentHash::of(expected)),
            ExpectedContent::Link(expected) => {
                link_hash(nodes, at) == Some(ContentHash::of(expected))
            }
        };
        if nodes.get(&at.path()) == Some(&MemoryNode::Unreadable) {
            return Err(CommitError::ReadOnly { at: at.clone() });
        }
        if !is_as_expected {
            return Err(CommitError::Conflict { at: at.clone(), found });
        }
    }
    Ok(())
}

/// Checks every expectation, then applies every change.
fn commit(
    nodes: &mut BTreeMap<PathBuf, MemoryNode>,
    changes: Vec<CommitChange>,
) -> Result<Vec<Committed>, CommitError> {
    check_expectations(nodes, &changes)?;
    let mut committed = Vec::new();
    for change in changes {
        let exists = match change {
            CommitChange::Write { at, bytes, mode: FileMode::Set(mode), .. }
                if is_link_mode(mode) =>
            {
                nodes.insert(at.path(), MemoryNode::Link(path_of(&bytes)));
                committed.push(Committed { mode: Some(LINK_MODE), links: 1 });
                continue;
            }
            CommitChange::Move { from, to, content: MovedContent::New(target), .. }
                if link_hash(nodes, &from).is_some() =>
            {
                nodes.remove(&from.path());
                nodes.insert(to.path(), MemoryNode::Link(path_of(&target)));
                committed.push(Committed { mode: Some(LINK_MODE), links: 1 });
                continue;
            }
            CommitChange::Write { at, bytes, .. } => {
                nodes.insert(at.path(), MemoryNode::File(bytes));
                true
            }
            CommitChange::Remove { at, .. } => {
                nodes.remove(&at.path());
                false
            }
            CommitChange::Move { from, to, content, .. } => {
                let old = nodes.remove(&from.path());
                let node = match content {
                    MovedContent::Same => old,
                    MovedContent::New(bytes) => Some(MemoryNode::File(bytes)),
                };
                nodes.extend(node.map(|node| (to.path(), node)));
                hash(nodes, &to).is_some()
            }
        };
        // Only a file that exists after the change has a mode.
        committed.push(Committed { mode: exists.then_some(MODE), links: 1 });
    }
    Ok(committed)
}

fn path_of(bytes: &Bytes) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns the requested lines of a file.
fn window(bytes: &Bytes, request: WindowRequest) -> WindowLines {
    if let Ok(view) = View::new(bytes)
        && matches!(view.encoding(), Encoding::Utf16Le | Encoding::Utf16Be)
    {
        let text = Bytes::copy_from_slice(view.text().as_bytes());
        return WindowLines {
            sample: bytes.slice(..bytes.len().min(4096)),
            size: bytes.len() as u64,
            range: 0..bytes.len() as u64,
            fingerprint: ContentFingerprint::Whole(ContentHash::of(bytes)),
            whole: Some(bytes.clone()),
            ..window(&text, request)
        };
    }
    let file = bytes;
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let bom_bytes = file.len() - bytes.len();
    let all_lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut text, mut lines) = (Vec::new(), Vec::new());
    let skipped = usize::try_from(request.first - 1).unwrap_or(usize::MAX);
    for line in
        all_lines.iter().skip(skipped).take(usize::try_from(request.lines).unwrap_or(usize::MAX))
    {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let kept_bytes = line.len().min(request.line_bytes);
        if !lines.is_empty() && text.len() + kept_bytes > request.max_bytes {
            break;
        }
        text.extend_from_slice(&line[..kept_bytes]);
        lines.push(LineSpan { end: text.len(), skipped: (line.len() - kept_bytes) as u64 });
    }
    let end = skipped.saturating_add(lines.len());
    let bytes_of_lines =
        |count: usize| all_lines.iter().take(count).map(|line| line.len()).sum::<usize>();
    let range = bytes_of_lines(skipped)..bytes_of_lines(end);
    WindowLines {
        fingerprint: ContentFingerprint::Whole(ContentHash::of(file)),
        whole: Some(file.clone()),
        range: (range.start + bom_bytes) as u64..(range.end + bom_bytes) as u64,
        bytes: text.into(),
        first: request.first,
        has_more: end < all_lines.len(),
        lines_read: end.min(all_lines.len()) as u64,
        later_lines: Some(all_lines.len().saturating_sub(end) as u64),
        lines,
        size: file.len() as u64,
        sample: file.slice(..file.len().min(4096)),
    }
}
