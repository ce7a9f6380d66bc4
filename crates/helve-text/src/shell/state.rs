//! What a script has set up so far: variables and the folder it is in, where both may be several or unknown.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Language, Surroundings, variables};

/// More variables than this are not followed.
const VARIABLES: usize = 256;
/// Longer values are not followed.
const LONGEST_VALUE: usize = 4096;
/// More possible folders than this are as good as unknown.
const FOLDERS: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// One of the names that a pattern stands for, as in [`super::Word::Glob`].
    Glob(String),
    Number,
    /// A number that a command prints, or nothing where it fails.
    Printed,
    /// The hash of a commit, or nothing.
    Commit,
    /// A number, or what the name held before the script began: good for arithmetic, but not for a file name.
    Counted,
    Unknown,
    /// The same, and names may be filled in for it where it is not quoted.
    Wild,
}

/// The folders that the shell may be in; `None` if that cannot be told.
pub(super) type Folders = Option<Vec<String>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// Shared between the many ways a script may take, until one of them sets something.
    pub(super) variables: Rc<BTreeMap<String, Value>>,
    pub(super) folders: Folders,
    pub(super) previous: Folders,
    /// What `popd` comes back to, where that is known.
    pub(super) stack: Option<Vec<Folders>>,
    /// What holds if the command just before succeeded, and so after `&&`.
    pub(super) entered: Option<Entered>,
    /// There were too many variables to follow, so a name that is not listed may hold anything.
    pub(super) crowded: bool,
    /// Of the shell that holds it.
    language: Language,
}

/// Where a script is after a `cd` that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entered {
    pub(super) folders: Folders,
    pub(super) previous: Folders,
    pub(super) stack: Option<Vec<Folders>>,
}

impl State {
    pub(super) fn new(around: &Surroundings) -> Self {
        let mut variables = BTreeMap::new();
        variables.insert("IFS".to_string(), Value::Text(" \t\n".into()));
        if let Some(home) = &around.home {
            variables.insert("HOME".to_string(), Value::Text(home.clone()));
        }
        for name in ["?", "#", "$", "PPID", "LINENO"] {
            variables.insert(name.to_string(), Value::Number);
        }
        // Not every shell has these.
        for name in ["!", "UID", "EUID", "RANDOM", "SECONDS"] {
            variables.insert(name.to_string(), Value::Printed);
        }
        Self {
            variables: Rc::new(variables),
            folders: Some(vec![around.folder.clone()]),
            previous: None,
            stack: Some(Vec::new()),
            entered: None,
            crowded: false,
            language: around.shell,
        }
    }

    /// What another shell starts with that is started here: of variables only those that were handed on, and which those
    /// are is not told.
    pub(super) fn of_another_shell(&self, around: &Surroundings, language: Language) -> Self {
        let fresh = Self::new(around);
        let crowded = self.crowded || self.variables != fresh.variables;
        let (folders, previous) = (self.folders.clone(), self.previous.clone());
        Self { folders, previous, crowded, language, ..fresh }
    }

