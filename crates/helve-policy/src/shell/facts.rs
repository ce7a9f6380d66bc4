//! Facts about files, queried by path.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::ask::Part;

/// Answers queries about files. `None` means unknown, and never leads to permission.
pub trait FileFacts {
    /// Looks up an absolute path, in which `..` and links are not resolved yet.
    fn resolve(&self, path: &str) -> Option<PathFacts>;

    /// Lists a folder; empty if there is no such folder.
    fn list(&self, folder: &str) -> Option<Vec<DirEntry>>;
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts {
    /// The texts that rules match, the resolved one first.
    pub subjects: Vec<String>,
    /// The `external_directory` part, if the path lies outside the root.
    pub outside: Option<Part>,
    pub exists: bool,
}

impl PathFacts {
    pub(super) fn would_be_created_in_root(&self) -> bool {
        !self.exists && self.outside.is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: String,
    pub is_link: bool,
    pub is_folder: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FactQuery {
    Resolve(String),
    List(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum FactAnswer {
    Resolved(Option<PathFacts>),
    Listed(Option<Vec<DirEntry>>),
}

/// Facts that the caller gathers in rounds. A query without an answer is recorded as missing: the caller judges,
/// answers the queries of [`GatheredFacts::take_missing`], and judges again.
#[derive(Debug, Default)]
pub struct GatheredFacts {
    known: HashMap<FactQuery, FactAnswer>,
    missing: RefCell<Vec<FactQuery>>,
}

impl GatheredFacts {
    pub fn insert(&mut self, query: FactQuery, answer: FactAnswer) {
        self.known.insert(query, answer);
    }

    /// Returns the queries that could not be answered since the last call.
    pub fn take_missing(&mut self) -> Vec<FactQuery> {
        std::mem::take(self.missing.get_mut())
    }

    fn look_up(&self, query: FactQuery) -> Option<&FactAnswer> {
        let answer = self.known.get(&query);
        if answer.is_none() {
            let mut missing = self.missing.borrow_mut();
            if !missing.contains(&query) {
                missing.push(query);
            }
        }
        answer
    }
}

impl FileFacts for GatheredFacts {
    fn resolve(&self, path: &str) -> Option<PathFacts> {
        match self.look_up(FactQuery::Resolve(path.to_string())) {
            Some(FactAnswer::Resolved(facts)) => facts.clone(),
            Some(FactAnswer::Listed(_)) | None => None,
        }
    }

    fn list(&self, folder: &str) -> Option<Vec<DirEntry>> {
        match self.look_up(FactQuery::List(folder.to_string())) {
            Some(FactAnswer::Listed(entries)) => entries.clone(),
            Some(FactAnswer::Resolved(_)) | None => None,
        }
    }
}
