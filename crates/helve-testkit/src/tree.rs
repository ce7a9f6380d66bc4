//! Finds and searches files in memory, without the parallelism of the real machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use helve_core::Flow;
use helve_core::machine::{
    BadPattern, CaseMode, FileCount, FileKind, FileTree, FindFlow, FindOrder, FindRequest,
    FoundFile, HiddenFiles, IgnoredMatches, IgnoredMode, LineRole, MachineError, MatchedFile,
    MatchedLine, Multiline, PatternSyntax, RestrictedFiles, RestrictedRequest, ResultShape,
    SearchCounts, SearchError, SearchFlow, SearchRequest, SkippedFiles,
};
use helve_text::{lines, near};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};

/// A file, link or special file. Directories exist implicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryNode {
    File(Bytes),
    Link(PathBuf),
    Special(FileKind),
    /// A file that the system refuses to open.
    Unreadable,
}

type Nodes = BTreeMap<PathBuf, MemoryNode>;

pub(crate) fn find(nodes: &Nodes, request: &FindRequest) -> FindFlow {
    into_flow(find_files(nodes, request))
}

pub(crate) fn search(nodes: &Nodes, request: &SearchRequest) -> SearchFlow {
    into_flow(search_files(nodes, request))
}

/// Finds the files and links that the rules restrict, below a folder. Ignore rules and globs are not applied, so the
/// result may contain files that a command that honours them would skip.
pub(crate) fn find_restricted(nodes: &Nodes, request: &RestrictedRequest) -> RestrictedFiles {
    let at = request.tree.at.path();
    let (mut paths, mut links, mut folders) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (path, node) in nodes.iter().filter(|(path, _)| path.starts_with(&at)) {
        let Ok(relative) = path.strip_prefix(&at) else { continue };
        let is_hidden = relative.iter().any(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden && request.tree.hidden == HiddenFiles::Skip {
            continue;
        }
        if let Some(action) = request.rules.file_restriction(relative) {
            paths.push((std::cmp::Reverse(action), relative.to_path_buf()));
        }
        if matches!(node, MemoryNode::Link(_)) && request.rules.may_follow_link(relative) {
            links.push(relative.to_path_buf());
        }
        let parents = relative.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
        folders.extend(parents.map(Path::to_path_buf));
    }
    for folder in folders {
        if let Some(action) = request.rules.folder_restriction(&folder) {
            paths.push((std::cmp::Reverse(action), folder));
        }
    }
    paths.sort();
    paths.truncate(request.max_results);
    let has_more_links = links.len() > request.max_results;
    links.truncate(request.max_results);
    let paths = paths.into_iter().map(|(_, path)| path).collect();
    let judged = nodes.len();
    RestrictedFiles { paths, links, has_more_links, judged, ..RestrictedFiles::default() }
}

fn into_flow<T: Send + 'static>(
    answer: Result<(Vec<T>, SearchCounts), SearchError>,
) -> Flow<Vec<T>, Result<SearchCounts, SearchError>> {
    let (source, flow) = Flow::channel(1);
    // `send` may block, which a runtime thread must not.
    std::thread::spawn(move || match answer {
        Ok((items, counts)) => {
            source.send(items);
            source.finish(Ok(counts));
        }
        Err(err) => source.finish(Err(err)),
    });
    flow
}

/// The result of a walk: the matching files below a folder.
struct Walk {
    files: Vec<PathBuf>,
    /// Matching files that ignore rules exclude.
    ignored: Vec<PathBuf>,
    skipped: SkippedFiles,
}

