//! Repositories inside a repository: git looks into them when it looks at the one around them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use helve_text::git_config::GitSetting;
use helve_text::git_index::{self, IndexFolders};

use super::{Look, Names, Repository, names};

/// How many repositories inside another are looked at.
const MOST_MODULES: usize = 64;
/// How many folders are looked at for one.
const MOST_FOLDERS: usize = 1_000;
/// What an index of half a million files takes.
const MOST_INDEX: u64 = 64 << 20;

impl Look<'_> {
    /// Looking at a repository looks into its submodules, and theirs.
    pub(super) async fn read_with_modules(&self, repository: &Repository, named: &mut Vec<String>) {
        let mut waiting = vec![repository.clone()];
        let mut seen: Vec<Repository> = Vec::new();
        while let Some(repository) = waiting.pop() {
            if seen.contains(&repository) {
                continue;
            }
            if seen.len() > MOST_MODULES {
                return self.untold(&repository.own, named).await;
            }
            let settings = self.read_repository(&repository, named).await;
            waiting.extend(self.modules(&repository, named).await);
            waiting.extend(self.in_tree(&repository, &settings, named).await);
            seen.push(repository);
        }
    }

    /// Repositories that are kept inside this one. Their names may have slashes.
    async fn modules(&self, repository: &Repository, named: &mut Vec<String>) -> Vec<Repository> {
        let mut found = Vec::new();
        let mut folders = vec![repository.common.join("modules")];
        let mut looked = 0;
        while let Some(folder) = folders.pop() {
            let Names { names, is_partial } = self.names(&folder).await;
            looked += names.len();
            if is_partial || looked > MOST_MODULES {
                self.untold(&folder, named).await;
                break;
            }
            for name in names {
                let module = folder.join(name);
                if self.kind(&module.join("HEAD")).await.is_some() {
                    let (own, common) = (module.clone(), module.clone());
                    found.push(Repository { own, common, tree: module });
                } else {
                    folders.push(module);
                }
            }
        }
        found
    }

    /// Those in the working tree that the index names.
    async fn in_tree(
        &self,
        repository: &Repository,
        settings: &[GitSetting],
        named: &mut Vec<String>,
    ) -> Vec<Repository> {
        let index = repository.own.join("index");
        if self.kind(&index).await.is_none() {
            return Vec::new();
        }
        let elsewhere = settings.iter().filter(|it| it.key == "core.worktree");
        let elsewhere = elsewhere.map(|it| repository.own.join(&it.value));
        let trees: Vec<PathBuf> = elsewhere.chain([repository.tree.clone()]).collect();
        let most = MOST_FOLDERS / trees.len();
        let listed = self.listed(repository, &index, settings).await;
        let few = listed.filter(|it| it.submodules.len() + it.collapsed.len() <= most);
        let Some(IndexFolders { submodules: linked, collapsed: folded, .. }) = few else {
            self.untold(&index, named).await;
            return Vec::new();
        };
        let mut found = Vec::new();
        for tree in &trees {
            for path in &linked {
                found.extend(self.repository(&tree.join(OsStr::from_bytes(path))).await);
            }
            // What is in one of these is not listed, and counts again where the folder is there.
            for path in &folded {
                let folder = tree.join(OsStr::from_bytes(path));
                if self.kind(&folder).await.is_some() {
                    self.untold(&folder, named).await;
                }
            }
        }
        found
    }

    /// The folders of an index, and of the one that it is based on.
    async fn listed(
        &self,
        repository: &Repository,
        index: &Path,
        settings: &[GitSetting],
    ) -> Option<IndexFolders> {
        let naming = names::naming(settings);
        let mut all = git_index::read_folders(&self.bytes(index, MOST_INDEX).await?, naming)?;
        if let Some(shared) = all.shared_index.take() {
            let bytes = self.bytes(&repository.own.join(shared), MOST_INDEX).await?;
            let base = git_index::read_folders(&bytes, naming)?;
            all.submodules.extend(base.submodules);
            all.collapsed.extend(base.collapsed);
        }
        Some(all)
    }
}
