//! One configuration file while it is being understood: its values by type, its problems by place.

use std::path::Path;
use std::sync::Arc;

use helve_core::permission::Source;

use super::load::Outside;
use super::problem::{Problem, Severity};
use super::tree::{At, Entry, Node, What, repeated};
use super::words::{self, Said};
use super::{Given, Layer, Trust};

/// Problems told of one file; more are only counted.
const MOST_PROBLEMS: usize = 50;

pub(super) struct Page<'a> {
    pub(super) path: Arc<Path>,
    /// Where the file really is, so that it does not take itself in.
    pub(super) real: &'a Path,
    pub(super) layer: Layer,
    pub(super) standing: Standing,
    pub(super) surroundings: &'a Surroundings<'a>,
    /// Files taken in so far.
    pub(super) included: usize,
    text: &'a str,
    problems: Vec<Problem>,
    /// How many more there were, and the severity of the worst.
    untold: Option<(usize, Severity)>,
}

/// What values may refer to.
pub(super) struct Surroundings<'a> {
    pub(super) outside: &'a dyn Outside,
    pub(super) home: Option<&'a Path>,
}

/// What a file may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The user's own, or of a trusted project.
    Full,
    /// Of a project that nobody trusted yet: it narrows, and the rest waits.
    Narrows,
}

impl Standing {
    pub(super) fn of(layer: Layer, trust: Trust) -> Self {
        match (layer, trust) {
            (Layer::User, _) | (Layer::Project, Trust::Trusted) => Standing::Full,
            (Layer::Project, Trust::Untrusted) => Standing::Narrows,
        }
    }
}

/// How a value that refers to variables or files is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Put in; an unset variable is empty.
    Usual,
    /// Put in; an unset variable is a mistake, because `{env:X}*` must not become `*`.
    Strict,
    /// As written, for what is only shown until the project is trusted.
    AsWritten,
}

impl<'a> Page<'a> {
    pub(super) fn new(
        path: Arc<Path>,
        real: &'a Path,
        text: &'a str,
        (layer, standing): (Layer, Standing),
        surroundings: &'a Surroundings<'a>,
    ) -> Self {
        let (problems, untold, included) = (Vec::new(), None, 0);
        Self { path, real, layer, standing, surroundings, included, text, problems, untold }
    }

    pub(super) fn source(&self, at: At) -> Source {
        Source::File { path: self.path.clone(), line: at.line, column: at.column }
    }

    pub(super) fn error(&mut self, at: At, said: impl FnOnce() -> Said) {
        self.note(Severity::Error, at, said);
    }

    pub(super) fn warn(&mut self, at: At, said: impl FnOnce() -> Said) {
        self.note(Severity::Warning, at, said);
    }

    fn note(&mut self, severity: Severity, at: At, said: impl FnOnce() -> Said) {
        if self.problems.len() >= MOST_PROBLEMS {
            let (count, worst) = self.untold.unwrap_or((0, severity));
            self.untold = Some((count + 1, worst.max(severity)));
            return;
        }
        let problem = Problem::in_text(self.path.clone(), severity, said(), (self.text, at));
        self.problems.push(problem);
    }

    /// The problems in the order of the file.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.at);
        if let Some((count, severity)) = self.untold {
            let said = words::more_problems(count);
            self.problems.push(Problem::of_file(self.path, severity, said));
        }
        self.problems
    }

    /// The entries of an object; keys that come twice are pointed out.
    pub(super) fn map<'n>(&mut self, name: &str, node: &'n Node) -> Option<&'n [Entry]> {
        let What::Map(entries) = &node.what else {
            return self.wrong(name, node, "an object");
        };
        for (again, first) in repeated(entries) {
            self.warn(again.at, || words::repeated(&again.key, first.at));
        }
        Some(entries)
    }

    pub(super) fn flag(&mut self, name: &str, node: &Node) -> Option<Given<bool>> {
        match node.what {
            What::Bool(flag) => Some(self.given(node.at, flag)),
            _ => self.wrong(name, node, "true or false"),
        }
    }

    /// A whole number from 1 to `most`.
    pub(super) fn count(&mut self, name: &str, node: &Node, most: u64) -> Option<Given<u64>> {
        let number = match &node.what {
            What::Number(number) => number.parse().ok().filter(|count| (1..=most).contains(count)),
            _ => None,
        };
        match number {
            Some(count) => Some(self.given(node.at, count)),
            None => self.wrong(name, node, &words::count_up_to(most)),
        }
    }

    /// A number from 0 to `most`.
    pub(super) fn share(&mut self, name: &str, node: &Node, most: f64) -> Option<Given<f64>> {
        let number = match &node.what {
            What::Number(number) => number.parse().ok().filter(|it| (0.0..=most).contains(it)),
            _ => None,
        };
        match number {
            Some(number) => Some(self.given(node.at, number)),
            None => self.wrong(name, node, &words::number_up_to(most)),
        }
    }

    pub(super) fn text(
        &mut self,
        name: &str,
        node: &Node,
        reading: Reading,
    ) -> Option<Given<String>> {
        let What::Text(written) = &node.what else { return self.wrong(name, node, "a text") };
        let value = self.expand(node.at, written, reading)?;
        let written = (value != *written).then(|| written.clone());
        Some(Given { written, ..self.given(node.at, value) })
    }

    /// All or none: half a command is not a command.
    pub(super) fn texts(
        &mut self,
        name: &str,
        node: &Node,
        reading: Reading,
    ) -> Option<Vec<Given<String>>> {
        let What::List(list) = &node.what else {
            return self.wrong(name, node, "a list of texts");
        };
        let text = |(index, one)| self.text(&format!("{name}[{index}]"), one, reading);
        list.iter().enumerate().map(text).collect()
    }

    /// All or none, like [`Page::texts`].
    pub(super) fn named_texts(
        &mut self,
        name: &str,
        node: &Node,
        reading: Reading,
    ) -> Option<Vec<(String, Given<String>)>> {
        let entries = self.map(name, node)?;
        let pair = |entry: &Entry| {
            let name = format!("{name}.{}", words::key_path(&[&entry.key]));
            Some((entry.key.clone(), self.text(&name, &entry.value, reading)?))
        };
        entries.iter().map(pair).collect()
    }

    fn given<T>(&self, at: At, value: T) -> Given<T> {
        Given::new(value, self.source(at))
    }

    /// Says what was expected, and yields nothing.
    pub(super) fn wrong<T>(&mut self, name: &str, node: &Node, wanted: &str) -> Option<T> {
        self.error(node.at, || words::wrong_type(name, wanted, &node.what));
        None
    }
}
