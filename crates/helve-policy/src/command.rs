//! Matching rules against one command of a script.

use helve_text::shell::{Approval, Risk, RiskKind, Run, Word, WordRole};
use helve_text::wildcard;

use crate::rule::{Action, Pattern, Rule, Source};

mod arity;

/// A command in every spelling that a rule may match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// Assignments and words, fully quoted: unique for each command, and what is shown and remembered.
    text: String,
    /// `text` with only the quotes that keep words apart, as people write rules.
    lightly_quoted: String,
    /// Without harmless flags before the subcommand: `git --no-pager log` becomes `git log`.
    without_global_flags: Option<String>,
    /// With clustered flags split: `sed -nE` becomes `sed -n -E`.
    flags_split: Option<String>,
    /// With harmless assignments in front, in case a rule spells them.
    with_assignments: Option<String>,
    /// Further spellings against which ask and deny rules are matched.
    spellings: Vec<String>,
    words: Vec<(String, WordRole)>,
    /// Another program whose rules also apply.
    alias: Option<String>,
    /// Names of programs that the command may start.
    may_start: Vec<String>,
    risks: Vec<Risk>,
    /// Assignments that an allow rule must spell out.
    assignments: Vec<String>,
    approval: Approval,
    /// Whether the program is in the table, so that its operands are known not to be programs.
    is_known: bool,
    is_interpreter: bool,
    /// Whether some words are only known when the command runs.
    is_dynamic: bool,
}

/// What one list of rules says about a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'r> {
    /// `None` if no rule matches.
    pub action: Option<Action>,
    pub rule: Option<&'r Rule>,
}

impl Command {
    /// `extra` are risks that follow from facts about files. They are attributed to the subcommand.
    pub(crate) fn new(run: &Run, extra: Vec<Risk>) -> Self {
        let words: Vec<(String, WordRole)> = run
            .words
            .iter()
            .zip(&run.roles)
            .map(|(word, role)| (word.shown().to_string(), *role))
            .collect();
        let quoted: Vec<String> = run.words.iter().map(|word| quote(word, SHELL_SPECIAL)).collect();
        let light: Vec<String> = run.words.iter().map(|word| quote(word, WORD_BREAKING)).collect();
        let subcommand = run.roles.iter().rposition(|role| *role == WordRole::Subcommand);
        let blamed = subcommand.unwrap_or(0);
        let blame = |risk: Risk| Risk { word: blamed, spelled: words[blamed].0.clone(), ..risk };
        let risks = run.risks.iter().cloned().chain(extra.into_iter().map(blame)).collect();
        let before: String = run.assignments.iter().map(|it| format!("{it} ")).collect();
        let is_bare = before.is_empty();
        let mut command = Self {
            text: format!("{before}{}", quoted.join(" ")),
            lightly_quoted: format!("{before}{}", light.join(" ")),
            without_global_flags: without_global_flags(run, &light).filter(|_| is_bare),
            flags_split: split_clusters(run, &light).filter(|_| is_bare),
            with_assignments: with_harmless_assignments(run, &light).filter(|_| is_bare),
            spellings: Vec::new(),
            words,
            alias: run.rule_alias(),
            may_start: run.mentioned_programs(),
            risks,
            assignments: run.assignments.clone(),
            approval: run.approval,
            is_known: run.is_known,
            is_interpreter: run.is_interpreter,
            is_dynamic: run.words.iter().any(|word| word.literal().is_none()),
        };
        command.spellings = command.other_spellings(&light);
        command
    }

