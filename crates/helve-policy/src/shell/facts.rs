//! Facts about files, queried by path.

use std::cell::RefCell;
use std::collections::HashMap;

use helve_text::shell::TreeFilter;

use crate::ask::Part;
use crate::command::Command;

/// Answers queries about files. `None` means that the answer is unknown. Unknown files are asked about.
pub trait FileFacts {
    /// Looks up an absolute path. It may contain `..` and links.
    fn resolve(&self, path: &str) -> Option<PathFacts>;

    /// Lists a folder; empty if there is no such folder.
    fn list(&self, folder: &str) -> Option<Vec<DirEntry>>;

    /// Returns the files below a folder that a rule may ask about or deny. The result may contain other files too.
    fn tree(&self, query: &TreeQuery) -> Option<TreeFiles>;

    /// Looks up where the shell finds a program. The name contains no slash.
    fn program(&self, name: &str) -> Option<ProgramPlace>;
}

/// Where the shell finds a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramPlace {
    /// In a folder of the workspace. Holds the program's path, relative to the root.
    Workspace(String),
    /// Elsewhere, or nowhere.
    Elsewhere,
}

/// The result of [`FileFacts::tree`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeFiles {
    pub files: Vec<PathFacts>,
    /// Whether some files were not checked, because that would have taken too long.
    pub is_partial: bool,
}

/// A folder that a command accesses with everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeQuery {
    /// Absolute path. It may contain `..` and links.
    pub folder: String,
    /// The path to which the folder is copied or moved. The files are judged as if they were below it.
    pub destination: Option<String>,
    pub filter: TreeFilter,
    /// `read` or `edit`.
    pub permission: &'static str,
    /// The command; `None` for a redirect.
    pub command: Option<Box<Command>>,
}

/// Facts about one path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts {
    /// The texts that rules match, the resolved one first.
    pub subjects: Vec<String>,
    /// The `external_directory` part, if the path lies outside the root.
    pub outside: Option<Part>,
    pub exists: bool,
    pub is_folder: bool,
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
    Tree(TreeQuery),
    Program(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum FactAnswer {
    Resolved(Option<PathFacts>),
    Listed(Option<Vec<DirEntry>>),
    Tree(Option<TreeFiles>),
    Program(Option<ProgramPlace>),
}

/// Facts that the caller gathers in rounds: it judges a script, answers the queries of [`GatheredFacts::take_missing`],
/// and judges again, until no query is missing.
#[derive(Debug, Default)]
pub struct GatheredFacts {
    known: HashMap<FactQuery, FactAnswer>,
    missing: RefCell<Vec<FactQuery>>,
    /// Whether `PATH` contains a folder of the workspace. If not, programs are not looked up.
    looks_for_programs: bool,
}

impl GatheredFacts {
    /// Facts for a shell whose `PATH` contains a folder of the workspace.
    pub fn with_programs_of_workspace() -> Self {
        Self { looks_for_programs: true, ..Self::default() }
    }

    pub fn insert(&mut self, query: FactQuery, answer: FactAnswer) {
        self.known.insert(query, answer);
    }

    /// Returns the queries since the last call that had no answer.
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
            Some(FactAnswer::Listed(_) | FactAnswer::Tree(_) | FactAnswer::Program(_)) | None => {
                None
            }
        }
    }

    fn list(&self, folder: &str) -> Option<Vec<DirEntry>> {
        match self.look_up(FactQuery::List(folder.to_string())) {
            Some(FactAnswer::Listed(entries)) => entries.clone(),
            Some(FactAnswer::Resolved(_) | FactAnswer::Tree(_) | FactAnswer::Program(_)) | None => {
                None
            }
        }
    }

    fn tree(&self, query: &TreeQuery) -> Option<TreeFiles> {
        match self.look_up(FactQuery::Tree(query.clone())) {
            Some(FactAnswer::Tree(files)) => files.clone(),
            Some(FactAnswer::Resolved(_) | FactAnswer::Listed(_) | FactAnswer::Program(_))
            | None => None,
        }
    }

    fn program(&self, name: &str) -> Option<ProgramPlace> {
        if !self.looks_for_programs {
            return Some(ProgramPlace::Elsewhere);
        }
        match self.look_up(FactQuery::Program(name.to_string())) {
            Some(FactAnswer::Program(place)) => place.clone(),
            Some(FactAnswer::Resolved(_) | FactAnswer::Listed(_) | FactAnswer::Tree(_)) | None => {
                None
            }
        }
    }
}
