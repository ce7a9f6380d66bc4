//! Finds tool and plugin files. They are read, but neither parsed nor run, because they may not be trusted yet.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::disk;
use crate::resolve::{self, ImportTarget};
use crate::sources::ScriptSources;

/// Maximum number of tool and plugin files.
const MAX_SCRIPTS: usize = 200;

/// Who a script belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptOwner {
    User,
    /// The project's files are used only while it is trusted.
    Project,
}

/// A configuration folder, which may have `tool(s)` and `plugin(s)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFolder {
    pub folder: PathBuf,
    pub owner: ScriptOwner,
}

/// An entry of `plugin` in a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginEntry {
    /// A path, a file URL, or the name of an installed package.
    pub spec: String,
    pub options: Value,
    /// The configuration file.
    pub file: PathBuf,
    pub owner: ScriptOwner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptKind {
    Tool,
    Plugin,
}

/// A tool or plugin file.
#[derive(Clone, Debug)]
pub struct FoundScript {
    pub kind: ScriptKind,
    pub owner: ScriptOwner,
    pub path: PathBuf,
    pub options: Value,
    /// The file and what it imports, or why it cannot be read.
    pub sources: Result<ScriptSources, String>,
}

/// All tool and plugin files.
#[derive(Clone, Debug, Default)]
pub struct FoundScripts {
    pub scripts: Vec<FoundScript>,
    /// Entries of `plugin` whose file was not found: the configuration file and the reason.
    pub problems: Vec<(PathBuf, String)>,
}

impl FoundScripts {
    /// Finds the tools and plugins in the folders and the plugins that the configuration names, which come first, as in
    /// opencode.
    pub fn find(folders: &[ScriptFolder], plugins: &[PluginEntry]) -> Self {
        let mut found = Self::default();
        for entry in plugins {
            match plugin_file(entry) {
                Ok(path) => found.add(ScriptKind::Plugin, entry.owner, path, entry.options.clone()),
                Err(why) => found.problems.push((entry.file.clone(), why)),
            }
        }
        let kinds: [(ScriptKind, [&str; 2], &[&str]); 2] = [
            (ScriptKind::Tool, ["tool", "tools"], &["ts", "js", "mjs"]),
            (ScriptKind::Plugin, ["plugin", "plugins"], &["ts", "js", "mjs"]),
        ];
        for ScriptFolder { folder, owner } in folders {
            for (kind, names, extensions) in &kinds {
                for path in
                    names.iter().flat_map(|it| disk::scripts_in(&folder.join(it), extensions))
                {
                    found.add(*kind, *owner, path, Value::Null);
                }
            }
        }
        found
    }

    fn add(&mut self, kind: ScriptKind, owner: ScriptOwner, path: PathBuf, options: Value) {
        if self.scripts.len() == MAX_SCRIPTS {
            let why = format!("there are more than {MAX_SCRIPTS} tool and plugin files");
            self.problems.push((path, why));
            return;
        }
        // If a plugin has two entries, the last one is used.
        self.scripts.retain(|it| it.path != path || it.kind != kind);
        let sources = ScriptSources::read(&path);
        self.scripts.push(FoundScript { kind, owner, path, options, sources });
    }

    /// Hash of the project's scripts and everything that they import; `None` if it has none.
    pub fn project_digest(&self) -> Option<String> {
        let mut hasher = blake3::Hasher::new();
        let mut is_empty = true;
        for script in self.project_scripts() {
            is_empty = false;
            let text = match &script.sources {
                Ok(sources) => sources.hash(),
                Err(_) => "unreadable",
            };
            for part in [script.path.as_os_str().as_encoded_bytes(), text.as_bytes()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        (!is_empty).then(|| hasher.finalize().to_hex().to_string())
    }

    fn project_scripts(&self) -> impl Iterator<Item = &FoundScript> {
        self.scripts.iter().filter(|script| script.owner == ScriptOwner::Project)
    }

    /// The files of the project that must be trusted.
    pub fn project_files(&self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        for script in self.project_scripts() {
            files.insert(script.path.clone());
            if let Ok(sources) = &script.sources {
                files.extend(sources.paths().map(Path::to_path_buf));
            }
        }
        files
    }
}

/// Finds the file of a configured plugin. Packages must be installed.
fn plugin_file(entry: &PluginEntry) -> Result<PathBuf, String> {
    let spec = entry.spec.trim();
    let is_path = spec.starts_with(['.', '/', '~']) || spec.starts_with("file://");
    let name = package_without_version(spec);
    match resolve::resolve(&disk::Disk, &entry.file, if is_path { spec } else { name }) {
        ImportTarget::File(path) | ImportTarget::InstalledFile(path) => Ok(path),
        ImportTarget::Package { folder, .. } => package_entry(&folder).ok_or_else(|| {
            format!("the plugin {spec:?} in {} has no file to load", folder.display())
        }),
        ImportTarget::MissingFile => Err(format!("the plugin {spec:?} does not exist")),
        ImportTarget::MissingPackage(_) | ImportTarget::Builtin(_) | ImportTarget::Provided(_) => {
            let folder = entry.file.parent().unwrap_or(&entry.file);
            Err(format!(
                "the plugin {spec:?} is not installed; run `npm install {spec}` in {}",
                folder.display()
            ))
        }
    }
}

/// `name@1.2.3` → `name`.
fn package_without_version(spec: &str) -> &str {
    match spec.get(1..).and_then(|rest| rest.find('@')) {
        Some(at) => &spec[..at + 1],
        None => spec,
    }
}

/// Finds the file that importing a package loads.
fn package_entry(folder: &Path) -> Option<PathBuf> {
    let text = disk::read(&folder.join("package.json")).ok()?;
    let package: Value = serde_json::from_slice(&text).ok()?;
    let exported = package.get("exports").map(|exports| exports.get(".").unwrap_or(exports));
    let exported = exported.and_then(|mut target| {
        for _ in 0..5 {
            target = match target {
                Value::String(path) => return Some(path.as_str()),
                Value::Object(conditions) => ["bun", "import", "node", "default"]
                    .iter()
                    .find_map(|condition| conditions.get(*condition))?,
                _ => return None,
            };
        }
        None
    });
    let main = ["module", "main"].iter().find_map(|key| package.get(*key)?.as_str());
    let path = resolve::normalize(&folder.join(exported.or(main).unwrap_or("index.js")));
    disk::real_path(&path).map(|_| path)
}
