//! What a script has set up so far: variables and the folder it is in, where both may be several or unknown.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{ShellContext, ShellLanguage, variables};

/// More variables than this are not followed.
const MAX_VARIABLES: usize = 256;
/// Longer values are not followed.
const MAX_VALUE_BYTES: usize = 4096;
/// More possible folders than this are as good as unknown.
const MAX_FOLDERS: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// One of the names that a pattern stands for, as in [`super::Word::Glob`].
    Glob(String),
    Number,
    /// A number that a command prints, or nothing where it fails.
    NumberOrEmpty,
    /// The hash of a commit, or nothing.
    CommitOrEmpty,
    /// A number, or what the name held before the script began: good for arithmetic, but not for a file name.
    NumberOrInherited,
    Unknown,
    /// The same, and names may be filled in for it where it is not quoted.
    UnknownGlob,
}

/// The folders that the shell may be in; `None` if that cannot be told.
pub(super) type PossibleFolders = Option<Vec<String>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShellState {
    /// Shared between the many ways a script may take, until one of them sets something.
    pub(super) variables: Rc<BTreeMap<String, Value>>,
    pub(super) folders: PossibleFolders,
    pub(super) previous: PossibleFolders,
    /// What `popd` comes back to, where that is known.
    pub(super) stack: Option<Vec<PossibleFolders>>,
    /// What holds if the command just before succeeded, and so after `&&`.
    pub(super) after_cd: Option<AfterCd>,
    /// There were too many variables to follow, so a name that is not listed may hold anything.
    pub(super) has_untracked: bool,
    /// Of the shell that holds it.
    language: ShellLanguage,
}

