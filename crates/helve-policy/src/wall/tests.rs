//! Tests of judging, with examples and by comparison with a slow reference implementation.

mod approvals;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::ask::{Act, Ask};
use crate::builtin::{self, ConfiguredRules};
use crate::rule::Scope;

/// The name, the rules and the overrides of a wall.
type WallSpec = (String, Vec<Rule>, Vec<Vec<Rule>>);

/// Parses walls from lines like `edit src/* deny`. A leading `!` marks a built-in rule. The first lines are the user's
/// wall. The line `-- overrides` starts a list of overrides, and any other line `-- NAME` starts the next wall.
fn walls(text: &str) -> Vec<Wall> {
    let mut walls: Vec<WallSpec> = vec![("user".into(), Vec::new(), Vec::new())];
    let mut in_overrides = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("-- ") {
            in_overrides = name == "overrides";
            match walls.last_mut() {
                Some(wall) if in_overrides => wall.2.push(Vec::new()),
                _ => walls.push((name.into(), Vec::new(), Vec::new())),
            }
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let [key, pattern @ .., action] = words.as_slice() else {
            panic!("incomplete rule {line}")
        };
        let (key, source) = match key.strip_prefix('!') {
            Some(key) => (key, Source::Builtin),
            None => (*key, Source::Program),
        };
        let rule = Rule::new(key, &pattern.join(" "), parse_action(action), source);
        let wall = walls.last_mut().unwrap();
        if in_overrides { wall.2.last_mut().unwrap().push(rule) } else { wall.1.push(rule) }
    }
    let build = |(index, (name, rules, overrides)): (usize, WallSpec)| Wall {
        name: name.into(),
        rules: rules.into(),
        overrides: overrides.into_iter().map(Into::into).collect(),
        default_action: if index == 0 { Action::Ask } else { Action::Allow },
    };
    walls.into_iter().enumerate().map(build).collect()
}

fn parse_action(action: &str) -> Action {
    match action {
        "allow" => Action::Allow,
        "ask" => Action::Ask,
        "deny" => Action::Deny,
        other => panic!("unknown action {other}"),
    }
}

/// Checks the verdicts on parts, which are written as `permission subject` or `tool:permission subject`.
fn check(rules: &str, parts: &[&str], expected: Expect) {
    let policy = Policy { walls: walls(rules), ..Policy::default() };
    let mut verdicts = String::new();
    for text in parts {
        let (key, subject) = text.split_once(' ').unwrap();
        let (tool, permission) = key.split_once(':').unwrap_or(("", key));
        let mut part = Part::new(permission.to_string(), subject);
        part.tool = (!tool.is_empty()).then(|| tool.to_string().into());
        let verdict = policy.judge(&[], &part);
        let rule =
            verdict.rule.map(|rule| format!("{} {}", rule.permission, rule.pattern.as_str()));
        let rule = rule.unwrap_or("no rule".into());
        verdicts.push_str(&format!("{text}: {:?} by {}, {rule}\n", verdict.action, verdict.wall));
    }
    expected.assert_eq(&verdicts);
}

