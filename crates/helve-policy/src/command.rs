//! Matches rules against one command of a script.
//!
//! The two kinds of rules are matched differently, so that a mistake never permits anything:
//!
//! - A rule that allows is matched strictly. It must match the command as written, and it must spell out every risky
//!   word. `git *` does not allow `git reset --hard`, but `git reset --hard *` does.
//! - A rule that asks or denies is matched loosely: in other spellings, and with its words in another order.
//!   `rm -rf *` also denies `/bin/rm -f -r x`. See `loose_form`.

use helve_text::shell::{self, Approval, ProgramRun, Risk, RiskKind, WordRole};
use helve_text::wildcard;

use crate::rule::{Action, Pattern, Reason, Rule};

mod arity;
mod forms;
mod loose_form;
mod operands;
mod quote;

use forms::{Form, Forms, forms, resolved_forms, without_global_flags};
use loose_form::LooseForm;
use quote::quote_text;

/// A command of a script, in all spellings that rules are matched against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    forms: Forms,
    /// Empty unless the program or a script is reached through links. Then one list per resolved path: the spellings of
    /// the command with that path. An allow rule must match one spelling in each list; `forms` are not used.
    resolved: Vec<Vec<Form>>,
    /// More spellings, for rules that ask or deny.
    loose_forms: Vec<LooseForm>,
    /// The command with its redirects, for rules that ask or deny.
    with_redirects: Vec<String>,
    /// The words of a text that could not be parsed. A command may start at any of these words.
    unparsed_words: Vec<String>,
    words: Vec<(String, WordRole)>,
    /// Whether there are harmless flags before the subcommand, as in `git --no-pager log`.
    has_global_flags: bool,
    /// Name of another program whose rules also apply.
    alias: Option<String>,
    /// Names of programs that appear in the arguments and that the command may start.
    mentioned_programs: Vec<String>,
    /// The words of the wrappers before the command, once from the start of each of them.
    wrappers: Vec<Vec<String>>,
    /// Paths that the command may change. A folder ends with a slash.
    possible_changes: Vec<String>,
    /// Files that the command may print. Contains all those that a rule forbids reading; others may be missing.
    possible_reads: Vec<String>,
    /// Files and folders that the command writes to because a flag names them.
    outputs: Vec<String>,
    risks: Vec<Risk>,
    /// Assignments that an allow rule must spell out.
    assignments: Vec<String>,
    approval: Approval,
    is_interpreter: bool,
    /// Indices of the words whose values are only known at run time.
    dynamic_words: Vec<usize>,
    /// Words that make the command act on more than its operands: `--tags` of `git push`. An allow rule with a wildcard
    /// in a path must contain them.
    scope_widening_words: Vec<String>,
    only_reads: bool,
}

/// The decision of one list of rules about a command.
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
    /// The pattern matches the text of the command, but does not cover it for this reason.
    Blocked(Reason),
    /// The pattern does not match.
    None,
}

impl Command {
    /// `extra_risks` are risks that follow from facts about files. A rule must spell out the subcommand to cover them.
    pub(crate) fn new(run: &ProgramRun, extra_risks: Vec<RiskKind>) -> Self {
        let shown = run.words.iter().map(|word| word.shown().to_string());
        let words: Vec<(String, WordRole)> = shown.zip(run.roles.iter().copied()).collect();
        let subcommand = run.roles.iter().rposition(|role| *role == WordRole::Subcommand);
        let risky_word = subcommand.unwrap_or(0);
        let attach_to_subcommand =
            |kind| Risk { word: risky_word, spelled: words[risky_word].0.clone(), kind };
        // All rules that deny must be tried on unparsed words, so the command cannot be exempt.
        let needs_rule = !extra_risks.is_empty() || !run.unparsed_words.is_empty();
        let risks = run
            .risks
            .iter()
            .cloned()
            .chain(extra_risks.into_iter().map(attach_to_subcommand))
            .collect();
        let forms = forms(run);
        let mut command = Self {
            resolved: resolved_forms(run, &forms.plain.words),
            loose_forms: Vec::new(),
            with_redirects: run.with_redirects.clone(),
            unparsed_words: run.unparsed_words.clone(),
            has_global_flags: without_global_flags(run).is_some(),
            forms,
            words,
            alias: run.rule_alias(),
            mentioned_programs: run.mentioned_programs(),
            wrappers: Vec::new(),
            possible_changes: Vec::new(),
            possible_reads: Vec::new(),
            outputs: Vec::new(),
            risks,
            assignments: run.assignments.clone(),
            approval: if needs_rule { Approval::Required } else { run.approval },
            is_interpreter: run.is_interpreter,
            dynamic_words: (0..run.words.len())
                .filter(|at| run.words[*at].literal().is_none())
                .collect(),
            scope_widening_words: run
                .scope_widening_words
                .iter()
                .filter_map(|at| run.words.get(*at))
                .map(|word| word.shown().to_string())
                .collect(),
            only_reads: run.only_reads,
        };
        command.loose_forms = command.loose_forms_of(run);
        command
    }

