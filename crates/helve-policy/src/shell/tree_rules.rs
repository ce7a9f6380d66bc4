//! Finds the files below a folder that are restricted: a rule is stricter about them than about the folder.
//!
//! A command like `grep -r x .` accesses a whole folder. If a rule denies `secrets/*`, the files in `secrets` become
//! parts of their own.

use std::borrow::Cow;
use std::path::Path;

use helve_text::shell::{LinkHandling, TreeFilter};
use helve_text::wildcard;

use super::glob::matches as may_match_glob;
use crate::readable::{CompiledRule, PathText};
use crate::rule::{Action, Rule, Source};
use crate::wall::{Policy, Wall};

/// A recursive access to a folder.
#[derive(Clone, Debug)]
pub struct TreeScope<'a> {
    /// `read` or `edit`.
    pub permission: &'static str,
    /// The path of the folder, as rules match it: with links resolved, and as given. The empty path is the root of the
    /// workspace.
    pub bases: Vec<String>,
    pub filter: &'a TreeFilter,
    /// Whether built-in rules that ask apply. They do not if another rule or an approval allows the command.
    pub builtin_asks_apply: bool,
}

/// The rules about files below a folder, compiled for many lookups.
#[derive(Clone, Debug)]
pub struct TreeRules {
    bases: Vec<String>,
    walls: Vec<TreeWall>,
    remembered: Vec<CompiledRule>,
    /// The action for the folder itself. A file is restricted if its own action is stricter.
    base_action: Action,
    names: NameFilter,
    /// Whether subfolders are judged too, not only files.
    judges_folders: bool,
    /// See [`TreeFilter::splits_names`].
    splits_names: bool,
    /// Whether all links to directories are followed, whatever their names are.
    enters_links: bool,
}

/// The rules of one wall.
#[derive(Clone, Debug)]
struct TreeWall {
    /// [`Wall::rules`], then each list of [`Wall::overrides`].
    lists: Vec<Vec<CompiledRule>>,
    default_action: Action,
    ignores_builtin_asks: bool,
}

impl TreeRules {
    pub fn new(policy: &Policy, subagent_walls: &[Wall], scope: TreeScope<'_>) -> Self {
        let compile_rule = |rule: &Rule| CompiledRule::new(rule, &policy.root);
        let is_edit = scope.permission == "edit";
        let compile_wall = |wall: &Wall| {
            let lists = [&wall.rules].into_iter().chain(&wall.overrides);
            TreeWall {
                lists: lists.map(|rules| compile(rules, scope.permission, compile_rule)).collect(),
                // The default for edits applies to the folder itself, not to each file.
                default_action: if is_edit { Action::Allow } else { wall.default_action },
                ignores_builtin_asks: !scope.builtin_asks_apply,
            }
        };
        let mut rules = Self {
            walls: policy.walls.iter().chain(subagent_walls).map(compile_wall).collect(),
            remembered: compile(&policy.remembered, scope.permission, CompiledRule::of_approval),
            base_action: Action::Allow,
            names: NameFilter::new(scope.filter),
            judges_folders: scope.permission == "edit" || scope.filter.names.is_empty(),
            splits_names: scope.filter.splits_names,
            enters_links: scope.filter.links == LinkHandling::Followed,
            bases: scope.bases,
        };
        let subject = |base: &String| if base.is_empty() { ".".to_string() } else { base.clone() };
        let actions = rules.bases.iter().map(|base| rules.judge(&subject(base)));
        rules.base_action = actions.max().unwrap_or(Action::Allow);
        rules
    }

    /// Whether a file below the folder may be restricted. If not, the folder need not be walked.
    pub fn may_restrict(&self) -> bool {
        self.splits_names
            || self.walls.iter().any(|wall| {
                let default = wall.effective_action(wall.default_action, true);
                let (first, overrides) = match wall.lists.split_first() {
                    Some((first, overrides)) => (first.as_slice(), overrides),
                    None => (&[][..], &[][..]),
                };
                let default_can_decide = !first.iter().any(CompiledRule::matches_everything);
                let mut rules = rules_that_can_decide(first).chain(overrides.iter().flatten());
                default_can_decide && default > self.base_action
                    || rules.any(|rule| {
                        wall.effective_action(rule.action, rule.is_builtin) > self.base_action
                            && self.bases.iter().any(|base| rule.may_match_beneath(base))
                    })
            })
    }