    /// What the name holds. A name that the script never set comes from outside.
    pub(super) fn value(&self, name: &str) -> Value {
        let known = match name {
            "PWD" => only(&self.folders),
            "OLDPWD" => only(&self.previous),
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
    pub(super) fn perhaps(&mut self, name: &str, value: &Value) {
        let held = self.variables.get(name).cloned().unwrap_or_else(|| self.never_set(name));
        self.replace(name, held.or(value));
    }

    /// What a name holds that is set here for the first time.
    fn never_set(&self, name: &str) -> Value {
        if self.crowded || variables::is_filled(name, self.language) {
            Value::Unknown
        } else {
            Value::Counted
        }
    }

    /// Gives a name a value that it certainly has from here on. What the shell fills itself has none.
    pub(super) fn replace(&mut self, name: &str, value: Value) {
        let value = if variables::is_filled(name, self.language) { Value::Unknown } else { value };
        if self.variables.len() >= VARIABLES && !self.variables.contains_key(name) {
            self.crowded = true;
            return;
        }
        let value = match value {
            Value::Text(text) | Value::Glob(text) if text.len() > LONGEST_VALUE => Value::Unknown,
            value => value,
        };
        Rc::make_mut(&mut self.variables).insert(name.to_string(), value);
    }

    /// Forgets `$1` and those after it.
    pub(super) fn forget_operands(&mut self) {
        let variables = Rc::make_mut(&mut self.variables);
        variables.retain(|name, _| !name.starts_with(|c: char| ('1'..='9').contains(&c)));
    }

    /// Forgets all values, and that other names were never set.
    pub(super) fn forget_variables(&mut self) {
        Rc::make_mut(&mut self.variables).values_mut().for_each(|value| *value = Value::Unknown);
        self.crowded = true;
    }

    /// Forgets all values, and the folder.
    pub(super) fn forget(&mut self) {
        self.forget_variables();
        self.folders = None;
        self.stack = None;
    }

    /// Whether a name holds a number, or what it held before the script began.
    pub(super) fn counts(&self, name: &str) -> bool {
        let never_set = !self.crowded && !variables::is_filled(name, self.language);
        self.variables.get(name).map_or(never_set, Value::counts)
    }

    /// What holds when either of two ways was taken.
    pub(super) fn join(&mut self, other: &State) {
        self.entered = None;
        self.crowded |= other.crowded;
        self.folders = either(&self.folders, &other.folders);
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
        let held = |state: &State, name: &str| {
            state.variables.get(name).cloned().unwrap_or_else(|| self.never_set(name))
        };
        let joined = names.map(|name| (name.clone(), held(self, name).or(&held(other, name))));
        self.variables = Rc::new(joined.collect());
    }
}

impl Value {
    pub(super) fn is_number(&self) -> bool {
        match self {
            Value::Number | Value::Printed => true,
            Value::Text(text) => !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()),
            Value::Glob(_) | Value::Commit | Value::Counted | Value::Unknown | Value::Wild => false,
        }
    }

    /// The text, where it is known.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Glob(_)
            | Value::Number
            | Value::Printed
            | Value::Commit
            | Value::Counted
            | Value::Unknown
            | Value::Wild => None,
        }
    }

    pub(super) fn is_wild(&self) -> bool {
        match self {
            Value::Glob(_) | Value::Wild => true,
            Value::Text(text) => text.contains(['*', '?', '[']),
            Value::Number | Value::Printed | Value::Commit | Value::Counted | Value::Unknown => {
                false
            }
        }
    }

    fn counts(&self) -> bool {
        self.is_number() || *self == Value::Counted
    }

    pub(super) fn or(self, other: &Value) -> Value {
        if self == *other {
            self
        } else if self.is_number() && other.is_number() {
            let printed = self == Value::Printed || *other == Value::Printed;
            if printed { Value::Printed } else { Value::Number }
        } else if self.counts() && other.counts() {
            Value::Counted
        } else if self.is_wild() || other.is_wild() {
            Value::Wild
        } else {
            Value::Unknown
        }
    }
}

fn only(folders: &Folders) -> Option<String> {
    match folders.as_deref() {
        Some([folder]) => Some(folder.clone()),
        _ => None,
    }
}

/// All folders of both.
pub(super) fn either(one: &Folders, other: &Folders) -> Folders {
    let mut all = one.clone()?;
    for folder in other.as_ref()? {
        if !all.contains(folder) {
            all.push(folder.clone());
        }
    }
    (all.len() <= FOLDERS).then_some(all)
}

/// `path` seen from `folder`, with `..` and links left in it.
pub(super) fn join_path(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_string();
    }
    format!("{}/{path}", folder.trim_end_matches('/'))
}

/// The folder that `cd` goes to: it removes `..` by name, without looking at links.
pub(super) fn enter_path(folder: &str, path: &str) -> String {
    let joined = join_path(folder, path);
    let mut kept: Vec<&str> = Vec::new();
    for name in joined.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            name => kept.push(name),
        }
    }
    format!("/{}", kept.join("/"))
}
