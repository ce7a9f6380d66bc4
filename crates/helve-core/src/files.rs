//! Access to files for one call. Tools reach files only through this module: it looks up the path that the call gives,
//! and the tool asks for permission before the file is opened.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::{Act, Action};

use crate::call::CallRef;
use crate::dialect::BadPath;
use crate::gate::Grant;
use crate::journal::{self, FileImage};
use crate::machine::{
    DirListing, FileKind, FileTree, FindOrder, FindRequest, Machine, MachineError, Place,
    WindowLines, WindowRequest,
};
use crate::output::ToolError;
use crate::paths;
use crate::recorder::Recorder;
use crate::resolved::{Resolved, Roots, normalize};
use crate::seen::{KnownContent, SeenContent};
use crate::session::Session;

/// The longest accepted path in bytes.
const MAX_PATH: usize = 4096;

/// Time limit for finding files of the same name in other folders, which are suggested if a path does not exist.
const NAME_TIMEOUT: Duration = Duration::from_millis(300);

/// Access to files for one call.
pub struct Files {
    pub(crate) session: Arc<Session>,
    pub(crate) call: Arc<CallRef>,
    pub(crate) recorder: Recorder,
}

impl Files {
    /// Looks up a path as the call gives it, without asking for permission. [`Resolved::read_request`] and
    /// [`Resolved::edit_request`] return what to include in the call's ask.
    pub async fn resolve(&self, given: &str) -> Result<Resolved, ToolError> {
        resolve(&self.session, given).await
    }

    /// Looks up a symbolic link itself, without following it. `None` if there is no link at the path.
    pub async fn resolve_link(&self, given: &str) -> Result<Option<Resolved>, ToolError> {
        let words = self.session.dialect.words;
        let path = absolute(&self.session, given).map_err(|why| words.bad_path(given, &why))?;
        Ok(self.resolve_link_path(&path).await)
    }

    /// Looks up a symbolic link itself, by a path from Helve's own records.
    pub async fn resolve_link_path(&self, path: &Path) -> Option<Resolved> {
        let machine = self.session.workspace.host().machine();
        let folder = machine.locate(path.parent()?).await.ok()?;
        let real = folder.real.join(path.file_name()?);
        let link = make_resolved(&self.session, path, real, Some(FileKind::UnfollowedLink));
        let target = machine.read_link(&link.place).await.ok()??;
        Some(link.into_link(target))
    }

    /// Looks up a path from Helve's own records, which need not be UTF-8.
    pub async fn resolve_path(&self, path: &Path) -> Resolved {
        resolve_path(&self.session, path).await
    }

    /// Reads some lines of a file. A caller that shows them to the model must then call [`Files::mark_seen`].
    pub async fn read_window(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        request: WindowRequest,
    ) -> Result<WindowLines, ToolError> {
        self.require_read_grant(grant, path)?;
        let window = path.machine.window(&path.place, request).await;
        window.map_err(|err| self.session.dialect.words.machine_error(path.display(), &err))
    }

    /// Records that the session has seen this window.
    pub fn mark_seen(&self, path: &Resolved, window: &WindowLines) {
        let path = path.real();
        match KnownContent::of_window(window) {
            Some(content) => self.session.mark_content(&path, content),
            None => self.session.mark_seen(&path, SeenContent::window(window)),
        }
    }

    /// Reads a whole file and records that the session has seen it. Fails if it is larger than `max_bytes`.
    pub async fn read_whole(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        max_bytes: u64,
    ) -> Result<Bytes, ToolError> {
        self.require_read_grant(grant, path)?;
        let content = path.machine.read(&path.place, max_bytes).await;
        let content = content
            .map_err(|err| self.session.dialect.words.machine_error(path.display(), &err))?;
        let image = FileImage::new(content.bytes.clone(), content.mode);
        journal::hash_in_background(&image).await;
        self.session.mark_content(&path.real(), KnownContent::of(&image));
        Ok(content.bytes)
    }

    /// Lists a folder, at most `max_entries` entries.
    pub async fn list(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        max_entries: usize,
    ) -> Result<DirListing, ToolError> {
        self.require_read_grant(grant, path)?;
        let listing = path.machine.list(&path.place, max_entries).await;
        listing.map_err(|err| self.session.dialect.words.machine_error(path.display(), &err))
    }

    /// Returns names in the same folder as a missing path, as suggestions. Empty if reading there needs an ask or is
    /// denied.
    pub async fn sibling_names(&self, path: &Resolved, max_entries: usize) -> Vec<String> {
        if !self.is_read_allowed(path).await {
            return Vec::new();
        }
        let real = path.real();
        let Some(folder) = real.parent() else { return Vec::new() };
        let Ok(beneath) = folder.strip_prefix(&path.place.anchor) else { return Vec::new() };
        let place = Place { anchor: path.place.anchor.clone(), beneath: beneath.into() };
        let listing: Result<DirListing, MachineError> =
            path.machine.list(&place, max_entries).await;
        let entries = listing.unwrap_or_default().entries;
        entries.into_iter().map(|entry| paths::display(entry.name.as_ref()).into_owned()).collect()
    }

    /// Whether this path may be suggested: it is a file, and reading it is allowed without an ask.
    pub async fn is_readable_file(&self, path: &Resolved) -> bool {
        self.is_read_allowed(path).await && path.kind() == Some(FileKind::File)
    }