fn walk(nodes: &Nodes, tree: &FileTree) -> Result<Walk, SearchError> {
    let at = tree.at.path();
    let mut walk =
        Walk { files: Vec::new(), ignored: Vec::new(), skipped: SkippedFiles::default() };
    match nodes.get(&at) {
        Some(MemoryNode::Special(kind)) => return Err(MachineError::NotAFile(*kind).into()),
        Some(MemoryNode::Link(_)) => return Err(MachineError::PathChanged.into()),
        Some(MemoryNode::File(_) | MemoryNode::Unreadable) => {
            walk.files.push(PathBuf::new());
            return Ok(walk);
        }
        None if !nodes.keys().any(|path| path.starts_with(&at)) => {
            return Err(MachineError::NotFound.into());
        }
        None => {}
    }
    let globs = globs(&at, &tree.globs)?;
    let rules = ignore_rules(nodes);
    let (mut ignored_folders, mut excluded_folders) = (BTreeSet::new(), BTreeSet::new());
    for (path, node) in nodes.iter().filter(|(path, _)| path.starts_with(&at)) {
        let Ok(relative) = path.strip_prefix(&at) else { continue };
        let is_git = relative.iter().any(|name| name == ".git");
        let is_dotfile = relative.iter().any(|name| name.to_string_lossy().starts_with('.'));
        let folders = || path.ancestors().skip(1).take_while(|folder| **folder != *at);
        if is_git || (is_dotfile && tree.hidden == HiddenFiles::Skip) {
            continue;
        }
        if let Some(folder) =
            folders().filter(|folder| globs.matched(folder, true).is_ignore()).last()
        {
            walk.skipped.excluded.folders += u64::from(excluded_folders.insert(folder));
            continue;
        }
        let ignores = |path: &Path, is_folder| {
            let results = rules.iter().rev().map(|rule| rule.matched(path, is_folder));
            results
                .into_iter()
                .find(|matched| !matched.is_none())
                .is_some_and(|matched| matched.is_ignore())
        };
        let folder = folders().filter(|folder| ignores(folder, true)).last();
        let is_ignored = folder.is_some() || ignores(path, false);
        let matches = match globs.num_whitelists() {
            0 => true,
            _ => globs.matched(path, false).is_whitelist(),
        } && !globs.matched(path, false).is_ignore();
        match node {
            MemoryNode::Link(_) | MemoryNode::Special(_) => walk.skipped.special += 1,
            MemoryNode::File(_) | MemoryNode::Unreadable
                if is_ignored && tree.ignored != IgnoredMode::Include =>
            {
                match folder {
                    None => walk.skipped.ignored.files += 1,
                    Some(folder) => {
                        let is_new = ignored_folders.insert(folder);
                        walk.skipped.ignored.folders += u64::from(is_new);
                    }
                }
                if matches {
                    walk.ignored.push(relative.into());
                }
            }
            MemoryNode::File(_) | MemoryNode::Unreadable if matches => {
                walk.files.push(relative.into())
            }
            MemoryNode::File(_) | MemoryNode::Unreadable => {}
        }
    }
    Ok(walk)
}

fn globs(at: &Path, globs: &[String]) -> Result<Override, SearchError> {
    let mut builder = OverrideBuilder::new(at);
    for glob in globs {
        let bad =
            |err: ignore::Error| SearchError::Glob { glob: glob.clone(), why: err.to_string() };
        builder.add(glob).map_err(bad)?;
    }
    builder.build().map_err(|err| SearchError::Glob { glob: globs.join(" "), why: err.to_string() })
}

/// Returns the rules of all `.gitignore` files, outermost first.
fn ignore_rules(nodes: &Nodes) -> Vec<Gitignore> {
    let mut rules = Vec::new();
    for (path, node) in nodes {
        let (MemoryNode::File(text), Some(folder)) = (node, path.parent()) else { continue };
        if path.file_name().is_none_or(|name| name != ".gitignore") {
            continue;
        }
        let mut builder = GitignoreBuilder::new(folder);
        for line in String::from_utf8_lossy(text).lines() {
            builder.add_line(None, line).ok();
        }
        rules.extend(builder.build());
    }
    rules
}

