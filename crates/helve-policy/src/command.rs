//! Matches rules against one command of a script.

use helve_text::shell::{self, Approval, Risk, RiskKind, Run, Word, WordRole};
use helve_text::wildcard;

use crate::rule::{Action, Pattern, Reason, Rule};

mod arity;
mod operands;
mod reorder;

use reorder::WideForm;

/// A command of a script, in every spelling that a rule may match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// Assignments and words, fully quoted. This text is shown and remembered, and no two commands share it.
    text: String,
    /// The spellings that an allow rule may match.
    forms: Vec<Form>,
    /// The command with the paths that its program and scripts lead to. An allow rule must match one form of each list,
    /// instead of the command as written.
    resolved: Vec<Vec<Form>>,
    /// Further spellings that rules may match that ask about or deny the command.
    wide_forms: Vec<WideForm>,
    /// The command with its redirects, which rules may match that ask about or deny the command.
    with_redirects: Vec<String>,
    /// Words of which any may be the start of a command that is run.
    possible_commands: Vec<String>,
    words: Vec<(String, WordRole)>,
    /// Whether the command has flags before its subcommand that `forms` also leave out.
    has_global_flags: bool,
    /// Name of another program whose rules also apply.
    alias: Option<String>,
    /// Names of programs that appear in the arguments and that the command may start.
    mentioned_programs: Vec<String>,
    risks: Vec<Risk>,
    /// Assignments that an allow rule must spell out.
    assignments: Vec<String>,
    approval: Approval,
    is_interpreter: bool,
    /// Indices of the words that are only known when the command runs.
    dynamic_words: Vec<usize>,
    only_reads: bool,
}

/// One spelling of a command. In the text, words with special characters are quoted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Form {
    text: String,
    words: Vec<(String, WordRole)>,
}

impl Form {
    fn new(words: Vec<(String, WordRole)>) -> Self {
        let texts: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
        Self { text: texts.join(" "), words }
    }
}

/// What one list of rules says about a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<'r> {
    /// `None` if no rule matches.
    pub action: Option<Action>,
    pub rule: Option<&'r Rule>,
    pub reason: Reason,
}

/// Whether a pattern of an allow rule covers a command.
enum Coverage {
    Full,
    /// It would, but for one thing.
    Except(Reason),
    None,
}

impl Command {
    /// `extra_risks` follow from facts about files. They are attributed to the subcommand.
    pub(crate) fn new(run: &Run, extra_risks: Vec<Risk>) -> Self {
        let shown = run.words.iter().map(|word| word.shown().to_string());
        let words: Vec<(String, WordRole)> = shown.zip(run.roles.iter().copied()).collect();
        let subcommand = run.roles.iter().rposition(|role| *role == WordRole::Subcommand);
        let risky_word = subcommand.unwrap_or(0);
        let attribute =
            |risk: Risk| Risk { word: risky_word, spelled: words[risky_word].0.clone(), ..risk };
        let has_extra_risks = !extra_risks.is_empty();
        let risks =
            run.risks.iter().cloned().chain(extra_risks.into_iter().map(attribute)).collect();
        let forms = forms(run);
        let mut command = Self {
            text: forms[0].text.clone(),
            resolved: resolved_forms(run, &forms[1].words),
            wide_forms: Vec::new(),
            with_redirects: run.with_redirects.clone(),
            possible_commands: run.possible_commands.clone(),
            has_global_flags: without_global_flags(run).is_some(),
            forms,
            words,
            alias: run.rule_alias(),
            mentioned_programs: run.mentioned_programs(),
            risks,
            assignments: run.assignments.clone(),
            approval: if has_extra_risks { Approval::Required } else { run.approval },
            is_interpreter: run.is_interpreter,
            dynamic_words: (0..run.words.len())
                .filter(|at| run.words[*at].literal().is_none())
                .collect(),
            only_reads: run.only_reads,
        };
        command.wide_forms = command.other_forms(run);
        command
    }

    /// Returns the command as it is shown to the person.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the command needs no rule.
    pub(crate) fn is_exempt(&self) -> bool {
        self.approval == Approval::Exempt
    }

