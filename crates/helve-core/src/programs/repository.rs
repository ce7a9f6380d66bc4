//! Finds the programs that a repository's own configuration makes git run: filters, drivers, hooks. The command does
//! not show them, so each becomes a part of the ask.
//!
//! `git clone` does not copy such configuration, but an unpacked archive may contain it and an earlier command may have
//! created it. Settings that the environment overrides for every git command (file monitor, pagers, passwords, editors,
//! ssh) are not checked.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_policy::Part;
use helve_text::git_config::{self, GitSetting};
use helve_text::shell::{AccessKind, FileTarget, ProgramRun, Script, WordRole};

use crate::confine::LinkedWorktree;
use crate::files;
use crate::machine::FileKind;
use crate::session::Session;

mod aliases;
mod configured;
mod git_programs;
mod modules;

pub(super) use configured::{ConfiguredPaths, configured_paths};
use git_programs::GitCommandKind;

/// Maximum size of a git configuration file in bytes.
const MAX_CONFIG: u64 = 1 << 20;
/// Maximum number of folders checked for one script.
const MAX_FOLDERS: usize = 64;
/// Maximum number of entries read per folder.
const MAX_NAMES: usize = 64;
/// Maximum characters of a setting's value in an ask.
const MAX_VALUE_CHARS: usize = 200;

/// Returns a part for each program that the configuration of a repository makes the git commands of a script run.
pub(super) async fn parts(
    session: &Session,
    (folder, home): (&Path, Option<&Path>),
    script: &Script,
) -> Vec<Part> {
    let Some(kind) = script.runs.iter().filter_map(command_kind).max() else { return Vec::new() };
    let mut folders = vec![folder.to_path_buf()];
    for access in &script.accesses {
        match (&access.target, access.kind) {
            (FileTarget::Path(path), AccessKind::Enter) if folders.len() < MAX_FOLDERS => {
                folders.push(path.into());
            }
            // A script with an unknown target needs an ask anyway.
            (FileTarget::Path(_) | FileTarget::Glob(_) | FileTarget::Unknown(_), _) => {}
        }
    }
    let scan = RepositoryScan { session, kind };
    folders.extend(scan.added_repositories(script).await);
    let mut checked: Vec<Repository> = Vec::new();
    let mut findings = Vec::new();
    for folder in folders {
        for repository in scan.repositories(&folder).await {
            if !checked.contains(&repository) {
                scan.check_with_submodules(&repository, &mut findings).await;
                checked.push(repository);
            }
        }
    }
    scan.check_aliases(script, (&checked, home), &mut findings).await;
    let mut unique = HashSet::new();
    findings.retain(|finding| unique.insert(finding.clone()));
    findings.into_iter().map(|finding| Part::new("bash", finding).remember_exactly()).collect()
}

/// Returns the git folders of the workspace, if it is a linked worktree.
///
/// Anybody may have written the `.git` file of the workspace, so the repository must confirm it: its worktree entry
/// must name the workspace and lie in the repository's own folder.
pub(super) async fn linked_worktree(session: &Session) -> Option<LinkedWorktree> {
    let scan = RepositoryScan { session, kind: GitCommandKind::Reading };
    let dot_git = session.workspace.root().join(".git");
    if scan.file_kind(&dot_git).await != Some(FileKind::File) {
        return None;
    }
    let git_dir = scan.git_dir(session.workspace.root()).await?;
    let git_dir = scan.real_path(&git_dir).await?;
    let worktrees = git_dir.parent().filter(|folder| folder.ends_with("worktrees"))?;
    let common = worktrees.parent()?.to_path_buf();
    let recorded_common = scan.read_path(&git_dir.join("commondir"), b"").await?;
    let recorded_dot_git = scan.read_path(&git_dir.join("gitdir"), b"").await?;
    let is_consistent = scan.real_path(&git_dir.join(recorded_common)).await.as_ref()
        == Some(&common)
        && scan.real_path(&git_dir.join(recorded_dot_git)).await == Some(dot_git)
        && scan.is_complete(&git_dir, &common).await;
    if !is_consistent {
        return None;
    }
    let mut shared = Vec::new();
    for name in ["objects", "refs", "logs"] {
        let folder = common.join(name);
        // A symbolic link is left out, so that its target does not become writable.
        if scan.file_kind(&folder).await == Some(FileKind::Folder)
            && scan.real_path(&folder).await.as_ref() == Some(&folder)
        {
            shared.push(folder);
        }
    }
    Some(LinkedWorktree { git_dir, shared })
}

/// Maximum number of worktrees of a repository that are looked up.
const MAX_WORKTREES: usize = 32;

