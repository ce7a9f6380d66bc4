//! Finds rules without effect: those that never decide, that never match, and allows that a stricter rule overrules.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use helve_core::{Action, Pattern, Rule, Source, ToolSwitch};
use helve_text::path_pattern::PathPattern;
use helve_text::url::{UrlError, UrlPattern};
use helve_text::wildcard;

use super::messages::{self, ProblemText};
use super::problem::{ConfigProblem, Severity};
use super::tree::Position;
use super::{Agent, Config, Trust};

/// Limit on comparisons per list. Comparing two patterns costs the product of their lengths; typical lists need a few
/// thousand.
const BUDGET: usize = 20_000_000;

impl Config {
    /// Returns warnings about rules without effect. They are not part of [`Config::problems`], because comparing rules
    /// takes time and changes nothing.
    pub fn warnings_about_rules(&self) -> Vec<ConfigProblem> {
        let root = self.root.to_string_lossy().into_owned();
        let mut warnings = Vec::new();
        for rules in self.lists_of_rules() {
            warnings.extend(rules.iter().filter_map(|rule| never_matches(rule)));
            warnings.extend(warn_about_covered(&rules, &root));
        }
        for agent in &self.agents {
            warnings.extend(self.overruled_allows(agent, &root));
        }
        warnings.sort_by(|a, b| (&a.file, a.at).cmp(&(&b.file, b.at)));
        warnings
    }

    /// Returns the places of the rules that never decide because a later rule of the same file covers them.
    pub fn covered_rules(&self) -> Vec<Source> {
        let root = self.root.to_string_lossy().into_owned();
        let lists = self.lists_of_rules();
        let covered = lists.iter().flat_map(|rules| covered_rules(rules, &root));
        covered.flat_map(|(_, rules)| rules).map(|rule| rule.source.clone()).collect()
    }

    /// Returns every list of rules, file by file.
    fn lists_of_rules(&self) -> Vec<Vec<&Rule>> {
        let agents = self.agents.iter().flat_map(|agent| {
            [
                (&agent.rules, &agent.tool_switches),
                (&agent.project_rules, &agent.project_tool_switches),
            ]
        });
        let lists = [
            (&self.user_rules, &self.user_tool_switches),
            (&self.project_rules, &self.project_tool_switches),
        ];
        let lists = lists.into_iter().chain(agents);
        lists.flat_map(|(list, switches)| self.rules_by_file(list, switches)).collect()
    }

    /// Returns the rules of each file, in order, without the denies that were added for switched-off tools. Files with
    /// errors are left out: an error may have turned their allows into asks.
    fn rules_by_file<'r>(&self, list: &'r [Rule], switches: &[ToolSwitch]) -> Vec<Vec<&'r Rule>> {
        let mut by_file: BTreeMap<&Arc<Path>, Vec<&Rule>> = BTreeMap::new();
        for rule in list {
            let is_switch = switches.iter().any(|switch| switch.source == rule.source);
            if let Source::File { path, .. } = &rule.source
                && !is_switch
            {
                by_file.entry(path).or_default().push(rule);
            }
        }
        let has_errors = |path: &Arc<Path>| {
            let mut problems = self.problems.iter().filter(|problem| problem.file == *path);
            problems.any(|problem| problem.severity == Severity::Error)
        };
        by_file.into_iter().filter(|(path, _)| !has_errors(path)).map(|(_, rules)| rules).collect()
    }

    /// Warns about rules of an agent that allow what a rule of the user or the project asks about or denies.
    fn overruled_allows(&self, agent: &Agent, root: &str) -> Vec<ConfigProblem> {
        let trusted = self.trust == Trust::Trusted;
        let project_rules = agent.project_rules.iter().filter(|_| trusted);
        let allows = agent.rules.iter().chain(project_rules).filter(|rule| {
            rule.action == Action::Allow && matches!(rule.source, Source::File { .. })
        });
        let written: Vec<WildRule<'_>> = {
            let project = self.project_rules.iter().filter(|_| trusted);
            self.user_rules.iter().chain(project).map(|rule| WildRule::new(rule, root)).collect()
        };
        let mut by_overruling: BTreeMap<usize, Vec<&Rule>> = BTreeMap::new();
        let mut budget = BUDGET;
        for rule in allows {
            let allow = WildRule::new(rule, root);
            let covering = written.iter().rposition(|wide| wide.covers(&allow, &mut budget));
            if let Some(at) = covering.filter(|at| written[*at].rule.action != Action::Allow) {
                by_overruling.entry(at).or_default().push(rule);
            }
        }
        let to_warning = |(at, rules): (usize, Vec<&Rule>)| {
            warning(rules[0], |_| messages::overruled_allows(&agent.name, &rules, written[at].rule))
        };
        by_overruling.into_iter().filter_map(to_warning).collect()
    }
}