    /// The command as it is shown.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What a lasting approval remembers: the words that name the operation, or exactly this command.
    pub(crate) fn remembered(&self) -> Pattern {
        let exact = Pattern::Exact(self.text.clone());
        if !self.risks.is_empty() || !self.assignments.is_empty() {
            return exact;
        }
        let subcommand = self.words.iter().position(|(_, role)| *role == WordRole::Subcommand);
        let first_kept = subcommand.filter(|_| self.without_global_flags.is_some()).unwrap_or(1);
        let words: Vec<&str> = self
            .words
            .iter()
            .enumerate()
            .filter(|(at, _)| *at == 0 || *at >= first_kept)
            .map(|(_, (word, _))| word.as_str())
            .collect();
        let script = self.words.iter().position(|(_, role)| *role == WordRole::Script);
        let named = match script {
            Some(at) => words.get(..=at).unwrap_or(&words),
            None if self.is_interpreter && words.get(1) != Some(&"-m") => return exact,
            None => arity::prefix(&words),
        };
        let prefix = named.join(" ");
        if prefix.contains(['*', '?', '\'', '"', '\\', '\n', '$', '`'])
            || named.iter().any(|word| word.contains(' '))
        {
            return exact;
        }
        let pattern = Pattern::Wild(format!("{prefix} *"));
        let (permission, action, source) = ("bash".into(), Action::Allow, Source::Program);
        let allow = Rule { permission, pattern: pattern.clone(), action, source };
        // The remembered rule must let the same command through the next time.
        if self.is_matched_by(&allow) { pattern } else { exact }
    }

    /// The action where no rule matches.
    pub(crate) fn default_action(&self, wall_default: Action) -> Action {
        match self.approval {
            Approval::Exempt => Action::Allow,
            Approval::Required => wall_default,
        }
    }

