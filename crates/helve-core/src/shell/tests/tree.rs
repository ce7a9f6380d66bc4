//! Files in memory, with links, for judging against.

use std::collections::BTreeMap;

use super::super::{Entry, Ground, Resolution};
use crate::permission::Part;

pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

enum Node {
    File,
    Folder,
    Link(&'static str),
}

const ROOT: &str = "/w/app";

impl Tree {
    /// A workspace with links that lead out of it, and what lies around it.
    pub(super) fn sample() -> Self {
        let mut nodes = BTreeMap::new();
        for file in [
            "/w/app/a.txt",
            "/w/app/b.txt",
            "/w/app/.env",
            "/w/app/README.md",
            "/w/app/run.sh",
            "/w/app/package.json",
            "/w/app/src/a.rs",
            "/w/app/src/b.rs",
            "/w/app/src/a.txt",
            "/w/app/src/with space.txt",
            "/w/app/.git/config",
            "/w/app/edit.sed",
            "/w/app/tests/test_a.py",
            "/w/other/private.txt",
            "/w/app-two/x",
            "/h/.ssh/id_rsa",
            "/etc/hosts",
            "/etc/passwd",
            "/w/app/odd/-rf",
            "/w/app/odd/x",
        ] {
            let parents = file.match_indices('/').skip(1).map(|(at, _)| &file[..at]);
            nodes.extend(parents.map(|folder| (folder.to_string(), Node::Folder)));
            nodes.insert(file.to_string(), Node::File);
        }
        nodes.insert("/w/app/link-out".into(), Node::Link("/w/other"));
        nodes.insert("/w/app/link-private".into(), Node::Link("../other/private.txt"));
        nodes.insert("/w/app/link-in".into(), Node::Link("src"));
        nodes.insert("/w/app/loop".into(), Node::Link("loop"));
        Self { nodes }
    }

    /// The path with every link followed, `None` where that never ends.
    fn real(&self, path: &str, followed: usize) -> Option<String> {
        let mut at = String::new();
        let mut names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
        while let Some(name) = names.next() {
            if name == ".." {
                at.truncate(at.rfind('/').unwrap_or(0));
                continue;
            }
            let next = format!("{at}/{name}");
            match self.nodes.get(&next) {
                Some(Node::Link(target)) => {
                    let start = if target.starts_with('/') { String::new() } else { at };
                    let rest: Vec<&str> = names.collect();
                    let whole = format!("{start}/{target}/{}", rest.join("/"));
                    return if followed > 8 { None } else { self.real(&whole, followed + 1) };
                }
                Some(Node::File | Node::Folder) | None => at = next,
            }
        }
        Some(if at.is_empty() { "/".into() } else { at })
    }
}

impl Ground for Tree {
    fn resolve(&self, path: &str) -> Option<Resolution> {
        let real = self.real(path, 0)?;
        let inside = real == ROOT || real.starts_with("/w/app/");
        let subject = |path: &str| match path.strip_prefix("/w/app/") {
            Some(beneath) => beneath.to_string(),
            None if path == ROOT => ".".to_string(),
            None => path.to_string(),
        };
        let folder = match self.nodes.get(&real) {
            Some(Node::Folder) => real.as_str(),
            _ => real.rsplit_once('/').map_or("", |(folder, _)| folder),
        };
        let outside = (!inside).then(|| Part::new("external_directory", format!("{folder}/*")));
        let mut subjects = vec![subject(&real), subject(path)];
        subjects.dedup();
        Some(Resolution {
            subjects,
            outside,
            exists: self.nodes.contains_key(&real) || real == "/",
        })
    }

    fn list(&self, folder: &str) -> Option<Vec<Entry>> {
        let real = self.real(folder, 0)?;
        let start = if real == "/" { real } else { format!("{real}/") };
        let inside = self.nodes.iter().filter_map(|(path, node)| {
            let name = path.strip_prefix(&start).filter(|name| !name.contains('/'))?;
            let link = matches!(node, Node::Link(_));
            Some(Entry { name: name.to_string(), link, folder: matches!(node, Node::Folder) })
        });
        Some(inside.collect())
    }
}