    /// Whether the program only reads, and nothing is set for it.
    pub(crate) fn only_reads(&self) -> bool {
        self.only_reads && self.risks.is_empty() && self.assignments.is_empty()
    }

    /// Returns the pattern that a lasting approval remembers: the words that name the operation (`git checkout *`), or
    /// exactly this command if it is risky or if no such pattern would match it.
    pub(crate) fn approval_pattern(&self) -> Pattern {
        let exact = Pattern::Exact(self.text.clone());
        if !self.risks.is_empty() || !self.assignments.is_empty() {
            return exact;
        }
        let subcommand = self.words.iter().position(|(_, role)| *role == WordRole::Subcommand);
        let first_kept = subcommand.filter(|_| self.has_global_flags).unwrap_or(1);
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
        // The remembered rule must allow the same command the next time.
        match self.coverage(&pattern) {
            Coverage::Full => pattern,
            Coverage::Except(_) | Coverage::None => exact,
        }
    }

    /// Returns the action if no rule matches.
    pub(crate) fn default_action(&self, wall_default: Action) -> Action {
        match self.approval {
            Approval::Exempt => Action::Allow,
            Approval::Required => wall_default,
        }
    }

    /// Decides by the last rule of a list that matches the command as written. Rules after it that ask or deny are read
    /// more widely, which can only make the decision stricter.
    pub fn decide<'r>(
        &self,
        rules: impl DoubleEndedIterator<Item = &'r Rule> + Clone,
    ) -> Decision<'r> {
        let is_for_bash = |rule: &&'r Rule| wildcard::matches(&rule.permission, "bash");
        let is_applicable = |rule: &&'r Rule| !self.is_exempt() || self.applies_to_exempt(rule);
        let (mut decisive, mut strictest): (Option<&Rule>, Option<&Rule>) = (None, None);
        let mut obstacle = None;
        for rule in rules.clone().rev().filter(is_for_bash).filter(is_applicable) {
            let is_decisive = match rule.action {
                Action::Allow => match self.coverage(&rule.pattern) {
                    Coverage::Full => true,
                    Coverage::Except(reason) => {
                        obstacle.get_or_insert(reason);
                        false
                    }
                    Coverage::None => false,
                },
                Action::Ask | Action::Deny => self.is_written_in(&rule.pattern),
            };
            if is_decisive {
                decisive = Some(rule);
                break;
            }
            let is_stricter = strictest.is_none_or(|it| rule.action > it.action);
            if rule.action != Action::Allow && is_stricter && self.is_meant_by(rule) {
                strictest = Some(rule);
            }
        }
        let is_raised = |it: &&Rule| decisive.is_none_or(|rule| it.action > rule.action);
        if let Some(rule) = strictest.filter(is_raised) {
            return Decision { action: Some(rule.action), rule: Some(rule), reason: Reason::Rule };
        }
        let action = decisive.map(|rule| rule.action);
        if action == Some(Action::Allow) {
            // The command may start a program that is denied under its own name.
            let denied = rules
                .rev()
                .filter(is_for_bash)
                .find_map(|rule| Some((rule, self.denied_program(rule)?)));
            if let Some((rule, program)) = denied {
                let reason = Reason::MayStart(program.to_string());
                return Decision { action: Some(Action::Ask), rule: Some(rule), reason };
            }
        }
        let is_asked = action.is_none_or(|action| action == Action::Ask);
        let reason = obstacle.filter(|_| is_asked).unwrap_or_default();
        Decision { action, rule: decisive, reason }
    }

    /// Whether the pattern of a rule that asks or denies matches the command as written.
    fn is_written_in(&self, pattern: &Pattern) -> bool {
        pattern.matches(&self.text) || pattern.matches(&self.forms[1].text)
    }

    /// Whether a rule that asks or denies is about the command in another spelling, or about its redirects.
    fn is_meant_by(&self, rule: &Rule) -> bool {
        self.wide_forms.iter().any(|form| form.is_meant_by(&rule.pattern))
            || self.with_redirects.iter().any(|text| rule.pattern.matches(text))
            || rule.action == Action::Deny && self.may_contain(&rule.pattern)
    }

    /// Whether a rule with this pattern is about a command that starts at one of the possible words.
    fn may_contain(&self, pattern: &Pattern) -> bool {
        const MAX_STARTS: usize = 1_000;
        const MAX_WORDS: usize = 256;
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        let all = &self.possible_commands;
        let is_start = |at: &usize| {
            let word = &all[*at];
            let base = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
            wildcard::matches(&first.to_ascii_lowercase(), &base)
        };
        let starts: Vec<usize> = (0..all.len()).filter(is_start).collect();
        let is_match = |at: &usize| {
            let words = all[*at + 1..].iter().take(MAX_WORDS);
            WideForm::of_possible_command(first, words).is_meant_by(pattern)
        };
        starts.len() > MAX_STARTS || starts.iter().any(is_match)
    }

    /// Whether a rule applies although the command needs none: if it names the command, or is about its redirects.
    fn applies_to_exempt(&self, rule: &Rule) -> bool {
        let is_about_redirects = || {
            rule.action != Action::Allow
                && !rule.pattern.matches(&self.forms[1].text)
                && self.with_redirects.iter().any(|text| rule.pattern.matches(text))
        };
        self.is_named_in(&rule.pattern) || is_about_redirects()
    }

    /// Whether an allow rule with this pattern covers the command. The pattern must match the command as written, and
    /// must spell out every risky word, not match it by a wildcard.
    fn coverage(&self, pattern: &Pattern) -> Coverage {
        let wild_text = match pattern {
            Pattern::Exact(exact) if *exact == self.text => return Coverage::Full,
            Pattern::Exact(_) => return Coverage::None,
            Pattern::Wild(text) | Pattern::CaseInsensitive(text) => text,
        };
        if !wild_text.contains(['*', '?'])
            && (*wild_text == self.text
                || *wild_text == self.forms[1].text && self.dynamic_words.is_empty())
            && self.resolved.is_empty()
        {
            return Coverage::Full;
        }
        let groups = match self.resolved.as_slice() {
            [] => std::slice::from_ref(&self.forms),
            resolved => resolved,
        };
        for forms in groups {
            match form_coverage(pattern, wild_text, forms) {
                Coverage::Full => {}
                Coverage::None if self.matches_without_assignments(pattern) => {
                    return Coverage::Except(Reason::Assignment(self.assignments[0].clone()));
                }
                Coverage::None if !self.resolved.is_empty() && pattern.matches(&self.text) => {
                    let path = forms.first().map_or_else(String::new, |form| form.text.clone());
                    return Coverage::Except(Reason::Path(path));
                }
                other @ (Coverage::Except(_) | Coverage::None) => return other,
            }
        }
        match self.first_obstacle(pattern, wild_text) {
            None => Coverage::Full,
            Some(reason) => Coverage::Except(reason),
        }
    }

    /// Whether the command has assignments and a pattern matches it without them.
    fn matches_without_assignments(&self, pattern: &Pattern) -> bool {
        let words: Vec<&str> = self.words.iter().map(|(word, _)| word.as_str()).collect();
        !self.assignments.is_empty() && pattern.matches(&words.join(" "))
    }

    /// Returns the first risky word or assignment that a matching pattern does not cover.
    fn first_obstacle(&self, pattern: &Pattern, wild_text: &str) -> Option<Reason> {
        let tokens: Vec<&str> = wild_text.split(' ').collect();
        let is_spelled =
            |word: &str, prefix: &str| tokens.iter().any(|token| spells(token, word, prefix));
        let word = |risk: &Risk| self.words.get(risk.word).map_or("", |(word, _)| word);
        let is_covered = |risk: &&Risk| match risk.kind {
            // The flag before the code must be spelled out. Code without a flag is only covered by the same text.
            RiskKind::Code => {
                risk.spelled.starts_with('-') && is_spelled(&risk.spelled, &risk.spelled)
            }
            RiskKind::Runs => is_spelled(word(risk), &risk.spelled),
            RiskKind::Unlisted | RiskKind::Writes | RiskKind::Destroys => {
                let is_known = !self.dynamic_words.contains(&risk.word);
                pattern.is_any() && is_known || is_spelled(word(risk), &risk.spelled)
            }
        };
        if let Some(risk) = self.risks.iter().find(|risk| !is_covered(risk)) {
            let shown = if risk.spelled.is_empty() { word(risk) } else { &risk.spelled };
            return Some(Reason::Risk { word: shown.to_string(), kind: risk.kind });
        }
        let is_assignment_covered = |assignment: &&String| {
            pattern.is_any() && !shell::may_load_code(assignment)
                || is_spelled(assignment, assignment)
        };
        let assignment = self.assignments.iter().find(|it| !is_assignment_covered(it));
        assignment.map(|it| Reason::Assignment(it.clone()))
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

    /// Returns the program that the command may start and the rule denies.
    fn denied_program<'r>(&self, rule: &'r Rule) -> Option<&'r str> {
        let first = rule.pattern.as_str().split(' ').next().unwrap_or("");
        let is_first = |name: &String| name.eq_ignore_ascii_case(first);
        let is_denied = rule.action == Action::Deny
            && !first.is_empty()
            && !first.contains(['*', '?'])
            && self.mentioned_programs.iter().any(is_first);
        is_denied.then_some(first)
    }

    /// Returns the spellings with other names of the program, also in lower case, because some file systems ignore
    /// case.
    fn other_forms(&self, run: &Run) -> Vec<WideForm> {
        let lower = self.program_names().map(str::to_ascii_lowercase);
        let mut names: Vec<String> =
            self.program_names().map(str::to_string).chain(lower).collect();
        names.sort();
        names.dedup();
        let mut forms = Vec::new();
        for name in names {
            let mut words = self.words.clone();
            if let Some((program, _)) = words.first_mut() {
                *program = name;
            }
            forms.push(WideForm::new(words, run));
        }
        forms.extend(run.twins.iter().map(|words| WideForm::of_twin(words.clone(), run)));
        let others = self.forms.iter().skip(2).map(|form| form.text.clone());
        if let Some(form) = forms.first_mut() {
            form.add_texts(others);
        }
        forms
    }
}

