//! One call's view of finding and searching: what must be asked, and which of the files met may be told of.

use std::path::Path;
use std::time::Duration;

use helve_text::wildcard;

use crate::files::{Files, Resolved};
use crate::flow::Flow;
use crate::machine::{
    Counts, Find, Found, Hidden, Hit, Ignored, Kind, MachineError, Search, SearchError, Tree,
};
use crate::permission::{Action, Ask, Grant, Let, Part, Pattern, Policy, Rule, Wall};

/// How long a walk may take unless the tool says otherwise.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long ignored files are looked at where nothing else was found.
const PEEK: Duration = Duration::from_millis(200);

impl Ask {
    /// Looking for something in a folder, under the tool's own key. A file that is named is also read.
    pub fn search(mut self, permission: &'static str, subject: &str, path: &Resolved) -> Self {
        self.parts.extend(path.outside());
        let part = Part::new(permission, subject).always_exactly();
        let act = Let::Read(path.real());
        if path.kind() == Some(Kind::Folder) {
            return self.and(act, part);
        }
        self.parts.push(part);
        self.and(act, path.part("read"))
    }
}

impl Resolved {
    /// Everything below this path: hidden files too, ignored files not.
    pub fn tree(&self) -> Tree {
        Tree {
            at: self.place.clone(),
            globs: Vec::new(),
            ignored: Ignored::Skip { peek: PEEK },
            hidden: Hidden::Include,
            deadline: DEADLINE,
        }
    }
}

impl Files {
    /// The names of files below a path. Their content is not looked at.
    pub async fn find(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut want: Find,
    ) -> Result<(Vec<Found>, Counts), SearchError> {
        self.demand(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        gather(path.machine.find(want)).await
    }

    /// What a pattern matches in files below a path. Of a file that must be asked for and was not named, nothing is told.
    pub async fn search(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut want: Search,
    ) -> Result<(Vec<Hit>, Counts), SearchError> {
        self.demand(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        want.readable = match path.kind() {
            Some(Kind::Folder) => {
                let (policy, more) = self.session.gate.rules().await;
                let root = self.session.workspace.root();
                Some(Readable::new(&policy, &more, root, &path.real()))
            }
            // The grant was for this very file.
            Some(_) | None => None,
        };
        gather(path.machine.search(want)).await
    }
}

/// Reads a flow to its end. The machine holds it to what was wanted.
async fn gather<T>(
    mut flow: Flow<Vec<T>, Result<Counts, SearchError>>,
) -> Result<(Vec<T>, Counts), SearchError> {
    let mut all = Vec::new();
    while let Some(items) = flow.next().await {
        all.extend(items);
    }
    let broken = || SearchError::Machine(MachineError::Other("the search broke off".into()));
    let counts = flow.end().await.unwrap_or_else(|| Err(broken()))?;
    Ok((all, counts))
}

/// Which files below a folder may be read without asking. Plain data, made for being asked many times.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The folder as rules see it; empty for the root.
    base: String,
    walls: Vec<Screen>,
    remembered: Vec<Line>,
}

/// What one wall says about reading.
#[derive(Clone, Debug)]
struct Screen {
    rules: Vec<Line>,
    later: Vec<Line>,
    otherwise: Action,
}

/// A rule, with parts of its pattern that every text it matches must have.
#[derive(Clone, Debug)]
struct Line {
    pattern: Pattern,
    action: Action,
    start: String,
    middle: Option<memchr::memmem::Finder<'static>>,
    end: String,
}

impl Readable {
    fn new(policy: &Policy, more: &[Wall], root: &Path, folder: &Path) -> Self {
        let base = match folder.strip_prefix(root) {
            Ok(beneath) => beneath.to_path_buf(),
            Err(_) => folder.to_path_buf(),
        };
        let screen = |wall: &Wall| Screen {
            rules: lines(&wall.rules),
            later: lines(&wall.later),
            otherwise: wall.otherwise,
        };
        Self {
            base: base.to_string_lossy().into_owned(),
            walls: policy.walls.iter().chain(more).map(screen).collect(),
            remembered: lines(&policy.remembered),
        }
    }

    /// Whether a file may be read, by its path below the folder.
    pub fn allows(&self, beneath: &Path) -> bool {
        let beneath = beneath.to_string_lossy();
        let joined;
        let text = match self.base.as_str() {
            "" => &*beneath,
            base => {
                let slash = if base.ends_with('/') { "" } else { "/" };
                joined = format!("{base}{slash}{beneath}");
                &joined
            }
        };
        let subject = Subject::new(text);
        let strictest = self.walls.iter().map(|wall| wall.judge(&subject)).max();
        match strictest.unwrap_or(Action::Ask) {
            Action::Allow => true,
            Action::Ask => last(&self.remembered, &subject) == Some(Action::Allow),
            Action::Deny => false,
        }
    }
}

impl Screen {
    fn judge(&self, subject: &Subject<'_>) -> Action {
        let base = last(&self.rules, subject).unwrap_or(self.otherwise);
        match base {
            Action::Deny => base,
            Action::Allow | Action::Ask => last(&self.later, subject).unwrap_or(base),
        }
    }
}

fn lines(rules: &[Rule]) -> Vec<Line> {
    let about_reading = rules.iter().filter(|rule| wildcard::matches(&rule.permission, "read"));
    about_reading.map(Line::new).collect()
}

fn last(lines: &[Line], subject: &Subject<'_>) -> Option<Action> {
    lines.iter().rev().find(|line| line.matches(subject)).map(|line| line.action)
}

/// A path, as written and folded.
struct Subject<'a> {
    text: &'a str,
    folded: std::borrow::Cow<'a, str>,
}

impl<'a> Subject<'a> {
    fn new(text: &'a str) -> Self {
        let is_folded = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        let folded = if is_folded { text.into() } else { text.to_lowercase().into() };
        Self { text, folded }
    }
}

impl Line {
    fn new(rule: &Rule) -> Self {
        let literals: Vec<&str> = match &rule.pattern {
            Pattern::Exact(_) => Vec::new(),
            Pattern::Wild(text) | Pattern::Folded(text) => {
                // A trailing ` *` may be absent altogether.
                text.strip_suffix(" *").unwrap_or(text).split(['*', '?']).collect()
            }
        };
        let optional_end = matches!(&rule.pattern, Pattern::Wild(text) | Pattern::Folded(text) if text.ends_with(" *"));
        let (start, inner, end) = match literals.as_slice() {
            [] | [_] => ("", &[][..], ""),
            [start, inner @ .., end] => (*start, inner, *end),
        };
        let longest = inner.iter().copied().max_by_key(|literal| literal.len());
        let middle = longest.filter(|literal| !literal.is_empty());
        Self {
            pattern: rule.pattern.clone(),
            action: rule.action,
            start: start.into(),
            middle: middle.map(|literal| memchr::memmem::Finder::new(literal).into_owned()),
            end: if optional_end { String::new() } else { end.into() },
        }
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        let text = match &self.pattern {
            Pattern::Exact(exact) => return exact == subject.text,
            Pattern::Wild(_) => subject.text,
            Pattern::Folded(_) => &subject.folded,
        };
        text.ends_with(&self.end)
            && text.starts_with(&self.start)
            && self.middle.as_ref().is_none_or(|middle| middle.find(text.as_bytes()).is_some())
            && self.pattern.matches(subject.text)
    }
}
