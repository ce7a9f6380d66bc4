//! How rules match one command of a script.

use helve_text::shell::{Approval, Risk, RiskKind, Run, Word, WordRole};
use helve_text::wildcard;

use crate::rule::{Action, Pattern, Rule};

mod arity;

/// One command, in every spelling that a rule may be about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// Assignments and words as they are shown and remembered: no two commands have the same.
    text: String,
    /// The same with only those quotes that keep words apart, as people write rules.
    loose: String,
    /// The same without harmless flags before the subcommand: `git --no-pager log` is a `git log`.
    plain: Option<String>,
    /// The same with flags that stand in one word apart: `sed -nE` is a `sed -n -E`.
    apart: Option<String>,
    /// The same with assignments before it that need not be spelled, should a rule do so.
    assigning: Option<String>,
    /// Further spellings that a rule which asks or refuses is also about.
    spellings: Vec<String>,
    words: Vec<(String, WordRole)>,
    /// Another program whose rules count for it.
    kin: Option<String>,
    /// Programs that it may start.
    named: Vec<String>,
    risks: Vec<Risk>,
    /// There are assignments that an allowing rule must spell out.
    assigned: Vec<String>,
    standing: Approval,
    /// Whether the program is in the table, so that its operands are known not to be programs.
    known: bool,
    interprets: bool,
    /// Words that are only known when it runs.
    dynamic: bool,
}

/// What a list of rules says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'r> {
    /// `None` where no rule matches.
    pub action: Option<Action>,
    pub rule: Option<&'r Rule>,
}

impl Command {
    /// `extra` are risks that only the files told; they are laid to the subcommand.
    pub(crate) fn new(run: &Run, extra: Vec<Risk>) -> Self {
        let words: Vec<(String, WordRole)> = run
            .words
            .iter()
            .zip(&run.roles)
            .map(|(word, place)| (word.shown().to_string(), *place))
            .collect();
        let quoted: Vec<String> = run.words.iter().map(|word| quote(word, NEVER_PLAIN)).collect();
        let loose: Vec<String> = run.words.iter().map(|word| quote(word, SEPARATING)).collect();
        let subcommand = run.roles.iter().rposition(|place| *place == WordRole::Subcommand);
        let blamed = subcommand.unwrap_or(0);
        let laid = |risk: Risk| Risk { word: blamed, spelled: words[blamed].0.clone(), ..risk };
        let risks = run.risks.iter().cloned().chain(extra.into_iter().map(laid)).collect();
        let before: String = run.assignments.iter().map(|it| format!("{it} ")).collect();
        let plain = plain_words(run).map(|at| join(&loose, &at));
        let all: Vec<String> = run.harmless_assignments.iter().chain(&loose).cloned().collect();
        // A value with blanks could pass for words of the command.
        let one_word = |it: &String| !it.contains(|c| NEVER_PLAIN.contains(c));
        let assigning = !run.harmless_assignments.is_empty()
            && before.is_empty()
            && run.harmless_assignments.iter().all(one_word);
        let mut command = Self {
            text: format!("{before}{}", quoted.join(" ")),
            loose: format!("{before}{}", loose.join(" ")),
            plain: plain.filter(|_| before.is_empty()),
            apart: apart(run, &loose).filter(|_| before.is_empty()),
            assigning: assigning.then(|| all.join(" ")),
            spellings: Vec::new(),
            words,
            kin: run.rule_alias(),
            named: run.mentioned_programs(),
            risks,
            assigned: run.assignments.clone(),
            standing: run.approval,
            known: run.is_known,
            interprets: run.is_interpreter,
            dynamic: run.words.iter().any(|word| word.literal().is_none()),
        };
        command.spellings = command.other_spellings(&loose);
        command
    }

    /// The command as it is shown.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What a lasting yes remembers: the words that name what it does, or exactly this.
    pub(crate) fn remembered(&self) -> Pattern {
        let exact = Pattern::Exact(self.text.clone());
        if !self.risks.is_empty() || !self.assigned.is_empty() {
            return exact;
        }
        let subcommand = self.words.iter().position(|(_, place)| *place == WordRole::Subcommand);
        let skipped = subcommand.filter(|_| self.plain.is_some()).unwrap_or(1);
        let words: Vec<&str> = self
            .words
            .iter()
            .enumerate()
            .filter(|(at, _)| *at == 0 || *at >= skipped)
            .map(|(_, (word, _))| word.as_str())
            .collect();
        let script = self.words.iter().position(|(_, place)| *place == WordRole::Script);
        let named = match script {
            Some(at) => words.get(..=at).unwrap_or(&words),
            None if self.interprets && words.get(1) != Some(&"-m") => return exact,
            None => arity::prefix(&words),
        };
        let prefix = named.join(" ");
        if prefix.contains(['*', '?', '\'', '"', '\\', '\n', '$', '`'])
            || named.iter().any(|it| it.contains(' '))
        {
            return exact;
        }
        let pattern = Pattern::Wild(format!("{prefix} *"));
        let allows = Rule { action: Action::Allow, ..rule(pattern.clone()) };
        // It must do what it promises: let the same command through the next time.
        if self.is_matched_by(&allows) { pattern } else { exact }
    }

