//! Paths that were looked up, ready to be judged and opened.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::{Act, Part, Pattern, Request};

use crate::machine::{FileKind, FileTree, HiddenFiles, IgnoredMode, Machine, Place};
use crate::paths;

/// How long a search may take unless the tool sets another timeout.
const WALK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long ignored files are searched if nothing else was found.
const IGNORED_TIMEOUT: Duration = Duration::from_millis(200);

/// A path that was looked up: as the call gave it, and with every link followed. Rules judge both; the file is opened
/// by the latter.
#[derive(Clone)]
pub struct Resolved {
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) place: Place,
    kind: Option<FileKind>,
    /// The texts that rules are matched against: relative to the root if inside it, otherwise absolute.
    subjects: Vec<String>,
    /// For a path outside the root: the folder that needs permission `external_directory`. The first is the folder with
    /// every link followed; the second is the folder as the call gave it, if that is different and outside the root
    /// too.
    outside_folders: Vec<PathBuf>,
    /// For a path outside the root that was given through a symbolic link: that link.
    link: Option<PathBuf>,
    /// Set if this is the path of a symbolic link itself: the target of the link.
    pub(crate) link_target: Option<Bytes>,
    /// The path as displayed: relative to the root if inside it.
    display_path: String,
}

/// The folders inside which a path does not need permission `external_directory`.
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
        let output_folder = roots.output_folders.iter().find(|folder| real.starts_with(folder));
        let (anchor, outside_folders) = match output_folder {
            _ if real.starts_with(root) => (root.to_path_buf(), Vec::new()),
            Some(output_folder) => (output_folder.clone(), Vec::new()),
            None => (folder.clone(), outside_folders(root, folder, given, kind)),
        };
        let mut subjects = vec![subject(root, &real), subject(root, &normalize(given))];
        subjects.dedup();
        let beneath = real.strip_prefix(&anchor).unwrap_or(Path::new("")).to_path_buf();
        let display_path = paths::display(real.strip_prefix(root).unwrap_or(&real));
        let display_path =
            if display_path.is_empty() { ".".into() } else { display_path.into_owned() };
        Self {
            machine,
            place: Place { anchor, beneath },
            kind,
            subjects,
            outside_folders,
            link: None,
            link_target: None,
            display_path,
        }
    }

    /// Adds the link through which the path was given.
    pub(crate) fn through_link(self, link: Option<PathBuf>) -> Self {
        Self { link, ..self }
    }

    /// Makes this the path of a symbolic link itself, which is not followed.
    pub(crate) fn into_link(self, target: Bytes) -> Self {
        Self { link_target: Some(target), ..self }
    }

    /// The absolute path with every link followed.
    pub fn real(&self) -> PathBuf {
        self.place.path()
    }

    /// The path as displayed: relative to the root if inside it.
    pub fn display(&self) -> &str {
        &self.display_path
    }

    /// Returns what was at the path when it was looked up; `None` if nothing was. A tool must not report it before
    /// reading is granted.
    pub fn kind(&self) -> Option<FileKind> {
        self.kind
    }

    /// Returns the request to read this path.
    pub fn read_request(&self) -> Request {
        self.request(Act::Read(self.real()), vec![self.part("read")])
    }

    /// Returns the request to change this path. Rules for `tool` apply as well as rules for its group `edit`.
    pub fn edit_request(&self, tool: &'static str) -> Request {
        self.request(Act::Edit(self.real()), vec![self.part("edit").for_tool(tool)])
    }

    /// Returns the request to search below this path, under the tool's own permission key. For a single file, includes
    /// the part for reading it.
    pub fn search_request(&self, permission: &'static str, subject: &str) -> Request {
        let mut parts = vec![Part::new(permission, subject).remember_exactly()];
        if self.kind != Some(FileKind::Folder) {
            parts.push(self.part("read"));
        }
        self.request(Act::Read(self.real()), parts)
    }

    /// Returns a walk over the files below this path that includes hidden files and skips ignored ones.
    pub fn tree(&self) -> FileTree {
        FileTree {
            at: self.place.clone(),
            globs: Vec::new(),
            ignored: IgnoredMode::Skip { hint_timeout: IGNORED_TIMEOUT },
            hidden: HiddenFiles::Include,
            timeout: WALK_TIMEOUT,
        }
    }

    /// Makes a request. For a path outside the root, adds the `external_directory` part.
    fn request(&self, act: Act, parts: Vec<Part>) -> Request {
        Request { act, parts: self.outside_part().into_iter().chain(parts).collect() }
    }

    /// Returns the part for this path under a permission key.
    pub(crate) fn part(&self, permission: &'static str) -> Part {
        let mut part = Part::new(permission, "");
        part.subjects.clone_from(&self.subjects);
        // A path that is not UTF-8 is not remembered, because in the text of a rule it could look like another path.
        if self.real().to_str().is_none() { part } else { part.remember_exactly() }
    }

    /// Returns the `external_directory` part; `None` for a path inside the root.
    pub(crate) fn outside_part(&self) -> Option<Part> {
        let folder = self.outside_folders.first()?.display().to_string();
        let to_pattern = |folder: &PathBuf| match folder.display().to_string() {
            folder if folder == "/" => "/*".to_string(),
            folder => format!("{folder}/*"),
        };
        let subjects: Vec<String> = self.outside_folders.iter().map(to_pattern).collect();
        let pattern = subjects.first()?.clone();
        let link = self.link.as_ref().map(|link| link.display().to_string());
        let part = Part { subjects, link, ..Part::new("external_directory", "") };
        // If the folder's own name contains a wildcard character, a pattern would match too much.
        Some(if folder.contains(['*', '?']) {
            part.remember_exactly()
        } else {
            part.remember_as(Pattern::Wild(pattern))
        })
    }
}

/// Returns the folder of a path outside the root: first `folder`, which has every link followed; then the folder as
/// given, if it is different and also outside the root.
fn outside_folders(
    root: &Path,
    folder: PathBuf,
    given: &Path,
    kind: Option<FileKind>,
) -> Vec<PathBuf> {
    let given = normalize(given);
    let given_folder = match kind {
        Some(FileKind::Folder) => given.clone(),
        _ => given.parent().unwrap_or(Path::new("/")).to_path_buf(),
    };
    let is_other_name = given_folder != folder && !given.starts_with(root);
    let given_folder = Some(given_folder).filter(|_| is_other_name);
    [folder].into_iter().chain(given_folder).collect()
}

/// Returns the text of a path that rules match: relative to the root if inside it.
pub(crate) fn subject(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(beneath) if beneath.as_os_str().is_empty() => ".".into(),
        Ok(beneath) => beneath.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// Resolves `.` and `..` in a path without looking at the file system.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                result.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                result.push(component);
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_relative_inside_the_root_and_absolute_outside() {
        let root = Path::new("/w/app");
        let check = |path: &str, expected: &str| {
            assert_eq!(subject(root, &normalize(Path::new(path))), expected);
        };
        check("/w/app/src/a.rs", "src/a.rs");
        check("/w/app/src/../b", "b");
        check("/w/app", ".");
        check("/w/app-secret/s", "/w/app-secret/s");
        check("/w/app/../app-secret/s", "/w/app-secret/s");
        check("/w/app/../../../../etc/passwd", "/etc/passwd");
    }
}
