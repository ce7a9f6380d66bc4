//! The state of the shell at a point of a script: variables and working directory, as far as they are known.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{ShellContext, ShellLanguage, variables};

/// Maximum number of variables that are tracked.
const MAX_VARIABLES: usize = 256;
/// Maximum length of a value that is tracked.
const MAX_VALUE_BYTES: usize = 4096;
/// Maximum number of possible working directories. With more, the directory is unknown.
const MAX_DIRS: usize = 8;

/// What is known about the value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// Text that is fully known.
    Text(String),
    /// One of the names that a glob matches, in the form of [`super::Word::Glob`].
    Glob(String),
    Number,
    /// A number from a command, or empty if the command fails.
    NumberOrEmpty,
    /// A commit hash, or empty.
    CommitOrEmpty,
    /// The elements of an array, of which there is at least one.
    Words(Vec<String>),
    /// A name from a listing, see [`super::DynamicKind::Listed`].
    Listed(usize),
    /// A number, or the value from before the script. Safe in arithmetic, but not as a file name.
    NumberOrInherited,
    Unknown,
    /// Unknown, and the unquoted value may be expanded as a glob.
    UnknownGlob,
}

/// The possible working directories; `None` if unknown.
pub(super) type PossibleDirs = Option<Vec<String>>;

/// Variables and directories, as far as they are known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShellState {
    /// Shared between the branches of a script until one of them sets something.
    pub(super) variables: Rc<BTreeMap<String, Value>>,
    pub(super) dirs: PossibleDirs,
    /// The directory that `cd -` returns to.
    pub(super) previous: PossibleDirs,
    /// The directory stack of `pushd`, if known.
    pub(super) stack: Option<Vec<PossibleDirs>>,
    /// Set if the last command was a `cd`: the directories after it succeeded. A command after `&&` starts from these.
    pub(super) state_if_cd_succeeds: Option<StateAfterSuccessfulCd>,
    /// Whether the script may have set a variable that is not in `variables`.
    pub(super) has_untracked: bool,
    /// The language of the shell that has this state.
    language: ShellLanguage,
    /// The directory in which the script starts, if it is the top of a git repository.
    repository_top: Option<String>,
}

/// The working directory after a `cd` that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StateAfterSuccessfulCd {
    pub(super) dirs: PossibleDirs,
    pub(super) previous: PossibleDirs,
    pub(super) stack: Option<Vec<PossibleDirs>>,
}

impl ShellState {
    pub(super) fn new(context: &ShellContext) -> Self {
        let mut variables = BTreeMap::new();
        variables.insert("IFS".to_string(), Value::Text(" \t\n".into()));
        if let Some(home) = &context.home {
            variables.insert("HOME".to_string(), Value::Text(home.clone()));
        }
        for name in ["?", "#", "$", "PPID", "LINENO"] {
            variables.insert(name.to_string(), Value::Number);
        }
        // Not every shell has these.
        for name in ["!", "UID", "EUID", "RANDOM", "SECONDS"] {
            variables.insert(name.to_string(), Value::NumberOrEmpty);
        }
        Self {
            variables: Rc::new(variables),
            dirs: Some(vec![context.cwd.clone()]),
            previous: None,
            stack: Some(Vec::new()),
            state_if_cd_succeeds: None,
            has_untracked: false,
            language: context.language,
            repository_top: context.is_repository_top.then(|| context.cwd.clone()),
        }
    }

    /// Returns the state of a shell that is started from this one. It inherits exported variables, but it is unknown
    /// which these are.
    pub(super) fn for_new_shell(&self, context: &ShellContext, language: ShellLanguage) -> Self {
        let fresh = Self::new(context);
        let has_untracked = self.has_untracked || self.variables != fresh.variables;
        let (dirs, previous) = (self.dirs.clone(), self.previous.clone());
        Self { dirs, previous, has_untracked, language, ..fresh }
    }

    /// Returns the top of the git repository around the working directory, if that is certain.
    pub(super) fn repository_top(&self) -> Option<String> {
        self.repository_top.clone().filter(|top| only_dir(&self.dirs).as_ref() == Some(top))
    }

    /// Returns the value of a variable. If the script never set it, it comes from the environment and is unknown.
    pub(super) fn value(&self, name: &str) -> Value {
        let dir = match name {
            "PWD" => only_dir(&self.dirs),
            "OLDPWD" => only_dir(&self.previous),
            _ => None,
        };
        dir.map(Value::Text).or_else(|| self.variables.get(name).cloned()).unwrap_or(Value::Unknown)
    }

