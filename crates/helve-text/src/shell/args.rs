//! Parses the arguments of a program according to its spec in `programs.txt`.

use super::arg_role::ArgRole;
use super::commands::basename;
use super::names::{self, NameGroup};
use super::programs::{self, FlagValue, ProgramSpec};
use super::{DynamicKind, Risk, RiskKind, Word, WordRole, shells};

/// The parsed arguments of a command.
#[derive(Debug)]
pub(super) struct ParsedArgs {
    /// The role of each word.
    pub(super) roles: Vec<WordRole>,
    /// Words that a rule must spell out.
    pub(super) risks: Vec<Risk>,
    /// Flag values and operands. A word has several entries if its role is uncertain.
    pub(super) arguments: Vec<Argument>,
    /// The flags that are present, without their values.
    pub(super) flags: Vec<String>,
    /// Indices of words that are several one-letter flags.
    pub(super) flag_clusters: Vec<usize>,
    /// The one-letter flags with a value in the same word.
    pub(super) attached_value_flags: String,
    /// Indices of words that make the command act on more than its operands.
    pub(super) scope_widening_words: Vec<usize>,
    pub(super) spec: &'static ProgramSpec,
    /// Number of words that become operands.
    pub(super) operand_count: usize,
    /// Whether a word before the subcommand selects another directory.
    in_other_dir: bool,
}

impl ParsedArgs {
    /// Whether any of these flags is present.
    pub(super) fn has_any(&self, flags: &[&str]) -> bool {
        self.flags.iter().any(|flag| flags.contains(&flag.as_str()))
    }

    /// Whether operands with the role `read` are read with everything below them.
    pub(super) fn reads_tree(&self) -> bool {
        self.spec.traits.read_tree || self.has_any(&self.spec.read_tree)
    }

    /// Whether operands with the role `write` are changed with everything below them.
    pub(super) fn writes_tree(&self) -> bool {
        self.spec.traits.write_tree || self.has_any(&self.spec.write_tree)
    }

    /// Whether operands with the role `write` are only checked for existence.
    pub(super) fn is_dry_run(&self) -> bool {
        self.has_any(&self.spec.dry_run) && !self.has_any(&self.spec.changes_anyway_with)
    }

    /// Whether flags make a program harmless that is dangerous otherwise.
    pub(super) fn is_harmless(&self) -> bool {
        self.has_any(&self.spec.harmless_with) && !self.has_any(&self.spec.changes_anyway_with)
    }

    /// Whether the program prints the hashes of commits, one per line, and nothing else.
    pub(super) fn prints_commits(&self, words: &[Word]) -> bool {
        let is_format = |word: &&Word| {
            word.literal().is_some_and(|text| self.spec.prints_commits_with.contains(&text))
        };
        let formats = words.iter().filter(is_format).count();
        let keeps = |flag: &&String| self.spec.keeps_commits.contains(&flag.as_str());
        let others = self.flags.iter().filter(|flag| !keeps(flag)).count();
        let is_listed = self.spec.traits.prints_commits || formats == 1;
        is_listed && self.risks.is_empty() && others == formats
    }

    /// Whether an inner command, perhaps after a flag, runs in another directory than the program.
    pub(super) fn runs_in_other_dir(&self, flag: Option<&str>) -> bool {
        self.in_other_dir
            || self.spec.traits.other_dir
            || self.has_any(&self.spec.other_dir_with)
            || flag.is_some_and(|flag| self.spec.other_dir.contains(&flag))
    }

    /// Whether directories behind symbolic links are skipped.
    pub(super) fn skips_dirs_behind_links(&self) -> bool {
        self.has_any(&self.spec.shallow) && !self.has_any(&self.spec.unshallow)
    }
}

/// A flag value or operand.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) role: ArgRole,
    /// Index of the word.
    pub(super) word: usize,
    /// The value, which may be only a part of the word.
    pub(super) value: Word,
    /// The flag that the value belongs to; `None` for an operand.
    pub(super) flag: Option<String>,
    /// One past the last word, for roles that take several words.
    pub(super) end: usize,
}

