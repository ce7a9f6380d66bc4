//! How files are changed: `edit` and `files`.

use super::page::{Page, Reading};
use super::tree::{Entry, Node};
use super::{Given, keys, words};

/// What was chosen about changes to files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    pub syntax: Option<Given<SyntaxCheck>>,
    pub matching: Option<Given<Matching>>,
    pub hard_links: Option<Given<HardLinks>>,
}

/// `edit.syntax`: what becomes of a change that brings in faults of syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxCheck {
    Report,
    Off,
    Refuse,
}

/// `edit.match`: how much a quotation may differ from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    Safe,
    Exact,
}

/// `files.hardlinks`: what becomes of the other names of a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardLinks {
    Replace,
    InPlace,
}

const SYNTAX: &[(&str, SyntaxCheck)] =
    &[("report", SyntaxCheck::Report), ("off", SyntaxCheck::Off), ("refuse", SyntaxCheck::Refuse)];
const MATCH: &[(&str, Matching)] = &[("safe", Matching::Safe), ("exact", Matching::Exact)];
const HARD_LINKS: &[(&str, HardLinks)] =
    &[("replace", HardLinks::Replace), ("in-place", HardLinks::InPlace)];

impl Changes {
    pub(super) fn edit(&mut self, page: &mut Page<'_>, node: &Node) {
        for field in page.map("edit", node).unwrap_or_default() {
            match field.key.as_str() {
                "syntax" => choose(page, ("edit", field), SYNTAX, &mut self.syntax),
                "match" => choose(page, ("edit", field), MATCH, &mut self.matching),
                _ => unknown(page, field, keys::EDIT),
            }
        }
    }

    pub(super) fn files(&mut self, page: &mut Page<'_>, node: &Node) {
        for field in page.map("files", node).unwrap_or_default() {
            match field.key.as_str() {
                "hardlinks" => choose(page, ("files", field), HARD_LINKS, &mut self.hard_links),
                _ => unknown(page, field, keys::FILES),
            }
        }
    }

    /// Every choice with its key and its word.
    pub(super) fn each(&self) -> Vec<([&'static str; 2], Given<&'static str>)> {
        let syntax = worded(&self.syntax, SYNTAX).map(|word| (["edit", "syntax"], word));
        let matching = worded(&self.matching, MATCH).map(|word| (["edit", "match"], word));
        let links = worded(&self.hard_links, HARD_LINKS).map(|word| (["files", "hardlinks"], word));
        [syntax, matching, links].into_iter().flatten().collect()
    }
}

/// Takes one of a few words; any other leaves what was chosen before.
fn choose<T: Copy>(
    page: &mut Page<'_>,
    (section, field): (&str, &Entry),
    choices: &[(&str, T)],
    slot: &mut Option<Given<T>>,
) {
    let name = words::key_path(&[section, &field.key]);
    let Some(given) = page.text(&name, &field.value, Reading::Usual) else { return };
    match choices.iter().find(|(word, _)| *word == given.value) {
        Some((_, choice)) => *slot = Some(Given::new(*choice, given.source)),
        None => {
            let known: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            page.error(field.value.at, || words::not_a_choice(&name, &known, given.shown()));
        }
    }
}

fn unknown(page: &mut Page<'_>, field: &Entry, known: &[&str]) {
    page.warn(field.at, || words::unknown_key(&field.key, keys::nearest(&field.key, known)));
}

fn worded<T: Copy + PartialEq>(
    given: &Option<Given<T>>,
    choices: &[(&'static str, T)],
) -> Option<Given<&'static str>> {
    let given = given.as_ref()?;
    let (word, _) = choices.iter().find(|(_, choice)| *choice == given.value)?;
    Some(Given::new(*word, given.source.clone()))
}