    /// The last matching rule of one list decides.
    pub fn decide<'r>(
        &self,
        rules: impl DoubleEndedIterator<Item = &'r Rule> + Clone,
    ) -> Decision<'r> {
        let is_for_bash = |rule: &&'r Rule| wildcard::matches(&rule.permission, "bash");
        let rule = rules.clone().rev().filter(is_for_bash).find(|rule| self.is_matched_by(rule));
        let mut action = rule.map(|rule| rule.action);
        if action == Some(Action::Allow) {
            // An unknown program may run whatever its words name.
            let denied = rules.rev().filter(is_for_bash).find(|rule| self.may_start_denied(rule));
            if let Some(deny) = denied {
                return Decision { action: Some(Action::Ask), rule: Some(deny) };
            }
        }
        if rule.is_none() && self.approval == Approval::Exempt {
            action = None;
        }
        Decision { action, rule }
    }

    fn is_matched_by(&self, rule: &Rule) -> bool {
        if self.approval == Approval::Exempt && !self.is_named_in(&rule.pattern) {
            return false;
        }
        match rule.action {
            Action::Allow => self.is_covered_by(&rule.pattern),
            Action::Ask | Action::Deny => {
                let pattern = &rule.pattern;
                pattern.matches(&self.text)
                    || pattern.matches(&self.lightly_quoted)
                    || self.spellings.iter().any(|spelling| pattern.matches(spelling))
                    || self.matches_reordered(pattern)
            }
        }
    }

    /// An allow rule must match the command as written, and every risky word literally, not by a wildcard.
    fn is_covered_by(&self, pattern: &Pattern) -> bool {
        let wild = match pattern {
            Pattern::Exact(exact) => return *exact == self.text,
            Pattern::Wild(wild) | Pattern::CaseInsensitive(wild) => wild,
        };
        if !wild.contains(['*', '?'])
            && (*wild == self.text || *wild == self.lightly_quoted && !self.is_dynamic)
        {
            return true;
        }
        let others = self.without_global_flags.iter().chain(&self.flags_split);
        let others = others.chain(&self.with_assignments);
        let matches = |text: &String| pattern.matches(text);
        if ![&self.text, &self.lightly_quoted].into_iter().chain(others).any(matches) {
            return false;
        }
        let tokens: Vec<&str> = wild.split(' ').collect();
        let is_spelled =
            |word: &str, prefix: &str| tokens.iter().any(|token| spells(token, word, prefix));
        let is_risk_spelled = |risk: &Risk| match risk.kind {
            RiskKind::Code => false,
            RiskKind::Unlisted | RiskKind::Writes | RiskKind::Destroys | RiskKind::Runs => {
                let word = self.words.get(risk.word).map_or("", |(word, _)| word);
                is_spelled(word, &risk.spelled)
            }
        };
        self.risks.iter().all(is_risk_spelled)
            && self.assignments.iter().all(|it| is_spelled(it, it))
    }

    fn is_named_in(&self, pattern: &Pattern) -> bool {
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        !first.contains(['*', '?']) && self.program_names().any(|name| name == first)
    }

    /// The names under which ask and deny rules know the program.
    fn program_names(&self) -> impl Iterator<Item = &str> {
        let name = self.words.first().map_or("", |(word, _)| word);
        let base = name.rsplit('/').next().unwrap_or(name);
        let without_exe = base.strip_suffix(".exe").unwrap_or(base);
        let names = [name, base, without_exe, base.strip_prefix('=').unwrap_or(base)];
        names.into_iter().chain(self.alias.as_deref())
    }

    /// Whether the command may start a program that a rule denies.
    fn may_start_denied(&self, rule: &Rule) -> bool {
        let first = rule.pattern.as_str().split(' ').next().unwrap_or("");
        let is_first = |name: &String| name.eq_ignore_ascii_case(first);
        rule.action == Action::Deny
            && !first.is_empty()
            && !first.contains(['*', '?'])
            && self.may_start.iter().any(is_first)
    }

    /// The program name is also tried in lower case, because some file systems ignore case.
    fn other_spellings(&self, quoted: &[String]) -> Vec<String> {
        let mut spellings = Vec::new();
        let bare: Vec<&str> = self.words.iter().map(|(word, _)| word.as_str()).collect();
        let lower = self.program_names().map(str::to_ascii_lowercase);
        for name in self.program_names().map(str::to_string).chain(lower) {
            for words in [&bare, &quoted.iter().map(String::as_str).collect()] {
                let rest = words.get(1..).unwrap_or(&[]);
                spellings.push([&[name.as_str()], rest].concat().join(" "));
            }
        }
        spellings.extend(self.without_global_flags.iter().chain(&self.with_assignments).cloned());
        spellings.sort();
        spellings.dedup();
        spellings
    }

    /// Whether an ask or deny rule matches with its words in another order: operands in the same order, flags
    /// anywhere, alone or in a cluster.
    fn matches_reordered(&self, pattern: &Pattern) -> bool {
        let text = match pattern {
            Pattern::Wild(text) | Pattern::CaseInsensitive(text) => text,
            Pattern::Exact(_) => return false,
        };
        let mut tokens = text.split_whitespace();
        let Some(first) = tokens.next() else { return false };
        let is_named = self.program_names().any(|name| name.eq_ignore_ascii_case(first));
        if first.contains(['*', '?']) || !is_named {
            return false;
        }
        let tokens: Vec<&str> = tokens.take_while(|token| *token != "*").collect();
        let (flags, operands): (Vec<&str>, Vec<&str>) =
            tokens.into_iter().partition(|token| token.starts_with('-'));
        flags.iter().all(|flag| self.has_flag(flag)) && self.has_operands(&operands)
    }

    fn has_flag(&self, wanted: &str) -> bool {
        let given = self.words.iter().filter(|(_, role)| *role == WordRole::Flag);
        let given: Vec<&str> = given.map(|(word, _)| word.as_str()).collect();
        let is_cluster = |flag: &str| flag.starts_with('-') && !flag.starts_with("--");
        if !is_cluster(wanted) {
            return given.iter().any(|flag| {
                wildcard::matches(wanted, flag) || flag.split('=').next() == Some(wanted)
            });
        }
        wanted.chars().skip(1).all(|letter| {
            given.iter().any(|flag| is_cluster(flag) && flag.contains(letter))
                || given.iter().any(|flag| flag.starts_with("--") && flag[2..].starts_with(letter))
        })
    }

    /// Whether the operands start with these. A word after a flag that is not in the table may be its value.
    fn has_operands(&self, operands: &[&str]) -> bool {
        let mut wanted = operands.iter().peekable();
        let mut may_be_value = false;
        for (at, (word, role)) in self.words.iter().enumerate().skip(1) {
            let Some(operand) = wanted.peek() else { return true };
            match role {
                WordRole::Flag => {
                    may_be_value = !self.is_known || self.risks.iter().any(|it| it.word == at)
                }
                WordRole::Value => {}
                WordRole::Program | WordRole::Subcommand | WordRole::Operand | WordRole::Script => {
                    if wildcard::matches(operand, word) {
                        wanted.next();
                    } else if !may_be_value {
                        return false;
                    }
                    may_be_value = false;
                }
            }
        }
        wanted.peek().is_none()
    }
}