/// Parses the words of a command by the spec with this name. Returns `None` if there is no such spec.
pub(super) fn parse_args(words: &[Word], name: &str) -> Option<ParsedArgs> {
    let spec = programs::spec(name)?;
    let mut parser = ArgParser {
        words,
        name: name.to_string(),
        forbidden: spec.forbidden.clone(),
        subcommand_at: 0,
        at: 1,
        flags_ended: false,
        operands: Vec::new(),
        parsed: ParsedArgs {
            roles: vec![WordRole::Operand; words.len()],
            risks: Vec::new(),
            arguments: Vec::new(),
            flags: Vec::new(),
            flag_clusters: Vec::new(),
            attached_value_flags: String::new(),
            scope_widening_words: Vec::new(),
            spec,
            operand_count: 0,
            in_other_dir: false,
        },
        operands_before: 0,
    };
    if let Some(role) = parser.parsed.roles.first_mut() {
        *role = WordRole::Program;
    }
    parser.parse();
    Some(parser.parsed)
}

/// The state of the parser.
pub(super) struct ArgParser<'w> {
    pub(super) words: &'w [Word],
    /// The full name so far: `git stash list`.
    pub(super) name: String,
    /// Texts that no word should contain. A word that contains one is a risk.
    pub(super) forbidden: Vec<&'static str>,
    /// Index of the word that selected the current spec: the program or a subcommand.
    pub(super) subcommand_at: usize,
    /// Index of the next word.
    pub(super) at: usize,
    /// Whether all further words are operands, because of a `--` or an earlier operand.
    pub(super) flags_ended: bool,
    operands: Vec<OperandWord>,
    /// Number of operands before a command that `continues_as` another.
    operands_before: usize,
    pub(super) parsed: ParsedArgs,
}

/// A word that becomes one or more operands, or none.
#[derive(Clone, Copy, Debug)]
struct OperandWord {
    at: usize,
    /// The number of operands that the word certainly becomes.
    min_count: usize,
    /// Whether the word may become any number of further operands.
    may_be_more: bool,
}