    /// What holds where no rule matches.
    pub(crate) fn otherwise(&self, wall: Action) -> Action {
        match self.standing {
            Approval::Exempt => Action::Allow,
            Approval::Required => wall,
        }
    }

    /// The last rule of one list that matches decides.
    pub fn decide<'r>(
        &self,
        rules: impl DoubleEndedIterator<Item = &'r Rule> + Clone,
    ) -> Decision<'r> {
        let about = |rule: &&'r Rule| wildcard::matches(&rule.permission, "bash");
        let rule = rules.clone().rev().filter(about).find(|rule| self.is_matched_by(rule));
        let mut action = rule.map(|rule| rule.action);
        if action == Some(Action::Allow) {
            // A program that nobody knows may run what its words name.
            let named = rules.rev().filter(about).find(|rule| self.names_refused(rule));
            if let Some(refusing) = named {
                return Decision { action: Some(Action::Ask), rule: Some(refusing) };
            }
        }
        if rule.is_none() && self.standing == Approval::Exempt {
            action = None;
        }
        Decision { action, rule }
    }

    fn is_matched_by(&self, rule: &Rule) -> bool {
        if self.standing == Approval::Exempt && !self.is_named_in(&rule.pattern) {
            return false;
        }
        match rule.action {
            Action::Allow => self.is_covered_by(&rule.pattern),
            Action::Ask | Action::Deny => {
                let pattern = &rule.pattern;
                pattern.matches(&self.text)
                    || pattern.matches(&self.loose)
                    || self.spellings.iter().any(|spelling| pattern.matches(spelling))
                    || self.is_meant_by(pattern)
            }
        }
    }

    /// An allowing rule must match the command as written and spell out what its wildcards do not cover.
    fn is_covered_by(&self, pattern: &Pattern) -> bool {
        let wild = match pattern {
            Pattern::Exact(exact) => return *exact == self.text,
            Pattern::Wild(wild) | Pattern::Folded(wild) => wild,
        };
        if !wild.contains(['*', '?'])
            && (*wild == self.text || *wild == self.loose && !self.dynamic)
        {
            return true;
        }
        let others = self.plain.iter().chain(&self.apart).chain(&self.assigning);
        let matches = |text: &String| pattern.matches(text);
        if ![&self.text, &self.loose].into_iter().chain(others).any(matches) {
            return false;
        }
        let tokens: Vec<&str> = wild.split(' ').collect();
        let spelled =
            |word: &str, start: &str| tokens.iter().any(|token| spells(token, word, start));
        let risk_spelled = |risk: &Risk| match risk.kind {
            RiskKind::Code => false,
            RiskKind::Unlisted | RiskKind::Writes | RiskKind::Destroys | RiskKind::Runs => {
                let word = self.words.get(risk.word).map_or("", |(word, _)| word);
                spelled(word, &risk.spelled)
            }
        };
        self.risks.iter().all(risk_spelled) && self.assigned.iter().all(|it| spelled(it, it))
    }

    fn is_named_in(&self, pattern: &Pattern) -> bool {
        let first = pattern.as_str().split(' ').next().unwrap_or("");
        !first.contains(['*', '?']) && self.program_names().any(|name| name == first)
    }

    /// What a rule that asks or refuses may call the program, in letters of either case: to some file systems they are the
    /// same.
    fn program_names(&self) -> impl Iterator<Item = &str> {
        let name = self.words.first().map_or("", |(word, _)| word);
        let base = name.rsplit('/').next().unwrap_or(name);
        let foreign = base.strip_suffix(".exe").unwrap_or(base);
        let names = [name, base, foreign, base.strip_prefix('=').unwrap_or(base)];
        names.into_iter().chain(self.kin.as_deref())
    }

    /// Whether it may start a program that a rule refuses.
    fn names_refused(&self, rule: &Rule) -> bool {
        let first = rule.pattern.as_str().split(' ').next().unwrap_or("");
        let is_first = |name: &String| name.eq_ignore_ascii_case(first);
        rule.action == Action::Deny
            && !first.is_empty()
            && !first.contains(['*', '?'])
            && self.named.iter().any(is_first)
    }

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
        spellings.extend(self.plain.iter().chain(&self.assigning).cloned());
        spellings.sort();
        spellings.dedup();
        spellings
    }

    /// Whether a rule that asks or refuses is about this command in another order of words: its plain words come in
    /// the same order, its flags anywhere, alone or in a cluster.
    fn is_meant_by(&self, pattern: &Pattern) -> bool {
        let text = match pattern {
            Pattern::Wild(text) | Pattern::Folded(text) => text,
            Pattern::Exact(_) => return false,
        };
        let mut tokens = text.split_whitespace();
        let Some(first) = tokens.next() else { return false };
        let is_named = self.program_names().any(|name| name.eq_ignore_ascii_case(first));
        if first.contains(['*', '?']) || !is_named {
            return false;
        }
        let tokens: Vec<&str> = tokens.take_while(|token| *token != "*").collect();
        let (flags, names): (Vec<&str>, Vec<&str>) =
            tokens.into_iter().partition(|token| token.starts_with('-'));
        flags.iter().all(|flag| self.has_flag(flag)) && self.has_operands(&names)
    }

    fn has_flag(&self, wanted: &str) -> bool {
        let given = self.words.iter().filter(|(_, place)| *place == WordRole::Flag);
        let given: Vec<&str> = given.map(|(word, _)| word.as_str()).collect();
        let cluster = |flag: &str| flag.starts_with('-') && !flag.starts_with("--");
        if !cluster(wanted) {
            return given.iter().any(|flag| {
                wildcard::matches(wanted, flag) || flag.split('=').next() == Some(wanted)
            });
        }
        wanted.chars().skip(1).all(|letter| {
            given.iter().any(|flag| cluster(flag) && flag.contains(letter))
                || given.iter().any(|flag| flag.starts_with("--") && flag[2..].starts_with(letter))
        })
    }

    /// Whether the plain words start with these. After a flag of a stranger there may be its value.
    fn has_operands(&self, names: &[&str]) -> bool {
        let mut wanted = names.iter().peekable();
        let mut after_flag = false;
        for (at, (word, place)) in self.words.iter().enumerate().skip(1) {
            let Some(name) = wanted.peek() else { return true };
            match place {
                // Whether an unlisted flag takes a value is not known.
                WordRole::Flag => {
                    after_flag = !self.known || self.risks.iter().any(|it| it.word == at)
                }
                WordRole::Value => {}
                WordRole::Program | WordRole::Subcommand | WordRole::Operand | WordRole::Script => {
                    if wildcard::matches(name, word) {
                        wanted.next();
                    } else if !after_flag {
                        return false;
                    }
                    after_flag = false;
                }
            }
        }
        wanted.peek().is_none()
    }
}