/// A rule with its pattern as plain wildcard patterns.
struct WildRule<'r> {
    rule: &'r Rule,
    /// Empty if there would be too many. Then nothing is known about the rule.
    patterns: Vec<String>,
}

impl<'r> WildRule<'r> {
    fn new(rule: &'r Rule, root: &str) -> Self {
        let patterns = match &rule.pattern {
            Pattern::Wild(text) if is_about_paths(&rule.permission) => {
                let mut patterns = PathPattern::new(text, root).as_wildcards().unwrap_or_default();
                // A pattern that begins with a name matches files of the workspace.
                let is_relative = |it: &&mut String| !it.starts_with(['/', '*', '?', '.']);
                patterns.iter_mut().filter(is_relative).for_each(|it| it.insert_str(0, "./"));
                patterns
            }
            Pattern::Wild(text) => vec![text.clone()],
            Pattern::CaseInsensitive(_) | Pattern::Exact(_) => Vec::new(),
        };
        Self { rule, patterns }
    }

    /// Whether this rule certainly matches everything that another matches. `false` if the budget is used up.
    fn covers(&self, narrow: &WildRule<'_>, budget: &mut usize) -> bool {
        let mut includes = |wide: &String, narrow: &String| {
            let literal = literal_start(wide);
            if !narrow.starts_with(literal) && !literal.starts_with(narrow.trim_end_matches(" *")) {
                return false;
            }
            let Some(rest) = budget.checked_sub(1 + wide.len() * narrow.len()) else {
                return false;
            };
            *budget = rest;
            wildcard::covers(wide, narrow)
        };
        wildcard::covers(&self.rule.permission, &narrow.rule.permission)
            && !narrow.patterns.is_empty()
            && narrow.patterns.iter().all(|narrow| {
                // Path patterns inside the workspace begin with `./`, but a rule for all permissions (`*`) keeps its
                // pattern as written, such as `src/*`. So `./src/a` is also compared as `src/a`.
                let without_dot = narrow.strip_prefix("./").map(String::from);
                self.patterns.iter().any(|wide| {
                    includes(wide, narrow)
                        || without_dot.as_ref().is_some_and(|narrow| includes(wide, narrow))
                })
            })
    }
}

fn is_about_paths(permission: &str) -> bool {
    const PATHS: &[&str] =
        &["read", "edit", "list", "external_directory", "write", "multiedit", "apply_patch"];
    PATHS.contains(&permission)
}

/// Returns the text before the first wildcard.
fn literal_start(pattern: &str) -> &str {
    &pattern[..pattern.find(['*', '?']).unwrap_or(pattern.len())]
}

/// Returns the text after the last wildcard.
fn literal_end(pattern: &str) -> &str {
    &pattern[pattern.rfind(['*', '?']).map_or(0, |at| at + 1)..]
}

/// Warns about rules that never decide, because a later rule with a different action covers them. One warning for each
/// later rule.
fn warn_about_covered(rules: &[&Rule], root: &str) -> Vec<ConfigProblem> {
    let to_warning = |(covering, covered): (usize, Vec<&Rule>)| {
        let covering = rules[covering];
        warning(covered[0], |_| messages::never_decide(&covered, covering, position(covering)?))
    };
    covered_rules(rules, root).into_iter().filter_map(to_warning).collect()
}