impl ArgParser<'_> {
    fn parse(&mut self) {
        self.parse_dashless_flags();
        // All words of `test` are operands, even those that start with a dash.
        if self.operand_role(0) == Some(ArgRole::Test) && self.words.len() > 1 {
            self.parse_operand(1);
        }
        while self.at < self.words.len() {
            let at = self.at;
            self.at += 1;
            match &self.words[at] {
                Word::Literal(text) => self.parse_literal(at, text),
                // If no file matches, the program gets the glob itself.
                Word::Glob(pattern) if pattern.starts_with('-') => self.parse_literal(at, pattern),
                Word::Glob(_) => self.parse_operand(at),
                Word::Dynamic(dynamic) => self.parse_dynamic(at, dynamic),
            }
        }
        self.assign_roles();
        for at in 0..self.words.len() {
            if self.is_forbidden(at) {
                self.add_word_risk(at, RiskKind::Unlisted);
            }
        }
        let spec = self.parsed.spec;
        if let Some(kind) = spec.program_risk.filter(|_| !self.parsed.is_harmless()) {
            self.add_word_risk(self.subcommand_at, kind);
        }
    }

    /// Whether a word contains a forbidden text, or is a flag value that must be fully known but is not.
    fn is_forbidden(&self, at: usize) -> bool {
        let shown = self.words[at].shown();
        // In a format of git, a sign may follow the percent sign: `%+b` is like `%b`.
        let signs = ["%+", "%-", "% "];
        let without_signs =
            || signs.iter().fold(shown.to_string(), |text, it| text.replace(it, "%"));
        self.is_unknown_literal_value(at)
            || self.forbidden.iter().any(|text| shown.contains(text))
            || self
                .forbidden
                .iter()
                .any(|text| text.starts_with('%') && without_signs().contains(text))
    }

    /// Whether a word is the value of a `literal-value` flag but is not fully known.
    fn is_unknown_literal_value(&self, at: usize) -> bool {
        let Word::Dynamic(value) = &self.words[at] else { return false };
        let previous = at.checked_sub(1).and_then(|at| self.words[at].literal());
        let is_value_of = |flag: &&str| value.prefix.starts_with(*flag) || previous == Some(*flag);
        self.parsed.spec.literal_value.iter().any(is_value_of)
    }

    /// Adds a risk. A rule allows the command only if it contains `spelled`, which is the word or the start of it.
    pub(super) fn add_risk(&mut self, word: usize, spelled: &str, kind: RiskKind) {
        self.parsed.risks.push(Risk { word, spelled: spelled.to_string(), kind });
    }

    /// Adds a risk. A rule allows the command only if it contains the whole word.
    pub(super) fn add_word_risk(&mut self, word: usize, kind: RiskKind) {
        let spelled = self.words[word].shown().to_string();
        self.parsed.risks.push(Risk { word, spelled, kind });
    }

    /// Parses a word that is fully known.
    fn parse_literal(&mut self, at: usize, text: &str) {
        let spec = self.parsed.spec;
        if self.flags_ended {
            self.parse_operand(at);
        } else if text == "--" && spec.traits.no_double_dash {
            self.parsed.roles[at] = WordRole::Flag;
        } else if text == "--" {
            self.parsed.roles[at] = WordRole::Flag;
            self.flags_ended = true;
            if let Some(FlagValue::Risk(kind)) = spec.flag("--") {
                self.add_word_risk(self.word_to_spell_out(at), kind);
            }
            if spec.traits.passthrough {
                self.pass_through_rest();
            }
            if let Some((name, spec)) = spec.rest_as.and_then(|it| Some((it, programs::spec(it)?)))
            {
                self.enter_subcommand(spec, name.to_string(), self.subcommand_at);
            }
        } else if spec.traits.any_flag
            && text.starts_with('-')
            && text != "-"
            && !spec.lists_flag(text)
        {
            self.parse_any_flag(at, text);
        } else if spec.traits.plus_flags && text.starts_with('+') {
            self.parsed.roles[at] = WordRole::Flag;
        } else if spec.traits.plus_name && text.starts_with('+') {
            self.parsed.roles[at] = WordRole::Flag;
            if text.contains('/') {
                self.add_word_risk(at, RiskKind::Runs);
            }
        } else if text.starts_with("--")
            || spec.traits.single_dash && (text.starts_with('-') || spec.flag(text).is_some())
        {
            self.parse_long_flag(at, text);
        } else if text.starts_with('-') && text.len() > 1 {
            self.parse_cluster(at, text);
        } else if spec.flag(text).is_some() {
            self.parsed.roles[at] = WordRole::Flag;
            self.parsed.flags.push(text.to_string());
        } else {
            self.parse_operand(at);
        }
    }

    /// Parses a flag of a program whose flags are not listed. If operands of the program may be paths, a value in the
    /// same word may be a path too.
    fn parse_any_flag(&mut self, at: usize, text: &str) {
        let spec = self.parsed.spec;
        self.parsed.roles[at] = WordRole::Flag;
        let name = text.split('=').next().unwrap_or(text);
        self.parsed.flags.push(name.to_string());
        if !text.starts_with("--") && !spec.traits.single_dash {
            let letters = text.chars().skip(1).take_while(char::is_ascii_alphabetic);
            self.parsed.flags.extend(letters.map(|letter| format!("-{letter}")));
        }
        if matches!(spec.more_operands, Some(ArgRole::Argument | ArgRole::Script | ArgRole::Read)) {
            self.push_operand(ArgRole::Argument, at);
        }
    }

    /// Treats the remaining words as arguments for another program.
    pub(super) fn pass_through_rest(&mut self) {
        while self.at < self.words.len() {
            self.push_operand(ArgRole::Argument, self.at);
            self.at += 1;
        }
    }

    fn push_operand(&mut self, role: ArgRole, at: usize) {
        let value = self.words[at].clone();
        self.parsed.arguments.push(Argument { role, word: at, value, flag: None, end: at + 1 });
    }

    pub(super) fn enter_subcommand(&mut self, spec: &'static ProgramSpec, name: String, at: usize) {
        self.forbidden.extend(&spec.forbidden);
        self.parsed.in_other_dir |= self.parsed.spec.traits.other_dir;
        self.parsed.spec = spec;
        self.name = name;
        self.subcommand_at = at;
        self.flags_ended = false;
    }

    /// Parses a word as a subcommand or an operand.
    pub(super) fn parse_operand(&mut self, at: usize) {
        let spec = self.parsed.spec;
        let is_first = self.operands.iter().all(|operand| operand.min_count == 0);
        if is_first && !self.flags_ended {
            if let Some(text) = self.words[at].literal() {
                let name = format!("{} {text}", self.name);
                if let Some(spec) = programs::spec(&name) {
                    self.parsed.roles[at] = WordRole::Subcommand;
                    return self.enter_subcommand(spec, name, at);
                }
            } else if programs::has_subcommands(&self.name) && may_name_subcommand(&self.words[at])
            {
                self.add_word_risk(at, RiskKind::Unlisted);
            }
        }
        if let Some(name) = spec.continues_as {
            return self.continue_as(name, at);
        }
        if spec.traits.subcommands {
            self.parsed.roles[at] = WordRole::Subcommand;
            self.add_word_risk(at, RiskKind::Unlisted);
            return self.pass_through_rest();
        }
        let start = self.words[at].prefix();
        let may_be_any_name = matches!(self.words[at], Word::Glob(_)) && start.is_empty();
        let is_command =
            start.starts_with('+') && !self.words[at].literal().is_some_and(is_start_position);
        if spec.traits.plus_command && (is_command || may_be_any_name) {
            self.add_word_risk(at, RiskKind::Runs);
        }
        let (min_count, may_be_more) = word_count(&self.words[at]);
        self.add_operand(OperandWord { at, min_count, may_be_more });
        self.flags_ended |= spec.traits.flags_first;
        let role = match self.operand_role(self.operands.len() - 1) {
            _ if is_first && spec.traits.runs_programs && names_program(&self.words[at]) => {
                Some(ArgRole::Command)
            }
            Some(ArgRole::Command) if self.parsed.has_any(&spec.shell_with) => Some(ArgRole::Shell),
            role => role,
        };
        if let Some(role @ (ArgRole::Command | ArgRole::Shell | ArgRole::Test)) = role {
            // The remaining words belong to the inner program.
            let end = self.words.len();
            let value = self.words[at].clone();
            self.parsed.arguments.push(Argument { role, word: at, value, flag: None, end });
            self.operands.pop();
            self.at = end;
        }
    }

    /// Parses an operand of a command whose own operands are followed by another command, as in
    /// `yarn workspace NAME test`.
    fn continue_as(&mut self, name: &str, at: usize) {
        if let Some(role) = self.parsed.spec.operands.get(self.operands_before) {
            self.operands_before += 1;
            return self.push_operand(*role, at);
        }
        let Some(spec) = programs::spec(name) else { return };
        self.enter_subcommand(spec, name.to_string(), self.subcommand_at);
        self.parse_operand(at);
    }

    /// Returns the role of the operand with the index `n`. The last operand may have another role, see
    /// [`ProgramSpec::last_operand`].
    pub(super) fn operand_role(&self, n: usize) -> Option<ArgRole> {
        let spec = self.parsed.spec;
        let replaced = self.parsed.has_any(&spec.replaces_operand);
        spec.operands.get(n + usize::from(replaced)).copied().or(spec.more_operands)
    }

    /// Handles a flag value that may expand to several words. All words after the first become operands.
    pub(super) fn add_split_operands(&mut self, at: usize) {
        let (_, may_be_more) = word_count(&self.words[at]);
        if may_be_more && self.parsed.spec.traits.subcommands {
            self.add_word_risk(at, RiskKind::Unlisted);
        } else if may_be_more {
            self.add_operand(OperandWord { at, min_count: 0, may_be_more });
        }
    }

    fn add_operand(&mut self, operand: OperandWord) {
        let spec = self.parsed.spec;
        // If an unquoted number is empty, `test` gets one operand fewer, which is harmless.
        let is_number =
            matches!(&self.words[operand.at], Word::Dynamic(it) if it.kind == DynamicKind::Number);
        let is_inner = |role: &ArgRole| match role {
            ArgRole::Command | ArgRole::Shell => true,
            ArgRole::Test => !is_number,
            _ => false,
        };
        if operand.may_be_more && spec.operands.iter().chain(&spec.more_operands).any(is_inner) {
            // It is unknown where the inner command starts.
            self.add_word_risk(operand.at, RiskKind::Unlisted);
        }
        self.operands.push(operand);
    }

    /// Assigns roles to all operands. A word that may become several words or none shifts the operands after it, so
    /// each word gets every role that it may have.
    fn assign_roles(&mut self) {
        let operands = std::mem::take(&mut self.operands);
        let spec = self.parsed.spec;
        let last_certain = operands.iter().rposition(|operand| operand.min_count > 0).unwrap_or(0);
        // All operands from this one on have the same role.
        let repeated_from = spec.operands.len();
        let (mut position, mut is_shifted) = (0, false);
        for (n, operand) in operands.iter().enumerate() {
            let is_uncertain = is_shifted || operand.may_be_more;
            let end = if is_uncertain { repeated_from.max(position) } else { position };
            let mut roles: Vec<Option<ArgRole>> =
                (position..=end).map(|n| self.operand_role(n)).collect();
            let has_last = n >= last_certain && !self.parsed.has_any(&spec.replaces_last);
            if let Some(last_role) = spec.last_operand.filter(|_| has_last) {
                if n + 1 == operands.len() && !operand.may_be_more {
                    roles.clear();
                }
                roles.push(Some(last_role));
            }
            for (at, role) in roles.iter().enumerate() {
                if !roles[..at].contains(role) {
                    self.assign_role(operand.at, *role);
                }
            }
            position += operand.min_count;
            is_shifted |= operand.may_be_more;
        }
        self.parsed.operand_count = operands.len();
    }

    fn assign_role(&mut self, at: usize, role: Option<ArgRole>) {
        let Some(role) = role else {
            return self.add_word_risk(self.word_to_spell_out(at), RiskKind::Unlisted);
        };
        if role == ArgRole::Script {
            self.parsed.roles[at] = WordRole::Script;
        }
        if role == ArgRole::Refspec && self.words[at].literal().is_some_and(pushes_to_other_name) {
            self.parsed.scope_widening_words.push(at);
        }
        self.push_operand(role, at);
    }

    /// Returns the index of the word that a rule must spell out to allow this word: the word itself or the subcommand.
    fn word_to_spell_out(&self, at: usize) -> usize {
        if self.parsed.spec.traits.blame_subcommand { self.subcommand_at } else { at }
    }
}

