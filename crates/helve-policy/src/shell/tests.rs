//! Judges scripts under policies.
//!
//! The scripts are in text files, each below the name of a policy in `policies.txt`:
//!
//! - `attacks.txt`: must not be allowed, that is, must be asked about or denied.
//! - `denied.txt`: must be denied.
//! - `allowed.txt`: must be allowed.
//! - `agent_commands.txt`: typical commands of coding agents, to count how many of them are asked about.
//! - `verdicts.txt`: scripts with their own rules and verdicts.
//!
//! `tree.txt` lists the files that the scripts access.

use expect_test::{Expect, expect};
use helve_text::shell::{Script, ShellContext, ShellLanguage};
use proptest::prelude::*;

use super::{
    DirEntry, FactAnswer, FactQuery, FileFacts, GatheredFacts, PathFacts, ProgramPlace, TreeFiles,
    TreeQuery, parts,
};
use crate::ask::{MatchBy, Part};
use crate::builtin::{ConfiguredRules, policy};
use crate::rule::{Action, Rule, Scope, Source};
use crate::wall::Policy;

mod documented;
mod mutate;
mod tree;

use tree::Tree;

fn context() -> ShellContext {
    ShellContext {
        cwd: "/w/app".into(),
        home: Some("/h".into()),
        language: ShellLanguage::Bash,
        exported: ["PATH", "HOME", "EDITOR", "LANG", "TERM", "SHELL", "PWD"]
            .map(String::from)
            .into(),
        ..ShellContext::default()
    }
}

fn analyze(script: &str, context: &ShellContext) -> Script {
    super::analyze(script, context, &Tree::sample())
}

fn rules(permission: &str, list: &[(&str, Action)]) -> Vec<Rule> {
    let rule = |(pattern, action): &(&str, Action)| {
        Rule::new(permission, pattern, *action, Source::Program)
    };
    list.iter().map(rule).collect()
}

/// Reads a policy from `policies.txt`. The line `@ NAME` is followed by lines of the form `ACTION PERMISSION: PATTERN`.
fn policy_named(name: &str) -> Policy {
    let text = include_str!("tests/policies.txt");
    let section = text.split("@ ").find(|section| section.lines().next() == Some(name));
    let section = section.unwrap_or_else(|| panic!("no policy {name}"));
    let mut user = Vec::new();
    for line in section.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (action, rest) = line.split_once(' ').expect("a line starts with an action");
        let (permission, pattern) =
            rest.split_once(": ").expect("an action is followed by PERMISSION: PATTERN");
        user.extend(rules(permission, &[(pattern, parse_action(action))]));
    }
    policy(ConfiguredRules { user, ..ConfiguredRules::default() }, &[])
}

fn decide(policy: &Policy, script: &str) -> Action {
    policy.judge_all(&[], &parts(script, &analyze(script, &context()), &Tree::sample()))
}

/// Parses a file of scripts, and returns each script with the name of its policy. `⏎`, `⇥` and `␀` stand for newline,
/// tab and NUL.
fn scripts(text: &'static str) -> Vec<(&'static str, String)> {
    let mut name = "";
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("@ ") {
            Some(next) => name = next,
            None => all.push((name, line.replace('⏎', "\n").replace('⇥', "\t").replace('␀', "\0"))),
        }
    }
    all
}

fn attacks() -> Vec<(&'static str, String)> {
    scripts(include_str!("tests/attacks.txt"))
}

#[test]
fn attacks_are_not_allowed() {
    let mut wrongly_allowed = Vec::new();
    for (name, script) in attacks() {
        if decide(&policy_named(name), &script) == Action::Allow {
            wrongly_allowed.push(format!("{name}: {script}"));
        }
    }
    assert!(wrongly_allowed.is_empty(), "{wrongly_allowed:#?}");
}

#[test]
fn denied_commands_are_denied_in_every_spelling() {
    let mut not_denied = Vec::new();
    for (name, script) in scripts(include_str!("tests/denied.txt")) {
        let action = decide(&policy_named(name), &script);
        if action != Action::Deny {
            not_denied.push(format!("{action:?} {name}: {script}"));
        }
    }
    assert!(not_denied.is_empty(), "{not_denied:#?}");
}

