//! Settings for changing files: `edit` and `files`.

use super::config_file::{ConfigFile, ExpandMode};
use super::tree::{ConfigEntry, ConfigNode};
use super::{WithSource, keys, messages};

/// Settings for changing files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditSection {
    pub syntax: Option<WithSource<SyntaxMode>>,
    pub matching: Option<WithSource<MatchMode>>,
    pub hard_links: Option<WithSource<HardLinkMode>>,
    pub diagnostics: Option<WithSource<DiagnosticsMode>>,
    /// How long an edit waits for diagnostics, in milliseconds.
    pub diagnostics_timeout: Option<WithSource<u64>>,
}

/// `edit.syntax`: what happens to a change that introduces syntax errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxMode {
    Report,
    Off,
    Refuse,
}

/// `edit.diagnostics`: which problems that language servers find are reported after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticsMode {
    Errors,
    Warnings,
    Off,
}

/// `edit.match`: whether the text to replace may differ from the file in ways that are safe, such as trailing white
/// space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    Safe,
    Exact,
}

/// `files.hardlinks`: what happens to the other hard links of a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardLinkMode {
    Replace,
    InPlace,
}

const SYNTAX: &[(&str, SyntaxMode)] =
    &[("report", SyntaxMode::Report), ("off", SyntaxMode::Off), ("refuse", SyntaxMode::Refuse)];
const DIAGNOSTICS: &[(&str, DiagnosticsMode)] = &[
    ("errors", DiagnosticsMode::Errors),
    ("warnings", DiagnosticsMode::Warnings),
    ("off", DiagnosticsMode::Off),
];
/// Maximum value of `edit.diagnostics_timeout`.
const MAX_DIAGNOSTICS_TIMEOUT: u64 = 9_000;
const MATCH: &[(&str, MatchMode)] = &[("safe", MatchMode::Safe), ("exact", MatchMode::Exact)];
const HARD_LINKS: &[(&str, HardLinkMode)] =
    &[("replace", HardLinkMode::Replace), ("in-place", HardLinkMode::InPlace)];

impl EditSection {
    pub(super) fn read_edit(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        for field in file.map("edit", node).unwrap_or_default() {
            match field.key.as_str() {
                "syntax" => choose(file, ("edit", field), SYNTAX, &mut self.syntax),
                "match" => choose(file, ("edit", field), MATCH, &mut self.matching),
                "diagnostics" => choose(file, ("edit", field), DIAGNOSTICS, &mut self.diagnostics),
                "diagnostics_timeout" => {
                    let name = "edit.diagnostics_timeout";
                    let timeout = file.positive(name, &field.value, MAX_DIAGNOSTICS_TIMEOUT);
                    self.diagnostics_timeout = timeout.or(self.diagnostics_timeout.take());
                }
                _ => warn_unknown_key(file, field, keys::EDIT),
            }
        }
    }

    pub(super) fn read_files(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        for field in file.map("files", node).unwrap_or_default() {
            match field.key.as_str() {
                "hardlinks" => choose(file, ("files", field), HARD_LINKS, &mut self.hard_links),
                _ => warn_unknown_key(file, field, keys::FILES),
            }
        }
    }

    /// Returns the settings whose value is one of a fixed set of words, each with its key and that word. Leaves out
    /// `diagnostics_timeout`, which is a number.
    pub(super) fn choices(&self) -> Vec<([&'static str; 2], WithSource<&'static str>)> {
        let syntax = name_of(&self.syntax, SYNTAX).map(|name| (["edit", "syntax"], name));
        let matching = name_of(&self.matching, MATCH).map(|name| (["edit", "match"], name));
        let links =
            name_of(&self.hard_links, HARD_LINKS).map(|name| (["files", "hardlinks"], name));
        let diagnostics = name_of(&self.diagnostics, DIAGNOSTICS);
        let diagnostics = diagnostics.map(|name| (["edit", "diagnostics"], name));
        [syntax, matching, links, diagnostics].into_iter().flatten().collect()
    }
}

/// Reads a setting that must be one of `choices`. An invalid one is reported and leaves `slot` unchanged.
fn choose<T: Copy>(
    file: &mut ConfigFile<'_>,
    (section, field): (&str, &ConfigEntry),
    choices: &[(&str, T)],
    slot: &mut Option<WithSource<T>>,
) {
    let name = messages::key_path(&[section, &field.key]);
    let Some(given) = file.text(&name, &field.value, ExpandMode::Lenient) else { return };
    match choices.iter().find(|(name, _)| *name == given.value) {
        Some((_, choice)) => *slot = Some(WithSource::new(*choice, given.source)),
        None => {
            let known: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            file.error(field.value.at, || {
                messages::not_a_choice(&name, &known, given.as_written())
            });
        }
    }
}

fn warn_unknown_key(file: &mut ConfigFile<'_>, field: &ConfigEntry, known: &[&str]) {
    file.warn(field.at, || messages::unknown_key(&field.key, keys::nearest(&field.key, known)));
}

fn name_of<T: Copy + PartialEq>(
    given: &Option<WithSource<T>>,
    choices: &[(&'static str, T)],
) -> Option<WithSource<&'static str>> {
    let given = given.as_ref()?;
    let (name, _) = choices.iter().find(|(_, choice)| *choice == given.value)?;
    Some(WithSource::new(*name, given.source.clone()))
}