/// Whether a word is the name of a known program, and not a usual name of a script.
fn names_program(word: &Word) -> bool {
    let is_program = |name: &str| match programs::table_name(name) {
        Some(listed) => !names::contains(NameGroup::ScriptName, listed),
        None => shells::shell_kind(name).is_some(),
    };
    word.literal().is_some_and(|it| !it.starts_with('-') && is_program(basename(it)))
}

/// Returns the minimum number of words that a word becomes, and whether it may become more.
fn word_count(word: &Word) -> (usize, bool) {
    match word {
        Word::Literal(_) => (1, false),
        Word::Glob(_) => (1, true),
        Word::Dynamic(dynamic) => (usize::from(!dynamic.may_split), dynamic.may_split),
    }
}

/// Whether a refspec updates a branch whose name differs from the source: `a:main`.
fn pushes_to_other_name(refspec: &str) -> bool {
    refspec.split_once(':').is_some_and(|(from, to)| from != to)
}

/// Whether a word is `+50`, `+G` or `+/word`, which only tells an editor or pager where to start.
fn is_start_position(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-');
    let is_search = |it: &str| it.strip_prefix('/').is_some_and(|it| it.chars().all(is_plain));
    let is_number = |it: &str| it.bytes().all(|c| c.is_ascii_digit());
    word.strip_prefix('+').is_some_and(|it| it == "G" || is_number(it) || is_search(it))
}

/// Whether a word that is not fully known may turn out to be the name of a subcommand.
fn may_name_subcommand(word: &Word) -> bool {
    let may_be_any_text = match word {
        Word::Literal(_) | Word::Glob(_) => true,
        Word::Dynamic(dynamic) => {
            matches!(
                dynamic.kind,
                DynamicKind::Anything | DynamicKind::Revision | DynamicKind::Listed(_)
            )
        }
    };
    may_be_any_text && !word.prefix().contains('/')
}