    pub(crate) fn with_possible_changes(self, possible_changes: Vec<String>) -> Self {
        Self { possible_changes, ..self }
    }

    pub(crate) fn with_wrappers(self, wrappers: Vec<Vec<String>>) -> Self {
        Self { wrappers, ..self }
    }

    pub(crate) fn with_possible_reads(self, possible_reads: Vec<String>) -> Self {
        Self { possible_reads, ..self }
    }

    pub(crate) fn with_outputs(self, outputs: Vec<String>) -> Self {
        Self { outputs, ..self }
    }

    /// Returns the files and folders that the command writes to because a flag names them.
    pub(crate) fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// Returns files that the command may print: all those that a rule forbids reading, and perhaps others.
    pub(crate) fn possible_reads(&self) -> &[String] {
        &self.possible_reads
    }

    /// Returns the paths that the command may change.
    pub(crate) fn possible_changes(&self) -> &[String] {
        &self.possible_changes
    }

    /// Returns the command as it is shown to the person.
    pub(crate) fn text(&self) -> &str {
        &self.forms.quoted.text
    }

    /// Whether the command needs no rule, like `cd`.
    pub(crate) fn is_exempt(&self) -> bool {
        self.approval == Approval::Exempt
    }

    /// Whether the program only reads, and has no risky words or assignments.
    pub(crate) fn only_reads(&self) -> bool {
        self.only_reads && self.risks.is_empty() && self.assignments.is_empty()
    }

    /// Returns the pattern that a lasting approval remembers.
    ///
    /// Usually the pattern consists of the words that name the operation, and a wildcard: `git checkout main` → `git
    /// checkout *`. If the command is risky, or if that pattern would not allow it, the exact command is remembered.
    pub(crate) fn approval_pattern(&self) -> Pattern {
        let exact = Pattern::Exact(self.text().to_string());
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
        let operation = match script {
            Some(at) => words.get(..=at).unwrap_or(&words),
            None if self.is_interpreter && words.get(1) != Some(&"-m") => return exact,
            None => arity::operation(&words),
        };
        let prefix = operation.join(" ");
        if prefix.contains(['*', '?', '\'', '"', '\\', '\n', '$', '`'])
            || operation.iter().any(|word| word.contains(' '))
        {
            return exact;
        }
        let pattern = Pattern::Wild(format!("{prefix} *"));
        // The remembered rule must allow the same command the next time.
        match self.coverage(&pattern) {
            Coverage::Full => pattern,
            Coverage::Blocked(_) | Coverage::None => exact,
        }
    }

    /// Returns the action that applies when no rule matches.
    pub(crate) fn default_action(&self, wall_default: Action) -> Action {
        match self.approval {
            Approval::Exempt => Action::Allow,
            Approval::Required => wall_default,
        }
    }

