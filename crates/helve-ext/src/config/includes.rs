//! Reads the files that a project's configuration includes, before the configuration is interpreted. They are part of
//! what a person trusts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use super::ConfigLayer;
use super::expand::{MAX_FILES, referenced_files, resolve_reference};
use super::gather::{ConfigFileKind, GatheredFile};
use super::jsonc::{self, ParsedJson};
use super::load::{ConfigHost, ConfigReadError, FileContents, LinkPolicy};
use super::tree::{ConfigNode, ConfigValue};
use super::yaml::{self, FrontMatter};

/// The files that a project's configuration includes, by path.
pub(super) type IncludedFiles = BTreeMap<PathBuf, Result<FileContents, ConfigReadError>>;

/// Reads every file that the project's files name in `{file:…}`.
pub(super) fn read_includes(
    host: &dyn ConfigHost,
    items: &[GatheredFile],
    home: Option<&Path>,
) -> IncludedFiles {
    let mut included = IncludedFiles::new();
    for item in items.iter().filter(|item| item.layer == ConfigLayer::Project) {
        let paths = included_paths(item).into_iter().take(2 * MAX_FILES);
        for path in paths.filter_map(|path| resolve_reference(&item.path, home, &path)) {
            if let Entry::Vacant(entry) = included.entry(path) {
                let content = host.read(entry.key(), LinkPolicy::Anywhere);
                entry.insert(content);
            }
        }
    }
    included
}

/// Returns the paths that a file names, as written.
fn included_paths(item: &GatheredFile) -> Vec<String> {
    let Some(Ok(text) | Err(text)) = item.text() else { return Vec::new() };
    let node = match &item.kind {
        ConfigFileKind::Json | ConfigFileKind::McpJson => match jsonc::parse(text) {
            ParsedJson::Complete(node) => Some(node),
            ParsedJson::Broken { before, .. } => before,
            ParsedJson::Empty => None,
        },
        ConfigFileKind::Agent { .. } | ConfigFileKind::Command { .. } => {
            match yaml::parse(text).front_matter {
                FrontMatter::Fields(node) => Some(node),
                FrontMatter::None | FrontMatter::Broken { .. } => None,
            }
        }
        // References in a skill are not expanded.
        ConfigFileKind::Skill | ConfigFileKind::ClaudeSettings => None,
    };
    let mut paths = Vec::new();
    if let Some(node) = &node {
        add_references(node, &mut paths);
    }
    paths
}

fn add_references(node: &ConfigNode, paths: &mut Vec<String>) {
    let mut add = |text: &str| paths.extend(referenced_files(text).map(String::from));
    match &node.data {
        ConfigValue::Null | ConfigValue::Bool(_) | ConfigValue::Number(_) => {}
        ConfigValue::Text(text) => add(text),
        ConfigValue::List(nodes) => nodes.iter().for_each(|node| add_references(node, paths)),
        ConfigValue::Map(entries) => {
            for entry in entries {
                paths.extend(referenced_files(&entry.key).map(String::from));
                add_references(&entry.value, paths);
            }
        }
    }
}