/// Where a script is after a `cd` that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AfterCd {
    pub(super) folders: PossibleFolders,
    pub(super) previous: PossibleFolders,
    pub(super) stack: Option<Vec<PossibleFolders>>,
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
            folders: Some(vec![context.cwd.clone()]),
            previous: None,
            stack: Some(Vec::new()),
            after_cd: None,
            has_untracked: false,
            language: context.language,
        }
    }

    /// What another shell starts with that is started here: of variables only those that were handed on, and which those
    /// are is not told.
    pub(super) fn for_new_shell(&self, context: &ShellContext, language: ShellLanguage) -> Self {
        let fresh = Self::new(context);
        let has_untracked = self.has_untracked || self.variables != fresh.variables;
        let (folders, previous) = (self.folders.clone(), self.previous.clone());
        Self { folders, previous, has_untracked, language, ..fresh }
    }

    /// What the name holds. A name that the script never set comes from outside.
    pub(super) fn value(&self, name: &str) -> Value {
        let known = match name {
            "PWD" => single(&self.folders),
            "OLDPWD" => single(&self.previous),
            _ => None,
        };
        known
            .map(Value::Text)
            .or_else(|| self.variables.get(name).cloned())
            .unwrap_or(Value::Unknown)
    }

    /// An assignment. A name that was set before may hold on to what it holds: it may be read-only.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        let value = match self.variables.get(name) {
            Some(held) => held.clone().or(&value),
            None => value,
        };
        self.replace(name, value);
    }

    /// An assignment that may not happen.
    pub(super) fn maybe_set(&mut self, name: &str, value: &Value) {
        let held = self.variables.get(name).cloned().unwrap_or_else(|| self.initial_value(name));
        self.replace(name, held.or(value));
    }

    /// What a name holds that is set here for the first time.
    fn initial_value(&self, name: &str) -> Value {
        if self.has_untracked || variables::is_set_by_shell(name, self.language) {
            Value::Unknown
        } else {
            Value::NumberOrInherited
        }
    }

    /// Gives a name a value that it certainly has from here on. What the shell fills itself has none.
    pub(super) fn replace(&mut self, name: &str, value: Value) {
        let value =
            if variables::is_set_by_shell(name, self.language) { Value::Unknown } else { value };
        if self.variables.len() >= MAX_VARIABLES && !self.variables.contains_key(name) {
            self.has_untracked = true;
            return;
        }
        let value = match value {
            Value::Text(text) | Value::Glob(text) if text.len() > MAX_VALUE_BYTES => Value::Unknown,
            value => value,
        };
        Rc::make_mut(&mut self.variables).insert(name.to_string(), value);
    }

    /// Forgets `$1` and those after it.
    pub(super) fn forget_positional(&mut self) {
        let variables = Rc::make_mut(&mut self.variables);
        variables.retain(|name, _| !name.starts_with(|c: char| ('1'..='9').contains(&c)));
    }

    /// Forgets all values, and that other names were never set.
    pub(super) fn forget_variables(&mut self) {
        Rc::make_mut(&mut self.variables).values_mut().for_each(|value| *value = Value::Unknown);
        self.has_untracked = true;
    }

    /// Forgets all values, and the folder.
    pub(super) fn forget(&mut self) {
        self.forget_variables();
        self.folders = None;
        self.stack = None;
    }

    /// Whether a name holds a number, or what it held before the script began.
    pub(super) fn is_number_or_inherited(&self, name: &str) -> bool {
        let never_set = !self.has_untracked && !variables::is_set_by_shell(name, self.language);
        self.variables.get(name).map_or(never_set, Value::is_number_or_inherited)
    }

    /// What holds when either of two ways was taken.
    pub(super) fn join(&mut self, other: &ShellState) {
        self.after_cd = None;
        self.has_untracked |= other.has_untracked;
        self.folders = union(&self.folders, &other.folders);
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
        let held = |state: &ShellState, name: &str| {
            state.variables.get(name).cloned().unwrap_or_else(|| self.initial_value(name))
        };
        let joined = names.map(|name| (name.clone(), held(self, name).or(&held(other, name))));
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
            | Value::NumberOrInherited
            | Value::Unknown
            | Value::UnknownGlob => false,
        }
    }

    /// The text, where it is known.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Glob(_)
            | Value::Number
            | Value::NumberOrEmpty
            | Value::CommitOrEmpty
            | Value::NumberOrInherited
            | Value::Unknown
            | Value::UnknownGlob => None,
        }
    }

    pub(super) fn is_wild(&self) -> bool {
        match self {
            Value::Glob(_) | Value::UnknownGlob => true,
            Value::Text(text) => text.contains(['*', '?', '[']),
            Value::Number
            | Value::NumberOrEmpty
            | Value::CommitOrEmpty
            | Value::NumberOrInherited
            | Value::Unknown => false,
        }
    }

    fn is_number_or_inherited(&self) -> bool {
        self.is_number() || *self == Value::NumberOrInherited
    }

    pub(super) fn or(self, other: &Value) -> Value {
        if self == *other {
            self
        } else if self.is_number() && other.is_number() {
            let printed = self == Value::NumberOrEmpty || *other == Value::NumberOrEmpty;
            if printed { Value::NumberOrEmpty } else { Value::Number }
        } else if self.is_number_or_inherited() && other.is_number_or_inherited() {
            Value::NumberOrInherited
        } else if self.is_wild() || other.is_wild() {
            Value::UnknownGlob
        } else {
            Value::Unknown
        }
    }
}

fn single(folders: &PossibleFolders) -> Option<String> {
    match folders.as_deref() {
        Some([folder]) => Some(folder.clone()),
        _ => None,
    }
}

/// All folders of both.
pub(super) fn union(one: &PossibleFolders, other: &PossibleFolders) -> PossibleFolders {
    let mut all = one.clone()?;
    for folder in other.as_ref()? {
        if !all.contains(folder) {
            all.push(folder.clone());
        }
    }
    (all.len() <= MAX_FOLDERS).then_some(all)
}

/// `path` seen from `folder`, with `..` and links left in it.
pub(super) fn join_path(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_string();
    }
    format!("{}/{path}", folder.trim_end_matches('/'))
}

/// The folder that `cd` goes to: it removes `..` by name, without looking at links.
pub(super) fn normalize(folder: &str, path: &str) -> String {
    let joined = join_path(folder, path);
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
