//! Explains in one clause why a part of a call must be asked about or is denied.

use helve_core::{Action, Part, Reason, Rule, Scope, Source, Unclear, Verdict};
use helve_text::shell::{DoubtKind, RiskKind};
use helve_text::visible;

/// Returns the clause that explains a verdict.
pub fn reason(part: &Part, verdict: &Verdict) -> String {
    match (&verdict.reason, part.unclear()) {
        (Reason::Unclear, Some(why)) => unclear(why).into(),
        (Reason::Rule | Reason::Unclear, _) => by_rule(part, verdict),
        (Reason::Risk { word, kind }, _) => risk(&code(word), *kind),
        (Reason::Assignment(assignment), _) => {
            format!("no rule allows setting {} for this command", code(assignment))
        }
        (Reason::Operand(word), _) => {
            format!("the rule for this command does not cover {}", code(word))
        }
        (Reason::LinkedProgram(path), _) => format!("the program is a link to {}", code(path)),
        (Reason::MayStart(program), _) => {
            format!("it may start {}, which a rule denies", code(program))
        }
        (Reason::MayChange(path), _) => {
            format!("it may change {}, which a rule denies", code(path))
        }
        (Reason::MayRead(path), _) => {
            format!("it may print {}, and a rule forbids reading that file", code(path))
        }
        (Reason::MayOpen(path), _) => may_open(path, verdict),
        (Reason::OutsideSandbox, _) => {
            "it runs outside the sandbox, and no rule for `unsandboxed` allows that".into()
        }
        (Reason::Hook(hook), _) => format!("{hook} asks about it"),
        (Reason::OnlyReads, _) => "it only reads files in the folder".into(),
        (Reason::LocalNetwork, _) => {
            format!("{}, and no rule names the host", local_network(part).unwrap_or_default())
        }
    }
}

fn code(text: &str) -> String {
    format!("`{}`", visible::escape_line(text))
}

/// Says where a URL in the local network leads to; `None` for other parts.
fn local_network(part: &Part) -> Option<String> {
    let address = visible::escape_line(part.local_address()?);
    Some(format!("the host is in the local network ({address})"))
}

fn by_rule(part: &Part, verdict: &Verdict) -> String {
    let is_default = |rule: &Rule| {
        rule.source == Source::Builtin && rule.permission == "*" && rule.action == Action::Ask
    };
    match &verdict.rule {
        Some(rule) if !is_default(rule) => match local_network(part) {
            Some(local) if rule.action == Action::Ask => format!("{local}; {}", rule_text(rule)),
            Some(_) | None => rule_text(rule),
        },
        None | Some(_) if part.permission == "external_directory" => {
            "it is outside the folder, and no rule allows it".into()
        }
        None | Some(_) if local_network(part).is_some() => {
            format!("{}, and no rule allows it", local_network(part).unwrap_or_default())
        }
        None | Some(_) => "no rule allows it".into(),
    }
}

/// Returns a rule and where it was written.
fn rule_text(rule: &Rule) -> String {
    let text = format!(
        "rule {} \"{}\": {}",
        rule.permission,
        visible::escape_line(rule.pattern.as_str()),
        match rule.action {
            Action::Allow => "allow",
            Action::Ask => "ask",
            Action::Deny => "deny",
        }
    );
    match &rule.source {
        Source::Builtin => format!("built-in {text}"),
        Source::File { path, line, .. } => format!("{text}, {}:{line}", path.display()),
        Source::Flag(flag) => format!("{text}, {flag}"),
        Source::Approved(scope) => format!("{text}, approved {}", scope_name(*scope)),
        Source::Program => format!("{text}, set by the program"),
    }
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "once",
        Scope::Session => "for this session",
        Scope::Project => "for this project",
        Scope::Everywhere => "everywhere",
    }
}

fn risk(word: &str, kind: RiskKind) -> String {
    match kind {
        RiskKind::Unlisted => format!("it is not known what {word} does"),
        RiskKind::Writes => format!("{word} writes files"),
        RiskKind::Destroys => format!("{word} can destroy work"),
        RiskKind::Runs => format!("{word} runs a program"),
        RiskKind::Code => format!("{word} runs code that is not analysed"),
    }
}

/// Explains why a script that mentions a file is asked about.
fn may_open(path: &str, verdict: &Verdict) -> String {
    let Some(rule) = &verdict.rule else {
        return "it has too many words to check each of them against the rules about files".into();
    };
    let does = match rule.action {
        Action::Deny => "denies",
        Action::Ask | Action::Allow => "asks about",
    };
    format!("it names {}, which a rule {does}, and may open it when it runs", code(path))
}