fn find_files(
    nodes: &Nodes,
    request: &FindRequest,
) -> Result<(Vec<FoundFile>, SearchCounts), SearchError> {
    let Walk { files, ignored, skipped } = walk(nodes, &request.tree)?;
    let count = files.len() as u64;
    let mut counts = SearchCounts {
        matches: count,
        files: count,
        searched: count,
        skipped,
        ..SearchCounts::default()
    };
    if files.is_empty() && !ignored.is_empty() {
        let examples = ignored.iter().take(3).cloned().collect();
        let files = ignored.len() as u64;
        counts.ignored_matches =
            Some(IgnoredMatches { matches: files, files, examples, ..IgnoredMatches::default() });
    }
    let file = |path: &PathBuf| FoundFile {
        path: path.clone(),
        kind: FileKind::File,
        modified: Some(SystemTime::UNIX_EPOCH),
        not_listed: FileCount::default(),
    };
    let mut items: Vec<FoundFile> = match &request.order {
        FindOrder::Newest => files.iter().map(file).collect(),
        FindOrder::SimilarName(name) => {
            let names: Vec<String> = files.iter().map(|path| file_name(path)).collect();
            let near = near::nearest(name, names.iter().map(String::as_str), request.max_results);
            let mut similar: Vec<FoundFile> = Vec::new();
            for name in near {
                similar.extend(files.iter().filter(|path| file_name(path) == name).map(file));
            }
            similar
        }
        FindOrder::BreadthFirst => {
            let mut all: Vec<FoundFile> = files.iter().map(file).collect();
            all.extend(folders(&files).into_iter().map(|path| FoundFile {
                path,
                kind: FileKind::Folder,
                modified: None,
                not_listed: FileCount::default(),
            }));
            let is_file = |found: &FoundFile| found.kind == FileKind::File;
            all.sort_by_key(|found| {
                (found.path.iter().count(), is_file(found), found.path.clone())
            });
            let rest = all.split_off(request.max_results.min(all.len()));
            for left_out in rest {
                let contains = |folder: &&mut FoundFile| {
                    folder.kind == FileKind::Folder && left_out.path.starts_with(&folder.path)
                };
                let innermost =
                    all.iter_mut().filter(contains).max_by_key(|folder| folder.path.iter().count());
                let not_listed =
                    innermost.map_or(&mut counts.not_listed, |folder| &mut folder.not_listed);
                match is_file(&left_out) {
                    true => not_listed.files += 1,
                    false => not_listed.folders += 1,
                }
            }
            all
        }
    };
    items.truncate(request.max_results);
    Ok((items, counts))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn folders(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let parents = files.iter().flat_map(|file| file.ancestors().skip(1));
    parents.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_path_buf).collect()
}

fn search_files(
    nodes: &Nodes,
    request: &SearchRequest,
) -> Result<(Vec<MatchedFile>, SearchCounts), SearchError> {
    let matcher = matcher(request)?;
    let walk = walk(nodes, &request.tree)?;
    let mut counts = SearchCounts { skipped: walk.skipped, ..SearchCounts::default() };
    let hits = search_listed(nodes, request, &matcher, &walk.files, &mut counts);
    if hits.is_empty() && !walk.ignored.is_empty() {
        let mut ignored_counts = SearchCounts::default();
        let ignored_hits =
            search_listed(nodes, request, &matcher, &walk.ignored, &mut ignored_counts);
        let examples = ignored_hits.into_iter().take(3).map(|hit| hit.path).collect();
        let SearchCounts { matches, files, .. } = ignored_counts;
        counts.ignored_matches =
            Some(IgnoredMatches { matches, files, examples, ..IgnoredMatches::default() });
    }
    Ok((limit_hits(hits, request.shape), counts))
}

fn search_listed(
    nodes: &Nodes,
    request: &SearchRequest,
    matcher: &RegexMatcher,
    files: &[PathBuf],
    counts: &mut SearchCounts,
) -> Vec<MatchedFile> {
    let mut hits: Vec<MatchedFile> = Vec::new();
    for file in files {
        if request.readable.as_ref().is_some_and(|readable| !readable.allows(file)) {
            counts.skipped.not_permitted += 1;
            continue;
        }
        let at = request.tree.at.path();
        let path = if file.as_os_str().is_empty() { at } else { at.join(file) };
        match nodes.get(&path) {
            Some(MemoryNode::File(bytes)) if bytes.contains(&0) => counts.skipped.binary += 1,
            Some(MemoryNode::File(bytes)) => {
                counts.searched += 1;
                hits.extend(search_file(file, bytes, request, matcher));
            }
            Some(_) | None => counts.skipped.unreadable.files += 1,
        }
    }
    counts.matches = hits.iter().map(|hit| hit.matches).sum();
    counts.files = hits.len() as u64;
    hits
}

