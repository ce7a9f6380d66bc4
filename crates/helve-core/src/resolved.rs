//! A path that was looked up and can be judged.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helve_policy::{Act, Part, Pattern, Request};

use crate::machine::{FileKind, FileTree, HiddenFiles, IgnoredMode, Machine, Place};
use crate::paths;

/// How long a walk may take unless the tool says otherwise.
const WALK_DEADLINE: Duration = Duration::from_secs(10);
/// How long ignored files are searched if nothing else was found.
const IGNORED_DEADLINE: Duration = Duration::from_millis(200);

/// A path as it was given and with every link followed, ready to be judged and opened.
#[derive(Clone)]
pub struct Resolved {
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) place: Place,
    kind: Option<FileKind>,
    /// The texts that rules match: relative to the root if inside it, otherwise absolute.
    subjects: Vec<String>,
    /// The folder that needs `external_directory`.
    outside: Option<PathBuf>,
    shown: String,
}

/// Where a path counts as inside: the root, and folders that may be read without asking.
pub(crate) struct Roots<'a> {
    pub(crate) root: &'a Path,
    /// Folders with saved outputs of the session and of its parent sessions.
    pub(crate) output_folders: Vec<PathBuf>,
}

impl Resolved {
    /// `given` is absolute; `real` is the same path with every link followed.
    pub(crate) fn new(
        machine: Arc<dyn Machine>,
        roots: &Roots<'_>,
        given: &Path,
        real: PathBuf,
        kind: Option<FileKind>,
    ) -> Self {
        let root = roots.root;
        let folder = match kind {
            Some(FileKind::Folder) => real.clone(),
            _ => real.parent().unwrap_or(Path::new("/")).to_path_buf(),
        };
        let own = roots.output_folders.iter().find(|own| real.starts_with(own));
        let (anchor, outside) = match own {
            _ if real.starts_with(root) => (root.to_path_buf(), None),
            Some(own) => (own.clone(), None),
            None => (folder.clone(), Some(folder)),
        };
        let mut subjects = vec![subject(root, &real), subject(root, &lexical(given))];
        subjects.dedup();
        let beneath = real.strip_prefix(&anchor).unwrap_or(Path::new("")).to_path_buf();
        let shown = paths::display(real.strip_prefix(root).unwrap_or(&real));
        let shown = if shown.is_empty() { ".".into() } else { shown.into_owned() };
        Self { machine, place: Place { anchor, beneath }, kind, subjects, outside, shown }
    }

    /// The absolute path with every link followed.
    pub fn real(&self) -> PathBuf {
        self.place.path()
    }

    /// The path as displayed: relative to the root if inside it.
    pub fn display(&self) -> &str {
        &self.shown
    }

    /// What was there when the path was looked up. It must not be reported before reading was granted.
    pub fn kind(&self) -> Option<FileKind> {
        self.kind
    }

    /// Asks to read this path.
    pub fn read_request(&self) -> Request {
        self.request(Act::Read(self.real()), vec![self.part("read")])
    }

    /// Asks to change this path. `tool` is judged besides its group `edit`.
    pub fn edit_request(&self, tool: &'static str) -> Request {
        self.request(Act::Edit(self.real()), vec![self.part("edit").for_tool(tool)])
    }

    /// Asks to look for something below this path, under the tool's own key. For a single file, also asks to read it.
    pub fn search_request(&self, permission: &'static str, subject: &str) -> Request {
        let mut parts = vec![Part::new(permission, subject).remember_exactly()];
        if self.kind != Some(FileKind::Folder) {
            parts.push(self.part("read"));
        }
        self.request(Act::Read(self.real()), parts)
    }

    /// Everything below this path, hidden files included, ignored files excluded.
    pub fn tree(&self) -> FileTree {
        FileTree {
            at: self.place.clone(),
            globs: Vec::new(),
            ignored: IgnoredMode::Skip { hint_timeout: IGNORED_DEADLINE },
            hidden: HiddenFiles::Include,
            deadline: WALK_DEADLINE,
        }
    }

    /// A path outside the root brings its `external_directory` part along.
    fn request(&self, act: Act, parts: Vec<Part>) -> Request {
        Request { act, parts: self.outside().into_iter().chain(parts).collect() }
    }

    pub(crate) fn part(&self, permission: &'static str) -> Part {
        let mut part = Part::new(permission, "");
        part.subjects.clone_from(&self.subjects);
        // Rules are text. Two names that are not UTF-8 could look the same, so neither is remembered.
        if self.real().to_str().is_none() { part } else { part.remember_exactly() }
    }

    /// The `external_directory` part of a path outside the root.
    pub(crate) fn outside(&self) -> Option<Part> {
        let folder = self.outside.as_ref()?.display().to_string();
        let inside = if folder == "/" { "/*".into() } else { format!("{folder}/*") };
        let part = Part::new("external_directory", inside.clone());
        // A folder with a wildcard in its name is remembered exactly, not as a pattern.
        Some(if folder.contains(['*', '?']) {
            part.remember_exactly()
        } else {
            part.remember_as(Pattern::Wild(inside))
        })
    }
}

/// A path as rules see it.
fn subject(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(beneath) if beneath.as_os_str().is_empty() => ".".into(),
        Ok(beneath) => beneath.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// Removes `.` and `..` from a path without looking at the file system.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_relative_inside_the_root_and_absolute_outside() {
        let root = Path::new("/w/app");
        let check = |path: &str, expected: &str| {
            assert_eq!(subject(root, &lexical(Path::new(path))), expected);
        };
        check("/w/app/src/a.rs", "src/a.rs");
        check("/w/app/src/../b", "b");
        check("/w/app", ".");
        check("/w/app-secret/s", "/w/app-secret/s");
        check("/w/app/../app-secret/s", "/w/app-secret/s");
        check("/w/app/../../../../etc/passwd", "/etc/passwd");
    }
}
