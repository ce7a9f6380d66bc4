//! Lists a directory as a tree, level by level.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use helve_core::machine::{FileCount, FileTree, FindOrder, FindRequest, FoundFile};
use helve_core::{Ask, FileKind, MachineError, ToolContext, paths};

use super::search::{SearchFailure, SearchSummary, failure, resolve};

/// A directory to list.
pub(crate) struct ListRequest<'a> {
    /// The directory to list. The workspace root if `None` or empty.
    pub(crate) path: Option<&'a str>,
    /// Globs of names to leave out, besides the built-in ones.
    pub(crate) ignore: &'a [String],
    /// Maximum number of entries returned. Upper levels come first.
    pub(crate) max: usize,
}

/// The entries of a directory tree in the order they are printed.
pub(crate) struct TreeListing {
    pub(crate) rows: Vec<TreeRow>,
    pub(crate) count: usize,
    /// Some entries below a listed directory, or below the root, are not in `rows`.
    pub(crate) is_partial: bool,
    pub(crate) searched: SearchSummary,
}

/// One line of a tree. Entries directly below the root have depth 0.
pub(crate) enum TreeRow {
    File {
        depth: usize,
        name: String,
    },
    /// `unlisted` counts the content of a directory of which nothing is listed.
    Folder {
        depth: usize,
        name: String,
        unlisted: FileCount,
    },
    /// The rest of a directory of which only some entries are listed.
    Rest {
        depth: usize,
        amount: FileCount,
    },
}

/// Names of generated or unimportant files and directories.
const IGNORED: [&str; 23] = [
    "node_modules/",
    "__pycache__/",
    ".git/",
    "dist/",
    "build/",
    "target/",
    "vendor/",
    "bin/",
    "obj/",
    ".idea/",
    ".vscode/",
    ".zig-cache/",
    "zig-out",
    ".coverage",
    "coverage/",
    "tmp/",
    "temp/",
    ".cache/",
    "cache/",
    "logs/",
    ".venv/",
    "venv/",
    "env/",
];

/// Lists the directory.
pub(crate) async fn list(
    ctx: &ToolContext,
    request: ListRequest<'_>,
) -> Result<TreeListing, SearchFailure> {
    let path = resolve(ctx, request.path).await?;
    let grant = ctx.ask(Ask::for_request(path.search_request("list", path.display()))).await?;
    if path.kind().is_some_and(|kind| kind != FileKind::Folder) {
        return Err(ctx.words().machine_error(path.display(), &MachineError::NotAFolder).into());
    }
    let ignore = IGNORED.into_iter().chain(request.ignore.iter().map(String::as_str));
    let globs = ignore.map(|glob| format!("!{}", glob.trim_start_matches('!'))).collect();
    let tree = FileTree { globs, ..path.tree() };
    let timeout = tree.timeout;
    let find = FindRequest { tree, order: FindOrder::BreadthFirst, max_results: request.max };
    let finding = ctx.files.find(&grant, &path, find);
    let Some(answer) = ctx.cancel.run_until_cancelled(finding).await else {
        return Err(ctx.words().aborted().into());
    };
    let (entries, counts) = answer.map_err(|error| failure(ctx, &path, "", error))?;
    Ok(TreeListing {
        rows: rows(&entries, counts.not_listed),
        count: entries.len(),
        is_partial: entries.iter().any(|entry| !is_empty(entry.not_listed))
            || !is_empty(counts.not_listed),
        searched: SearchSummary { path, counts, timeout },
    })
}

/// Orders entries that come level by level so that each directory is followed by its content.
fn rows(entries: &[FoundFile], unlisted_at_root: FileCount) -> Vec<TreeRow> {
    let mut children: BTreeMap<PathBuf, Vec<&FoundFile>> = BTreeMap::new();
    for entry in entries {
        let parent = entry.path.parent().unwrap_or(Path::new(""));
        children.entry(parent.into()).or_default().push(entry);
    }
    let mut enter = |folder: &Path| children.remove(folder).unwrap_or_default().into_iter();
    // The directories around the current row, innermost last, each with the count of its unlisted entries.
    let mut ancestors = vec![(enter(Path::new("")), unlisted_at_root)];
    let mut rows = Vec::new();
    while let Some((entries, unlisted)) = ancestors.last_mut() {
        let Some(entry) = entries.next() else {
            let amount = *unlisted;
            ancestors.pop();
            if !is_empty(amount) {
                rows.push(TreeRow::Rest { depth: ancestors.len(), amount });
            }
            continue;
        };
        let depth = ancestors.len() - 1;
        let name = paths::display(entry.path.file_name().unwrap_or_default().as_ref()).into_owned();
        if entry.kind != FileKind::Folder {
            rows.push(TreeRow::File { depth, name });
            continue;
        }
        let content = enter(&entry.path);
        let (unlisted, rest) = match content.len() {
            0 => (entry.not_listed, FileCount::default()),
            _ => (FileCount::default(), entry.not_listed),
        };
        rows.push(TreeRow::Folder { depth, name, unlisted });
        ancestors.push((content, rest));
    }
    rows
}

pub(crate) fn is_empty(amount: FileCount) -> bool {
    amount == FileCount::default()
}