    /// Assigns a variable. A variable that was set before may keep its old value, because it may be read-only.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        let value = match self.variables.get(name) {
            Some(current) => current.clone().merge(&value),
            None => value,
        };
        self.replace(name, value);
    }

    /// Records an assignment that may not happen.
    pub(super) fn maybe_set(&mut self, name: &str, value: &Value) {
        let current = self.variables.get(name).cloned().unwrap_or_else(|| self.initial_value(name));
        self.replace(name, current.merge(value));
    }

    /// Returns the value of a variable before its first assignment.
    fn initial_value(&self, name: &str) -> Value {
        if self.has_untracked || variables::is_set_by_shell(name, self.language) {
            Value::Unknown
        } else {
            Value::NumberOrInherited
        }
    }

    /// Gives a variable a value that it certainly has from here on, unless the shell itself sets it.
    pub(super) fn replace(&mut self, name: &str, value: Value) {
        let value =
            if variables::is_set_by_shell(name, self.language) { Value::Unknown } else { value };
        if self.variables.len() >= MAX_VARIABLES && !self.variables.contains_key(name) {
            self.has_untracked = true;
            return;
        }
        let value = match value {
            Value::Text(text) | Value::Glob(text) if text.len() > MAX_VALUE_BYTES => Value::Unknown,
            Value::Words(words)
                if words.iter().map(String::len).sum::<usize>() > MAX_VALUE_BYTES =>
            {
                Value::Unknown
            }
            value => value,
        };
        Rc::make_mut(&mut self.variables).insert(name.to_string(), value);
    }

    /// Forgets `$1` and so on.
    pub(super) fn forget_positional(&mut self) {
        let variables = Rc::make_mut(&mut self.variables);
        variables.retain(|name, _| !name.starts_with(|c: char| ('1'..='9').contains(&c)));
    }

    /// Forgets all values. Any other variable may have been set too.
    pub(super) fn forget_variables(&mut self) {
        Rc::make_mut(&mut self.variables).values_mut().for_each(|value| *value = Value::Unknown);
        self.has_untracked = true;
    }

    /// Forgets all values and the working directory.
    pub(super) fn forget_all(&mut self) {
        self.forget_variables();
        self.dirs = None;
        self.stack = None;
    }

    /// Whether a variable holds a number, or its value from before the script.
    pub(super) fn is_number_or_inherited(&self, name: &str) -> bool {
        let never_set = !self.has_untracked && !variables::is_set_by_shell(name, self.language);
        self.variables.get(name).map_or(never_set, Value::is_number_or_inherited)
    }

    /// Merges the states of two branches.
    pub(super) fn join(&mut self, other: &ShellState) {
        self.state_if_cd_succeeds = None;
        self.has_untracked |= other.has_untracked;
        self.dirs = union_dirs(&self.dirs, &other.dirs);
        if self.previous != other.previous {
            self.previous = None;
        }
        if self.stack != other.stack {
            self.stack = None;
        }
        if Rc::ptr_eq(&self.variables, &other.variables) {
            return;
        }
        let names = self.variables.keys().chain(other.variables.keys());
        let value_in = |state: &ShellState, name: &str| {
            state.variables.get(name).cloned().unwrap_or_else(|| self.initial_value(name))
        };
        let joined =
            names.map(|name| (name.clone(), value_in(self, name).merge(&value_in(other, name))));
        self.variables = Rc::new(joined.collect());
    }
}

impl Value {
    pub(super) fn is_number(&self) -> bool {
        match self {
            Value::Number | Value::NumberOrEmpty => true,
            Value::Text(text) => !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()),
            Value::Glob(_)
            | Value::CommitOrEmpty
            | Value::Words(_)
            | Value::Listed(_)
            | Value::NumberOrInherited
            | Value::Unknown
            | Value::UnknownGlob => false,
        }
    }

    /// Returns the value if it is known text.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Glob(_)
            | Value::Number
            | Value::NumberOrEmpty
            | Value::CommitOrEmpty
            | Value::Words(_)
            | Value::Listed(_)
            | Value::NumberOrInherited
            | Value::Unknown
            | Value::UnknownGlob => None,
        }
    }

    pub(super) fn may_be_glob(&self) -> bool {
        match self {
            Value::Glob(_) | Value::UnknownGlob => true,
            Value::Text(text) => text.contains(['*', '?', '[']),
            Value::Words(words) => words.iter().any(|it| it.contains(['*', '?', '['])),
            Value::Number
            | Value::NumberOrEmpty
            | Value::CommitOrEmpty
            | Value::Listed(_)
            | Value::NumberOrInherited
            | Value::Unknown => false,
        }
    }

    fn is_number_or_inherited(&self) -> bool {
        self.is_number() || *self == Value::NumberOrInherited
    }

    /// Returns what is known about a variable that has either of two values.
    pub(super) fn merge(self, other: &Value) -> Value {
        if self == *other {
            self
        } else if self.is_number() && other.is_number() {
            let may_be_empty = self == Value::NumberOrEmpty || *other == Value::NumberOrEmpty;
            if may_be_empty { Value::NumberOrEmpty } else { Value::Number }
        } else if self.is_number_or_inherited() && other.is_number_or_inherited() {
            Value::NumberOrInherited
        } else if self.may_be_glob() || other.may_be_glob() {
            Value::UnknownGlob
        } else {
            Value::Unknown
        }
    }
}

fn only_dir(dirs: &PossibleDirs) -> Option<String> {
    match dirs.as_deref() {
        Some([dir]) => Some(dir.clone()),
        _ => None,
    }
}

/// Returns the directories of both sets, or `None` if there are too many.
pub(super) fn union_dirs(one: &PossibleDirs, other: &PossibleDirs) -> PossibleDirs {
    let mut all = one.clone()?;
    for dir in other.as_ref()? {
        if !all.contains(dir) {
            all.push(dir.clone());
        }
    }
    (all.len() <= MAX_DIRS).then_some(all)
}

/// Joins a path to a directory. `..` and symbolic links are not resolved.
pub(super) fn join_path(dir: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_string();
    }
    format!("{}/{path}", dir.trim_end_matches('/'))
}

/// Returns the directory that `cd` enters. `..` is removed lexically, without looking at symbolic links.
pub(super) fn normalize(dir: &str, path: &str) -> String {
    let joined = join_path(dir, path);
    let mut names: Vec<&str> = Vec::new();
    for name in joined.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}
