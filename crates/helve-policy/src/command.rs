//! Matches rules against one command of a script.

use helve_text::shell::{Approval, Risk, RiskKind, Run, Word, WordRole};
use helve_text::wildcard;

use crate::rule::{Action, Pattern, Rule, Source};

mod arity;

/// A command of a script, in every spelling that a rule may match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// Assignments and words, fully quoted. This text is shown and remembered, and no two commands share it.
    text: String,
    /// Like `text`, but only words with spaces or quotes are quoted, as in the rules that people write.
    lightly_quoted: String,
    /// The command without harmless flags before the subcommand: `git --no-pager log` becomes `git log`.
    without_global_flags: Option<String>,
    /// The command with clustered flags split: `sed -nE` becomes `sed -n -E`.
    with_split_flags: Option<String>,
    /// The command with its harmless assignments, for rules that spell them out.
    with_assignments: Option<String>,
    /// Further spellings that ask and deny rules may match.
    spellings: Vec<String>,
    /// The command with its redirects, which ask and deny rules may match.
    with_redirects: Vec<String>,
    words: Vec<(String, WordRole)>,
    /// Other commands that mean the same. Ask and deny rules about them apply.
    twins: Vec<Vec<(String, WordRole)>>,
    /// The first words of all spellings. A pattern with another first word cannot match.
    first_words: Vec<String>,
    /// The command with the paths that its program and scripts lead to. An allow rule must match one text of each
    /// list.
    resolved: Vec<Vec<String>>,
    /// Words of which any may be the start of a command that is run.
    possible_commands: Vec<String>,
    /// Name of another program whose rules also apply.
    alias: Option<String>,
    /// Names of programs that appear in the arguments and that the command may start.
    mentioned_programs: Vec<String>,
    risks: Vec<Risk>,
    /// Assignments that an allow rule must spell out.
    assignments: Vec<String>,
    approval: Approval,
    /// Whether the program is in the table of known programs.
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
    /// `extra_risks` follow from facts about files. They are attributed to the subcommand.
    pub(crate) fn new(run: &Run, extra_risks: Vec<Risk>) -> Self {
        let words: Vec<(String, WordRole)> = run
            .words
            .iter()
            .zip(&run.roles)
            .map(|(word, role)| (word.shown().to_string(), *role))
            .collect();
        let quoted: Vec<String> = run.words.iter().map(|word| quote(word, SHELL_SPECIAL)).collect();
        let lightly_quoted: Vec<String> =
            run.words.iter().map(|word| quote(word, WORD_BREAKING)).collect();
        let subcommand = run.roles.iter().rposition(|role| *role == WordRole::Subcommand);
        let risky_word = subcommand.unwrap_or(0);
        let attribute =
            |risk: Risk| Risk { word: risky_word, spelled: words[risky_word].0.clone(), ..risk };
        let risks =
            run.risks.iter().cloned().chain(extra_risks.into_iter().map(attribute)).collect();
        let assignments: String = run.assignments.iter().map(|it| format!("{it} ")).collect();
        let has_no_assignments = assignments.is_empty();
        let mut command = Self {
            text: format!("{assignments}{}", quoted.join(" ")),
            lightly_quoted: format!("{assignments}{}", lightly_quoted.join(" ")),
            without_global_flags: without_global_flags(run, &lightly_quoted)
                .filter(|_| has_no_assignments),
            with_split_flags: split_clusters(run, &lightly_quoted).filter(|_| has_no_assignments),
            with_assignments: with_harmless_assignments(run, &lightly_quoted)
                .filter(|_| has_no_assignments),
            spellings: Vec::new(),
            with_redirects: run.with_redirects.clone(),
            words,
            twins: run.twins.clone(),
            first_words: Vec::new(),
            resolved: resolved_texts(run, &lightly_quoted),
            possible_commands: run.possible_commands.clone(),
            alias: run.rule_alias(),
            mentioned_programs: run.mentioned_programs(),
            risks,
            assignments: run.assignments.clone(),
            approval: run.approval,
            is_known: run.is_known,
            is_interpreter: run.is_interpreter,
            is_dynamic: run.words.iter().any(|word| word.literal().is_none()),
        };
        command.spellings = command.other_spellings(&lightly_quoted);
        command.first_words = command.first_words();
        command
    }

    /// Returns the command as it is shown to the person.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the pattern that a lasting approval remembers: the words that name the operation (`git checkout *`), or
    /// exactly this command if it is risky or if no such pattern would match it.
    pub(crate) fn approval_pattern(&self) -> Pattern {
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
            None => arity::operation(&words),
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
        // The remembered rule must allow the same command the next time.
        if self.is_matched_by(&allow) { pattern } else { exact }
    }

    /// Returns the action if no rule matches.
    pub(crate) fn default_action(&self, wall_default: Action) -> Action {
        match self.approval {
            Approval::Exempt => Action::Allow,
            Approval::Required => wall_default,
        }
    }

    /// Decides by the last matching rule of one list.
    pub fn decide<'r>(
        &self,
        rules: impl DoubleEndedIterator<Item = &'r Rule> + Clone,
    ) -> Decision<'r> {
        let is_for_bash = |rule: &&'r Rule| wildcard::matches(&rule.permission, "bash");
        let rule = rules.clone().rev().filter(is_for_bash).find(|rule| self.is_matched_by(rule));
        let mut action = rule.map(|rule| rule.action);
        if action == Some(Action::Allow) {
            // The command may start a program that is denied under its own name.
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

    /// Whether a rule applies to the command. Allow rules are matched more strictly than others.
    fn is_matched_by(&self, rule: &Rule) -> bool {
        if self.approval == Approval::Exempt && !self.is_named_in(&rule.pattern) {
            // A rule may be about the redirects.
            return rule.action != Action::Allow
                && !rule.pattern.matches(&self.lightly_quoted)
                && self.with_redirects.iter().any(|text| rule.pattern.matches(text));
        }
        match rule.action {
            Action::Allow => self.is_allowed_by(&rule.pattern),
            Action::Ask | Action::Deny => {
                self.is_meant_by(&rule.pattern)
                    || rule.action == Action::Deny && self.may_contain(&rule.pattern)
            }
        }
    }

    /// Whether an ask or deny rule with this pattern is about the command, in any of its spellings.
    fn is_meant_by(&self, pattern: &Pattern) -> bool {
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        let is_first = |word: &String| word.eq_ignore_ascii_case(first);
        if !first.contains(['*', '?']) && !self.first_words.iter().any(is_first) {
            return false;
        }
        pattern.matches(&self.text)
            || pattern.matches(&self.lightly_quoted)
            || self.spellings.iter().any(|spelling| pattern.matches(spelling))
            || self.with_redirects.iter().any(|text| pattern.matches(text))
            || self.matches_reordered(pattern)
    }

    fn first_words(&self) -> Vec<String> {
        let texts = [&self.text, &self.lightly_quoted].into_iter().chain(&self.spellings);
        let texts = texts.chain(&self.with_redirects);
        let mut words: Vec<String> =
            texts.map(|text| text.split(' ').next().unwrap_or("").to_string()).collect();
        words.sort();
        words.dedup();
        words
    }

    /// Whether a rule with this pattern is about a command that starts at one of the possible words.
    fn may_contain(&self, pattern: &Pattern) -> bool {
        const MAX_STARTS: usize = 1_000;
        const MAX_WORDS: usize = 256;
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        let is_start = |(_, word): &(usize, &String)| {
            let base = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
            wildcard::matches(&first.to_ascii_lowercase(), &base)
        };
        let all = &self.possible_commands;
        let starts: Vec<usize> =
            all.iter().enumerate().filter(is_start).map(|(at, _)| at).collect();
        let with_role = |word: &String| match word.starts_with('-') {
            true => (word.clone(), WordRole::Flag),
            false => (word.clone(), WordRole::Operand),
        };
        let is_match = |at: &usize| {
            let mut words: Vec<(String, WordRole)> =
                all[*at..].iter().take(MAX_WORDS).map(with_role).collect();
            words[0] = (first.to_string(), WordRole::Program);
            let bare: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            pattern.matches(&bare.join(" ")) || self.matches_words(pattern, &words)
        };
        starts.len() > MAX_STARTS || starts.iter().any(is_match)
    }

    /// Whether an allow rule with this pattern covers the command. The pattern must match the command as written, and
    /// must spell out every risky word, not match it by a wildcard.
    fn is_allowed_by(&self, pattern: &Pattern) -> bool {
        let wild_text = match pattern {
            Pattern::Exact(exact) => return *exact == self.text,
            Pattern::Wild(text) | Pattern::CaseInsensitive(text) => text,
        };
        if !wild_text.contains(['*', '?'])
            && (*wild_text == self.text || *wild_text == self.lightly_quoted && !self.is_dynamic)
            && self.resolved.is_empty()
        {
            return true;
        }
        let others = self.without_global_flags.iter().chain(&self.with_split_flags);
        let others = others.chain(&self.with_assignments);
        let matches = |text: &String| pattern.matches(text);
        if self.resolved.is_empty()
            && ![&self.text, &self.lightly_quoted].into_iter().chain(others).any(matches)
            || !self.resolved.iter().all(|texts| texts.iter().any(matches))
        {
            return false;
        }
        let tokens: Vec<&str> = wild_text.split(' ').collect();
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

    /// Whether the first word of the pattern names the program literally.
    fn is_named_in(&self, pattern: &Pattern) -> bool {
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        !first.contains(['*', '?']) && self.program_names().any(|name| name == first)
    }

    /// Returns the names that ask and deny rules may use for the program.
    fn program_names(&self) -> impl Iterator<Item = &str> {
        let name = self.words.first().map_or("", |(word, _)| word);
        let base = name.rsplit('/').next().unwrap_or(name);
        let without_exe = base.strip_suffix(".exe").unwrap_or(base);
        let names = [name, base, without_exe, base.strip_prefix('=').unwrap_or(base)];
        names.into_iter().chain(self.alias.as_deref())
    }

    /// Whether the rule denies a program that the command may start.
    fn may_start_denied(&self, rule: &Rule) -> bool {
        let first = rule.pattern.as_str().split(' ').next().unwrap_or("");
        let is_first = |name: &String| name.eq_ignore_ascii_case(first);
        rule.action == Action::Deny
            && !first.is_empty()
            && !first.contains(['*', '?'])
            && self.mentioned_programs.iter().any(is_first)
    }

    /// Returns the spellings with other names of the program, also in lower case, because some file systems ignore
    /// case.
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
        for twin in &self.twins {
            let words: Vec<&str> = twin.iter().map(|(word, _)| word.as_str()).collect();
            spellings.push(words.join(" "));
        }
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
        let Some(first) = text.split_whitespace().next() else { return false };
        if first.contains(['*', '?']) {
            return false;
        }
        let is_named = self.program_names().any(|name| name.eq_ignore_ascii_case(first));
        let has_name = |words: &[(String, WordRole)]| {
            words.first().is_some_and(|(name, _)| name.eq_ignore_ascii_case(first))
        };
        is_named && self.matches_words(pattern, &self.words)
            || self.twins.iter().any(|twin| has_name(twin) && self.matches_words(pattern, twin))
    }

    /// Whether the words after the program match those of a pattern, in any order of the flags.
    fn matches_words(&self, pattern: &Pattern, words: &[(String, WordRole)]) -> bool {
        let tokens = pattern.as_str().split_whitespace().skip(1);
        let tokens: Vec<&str> = tokens.take_while(|token| *token != "*").collect();
        let (flags, operands): (Vec<&str>, Vec<&str>) =
            tokens.into_iter().partition(|token| token.starts_with('-'));
        flags.iter().all(|flag| has_flag(words, flag)) && self.has_operands(words, &operands)
    }

    /// Whether the command's first operands match the given ones. A word after an unknown flag may be the flag's value
    /// and is then skipped.
    fn has_operands(&self, words: &[(String, WordRole)], operands: &[&str]) -> bool {
        let is_given = std::ptr::eq(words, self.words.as_slice());
        let is_risky = |at: usize| self.risks.iter().any(|risk| risk.word == at || !is_given);
        let mut wanted = operands.iter().peekable();
        let mut may_be_value = false;
        for (at, (word, role)) in words.iter().enumerate().skip(1) {
            let Some(operand) = wanted.peek() else { return true };
            match role {
                WordRole::Flag => may_be_value = !self.is_known || is_risky(at),
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

/// Whether a command has a flag, or all letters of a cluster of flags, in any form.
fn has_flag(words: &[(String, WordRole)], wanted: &str) -> bool {
    let given = words.iter().filter(|(_, role)| *role == WordRole::Flag);
    let given: Vec<&str> = given.map(|(word, _)| word.as_str()).collect();
    let is_cluster = |flag: &str| flag.starts_with('-') && !flag.starts_with("--");
    if !is_cluster(wanted) {
        return given
            .iter()
            .any(|flag| wildcard::matches(wanted, flag) || flag.split('=').next() == Some(wanted));
    }
    wanted.chars().skip(1).all(|letter| {
        given.iter().any(|flag| is_cluster(flag) && flag.contains(letter))
            || given.iter().any(|flag| flag.starts_with("--") && flag[2..].starts_with(letter))
    })
}

/// Returns the command with each path that its program or a script leads to, where that differs from the word: a list
/// of texts for each path, of which an allow rule must match one.
fn resolved_texts(run: &Run, words: &[String]) -> Vec<Vec<String>> {
    let mut resolved = Vec::new();
    for code in &run.code_paths {
        for path in &code.leads_to {
            let forms = match path.starts_with('/') || path.is_empty() {
                true => vec![path.clone()],
                false => vec![path.clone(), format!("./{path}")],
            };
            let with_path = |form: String| {
                let mut words = words.to_vec();
                if let Some(word) = words.get_mut(code.word) {
                    *word = form;
                }
                words.join(" ")
            };
            let known = forms.into_iter().filter(|form| !form.is_empty());
            resolved.push(known.map(with_path).collect());
        }
    }
    resolved
}

/// Returns the command with `-abc` written as `-a -b -c`; `None` if it has no such cluster.
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

/// Returns the command with its harmless assignments. `None` if there are none, or if a value contains spaces or other
/// special characters, which a pattern could mistake for words of the command.
fn with_harmless_assignments(run: &Run, words: &[String]) -> Option<String> {
    let harmless = &run.harmless_assignments;
    let is_one_word = |text: &String| !text.contains(|c| SHELL_SPECIAL.contains(c));
    (!harmless.is_empty() && harmless.iter().all(is_one_word))
        .then(|| harmless.iter().chain(words).cloned().collect::<Vec<_>>().join(" "))
}

/// Whether a token of a rule spells out a word, or at least the required prefix of it before any wildcard.
fn spells(token: &str, word: &str, required_prefix: &str) -> bool {
    match token.find(['*', '?']) {
        None => token == word || token == required_prefix,
        Some(wild) => !required_prefix.is_empty() && token[..wild].starts_with(required_prefix),
    }
}

/// Returns the command without the flags before its subcommand; `None` if there are none or one of them is not
/// harmless.
fn without_global_flags(run: &Run, words: &[String]) -> Option<String> {
    let subcommand = run.roles.iter().position(|role| *role == WordRole::Subcommand)?;
    let is_risky = |at: &usize| run.risks.iter().any(|risk| risk.word == *at);
    let between = 1..subcommand;
    let is_harmless = |at: usize| match run.roles[at] {
        WordRole::Flag => run.words[at].shown().starts_with('-') && !is_risky(&at),
        WordRole::Value => !is_risky(&at),
        WordRole::Program | WordRole::Subcommand | WordRole::Operand | WordRole::Script => false,
    };
    if between.is_empty() || !between.clone().all(is_harmless) {
        return None;
    }
    let kept = std::iter::once(0).chain(subcommand..run.words.len());
    Some(kept.map(|at| words[at].as_str()).collect::<Vec<_>>().join(" "))
}

/// Characters that have a meaning to a shell.
const SHELL_SPECIAL: &str = " \t\n'\"\\$`*?[]{}()<>|&;#!~";
/// Characters that would make one word look like two.
const WORD_BREAKING: &str = " \t\n'\"";

/// Quotes a word if it is empty or contains a special character.
fn quote(word: &Word, special: &str) -> String {
    match word {
        Word::Literal(text) if text.is_empty() || text.contains(|c| special.contains(c)) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        Word::Literal(_) | Word::Glob(_) | Word::Dynamic(_) => word.shown().to_string(),
    }
}