/// Whether a pattern matches one of several spellings of a command, and fits it word by word.
fn form_coverage(pattern: &Pattern, wild_text: &str, forms: &[Form]) -> Coverage {
    let mut matching = forms.iter().filter(|form| pattern.matches(&form.text)).peekable();
    if matching.peek().is_none() {
        return Coverage::None;
    }
    let mut unmatched = None;
    let fits = |form: &Form| match operands::first_unmatched(wild_text, &form.words) {
        None => true,
        Some(word) => {
            unmatched.get_or_insert(word);
            false
        }
    };
    match matching.any(fits) {
        true => Coverage::Full,
        false => Coverage::Except(Reason::Operand(unmatched.unwrap_or_default())),
    }
}

/// Returns the command with each path that its program or a script leads to, where that differs from the word: a list
/// of forms for each path, of which an allow rule must match one.
fn resolved_forms(run: &Run, words: &[(String, WordRole)]) -> Vec<Vec<Form>> {
    let mut resolved = Vec::new();
    for code in &run.code_paths {
        for path in &code.leads_to {
            let names = match path.starts_with('/') || path.is_empty() {
                true => vec![path.clone()],
                false => vec![path.clone(), format!("./{path}")],
            };
            let with_name = |name: String| {
                let mut words = words.to_vec();
                if let Some((word, _)) = words.get_mut(code.word) {
                    *word = name;
                }
                Form::new(words)
            };
            let known = names.into_iter().filter(|name| !name.is_empty());
            resolved.push(known.map(with_name).collect());
        }
    }
    resolved
}

