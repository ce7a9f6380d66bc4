//! One call's view of the files: the only way from a string to a file.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::context::CallRef;
use crate::dialect::BadPath;
use crate::engine::Engine;
use crate::machine::{Kind, Listing, Machine, MachineError, Place, Window, Windowed};
use crate::paths;
use crate::permission::{Action, Ask, Grant, Let, Part, Pattern};
use crate::session::Session;
use crate::shown::Seen;
use crate::tool::ToolError;

/// The longest path that is looked at.
const MOST_PATH: usize = 4096;

/// A path that was looked up and can be judged: as given, and with every link followed.
#[derive(Clone)]
pub struct Resolved {
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) place: Place,
    kind: Option<Kind>,
    /// What rules are matched against: relative to the root inside it, absolute outside.
    subjects: Vec<String>,
    /// The folder that `external_directory` is asked for.
    outside: Option<PathBuf>,
    /// The path below the root, or absolute, to show.
    shown: String,
}

impl Resolved {
    /// The absolute path with every link followed.
    pub fn real(&self) -> PathBuf {
        self.place.path()
    }

    /// The path for people: relative to the root inside it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What was there when it was looked up. Say nothing of it before reading was granted.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    pub(crate) fn part(&self, permission: &'static str) -> Part {
        let mut part = Part::new(permission, "");
        part.subjects.clone_from(&self.subjects);
        // Rules are text: what is none could not be told from another like it.
        if self.real().to_str().is_none() { part } else { part.always_exactly() }
    }

    /// What must be asked besides, for a path outside the root.
    pub(crate) fn outside(&self) -> Option<Part> {
        let folder = self.outside.as_ref()?.display().to_string();
        let inside = if folder == "/" { "/*".into() } else { format!("{folder}/*") };
        let part = Part::new("external_directory", inside.clone());
        // A folder whose name holds a wildcard can be approved as it is, not as a pattern.
        Some(if folder.contains(['*', '?']) {
            part.always_exactly()
        } else {
            part.always(Pattern::Wild(inside))
        })
    }
}

/// One call's view of the files.
pub struct Files {
    pub(crate) session: Arc<Session>,
    pub(crate) call: Arc<CallRef>,
    pub(crate) engine: Arc<Engine>,
    /// What was loaded and must still be asked about.
    pub(crate) unspoken: Mutex<Vec<Part>>,
}

impl Files {
    /// Looks a path up. Never prompts: what must be asked travels with it into the call's one ask.
    pub async fn resolve(&self, given: &str) -> Result<Resolved, ToolError> {
        resolve(&self.session, given).await
    }

    /// Looks up a path that Helve noted itself, which need not be text.
    pub async fn resolve_path(&self, path: &Path) -> Resolved {
        resolve_path(&self.session, path).await
    }

    /// Some lines of a file that reading was granted for. Once they are shown, [`Files::showed`] takes that down.
    pub async fn window(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        want: Window,
    ) -> Result<Windowed, ToolError> {
        self.demand(grant, path)?;
        let got = path.machine.window(&path.place, want).await;
        got.map_err(|err| self.session.dialect.words.machine(path, &err))
    }

    /// What this session overwrites it must have been shown: so it was of this.
    pub fn showed(&self, path: &Resolved, got: &Windowed) {
        self.session.saw(&path.real(), Seen::window(got));
    }

    /// A whole file that reading was granted for, unless it is larger than `most`.
    pub async fn whole(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        most: u64,
    ) -> Result<Bytes, ToolError> {
        self.demand(grant, path)?;
        let got = path.machine.read(&path.place, most).await;
        let got = got.map_err(|err| self.session.dialect.words.machine(path, &err))?;
        self.session.saw(&path.real(), Seen::whole(got.hash));
        Ok(got.bytes)
    }

    /// The names in a folder that reading was granted for.
    pub async fn list(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        most: usize,
    ) -> Result<Listing, ToolError> {
        self.demand(grant, path)?;
        let got = path.machine.list(&path.place, most).await;
        got.map_err(|err| self.session.dialect.words.machine(path, &err))
    }

    /// Names beside a path that is not there, to suggest one. Empty where reading there needs asking.
    pub async fn beside(&self, path: &Resolved, most: usize) -> Vec<String> {
        for part in Ask::to_read(path).parts {
            if self.session.gate.judge(&part).await.action != Action::Allow {
                return Vec::new();
            }
        }
        let real = path.real();
        let Some(folder) = real.parent() else { return Vec::new() };
        let Ok(beneath) = folder.strip_prefix(&path.place.anchor) else { return Vec::new() };
        let place = Place { anchor: path.place.anchor.clone(), beneath: beneath.into() };
        let listing: Result<Listing, MachineError> = path.machine.list(&place, most).await;
        let entries = listing.unwrap_or_default().entries;
        entries.into_iter().map(|entry| paths::shown(entry.name.as_ref()).into_owned()).collect()
    }

    pub(crate) fn demand(&self, grant: &Grant<'_>, path: &Resolved) -> Result<(), ToolError> {
        if grant.covers(&Let::Read(path.real())) {
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
        // A path that cannot be looked up is still a path to be judged; opening it will say why.
        Err(_) => judged(session, path, lexical(path), None),
    }
}

/// Where an absolute path leads.
pub(crate) async fn look_up(session: &Session, path: &Path) -> Result<Resolved, MachineError> {
    let root = session.workspace.root();
    // It was looked up when the workspace was opened.
    if path == root {
        return Ok(judged(session, root, root.to_path_buf(), Some(Kind::Folder)));
    }
    let located = session.workspace.machine().locate(path).await?;
    Ok(judged(session, path, located.real, located.kind))
}

fn absolute(session: &Session, given: &str) -> Result<PathBuf, BadPath> {
    if given.is_empty() {
        return Err(BadPath::Empty);
    }
    // A name that is no plain text comes back as it was shown.
    let path = paths::read(given);
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(BadPath::Nul);
    }
    if given.len() > MOST_PATH {
        return Err(BadPath::TooLong { most: MOST_PATH });
    }
    let workspace = &session.workspace;
    match given.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = workspace.home().ok_or(BadPath::NoHome)?;
            Ok(home.join(paths::read(rest.trim_start_matches('/'))))
        }
        Some(_) | None => Ok(workspace.root().join(path)),
    }
}

fn judged(session: &Session, given: &Path, real: PathBuf, kind: Option<Kind>) -> Resolved {
    let root = session.workspace.root();
    let own = session.own_folder();
    let folder = match kind {
        Some(Kind::Folder) => real.clone(),
        _ => real.parent().unwrap_or(Path::new("/")).to_path_buf(),
    };
    let (anchor, outside) = if real.starts_with(root) {
        (root.to_path_buf(), None)
    } else if real.starts_with(&own) {
        (own, None)
    } else {
        (folder.clone(), Some(folder))
    };
    let mut subjects = vec![subject(root, &real), subject(root, &lexical(given))];
    subjects.dedup();
    let beneath = real.strip_prefix(&anchor).unwrap_or(Path::new("")).to_path_buf();
    let shown = paths::shown(real.strip_prefix(root).unwrap_or(&real));
    let shown = if shown.is_empty() { ".".into() } else { shown.into_owned() };
    let place = Place { anchor, beneath };
    let machine = session.workspace.machine().clone();
    Resolved { machine, place, kind, subjects, outside, shown }
}

/// A path as rules see it.
fn subject(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(beneath) if beneath.as_os_str().is_empty() => ".".into(),
        Ok(beneath) => beneath.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// A path without `.` and `..`, by its text alone.
fn lexical(path: &Path) -> PathBuf {
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
