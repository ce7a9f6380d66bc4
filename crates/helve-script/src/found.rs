//! Finds tool and plugin files. They are read, but neither parsed nor run, because they may not be trusted yet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::disk;
use crate::resolve::{self, ImportFiles as _, ImportTarget};
use crate::sources::ScriptSources;

/// Maximum number of tool and plugin files. Command hooks have the same limit.
const MAX_SCRIPTS: usize = 200;

/// Who a script belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptOwner {
    User,
    /// The project's files are used only while it is trusted.
    Project,
}

/// A configuration folder, which may contain the folders `tool`, `tools`, `plugin` and `plugins`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFolder {
    pub folder: PathBuf,
    pub owner: ScriptOwner,
    pub contents: FolderContents,
}

/// Which files in the folders `tool` and `tools` are tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderContents {
    /// Scripts for bun or node, as in opencode.
    Scripts,
    /// Scripts for bun or node, and programs in any language.
    ScriptsAndPrograms,
}

/// A program that the configuration names as a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEntry {
    /// The id of the tool.
    pub name: String,
    /// The program and its arguments. Relative paths start at the root of the workspace.
    pub command: Vec<String>,
    /// The configuration file.
    pub file: PathBuf,
    pub owner: ScriptOwner,
}

/// A command that is run before or after calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEntry {
    pub event: HookEvent,
    /// Names of tools, separated by `|`; empty or `*` for all.
    pub matcher: String,
    /// A command for the shell.
    pub command: String,
    pub timeout: Option<std::time::Duration>,
    /// The configuration file.
    pub file: PathBuf,
    pub owner: ScriptOwner,
}

/// When a command hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
}

/// A command hook with the files that its command names.
#[derive(Clone, Debug)]
pub(crate) struct FoundHook {
    pub(crate) entry: HookEntry,
    /// Files in the project that the command names.
    pub(crate) files: Vec<PathBuf>,
    /// The contents of `files` when the hook was found, or why they cannot be read.
    pub(crate) sources: Result<ScriptSources, String>,
}

/// What [`FoundScripts::find`] looks for.
#[derive(Clone, Debug, Default)]
pub struct ScriptSearch {
    pub folders: Vec<ScriptFolder>,
    pub plugins: Vec<PluginEntry>,
    pub programs: Vec<ProgramEntry>,
    pub hooks: Vec<HookEntry>,
    /// The root of the workspace.
    pub root: PathBuf,
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

/// What kind of script a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptKind {
    Tool,
    Plugin,
    /// A program in any language.
    Program,
}

/// A tool or plugin file.
#[derive(Clone, Debug)]
pub struct FoundScript {
    pub kind: ScriptKind,
    pub owner: ScriptOwner,
    pub path: PathBuf,
    /// For a configured plugin, its options; for a configured program, its name and command; otherwise null.
    pub options: Value,
    /// The files to read, together with everything that they import. Usually only `path`; for a configured program, the
    /// files that its command names.
    pub(crate) source_files: Vec<PathBuf>,
    /// The contents of `source_files` and of what they import, or why they cannot be read.
    pub sources: Result<ScriptSources, String>,
}

/// All tool and plugin files.
#[derive(Clone, Debug, Default)]
pub struct FoundScripts {
    pub scripts: Vec<FoundScript>,
    /// Plugins that were not found, each with the configuration file that names them and the reason; also files beyond
    /// the maximum number.
    pub problems: Vec<(PathBuf, String)>,
    pub(crate) hooks: Vec<FoundHook>,
}

impl FoundScripts {
    /// Finds all scripts and hooks. Plugins that the configuration names come first, as in opencode, then the tools and
    /// plugins in the folders, then configured programs.
    pub fn find(search: &ScriptSearch) -> Self {
        let mut found = Self::default();
        for entry in &search.plugins {
            match plugin_file(entry) {
                Ok(path) => found.add(ScriptKind::Plugin, entry.owner, path, entry.options.clone()),
                Err(why) => found.problems.push((entry.file.clone(), why)),
            }
        }
        let kinds: [(ScriptKind, [&str; 2], &[&str]); 2] = [
            (ScriptKind::Tool, ["tool", "tools"], &["ts", "js", "mjs"]),
            (ScriptKind::Plugin, ["plugin", "plugins"], &["ts", "js", "mjs"]),
        ];
        for ScriptFolder { folder, owner, contents } in &search.folders {
            for (kind, names, extensions) in &kinds {
                for path in
                    names.iter().flat_map(|it| disk::scripts_in(&folder.join(it), extensions))
                {
                    found.add(*kind, *owner, path, Value::Null);
                }
            }
            if *contents == FolderContents::ScriptsAndPrograms {
                for path in
                    ["tool", "tools"].iter().flat_map(|it| disk::programs_in(&folder.join(it)))
                {
                    found.add(ScriptKind::Program, *owner, path, Value::Null);
                }
            }
        }
        for entry in &search.programs {
            found.add_program(entry, &search.root);
        }
        for entry in search.hooks.iter().take(MAX_SCRIPTS) {
            let files = files_in_command(&entry.command, &search.root);
            let sources = ScriptSources::read_all(&entry.file, &files);
            found.hooks.push(FoundHook { entry: entry.clone(), files, sources });
        }
        found
    }

