//! Decides which of many files, such as search results, may be read without asking.

use std::borrow::Cow;
use std::path::Path;

use helve_text::path_pattern::{PathPattern, RequiredText};
use helve_text::wildcard;
use memchr::memmem;

use crate::rule::{Action, Pattern, Rule, Source};
use crate::wall::{Policy, Wall};

/// Decides which files below a base path may be read without asking. The rules are compiled once, for many lookups.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The base path: relative to the workspace if it is inside, otherwise absolute; empty for the workspace itself.
    base: String,
    /// Whether reading the base path itself was granted.
    is_base_granted: bool,
    walls: Vec<ReadWall>,
    remembered: Vec<CompiledRule>,
}

/// The rules of one wall about reading.
#[derive(Clone, Debug)]
struct ReadWall {
    /// [`Wall::rules`], then each list of [`Wall::overrides`].
    lists: Vec<Vec<CompiledRule>>,
    default_action: Action,
}

/// A rule compiled for many lookups.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRule {
    matcher: Matcher,
    case: CaseForm,
    pub(crate) action: Action,
    pub(crate) is_builtin: bool,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
enum Matcher {
    Equal(String),
    /// A wildcard pattern. The literal texts are required for a match, and are compared first because that is fast:
    /// `src/*.gen.*s` has the start `src/`, the middle `.gen.` and the end `s`.
    Wild {
        pattern: PathPattern<'static>,
        start: String,
        middle: Option<Box<memmem::Finder<'static>>>,
        end: String,
    },
    /// An absolute pattern that may match files in the workspace, like `/home/**/.env`. It is compared with their
    /// absolute paths.
    Absolute {
        pattern: PathPattern<'static>,
        root: String,
    },
}

/// Whether a pattern is compared with the path as written or in lower case.
#[derive(Clone, Copy, Debug)]
enum CaseForm {
    AsWritten,
    LowerCase,
}

impl Readable {
    pub fn new(policy: &Policy, subagent_walls: &[Wall], root: &Path, folder: &Path) -> Self {
        let base = match folder.strip_prefix(root) {
            Ok(beneath) => beneath.to_path_buf(),
            Err(_) => folder.to_path_buf(),
        };
        let compile_rule = |rule: &Rule| CompiledRule::new(rule, &policy.root);
        let compile_wall = |wall: &Wall| {
            let lists = [&wall.rules].into_iter().chain(&wall.overrides);
            ReadWall {
                lists: lists.map(|rules| compile(rules, compile_rule)).collect(),
                default_action: wall.default_action,
            }
        };
        Self {
            base: base.to_string_lossy().into_owned(),
            is_base_granted: false,
            walls: policy.walls.iter().chain(subagent_walls).map(compile_wall).collect(),
            remembered: compile(&policy.remembered, CompiledRule::of_approval),
        }
    }

    /// Allows the base path itself, because reading it was granted.
    pub fn with_base_granted(self) -> Self {
        Self { is_base_granted: true, ..self }
    }

    /// Whether a file may be read. `beneath` is its path relative to the base; empty for the base itself.
    pub fn allows(&self, beneath: &Path) -> bool {
        let beneath = beneath.to_string_lossy();
        let joined;
        let text = match self.base.as_str() {
            _ if beneath.is_empty() && self.is_base_granted => return true,
            base if beneath.is_empty() => base,
            "" => &*beneath,
            base => {
                let slash = if base.ends_with('/') { "" } else { "/" };
                joined = format!("{base}{slash}{beneath}");
                &joined
            }
        };
        let subject = PathText::new(text);
        let strictest = self.walls.iter().map(|wall| wall.judge(&subject)).max();
        match strictest.unwrap_or(Action::Ask) {
            Action::Allow => true,
            Action::Ask => last_match(&self.remembered, &subject) == Some(Action::Allow),
            Action::Deny => false,
        }
    }
}