/// Returns the folders of the other worktrees of the workspace's repository, with every link followed.
pub(super) async fn other_worktrees(session: &Session) -> Vec<PathBuf> {
    let scan = RepositoryScan { session, kind: GitCommandKind::Reading };
    let root = session.workspace.root();
    let Some(repository) = scan.repository(root).await else { return Vec::new() };
    let mut trees = Vec::new();
    // The main worktree of a linked one.
    let common = scan.real_path(&repository.common).await.unwrap_or(repository.common.clone());
    if repository.common != repository.git_dir && common.ends_with(".git") {
        trees.extend(common.parent().map(Path::to_path_buf));
    }
    trees.extend(scan.linked_worktrees(&repository.common).await.into_iter().map(|it| it.tree));
    let mut others = Vec::new();
    for tree in trees {
        if let Some(tree) = scan.real_path(&tree).await
            && !tree.starts_with(root)
            && !root.starts_with(&tree)
        {
            others.push(tree);
        }
    }
    others
}

/// Returns the tracked files of the repository that git uses in a folder, or `None` if they are unknown.
pub(super) async fn tracked_files(session: &Session, folder: &Path) -> Option<TrackedFiles> {
    let scan = RepositoryScan { session, kind: GitCommandKind::Reading };
    let Some(repository) = scan.repositories(folder).await.pop() else {
        return Some(TrackedFiles { tree: folder.into(), paths: Vec::new() });
    };
    let index = repository.git_dir.join("index");
    let mut files = TrackedFiles { tree: repository.tree.clone(), paths: Vec::new() };
    if scan.file_kind(&index).await.is_none() {
        return Some(files);
    }
    let settings = scan.read_text(&repository.common.join("config")).await?;
    let index = scan.read_index(&repository, &index, &git_config::parse(&settings)?).await?;
    let to_path = |name: Vec<u8>| PathBuf::from(OsString::from_vec(name));
    // The files in a collapsed folder are not listed. The folder stands for them.
    files.paths = index.files.into_iter().chain(index.collapsed).map(to_path).collect();
    Some(files)
}

/// The tracked files of a repository.
pub(super) struct TrackedFiles {
    /// The working tree.
    pub(super) tree: PathBuf,
    /// Relative to the working tree.
    pub(super) paths: Vec<PathBuf>,
}

/// Returns the kind of a git command; `None` if the command is not git.
fn command_kind(run: &ProgramRun) -> Option<GitCommandKind> {
    let program = run.words.first()?.literal()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if let Some(subcommand) = name.strip_prefix("git-") {
        return Some(GitCommandKind::of_subcommand(subcommand));
    }
    if name != "git" {
        return None;
    }
    let at = run.roles.iter().position(|role| *role == WordRole::Subcommand);
    let subcommand = at.and_then(|at| run.words.get(at)?.literal());
    Some(subcommand.map_or(GitCommandKind::Remote, GitCommandKind::of_subcommand))
}

/// A repository, seen from one working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repository {
    /// The git folder of this working tree.
    git_dir: PathBuf,
    /// The git folder that all working trees share.
    common: PathBuf,
    /// The folder for which the repository was found: its working tree, unless its settings name another.
    tree: PathBuf,
}

/// Looks for programs that git would run.
struct RepositoryScan<'s> {
    session: &'s Session,
    /// The kind of command that is about to run.
    kind: GitCommandKind,
}