/// Returns the rules that are covered by a later rule with a different action, grouped by the index of the later rule.
fn covered_rules<'r>(rules: &[&'r Rule], root: &str) -> BTreeMap<usize, Vec<&'r Rule>> {
    let mut budget = BUDGET;
    let mut index = CoverIndex::default();
    let mut by_covering: BTreeMap<usize, Vec<&Rule>> = BTreeMap::new();
    let wild: Vec<WildRule<'_>> = rules.iter().map(|rule| WildRule::new(rule, root)).collect();
    for (at, rule) in wild.iter().enumerate().rev() {
        let candidates = index.candidates(rule);
        let covering = candidates.into_iter().find(|at| wild[*at].covers(rule, &mut budget));
        // Two rules with the same key are left to the parser, which reports repeated keys.
        let has_same_key = |other: &Rule| {
            other.permission == rule.rule.permission && other.pattern == rule.rule.pattern
        };
        if let Some(covering) = covering
            && rules[covering].action != rule.rule.action
            && !has_same_key(rules[covering])
        {
            by_covering.entry(covering).or_default().insert(0, rule.rule);
        }
        index.insert(at, rule);
    }
    by_covering
}

/// Finds the rules that may cover another one, without comparing all of them. `git *` can only cover patterns that
/// begin with `git`, and `*.env` only those that end with `.env`.
#[derive(Default)]
struct CoverIndex {
    /// Indices of rules by permission key.
    rules: HashMap<String, RulesByLiteral>,
    /// The permission keys with wildcards.
    wild_keys: Vec<String>,
}

#[derive(Default)]
struct RulesByLiteral {
    by_start: HashMap<String, Vec<usize>>,
    /// Patterns like `*.env`, which have no literal start.
    by_end: HashMap<String, Vec<usize>>,
}

impl CoverIndex {
    fn insert(&mut self, at: usize, rule: &WildRule<'_>) {
        let key = &rule.rule.permission;
        if key.contains(['*', '?']) && !self.wild_keys.contains(key) {
            self.wild_keys.push(key.clone());
        }
        let rules = self.rules.entry(key.clone()).or_default();
        for pattern in &rule.patterns {
            // A trailing ` *` is optional: `git *` also covers `git`, without the space.
            let start = literal_start(pattern.strip_suffix(" *").unwrap_or(pattern));
            let (start, end) = (start.to_string(), literal_end(pattern).to_string());
            let entry = match start.is_empty() && !end.is_empty() {
                true => rules.by_end.entry(end),
                false => rules.by_start.entry(start),
            };
            entry.or_default().push(at);
        }
    }

