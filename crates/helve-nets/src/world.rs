//! The files that scripts are judged against and run among: a workspace with links that lead out of it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use helve_core::Part;
use helve_core::shell::{Entry, Ground, Resolution};
use helve_text::shell::{Language, Surroundings};

pub(crate) const ROOT: &str = "/w/app";

const FILES: &[(&str, &str)] = &[
    ("w/app/a.txt", "one\ntwo three\nhello 3\n"),
    ("w/app/b.txt", "one\ntwo\nfour 4\n"),
    ("w/app/.env", "SECRET=1\n"),
    ("w/app/README.md", "# App\n\nhello\n"),
    ("w/app/run.sh", "#!/bin/sh\necho run\n"),
    ("w/app/package.json", "{\"name\": \"app\", \"scripts\": {\"test\": \"echo test\"}}\n"),
    ("w/app/Makefile", "test:\n\t@echo test\n"),
    ("w/app/edit.sed", "s/a/b/\n"),
    ("w/app/src/a.rs", "fn main() {\n    println!(\"hello\"); // TODO\n}\n"),
    ("w/app/src/b.rs", "pub struct B;\n"),
    ("w/app/src/a.txt", "x 1\ny 2\n"),
    ("w/app/src/with space.txt", "space\n"),
    ("w/app/tests/test_a.py", "def test_a():\n    assert True\n"),
    ("w/app/odd/-rf", "odd\n"),
    ("w/app/odd/x", "x\n"),
    ("w/other/private.txt", "private\n"),
    ("w/app-two/x", "two\n"),
    ("h/.ssh/id_rsa", "key\n"),
];

/// From a place to what it leads to.
const LINKS: &[(&str, &str)] = &[
    ("w/app/link-out", "/w/other"),
    ("w/app/link-private", "../other/private.txt"),
    ("w/app/link-in", "src"),
    ("w/app/loop", "loop"),
];

/// Git's own, made once: commits, a branch, a tag, a stash, something staged and something not.
const HISTORY: &str =
    "git init -q -b main . && git config user.name n && git config user.email e@x &&
    git add a.txt src README.md && git commit -q -m first && git tag v1 && git branch side &&
    echo more >> b.txt && git add b.txt && git commit -q -m 'second: hello' &&
    echo stashed >> a.txt && git stash -q && echo changed >> README.md && rm -rf .git/hooks";

/// Puts the files into a folder that takes the place of `/`.
pub(crate) fn build(folder: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let at = folder.join(path);
        if let Some(parent) = at.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(at, text)?;
    }
    for (path, target) in LINKS {
        std::os::unix::fs::symlink(target, folder.join(path))?;
    }
    // Without git there is no history, and the scripts that use git are left out.
    let made = Command::new("sh")
        .args(["-c", HISTORY])
        .current_dir(folder.join("w/app"))
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .status()?;
    if made.success() { Ok(()) } else { Err(io::Error::other("git made no history")) }
}

/// What the script finds when it starts.
pub(crate) fn around() -> Surroundings {
    Surroundings {
        folder: ROOT.into(),
        home: Some("/h".into()),
        shell: Language::Bash,
        exported: ["PATH", "HOME", "EDITOR", "LANG", "TERM", "SHELL", "PWD", "PAGER"]
            .map(String::from)
            .into(),
    }
}

/// The same files in memory, for judging.
pub(crate) struct World {
    nodes: BTreeMap<String, Node>,
}

enum Node {
    File,
    Folder,
    Link(String),
}

impl World {
    pub(crate) fn new() -> Self {
        let mut nodes = BTreeMap::new();
        let more =
            ["w/app/.git/config", "w/app/.git/HEAD", "w/app/.git/index", "tmp/.", "etc/passwd"];
        for file in FILES.iter().map(|(path, _)| *path).chain(more) {
            let file = format!("/{file}");
            let parents = file.match_indices('/').skip(1).map(|(at, _)| &file[..at]);
            nodes.extend(parents.map(|folder| (folder.to_string(), Node::Folder)));
            nodes.insert(file.clone(), Node::File);
        }
        let links = LINKS.iter().map(|(path, to)| (format!("/{path}"), Node::Link((*to).into())));
        nodes.extend(links);
        nodes.remove("/tmp/.");
        Self { nodes }
    }

    /// The path with every link followed, `None` where that never ends.
    pub(crate) fn real(&self, path: &str) -> Option<String> {
        self.follow(path, 0)
    }

    pub(crate) fn has_folder(&self, path: &str) -> bool {
        matches!(self.nodes.get(path), Some(Node::Folder))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.nodes.contains_key(path)
    }

    fn follow(&self, path: &str, followed: usize) -> Option<String> {
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
                    return if followed > 8 { None } else { self.follow(&whole, followed + 1) };
                }
                Some(Node::File | Node::Folder) | None => at = next,
            }
        }
        Some(if at.is_empty() { "/".into() } else { at })
    }
}

impl Ground for World {
    fn resolve(&self, path: &str) -> Option<Resolution> {
        let real = self.real(path)?;
        let inside = real == ROOT || real.starts_with("/w/app/");
        let subject = |path: &str| match path.strip_prefix("/w/app/") {
            Some(beneath) => beneath.to_string(),
            None if path == ROOT => ".".to_string(),
            None => path.to_string(),
        };
        let folder = match self.nodes.get(&real) {
            Some(Node::Folder) => real.as_str(),
            Some(Node::File | Node::Link(_)) | None => {
                real.rsplit_once('/').map_or("", |(folder, _)| folder)
            }
        };
        let outside = (!inside).then(|| Part::new("external_directory", format!("{folder}/*")));
        let mut subjects = vec![subject(&real), subject(path)];
        subjects.dedup();
        let exists = self.nodes.contains_key(&real) || real == "/";
        Some(Resolution { subjects, outside, exists })
    }

    fn list(&self, folder: &str) -> Option<Vec<Entry>> {
        let real = self.real(folder)?;
        let start = if real == "/" { real } else { format!("{real}/") };
        let inside = self.nodes.iter().filter_map(|(path, node)| {
            let name = path.strip_prefix(&start).filter(|name| !name.contains('/'))?;
            let link = matches!(node, Node::Link(_));
            Some(Entry { name: name.to_string(), link, folder: matches!(node, Node::Folder) })
        });
        Some(inside.collect())
    }
}