impl RepositoryScan<'_> {
    /// Returns the folders with repositories of their own that git commands of the script read as a whole, as
    /// `git add sub` does. A repository that is added becomes a submodule, and later commands run git in it.
    async fn added_repositories(&self, script: &Script) -> Vec<PathBuf> {
        let is_git = |run: Option<usize>| {
            run.and_then(|run| script.runs.get(run)).is_some_and(|run| command_kind(run).is_some())
        };
        let added = script
            .accesses
            .iter()
            .filter(|access| access.kind == AccessKind::ReadTree && is_git(access.run));
        let mut candidates: Vec<PathBuf> = Vec::new();
        for access in added {
            match &access.target {
                FileTarget::Path(path) => {
                    let path = PathBuf::from(path);
                    let FolderNames { names, .. } = self.list_names(&path).await;
                    candidates.extend(names.iter().map(|name| path.join(name)));
                    candidates.push(path);
                }
                FileTarget::Glob(pattern) => {
                    let end = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
                    let folder = pattern[..end].rsplit_once('/').map_or("", |(folder, _)| folder);
                    let folder = PathBuf::from(folder);
                    let FolderNames { names, .. } = self.list_names(&folder).await;
                    candidates.extend(names.iter().map(|name| folder.join(name)));
                }
                FileTarget::Unknown(_) => {}
            }
        }
        let mut folders = Vec::new();
        for folder in candidates.into_iter().take(MAX_FOLDERS) {
            if self.file_kind(&folder.join(".git")).await.is_some() {
                folders.push(folder);
            }
        }
        folders
    }

    /// Finds the repository that git uses in a folder, and incomplete ones that git skips on its way up to it.
    async fn repositories(&self, folder: &Path) -> Vec<Repository> {
        let mut repositories = Vec::new();
        let Ok(folder) = files::look_up(self.session, folder).await else { return repositories };
        for ancestor in folder.real().ancestors() {
            let Some(repository) = self.repository(ancestor).await else { continue };
            let is_complete = self.is_complete(&repository.git_dir, &repository.common).await;
            repositories.push(repository);
            if is_complete {
                break;
            }
        }
        repositories
    }

    /// Returns the repository whose working tree this folder may be.
    async fn repository(&self, folder: &Path) -> Option<Repository> {
        let git_dir = self.git_dir(folder).await?;
        let git_dir = self.real_path(&git_dir).await.unwrap_or(git_dir);
        let common = match self.read_path(&git_dir.join("commondir"), b"").await {
            Some(path) => git_dir.join(path),
            None => git_dir.clone(),
        };
        Some(Repository { git_dir, common, tree: folder.into() })
    }

    /// Returns the git folder that git would try for a working tree.
    async fn git_dir(&self, folder: &Path) -> Option<PathBuf> {
        let dot_git = folder.join(".git");
        let kind = self.file_kind(&dot_git).await;
        if kind == Some(FileKind::Folder) {
            return Some(dot_git);
        }
        if kind == Some(FileKind::File) {
            return Some(folder.join(self.read_path(&dot_git, b"gitdir: ").await?));
        }
        // Recent versions of git refuse a bare repository that the command does not name; older ones use it.
        let is_bare = self.file_kind(&folder.join("HEAD")).await == Some(FileKind::File);
        is_bare.then(|| folder.to_path_buf())
    }

    /// Returns the linked worktrees that a git folder lists.
    async fn linked_worktrees(&self, common: &Path) -> Vec<Repository> {
        let entries = common.join("worktrees");
        let mut worktrees = Vec::new();
        for name in self.list_names(&entries).await.names.into_iter().take(MAX_WORKTREES) {
            let git_dir = entries.join(name);
            let Some(dot_git) = self.read_path(&git_dir.join("gitdir"), b"").await else {
                continue;
            };
            let Some(tree) = git_dir.join(dot_git).parent().map(Path::to_path_buf) else {
                continue;
            };
            worktrees.push(Repository { git_dir, common: common.to_path_buf(), tree });
        }
        worktrees
    }

    /// Reads the path in one of git's files, after `prefix`. Like git, takes the bytes as they are.
    async fn read_path(&self, file: &Path, prefix: &[u8]) -> Option<PathBuf> {
        let bytes = self.read_bytes(file, MAX_CONFIG).await?;
        let path = bytes.strip_prefix(prefix)?;
        let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
        Some(OsStr::from_bytes(&path[..=end]).into())
    }

    /// Whether git's search upwards certainly ends here, because the repository is complete.
    async fn is_complete(&self, git_dir: &Path, common: &Path) -> bool {
        let head = self.read_text(&git_dir.join("HEAD")).await.unwrap_or_default();
        let hash = head.strip_suffix('\n').unwrap_or(&head);
        let names_commit =
            matches!(hash.len(), 40 | 64) && hash.bytes().all(|c| c.is_ascii_hexdigit());
        (head.starts_with("ref: refs/") || names_commit)
            && self.file_kind(&common.join("objects")).await == Some(FileKind::Folder)
            && self.file_kind(&common.join("refs")).await == Some(FileKind::Folder)
    }

    /// Checks the settings and hooks of one repository. Returns its settings.
    async fn check_repository(
        &self,
        repository: &Repository,
        findings: &mut Vec<String>,
    ) -> Vec<GitSetting> {
        let mut settings = self.check_config(&repository.common.join("config"), findings).await;
        settings
            .extend(self.check_config(&repository.git_dir.join("config.worktree"), findings).await);
        // `git submodule` takes addresses from this file.
        if self.kind == GitCommandKind::Remote {
            self.check_config(&repository.tree.join(".gitmodules"), findings).await;
        }
        for setting in settings.iter().filter(|setting| setting.key == "core.worktree") {
            // Even a read-only command reads files of the other working tree.
            if !self.is_inside(&repository.git_dir.join(&setting.value)).await {
                let display_path = self.display_path(&repository.common.join("config")).await;
                findings.push(format!("{display_path}: {}", show_setting(setting)));
            }
        }
        self.check_hooks(&repository.common.join("hooks"), findings).await;
        settings
    }

    /// Whether a path is inside the workspace.
    async fn is_inside(&self, path: &Path) -> bool {
        let resolved = files::look_up(self.session, path).await;
        resolved.is_ok_and(|path| path.outside_part().is_none())
    }

    /// Reports settings that make git run programs. Returns all settings of the file.
    async fn check_config(&self, path: &Path, findings: &mut Vec<String>) -> Vec<GitSetting> {
        if self.file_kind(path).await != Some(FileKind::File) {
            return Vec::new();
        }
        let settings = self.read_text(path).await.and_then(|text| git_config::parse(&text));
        let Some(settings) = settings else {
            self.report_unchecked(path, findings).await;
            return Vec::new();
        };
        let display_path = self.display_path(path).await;
        // In a partial clone even a read-only command fetches missing objects.
        let fetches = settings.iter().any(git_programs::is_partial_clone);
        let kind = if fetches { GitCommandKind::Remote } else { self.kind };
        for setting in &settings {
            if git_programs::kind_for_setting(setting).is_some_and(|needed| needed <= kind) {
                findings.push(format!("{display_path}: {}", show_setting(setting)));
            }
        }
        settings
    }

    /// Reports hooks that the command would run.
    async fn check_hooks(&self, folder: &Path, findings: &mut Vec<String>) {
        let FolderNames { names, is_partial } = self.list_names(folder).await;
        for name in names {
            let needed = name.to_str().and_then(git_programs::kind_for_hook);
            if needed.is_some_and(|needed| needed <= self.kind) {
                findings.push(self.display_path(&folder.join(name)).await);
            }
        }
        if is_partial {
            self.report_unchecked(folder, findings).await;
        }
    }

    /// Reports a file or folder that cannot be checked.
    async fn report_unchecked(&self, path: &Path, findings: &mut Vec<String>) {
        findings.push(format!(
            "{}: cannot determine what git would run",
            self.display_path(path).await
        ));
    }

    /// Returns a path with every link followed; `None` if it does not exist.
    async fn real_path(&self, path: &Path) -> Option<PathBuf> {
        let path = files::look_up(self.session, path).await.ok()?;
        path.kind().map(|_| path.real())
    }

    /// Returns the kind of file at a path; `None` if nothing exists there.
    async fn file_kind(&self, path: &Path) -> Option<FileKind> {
        files::look_up(self.session, path).await.ok()?.kind()
    }

    /// Returns a path as displayed: relative to the root if inside it.
    async fn display_path(&self, path: &Path) -> String {
        match files::look_up(self.session, path).await {
            Ok(path) => path.display().to_owned(),
            Err(_) => path.display().to_string(),
        }
    }

    /// Reads a text file; `None` if it is not UTF-8, since git would interpret it differently.
    async fn read_text(&self, path: &Path) -> Option<String> {
        String::from_utf8(self.read_bytes(path, MAX_CONFIG).await?.into()).ok()
    }

    /// Reads a regular file; `None` if it cannot be read or is larger than `max_bytes`.
    async fn read_bytes(&self, path: &Path, max_bytes: u64) -> Option<Bytes> {
        let path = files::look_up(self.session, path).await.ok()?;
        if path.kind() != Some(FileKind::File) {
            return None;
        }
        Some(path.machine.read(&path.place, max_bytes).await.ok()?.bytes)
    }

    async fn list_names(&self, folder: &Path) -> FolderNames {
        let Ok(folder) = files::look_up(self.session, folder).await else {
            return FolderNames::default();
        };
        if folder.kind() != Some(FileKind::Folder) {
            return FolderNames::default();
        }
        let Ok(listing) = folder.machine.list(&folder.place, MAX_NAMES).await else {
            return FolderNames { is_partial: true, ..FolderNames::default() };
        };
        let mut names: Vec<_> = listing.entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        FolderNames { names, is_partial: listing.left_out > 0 }
    }
}

/// The names in a folder.
#[derive(Debug, Default)]
struct FolderNames {
    names: Vec<OsString>,
    /// Whether some names are missing: there are too many, or the folder cannot be read.
    is_partial: bool,
}

/// Returns a setting as one line, without its value if that may contain a password.
fn show_setting(setting: &GitSetting) -> String {
    if setting.key.starts_with("credential.") {
        return setting.key.clone();
    }
    let value: String = setting
        .value
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_VALUE_CHARS)
        .collect();
    format!("{} = {value}", setting.key)
}