impl ReadWall {
    fn judge(&self, subject: &PathText<'_>) -> Action {
        let mut action = self.default_action;
        for rules in &self.lists {
            action = last_match(rules, subject).unwrap_or(action);
            if action == Action::Deny {
                break;
            }
        }
        action
    }
}

fn compile(rules: &[Rule], compile: impl Fn(&Rule) -> CompiledRule) -> Vec<CompiledRule> {
    let about_reading = rules.iter().filter(|rule| wildcard::matches(&rule.permission, "read"));
    about_reading.map(compile).collect()
}

fn last_match(rules: &[CompiledRule], subject: &PathText<'_>) -> Option<Action> {
    rules.iter().rev().find(|rule| rule.matches(subject)).map(|rule| rule.action)
}

/// A path as written and in lower case.
pub(crate) struct PathText<'a> {
    text: &'a str,
    lower_case: Cow<'a, str>,
}

impl<'a> PathText<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let is_lower_case = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        let lower_case = if is_lower_case { text.into() } else { text.to_lowercase().into() };
        Self { text, lower_case }
    }
}

impl CompiledRule {
    pub(crate) fn new(rule: &Rule, root: &str) -> Self {
        let (matcher, case) = match &rule.pattern {
            Pattern::Exact(text) => (Matcher::Equal(text.clone()), CaseForm::AsWritten),
            Pattern::Wild(pattern) if rule.source == Source::Builtin => {
                (Matcher::new(PathPattern::verbatim(pattern)), CaseForm::AsWritten)
            }
            Pattern::Wild(pattern) => {
                let pattern = PathPattern::new(pattern, root);
                let matches_inside = rule.action != Action::Allow && pattern.may_reach_into(root);
                let matcher = match matches_inside {
                    true => {
                        Matcher::Absolute { pattern: pattern.into_owned(), root: root.to_string() }
                    }
                    false => Matcher::new(pattern),
                };
                (matcher, CaseForm::AsWritten)
            }
            Pattern::CaseInsensitive(pattern) => {
                (Matcher::new(PathPattern::verbatim(pattern)), CaseForm::LowerCase)
            }
        };
        let is_builtin = rule.source == Source::Builtin;
        Self { matcher, case, action: rule.action, is_builtin }
    }

    /// Compiles the rule of a remembered approval. Its pattern needs no conversion.
    pub(crate) fn of_approval(rule: &Rule) -> Self {
        match &rule.pattern {
            Pattern::Wild(pattern) => {
                let matcher = Matcher::new(PathPattern::verbatim(pattern));
                Self { matcher, case: CaseForm::AsWritten, action: rule.action, is_builtin: false }
            }
            Pattern::Exact(_) | Pattern::CaseInsensitive(_) => Self::new(rule, ""),
        }
    }

    pub(crate) fn matches(&self, subject: &PathText<'_>) -> bool {
        match self.case {
            CaseForm::AsWritten => self.matcher.matches(subject.text),
            CaseForm::LowerCase => self.matcher.matches(&subject.lower_case),
        }
    }

    pub(crate) fn matches_everything(&self) -> bool {
        matches!(&self.matcher, Matcher::Wild { pattern, .. } if pattern.is_any())
    }

    /// Whether the pattern may match a path below a folder. The empty path is the root of the workspace.
    pub(crate) fn may_match_beneath(&self, folder: &str) -> bool {
        let start = match &self.matcher {
            Matcher::Equal(start) | Matcher::Wild { start, .. } => start.as_str(),
            Matcher::Absolute { .. } if !folder.starts_with('/') => return true,
            Matcher::Absolute { pattern, .. } => pattern.required_text().start,
        };
        let folder = match (folder, self.case) {
            ("", _) => return !start.starts_with('/'),
            (_, CaseForm::AsWritten) => format!("{folder}/"),
            (_, CaseForm::LowerCase) => format!("{}/", folder.to_lowercase()),
        };
        start.starts_with(&folder) || folder.starts_with(start)
    }
}