    /// Decides by the last rule that matches the command as written. Later rules that ask or deny are also matched
    /// loosely, and can only make the decision stricter:
    ///
    /// - `bash * allow; bash rm * deny`: `/bin/rm x` is allowed as written, but the loose match denies it.
    /// - `bash rm * deny; bash * allow`: `rm x` is allowed, because the last rule matches it.
    pub fn decide<'r>(
        &self,
        rules: impl DoubleEndedIterator<Item = &'r Rule> + Clone,
    ) -> Decision<'r> {
        let is_for_bash = |rule: &&'r Rule| wildcard::matches(&rule.permission, "bash");
        let is_applicable = |rule: &&'r Rule| !self.is_exempt() || self.applies_to_exempt(rule);
        let (mut decisive, mut strictest_loose): (Option<&Rule>, Option<&Rule>) = (None, None);
        let mut obstacle = None;
        for rule in rules.clone().rev().filter(is_for_bash).filter(is_applicable) {
            let is_decisive = match rule.action {
                Action::Allow => match self.coverage(&rule.pattern) {
                    Coverage::Full => true,
                    Coverage::Blocked(reason) => {
                        obstacle.get_or_insert(reason);
                        false
                    }
                    Coverage::None => false,
                },
                Action::Ask | Action::Deny => self.matches_as_written(&rule.pattern),
            };
            if is_decisive {
                decisive = Some(rule);
                break;
            }
            let is_stricter = strictest_loose.is_none_or(|it| rule.action > it.action);
            if rule.action != Action::Allow && is_stricter && self.matches_loosely(rule) {
                strictest_loose = Some(rule);
            }
        }
        let is_stricter = |it: &&Rule| decisive.is_none_or(|rule| it.action > rule.action);
        if let Some(rule) = strictest_loose.filter(is_stricter) {
            return Decision { action: Some(rule.action), rule: Some(rule), reason: Reason::Rule };
        }
        let action = decisive.map(|rule| rule.action);
        if action.map_or(self.is_exempt(), |action| action == Action::Allow) {
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

    /// Whether the pattern of a rule that asks or denies matches the text of the command.
    fn matches_as_written(&self, pattern: &Pattern) -> bool {
        pattern.matches(self.text()) || pattern.matches(&self.forms.plain.text)
    }

    /// Whether a rule that asks or denies matches another spelling of the command, or the command with its redirects.
    fn matches_loosely(&self, rule: &Rule) -> bool {
        self.loose_forms.iter().any(|form| form.matches_loosely(&rule.pattern))
            || self.with_redirects.iter().any(|text| rule.pattern.matches(text))
            || rule.action == Action::Deny && self.may_run(&rule.pattern)
    }

    /// Whether a pattern matches a command that starts at one of the `unparsed_words`: the words `a b rm x` match
    /// `rm *`.
    fn may_run(&self, pattern: &Pattern) -> bool {
        const MAX_STARTS: usize = 1_000;
        const MAX_WORDS: usize = 256;
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        let all = &self.unparsed_words;
        let is_start = |at: &usize| {
            let word = &all[*at];
            let base = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
            wildcard::matches(&first.to_ascii_lowercase(), &base)
        };
        let starts: Vec<usize> = (0..all.len()).filter(is_start).collect();
        let is_match = |at: &usize| {
            let words = all[*at + 1..].iter().take(MAX_WORDS);
            LooseForm::of_unparsed_words(first, words).matches_loosely(pattern)
        };
        starts.len() > MAX_STARTS || starts.iter().any(is_match)
    }

    /// Whether a rule applies to a command that needs no rule. Only two kinds do: rules that name the command (`cd *`),
    /// and rules that ask about or deny its redirects (`* > *`).
    fn applies_to_exempt(&self, rule: &Rule) -> bool {
        let matches_redirects = || {
            rule.action != Action::Allow
                && !rule.pattern.matches(&self.forms.plain.text)
                && self.with_redirects.iter().any(|text| rule.pattern.matches(text))
        };
        self.is_named_in(&rule.pattern) || matches_redirects()
    }

    /// Whether an allow rule with this pattern covers the command. The pattern must match the command as written. A
    /// risky word must be spelled out; a wildcard does not cover it.
    fn coverage(&self, pattern: &Pattern) -> Coverage {
        match self.own_coverage(pattern) {
            Coverage::Full => Coverage::Full,
            other => self.coverage_after_wrapper(pattern).unwrap_or(other),
        }
    }

    /// Returns the coverage by a rule that spells out a wrapper and the program: for `pytest -q`, the rule
    /// `uv run pytest *` means `pytest *`. Returns `None` if the rule is another one.
    fn coverage_after_wrapper(&self, pattern: &Pattern) -> Option<Coverage> {
        let Pattern::Wild(text) = pattern else { return None };
        let tokens: Vec<&str> = text.split(' ').collect();
        let rest = self.wrappers.iter().find_map(|words| {
            let (start, rest) = tokens.split_at_checked(words.len())?;
            let is_spelled = !rest.first()?.contains(['*', '?']) && start == words.as_slice();
            let is_plain = words.iter().all(|word| !word.contains(['*', '?', ' ', '\'', '"']));
            let has_assignments = words.ends_with(&self.assignments);
            (is_spelled && is_plain && has_assignments).then_some(rest)
        })?;
        let assignments = self.assignments.iter().map(String::as_str);
        let inner: Vec<&str> = assignments.chain(rest.iter().copied()).collect();
        Some(self.own_coverage(&Pattern::Wild(inner.join(" "))))
    }

    /// Like [`Command::coverage`], for a rule about the command itself.
    fn own_coverage(&self, pattern: &Pattern) -> Coverage {
        let pattern_text = match pattern {
            Pattern::Exact(exact) if exact == self.text() => return Coverage::Full,
            Pattern::Exact(_) => return Coverage::None,
            Pattern::Wild(text) | Pattern::CaseInsensitive(text) => text,
        };
        if !pattern_text.contains(['*', '?'])
            && (pattern_text == self.text()
                || *pattern_text == self.forms.plain.text && self.dynamic_words.is_empty())
            && self.resolved.is_empty()
        {
            return Coverage::Full;
        }
        match self.text_coverage(pattern, pattern_text) {
            Coverage::Full => match self.first_obstacle(pattern, pattern_text) {
                None => Coverage::Full,
                Some(reason) => Coverage::Blocked(reason),
            },
            Coverage::None if self.matches_without_assignments(pattern) => {
                Coverage::Blocked(Reason::Assignment(self.assignments[0].clone()))
            }
            other @ (Coverage::Blocked(_) | Coverage::None) => other,
        }
    }

    /// Like [`Command::coverage`], but ignores risks and assignments.
    fn text_coverage(&self, pattern: &Pattern, pattern_text: &str) -> Coverage {
        if self.resolved.is_empty() {
            return self.coverage_with_scope_widening_words(
                pattern,
                pattern_text,
                self.forms.all(),
            );
        }
        for forms in &self.resolved {
            match self.coverage_with_scope_widening_words(pattern, pattern_text, forms.iter()) {
                Coverage::Full => {}
                Coverage::None
                    if pattern.matches(self.text())
                        && !self.matches_without_assignments(pattern) =>
                {
                    let path = forms.first().map_or_else(String::new, |form| form.text.clone());
                    return Coverage::Blocked(Reason::LinkedProgram(path));
                }
                other @ (Coverage::Blocked(_) | Coverage::None) => return other,
            }
        }
        Coverage::Full
    }

    /// Like [`form_coverage`], but a pattern with a wildcard in a path must also spell out all `scope_widening_words`.
    fn coverage_with_scope_widening_words<'f>(
        &self,
        pattern: &Pattern,
        pattern_text: &str,
        forms: impl Iterator<Item = &'f Form>,
    ) -> Coverage {
        let is_missing = |word: &&String| !pattern_text.split(' ').any(|token| token == *word);
        match form_coverage(pattern, pattern_text, forms) {
            Coverage::Full if operands::has_wild_path(pattern_text) => {
                let missing = self.scope_widening_words.iter().find(is_missing);
                missing.map_or(Coverage::Full, |it| Coverage::Blocked(Reason::Operand(it.clone())))
            }
            other => other,
        }
    }

    /// Whether the command has assignments, and the pattern matches the words after them.
    fn matches_without_assignments(&self, pattern: &Pattern) -> bool {
        let words: Vec<&str> = self.words.iter().map(|(word, _)| word.as_str()).collect();
        !self.assignments.is_empty() && pattern.matches(&words.join(" "))
    }

    /// Returns the first risky word or assignment that the pattern does not spell out.
    fn first_obstacle(&self, pattern: &Pattern, pattern_text: &str) -> Option<Reason> {
        let tokens: Vec<&str> = pattern_text.split(' ').collect();
        let is_spelled =
            |word: &str, prefix: &str| tokens.iter().any(|token| spells(token, word, prefix));
        let word = |risk: &Risk| self.words.get(risk.word).map_or("", |(word, _)| word);
        let is_covered = |risk: &&Risk| match risk.kind {
            // A rule must spell out the flag before the code, as in `python3 -c *`. Code without a flag (`awk '…'`) is
            // only covered by a rule with the same text.
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

    /// Whether the first word of the pattern is a name of the program, not a wildcard.
    fn is_named_in(&self, pattern: &Pattern) -> bool {
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        !first.contains(['*', '?']) && self.program_names().any(|name| name == first)
    }

    /// Returns the names of the program for rules that ask or deny: `/bin/rm.exe` is also `rm.exe` and `rm`.
    fn program_names(&self) -> impl Iterator<Item = &str> {
        let name = self.words.first().map_or("", |(word, _)| word);
        let base = name.rsplit('/').next().unwrap_or(name);
        let without_exe = base.strip_suffix(".exe").unwrap_or(base);
        let names = [name, base, without_exe, base.strip_prefix('=').unwrap_or(base)];
        names.into_iter().chain(self.alias.as_deref())
    }

    /// Returns the program that a rule denies, if the command may start it.
    fn denied_program<'r>(&self, rule: &'r Rule) -> Option<&'r str> {
        let first = rule.pattern.as_str().split(' ').next().unwrap_or("");
        let is_first = |name: &String| name.eq_ignore_ascii_case(first);
        let is_denied = rule.action == Action::Deny
            && !first.is_empty()
            && !first.contains(['*', '?'])
            && self.mentioned_programs.iter().any(is_first);
        is_denied.then_some(first)
    }

    /// Returns the spellings for rules that ask or deny. The name of the program is also spelled in lower case, because
    /// some file systems ignore case.
    fn loose_forms_of(&self, run: &ProgramRun) -> Vec<LooseForm> {
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
            forms.push(LooseForm::new(words, run));
        }
        forms.extend(
            run.equivalents.iter().map(|words| LooseForm::of_equivalent(words.clone(), run)),
        );
        if let Some(form) = forms.first_mut() {
            form.add_texts(self.forms.others.iter().map(|form| form.text.clone()));
        }
        forms
    }
}

