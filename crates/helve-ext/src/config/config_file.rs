//! One configuration file while it is read: typed access to its values, and its problems.

use std::path::Path;
use std::sync::Arc;

use helve_core::Source;

use super::includes::IncludedFiles;
use super::load::ConfigHost;
use super::messages::{self, ProblemText};
use super::problem::{ConfigProblem, Severity};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position, repeated};
use super::{ConfigLayer, Trust, WithSource, keys};

/// Maximum number of problems reported per file. Further ones are only counted.
const MAX_PROBLEMS: usize = 50;

pub(super) struct ConfigFile<'a> {
    pub(super) path: Arc<Path>,
    /// The path with links resolved, to detect a file that includes itself.
    pub(super) real: &'a Path,
    pub(super) layer: ConfigLayer,
    pub(super) authority: Authority,
    pub(super) context: &'a FileContext<'a>,
    /// Number of files included so far.
    pub(super) included: usize,
    text: &'a str,
    problems: Vec<ConfigProblem>,
    /// Number of unreported problems and the worst severity among them.
    unreported: Option<(usize, Severity)>,
}

/// What is needed to interpret a configuration file: where `{env:…}` and `{file:…}` are looked up, and which tools
/// exist.
pub(super) struct FileContext<'a> {
    pub(super) host: &'a dyn ConfigHost,
    pub(super) home: Option<&'a Path>,
    /// The files that a project includes, with the contents that trust in the project covers.
    pub(super) included: &'a IncludedFiles,
    /// Names of files with custom tools, without their endings.
    pub(super) tool_files: &'a [String],
}

impl FileContext<'_> {
    /// Returns the current name for an old name of a tool or permission. A name that a custom tool has is returned
    /// unchanged.
    pub(super) fn current_name<'k>(&self, key: &'k str) -> &'k str {
        if self.has_custom_tool(key) { key } else { keys::current_name(key) }
    }

    /// Whether a file of the user or the project can define a tool of this name.
    pub(super) fn has_custom_tool(&self, name: &str) -> bool {
        self.tool_files.iter().any(|file| {
            name.strip_prefix(file.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    }
}

/// What a file may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authority {
    /// Everything: a file of the user or of a trusted project.
    Full,
    /// Only restrict policy further: a file of an untrusted project. Its other settings have no effect until it is
    /// trusted.
    RestrictOnly,
}

impl Authority {
    pub(super) fn of(layer: ConfigLayer, trust: Trust) -> Self {
        match (layer, trust) {
            (ConfigLayer::User, _) | (ConfigLayer::Project, Trust::Trusted) => Authority::Full,
            (ConfigLayer::Project, Trust::Untrusted) => Authority::RestrictOnly,
        }
    }
}

/// How references to variables and files are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpandMode {
    /// Expanded. An unset variable is empty.
    Lenient,
    /// Expanded. An unset variable is an error, because `{env:X}*` must not become `*`.
    Strict,
    /// Not expanded, for values that are only shown until the project is trusted.
    Verbatim,
}

impl<'a> ConfigFile<'a> {
    pub(super) fn new(
        path: Arc<Path>,
        real: &'a Path,
        text: &'a str,
        (layer, authority): (ConfigLayer, Authority),
        context: &'a FileContext<'a>,
    ) -> Self {
        let (problems, unreported, included) = (Vec::new(), None, 0);
        Self { path, real, layer, authority, context, included, text, problems, unreported }
    }

    pub(super) fn source(&self, at: Position) -> Source {
        Source::File { path: self.path.clone(), line: at.line, column: at.column }
    }

    pub(super) fn error(&mut self, at: Position, text: impl FnOnce() -> ProblemText) {
        self.add_problem(Severity::Error, at, text);
    }

    pub(super) fn warn(&mut self, at: Position, text: impl FnOnce() -> ProblemText) {
        self.add_problem(Severity::Warning, at, text);
    }

    pub(super) fn note(&mut self, at: Position, text: impl FnOnce() -> ProblemText) {
        self.add_problem(Severity::Note, at, text);
    }

    fn add_problem(
        &mut self,
        severity: Severity,
        at: Position,
        text: impl FnOnce() -> ProblemText,
    ) {
        if self.problems.len() >= MAX_PROBLEMS {
            let (count, worst) = self.unreported.unwrap_or((0, severity));
            self.unreported = Some((count + 1, worst.max(severity)));
            return;
        }
        let problem = ConfigProblem::in_text(self.path.clone(), severity, text(), (self.text, at));
        self.problems.push(problem);
    }