/// The words with each letter of `-abc` as a flag of its own, if the program takes clusters.
fn split_clusters(run: &Run, words: &[String]) -> Option<String> {
    let letters = |at: usize| {
        let letters = words[at].strip_prefix('-').filter(|_| run.flag_clusters.contains(&at))?;
        let is_plain = letters.bytes().all(|c| c.is_ascii_alphabetic());
        is_plain.then(|| letters.chars().map(|letter| format!("-{letter}")).collect::<Vec<_>>())
    };
    let split = |at: usize| letters(at).unwrap_or_else(|| vec![words[at].clone()]);
    let all: Vec<String> = (0..words.len()).flat_map(split).collect();
    (run.is_known && all.len() > words.len()).then(|| all.join(" "))
}

/// The command with assignments in front that need no rule. `None` if a value contains
/// spaces, which could pass for words of the command.
fn with_harmless_assignments(run: &Run, words: &[String]) -> Option<String> {
    let harmless = &run.harmless_assignments;
    let is_one_word = |text: &String| !text.contains(|c| SHELL_SPECIAL.contains(c));
    (!harmless.is_empty() && harmless.iter().all(is_one_word))
        .then(|| harmless.iter().chain(words).cloned().collect::<Vec<_>>().join(" "))
}

/// Whether a token of a rule contains this word literally, not through a wildcard.
fn spells(token: &str, word: &str, required_prefix: &str) -> bool {
    match token.find(['*', '?']) {
        None => token == word || token == required_prefix,
        Some(wild) => !required_prefix.is_empty() && token[..wild].starts_with(required_prefix),
    }
}

/// The words without harmless flags, and their values, before the subcommand.
fn without_global_flags(run: &Run, words: &[String]) -> Option<String> {
    let first = run.roles.iter().position(|role| *role == WordRole::Subcommand)?;
    let is_risky = |at: &usize| run.risks.iter().any(|risk| risk.word == *at);
    let between = 1..first;
    let is_harmless = |at: usize| match run.roles[at] {
        WordRole::Flag => run.words[at].shown().starts_with('-') && !is_risky(&at),
        WordRole::Value => !is_risky(&at),
        WordRole::Program | WordRole::Subcommand | WordRole::Operand | WordRole::Script => false,
    };
    if between.is_empty() || !between.clone().all(is_harmless) {
        return None;
    }
    let kept = std::iter::once(0).chain(first..run.words.len());
    Some(kept.map(|at| words[at].as_str()).collect::<Vec<_>>().join(" "))
}

/// Characters with a meaning to a shell.
const SHELL_SPECIAL: &str = " \t\n'\"\\$`*?[]{}()<>|&;#!~";
/// Characters that would make one word look like two.
const WORD_BREAKING: &str = " \t\n'\"";

/// Quotes a word if it contains any of these characters.
fn quote(word: &Word, special: &str) -> String {
    match word {
        Word::Literal(text) if text.is_empty() || text.contains(|c| special.contains(c)) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        Word::Literal(_) | Word::Glob(_) | Word::Dynamic(_) => word.shown().to_string(),
    }
}
