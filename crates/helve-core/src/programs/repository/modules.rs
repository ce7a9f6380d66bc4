//! Finds submodules. Git also reads their settings when it works in the outer repository, so they are checked too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use helve_text::git_config::GitSetting;
use helve_text::git_index::{self, GitIndex};

use super::{FolderNames, Repository, RepositoryScan, git_programs};

/// Maximum number of nested repositories that are checked.
const MAX_MODULES: usize = 64;
/// Maximum number of folders that are checked for nested repositories.
const MAX_FOLDERS: usize = 1_000;
/// Maximum size of a git index, enough for half a million files.
const MAX_INDEX: u64 = 64 << 20;

impl RepositoryScan<'_> {
    /// Checks a repository and its submodules, recursively.
    pub(super) async fn check_with_submodules(
        &self,
        repository: &Repository,
        findings: &mut Vec<String>,
    ) {
        let mut pending = vec![repository.clone()];
        let mut checked: Vec<Repository> = Vec::new();
        while let Some(repository) = pending.pop() {
            if checked.contains(&repository) {
                continue;
            }
            if checked.len() > MAX_MODULES {
                return self.report_unchecked(&repository.git_dir, findings).await;
            }
            let settings = self.check_repository(&repository, findings).await;
            pending.extend(self.repositories_in_git_dir(&repository, findings).await);
            pending.extend(self.repositories_in_worktree(&repository, &settings, findings).await);
            checked.push(repository);
        }
    }

    /// Finds the repositories of submodules inside the git folder. Names of submodules may contain slashes.
    async fn repositories_in_git_dir(
        &self,
        repository: &Repository,
        findings: &mut Vec<String>,
    ) -> Vec<Repository> {
        let mut repositories = Vec::new();
        let mut folders = vec![repository.common.join("modules")];
        let mut checked = 0;
        while let Some(folder) = folders.pop() {
            let FolderNames { names, is_partial } = self.list_names(&folder).await;
            checked += names.len();
            if is_partial || checked > MAX_MODULES {
                self.report_unchecked(&folder, findings).await;
                break;
            }
            for name in names {
                let module = folder.join(name);
                if self.file_kind(&module.join("HEAD")).await.is_some() {
                    let (git_dir, common) = (module.clone(), module.clone());
                    repositories.push(Repository { git_dir, common, tree: module });
                } else {
                    folders.push(module);
                }
            }
        }
        repositories
    }

    /// Finds, in the working tree, the submodules that the index lists.
    async fn repositories_in_worktree(
        &self,
        repository: &Repository,
        settings: &[GitSetting],
        findings: &mut Vec<String>,
    ) -> Vec<Repository> {
        let index = repository.git_dir.join("index");
        if self.file_kind(&index).await.is_none() {
            return Vec::new();
        }
        let configured = settings.iter().filter(|setting| setting.key == "core.worktree");
        let configured = configured.map(|setting| repository.git_dir.join(&setting.value));
        let trees: Vec<PathBuf> = configured.chain([repository.tree.clone()]).collect();
        let max_per_tree = MAX_FOLDERS / trees.len();
        let parsed_index = self.read_index(repository, &index, settings).await;
        let within_limit =
            parsed_index.filter(|it| it.submodules.len() + it.collapsed.len() <= max_per_tree);
        let Some(GitIndex { submodules, collapsed, .. }) = within_limit else {
            self.report_unchecked(&index, findings).await;
            return Vec::new();
        };
        let mut repositories = Vec::new();
        for tree in &trees {
            for path in &submodules {
                repositories.extend(self.repository(&tree.join(OsStr::from_bytes(path))).await);
            }
            // The index does not list what is in a collapsed (sparse) folder. If the folder exists, it may contain
            // submodules.
            for path in &collapsed {
                let folder = tree.join(OsStr::from_bytes(path));
                if self.file_kind(&folder).await.is_some() {
                    self.report_unchecked(&folder, findings).await;
                }
            }
        }
        repositories
    }

    /// Reads an index, and the shared index that it may be based on.
    pub(super) async fn read_index(
        &self,
        repository: &Repository,
        index: &Path,
        settings: &[GitSetting],
    ) -> Option<GitIndex> {
        let algorithm = git_programs::object_hash_algorithm(settings);
        let mut all = git_index::read(&self.read_bytes(index, MAX_INDEX).await?, algorithm)?;
        if let Some(shared) = all.shared_index.take() {
            let bytes = self.read_bytes(&repository.git_dir.join(shared), MAX_INDEX).await?;
            let base = git_index::read(&bytes, algorithm)?;
            all.files.extend(base.files);
            all.submodules.extend(base.submodules);
            all.collapsed.extend(base.collapsed);
        }
        Some(all)
    }
}