    /// Whether the folder itself is denied. Then its denied files do not count as restricted.
    pub fn denies_folder(&self) -> bool {
        self.base_action == Action::Deny
    }

    /// Whether a file below a subfolder may be denied, whatever its name is.
    pub fn may_deny_below(&self, relative: &Path) -> bool {
        let relative = relative.to_string_lossy();
        let folders: Vec<_> = self.bases.iter().map(|base| join(base, &relative)).collect();
        self.walls.iter().any(|wall| {
            let rules = wall.lists.iter().flatten();
            let mut denials = rules.filter(|rule| rule.action == Action::Deny);
            wall.default_action == Action::Deny
                || denials.any(|rule| folders.iter().any(|folder| rule.may_match_beneath(folder)))
        })
    }

    /// Returns the action for a file if it is restricted. `relative` is its path relative to the folder.
    pub fn file_restriction(&self, relative: &Path) -> Option<Action> {
        let name = relative.file_name().unwrap_or_default().to_string_lossy();
        if !self.names.passes(&name) {
            return None;
        }
        let would_change = self.splits_names && changes_when_split(&relative.to_string_lossy());
        self.restriction(relative).max(would_change.then_some(Action::Ask))
    }

    /// Like [`TreeRules::file_restriction`], for a subfolder.
    pub fn folder_restriction(&self, relative: &Path) -> Option<Action> {
        let name = relative.file_name().unwrap_or_default().to_string_lossy();
        let is_judged = self.judges_folders && self.names.passes(&name);
        if is_judged { self.restriction(relative) } else { None }
    }

    /// Whether the command may follow a link, rather than skip it. `find -name '*.rs' -exec cat {} +` only follows
    /// links whose names match.
    pub fn may_follow_link(&self, relative: &Path) -> bool {
        let name = relative.file_name().unwrap_or_default().to_string_lossy();
        self.enters_links || self.names.passes(&name)
    }

    fn restriction(&self, relative: &Path) -> Option<Action> {
        let relative = relative.to_string_lossy();
        let actions = self.bases.iter().map(|base| self.judge(&join(base, &relative)));
        actions.max().filter(|action| *action > self.base_action)
    }

    fn judge(&self, text: &str) -> Action {
        let subject = PathText::new(text);
        let strictest = self.walls.iter().map(|wall| wall.judge(&subject)).max();
        match strictest.unwrap_or(Action::Ask) {
            Action::Ask => {
                let approval = last_match(&self.remembered, &subject).map(|rule| rule.action);
                if approval == Some(Action::Allow) { Action::Allow } else { Action::Ask }
            }
            action => action,
        }
    }
}

/// Returns the text by which rules match a path below a base. The empty base is the root of the workspace.
fn join<'a>(base: &str, relative: &'a str) -> Cow<'a, str> {
    match base {
        "" => relative.into(),
        base if relative.is_empty() => base.to_string().into(),
        base => format!("{}/{relative}", base.trim_end_matches('/')).into(),
    }
}

/// Whether a path becomes several words, other names or a flag when a shell or `xargs` splits and expands it.
pub(crate) fn changes_when_split(path: &str) -> bool {
    let is_special =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '*' | '?' | '[');
    path.starts_with('-') || path.contains(is_special)
}

impl TreeWall {
    fn judge(&self, subject: &PathText<'_>) -> Action {
        let mut action = self.effective_action(self.default_action, true);
        for rules in &self.lists {
            if let Some(rule) = last_match(rules, subject) {
                action = self.effective_action(rule.action, rule.is_builtin);
            }
            if action == Action::Deny {
                break;
            }
        }
        action
    }

    /// Returns the action, or `Allow` for a built-in ask that is ignored. The default action counts as built-in.
    fn effective_action(&self, action: Action, is_builtin: bool) -> Action {
        match action {
            Action::Ask if is_builtin && self.ignores_builtin_asks => Action::Allow,
            Action::Allow | Action::Ask | Action::Deny => action,
        }
    }
}

fn compile(
    rules: &[Rule],
    permission: &str,
    compile_rule: impl Fn(&Rule) -> CompiledRule,
) -> Vec<CompiledRule> {
    // Packages and nested projects have their own `.git` or `.vscode`. Only those of the workspace are protected here.
    let is_nested = |rule: &Rule| {
        permission == "edit"
            && rule.source == Source::Builtin
            && rule.pattern.as_str().starts_with("*/")
    };
    let is_default = |rule: &Rule| permission == "edit" && rule.is_builtin_default();
    let about_files = rules.iter().filter(|rule| wildcard::matches(&rule.permission, permission));
    about_files.filter(|rule| !is_nested(rule) && !is_default(rule)).map(compile_rule).collect()
}