#[test]
fn the_last_match_of_a_list_decides() {
    check(
        "bash * deny\n bash git * allow",
        &["bash git", "bash git status", "bash github", "edit x"],
        expect![[r#"
            bash git: Allow by user, bash git *
            bash git status: Allow by user, bash git *
            bash github: Deny by user, bash *
            edit x: Ask by user, no rule
        "#]],
    );
}

#[test]
fn a_tool_is_judged_under_its_id_and_its_group() {
    let check = |rules, expected| check(rules, &["write:edit a.md", "write:edit b.rs"], expected);
    check(
        "!* * ask\n !edit * ask\n write *.md allow",
        expect![[r#"
            write:edit a.md: Allow by user, write *.md
            write:edit b.rs: Ask by user, edit *
        "#]],
    );
    check(
        "* * ask\n edit * allow",
        expect![[r#"
            write:edit a.md: Allow by user, edit *
            write:edit b.rs: Allow by user, edit *
        "#]],
    );
    check(
        "edit * deny\n write *.md allow",
        expect![[r#"
            write:edit a.md: Deny by user, edit *
            write:edit b.rs: Deny by user, edit *
        "#]],
    );
    check(
        "* * ask\n write *.md allow",
        expect![[r#"
            write:edit a.md: Allow by user, write *.md
            write:edit b.rs: Ask by user, * *
        "#]],
    );
    check(
        "write * allow\n * * deny",
        expect![[r#"
            write:edit a.md: Deny by user, * *
            write:edit b.rs: Deny by user, * *
        "#]],
    );
}

#[test]
fn the_strictest_wall_decides() {
    check(
        "edit * allow\n -- agent plan\n edit * deny\n edit plans/* allow",
        &["edit a", "edit plans/a", "bash ls"],
        expect![[r#"
            edit a: Deny by agent plan, edit *
            edit plans/a: Allow by user, edit *
            bash ls: Ask by user, no rule
        "#]],
    );
}

#[test]
fn overrides_change_an_ask_but_never_a_deny() {
    check(
        "edit * ask\n edit secret/* deny\n -- overrides\n * * allow",
        &["edit a", "edit secret/a"],
        expect![[r#"
            edit a: Allow by user, * *
            edit secret/a: Deny by user, edit secret/*
        "#]],
    );
}

#[test]
fn a_deny_of_any_list_is_final() {
    check(
        "edit * ask\n -- overrides\n edit secret/* deny\n edit docs/* allow\n -- overrides\n edit * allow",
        &["edit a", "edit docs/a", "edit secret/a"],
        expect![[r#"
            edit a: Allow by user, edit *
            edit docs/a: Allow by user, edit *
            edit secret/a: Deny by user, edit secret/*
        "#]],
    );
    // Within one list, the last match decides.
    check(
        "edit * ask\n -- overrides\n edit docs/* deny\n edit docs/a allow\n -- overrides\n edit docs/b allow",
        &["edit docs/a", "edit docs/b", "edit docs/c"],
        expect![[r#"
            edit docs/a: Allow by user, edit docs/a
            edit docs/b: Deny by user, edit docs/*
            edit docs/c: Deny by user, edit docs/*
        "#]],
    );
}

/// Judges parts, given as permission and subject, by built-in and written rules. The workspace is `/w/app`.
fn check_configured(written: ConfiguredRules, expected: &[(&str, &str, Action)]) {
    let policy = builtin::policy(ConfiguredRules { root: "/w/app".into(), ..written }, &[]);
    for (permission, subject, action) in expected {
        let part = Part::new(permission.to_string(), *subject);
        assert_eq!(policy.judge(&[], &part).action, *action, "{permission} {subject}");
    }
}

fn configured(rules: &str) -> Vec<Rule> {
    walls(rules)[0].rules.to_vec()
}

#[test]
fn plans_are_the_only_files_in_protected_folders_that_an_allow_covers() {
    use Action::{Allow, Ask};
    check_configured(
        ConfiguredRules { user: configured("edit * allow"), ..ConfiguredRules::default() },
        &[
            ("edit", ".helve/plans/a.md", Allow),
            ("edit", ".opencode/plans/a.md", Allow),
            ("edit", ".helve/plans/a.json", Ask),
            ("edit", ".helve/plans", Ask),
            ("edit", ".helve/agent/plans/a.md", Ask),
            ("edit", ".helve/plans/.helve/agent/a.md", Ask),
            ("edit", ".helve/plans/.git/hooks/a.md", Ask),
            ("edit", "lib/.helve/plans/a.md", Ask),
        ],
    );
    check_configured(ConfiguredRules::default(), &[("edit", ".helve/plans/a.md", Ask)]);
}

#[test]
fn path_patterns_match_in_all_common_spellings() {
    use Action::{Allow, Ask, Deny};
    let check = |rules: &str, expected: &[(&str, &str, Action)]| {
        check_configured(
            ConfiguredRules { user: configured(rules), ..ConfiguredRules::default() },
            expected,
        );
    };
    check(
        "read * allow\n read **/*.env* deny\n edit * allow\n edit **/*.env* deny",
        &[
            ("read", ".env", Deny),
            ("read", "a/.env.local", Deny),
            ("edit", ".env", Deny),
            ("edit", "a/b/.env", Deny),
            ("read", "/h/.env", Deny),
            ("read", "a.rs", Allow),
        ],
    );
    for pattern in
        ["./private/**", "private/", "/w/app/private/*", "./private/*", "../app/private/**"]
    {
        check(
            &format!("read * allow\n read {pattern} deny\n edit {pattern} deny"),
            &[
                ("read", "private/a", Deny),
                ("edit", "private/a/b", Deny),
                ("read", "privates/a", Allow),
                ("read", "/w/private/a", Allow),
            ],
        );
    }
    check(
        "edit * deny\n edit ./* allow\n external_directory /w/other allow\n external_directory /opt deny",
        &[
            ("edit", "a/b", Allow),
            ("edit", "/etc/hosts", Deny),
            ("external_directory", "/w/other/*", Ask),
            ("external_directory", "/opt/*", Deny),
            ("external_directory", "/opt/x/*", Deny),
            ("external_directory", "/optional/*", Ask),
        ],
    );
    check(
        "external_directory ../other/ allow\n external_directory /opt/ deny",
        &[
            ("external_directory", "/w/other/*", Allow),
            ("external_directory", "/w/other/a/*", Allow),
            ("external_directory", "/opt/x/*", Deny),
            ("external_directory", "/optional/*", Ask),
        ],
    );
    // The workspace is below `/w`. A rule for `/w/**` that asks or denies also applies to the workspace's files, one
    // that allows does not. `/*` applies to absolute paths only.
    check(
        "read * allow\n read /w/**/.env deny\n edit /w/** allow\n list /* deny",
        &[
            ("read", ".env", Deny),
            ("read", "a/.env", Deny),
            ("read", "/x/.env", Allow),
            ("edit", "a", Ask),
            ("edit", "/w/b", Allow),
            ("list", "src", Allow),
            ("list", "/etc", Deny),
        ],
    );
}

#[test]
fn an_allow_rule_of_an_agent_overrides_only_built_in_asks() {
    use Action::{Allow, Ask, Deny};
    let check = |user: &str, agent: &str, expected: &[(&str, &str, Action)]| {
        let (user, agent) = (configured(user), configured(agent));
        let agents = vec![("build".into(), agent.clone())];
        check_configured(
            ConfiguredRules { user, agents, current_agent: agent, ..ConfiguredRules::default() },
            expected,
        );
    };
    check(
        "",
        "edit src/* allow\n edit src/gen/* ask\n webfetch * allow\n edit infra/* deny",
        &[
            ("edit", "src/a", Allow),
            ("edit", "src/gen/a", Ask),
            ("edit", "b", Ask),
            ("webfetch", "https://h", Allow),
            ("edit", "infra/a", Deny),
        ],
    );
    check("edit * ask", "edit src/* allow", &[("edit", "src/a", Ask)]);
    check("* * ask", "edit * allow\n read * allow", &[("edit", "a", Ask), ("read", "a", Ask)]);
    check("edit src/* deny", "edit * allow", &[("edit", "src/a", Deny), ("edit", "b", Allow)]);
    check(
        "",
        "* * allow",
        &[("edit", ".git/config", Ask), ("read", "/proc/1/mem", Deny), ("edit", "a", Allow)],
    );
    check("", "read * allow", &[("read", ".env", Allow)]);
}

#[test]
fn every_subject_of_a_part_must_be_allowed() {
    let policy = Policy { walls: walls("read * allow\n read *.env deny"), ..Policy::default() };
    let mut part = Part::new("read", "safe.txt");
    part.subjects.push("link.env".into());
    assert_eq!(policy.judge(&[], &part).action, Action::Deny);
}

#[test]
fn a_tool_is_forbidden_if_all_its_uses_are_denied() {
    let forbids = |rules: &str, tool: &str, group: &str| {
        let mut part = Part::new(group.to_string(), "*");
        part.tool = (tool != group).then(|| tool.to_string().into());
        Policy { walls: walls(rules), ..Policy::default() }.forbids(&[], &part)
    };
    assert!(forbids("bash * deny", "bash", "bash"));
    assert!(!forbids("bash * deny\n bash git * allow", "bash", "bash"));
    assert!(forbids("bash git * allow\n bash * deny", "bash", "bash"));
    assert!(forbids("bash * deny\n bash rm * deny", "bash", "bash"));
    assert!(forbids("edit * deny", "write", "edit"));
    assert!(!forbids("* * deny\n edit * allow", "write", "edit"));
    assert!(forbids("* * allow\n -- agent\n * * deny", "read", "read"));
    assert!(!forbids("* * ask", "read", "read"));
}

#[test]
fn approving_a_file_named_like_a_wildcard_approves_only_that_file() {
    let part = Part::new("edit", "*").remember_exactly();
    let approved = Rule {
        permission: "edit".into(),
        pattern: part.remember_as.clone().unwrap(),
        action: Action::Allow,
        source: Source::Approved(Scope::Session),
    };
    let policy =
        Policy { walls: walls("edit * ask"), remembered: vec![approved], ..Policy::default() };
    assert_eq!(policy.judge(&[], &part).action, Action::Allow);
    assert_eq!(policy.judge(&[], &Part::new("edit", "other")).action, Action::Ask);
}

#[test]
fn the_key_of_an_ask_depends_on_everything_shown() {
    let ask = |subject: &str, preview: &str| {
        Ask::default()
            .add(Act::Read("/w/a".into()), Part::new("read", subject).remember_exactly())
            .preview(preview)
            .key()
    };
    assert_eq!(ask("a", "diff"), ask("a", "diff"));
    assert_ne!(ask("a", "diff"), ask("b", "diff"));
    assert_ne!(ask("a", "diff"), ask("a", "other"));
}

// The reference implementation: simple and slow. It tries every possibility.

fn slow_wildcard(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([' ', '*'], []) => true,
        (['*', rest @ ..], _) => (0..=text.len()).any(|skip| slow_wildcard(rest, &text[skip..])),
        (['?', rest @ ..], [_, text @ ..]) => slow_wildcard(rest, text),
        ([expected, rest @ ..], [c, text @ ..]) if expected == c => slow_wildcard(rest, text),
        _ => false,
    }
}

fn slow_match(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    slow_wildcard(&pattern, &text)
}

fn slow_judge(policy: &Policy, part: &Part) -> Action {
    let mut strictest = None;
    for wall in &policy.walls {
        for subject in &part.subjects {
            let mut rules: Vec<&Rule> = wall.rules.iter().collect();
            let mut action = slow_last_match(&rules, part, subject).unwrap_or(wall.default_action);
            for list in &wall.overrides {
                rules.extend(list.iter());
                if action != Action::Deny {
                    action = slow_last_match(&rules, part, subject).unwrap_or(wall.default_action);
                }
            }
            strictest = strictest.max(Some(action));
        }
    }
    match strictest.unwrap_or(Action::Ask) {
        Action::Ask => {
            let is_approved = |subject: &String| {
                let mut last = None;
                for rule in &policy.remembered {
                    if slow_match(&rule.permission, &part.permission)
                        && slow_match(rule.pattern.as_str(), subject)
                    {
                        last = Some(rule.action);
                    }
                }
                last == Some(Action::Allow)
            };
            if !part.subjects.is_empty() && part.subjects.iter().all(is_approved) {
                Action::Allow
            } else {
                Action::Ask
            }
        }
        action @ (Action::Allow | Action::Deny) => action,
    }
}

fn slow_last_match(rules: &[&Rule], part: &Part, subject: &str) -> Option<Action> {
    let last_match = |key: &str| {
        let mut found = None;
        for (at, rule) in rules.iter().enumerate() {
            if slow_match(&rule.permission, key) && slow_match(rule.pattern.as_str(), subject) {
                found = Some((at, *rule));
            }
        }
        found
    };
    let group_match = last_match(&part.permission);
    let Some(tool) = &part.tool else { return group_match.map(|(_, rule)| rule.action) };
    let (Some(group_match), Some(tool_match)) = (group_match, last_match(tool)) else {
        return group_match.or(last_match(tool)).map(|(_, rule)| rule.action);
    };
    let covers_both = |rule: &Rule| {
        slow_match(&rule.permission, tool) && slow_match(&rule.permission, &part.permission)
    };
    if covers_both(group_match.1) && tool_match.0 >= group_match.0 {
        return Some(tool_match.1.action);
    }
    if covers_both(tool_match.1) && group_match.0 >= tool_match.0 {
        return Some(group_match.1.action);
    }
    let built_in = |rule: &Rule| rule.source == Source::Builtin;
    Some(match (built_in(group_match.1), built_in(tool_match.1)) {
        (true, false) => tool_match.1.action,
        (false, true) => group_match.1.action,
        _ => tool_match.1.action.max(group_match.1.action),
    })
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let key = prop::sample::select(vec!["*", "edit", "write", "read", "e*", "w?ite"]);
    let pattern = prop::sample::select(vec!["*", "a", "a*", "*a", "?", "a *", "b/*", "*/b", "ab"]);
    let action = prop::sample::select(vec![Action::Allow, Action::Ask, Action::Deny]);
    let source = prop::sample::select(vec![Source::Builtin, Source::Program]);
    (key, pattern, action, source)
        .prop_map(|(key, pattern, action, source)| Rule::new(key, pattern, action, source))
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let rules = || prop::collection::vec(any_rule(), 0..6);
    let default_action = prop::sample::select(vec![Action::Allow, Action::Ask]);
    let wall = (rules(), rules(), rules(), default_action).prop_map(
        |(rules, project, flags, default_action)| Wall {
            name: "wall".into(),
            rules: rules.into(),
            overrides: vec![project.into(), flags.into()],
            default_action,
        },
    );
    let remembered = prop::collection::vec(any_rule(), 0..3);
    (prop::collection::vec(wall, 0..3), remembered).prop_map(|(walls, remembered)| Policy {
        walls,
        remembered,
        root: String::new(),
    })
}

fn any_part() -> impl Strategy<Value = Part> {
    let key = prop::sample::select(vec!["edit", "read", "bash"]);
    let tool = prop::sample::select(vec![None, Some("write")]);
    let subject =
        prop::sample::select(vec!["a", "b", "ab", "a b", "b/a", "a/b", "*", "?", "a *", ""]);
    (key, tool, prop::collection::vec(subject, 1..3)).prop_map(|(key, tool, subjects)| Part {
        permission: key.into(),
        tool: tool.map(Into::into),
        subjects: subjects.into_iter().map(String::from).collect(),
        remember_as: None,
        matched_by: MatchBy::Subjects,
        via_shell: false,
        link: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn judging_agrees_with_the_reference(policy in any_policy(), part in any_part()) {
        prop_assert_eq!(policy.judge(&[], &part).action, slow_judge(&policy, &part));
    }

    #[test]
    fn another_wall_never_makes_a_verdict_milder(policy in any_policy(), rules in prop::collection::vec(any_rule(), 0..6), part in any_part()) {
        let wall = Wall::restricting("agent", rules);
        let without = Policy { remembered: Vec::new(), ..policy };
        if without.walls.is_empty() {
            return Ok(());
        }
        prop_assert!(without.judge(&[wall], &part).action >= without.judge(&[], &part).action);
    }

    #[test]
    fn approvals_never_override_a_deny(policy in any_policy(), approvals in prop::collection::vec(any_rule(), 0..6), part in any_part()) {
        let without_approvals = Policy { remembered: Vec::new(), ..policy.clone() };
        if without_approvals.judge(&[], &part).action == Action::Deny {
            let mut with_approvals = policy;
            with_approvals.remembered.extend(approvals);
            prop_assert_eq!(with_approvals.judge(&[], &part).action, Action::Deny);
        }
    }
}

#[test]
fn the_allow_option_does_not_override_rules_with_narrower_patterns() {
    let user = |pattern: &str| Rule::new("edit", pattern, Action::Ask, Source::Program);
    for (rules, subject, expected) in [
        (vec![], "src/main.rs", true),
        (vec![user("*")], "src/main.rs", true),
        (vec![user("src/*")], "src/main.rs", false),
        (vec![user("src/*")], "docs/a.md", true),
        // Protected files are asked about even if edits are allowed.
        (vec![], ".git/config", false),
        (vec![], "sub/helve.json", false),
    ] {
        let policy =
            builtin::policy(ConfiguredRules { user: rules, ..ConfiguredRules::default() }, &[]);
        assert_eq!(
            policy.can_be_allowed_by_option(&[], &Part::new("edit", subject)),
            expected,
            "{subject}"
        );
    }
}
