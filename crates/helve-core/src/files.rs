//! One call's view of the files. This is the only way from a string to a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use helve_policy::{Act, Action, Part};
use parking_lot::Mutex;

use crate::call::CallRef;
use crate::dialect::BadPath;
use crate::gate::Grant;
use crate::machine::{DirListing, FileKind, MachineError, Place, WindowLines, WindowRequest};
use crate::output::ToolError;
use crate::paths;
use crate::recorder::Recorder;
use crate::resolved::{Resolved, Roots, lexical};
use crate::session::Session;
use crate::shown::SeenContent;

/// The longest accepted path in bytes.
const MAX_PATH: usize = 4096;

/// One call's view of the files.
pub struct Files {
    pub(crate) session: Arc<Session>,
    pub(crate) call: Arc<CallRef>,
    pub(crate) recorder: Recorder,
    /// Parts of files that were loaded and must still be asked about.
    pub(crate) unasked: Mutex<Vec<Part>>,
}

impl Files {
    /// Looks up a path. Never asks: the parts it needs are in the result, for the call's one ask.
    pub async fn resolve(&self, given: &str) -> Result<Resolved, ToolError> {
        resolve(&self.session, given).await
    }

    /// Looks up a path that Helve recorded itself, which need not be UTF-8.
    pub async fn resolve_path(&self, path: &Path) -> Resolved {
        resolve_path(&self.session, path).await
    }

    /// Reads some lines of a file. Once they are shown, the caller records that with [`Files::mark_shown`].
    pub async fn window(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        want: WindowRequest,
    ) -> Result<WindowLines, ToolError> {
        self.demand(grant, path)?;
        let got = path.machine.window(&path.place, want).await;
        got.map_err(|err| self.session.dialect.words.machine_error(path.shown(), &err))
    }

    /// Records that the session has seen this window.
    pub fn mark_shown(&self, path: &Resolved, got: &WindowLines) {
        self.session.saw(&path.real(), SeenContent::window(got));
    }

    /// Reads a whole file, unless it is larger than `most`.
    pub async fn whole(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        most: u64,
    ) -> Result<Bytes, ToolError> {
        self.demand(grant, path)?;
        let got = path.machine.read(&path.place, most).await;
        let got =
            got.map_err(|err| self.session.dialect.words.machine_error(path.shown(), &err))?;
        self.session.saw(&path.real(), SeenContent::whole(got.hash));
        Ok(got.bytes)
    }

    /// Lists a folder.
    pub async fn list(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        most: usize,
    ) -> Result<DirListing, ToolError> {
        self.demand(grant, path)?;
        let got = path.machine.list(&path.place, most).await;
        got.map_err(|err| self.session.dialect.words.machine_error(path.shown(), &err))
    }

    /// Returns the names in the folder of a missing path, to suggest one. Empty if reading there must be asked about.
    pub async fn beside(&self, path: &Resolved, most: usize) -> Vec<String> {
        for part in path.read_request().parts {
            if self.session.gate.judge(&part).await.action != Action::Allow {
                return Vec::new();
            }
        }
        let real = path.real();
        let Some(folder) = real.parent() else { return Vec::new() };
        let Ok(beneath) = folder.strip_prefix(&path.place.anchor) else { return Vec::new() };
        let place = Place { anchor: path.place.anchor.clone(), beneath: beneath.into() };
        let listing: Result<DirListing, MachineError> = path.machine.list(&place, most).await;
        let entries = listing.unwrap_or_default().entries;
        entries.into_iter().map(|entry| paths::display(entry.name.as_ref()).into_owned()).collect()
    }

    pub(crate) fn demand(&self, grant: &Grant<'_>, path: &Resolved) -> Result<(), ToolError> {
        if grant.covers(&Act::Read(path.real())) {
            return Ok(());
        }
        Err(self.session.dialect.words.not_granted())
    }
}

pub(crate) async fn resolve(session: &Session, given: &str) -> Result<Resolved, ToolError> {
    let words = session.dialect.words;
    let path = absolute(session, given).map_err(|why| words.bad_path(given, &why))?;
    Ok(resolve_path(session, &path).await)
}

async fn resolve_path(session: &Session, path: &Path) -> Resolved {
    match look_up(session, path).await {
        Ok(resolved) => resolved,
        // A path that cannot be looked up can still be judged; opening it will report the error.
        Err(_) => judged(session, path, lexical(path), None),
    }
}

/// Follows an absolute path.
pub(crate) async fn look_up(session: &Session, path: &Path) -> Result<Resolved, MachineError> {
    let root = session.workspace.root();
    // The root was looked up when the workspace was opened.
    if path == root {
        return Ok(judged(session, root, root.to_path_buf(), Some(FileKind::Folder)));
    }
    let located = session.workspace.host().machine().locate(path).await?;
    Ok(judged(session, path, located.real, located.kind))
}

fn absolute(session: &Session, given: &str) -> Result<PathBuf, BadPath> {
    if given.is_empty() {
        return Err(BadPath::Empty);
    }
    // A name that is not plain text is accepted in the form in which it was shown.
    let path = paths::read(given);
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
            Ok(home.join(paths::read(rest.trim_start_matches('/'))))
        }
        Some(_) | None => Ok(workspace.root().join(path)),
    }
}

fn judged(session: &Session, given: &Path, real: PathBuf, kind: Option<FileKind>) -> Resolved {
    let workspace = &session.workspace;
    let roots = Roots { root: workspace.root(), output_folders: session.output_folders() };
    Resolved::new(workspace.host().machine().clone(), &roots, given, real, kind)
}