/// Returns the last rule that matches everything, and the rules after it. The rules before it never decide.
fn rules_that_can_decide(rules: &[CompiledRule]) -> impl Iterator<Item = &CompiledRule> {
    let start = rules.iter().rposition(CompiledRule::matches_everything).unwrap_or(0);
    rules[start..].iter()
}

fn last_match<'r>(rules: &'r [CompiledRule], subject: &PathText<'_>) -> Option<&'r CompiledRule> {
    rules.iter().rev().find(|rule| rule.matches(subject))
}

/// The file names that a recursive access may reach: with `grep -r --include='*.rs'`, only names like `*.rs`. If in
/// doubt, a name passes.
#[derive(Clone, Debug)]
struct NameFilter {
    /// Globs in lower case. A name must match one of them, unless there are none.
    names: Vec<String>,
    excluded: Vec<String>,
}

impl NameFilter {
    fn new(filter: &TreeFilter) -> Self {
        let excluded = filter.excluded_files.iter().filter(|glob| is_simple_glob(glob)).cloned();
        Self {
            names: filter.names.iter().map(|glob| glob.to_lowercase()).collect(),
            excluded: excluded.collect(),
        }
    }

    fn passes(&self, name: &str) -> bool {
        let lower_case = name.to_lowercase();
        let is_included = self.names.is_empty()
            || self.names.iter().any(|glob| may_match_glob(glob, &lower_case));
        is_included && !self.excluded.iter().any(|glob| may_match_glob(glob, name))
    }
}

