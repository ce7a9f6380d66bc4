//! Deciding for many files at once whether they may be read without asking.

use std::borrow::Cow;
use std::path::Path;

use helve_text::wildcard;
use memchr::memmem;

use crate::rule::{Action, Pattern, Rule};
use crate::wall::{Policy, Wall};

/// Tells which files below a path may be read without asking. Rules are compiled once, for many lookups.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The path in the form that rules match; empty for the root.
    base: String,
    /// Whether reading the path itself was granted.
    is_granted: bool,
    walls: Vec<ReadWall>,
    remembered: Vec<CompiledRule>,
}

/// The rules of one wall about reading.
#[derive(Clone, Debug)]
struct ReadWall {
    rules: Vec<CompiledRule>,
    /// Appended rules, which cannot lift a deny.
    overrides: Vec<CompiledRule>,
    otherwise: Action,
}

/// A rule compiled for many lookups.
#[derive(Clone, Debug)]
struct CompiledRule {
    test: Matcher,
    case: CaseForm,
    action: Action,
}

/// How a text is compared.
#[derive(Clone, Debug)]
enum Matcher {
    Equal(String),
    /// A pattern, and literals that every matching text contains.
    Wild {
        pattern: String,
        start: String,
        middle: Option<Box<memmem::Finder<'static>>>,
        end: String,
    },
}

/// Whether a pattern is compared with the text as written or in lower case.
#[derive(Clone, Copy, Debug)]
enum CaseForm {
    AsWritten,
    Folded,
}

impl Readable {
    pub fn new(policy: &Policy, more: &[Wall], root: &Path, folder: &Path) -> Self {
        let base = match folder.strip_prefix(root) {
            Ok(beneath) => beneath.to_path_buf(),
            Err(_) => folder.to_path_buf(),
        };
        let compile_wall = |wall: &Wall| ReadWall {
            rules: compile(&wall.rules),
            overrides: compile(&wall.overrides),
            otherwise: wall.otherwise,
        };
        Self {
            base: base.to_string_lossy().into_owned(),
            is_granted: false,
            walls: policy.walls.iter().chain(more).map(compile_wall).collect(),
            remembered: compile(&policy.remembered),
        }
    }

    /// Lets the path itself be read, because that was granted.
    pub fn granted(self) -> Self {
        Self { is_granted: true, ..self }
    }

    /// Whether a file may be read. `beneath` is its path relative to the base; empty for the base itself.
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
        let base = last_match(&self.rules, subject).unwrap_or(self.otherwise);
        match base {
            Action::Deny => base,
            Action::Allow | Action::Ask => last_match(&self.overrides, subject).unwrap_or(base),
        }
    }
}

fn compile(rules: &[Rule]) -> Vec<CompiledRule> {
    let about_reading = rules.iter().filter(|rule| wildcard::matches(&rule.permission, "read"));
    about_reading.map(CompiledRule::new).collect()
}

fn last_match(rules: &[CompiledRule], subject: &PathText<'_>) -> Option<Action> {
    rules.iter().rev().find(|rule| rule.matches(subject)).map(|rule| rule.action)
}

/// A path as written and in lower case.
struct PathText<'a> {
    text: &'a str,
    folded: Cow<'a, str>,
}

impl<'a> PathText<'a> {
    fn new(text: &'a str) -> Self {
        let is_folded = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        let folded = if is_folded { text.into() } else { text.to_lowercase().into() };
        Self { text, folded }
    }
}

impl CompiledRule {
    fn new(rule: &Rule) -> Self {
        let (test, case) = match &rule.pattern {
            Pattern::Exact(text) => (Matcher::Equal(text.clone()), CaseForm::AsWritten),
            Pattern::Wild(pattern) => (Matcher::new(pattern), CaseForm::AsWritten),
            Pattern::CaseInsensitive(pattern) => (Matcher::new(pattern), CaseForm::Folded),
        };
        Self { test, case, action: rule.action }
    }

    fn matches(&self, subject: &PathText<'_>) -> bool {
        match self.case {
            CaseForm::AsWritten => self.test.holds(subject.text),
            CaseForm::Folded => self.test.holds(&subject.folded),
        }
    }
}

impl Matcher {
    fn new(pattern: &str) -> Self {
        if !pattern.contains(['*', '?']) {
            return Matcher::Equal(pattern.into());
        }
        // A trailing ` *` may be absent altogether.
        let optional = pattern.strip_suffix(" *");
        let literals: Vec<&str> = optional.unwrap_or(pattern).split(['*', '?']).collect();
        let (start, inner, end) = match literals.as_slice() {
            [] | [_] => ("", &[][..], ""),
            [start, inner @ .., end] => (*start, inner, *end),
        };
        let longest = inner.iter().copied().max_by_key(|literal| literal.len());
        let middle = longest.filter(|literal| !literal.is_empty());
        Matcher::Wild {
            pattern: pattern.into(),
            start: start.into(),
            middle: middle.map(|literal| Box::new(memmem::Finder::new(literal).into_owned())),
            end: if optional.is_some() { String::new() } else { end.into() },
        }
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Matcher::Equal(exact) => exact.len() == text.len() && exact == text,
            Matcher::Wild { pattern, start, middle, end } => {
                has_ends(text.as_bytes(), start.as_bytes(), end.as_bytes())
                    && middle.as_ref().is_none_or(|it| it.find(text.as_bytes()).is_some())
                    && wildcard::matches(pattern, text)
            }
        }
    }
}

/// Whether a text has this start and end. Comparing one byte of each first rejects nearly all texts.
fn has_ends(text: &[u8], start: &[u8], end: &[u8]) -> bool {
    let meets = |literal: Option<&u8>, text: Option<&u8>| literal.is_none() || literal == text;
    meets(end.last(), text.last())
        && meets(start.first(), text.first())
        && text.ends_with(end)
        && text.starts_with(start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ask::Part;
    use crate::builtin::{WrittenRules, policy};
    use crate::rule::Source;

    fn readable(policy: &Policy, folder: &str) -> Readable {
        Readable::new(policy, &[], Path::new("/w"), Path::new(folder))
    }

    #[test]
    fn secrets_are_left_out_wherever_they_lie() {
        let policy = policy(WrittenRules::default(), &[]);
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
        let written =
            WrittenRules { user: vec![rule("no/*", Action::Deny)], ..WrittenRules::default() };
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
            rules in any_rules(), later in any_rules(), narrowing in any_rules(), remembered in any_rules(),
            path in "[abABéÉ ]{1,4}",
        ) {
            let wall = Wall { name: "user".into(), rules: rules.into(), overrides: later.into(), otherwise: Action::Ask };
            let more = [Wall::narrowing("agent", narrowing)];
            let policy = Policy { walls: vec![wall], remembered };
            let judged = policy.judge(&more, &Part::new("read", path.clone())).action;
            let quick = Readable::new(&policy, &more, Path::new("/w"), Path::new("/w"));
            prop_assert_eq!(quick.allows(Path::new(&path)), judged == Action::Allow);
        }
    }
}
