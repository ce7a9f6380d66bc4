//! Sample files and links, in memory. helve-nets also includes this module, to create the files on disk.

use std::collections::BTreeMap;

use helve_text::shell::{LinkHandling, TreeFilter, TreeListing};
use helve_text::wildcard;

use super::{DirEntry, FileFacts, Part, PathFacts, ProgramPlace, TreeFiles, TreeQuery};

pub(super) const ROOT: &str = "/w/app";

/// The names of files that git does not track.
const UNTRACKED: &[&str] = &[".git", ".env"];

pub(super) struct Tree {
    pub(super) nodes: BTreeMap<String, Node>,
}

pub(super) enum Node {
    /// The content; may be empty.
    File(String),
    Folder,
    Link(String),
}

impl Tree {
    /// Returns the files that `tree.txt` describes.
    pub(super) fn sample() -> Self {
        let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
        let mut file = String::new();
        for line in include_str!("tree.txt").lines().filter(|line| !line.starts_with('#')) {
            if let Some(text) = line.strip_prefix('|') {
                if let Some(Node::File(content)) = nodes.get_mut(&file) {
                    content.push_str(text);
                    content.push('\n');
                }
                continue;
            }
            let (path, node) = match (line.split_once(" -> "), line.strip_suffix('/')) {
                (Some((path, target)), _) => (path, Node::Link(target.into())),
                (None, Some(folder)) => (folder, Node::Folder),
                (None, None) => (line, Node::File(String::new())),
            };
            let parents = path.match_indices('/').skip(1).map(|(at, _)| path[..at].to_string());
            nodes.extend(parents.map(|folder| (folder, Node::Folder)));
            file = path.into();
            nodes.insert(file.clone(), node);
        }
        nodes.remove("");
        Self { nodes }
    }

    /// Returns the path with every link followed; `None` if the links form a loop.
    pub(super) fn real(&self, path: &str) -> Option<String> {
        self.follow(path, 0)
    }

    /// `followed` is the number of links followed so far.
    fn follow(&self, path: &str, followed: usize) -> Option<String> {
        let mut real = String::new();
        let mut names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
        while let Some(name) = names.next() {
            if name == ".." {
                real.truncate(real.rfind('/').unwrap_or(0));
                continue;
            }
            let next = format!("{real}/{name}");
            match self.nodes.get(&next) {
                Some(Node::Link(target)) => {
                    let start = if target.starts_with('/') { String::new() } else { real };
                    let rest: Vec<&str> = names.collect();
                    let path = format!("{start}/{target}/{}", rest.join("/"));
                    return if followed > 8 { None } else { self.follow(&path, followed + 1) };
                }
                Some(Node::File(_) | Node::Folder) | None => real = next,
            }
        }
        Some(if real.is_empty() { "/".into() } else { real })
    }
}

impl FileFacts for Tree {
    fn resolve(&self, path: &str) -> Option<PathFacts> {
        let real = self.real(path)?;
        let is_inside = real == ROOT || real.starts_with("/w/app/");
        let subject = |path: &str| match path.strip_prefix("/w/app/") {
            Some(relative) => relative.to_string(),
            None if path == ROOT => ".".to_string(),
            None => path.to_string(),
        };
        let folder = match self.nodes.get(&real) {
            Some(Node::Folder) => real.as_str(),
            Some(Node::File(_) | Node::Link(_)) | None => {
                real.rsplit_once('/').map_or("", |(folder, _)| folder)
            }
        };
        let outside = (!is_inside).then(|| Part::new("external_directory", format!("{folder}/*")));
        let mut subjects = vec![subject(&real), subject(&path.replace("/./", "/"))];
        subjects.dedup();
        let exists = self.nodes.contains_key(&real) || real == "/";
        let is_folder = matches!(self.nodes.get(&real), Some(Node::Folder)) || real == "/";
        Some(PathFacts { subjects, outside, exists, is_folder })
    }

    fn list(&self, folder: &str) -> Option<Vec<DirEntry>> {
        let real = self.real(folder)?;
        let start = if real == "/" { real } else { format!("{real}/") };
        let entries = self.nodes.iter().filter_map(|(path, node)| {
            let name = path.strip_prefix(&start).filter(|name| !name.contains('/'))?;
            Some(DirEntry {
                name: name.to_string(),
                is_link: matches!(node, Node::Link(_)),
                is_folder: matches!(node, Node::Folder),
            })
        });
        Some(entries.collect())
    }

    /// The shell looks in the folder `bin` of the workspace first.
    fn program(&self, name: &str) -> Option<ProgramPlace> {
        let path = format!("bin/{name}");
        Some(match self.nodes.contains_key(&format!("{ROOT}/{path}")) {
            true => ProgramPlace::Workspace(path),
            false => ProgramPlace::Elsewhere,
        })
    }

    /// Returns all files that pass the filter. The caller judges them.
    fn tree(&self, query: &TreeQuery) -> Option<TreeFiles> {
        let follows_links =
            query.permission == "read" && query.filter.links == LinkHandling::Followed;
        let opens_links = query.permission == "edit" || query.filter.links != LinkHandling::Skipped;
        let lists_tracked_only = query.filter.listing != TreeListing::Directory;
        let start = match query.filter.listing {
            TreeListing::Directory | TreeListing::Tracked => query.folder.trim_end_matches('/'),
            TreeListing::TrackedAnywhere => ROOT,
        };
        let mut pending = vec![start.to_string()];
        let mut files = Vec::new();
        while let Some(folder) = pending.pop() {
            if self.resolve(&folder)?.outside.is_some() {
                continue;
            }
            for entry in self.list(&folder)? {
                let path = format!("{folder}/{}", entry.name);
                if lists_tracked_only && UNTRACKED.contains(&entry.name.as_str()) {
                    continue;
                }
                let Some(facts) = self.resolve(&path) else { continue };
                if (entry.is_folder || entry.is_link && follows_links && facts.is_folder)
                    && enters(&entry, &query.filter)
                    // Ends loops of links.
                    && path.len() < 200
                {
                    pending.push(path.clone());
                }
                if (!entry.is_link || opens_links) && reads(&entry, &query.filter) {
                    files.push(match &query.destination {
                        Some(to) => self.resolve(&format!("{to}{}", &path[start.len()..]))?,
                        None => facts,
                    });
                }
            }
        }
        Some(TreeFiles { files, is_partial: false })
    }
}

/// Whether a recursive access enters a folder.
fn enters(entry: &DirEntry, filter: &TreeFilter) -> bool {
    !is_hidden(entry, filter) && !matches_any(&filter.excluded_dirs, &entry.name)
}

/// Whether a recursive access reaches a file.
fn reads(entry: &DirEntry, filter: &TreeFilter) -> bool {
    let has_name = filter.names.is_empty() || matches_any(&filter.names, &entry.name);
    has_name && !is_hidden(entry, filter) && !matches_any(&filter.excluded_files, &entry.name)
}

fn is_hidden(entry: &DirEntry, filter: &TreeFilter) -> bool {
    filter.skips_hidden && entry.name.starts_with('.')
}

fn matches_any(globs: &[String], name: &str) -> bool {
    globs.iter().any(|glob| wildcard::matches(glob, name))
}