/// Whether a glob has only syntax that means the same to all programs.
pub fn is_simple_glob(glob: &str) -> bool {
    let is_simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*' | '?');
    !glob.is_empty() && !glob.contains("**") && glob.chars().all(is_simple)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{ConfiguredRules, policy};

    fn rules(list: &[(&str, &str, Action)], scope: TreeScope<'_>) -> TreeRules {
        let rule = |(permission, pattern, action): &(&str, &str, Action)| {
            Rule::new(permission, pattern, *action, Source::Program)
        };
        let (user, root) = (list.iter().map(rule).collect(), "/w/app".into());
        let written = ConfiguredRules { user, root, ..ConfiguredRules::default() };
        TreeRules::new(&policy(written, &[Path::new("/data/helve")]), &[], scope)
    }

    #[track_caller]
    fn check(
        list: &[(&str, &str, Action)],
        (permission, base, builtin_asks_apply): (&'static str, &str, bool),
        expected: &[(&str, Option<Action>)],
    ) {
        let filter = TreeFilter::default();
        let bases = vec![base.to_string()];
        let rules =
            rules(list, TreeScope { permission, bases, filter: &filter, builtin_asks_apply });
        for (path, action) in expected {
            assert_eq!(rules.file_restriction(Path::new(path)), *action, "{list:?} {base} {path}");
            assert!(action.is_none() || rules.may_restrict(), "{list:?} {base} {path}");
        }
    }

    #[test]
    fn files_with_stricter_rules_than_their_folder_are_restricted() {
        use Action::{Allow, Ask, Deny};
        let secrets = [("read", "secrets/*", Deny), ("read", "*.key", Ask)];
        check(
            &secrets,
            ("read", "", false),
            &[
                ("secrets/a", Some(Deny)),
                ("a/x.key", Some(Ask)),
                ("a/.env", None),
                ("src/a.rs", None),
            ],
        );
        check(&secrets, ("read", "", true), &[("a/.env", Some(Ask)), ("src/a.rs", None)]);
        check(&secrets, ("read", "secrets", false), &[("a", Some(Deny)), ("b/c", Some(Deny))]);
        check(&[("read", "*", Ask)], ("read", "src", false), &[("a.rs", None), (".env", None)]);
        check(
            &[("read", "*", Deny), ("read", "src", Allow)],
            ("read", "src", false),
            &[("a.rs", Some(Deny))],
        );
        check(&[("edit", "infra/*", Deny)], ("edit", "", false), &[("infra/a.tf", Some(Deny))]);
        check(
            &[("edit", "*", Allow)],
            ("edit", "", true),
            &[(".git/config", Some(Ask)), ("sub/.git/config", None), (".mcp.json", Some(Ask))],
        );
        check(&[("edit", "*", Allow)], ("edit", "/data", false), &[("helve/a", Some(Deny))]);
    }

    #[test]
    fn no_walk_is_needed_where_no_rule_can_match() {
        use Action::{Allow, Deny};
        let filter = TreeFilter::default();
        let scope = |permission, base: &str, builtin_asks_apply| TreeScope {
            permission,
            bases: vec![base.into()],
            filter: &filter,
            builtin_asks_apply,
        };
        let edit_all = [("edit", "*", Allow), ("edit", "infra/*", Deny)];
        for (list, scope, expected) in [
            (&[][..], scope("read", "", false), false),
            (&[][..], scope("read", "src", true), true),
            (&[("read", "secrets/*", Deny)][..], scope("read", "src", false), false),
            (&[("read", "secrets/*", Deny)][..], scope("read", "sec", false), false),
            (&[("read", "secrets/*", Deny)][..], scope("read", "secrets", false), true),
            // The folder itself is denied already.
            (&[("read", "secrets/*", Deny)][..], scope("read", "secrets/a", false), false),
            (&[("read", "secrets/*", Deny)][..], scope("read", "", false), true),
            (&[("read", "*.pem", Deny)][..], scope("read", "src", false), true),
            (&[("read", "/w/app/src/x", Deny)][..], scope("read", "src", false), true),
            (&[("read", "/w/app/x", Deny)][..], scope("read", "src", false), false),
            (&[("read", "/w/**/x", Deny)][..], scope("read", "src", false), true),
            (&[("read", "**/x", Deny)][..], scope("read", "src", false), true),
            (&[("read", "./src/", Deny)][..], scope("read", "", false), true),
            (&[("read", "*", Deny)][..], scope("read", "src", false), false),
            (&edit_all[..], scope("edit", "node_modules", true), false),
            (&edit_all[..], scope("edit", "", true), true),
            (&[][..], scope("edit", "dist", true), false),
            (&[][..], scope("edit", "", true), true),
        ] {
            let described = format!("{list:?} {scope:?}");
            assert_eq!(rules(list, scope).may_restrict(), expected, "{described}");
        }
    }

    #[test]
    fn links_with_other_names_are_followed_only_if_linked_directories_are_entered() {
        let filter = |links, names: &[&str]| TreeFilter {
            links,
            names: names.iter().map(|name| name.to_string()).collect(),
            ..TreeFilter::default()
        };
        for (filter, link, expected) in [
            (filter(LinkHandling::Opened, &["*.rs"]), "src/a.rs", true),
            (filter(LinkHandling::Opened, &["*.rs"]), "bin/tool", false),
            (filter(LinkHandling::Opened, &["*.rs"]), "a.rs/tool", false),
            (filter(LinkHandling::Opened, &[]), "bin/tool", true),
            (filter(LinkHandling::Followed, &["*.rs"]), "bin/tool", true),
        ] {
            let scope = TreeScope {
                permission: "read",
                bases: vec![String::new()],
                filter: &filter,
                builtin_asks_apply: true,
            };
            assert_eq!(
                rules(&[], scope).may_follow_link(Path::new(link)),
                expected,
                "{filter:?} {link}"
            );
        }
    }

    #[test]
    fn every_name_that_the_command_may_read_passes_the_filter() {
        let globs = |list: &[&str]| list.iter().map(|glob| glob.to_string()).collect::<Vec<_>>();
        let filter = |names: &[&str], excluded: &[&str]| {
            NameFilter::new(&TreeFilter {
                names: globs(names),
                excluded_files: globs(excluded),
                ..TreeFilter::default()
            })
        };
        for (names, excluded, name, expected) in [
            (&[][..], &[][..], ".env", true),
            (&["*.rs"][..], &[][..], ".env", false),
            (&["*.rs"][..], &[][..], "A.RS", true),
            (&["*.r[sx]"][..], &[][..], "a.ry", true),
            (&["*.rs", ".e*"][..], &[][..], ".env", true),
            (&[][..], &["*.env"][..], ".env", false),
            (&[][..], &["*.ENV"][..], ".env", true),
            (&[][..], &["*.{env,x}"][..], ".env", true),
            (&[][..], &["*.en[v]"][..], ".env", true),
        ] {
            let passes = filter(names, excluded).passes(name);
            assert_eq!(passes, expected, "{names:?} {excluded:?} {name}");
        }
    }
}