/// Returns the spellings that an allow rule may match. The first is fully quoted, the second as people write it.
fn forms(run: &Run) -> Vec<Form> {
    let quoted = |special: &str| -> Vec<(String, WordRole)> {
        let quoted = run.words.iter().map(|word| quote(word, special));
        quoted.zip(run.roles.iter().copied()).collect()
    };
    let with_assignments = |assignments: &[String], words: &[(String, WordRole)]| {
        let assignments = assignments.iter().map(|it| (it.clone(), WordRole::Value));
        Form::new(assignments.chain(words.iter().cloned()).collect())
    };
    let lightly_quoted = quoted(WORD_BREAKING);
    let mut forms = vec![
        with_assignments(&run.assignments, &quoted(SHELL_SPECIAL)),
        with_assignments(&run.assignments, &lightly_quoted),
    ];
    if run.assignments.is_empty() {
        let kept = without_global_flags(run).into_iter();
        forms.extend(kept.map(|kept| {
            Form::new(kept.into_iter().map(|at| lightly_quoted[at].clone()).collect())
        }));
        forms.extend(split_clusters(run, &lightly_quoted).map(Form::new));
        // Both names mean the same to a shell.
        if let Some((_, words)) = lightly_quoted.split_first()
            && let Some(other) = other_name_of_source(&lightly_quoted[0].0)
        {
            let name = (other.to_string(), WordRole::Program);
            forms.push(Form::new([&[name], words].concat()));
        }
        if has_one_word_assignments(run) {
            forms.push(with_assignments(&run.harmless_assignments, &lightly_quoted));
        }
    }
    forms
}