    /// Returns the indices of possible rules, the last rule first.
    fn candidates(&self, narrow: &WildRule<'_>) -> Vec<usize> {
        let Some(pattern) = narrow.patterns.first() else { return Vec::new() };
        let key = &narrow.rule.permission;
        let is_other = |wild: &&String| *wild != key && wildcard::covers(wild, key);
        let keys = self.wild_keys.iter().filter(is_other).chain([key]);
        let mut found = Vec::new();
        for rules in keys.filter_map(|key| self.rules.get(key)) {
            let end = literal_end(pattern);
            let suffixes = end.char_indices().map(|(at, _)| &end[at..]);
            found.extend(suffixes.filter_map(|suffix| rules.by_end.get(suffix)).flatten().copied());
            for text in [pattern.as_str(), pattern.strip_prefix("./").unwrap_or(pattern)] {
                let start = literal_start(text);
                let lengths = start.char_indices().map(|(at, _)| at).chain([start.len()]);
                let with_prefix = lengths.filter_map(|length| rules.by_start.get(&start[..length]));
                found.extend(with_prefix.flatten().copied());
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.dedup();
        found
    }
}

/// Warns about a rule that matches nothing.
fn never_matches(rule: &Rule) -> Option<ConfigProblem> {
    let text = rule.pattern.as_str();
    let why = match rule.permission.as_str() {
        _ if text.is_empty() => messages::NeverMatches::Empty,
        _ if text.trim() != text => messages::NeverMatches::Spaces,
        "bash" if OPERATORS.iter().any(|operator| text.contains(operator)) => {
            messages::NeverMatches::SeveralCommands
        }
        "bash" if rule.action == Action::Allow && text.split(' ').any(is_redirect) => {
            messages::NeverMatches::Redirect
        }
        "external_directory" if !text.starts_with(['/', '*', '?', '.']) => {
            messages::NeverMatches::RelativeFolder
        }
        "external_directory" if rule.action == Action::Allow && !can_match_folder(text) => {
            messages::NeverMatches::FolderWithoutContents
        }
        key if is_about_paths(key) && has_parent_after_wildcard(text) => {
            messages::NeverMatches::ParentFolder
        }
        "webfetch" => messages::NeverMatches::NotUrl(why_no_url_matches(text, rule.action)?),
        _ => return None,
    };
    warning(rule, |rule| Some(messages::never_matches(rule, why)))
}

/// Returns why a pattern of `webfetch` matches no URL. If a pattern is not a valid URL pattern, a rule that asks or
/// denies is compared with the text of the URL instead. Then it has an effect if its start can be the start of a URL.
fn why_no_url_matches(pattern: &str, action: Action) -> Option<UrlError> {
    let why = UrlPattern::parse(pattern).err()?;
    let start = literal_start(pattern);
    let begins_url = ["http://", "https://"]
        .iter()
        .any(|scheme| scheme.starts_with(start) || start.starts_with(scheme));
    let may_match_as_text = match why {
        UrlError::Backslash | UrlError::Fragment | UrlError::HiddenCharacter => false,
        UrlError::Credentials => begins_url && !start.contains('@'),
        UrlError::TooLong
        | UrlError::Scheme
        | UrlError::NoHost
        | UrlError::BadHost
        | UrlError::Zone
        | UrlError::BadPort => begins_url,
    };
    (action == Action::Allow || !may_match_as_text).then_some(why)
}

/// What separates commands, which are judged one by one.
const OPERATORS: &[&str] = &[" && ", " || ", " | ", "; ", " & "];

fn is_redirect(word: &str) -> bool {
    let operator = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
    operator.starts_with(['<', '>'])
}

/// Whether a pattern for `external_directory` can match. That permission is asked for as `FOLDER/*`, so the pattern
/// must end with a wildcard or a slash.
fn can_match_folder(pattern: &str) -> bool {
    pattern.ends_with(['*', '?', '/'])
}

fn has_parent_after_wildcard(pattern: &str) -> bool {
    let mut names = pattern.split('/').skip_while(|name| !name.contains(['*', '?']));
    names.any(|name| name == "..")
}

fn warning<'r>(
    rule: &'r Rule,
    text: impl FnOnce(&'r Rule) -> Option<ProblemText>,
) -> Option<ConfigProblem> {
    let Source::File { path, .. } = &rule.source else { return None };
    let problem = ConfigProblem::of_file(path.clone(), Severity::Warning, text(rule)?);
    Some(ConfigProblem { at: position(rule), ..problem })
}

fn position(rule: &Rule) -> Option<Position> {
    match rule.source {
        Source::File { line, column, .. } => Some(Position { line, column }),
        Source::Builtin | Source::Flag(_) | Source::Approved(_) | Source::Program => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule is compared with few others, however long the list is.
    #[test]
    fn long_lists_of_rules_need_few_comparisons() {
        let shapes: [fn(usize) -> String; 6] = [
            |n| format!("tool{n} *"),
            |n| format!("git sub{n} *"),
            |n| format!("npm run task{n}"),
            |n| format!("*.ext{n}"),
            |n| format!("src/{n}/**"),
            |n| if n == 428 { "*".into() } else { format!("{n} --flag") },
        ];
        for shape in shapes {
            let rule = |n| Rule::new("bash", &shape(n), Action::Allow, Source::Program);
            let rules: Vec<Rule> = (0..429).map(rule).collect();
            let mut index = CoverIndex::default();
            let mut comparisons = 0;
            for (at, rule) in rules.iter().enumerate().rev() {
                let rule = WildRule::new(rule, "/w");
                comparisons += index.candidates(&rule).len();
                index.insert(at, &rule);
            }
            assert!(comparisons <= 2 * rules.len(), "{}: {comparisons}", shape(0));
        }
    }
}
