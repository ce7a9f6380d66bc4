//! Which files make up the configuration, in which order; each is read once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::load::{DEEPEST, MOST_NOTES, Notes, Outside, Reach, Taken, Unreadable};
use super::problem::{Problem, Severity};
use super::understand::understand;
use super::words::{self, Said};
use super::{Config, Layer, Trust};

/// Where to look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The user's own folder of Helve's configuration.
    pub user: Option<PathBuf>,
    /// Files named by `--config`, in order.
    pub named: Vec<PathBuf>,
    /// The workspace.
    pub root: PathBuf,
    /// What `~` means.
    pub home: Option<PathBuf>,
}

impl Places {
    /// The usual places: `$XDG_CONFIG_HOME/helve`, or `~/.config/helve`.
    pub fn usual(outside: &dyn Outside, root: PathBuf, named: Vec<PathBuf>) -> Self {
        let folder = |name: &str| {
            outside.variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
        };
        let home = folder("HOME");
        let config =
            folder("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
        Self { user: config.map(|folder| folder.join("helve")), named, root, home }
    }
}

/// The files as they were at one moment: what is trusted is what is then used.
#[derive(Clone, Debug)]
pub struct Gathered {
    pub(super) items: Vec<Item>,
    pub(super) problems: Vec<Problem>,
    pub(super) home: Option<PathBuf>,
    digest: String,
}

impl Gathered {
    /// A hash of the names and contents of the project's files.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn understand(&self, outside: &dyn Outside, trust: Trust) -> Config {
        understand(self, outside, trust)
    }
}

/// A file, read or not.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) path: Arc<Path>,
    pub(super) layer: Layer,
    pub(super) kind: Kind,
    pub(super) content: Result<Taken, Unreadable>,
}

impl Item {
    /// The text of a file that was read, or where it stops being one.
    pub(super) fn text(&self) -> Option<Result<&str, &str>> {
        let bytes = self.content.as_ref().ok()?.bytes.as_slice();
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        Some(match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                Err(std::str::from_utf8(good).unwrap_or_default())
            }
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Settings; also a folder that could not be looked into.
    Json,
    /// Nothing but MCP servers.
    McpJson,
    /// Markdown about an agent; of a `modes` folder it is a primary one.
    Agent { name: String, primary: bool },
}

/// Whether a file may be absent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Optional,
    Demanded,
}

/// Folders of Markdown files, and whether they are of primary agents.
const AGENTS: &[(&str, bool)] = &[("agent", false), ("agents", false)];
const MODES: &[(&str, bool)] = &[("mode", true), ("modes", true)];

/// Reads every file there is.
pub fn gather(outside: &dyn Outside, places: &Places) -> Gathered {
    let mut gatherer = Gatherer { outside, items: Vec::new(), problems: Vec::new() };
    let user = (Layer::User, Reach::Anywhere);
    if let Some(folder) = &places.user {
        gatherer.files(folder, &["helve.json", "helve.jsonc"], user);
        gatherer.notes(folder, AGENTS, user);
    }
    for path in &places.named {
        gatherer.file(path, Presence::Demanded, user);
    }
    let root = &places.root;
    let project = (Layer::Project, Reach::Beneath(root));
    gatherer.take(&root.join(".mcp.json"), Kind::McpJson, Presence::Optional, project);
    gatherer.files(root, &["opencode.json", "opencode.jsonc"], project);
    gatherer.files(&root.join(".opencode"), &["opencode.json", "opencode.jsonc"], project);
    gatherer.notes(&root.join(".opencode"), AGENTS, project);
    gatherer.notes(&root.join(".opencode"), MODES, project);
    gatherer.files(root, &["helve.json", "helve.jsonc"], project);
    gatherer.files(&root.join(".helve"), &["helve.json", "helve.jsonc"], project);
    gatherer.notes(&root.join(".helve"), AGENTS, project);
    let Gatherer { items, problems, .. } = gatherer;
    let digest = digest(root, &items);
    Gathered { items, problems, home: places.home.clone(), digest }
}

struct Gatherer<'a> {
    outside: &'a dyn Outside,
    items: Vec<Item>,
    problems: Vec<Problem>,
}

impl Gatherer<'_> {
    fn files(&mut self, folder: &Path, names: &[&str], whose: (Layer, Reach<'_>)) {
        for name in names {
            self.file(&folder.join(name), Presence::Optional, whose);
        }
    }

    fn file(&mut self, path: &Path, presence: Presence, whose: (Layer, Reach<'_>)) {
        self.take(path, Kind::Json, presence, whose);
    }

    fn take(&mut self, path: &Path, kind: Kind, presence: Presence, whose: (Layer, Reach<'_>)) {
        let (layer, reach) = whose;
        let content = self.outside.read(path, reach);
        if presence == Presence::Demanded || content != Err(Unreadable::Missing) {
            self.items.push(Item { path: path.into(), layer, kind, content });
        }
    }

    fn notes(&mut self, folder: &Path, names: &[(&str, bool)], (layer, reach): (Layer, Reach<'_>)) {
        for (name, primary) in names {
            let folder = folder.join(name);
            let Notes { files, not_entered, cut } = match self.outside.notes(&folder, reach) {
                Ok(notes) => notes,
                Err(Unreadable::Missing) => continue,
                Err(why) => {
                    // Which agents it would have narrowed is not known, so the whole layer asks.
                    let (path, kind) = (folder.into(), Kind::Json);
                    self.items.push(Item { path, layer, kind, content: Err(why) });
                    continue;
                }
            };
            if cut {
                self.problem(&folder, words::too_many_notes(MOST_NOTES, DEEPEST));
            }
            for link in not_entered {
                self.problem(&folder.join(link), words::linked_folder());
            }
            for file in files {
                let Some(name) = agent_name(&file) else {
                    self.problem(&folder.join(file), words::name_is_not_text());
                    continue;
                };
                let path = folder.join(file);
                let content = self.outside.read(&path, reach);
                let kind = Kind::Agent { name, primary: *primary };
                self.items.push(Item { path: path.into(), layer, kind, content });
            }
        }
    }

    fn problem(&mut self, path: &Path, said: Said) {
        self.problems.push(Problem::of_file(path.into(), Severity::Error, said));
    }
}

/// `sub/review.md` is about the agent `sub/review`.
fn agent_name(file: &Path) -> Option<String> {
    let parts = file.with_extension("");
    let parts: Option<Vec<_>> = parts.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

/// Lengths are part of it, so that no content can pass for another file's name.
fn digest(root: &Path, items: &[Item]) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for item in items.iter().filter(|item| item.layer == Layer::Project) {
        let name = item.path.strip_prefix(root).unwrap_or(&item.path);
        part(name.as_os_str().as_encoded_bytes());
        match &item.content {
            Ok(content) => part(&content.bytes),
            Err(why) => part(words::unreadable(why).what.as_bytes()),
        }
    }
    hasher.finalize().to_hex().to_string()
}
