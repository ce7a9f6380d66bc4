//! Finds the files that git reads or runs because settings name them: hooks, included settings, attributes, scripts.
//! A sandbox protects them, whether they exist or not.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use helve_text::git_config::{self, GitSetting};
use helve_text::shell::{self, FileTarget, ShellContext, ShellLanguage};

use super::git_programs::{self, GitCommandKind};
use super::{MAX_CONFIG, Repository, RepositoryScan};
use crate::files;
use crate::machine::{FileKind, MachineError, Place};
use crate::session::Session;

/// Maximum number of settings files that are read.
const MAX_SETTINGS_FILES: usize = 64;
/// Maximum number of paths in a command that are looked up.
const MAX_PATHS: usize = 64;
/// Maximum number of symbolic links in a path, as in the kernel.
const MAX_LINKS: usize = 40;

/// What a sandbox protects because settings of git name it. All paths are absolute and lead through no links.
#[derive(Debug, Default)]
pub(in crate::programs) struct ConfiguredPaths {
    /// Files and folders. They may be missing.
    pub(in crate::programs) paths: BTreeSet<PathBuf>,
    /// Symbolic links on the way to them.
    pub(in crate::programs) links: BTreeSet<PathBuf>,
}

/// Returns the paths in the writable folders that settings refer to: those of the repositories to which these folders
/// belong, and those of the user. An error says which settings cannot be read.
pub(in crate::programs) async fn configured_paths(
    session: &Session,
    writable: &[PathBuf],
    home: Option<&Path>,
) -> Result<ConfiguredPaths, String> {
    let mut search = SettingsSearch {
        scan: RepositoryScan { session, kind: GitCommandKind::Reading },
        writable,
        home,
        git_folders: HashSet::new(),
        visited: HashSet::new(),
        found: ConfiguredPaths::default(),
    };
    for folder in writable {
        let mut files: Vec<PathBuf> = vec!["/etc/gitconfig".into()];
        let user_files = [".config/git/config", ".gitconfig"];
        files.extend(home.into_iter().flat_map(|home| user_files.map(|name| home.join(name))));
        let mut worktrees = search.scan.repositories(folder).await;
        for common in worktrees.iter().map(|it| it.common.clone()).collect::<BTreeSet<_>>() {
            search.protect_link_targets(&common.join("hooks")).await;
            files.extend(["config", "config.worktree"].map(|name| common.join(name)));
            worktrees.extend(search.scan.linked_worktrees(&common).await);
        }
        for worktree in &worktrees {
            for git_dir in [&worktree.common, &worktree.git_dir] {
                search.git_folders.insert(git_dir.clone());
            }
            files.push(worktree.git_dir.join("config.worktree"));
        }
        let settings = search.follow(files).await?;
        search.protect_settings(&settings, folder, &worktrees).await;
    }
    Ok(search.found)
}

struct SettingsSearch<'s> {
    scan: RepositoryScan<'s>,
    writable: &'s [PathBuf],
    home: Option<&'s Path>,
    git_folders: HashSet<PathBuf>,
    visited: HashSet<PathBuf>,
    found: ConfiguredPaths,
}

/// A path in a command.
struct NamedPath {
    path: PathBuf,
    /// Whether it is the path of a program or script, which may be created later.
    is_code: bool,
}

/// What a settings file contains.
enum Settings {
    Missing,
    Known(Vec<GitSetting>),
    /// The file exists or may exist, but cannot be read.
    Unknown,
}

