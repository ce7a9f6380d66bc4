//! Nested repositories: git reads the settings of submodules when it reads those of the outer repository.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use helve_text::git_config::GitSetting;
use helve_text::git_index::{self, IndexFolders};

use super::{FolderNames, Repository, RepositoryScan, names};

/// Maximum number of nested repositories that are checked.
const MAX_MODULES: usize = 64;
/// Maximum number of folders that are checked for nested repositories.
const MAX_FOLDERS: usize = 1_000;
/// Maximum size of a git index, enough for half a million files.
const MAX_INDEX: u64 = 64 << 20;

impl RepositoryScan<'_> {
    /// Checks a repository, its submodules, and theirs.
    pub(super) async fn read_with_modules(
        &self,
        repository: &Repository,
        findings: &mut Vec<String>,
    ) {
        let mut waiting = vec![repository.clone()];
        let mut seen: Vec<Repository> = Vec::new();
        while let Some(repository) = waiting.pop() {
            if seen.contains(&repository) {
                continue;
            }
            if seen.len() > MAX_MODULES {
                return self.report_unknown(&repository.git_dir, findings).await;
            }
            let settings = self.read_repository(&repository, findings).await;
            waiting.extend(self.repositories_in_git_dir(&repository, findings).await);
            waiting.extend(self.repositories_in_worktree(&repository, &settings, findings).await);
            seen.push(repository);
        }
    }

    /// Finds repositories inside the git folder. Their names may contain slashes.
    async fn repositories_in_git_dir(
        &self,
        repository: &Repository,
        findings: &mut Vec<String>,
    ) -> Vec<Repository> {
        let mut found = Vec::new();
        let mut folders = vec![repository.common.join("modules")];
        let mut looked = 0;
        while let Some(folder) = folders.pop() {
            let FolderNames { names, is_partial } = self.names(&folder).await;
            looked += names.len();
            if is_partial || looked > MAX_MODULES {
                self.report_unknown(&folder, findings).await;
                break;
            }
            for name in names {
                let module = folder.join(name);
                if self.kind(&module.join("HEAD")).await.is_some() {
                    let (git_dir, common) = (module.clone(), module.clone());
                    found.push(Repository { git_dir, common, tree: module });
                } else {
                    folders.push(module);
                }
            }
        }
        found
    }

    /// Finds repositories in the working tree that the index lists.
    async fn repositories_in_worktree(
        &self,
        repository: &Repository,
        settings: &[GitSetting],
        findings: &mut Vec<String>,
    ) -> Vec<Repository> {
        let index = repository.git_dir.join("index");
        if self.kind(&index).await.is_none() {
            return Vec::new();
        }
        let elsewhere = settings.iter().filter(|it| it.key == "core.worktree");
        let elsewhere = elsewhere.map(|it| repository.git_dir.join(&it.value));
        let trees: Vec<PathBuf> = elsewhere.chain([repository.tree.clone()]).collect();
        let most = MAX_FOLDERS / trees.len();
        let index_folders = self.index_folders(repository, &index, settings).await;
        let within_limit =
            index_folders.filter(|it| it.submodules.len() + it.collapsed.len() <= most);
        let Some(IndexFolders { submodules, collapsed, .. }) = within_limit else {
            self.report_unknown(&index, findings).await;
            return Vec::new();
        };
        let mut found = Vec::new();
        for tree in &trees {
            for path in &submodules {
                found.extend(self.repository(&tree.join(OsStr::from_bytes(path))).await);
            }
            // The index does not list the contents of a collapsed (sparse) folder, which matter if the folder exists.
            for path in &collapsed {
                let folder = tree.join(OsStr::from_bytes(path));
                if self.kind(&folder).await.is_some() {
                    self.report_unknown(&folder, findings).await;
                }
            }
        }
        found
    }

    /// Reads the folders of an index, and of the shared index that it is based on.
    async fn index_folders(
        &self,
        repository: &Repository,
        index: &Path,
        settings: &[GitSetting],
    ) -> Option<IndexFolders> {
        let naming = names::naming(settings);
        let mut all = git_index::read_folders(&self.bytes(index, MAX_INDEX).await?, naming)?;
        if let Some(shared) = all.shared_index.take() {
            let bytes = self.bytes(&repository.git_dir.join(shared), MAX_INDEX).await?;
            let base = git_index::read_folders(&bytes, naming)?;
            all.submodules.extend(base.submodules);
            all.collapsed.extend(base.collapsed);
        }
        Some(all)
    }
}