/// Whether a pattern covers one of several spellings of a command. A wildcard in a path of the pattern must not match
/// across words; see `operands`.
fn form_coverage<'f>(
    pattern: &Pattern,
    pattern_text: &str,
    forms: impl Iterator<Item = &'f Form>,
) -> Coverage {
    let mut matching = forms.filter(|form| pattern.matches(&form.text)).peekable();
    if matching.peek().is_none() {
        return Coverage::None;
    }
    let mut unmatched = None;
    let fits = |form: &Form| match operands::first_unmatched(pattern_text, &form.words) {
        None => true,
        Some(word) => {
            unmatched.get_or_insert(word);
            false
        }
    };
    match matching.any(fits) {
        true => Coverage::Full,
        false => Coverage::Blocked(Reason::Operand(unmatched.unwrap_or_default())),
    }
}

/// Whether a token of a rule spells out a word of a command. A token with a wildcard does so if the required prefix
/// comes before the wildcard: with the prefix `-i`, the token `-i*` spells out `-i.bak`.
fn spells(token: &str, word: &str, required_prefix: &str) -> bool {
    match token.find(['*', '?']) {
        None => token == word || token == required_prefix,
        Some(wild) => !required_prefix.is_empty() && token[..wild].starts_with(required_prefix),
    }
}