/// Limits the hits to what the shape asks for.
fn limit_hits(hits: Vec<MatchedFile>, shape: ResultShape) -> Vec<MatchedFile> {
    match shape {
        ResultShape::Names { max } | ResultShape::Counts { max } => {
            hits.into_iter().take(max).collect()
        }
        ResultShape::Lines { max, .. } => {
            let mut remaining = max as u64;
            let mut shown = Vec::new();
            for mut hit in hits {
                if remaining == 0 {
                    break;
                }
                let mut seen = 0;
                hit.lines.retain(|line| {
                    seen += u64::from(line.role == LineRole::Match);
                    seen <= remaining
                });
                remaining -= remaining.min(hit.matches);
                shown.push(hit);
            }
            shown
        }
    }
}

fn matcher(request: &SearchRequest) -> Result<RegexMatcher, SearchError> {
    let pattern = &request.pattern;
    let bad = |at, message: String| SearchError::Pattern(BadPattern { at, message });
    if request.syntax == PatternSyntax::Regex {
        regex_syntax::ast::parse::Parser::new().parse(pattern).map_err(|err| {
            let span = err.span();
            bad(span.start.offset..span.end.offset, err.kind().to_string())
        })?;
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).fixed_strings(request.syntax == PatternSyntax::Literal);
    builder.case_insensitive(request.case == CaseMode::Insensitive);
    match request.multiline {
        Multiline::Off => builder.line_terminator(Some(b'\n')),
        Multiline::On => builder.dot_matches_new_line(true),
    };
    builder.build(pattern).map_err(|err| bad(0..pattern.len(), err.to_string()))
}

fn search_file(
    path: &Path,
    bytes: &[u8],
    request: &SearchRequest,
    matcher: &RegexMatcher,
) -> Option<MatchedFile> {
    let text = String::from_utf8_lossy(bytes);
    let text_lines: Vec<&str> = text.lines().collect();
    let mut roles: BTreeMap<usize, (LineRole, std::ops::Range<usize>)> = BTreeMap::new();
    let mut matches = 0;
    let starts: Vec<usize> =
        text_lines.iter().map(|line| line.as_ptr() as usize - text.as_ptr() as usize).collect();
    let line_at =
        |offset: usize| starts.partition_point(|start| *start <= offset).saturating_sub(1);
    // Matching in memory cannot fail.
    matcher
        .find_iter(text.as_bytes(), |found| {
            let (first, last) =
                (line_at(found.start()), line_at(found.end().max(found.start() + 1) - 1));
            if text_lines.is_empty()
                || roles.get(&first).is_some_and(|(role, _)| *role != LineRole::Context)
            {
                return true;
            }
            matches += 1;
            roles.insert(
                first,
                (LineRole::Match, found.start() - starts[first]..found.end() - starts[first]),
            );
            for rest in first + 1..=last {
                roles.insert(rest, (LineRole::Continuation, 0..0));
            }
            true
        })
        .ok();
    if matches == 0 {
        return None;
    }
    let lines = match request.shape {
        ResultShape::Lines { context, cut, .. } => {
            let matched: Vec<usize> = roles.keys().copied().collect();
            for line in matched {
                let context_lines = line.saturating_sub(context.before)
                    ..(line + context.after + 1).min(text_lines.len());
                for near in context_lines {
                    roles.entry(near).or_insert((LineRole::Context, 0..0));
                }
            }
            let line = |(line, (role, found)): (&usize, &(LineRole, std::ops::Range<usize>))| {
                let text = text_lines[*line];
                let max_chars = if text.chars().count() > cut.max_chars {
                    cut.kept_chars
                } else {
                    cut.max_chars
                };
                let clipped = lines::clip_around(text, found.clone(), max_chars);
                MatchedLine {
                    number: *line as u64 + 1,
                    role: *role,
                    text: clipped.text.into(),
                    is_cut_before: clipped.is_cut_before,
                    is_cut_after: clipped.is_cut_after,
                }
            };
            roles.iter().map(line).collect()
        }
        ResultShape::Counts { .. } | ResultShape::Names { .. } => Vec::new(),
    };
    Some(MatchedFile { path: path.into(), modified: SystemTime::UNIX_EPOCH, matches, lines })
}