    /// Adds a configured program. Its sources are the files that words of its command name.
    fn add_program(&mut self, entry: &ProgramEntry, root: &Path) {
        let words = entry.command.iter().map(|word| root.join(word));
        let files: Vec<PathBuf> = words.filter(|path| disk::Disk.is_file(path)).collect();
        let path = files.last().cloned().unwrap_or_else(|| entry.file.clone());
        let sources = ScriptSources::read_all(&path, &files);
        let options = serde_json::json!({"name": entry.name, "command": entry.command});
        let (kind, owner) = (ScriptKind::Program, entry.owner);
        self.scripts.retain(|it| it.options.get("name") != options.get("name") || it.kind != kind);
        self.scripts.push(FoundScript { kind, owner, path, options, source_files: files, sources });
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
        let source_files = vec![path.clone()];
        self.scripts.push(FoundScript { kind, owner, path, options, source_files, sources });
    }

    /// Hash of the project's scripts and command hooks, with everything that they import; `None` if the project has
    /// neither.
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
        for hook in self.project_hooks() {
            is_empty = false;
            let text = hook.sources.as_ref().map_or("unreadable", |sources| sources.hash());
            hasher.update(text.as_bytes());
        }
        (!is_empty).then(|| hasher.finalize().to_hex().to_string())
    }

    fn project_scripts(&self) -> impl Iterator<Item = &FoundScript> {
        self.scripts.iter().filter(|script| script.owner == ScriptOwner::Project)
    }

    /// The files of the project that must be trusted, each with a hash of its content.
    pub fn project_file_hashes(&self) -> BTreeMap<PathBuf, String> {
        let scripts = self.project_scripts().filter_map(|script| script.sources.as_ref().ok());
        let hooks = self.project_hooks().filter_map(|hook| hook.sources.as_ref().ok());
        scripts.chain(hooks).flat_map(ScriptSources::file_hashes).collect()
    }

    fn project_hooks(&self) -> impl Iterator<Item = &FoundHook> {
        self.hooks.iter().filter(|hook| hook.entry.owner == ScriptOwner::Project)
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
        for sources in self.project_hooks().filter_map(|hook| hook.sources.as_ref().ok()) {
            files.extend(sources.paths().map(Path::to_path_buf));
        }
        files
    }
}

/// Returns the files in the project that a command names. The command is only split roughly, because finding too many
/// files is better than missing one.
pub(crate) fn files_in_command(command: &str, root: &Path) -> Vec<PathBuf> {
    let separators = |c: char| c.is_whitespace() || "\"'`;&|()<>=".contains(c);
    let folder = root.to_string_lossy();
    let command = ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR"]
        .iter()
        .fold(command.replace('"', ""), |text, name| text.replace(name, &folder));
    let words = command.split(separators).filter(|word| !word.is_empty()).take(200);
    let paths = words.map(|word| resolve::normalize(&root.join(word)));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.starts_with(root) && disk::Disk.is_file(path)).collect();
    files.sort();
    files.dedup();
    files
}

/// Finds the file of a configured plugin. Packages must be installed.
fn plugin_file(entry: &PluginEntry) -> Result<PathBuf, String> {
    let spec = entry.spec.trim();
    let is_path = spec.starts_with(['.', '/', '~']) || spec.starts_with("file://");
    let name = package_without_version(spec);
    match resolve::resolve(&disk::Disk, &entry.file, if is_path { spec } else { name }) {
        ImportTarget::File(path) | ImportTarget::InstalledFile(path) => Ok(path),
        ImportTarget::Package { folder, .. } => resolve::plugin_entry(&disk::Disk, &folder)
            .ok_or_else(|| {
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
