//! The files that scripts are judged against and run in: a workspace with symbolic links that lead out of it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use helve_policy::Part;
use helve_policy::shell::{DirEntry, FileFacts, PathFacts, ProgramPlace, TreeFiles, TreeQuery};
use helve_text::shell::{ShellContext, ShellLanguage};

#[path = "../../helve-policy/src/shell/tests/tree.rs"]
mod tree;

use tree::{Node, Tree};

pub(crate) const WORKSPACE: &str = tree::ROOT;

/// Shell commands that create a git history: commits, a branch, a tag, a stash, a staged and an unstaged change.
const HISTORY: &str =
    "git init -q -b main . && git config user.name n && git config user.email e@x &&
    git add a.txt src README.md && git commit -q -m first && git tag v1 && git branch side &&
    echo more >> b.txt && git add b.txt && git commit -q -m 'second: hello' &&
    echo stashed >> a.txt && git stash -q && echo changed >> README.md && rm -rf .git/hooks";

/// Creates the sample files in a directory that becomes the root directory of scripts.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    for (path, node) in &Tree::sample().nodes {
        let file = folder.join(path.trim_start_matches('/'));
        let parent = file.parent().unwrap_or(folder);
        match node {
            Node::File(text) if !text.is_empty() => {
                fs::create_dir_all(parent)?;
                fs::write(&file, text)?;
            }
            Node::Link(target) => {
                fs::create_dir_all(parent)?;
                std::os::unix::fs::symlink(target, &file)?;
            }
            // Folders are created with their files. Empty files stand for git's own files, which are created below, and
            // for files that exist only for the analysis, not on disk.
            Node::File(_) | Node::Folder => {}
        }
    }
    // Many scripts use the git history, so git must be installed.
    let status = Command::new("sh")
        .args(["-c", HISTORY])
        .current_dir(folder.join("w/app"))
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("creating the git history failed")) }
}

/// Returns the working directory, language and variables with which scripts start.
pub(crate) fn context() -> ShellContext {
    ShellContext {
        cwd: WORKSPACE.into(),
        home: Some("/h".into()),
        language: ShellLanguage::Bash,
        exported: ["PATH", "HOME", "EDITOR", "LANG", "TERM", "SHELL", "PWD", "PAGER"]
            .map(String::from)
            .into(),
        ..ShellContext::default()
    }
}

/// The sample files in memory, for judging.
pub(crate) struct SampleFiles(Tree);

impl SampleFiles {
    pub(crate) fn new() -> Self {
        Self(Tree::sample())
    }

    /// Resolves all symbolic links; `None` if they form a loop.
    pub(crate) fn real(&self, path: &str) -> Option<String> {
        self.0.real(path)
    }

    pub(crate) fn has_folder(&self, path: &str) -> bool {
        matches!(self.0.nodes.get(path), Some(Node::Folder))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.nodes.contains_key(path)
    }
}

impl FileFacts for SampleFiles {
    fn resolve(&self, path: &str) -> Option<PathFacts> {
        self.0.resolve(path)
    }

    fn list(&self, folder: &str) -> Option<Vec<DirEntry>> {
        self.0.list(folder)
    }

    fn tree(&self, query: &TreeQuery) -> Option<TreeFiles> {
        self.0.tree(query)
    }

    fn program(&self, name: &str) -> Option<ProgramPlace> {
        self.0.program(name)
    }
}