fn unclear(why: &Unclear) -> &'static str {
    match why {
        Unclear::Doubt(doubt) => in_doubt(doubt.kind),
        Unclear::Target => "the file is only known when the command runs",
        Unclear::Flag => "a file name would act as a flag",
        Unclear::Tree => "the folder has too many files to check each of them against the rules",
        Unclear::WordSplitting => "a file name would be split into words; quote the variable",
    }
}

fn in_doubt(kind: DoubtKind) -> &'static str {
    match kind {
        DoubtKind::TooLong => "the script is too long to analyse",
        DoubtKind::TooDeep => "the script is nested too deeply to analyse",
        DoubtKind::TooMany => "the script has too many commands to analyse",
        DoubtKind::Syntax => "the syntax is not understood",
        DoubtKind::Disagreement => "the script can be read in more than one way",
        DoubtKind::Hidden => "it contains hidden characters",
        DoubtKind::Program => "the command is built at run time",
        DoubtKind::Indirect => "text is expanded a second time",
        DoubtKind::Arithmetic => "a value in arithmetic might not be a number",
        DoubtKind::Function => "a function may replace a program",
        DoubtKind::Variable => "a variable changes how programs run",
        DoubtKind::State => "it changes how the shell works",
        DoubtKind::ExternalCode => "it runs code that is not part of the command line",
        DoubtKind::Wrapper => "it runs another program in a way that is not analysed",
        DoubtKind::Network => "it opens a network connection",
    }
}

#[cfg(test)]
mod tests {
    use helve_core::builtin::{ConfiguredRules, policy};
    use helve_policy::shell::{GatheredFacts, parts};
    use helve_text::shell::{ShellContext, analyze};

    use super::*;

    /// Checks the clauses for all programs of a script that are not allowed.
    #[track_caller]
    fn check(rules: &[(&str, Action)], script: &str, expected: &[&str]) {
        let rule = |(pattern, action): &(&str, Action)| {
            let (path, line, column) = (std::path::Path::new("/h/helve.json").into(), 3, 1);
            Rule::new("bash", pattern, *action, Source::File { path, line, column })
        };
        let user = rules.iter().map(rule).collect();
        let policy = policy(ConfiguredRules { user, ..ConfiguredRules::default() }, &[]);
        let context = ShellContext { cwd: "/w".into(), ..ShellContext::default() };
        let script_parts = parts(script, &analyze(script, &context), &GatheredFacts::default());
        let mut clauses = Vec::new();
        for part in script_parts.iter().filter(|part| part.permission == "bash") {
            let verdict = policy.judge(&[], part);

            if verdict.action != Action::Allow {
                clauses.push(reason(part, &verdict));
            }
        }
        assert_eq!(clauses, expected, "{script}");
    }

    #[test]
    fn every_ask_says_why() {
        use Action::{Allow, Ask, Deny};
        check(&[], "make", &["no rule allows it"]);
        check(&[("*", Ask)], "make", &["rule bash \"*\": ask, /h/helve.json:3"]);
        let list = [
            ("*", Ask),
            ("git *", Allow),
            ("find *", Allow),
            ("sort *", Allow),
            ("python3 *", Allow),
        ];
        check(&list, "git reset --hard", &["`--hard` can destroy work"]);
        check(&list, "git log --output=x", &["`--output` writes files"]);
        let asks = "rule bash \"*\": ask, /h/helve.json:3";
        check(&list, "git -c core.pager=x log", &["`-c` runs a program", asks]);
        check(&list, "git log --no-such-flag", &["it is not known what `--no-such-flag` does"]);
        check(&list, "FOO=1 git log", &["no rule allows setting `FOO=1` for this command"]);
        check(&list, "python3 -c 'print(1)'", &["`-c` runs code that is not analysed"]);
        check(
            &[("*", Ask), ("rm -rf dist/*", Allow)],
            "rm -rf dist/a src",
            &["the rule for this command does not cover `src`"],
        );
        check(&[("*", Allow), ("rm *", Deny)], "$cmd", &["the command is built at run time"]);
        check(
            &[("*", Allow), ("rm *", Deny)],
            "unknown rm a",
            &["it may start `rm`, which a rule denies"],
        );
        check(
            &[("*", Allow), ("rm *", Deny)],
            "rm a",
            &["rule bash \"rm *\": deny, /h/helve.json:3"],
        );
        check(
            &[("*", Allow), ("git push*", Ask)],
            "f() { ls; }; f",
            &["a function may replace a program"],
        );
    }
}
