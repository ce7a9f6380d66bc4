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
        let (policy, more) = self.session.gate.rules().await;
        let root = self.session.workspace.root();
        let mut readable = Readable::new(&policy, &more, root, &path.real());
        // A folder that became a file meanwhile was not asked for as one.
        readable.is_granted = path.kind() != Some(Kind::Folder);
        want.readable = Some(readable);
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

/// Which files below a path may be read without asking. Plain data, made for being asked many times.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The path as rules see it; empty for the root.
    base: String,
    /// Whether the path itself may be read.
    is_granted: bool,
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
            is_granted: false,
            walls: policy.walls.iter().chain(more).map(screen).collect(),
            remembered: lines(&policy.remembered),
        }
    }

    /// Whether a file may be read, by its path below; empty for the path itself.
    pub fn allows(&self, beneath: &Path) -> bool {
        let beneath = beneath.to_string_lossy();
        let joined;
        let text = match self.base.as_str() {
            _ if beneath.is_empty() && self.is_granted => return true,
            base if beneath.is_empty() => base,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builtin::{Written, policy};
    use crate::permission::Source;

    fn readable(policy: &Policy, folder: &str) -> Readable {
        Readable::new(policy, &[], Path::new("/w"), Path::new(folder))
    }

    #[test]
    fn secrets_are_left_out_wherever_they_lie() {
        let policy = policy(Written::default(), &[]);
        let root = readable(&policy, "/w");
        let asked = [".env", "a/.env", "a/.ENV.local", "x/id_rsa", "KEY.PEM", "a/credentials.json"];
        let free =
            ["a.rs", "a/b/environment.ts", ".env.example", "a/.env.sample", "id.rs", "keys/a"];
        assert_eq!(asked.map(|path| root.allows(Path::new(path))), [false; 6]);
        assert_eq!(free.map(|path| root.allows(Path::new(path))), [true; 6]);
        assert!(!readable(&policy, "/w/a").allows(Path::new(".env")));
        assert!(!readable(&policy, "/proc").allows(Path::new("1/environ")));
        assert!(readable(&policy, "/proc").allows(Path::new("1/status")));
    }

    #[test]
    fn a_lasting_yes_counts_and_a_deny_stays() {
        let rule = |pattern: &str, action| Rule::new("read", pattern, action, Source::Program);
        let written = Written { user: vec![rule("no/*", Action::Deny)], ..Written::default() };
        let mut policy = policy(written, &[]);
        policy.remembered = vec![rule(".env", Action::Allow), rule("no/*", Action::Allow)];
        let root = readable(&policy, "/w");
        assert_eq!(
            [".env", "a/.env", "no/a"].map(|path| root.allows(Path::new(path))),
            [true, false, false]
        );
    }

    fn any_rule() -> impl Strategy<Value = Rule> {
        let key = prop_oneof![Just("read"), Just("*"), Just("edit")];
        let pattern = prop_oneof![
            "[ab*? ]{0,6}".prop_map(Pattern::Wild),
            "[ab*? é]{0,6}".prop_map(Pattern::Folded),
            "[abAB]{0,3}".prop_map(Pattern::Exact),
        ];
        let action = prop_oneof![Just(Action::Allow), Just(Action::Ask), Just(Action::Deny)];
        (key, pattern, action).prop_map(|(key, pattern, action)| Rule {
            permission: key.into(),
            pattern,
            action,
            source: Source::Program,
        })
    }

    fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
        proptest::collection::vec(any_rule(), 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn it_says_what_judging_each_file_would_say(
            rules in any_rules(), later in any_rules(), narrowing in any_rules(), remembered in any_rules(),
            path in "[abABéÉ ]{1,4}",
        ) {
            let wall = Wall { name: "user".into(), rules: rules.into(), later: later.into(), otherwise: Action::Ask };
            let more = [Wall::narrowing("agent", narrowing)];
            let policy = Policy { walls: vec![wall], remembered };
            let judged = policy.judge(&more, &Part::new("read", path.clone())).action;
            let quick = Readable::new(&policy, &more, Path::new("/w"), Path::new("/w"));
            prop_assert_eq!(quick.allows(Path::new(&path)), judged == Action::Allow);
        }
    }
}