/// Parses rules of the form `PERMISSION PATTERN ACTION`, separated by `;`.
fn parse_rules(text: &str) -> Vec<Rule> {
    let rule = |text: &str| {
        let words: Vec<&str> = text.trim().split(' ').collect();
        let [permission, pattern @ .., action] = words.as_slice() else {
            panic!("incomplete rule: {text}")
        };
        rules(permission, &[(&pattern.join(" "), parse_action(action))])
    };
    text.split(';').filter(|text| !text.trim().is_empty()).flat_map(rule).collect()
}

fn parse_action(text: &str) -> Action {
    match text {
        "allow" => Action::Allow,
        "ask" => Action::Ask,
        "deny" => Action::Deny,
        other => panic!("unknown action {other}"),
    }
}

#[test]
fn scripts_have_the_listed_verdicts() {
    let mut rules = "";
    let mut wrong = Vec::new();
    for line in include_str!("tests/verdicts.txt").lines() {
        if let Some(text) = line.strip_prefix('=') {
            rules = text.trim();
        } else if !line.is_empty() && !line.starts_with('#') {
            let (expected, script) = line.split_once(' ').expect("a verdict precedes the script");
            let user = parse_rules(rules);
            let policy = policy(ConfiguredRules { user, ..ConfiguredRules::default() }, &[]);
            let (script, expected) = (script.trim().replace('⏎', "\n"), parse_action(expected));
            let action = decide(&policy, &script);
            if action != expected {
                let explained = explain(&policy, &script);
                wrong.push(format!(
                    "{action:?}, not {expected:?}, by {rules}: {script}\n{explained}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn common_commands_are_allowed() {
    let mut not_allowed = Vec::new();
    let mut times = Vec::new();
    for (name, script) in scripts(include_str!("tests/allowed.txt")) {
        let policy = policy_named(name);
        let start = std::time::Instant::now();
        let action = decide(&policy, &script);
        times.push(start.elapsed());
        if action != Action::Allow {
            not_allowed.push(format!("{action:?} {name}: {script}\n{}", explain(&policy, &script)));
        }
    }
    times.sort();
    let percentile = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!(
        "{} decisions: median {:?}, 99 % within {:?}",
        times.len(),
        percentile(50),
        percentile(99)
    );
    assert!(not_allowed.is_empty(), "{}", not_allowed.join("\n"));
}

/// Judges each command of `agent_commands.txt` twice: by the built-in rules alone, and by the policy whose name heads
/// its section of the file. Few of them are asked about.
#[test]
fn commands_of_agents_need_few_questions() {
    let builtin = policy_named("builtin");
    let symbol = |action: Action| if action == Action::Allow { '+' } else { '?' };
    let (mut count, mut asked_by_builtin, mut asked_by_policy, mut needless) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for (name, line) in scripts(include_str!("tests/agent_commands.txt")) {
        // A line is like `? + git push`: the verdicts of the built-in rules and of the policy, and the command. `+`
        // means allowed, `?` asked about, `!` asked about needlessly.
        let symbols: Vec<char> = line.chars().take(3).collect();
        let script = line.get(4..).expect("a line starts with two symbols");
        let policy = policy_named(name);
        let found = [symbol(decide(&builtin, script)), symbol(decide(&policy, script))];
        let [by_builtin, _, by_policy] = symbols[..] else { panic!("{line}") };
        count += 1;
        asked_by_builtin += usize::from(by_builtin == '?');
        asked_by_policy += usize::from(by_policy != '+');
        needless += usize::from(by_policy == '!');
        let is_expected = found[0] == by_builtin && (found[1] == '+') == (by_policy == '+');
        if !is_expected {
            let reasons = [explain(&builtin, script), explain(&policy, script)].concat();
            wrong.push(format!("{} {} {script}\n{reasons}", found[0], found[1]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!(
        "{count} commands: {asked_by_builtin} asked about by built-in rules, {asked_by_policy} by policies, \
         {needless} needlessly"
    );
    assert!(count >= 300, "{count}");
    assert!(
        asked_by_builtin * 100 <= count * 35,
        "{asked_by_builtin} of {count} by built-in rules"
    );
    assert!(asked_by_policy * 100 <= count * 12, "{asked_by_policy} of {count} by policies");
    assert!(needless * 100 <= count * 4, "{needless} of {count} are asked about needlessly");
}

/// Returns the parts of a script that are not allowed, one per line.
fn explain(policy: &Policy, script: &str) -> String {
    let analysis = analyze(script, &context());
    let mut text = String::new();
    for part in parts(script, &analysis, &Tree::sample()) {
        let verdict = policy.judge(&[], &part);
        if verdict.action != Action::Allow {
            text.push_str(&format!("    {}\n", render_part(&part, verdict.action)));
        }
    }
    text
}

fn render_part(part: &Part, action: Action) -> String {
    let action = format!("{action:?}").to_lowercase();
    let always = match &part.remember_as {
        Some(pattern) => format!("  always {pattern:?}"),
        None => String::new(),
    };
    let why = match &part.matched_by {
        MatchBy::Subjects | MatchBy::Command(_) | MatchBy::UnnamedFile(_) => String::new(),
        MatchBy::Mentioned(files) => format!("  {files:?}"),
        MatchBy::Unclear(why) => format!("  {why:?}"),
        MatchBy::LocalNetwork { address } => format!("  {address}"),
    };
    format!("{action} {}: {}{always}{why}", part.permission, part.subjects.join(" = "))
}

#[track_caller]
fn check(name: &str, script: &str, expected: Expect) {
    let policy = policy_named(name);
    let analysis = analyze(script, &context());
    let mut text = String::new();
    // Files that a script only mentions are not shown unless a rule covers them.
    let is_shown = |part: &Part| !matches!(part.matched_by, MatchBy::Mentioned(_));
    for part in parts(script, &analysis, &Tree::sample()).into_iter().filter(is_shown) {
        text.push_str(&render_part(&part, policy.judge(&[], &part).action));
        text.push('\n');
    }
    expected.assert_eq(&text);
}

#[test]
fn a_script_is_split_into_all_its_parts() {
    check(
        "read",
        "cd src && grep -n x a.rs | head -3 > out.txt; npm run dev -- --port 1",
        expect![[r#"
            allow bash: cd src  always Wild("cd *")
            allow bash: grep -n x a.rs  always Wild("grep *")
            allow bash: head -3  always Wild("head *")
            ask bash: npm run dev -- --port 1  always Wild("npm run dev *")
            allow read: src/a.rs  always Exact("src/a.rs")
            ask edit: src/out.txt  always Exact("src/out.txt")
        "#]],
    );
    check(
        "read",
        "cat .env link-out/private.txt /etc/hosts; echo > .git/config",
        expect![[r#"
        allow bash: cat .env link-out/private.txt /etc/hosts  always Wild("cat *")
        allow bash: echo  always Wild("echo *")
        ask read: .env  always Exact(".env")
        ask external_directory: /w/other/*
        allow read: /w/other/private.txt = link-out/private.txt  always Exact("/w/other/private.txt")
        ask external_directory: /etc/*
        allow read: /etc/hosts  always Exact("/etc/hosts")
        ask edit: .git/config  always Exact(".git/config")
    "#]],
    );
    check(
        "read",
        "timeout 5 git -C src checkout -b x",
        expect![[r#"
            allow bash: timeout 5 git -C src checkout -b x  always Wild("timeout *")
            ask bash: git -C src checkout -b x  always Wild("git checkout *")
        "#]],
    );
    check(
        "read",
        "sort -o out.txt a.txt && rm -rf $x",
        expect![[r#"
        allow bash: sort -o out.txt a.txt  always Wild("sort *")
        ask bash: rm -rf $x  always Exact("rm -rf $x")
        ask edit: out.txt  always Exact("out.txt")
        allow read: a.txt  always Exact("a.txt")
        ask edit: $x  Target
    "#]],
    );
}

#[test]
fn a_lasting_approval_remembers_a_prefix_or_exactly_what_was_shown() {
    check(
        "none",
        "git checkout main; docker compose up -d; npm run dev; ls -la; ./x --y",
        expect![[r#"
            ask bash: git checkout main  always Wild("git checkout *")
            ask bash: docker compose up -d  always Wild("docker compose up *")
            ask bash: npm run dev  always Wild("npm run dev *")
            ask bash: ls -la  always Wild("ls *")
            ask bash: ./x --y  always Wild("./x *")
        "#]],
    );
    check(
        "none",
        "git reset --hard; git -c a=b log; find empty -delete; FOO=1 ls; ls *.rs; echo '*' 'a b'",
        expect![[r#"
            ask bash: git reset --hard  always Exact("git reset --hard")
            ask bash: git -c a=b log  always Exact("git -c a=b log")
            ask bash: find empty -delete  always Exact("find empty -delete")
            ask bash: FOO=1 ls  always Exact("FOO=1 ls")
            ask bash: ls *.rs  always Wild("ls *")
            allow bash: echo '*' 'a b'  always Wild("echo *")
            ask edit: empty  always Exact("empty")
        "#]],
    );
    check(
        "none",
        "python3 a.py --x; python3 -m pytest -q; python3 -c 1; bash b.sh; bash -c 'ls'",
        expect![[r#"
            ask bash: python3 a.py --x  always Wild("python3 a.py *")
            ask bash: python3 -m pytest -q  always Wild("python3 -m pytest *")
            ask bash: python3 -c 1  always Exact("python3 -c 1")
            ask bash: bash b.sh  always Wild("bash b.sh *")
            ask bash: bash -c ls  always Exact("bash -c ls")
            ask bash: ls  always Wild("ls *")
            allow read: a.py  always Exact("a.py")
            allow read: b.sh  always Exact("b.sh")
        "#]],
    );
    check(
        "none",
        "git --no-pager log -3; timeout 5 ls",
        expect![[r#"
            ask bash: git --no-pager log -3  always Wild("git log *")
            allow bash: timeout 5 ls  always Wild("timeout *")
            ask bash: ls  always Wild("ls *")
        "#]],
    );
}

/// A remembered approval allows the same script, and other scripts only if the remembered patterns cover them.
#[test]
fn a_remembered_approval_allows_only_what_its_patterns_cover() {
    let mut policy = policy_named("none");
    let mut remember = |script: &str| {
        for part in parts(script, &analyze(script, &context()), &Tree::sample()) {
            policy.remembered.extend(part.remember_as.map(|pattern| Rule {
                permission: part.permission.into_owned(),
                pattern,
                action: Action::Allow,
                source: Source::Approved(Scope::Session),
            }));
        }
    };
    remember(
        "git checkout main && git log -5 | head; echo '*'; python3 a.py; git reset --hard; sort -o out.txt a.txt",
    );
    for script in [
        "git checkout main",
        "git checkout -- .",
        "git log --oneline",
        "head -2",
        "echo b",
        "git reset --hard",
    ] {
        assert_eq!(decide(&policy, script), Action::Allow, "{script} {}", explain(&policy, script));
    }
    for script in [
        "git log --output=x",
        "git reset --hard HEAD",
        "git -c a=b log",
        "git push",
        "python3 b.py",
        "sort -o out.txt b.txt; x",
        "sort -o other.txt a.txt",
        "git checkout $(touch made)",
        "git log; touch made",
        "git log > made",
    ] {
        assert_ne!(decide(&policy, script), Action::Allow, "{script}");
    }
}

/// Risky words must be spelled out by an allow rule. Ask and deny rules match other spellings of a command too.
#[test]
fn the_last_matching_rule_decides_and_risky_words_must_be_spelled_out() {
    let decide = |list: &[(&str, Action)], script: &str| {
        let policy = policy(
            ConfiguredRules { user: rules("bash", list), ..ConfiguredRules::default() },
            &[],
        );
        let parts = parts(script, &analyze(script, &context()), &Tree::sample());
        let bash = parts.iter().filter(|part| part.permission == "bash");
        bash.map(|part| policy.judge(&[], part).action).max()
    };
    use Action::{Allow, Ask, Deny};
    type RuleTexts = &'static [(&'static str, Action)];
    let cases: &[(RuleTexts, &str, Action)] = &[
        (&[("git *", Allow)], "git checkout -- .", Ask),
        (&[("git checkout *", Allow)], "git checkout -- .", Allow),
        (&[("git checkout *", Allow)], "git checkout -f", Ask),
        (&[("git checkout -f *", Allow)], "git checkout -f", Allow),
        (&[("*", Allow)], "git reset --hard", Allow),
        (&[("*", Allow), ("rm *", Deny)], "git reset --hard", Allow),
        (&[("git reset --hard *", Allow)], "git reset --hard HEAD", Allow),
        (&[("git reset --hard", Allow)], "git reset --hard HEAD", Ask),
        (&[("find * -delete", Allow)], "find . -name x -delete", Allow),
        (&[("find * -delete", Allow)], "find . -fprint x -delete", Ask),
        (&[("sed -i.bak *", Allow)], "sed -i.bak s/a/b/ a.txt", Allow),
        (&[("sed *", Allow)], "sed -i.bak s/a/b/ a.txt", Allow),
        (&[("sed *", Allow)], "sed -i/x s/a/b/ a.txt", Ask),
        (&[("sed -i *", Allow)], "sed -i 'w x' a.txt", Ask),
        (&[("ls -l *", Allow)], "ls -la src", Allow),
        (&[("go test -v *", Allow)], "go test -vet ./src", Ask),
        (&[("*", Ask), ("cut -d *", Allow)], "cut -dab a.txt", Ask),
        (&[("python3 -c *", Allow)], "python3 -c 1", Allow),
        (&[("python3 *", Allow)], "python3 -c 1", Ask),
        (&[("*", Allow), ("rm *", Deny)], "python3 -c 1", Ask),
        (&[("node -e *", Allow)], "node -e 'x()'", Allow),
        (&[("node -e *", Allow)], "node -p 1", Ask),
        (&[("perl -ne *", Allow)], "perl -ne 'print if /a/' a.txt", Allow),
        (&[("perl *", Allow)], "perl -ne 'print if /a/' a.txt", Ask),
        (&[("python3 -c *", Allow), ("rm *", Deny)], "python3 -c 'system(\"rm x\")'", Deny),
        (&[("awk *", Allow)], "awk '{print > \"f\"}' a.txt", Ask),
        (&[("export *", Allow)], "export FOO=bar", Allow),
        (&[("export *", Allow)], "export FOO=bar BAZ='a b'", Allow),
        (&[("export *", Allow)], "export PYTHONPATH=src", Ask),
        (&[("export PYTHONPATH=src", Allow)], "export PYTHONPATH=src", Allow),
        (&[("export *", Allow)], "export PATH=x", Ask),
        (&[("export *", Allow)], "export FOO='$(touch made)'", Ask),
        (&[("export *", Allow)], "export FOO=$x", Ask),
        (&[("export *", Allow)], "export NODE_OPTIONS=-r./x", Ask),
        (&[("npm run *", Allow)], "NODE_ENV=production npm run build", Allow),
        (&[("npm run *", Allow)], "NODE_OPTIONS=-r./x npm run build", Ask),
        (&[("cargo build *", Allow)], "CARGO_TARGET_DIR=target/ci cargo build", Allow),
        (&[("cargo build *", Allow)], "CARGO_TARGET_DIR=/tmp/x cargo build", Ask),
        (&[("cargo build *", Allow)], "CARGO_TARGET_DIR=../x cargo build", Ask),
        (&[("cargo build *", Allow)], "CARGO_TARGET_DIR=.git/hooks cargo build", Ask),
        (&[("go build *", Allow)], "go build -ldflags '-s -w -X main.version=1' ./...", Allow),
        (&[("go build *", Allow)], "go build -ldflags '-s -linkmode external -extld ./x'", Ask),
        (&[("go tool *", Allow)], "go tool cover -func=a.txt", Allow),
        (&[("npm *", Allow)], "npm ls -g --depth=0", Allow),
        (&[("npm *", Allow)], "npm pkg get version", Allow),
        (&[("npm *", Allow)], "npm pkg set version=1", Ask),
        (&[("python3 -c 1", Allow)], "python3 -c 1", Allow),
        (&[("*", Deny), ("git *", Allow)], "git log", Allow),
        (&[("*", Deny), ("git *", Allow)], "git reset --hard", Deny),
        (&[("git *", Allow), ("*", Deny)], "git log", Deny),
        (&[("*", Deny), ("/usr/bin/ls *", Allow)], "/usr/bin/ls a", Allow),
        (&[("ls *", Allow)], "/usr/bin/ls a", Ask),
        (&[("*", Allow), ("rm *", Deny)], "/usr/bin/rm a", Deny),
        (&[("*", Allow), ("rm -rf *", Deny)], "rm -f -r a", Deny),
        (&[("*", Allow), ("rm -rf *", Deny)], "rm --recursive --force a", Deny),
        (&[("*", Allow), ("rm -rf *", Deny)], "rm -f a", Allow),
        (&[("*", Allow), ("git push *", Ask)], "git -C . push", Ask),
        (&[("*", Allow), ("kubectl delete *", Deny)], "kubectl -n x delete pod", Deny),
        (&[("*", Allow), ("kubectl delete *", Deny)], "kubectl get pod delete", Allow),
        (&[("*", Allow), ("npm publish *", Deny)], "npm --silent publish", Deny),
        (&[("rm *", Deny), ("*", Allow)], "rm a", Allow),
        (&[("*", Allow), ("rm *", Deny)], "/bin/RM a", Deny),
        (&[("*", Allow), ("RM -rf *", Deny)], "rm -fr a", Deny),
        (&[("*", Allow), ("git pu?h *", Deny)], "Git push", Deny),
        (&[("*", Allow), ("rm *", Deny)], "wrapper RM a", Ask),
        (&[("ls *", Allow)], "LS a", Ask),
        (&[("*", Allow), ("sudo *", Ask)], "sudoedit a", Ask),
        (&[("sudo *", Allow)], "sudoedit a", Ask),
        (&[("pytest -p *", Allow)], "pytest -p xdist", Allow),
        (&[("pytest -p*", Allow)], "pytest -pxdist", Allow),
        (&[("pytest *", Allow)], "pytest -p xdist", Ask),
        (&[("NODE_ENV=test npm test *", Allow)], "NODE_ENV=test npm test", Allow),
        (&[("npm test *", Allow)], "NODE_ENV=test npm test", Allow),
        (&[("npm test *", Allow)], "NODE_ENV=production npm test", Allow),
        (&[("CI=1 npm test *", Allow)], "CI=1 npm test", Allow),
        (&[("CI=1 npm test *", Allow)], "npm test", Ask),
        (&[("CI=* npm test *", Allow)], "CI=' npm test ' touch made", Ask),
        (&[("CI=1 npm *", Allow)], "CI=1 npm --script-shell=x test", Ask),
        (&[("*", Allow), ("CI=1 *", Deny)], "CI=1 npm test", Deny),
        (&[("npm test *", Allow)], "CI=1 npm test", Allow),
        (&[("ls *", Allow)], "cd src && ls", Allow),
        (&[("ls *", Allow), ("cd *", Deny)], "cd src && ls", Deny),
        (&[("ls *", Allow), ("cd *", Ask)], "cd src && ls", Ask),
        (&[("*", Deny), ("ls *", Allow)], "cd src && ls", Allow),
        (&[("*", Allow), ("rm *", Deny)], "wrapper rm a", Ask),
        (&[("*", Allow), ("rm *", Deny)], "cat rm", Allow),
        (&[("node *", Allow), ("rm *", Deny)], "node x.js \"a('rm')\"", Ask),
        (&[("node *", Allow), ("rm *", Deny)], "node x.js \"exec 'rm', 'x'\"", Ask),
        (&[("ruby *", Allow), ("rm *", Deny)], "ruby x.rb '`rm x`'", Ask),
        (&[("ruby *", Allow), ("rm *", Deny)], "ruby x.rb 'a; rm x'", Ask),
        (&[("node *", Allow), ("rm *", Deny)], "node x.js '{rmdir, a}'", Allow),
        (&[("*", Allow)], "$x", Allow),
        (&[("*", Allow), ("rm *", Deny)], "$x", Ask),
        (&[("ls", Allow)], "'ls'", Allow),
        (&[("a b", Allow)], "'a b'", Ask),
        (&[("curl http://h/*", Allow)], "curl 'http://h/x?a=1&b=2'", Allow),
    ];
    for (list, script, expected) in cases {
        assert_eq!(decide(list, script), Some(*expected), "{list:?} {script}");
    }
}

/// The parts are the same whether facts are gathered in rounds or all known from the start.
#[test]
fn facts_can_be_gathered_in_rounds() {
    let tree = Tree::sample();
    for script in [
        "cat src/*.rs link-*/x && ls -d .*",
        "cd src; cat ../a.txt",
        "cd src; ls; cd ..; ls",
        "for f in *.txt; do cp \"$f\" \"$f.bak\"; done",
        "diff -r src tests",
        "git checkout a.txt",
        "ls",
    ] {
        let first = helve_text::shell::analyze(script, &context());
        let mut facts = GatheredFacts::with_programs_of_workspace();
        let mut rounds = 0;
        let gathered = loop {
            let again = super::analyze_with_facts(&first, script, &context(), &facts);
            let gathered = parts(script, again.as_ref().unwrap_or(&first), &facts);
            let missing = facts.take_missing();
            if missing.is_empty() {
                break gathered;
            }
            rounds += 1;
            assert!(rounds < 6, "{script}");
            for query in missing {
                let answer = match &query {
                    FactQuery::Resolve(path) => FactAnswer::Resolved(tree.resolve(path)),
                    FactQuery::List(folder) => FactAnswer::Listed(tree.list(folder)),
                    FactQuery::Tree(query) => FactAnswer::Tree(tree.tree(query)),
                    FactQuery::Program(name) => FactAnswer::Program(tree.program(name)),
                };
                facts.insert(query, answer);
            }
        };
        assert_eq!(gathered, parts(script, &analyze(script, &context()), &tree), "{script}");
    }
}

/// The loops create so many links to one another that following them exceeds the limit.
#[test]
fn scripts_with_too_many_links_are_asked_about() {
    let names = "a b c d e f g h";
    let mut script = "ln -s $x$y $y$z; cat $z$x/q".to_string();
    for name in ["x", "y", "z"] {
        script = format!("for {name} in {names}; do {script}; done");
    }
    assert_eq!(decide(&policy_named("all"), &script), Action::Ask);
}

#[test]
fn unknown_files_are_asked_about() {
    let policy = policy_named("all");
    let script = "cat a.txt";
    let parts = parts(script, &analyze(script, &context()), &GatheredFacts::default());
    assert_eq!(policy.judge_all(&[], &parts), Action::Ask);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_variant_of_an_attack_is_allowed(pick in any::<prop::sample::Index>(), seeds in prop::collection::vec(any::<u64>(), 1..4)) {
        let attacks = attacks();
        let (name, script) = &attacks[pick.index(attacks.len())];
        let variant = seeds.iter().fold(script.clone(), |script, seed| mutate::change(&script, *seed));
        prop_assert_ne!(decide(&policy_named(name), &variant), Action::Allow, "{}", variant);
    }

    #[test]
    fn judging_any_text_does_not_panic(script in any::<String>()) {
        let action = decide(&policy_named("read"), &script);
        prop_assert_ne!(action, Action::Deny);
    }
}