fn rule(pattern: Pattern) -> Rule {
    Rule {
        permission: "bash".into(),
        pattern,
        action: Action::Allow,
        source: crate::rule::Source::Program,
    }
}

/// The words with each letter of `-abc` by itself, where the program is known to take them so.
fn apart(run: &Run, words: &[String]) -> Option<String> {
    let letters = |at: usize| {
        let letters = words[at].strip_prefix('-').filter(|_| run.flag_clusters.contains(&at))?;
        let are_plain = letters.bytes().all(|c| c.is_ascii_alphabetic());
        are_plain.then(|| letters.chars().map(|letter| format!("-{letter}")).collect::<Vec<_>>())
    };
    let split = |at: usize| letters(at).unwrap_or_else(|| vec![words[at].clone()]);
    let all: Vec<String> = (0..words.len()).flat_map(split).collect();
    (run.is_known && all.len() > words.len()).then(|| all.join(" "))
}

/// Whether a token of a rule spells this word outside its wildcards.
fn spells(token: &str, word: &str, start: &str) -> bool {
    match token.find(['*', '?']) {
        None => token == word || token == start,
        Some(wild) => !start.is_empty() && token[..wild].starts_with(start),
    }
}

/// The words that are left when harmless flags before the subcommand, and their values, are taken out.
fn plain_words(run: &Run) -> Option<Vec<usize>> {
    let first = run.roles.iter().position(|place| *place == WordRole::Subcommand)?;
    let risky = |at: &usize| run.risks.iter().any(|risk| risk.word == *at);
    let between = 1..first;
    let plain = |at: usize| match run.roles[at] {
        WordRole::Flag => run.words[at].shown().starts_with('-') && !risky(&at),
        WordRole::Value => !risky(&at),
        WordRole::Program | WordRole::Subcommand | WordRole::Operand | WordRole::Script => false,
    };
    if between.is_empty() || !between.clone().all(plain) {
        return None;
    }
    Some(std::iter::once(0).chain(first..run.words.len()).collect())
}

fn join(words: &[String], at: &[usize]) -> String {
    at.iter().map(|at| words[*at].as_str()).collect::<Vec<_>>().join(" ")
}

/// Characters that mean something to a shell.
const NEVER_PLAIN: &str = " \t\n'\"\\$`*?[]{}()<>|&;#!~";
/// Characters that would make one word look like two.
const SEPARATING: &str = " \t\n'\"";

/// A word with quotes where it holds any of these characters.
fn quote(word: &Word, special: &str) -> String {
    match word {
        Word::Literal(text) if text.is_empty() || text.contains(|c| special.contains(c)) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        Word::Literal(_) | Word::Glob(_) | Word::Dynamic(_) => word.shown().to_string(),
    }
}
