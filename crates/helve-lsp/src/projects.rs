//! Finds the root of a file's project, and installed programs. The answers are cached for a while.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use helve_core::{FileKind, Machine, Place};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::table::{RootRule, ServerDefinition};

/// How long an answer is cached.
const CACHE_TIME: Duration = Duration::from_secs(30);
/// Maximum number of folders whose entries are cached.
const MAX_CACHED_FOLDERS: usize = 1_000;
/// Maximum number of entries read from a folder.
const MAX_ENTRIES: usize = 10_000;
/// Folders below the root of the workspace in which programs are looked for before `PATH`.
const PROGRAM_FOLDERS: [&str; 3] = ["node_modules/.bin", ".venv/bin", "venv/bin"];

/// The names of a folder's entries, and when they were read.
type CachedNames = (Instant, Arc<[String]>);

/// Looks up project roots and programs.
pub(crate) struct Projects {
    machine: Arc<dyn Machine>,
    /// The root of the workspace. Files outside belong to no project.
    root: PathBuf,
    /// The folders of `PATH`.
    path: Vec<PathBuf>,
    /// The entries of folders, by path.
    folders: Mutex<HashMap<PathBuf, CachedNames>>,
    /// The paths of programs, by name, and when they were looked up; `None` if not installed.
    programs: Mutex<HashMap<String, (Instant, Option<PathBuf>)>>,
}

impl Projects {
    pub(crate) fn new(
        machine: Arc<dyn Machine>,
        root: PathBuf,
        environment: &[(OsString, OsString)],
    ) -> Self {
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path: Vec<PathBuf> =
            path.map(|(_, value)| std::env::split_paths(value).collect()).unwrap_or_default();
        let path = path.into_iter().filter(|folder| folder.is_absolute()).collect();
        Self { machine, root, path, folders: Mutex::default(), programs: Mutex::default() }
    }

    /// Returns the folder that a server is started for; `None` if the server is not meant for this file.
    pub(crate) async fn server_root(
        &self,
        server: &ServerDefinition,
        file: &Path,
    ) -> Option<PathBuf> {
        let inside = file.parent()?.strip_prefix(&self.root).ok()?;
        let mut root = None;
        for folder in inside.ancestors().map(|folder| self.root.join(folder)) {
            let names = self.names(&folder).await;
            let has = |markers: &[String]| {
                names.iter().any(|name| markers.iter().any(|marker| matches(marker, name)))
            };
            if has(&server.excluded_by) {
                return None;
            }
            if has(&server.markers) && (root.is_none() || server.root_rule == RootRule::Outermost) {
                root = Some(folder);
            }
        }
        match root {
            Some(folder) => Some(folder),
            None if server.needs_marker => None,
            None => Some(self.root.clone()),
        }
    }

    /// Returns the parent folders of `path`, nearest first, that contain an entry of this name.
    pub(crate) async fn folders_with(&self, path: &Path, name: &str) -> Vec<PathBuf> {
        let inside = path.parent().and_then(|folder| folder.strip_prefix(&self.root).ok());
        let mut folders = Vec::new();
        for folder in inside.into_iter().flat_map(Path::ancestors) {
            let folder = self.root.join(folder);
            if self.names(&folder).await.iter().any(|entry| entry == name) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Returns the names of a folder's entries.
    async fn names(&self, folder: &Path) -> Arc<[String]> {
        let cached = self.folders.lock().get(folder).cloned();
        if let Some((at, names)) = cached
            && at.elapsed() < CACHE_TIME
        {
            return names;
        }
        let beneath = folder.strip_prefix(&self.root).unwrap_or(folder).to_path_buf();
        let place = Place { anchor: self.root.clone(), beneath };
        let listing = self.machine.list(&place, MAX_ENTRIES).await.unwrap_or_default();
        let names: Arc<[String]> =
            listing.entries.iter().filter_map(|it| it.name.to_str()).map(Into::into).collect();
        let mut folders = self.folders.lock();
        if folders.len() >= MAX_CACHED_FOLDERS {
            folders.clear();
        }
        folders.insert(folder.into(), (Instant::now(), names.clone()));
        names
    }

    /// Returns the path of a program, from [`PROGRAM_FOLDERS`] or else from `PATH`; `None` if it is not installed. A
    /// name with a slash is relative to the root of the workspace.
    pub(crate) async fn find_program(&self, name: &str) -> Option<PathBuf> {
        let cached = self.programs.lock().get(name).cloned();
        if let Some((at, program)) = cached
            && at.elapsed() < CACHE_TIME
        {
            return program;
        }
        let candidates: Vec<PathBuf> = if name.contains('/') {
            vec![self.root.join(name)]
        } else {
            let in_workspace = PROGRAM_FOLDERS.iter().map(|folder| self.root.join(folder));
            in_workspace.chain(self.path.iter().cloned()).map(|folder| folder.join(name)).collect()
        };
        let located = join_all(candidates.iter().map(|path| self.machine.locate(path))).await;
        let is_file = |located: &Result<helve_core::LocatedPath, _>| {
            located.as_ref().is_ok_and(|it| it.kind == Some(FileKind::File))
        };
        let program = located.iter().position(is_file).map(|index| candidates[index].clone());
        self.programs.lock().insert(name.into(), (Instant::now(), program.clone()));
        program
    }
}

/// Whether a name matches a marker. A `*` at the start of the marker stands for any text that is not empty.
fn matches(marker: &str, name: &str) -> bool {
    match marker.strip_prefix('*') {
        Some(end) => name.len() > end.len() && name.ends_with(end),
        None => marker == name,
    }
}

#[cfg(test)]
mod tests {
    use helve_testkit::MemoryMachine;

    use super::*;
    use crate::table::server_definitions;

    #[track_caller]
    fn check(files: &[&str], server: &str, file: &str, expected: Option<&str>) {
        let machine = MemoryMachine::default();
        for file in files {
            machine.write(Path::new("/w").join(file), "");
        }
        let projects = Projects::new(Arc::new(machine), "/w".into(), &[]);
        let servers = server_definitions(&[]);
        let server = servers.iter().find(|it| it.id == server).unwrap();
        let root = projects.server_root(server, Path::new(file));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let root = runtime.block_on(root);
        assert_eq!(root, expected.map(PathBuf::from));
    }

    #[test]
    fn the_root_is_found_by_markers() {
        check(&["a/b/x.ts"], "typescript", "/w/a/b/x.ts", Some("/w"));
        check(&["a/yarn.lock", "a/b/x.ts"], "typescript", "/w/a/b/x.ts", Some("/w/a"));
        check(&["yarn.lock", "a/yarn.lock", "a/x.ts"], "typescript", "/w/a/x.ts", Some("/w/a"));
        check(&["Cargo.toml", "a/Cargo.toml", "a/x.rs"], "rust", "/w/a/x.rs", Some("/w"));
        check(&["a/deno.json", "a/x.ts"], "typescript", "/w/a/x.ts", None);
        check(&["a/deno.json", "a/x.ts"], "deno", "/w/a/x.ts", Some("/w/a"));
        check(&["a/x.ts"], "deno", "/w/a/x.ts", None);
        check(&["a/My.csproj", "a/x.cs"], "csharp", "/w/a/x.cs", Some("/w/a"));
        check(&["x.ts"], "typescript", "/other/x.ts", None);
    }
}