fn other_name_of_source(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("source"),
        "source" => Some("."),
        _ => None,
    }
}

/// Returns the command with `-abc` written as `-a -b -c`; `None` if it has no such cluster.
fn split_clusters(run: &Run, words: &[(String, WordRole)]) -> Option<Vec<(String, WordRole)>> {
    let letters = |at: usize| {
        let letters = words[at].0.strip_prefix('-').filter(|_| run.flag_clusters.contains(&at))?;
        let is_plain = letters.bytes().all(|c| c.is_ascii_alphabetic());
        let flag = |letter: char| (format!("-{letter}"), WordRole::Flag);
        is_plain.then(|| letters.chars().map(flag).collect::<Vec<_>>())
    };
    let split = |at: usize| letters(at).unwrap_or_else(|| vec![words[at].clone()]);
    let all: Vec<(String, WordRole)> = (0..words.len()).flat_map(split).collect();
    (run.is_known && all.len() > words.len()).then_some(all)
}

/// Whether the command has harmless assignments, and a pattern cannot mistake their values for words of the command.
fn has_one_word_assignments(run: &Run) -> bool {
    let is_one_word = |text: &String| !text.contains(|c| SHELL_SPECIAL.contains(c));
    !run.harmless_assignments.is_empty() && run.harmless_assignments.iter().all(is_one_word)
}

/// Whether a token of a rule spells out a word, or at least the required prefix of it before any wildcard.
fn spells(token: &str, word: &str, required_prefix: &str) -> bool {
    match token.find(['*', '?']) {
        None => token == word || token == required_prefix,
        Some(wild) => !required_prefix.is_empty() && token[..wild].starts_with(required_prefix),
    }
}

/// Returns the indices of the words without the flags before the subcommand, as in `git --no-pager log`; `None` if there
/// are none or one of them is not harmless.
fn without_global_flags(run: &Run) -> Option<Vec<usize>> {
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
    Some(std::iter::once(0).chain(subcommand..run.words.len()).collect())
}

/// Characters that have a meaning to a shell.
const SHELL_SPECIAL: &str = " \t\n'\"\\$`*?[]{}()<>|&;#!~";
/// Characters that would make one word look like two.
const WORD_BREAKING: &str = " \t\n'\"";

/// Quotes a word if it is empty or contains a special character.
fn quote(word: &Word, special: &str) -> String {
    match word {
        Word::Literal(text) if text.is_empty() || text.contains(|c| special.contains(c)) => {
            quote_text(text)
        }
        Word::Literal(_) | Word::Glob(_) | Word::Dynamic(_) => word.shown().to_string(),
    }
}

fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
