//! Sample files in memory, with links. helve-nets includes this file too, and creates the files on disk.

use std::collections::BTreeMap;

use super::{DirEntry, FileFacts, Part, PathFacts};

pub(super) const ROOT: &str = "/w/app";

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
        let mut subjects = vec![subject(&real), subject(path)];
        subjects.dedup();
        let exists = self.nodes.contains_key(&real) || real == "/";
        Some(PathFacts { subjects, outside, exists })
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
}
