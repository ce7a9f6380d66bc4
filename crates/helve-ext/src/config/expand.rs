//! Expands `{env:NAME}` and `{file:path}` in texts. The inserted text is not expanded again.

use std::path::{Path, PathBuf};

use super::ConfigLayer;
use super::config_file::{Authority, ConfigFile, ExpandMode};
use super::load::{ConfigReadError, LinkPolicy};
use super::messages;
use super::tree::Position;

/// Maximum number of files included by one configuration file.
pub(super) const MAX_FILES: usize = 64;
/// Maximum size of one expanded value in bytes.
const MAX_VALUE: usize = 1 << 20;

enum Reference<'t> {
    Variable(&'t str),
    File(&'t str),
}

impl ConfigFile<'_> {
    /// Returns the text with its references expanded. On failure reports a problem and returns `None`.
    pub(super) fn expand(
        &mut self,
        at: Position,
        text: &str,
        expansion: ExpandMode,
    ) -> Option<String> {
        if expansion == ExpandMode::Verbatim || next_reference(text).is_none() {
            return Some(text.to_owned());
        }
        if self.waits_for_trust(text) {
            self.note(at, messages::reference_needs_trust);
            return None;
        }
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, reference, after)) = next_reference(rest) {
            expanded.push_str(before);
            match reference {
                Reference::Variable(name) => {
                    expanded.push_str(&self.variable(at, name, expansion)?)
                }
                Reference::File(path) => expanded.push_str(&self.include(at, path)?),
            }
            rest = after;
            if expanded.len() + rest.len() > MAX_VALUE {
                self.error(at, || messages::value_too_large(MAX_VALUE));
                return None;
            }
        }
        expanded.push_str(rest);
        Some(expanded)
    }

    /// Whether a text refers to variables or files that are only looked up once the project is trusted.
    pub(super) fn waits_for_trust(&self, text: &str) -> bool {
        let has_reference = || next_reference(text).is_some();
        match self.authority {
            Authority::Full => false,
            Authority::RestrictOnly => has_reference(),
        }
    }

    fn variable(&mut self, at: Position, name: &str, expansion: ExpandMode) -> Option<String> {
        let value = self.context.host.variable(name).filter(|value| !value.is_empty());
        if value.is_none() && expansion == ExpandMode::Strict {
            self.error(at, || messages::unset_in_rules(name));
            return None;
        }
        if value.is_none() {
            self.warn(at, || messages::unset(name));
        }
        Some(value.unwrap_or_default())
    }

    fn include(&mut self, at: Position, written: &str) -> Option<String> {
        if self.included >= MAX_FILES {
            self.error(at, || messages::too_many_includes(MAX_FILES));
            return None;
        }
        self.included += 1;
        let Some(path) = resolve_reference(&self.path, self.context.home, written) else {
            self.error(at, messages::no_home);
            return None;
        };
        let content = match self.layer {
            ConfigLayer::User => self.context.host.read(&path, LinkPolicy::Anywhere),
            // Files that a project includes were read when its trust was checked. Use that content.
            ConfigLayer::Project => {
                let content = self.context.included.get(&path).cloned();
                content.unwrap_or(Err(ConfigReadError::Missing))
            }
        };
        match content {
            Err(why) => self.error(at, || messages::unreadable_include(&path, &why)),
            Ok(contents) if contents.real == self.real => self.error(at, messages::includes_itself),
            Ok(contents) => match std::str::from_utf8(&contents.bytes) {
                Ok(text) => return Some(text.trim_start_matches('\u{feff}').trim().to_owned()),
                Err(_) => self.error(at, || messages::include_is_not_text(&path)),
            },
        }
        None
    }
}

/// Resolves the path of a reference in a file. The path may begin with `~/` and is otherwise relative to the file.
pub(super) fn resolve_reference(
    file: &Path,
    home: Option<&Path>,
    written: &str,
) -> Option<PathBuf> {
    if let Some(relative) = written.strip_prefix("~/") {
        return home.map(|home| home.join(relative));
    }
    Some(file.parent().unwrap_or(Path::new("")).join(written))
}

/// Returns the files that a text includes, as written.
pub(super) fn referenced_files(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, reference, after) = next_reference(rest)?;
            rest = after;
            if let Reference::File(path) = reference {
                return Some(path);
            }
        }
    })
}

/// Returns the first reference and the text before and after it.
fn next_reference(text: &str) -> Option<(&str, Reference<'_>, &str)> {
    for (start, _) in text.match_indices('{') {
        let inside = &text[start + 1..];
        let is_file = inside.starts_with("file:");
        let Some(name) = inside.strip_prefix("env:").or(inside.strip_prefix("file:")) else {
            continue;
        };
        let (name, after) = name.split_once('}')?;
        if name.trim().is_empty() {
            continue;
        }
        let reference =
            if is_file { Reference::File(name.trim()) } else { Reference::Variable(name) };
        return Some((&text[..start], reference, after));
    }
    None
}
