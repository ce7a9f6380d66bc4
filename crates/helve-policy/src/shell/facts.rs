//! What is known of files, asked for by path.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::ask::Part;

/// Answers questions about files. `None` means that it cannot tell, which is never taken for a yes.
pub trait Ground {
    /// A path, absolute, with `..` and links still in it.
    fn resolve(&self, path: &str) -> Option<Resolution>;

    /// The names in a folder; none if there is no such folder.
    fn list(&self, folder: &str) -> Option<Vec<Entry>>;
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// The texts that rules are matched with, as resolved first.
    pub subjects: Vec<String>,
    /// What must be asked besides, if it lies outside the root.
    pub outside: Option<Part>,
    pub exists: bool,
}

impl Resolution {
    pub(super) fn is_new_inside(&self) -> bool {
        !self.exists && self.outside.is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub link: bool,
    pub folder: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    Resolve(String),
    List(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Resolved(Option<Resolution>),
    Listed(Option<Vec<Entry>>),
}

/// Answers that were gathered before. What is missing is noted, to be gathered for the next round:
/// a caller whose files are far away judges, answers [`Facts::missing`], and judges again.
#[derive(Debug, Default)]
pub struct Facts {
    known: HashMap<Question, Answer>,
    missing: RefCell<Vec<Question>>,
}

impl Facts {
    pub fn insert(&mut self, question: Question, answer: Answer) {
        self.known.insert(question, answer);
    }

    /// What was asked for and is not known, since the last time this was called.
    pub fn missing(&mut self) -> Vec<Question> {
        std::mem::take(self.missing.get_mut())
    }

    fn look_up(&self, question: Question) -> Option<&Answer> {
        let answer = self.known.get(&question);
        if answer.is_none() {
            let mut missing = self.missing.borrow_mut();
            if !missing.contains(&question) {
                missing.push(question);
            }
        }
        answer
    }
}

impl Ground for Facts {
    fn resolve(&self, path: &str) -> Option<Resolution> {
        match self.look_up(Question::Resolve(path.to_string())) {
            Some(Answer::Resolved(resolution)) => resolution.clone(),
            Some(Answer::Listed(_)) | None => None,
        }
    }

    fn list(&self, folder: &str) -> Option<Vec<Entry>> {
        match self.look_up(Question::List(folder.to_string())) {
            Some(Answer::Listed(entries)) => entries.clone(),
            Some(Answer::Resolved(_)) | None => None,
        }
    }
}