impl SettingsSearch<'_> {
    /// Reads settings files and the files that they include. Returns the other settings.
    async fn follow(&mut self, files: Vec<PathBuf>) -> Result<Vec<GitSetting>, String> {
        let mut pending = files;
        let mut others = Vec::new();
        self.visited.clear();
        while let Some(file) = pending.pop() {
            if !self.visited.insert(file.clone()) {
                continue;
            }
            let settings = match self.read(&file).await {
                Settings::Missing => continue,
                Settings::Known(settings) => settings,
                Settings::Unknown if !self.is_writable(&file) => continue,
                Settings::Unknown => {
                    return Err(format!(
                        "the settings of git in {} cannot be read, so the files that they name cannot be protected. Make the file and the folders around it readable",
                        file.display()
                    ));
                }
            };
            if self.visited.len() > MAX_SETTINGS_FILES {
                return Err(format!(
                    "the settings of git include more than {MAX_SETTINGS_FILES} files, so the files that they name cannot be protected"
                ));
            }
            let folder = file.parent().unwrap_or(Path::new("/"));
            for setting in settings {
                let key = setting.key.as_str();
                let is_include = key == "include.path"
                    || key.starts_with("includeif.") && key.ends_with(".path");
                if is_include {
                    let Some(path) = self.expand(&setting.value, folder) else { continue };
                    self.protect(&path).await;
                    pending.push(path);
                } else {
                    others.push(setting);
                }
            }
        }
        Ok(others)
    }

    /// Protects what settings name. Relative paths start from the working tree in which git runs, so from each of them.
    async fn protect_settings(
        &mut self,
        settings: &[GitSetting],
        folder: &Path,
        worktrees: &[Repository],
    ) {
        let mut trees = BTreeSet::from([folder.to_path_buf()]);
        trees.extend(worktrees.iter().map(|it| it.tree.clone()));
        for setting in settings.iter().filter(|setting| setting.key == "core.worktree") {
            trees.extend(worktrees.iter().map(|it| it.git_dir.join(&setting.value)));
        }
        for tree in &trees {
            for setting in settings {
                self.protect_setting(setting, tree).await;
            }
        }
    }

    async fn read(&self, file: &Path) -> Settings {
        let resolved = match files::look_up(self.scan.session, file).await {
            Err(MachineError::NotFound | MachineError::NotAFolder) => return Settings::Missing,
            Err(_) => return Settings::Unknown,
            Ok(path) if path.kind() == Some(FileKind::File) => path,
            // Git cannot read anything else.
            Ok(_) => return Settings::Missing,
        };
        match resolved.machine.read(&resolved.place, MAX_CONFIG).await {
            Err(MachineError::NotFound) => Settings::Missing,
            Err(_) => Settings::Unknown,
            // If git refuses the file, it runs nothing.
            Ok(content) => {
                let text = String::from_utf8_lossy(&content.bytes);
                Settings::Known(git_config::parse(&text).unwrap_or_default())
            }
        }
    }

    /// Protects the files that a setting names. Relative paths start from the folder `tree`.
    async fn protect_setting(&mut self, setting: &GitSetting, tree: &Path) {
        match setting.key.as_str() {
            "core.hookspath" => {
                let Some(folder) = self.expand(&setting.value, tree) else { return };
                let end = self.protect(&folder).await;
                // Such a folder has to stay writable, so the hooks in it are protected one by one.
                if self.must_stay_writable(&end) {
                    for hook in git_programs::hook_names() {
                        self.protect(&end.join(hook)).await;
                    }
                }
                self.protect_link_targets(&end).await;
            }
            "core.attributesfile" => {
                let Some(path) = self.expand(&setting.value, tree) else { return };
                self.protect(&path).await;
            }
            _ if git_programs::may_name_program(setting) => {
                self.protect_command(&setting.value, tree).await;
            }
            _ => {}
        }
    }

    /// Protects the files that a command names: programs and scripts by their paths, and other files that exist.
    async fn protect_command(&mut self, command: &str, tree: &Path) {
        let command = command.trim_start().trim_start_matches('!');
        for NamedPath { path, is_code } in self.paths_in(command, tree) {
            let kind = files::look_up(self.scan.session, &path).await.map(|path| path.kind());
            let is_named = match kind {
                Ok(Some(FileKind::Folder)) => false,
                Ok(Some(_)) => true,
                // A program that may be created later, or is in a folder that cannot be entered.
                Ok(None) | Err(_) => is_code,
            };
            if is_named {
                self.protect(&path).await;
            }
        }
    }

    /// Returns the paths in a command that git runs with a shell in `tree`.
    fn paths_in(&self, command: &str, tree: &Path) -> Vec<NamedPath> {
        let context = ShellContext {
            cwd: tree.display().to_string(),
            home: self.home.map(|home| home.display().to_string()),
            language: ShellLanguage::Posix,
            ..ShellContext::default()
        };
        let script = shell::analyze(command, &context);
        // The arguments of git are paths that it works on.
        let is_git = |run: usize| {
            let program = script.runs.get(run).and_then(|run| run.words.first()?.literal());
            program == Some("git")
        };
        let mut paths: Vec<NamedPath> = Vec::new();
        for code in script.runs.iter().flat_map(|run| &run.code_paths) {
            let code = code.paths.iter().map(|path| NamedPath { path: path.into(), is_code: true });
            paths.extend(code);
        }
        for access in script.accesses.iter().filter(|it| !it.run.is_some_and(is_git)) {
            if let FileTarget::Path(path) = &access.target {
                paths.push(NamedPath { path: path.into(), is_code: false });
            }
        }
        // Not every command is understood, and git starts some of them without a shell.
        let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', ';']));
        let is_git_command = command.split_whitespace().next() == Some("git");
        for (number, word) in words.enumerate().take_while(|_| !is_git_command) {
            let is_code = number == 0;
            let is_path = word.contains('/') && !word.contains("://");
            if word.is_empty() || word.starts_with('-') || is_code && !is_path {
                continue;
            }
            paths.extend(self.expand(word, tree).map(|path| NamedPath { path, is_code }));
        }
        paths.truncate(MAX_PATHS);
        paths
    }

    /// Protects what symbolic links with the names of hooks lead to.
    async fn protect_link_targets(&mut self, folder: &Path) {
        for name in self.scan.list_names(folder).await.names {
            let is_hook = name.to_str().and_then(git_programs::kind_for_hook).is_some();
            let hook = folder.join(name);
            if is_hook && self.link_target(&hook).await.is_ok_and(|target| target.is_some()) {
                self.protect(&hook).await;
            }
        }
    }

    /// Returns the path that git takes a value for; `None` if it is in the home folder of another user.
    fn expand(&self, value: &str, base: &Path) -> Option<PathBuf> {
        let value = value.strip_prefix(":(optional)").unwrap_or(value);
        match value.strip_prefix('~') {
            None => Some(base.join(value)),
            Some("") => self.home.map(Path::to_path_buf),
            Some(rest) => Some(self.home?.join(rest.strip_prefix('/')?.trim_start_matches('/'))),
        }
    }

    /// Adds a path and the links on the way to it, as far as they are in writable folders. Returns what the path leads
    /// to, which may be missing; or the folder on the way that cannot be entered.
    async fn protect(&mut self, path: &Path) -> PathBuf {
        let end = self.resolve(path).await;
        if self.is_writable(&end) && !self.must_stay_writable(&end) {
            self.found.paths.insert(end.clone());
        }
        end
    }

    /// Follows the links of an absolute path, and adds those in writable folders.
    async fn resolve(&mut self, path: &Path) -> PathBuf {
        let mut real = PathBuf::from("/");
        let mut rest = names_of(path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                real.pop();
                continue;
            }
            real.push(&name);
            match self.link_target(&real).await {
                Ok(Some(target)) if links < MAX_LINKS => {
                    links += 1;
                    if self.is_writable(&real) {
                        self.found.links.insert(real.clone());
                    }
                    real.pop();
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    rest.extend(names_of(&target));
                }
                // Commands may make the folder accessible, so it is protected as a whole.
                Err(MachineError::NotPermitted) if self.is_writable(&real) => {
                    let folder = real.parent().unwrap_or(Path::new("/"));
                    if !self.must_stay_writable(folder) {
                        return folder.into();
                    }
                }
                Ok(_) | Err(_) => {}
            }
        }
        real
    }

    /// Returns what a path leads to if it is a link itself.
    async fn link_target(&self, path: &Path) -> Result<Option<PathBuf>, MachineError> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let place = Place { anchor: folder.into(), beneath: name.into() };
        let machine = self.scan.session.workspace.host().machine();
        let target = machine.read_link(&place).await?;
        Ok(target.map(|target| OsStr::from_bytes(&target).into()))
    }

    /// Whether a path is in a writable folder.
    fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|folder| path.starts_with(folder))
    }

    /// Whether a folder is one that programs need as a whole: a writable folder, or a git folder.
    fn must_stay_writable(&self, folder: &Path) -> bool {
        let is_around = |inner: &PathBuf| inner.starts_with(folder);
        self.writable.iter().any(is_around) || self.git_folders.contains(folder)
    }
}

/// Returns the names in a path, the last one first.
fn names_of(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect::<Vec<_>>().into_iter().rev().collect()
}