    pub(super) fn problem_count(&self) -> usize {
        self.problems.len()
    }

    /// Keeps only the first `count` problems.
    pub(super) fn forget_problems_after(&mut self, count: usize) {
        self.problems.truncate(count);
    }

    /// Returns the problems in the order of the file.
    pub(super) fn into_problems(mut self) -> Vec<ConfigProblem> {
        self.problems.sort_by_key(|problem| problem.at);
        if let Some((count, severity)) = self.unreported {
            let text = messages::more_problems(count);
            self.problems.push(ConfigProblem::of_file(self.path, severity, text));
        }
        self.problems
    }

    /// Returns the entries of an object. Warns about repeated keys.
    pub(super) fn map<'n>(
        &mut self,
        name: &str,
        node: &'n ConfigNode,
    ) -> Option<&'n [ConfigEntry]> {
        let ConfigValue::Map(entries) = &node.data else {
            return self.wrong_type(name, node, "an object");
        };
        for (again, first) in repeated(entries) {
            self.warn(again.at, || messages::repeated(&again.key, first.at));
        }
        Some(entries)
    }

    pub(super) fn flag(&mut self, name: &str, node: &ConfigNode) -> Option<WithSource<bool>> {
        match node.data {
            ConfigValue::Bool(flag) => Some(self.with_source(node.at, flag)),
            _ => self.wrong_type(name, node, "true or false"),
        }
    }

    /// Reads a whole number from 1 to `max`.
    pub(super) fn positive(
        &mut self,
        name: &str,
        node: &ConfigNode,
        max: u64,
    ) -> Option<WithSource<u64>> {
        let number = match &node.data {
            ConfigValue::Number(number) => {
                number.parse().ok().filter(|count| (1..=max).contains(count))
            }
            _ => None,
        };
        match number {
            Some(count) => Some(self.with_source(node.at, count)),
            None => self.wrong_type(name, node, &messages::positive_up_to(max)),
        }
    }

    /// Reads a number from 0 to `max`.
    pub(super) fn number(
        &mut self,
        name: &str,
        node: &ConfigNode,
        max: f64,
    ) -> Option<WithSource<f64>> {
        let number = match &node.data {
            ConfigValue::Number(number) => {
                number.parse().ok().filter(|number| (0.0..=max).contains(number))
            }
            _ => None,
        };
        match number {
            Some(number) => Some(self.with_source(node.at, number)),
            None => self.wrong_type(name, node, &messages::number_up_to(max)),
        }
    }

    pub(super) fn text(
        &mut self,
        name: &str,
        node: &ConfigNode,
        expansion: ExpandMode,
    ) -> Option<WithSource<String>> {
        let ConfigValue::Text(raw) = &node.data else {
            return self.wrong_type(name, node, "a string");
        };
        let value = self.expand(node.at, raw, expansion)?;
        let raw = (value != *raw).then(|| raw.clone());
        Some(WithSource { raw, ..self.with_source(node.at, value) })
    }

    /// Reads a list of strings. Any invalid item makes the whole list invalid.
    pub(super) fn texts(
        &mut self,
        name: &str,
        node: &ConfigNode,
        expansion: ExpandMode,
    ) -> Option<Vec<WithSource<String>>> {
        let ConfigValue::List(list) = &node.data else {
            return self.wrong_type(name, node, "a list of strings");
        };
        let text = |(index, one)| self.text(&format!("{name}[{index}]"), one, expansion);
        list.iter().enumerate().map(text).collect()
    }

    /// Reads an object of strings. Any invalid member makes the whole object invalid.
    pub(super) fn named_texts(
        &mut self,
        name: &str,
        node: &ConfigNode,
        expansion: ExpandMode,
    ) -> Option<Vec<(String, WithSource<String>)>> {
        let entries = self.map(name, node)?;
        let pair = |entry: &ConfigEntry| {
            let name = format!("{name}.{}", messages::key_path(&[&entry.key]));
            Some((entry.key.clone(), self.text(&name, &entry.value, expansion)?))
        };
        entries.iter().map(pair).collect()
    }

    fn with_source<T>(&self, at: Position, value: T) -> WithSource<T> {
        WithSource::new(value, self.source(at))
    }

    /// Reports the expected type and returns `None`.
    pub(super) fn wrong_type<T>(
        &mut self,
        name: &str,
        node: &ConfigNode,
        expected: &str,
    ) -> Option<T> {
        self.error(node.at, || messages::wrong_type(name, expected, &node.data));
        None
    }
}
