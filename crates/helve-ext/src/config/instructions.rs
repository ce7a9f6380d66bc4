//! Instruction files: texts that tell a model how to work in a project. Those of a project are among the files that a
//! person trusts.

use std::path::{Path, PathBuf};

use helve_text::path_pattern::PathPattern;

use super::ConfigLayer;
use super::gather::{ConfigFileKind, ConfigPaths, GatheredFile};
use super::jsonc::{self, ParsedJson};
use super::load::{ConfigHost, ConfigReadError, FileContents, LinkPolicy};
use super::tree::ConfigValue;

/// Names of a project's instruction file. The first one that exists is used.
pub const INSTRUCTION_NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];
/// Maximum number of instruction files of one layer.
const MAX_INSTRUCTION_FILES: usize = 50;
/// Maximum length of an entry of `instructions`.
const MAX_NAME_BYTES: usize = 1_024;

/// A file with instructions for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    pub path: PathBuf,
    pub layer: ConfigLayer,
    pub content: Result<FileContents, ConfigReadError>,
}

/// Reads the instruction files: the user's own, those that the user's configuration names, then the project's in the
/// same order. Links may not lead out of the project.
pub(super) fn read_instructions(
    host: &dyn ConfigHost,
    items: &[GatheredFile],
    paths: &ConfigPaths,
    user_folders: &[PathBuf],
) -> Vec<InstructionFile> {
    let own = user_folders.iter().rev().map(|folder| folder.join("AGENTS.md"));
    let own = own.chain(paths.home.iter().map(|home| home.join(".claude/CLAUDE.md")));
    let in_root = INSTRUCTION_NAMES.iter().map(|name| paths.root.join(name));
    let mut found = Vec::new();
    for (layer, candidates) in [
        (ConfigLayer::User, own.collect::<Vec<_>>()),
        (ConfigLayer::Project, in_root.collect::<Vec<_>>()),
    ] {
        let mut reader = Reader { host, paths, layer, files: Vec::new() };
        reader.add_first(candidates);
        for item in items.iter().filter(|item| item.layer == layer) {
            for name in named_files(item) {
                reader.add_named(&item.path, &name);
            }
        }
        found.extend(reader.files);
    }
    found
}

/// The entries of `instructions` in a configuration file, as written.
fn named_files(item: &GatheredFile) -> Vec<String> {
    let (ConfigFileKind::Json, Some(Ok(text))) = (&item.kind, item.text()) else {
        return Vec::new();
    };
    let ParsedJson::Complete(node) = jsonc::parse(text) else { return Vec::new() };
    let ConfigValue::Map(entries) = &node.data else { return Vec::new() };
    let lists = entries.iter().filter(|entry| entry.key == "instructions");
    let mut names = Vec::new();
    for entry in lists {
        let ConfigValue::List(files) = &entry.value.data else { continue };
        names.extend(files.iter().filter_map(|file| match &file.data {
            // URLs are skipped: instructions are not fetched.
            ConfigValue::Text(path)
                if (1..=MAX_NAME_BYTES).contains(&path.len()) && !path.contains("://") =>
            {
                Some(path.clone())
            }
            _ => None,
        }));
    }
    names.truncate(MAX_INSTRUCTION_FILES);
    names
}

struct Reader<'a> {
    host: &'a dyn ConfigHost,
    paths: &'a ConfigPaths,
    layer: ConfigLayer,
    files: Vec<InstructionFile>,
}

impl Reader<'_> {
    fn links(&self) -> LinkPolicy<'_> {
        match self.layer {
            ConfigLayer::User => LinkPolicy::Anywhere,
            ConfigLayer::Project => LinkPolicy::Beneath(&self.paths.root),
        }
    }

    /// Adds the first file that exists.
    fn add_first(&mut self, candidates: Vec<PathBuf>) {
        for path in candidates {
            let content = self.host.read(&path, self.links());
            if content != Err(ConfigReadError::Missing) {
                self.files.push(InstructionFile { path, layer: self.layer, content });
                return;
            }
        }
    }

    /// Adds a file, or the files that a glob matches. A project's entry is relative to its root, a user's to the folder
    /// of the configuration file.
    fn add_named(&mut self, config_file: &Path, name: &str) {
        let base = match self.layer {
            ConfigLayer::User => config_file.parent().unwrap_or(config_file).to_path_buf(),
            ConfigLayer::Project => self.paths.root.clone(),
        };
        let in_home = name.strip_prefix("~/").zip(self.paths.home.as_ref());
        let full = match in_home {
            Some((beneath, home)) => home.join(beneath),
            None => base.join(name.strip_prefix("./").unwrap_or(name)),
        };
        match split_glob(&full) {
            None => self.add(full),
            Some((folder, pattern)) => {
                for file in self.matching(&folder, &pattern) {
                    self.add(folder.join(file));
                }
            }
        }
    }

    fn add(&mut self, path: PathBuf) {
        if self.files.len() >= MAX_INSTRUCTION_FILES
            || self.files.iter().any(|known| known.path == path)
        {
            return;
        }
        let content = self.host.read(&path, self.links());
        self.files.push(InstructionFile { path, layer: self.layer, content });
    }

    /// The files below a folder that match a glob, relative to the folder.
    fn matching(&self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        let Ok(listed) = self.host.files(folder, self.links()) else { return Vec::new() };
        let alternatives: Vec<String> = alternatives(pattern);
        let patterns: Vec<PathPattern<'_>> =
            alternatives.iter().map(|pattern| PathPattern::new(pattern, "")).collect();
        let depth = |path: &str| path.matches('/').count();
        let is_match = |path: &PathBuf| {
            let Some(path) = path.to_str() else { return false };
            // In a glob, `*` does not match a slash; only `**` spans folders.
            alternatives.iter().zip(&patterns).any(|(text, pattern)| {
                (text.contains("**") || depth(text) == depth(path)) && pattern.matches(path)
            })
        };
        listed.into_iter().filter(is_match).collect()
    }
}

/// Splits a path before its first component with a wildcard. Returns `None` if the path has no wildcard.
fn split_glob(path: &Path) -> Option<(PathBuf, String)> {
    let is_glob = |text: &str| text.contains(['*', '?', '{', '[']);
    let text = path.to_str().filter(|text| is_glob(text))?;
    let glob = text.split('/').position(is_glob)?;
    let parts: Vec<&str> = text.split('/').collect();
    let folder = match parts[..glob].join("/") {
        folder if folder.is_empty() => PathBuf::from("/"),
        folder => PathBuf::from(folder),
    };
    Some((folder, parts[glob..].join("/")))
}

/// Expands `{a,b}`. Nested braces are not supported.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.into()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![pattern.into()] };
    choices
        .split(',')
        .take(MAX_INSTRUCTION_FILES)
        .flat_map(|choice| alternatives(&format!("{before}{choice}{after}")))
        .take(MAX_INSTRUCTION_FILES)
        .collect()
}