impl Matcher {
    fn new(pattern: PathPattern<'_>) -> Self {
        let RequiredText { start, middle, end } = pattern.required_text();
        let middle = (!middle.is_empty()).then(|| memmem::Finder::new(middle).into_owned());
        let (start, middle, end) = (start.to_string(), middle.map(Box::new), end.to_string());
        Matcher::Wild { pattern: pattern.into_owned(), start, middle, end }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Matcher::Equal(exact) => exact.len() == text.len() && exact == text,
            Matcher::Wild { pattern, start, middle, end } => {
                starts_and_ends_with(text.as_bytes(), start.as_bytes(), end.as_bytes())
                    && middle.as_ref().is_none_or(|it| it.find(text.as_bytes()).is_some())
                    && pattern.matches(text)
            }
            Matcher::Absolute { pattern, root } => pattern.matches_loosely(text, root),
        }
    }
}

/// Whether a text starts and ends with these texts. One byte of each is compared first, which rejects most texts.
fn starts_and_ends_with(text: &[u8], start: &[u8], end: &[u8]) -> bool {
    let may_match = |literal: Option<&u8>, text: Option<&u8>| literal.is_none() || literal == text;
    may_match(end.last(), text.last())
        && may_match(start.first(), text.first())
        && text.ends_with(end)
        && text.starts_with(start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ask::Part;
    use crate::builtin::{ConfiguredRules, policy};
    use crate::rule::Source;

    fn readable(policy: &Policy, folder: &str) -> Readable {
        Readable::new(policy, &[], Path::new("/w"), Path::new(folder))
    }

    #[test]
    fn secret_files_are_not_readable_in_any_folder() {
        let policy = policy(ConfiguredRules::default(), &[]);
        let root = readable(&policy, "/w");
        let asked = [".env", "a/.env", "a/.ENV.local", "x/id_rsa", "KEY.PEM", "a/credentials.json"];
        let allowed =
            ["a.rs", "a/b/environment.ts", ".env.example", "a/.env.sample", "id.rs", "keys/a"];
        assert_eq!(asked.map(|path| root.allows(Path::new(path))), [false; 6]);
        assert_eq!(allowed.map(|path| root.allows(Path::new(path))), [true; 6]);
        assert!(!readable(&policy, "/w/a").allows(Path::new(".env")));
        assert!(!readable(&policy, "/proc").allows(Path::new("1/environ")));
        assert!(readable(&policy, "/proc").allows(Path::new("1/status")));
    }

    #[test]
    fn a_remembered_approval_allows_but_does_not_override_a_deny() {
        let rule = |pattern: &str, action| Rule::new("read", pattern, action, Source::Program);
        let written = ConfiguredRules {
            user: vec![rule("no/*", Action::Deny)],
            ..ConfiguredRules::default()
        };
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
            "(\\./|/w/|\\*\\*/|/|)[ab*/]{0,5}".prop_map(Pattern::Wild),
            "[ab*? é]{0,6}".prop_map(Pattern::CaseInsensitive),
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
        fn readable_agrees_with_judging_each_file(
            rules in any_rules(), overrides in any_rules(), restricting in any_rules(), remembered in any_rules(),
            more_overrides in any_rules(), path in "([abABéÉ ]{1,4}|[ab]{1,2}(/[ab]){0,3})",
        ) {
            let overrides = vec![overrides.into(), more_overrides.into()];
            let wall = Wall { name: "user".into(), rules: rules.into(), overrides, default_action: Action::Ask };
            let subagent_walls = [Wall::restricting("agent", restricting)];
            let policy = Policy { walls: vec![wall], remembered, root: "/w".into() };
            let judged = policy.judge(&subagent_walls, &Part::new("read", path.clone())).action;
            let readable = Readable::new(&policy, &subagent_walls, Path::new("/w"), Path::new("/w"));
            prop_assert_eq!(readable.allows(Path::new(&path)), judged == Action::Allow);
        }
    }
}