    async fn is_read_allowed(&self, path: &Resolved) -> bool {
        for part in path.read_request().parts {
            if self.session.gate.judge(&part).await.action != Action::Allow {
                return false;
            }
        }
        true
    }

    /// Returns paths of files with exactly this name anywhere below the root, as suggestions. Files whose reading needs
    /// an ask or is denied are left out.
    pub async fn files_named(&self, name: &str, max_files: usize) -> Vec<String> {
        let root = resolve_path(&self.session, self.session.workspace.root()).await;
        for part in root.search_request("glob", name).parts {
            if self.session.gate.judge(&part).await.action != Action::Allow {
                return Vec::new();
            }
        }
        let tree =
            FileTree { globs: vec![escape_glob(name)], timeout: NAME_TIMEOUT, ..root.tree() };
        let order = FindOrder::SimilarName(name.into());
        let request = FindRequest { tree, order, max_results: max_files };
        let mut finding = root.machine.find(request);
        let mut candidates = Vec::new();
        while let Some(files) = finding.next().await {
            candidates.extend(files);
        }
        let mut named = Vec::new();
        for file in candidates {
            let path = resolve_path(&self.session, &root.real().join(&file.path)).await;
            if file.kind == FileKind::File && self.is_read_allowed(&path).await {
                named.push(path.display().to_string());
            }
        }
        named
    }

    /// Fails unless the grant covers reading this path.
    pub(crate) fn require_read_grant(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
    ) -> Result<(), ToolError> {
        if grant.covers(&Act::Read(path.real())) {
            return Ok(());
        }
        Err(self.session.dialect.words.not_granted())
    }
}

/// Escapes the special characters of a glob.
fn escape_glob(name: &str) -> String {
    let mut glob = String::with_capacity(name.len());
    for character in name.chars() {
        if "*?[]{}!\\".contains(character) {
            glob.push('\\');
        }
        glob.push(character);
    }
    glob
}

/// See [`Files::resolve`].
pub(crate) async fn resolve(session: &Session, given: &str) -> Result<Resolved, ToolError> {
    let words = session.dialect.words;
    let path = absolute(session, given).map_err(|why| words.bad_path(given, &why))?;
    Ok(resolve_path(session, &path).await)
}

/// Looks up an absolute path. Never fails, because a path must be judged before any error about it is reported.
async fn resolve_path(session: &Session, path: &Path) -> Resolved {
    match look_up(session, path).await {
        Ok(resolved) => resolved,
        // The error is reported when the path is opened.
        Err(_) => make_resolved(session, path, normalize(path), None),
    }
}

/// Looks up an absolute path: follows every link, and finds out what is there.
pub(crate) async fn look_up(session: &Session, path: &Path) -> Result<Resolved, MachineError> {
    let root = session.workspace.root();
    // The root was looked up when the workspace was opened.
    if path == root {
        return Ok(make_resolved(session, root, root.to_path_buf(), Some(FileKind::Folder)));
    }
    let machine = session.workspace.host().machine();
    let located = machine.locate(path).await?;
    let is_outside = !located.real.starts_with(root) && !path.starts_with(root);
    let link = if is_outside { find_link(&**machine, path, &located.real).await } else { None };
    Ok(make_resolved(session, path, located.real, located.kind).through_link(link))
}

/// Returns the prefix of a path up to its last symbolic link; `None` if there is no link, or if the path contains `..`.
async fn find_link(machine: &dyn Machine, path: &Path, real: &Path) -> Option<PathBuf> {
    let has_parent_dir = path.components().any(|part| matches!(part, Component::ParentDir));
    if has_parent_dir || normalize(path) == real {
        return None;
    }
    let (given, real): (Vec<_>, Vec<_>) =
        (path.components().collect(), real.components().collect());
    let common = given.iter().rev().zip(real.iter().rev()).take_while(|(a, b)| a == b).count();
    // Both paths end with the same components after the link, so the link is one of the components before those. The
    // longest common end is tried first.
    for end in (0..=common).rev() {
        let start: PathBuf = given[..given.len() - end].iter().collect();
        let target: PathBuf = real[..real.len() - end].iter().collect();
        if machine.locate(&start).await.ok()?.real == target {
            return Some(start);
        }
    }
    None
}

/// Makes a path from a call absolute: relative to the root, or to the home folder after `~`.
fn absolute(session: &Session, given: &str) -> Result<PathBuf, BadPath> {
    if given.is_empty() {
        return Err(BadPath::Empty);
    }
    // Names with unprintable characters are accepted in the escaped form in which they are displayed.
    let path = paths::unescape(given);
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(BadPath::Nul);
    }
    if given.len() > MAX_PATH {
        return Err(BadPath::TooLong { limit: MAX_PATH });
    }
    let workspace = &session.workspace;
    match given.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = workspace.host().home().ok_or(BadPath::NoHome)?;
            Ok(home.join(paths::unescape(rest.trim_start_matches('/'))))
        }
        Some(_) | None => Ok(workspace.root().join(path)),
    }
}

/// Makes a [`Resolved`] from a path that was looked up. `given` is the path in the call, `real` the path with every
/// link followed.
fn make_resolved(
    session: &Session,
    given: &Path,
    real: PathBuf,
    kind: Option<FileKind>,
) -> Resolved {
    let workspace = &session.workspace;
    let roots = Roots { root: workspace.root(), output_folders: session.output_folders() };
    Resolved::new(workspace.host().machine().clone(), &roots, given, real, kind)
}
