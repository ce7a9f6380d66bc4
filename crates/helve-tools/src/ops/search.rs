//! Searches file contents (`grep`) and file names (`glob`).

use std::path::Path;
use std::time::Duration;

use helve_core::machine::{
    BadPattern, CaseMode, FileTree, FindOrder, FindRequest, FoundFile, IgnoredMode, MatchedFile,
    Multiline, PatternSyntax, ResultShape, SearchCounts, SearchError, SearchRequest,
};
use helve_core::{Ask, FileKind, Resolved, ToolContext, ToolError, paths};

/// A search of file contents.
pub(crate) struct GrepRequest<'a> {
    pub(crate) pattern: &'a str,
    /// A file or directory; the workspace root if `None` or empty.
    pub(crate) path: Option<&'a str>,
    /// Globs of the files to search. All files are searched if the list is empty.
    pub(crate) include: Vec<String>,
    pub(crate) syntax: PatternSyntax,
    pub(crate) case: CaseMode,
    pub(crate) multiline: Multiline,
    pub(crate) ignored: IgnoredFiles,
    pub(crate) shape: ResultShape,
}

/// A search of file names.
pub(crate) struct GlobRequest<'a> {
    pub(crate) pattern: &'a str,
    /// A directory; the workspace root if `None` or empty.
    pub(crate) path: Option<&'a str>,
    pub(crate) ignored: IgnoredFiles,
    /// Maximum number of files returned.
    pub(crate) max: usize,
}

/// Whether to search ignored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IgnoredFiles {
    Skip,
    Include,
}

/// Files with matches, newest first.
pub(crate) struct Matches {
    pub(crate) hits: Vec<MatchedFile>,
    pub(crate) searched: SearchSummary,
}

/// Files with matching names, newest first.
pub(crate) struct FoundFiles {
    pub(crate) files: Vec<FoundFile>,
    pub(crate) searched: SearchSummary,
}

/// Where a search looked and what it counted.
pub(crate) struct SearchSummary {
    pub(crate) path: Resolved,
    pub(crate) counts: SearchCounts,
    pub(crate) timeout: Duration,
}

impl SearchSummary {
    /// Returns the absolute path of a file below the searched folder, escaped to one line.
    pub(crate) fn absolute(&self, below: &Path) -> String {
        let real = self.path.real();
        let path = if below.as_os_str().is_empty() { real } else { real.join(below) };
        paths::display(&path).into_owned()
    }
}

/// Why a search has no result.
#[derive(Debug)]
pub(crate) enum SearchFailure {
    /// An error of the context, already worded in the session's dialect.
    Context(ToolError),
    NotAFolder {
        display_path: String,
    },
    Pattern {
        pattern: String,
        error: BadPattern,
    },
    Glob {
        glob: String,
        why: String,
    },
}

impl From<ToolError> for SearchFailure {
    fn from(error: ToolError) -> Self {
        SearchFailure::Context(error)
    }
}

/// Searches the contents of files.
pub(crate) async fn grep(
    ctx: &ToolContext,
    request: GrepRequest<'_>,
) -> Result<Matches, SearchFailure> {
    let GrepRequest { pattern, include, ignored, .. } = request;
    let path = resolve(ctx, request.path).await?;
    let grant = ctx.ask(Ask::for_request(path.search_request("grep", pattern))).await?;
    let tree = tree(&path, include, ignored);
    let timeout = tree.timeout;
    let search = SearchRequest {
        tree,
        pattern: pattern.into(),
        syntax: request.syntax,
        case: request.case,
        multiline: request.multiline,
        shape: request.shape,
        readable: None,
    };
    let searching = ctx.files.search(&grant, &path, search);
    let Some(answer) = ctx.cancel.run_until_cancelled(searching).await else {
        return Err(ctx.words().aborted().into());
    };
    let (hits, counts) = answer.map_err(|error| failure(ctx, &path, pattern, error))?;
    Ok(Matches { hits, searched: SearchSummary { path, counts, timeout } })
}

/// Finds files by name.
pub(crate) async fn glob(
    ctx: &ToolContext,
    request: GlobRequest<'_>,
) -> Result<FoundFiles, SearchFailure> {
    let GlobRequest { pattern, path, ignored, max } = request;
    let path = resolve(ctx, path).await?;
    let grant = ctx.ask(Ask::for_request(path.search_request("glob", pattern))).await?;
    if path.kind().is_some_and(|kind| kind != FileKind::Folder) {
        return Err(SearchFailure::NotAFolder { display_path: path.display().into() });
    }
    let tree = tree(&path, vec![pattern.into()], ignored);
    let timeout = tree.timeout;
    let finding = ctx.files.find(
        &grant,
        &path,
        FindRequest { tree, order: FindOrder::Newest, max_results: max },
    );
    let Some(answer) = ctx.cancel.run_until_cancelled(finding).await else {
        return Err(ctx.words().aborted().into());
    };
    let (files, counts) = answer.map_err(|error| failure(ctx, &path, pattern, error))?;
    Ok(FoundFiles { files, searched: SearchSummary { path, counts, timeout } })
}

/// Resolves the path of a search, by default the workspace root.
pub(super) async fn resolve(ctx: &ToolContext, path: Option<&str>) -> Result<Resolved, ToolError> {
    ctx.files.resolve(path.filter(|path| !path.is_empty()).unwrap_or(".")).await
}

fn tree(path: &Resolved, globs: Vec<String>, ignored: IgnoredFiles) -> FileTree {
    let tree = path.tree();
    let ignored = match ignored {
        IgnoredFiles::Skip => tree.ignored,
        IgnoredFiles::Include => IgnoredMode::Include,
    };
    FileTree { globs, ignored, ..tree }
}

pub(super) fn failure(
    ctx: &ToolContext,
    path: &Resolved,
    pattern: &str,
    error: SearchError,
) -> SearchFailure {
    match error {
        SearchError::Pattern(error) => SearchFailure::Pattern { pattern: pattern.into(), error },
        SearchError::Glob { glob, why } => SearchFailure::Glob { glob, why },
        SearchError::NotGranted => ctx.words().not_granted().into(),
        SearchError::Machine(error) => ctx.words().machine_error(path.display(), &error).into(),
    }
}
