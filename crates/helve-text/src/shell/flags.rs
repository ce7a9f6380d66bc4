//! Parses flags and their values.

use super::arg_role::ArgRole;
use super::args::{ArgParser, Argument};
use super::programs::{self, FlagValue};
use super::{DynamicKind, DynamicWord, RiskKind, Word, WordRole, safe_values};

impl ArgParser<'_> {
    /// Parses a word that is only known at run time. A word that may turn out to be a flag counts as an unlisted flag.
    pub(super) fn parse_dynamic(&mut self, at: usize, dynamic: &DynamicWord) {
        let is_harmless = match dynamic.kind {
            DynamicKind::Number
            | DynamicKind::Commit
            | DynamicKind::Pipe
            | DynamicKind::Listed(_)
            | DynamicKind::FindResult { .. } => true,
            DynamicKind::Revision => self.operand_role(0) == Some(ArgRole::Revision),
            DynamicKind::Anything => false,
        };
        if self.parsed.spec.traits.plus_name && dynamic.prefix.starts_with('+') {
            self.add_word_risk(at, RiskKind::Runs);
        }
        if self.parsed.spec.traits.any_flag || is_harmless && !dynamic.prefix.starts_with('-') {
            return self.parse_operand(at);
        }
        if self.flags_ended {
            return self.parse_operand(at);
        }
        if dynamic.may_split {
            self.add_word_risk(at, RiskKind::Unlisted);
            return self.parse_operand(at);
        }
        let start = dynamic.prefix.as_str();
        if !(start.is_empty() || start.starts_with('-')) {
            return self.parse_operand(at);
        }
        let visible_values = dynamic.visible_texts.iter().filter_map(|it| it.strip_prefix(start));
        let value = Word::Dynamic(DynamicWord {
            prefix: String::new(),
            visible_texts: visible_values.map(str::to_string).collect(),
            ..dynamic.clone()
        });
        let flag = match start.split_once('=') {
            Some((flag, _)) if flag.starts_with("--") => flag.to_string(),
            _ => start.chars().take(2).collect(),
        };
        match self.parsed.spec.flag(&flag) {
            Some(FlagValue::Value(role)) if !start.is_empty() => {
                self.parsed.roles[at] = WordRole::Flag;
                self.note_flag(&flag);
                if start == flag && dynamic.may_end_at_prefix {
                    // If the value is empty, the next word becomes the value, and the words after it get other roles.
                    self.add_word_risk(at, RiskKind::Unlisted);
                }
                self.push_value(role, at, value, &flag);
            }
            Some(FlagValue::Optional) => {
                self.parsed.roles[at] = WordRole::Flag;
                self.note_flag(&flag);
            }
            _ => {
                self.add_word_risk(at, RiskKind::Unlisted);
                self.parse_operand(at);
            }
        }
    }

    fn note_flag(&mut self, flag: &str) {
        self.parsed.flags.push(flag.to_string());
    }

    fn push_value(&mut self, role: ArgRole, word: usize, value: Word, flag: &str) {
        let flag = Some(flag.to_string());
        self.parsed.arguments.push(Argument { role, word, value, flag, end: word + 1 });
    }

    /// Returns a value that is in the same word as its flag. The value may be a glob if the word is one.
    fn attached_value(&self, role: ArgRole, at: usize, value: &str) -> Word {
        let is_glob = matches!(self.words[at], Word::Glob(_)) && value.contains(['*', '?', '[']);
        if is_glob && role != ArgRole::Text {
            Word::Glob(value.to_string())
        } else {
            Word::Literal(value.to_string())
        }
    }

    /// Parses `--flag`, `--flag=value`, and the single-dash flags of `find` and `go`.
    pub(super) fn parse_long_flag(&mut self, at: usize, text: &str) {
        self.parsed.roles[at] = WordRole::Flag;
        let spec = self.parsed.spec;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        // Programs with single-dash flags also accept `--flag` for `-flag`.
        let without_second_dash =
            name.strip_prefix('-').filter(|it| spec.traits.single_dash && it.starts_with('-'));
        let name = match without_second_dash {
            Some(shorter) if spec.flag(name).is_none() => shorter,
            _ => name,
        };
        self.note_flag(name);
        if spec.scope_widening_flags.contains(&name) {
            self.parsed.scope_widening_words.push(at);
        }
        match (spec.flag(name), value) {
            (
                Some(FlagValue::Nothing | FlagValue::Optional | FlagValue::RiskIfAttached(_)),
                None,
            ) => {}
            (Some(FlagValue::Optional), Some(value)) => {
                self.push_value(ArgRole::Text, at, Word::Literal(value.to_string()), name);
            }
            (Some(FlagValue::RiskIfAttached(_)), Some(value)) if is_backup_suffix(value) => {
                self.push_value(ArgRole::Text, at, Word::Literal(value.to_string()), name);
            }
            (Some(FlagValue::Value(role)), Some(value)) => {
                self.push_value(role, at, self.attached_value(role, at, value), name);
                self.enter_module(role, name, value);
            }
            (Some(FlagValue::Value(role)), None) => self.parse_next_value(role, name),
            (Some(FlagValue::Pair(role)), None) => {
                self.parse_next_value(ArgRole::Text, name);
                self.parse_next_value(role, name);
            }
            (Some(FlagValue::RunsAttached), value) => {
                self.add_risk(at, name, RiskKind::Runs);
                self.push_attached_shell_text(at, value.unwrap_or(""), name);
            }
            (Some(FlagValue::Exec), None) => self.parse_exec_command(name),
            (Some(FlagValue::Exec), Some(_)) => self.add_risk(at, name, RiskKind::Runs),
            (Some(FlagValue::RiskIfAttached(kind)), Some(value)) => {
                self.add_risk(at, name, kind);
                self.push_value(ArgRole::Text, at, Word::Literal(value.to_string()), name);
            }
            (Some(FlagValue::Risk(kind)), _) | (Some(FlagValue::RiskWithValue(kind)), Some(_)) => {
                self.add_risk(at, name, kind);
            }
            (Some(FlagValue::RiskWithValue(kind)), None) => {
                self.add_risk(at, name, kind);
                self.parse_next_value(ArgRole::Text, name);
            }
            // Most programs with single-dash flags are written in Go, where every switch takes a boolean value.
            (Some(FlagValue::Nothing), Some("true" | "false")) if spec.traits.single_dash => {}
            (None, None) if spec.traits.single_dash && self.has_attached_number(name) => {}
            (Some(FlagValue::Nothing | FlagValue::Pair(_)), Some(_)) | (None, _) => {
                self.parse_unlisted_flag(at, name, value.is_some());
            }
        }
    }

    /// Parses a flag that is not listed. The program may read it as an abbreviation of a longer flag. Either way, a
    /// rule that allows the command must spell out this word.
    fn parse_unlisted_flag(&mut self, at: usize, name: &str, has_value: bool) {
        let spec = self.parsed.spec;
        let longer: Vec<&str> = spec.abbreviated(name).collect();
        let runs = |flag: &&str| match spec.flag(flag) {
            Some(FlagValue::Risk(kind) | FlagValue::RiskWithValue(kind)) => kind == RiskKind::Runs,
            Some(FlagValue::RunsAttached) => true,
            _ => false,
        };
        let takes_value =
            |flag: &&str| matches!(spec.flag(flag), Some(FlagValue::RiskWithValue(_)));
        let kind = if longer.iter().any(runs) { RiskKind::Runs } else { RiskKind::Unlisted };
        let has_next_value = !has_value && !longer.is_empty() && longer.iter().all(takes_value);
        if longer.iter().any(|flag| spec.scope_widening_flags.contains(flag)) {
            self.parsed.scope_widening_words.push(at);
        }
        let roles: Vec<(&str, ArgRole)> = longer
            .iter()
            .filter_map(|flag| match spec.flag(flag) {
                Some(FlagValue::Value(role)) => Some((*flag, role)),
                Some(FlagValue::RunsAttached) if has_value => Some((*flag, ArgRole::Shell)),
                _ => None,
            })
            .collect();
        self.push_possible_values(at, &roles);
        longer.into_iter().for_each(|flag| self.note_flag(flag));
        self.add_risk(at, name, kind);
        if has_next_value {
            self.parse_next_value(ArgRole::Text, name);
        }
    }

    /// Adds the value of an abbreviated flag, in the same word or the next one, once for each flag that is meant
    /// perhaps. The next word also keeps the role that it has if the flag takes no value.
    fn push_possible_values(&mut self, at: usize, roles: &[(&str, ArgRole)]) {
        let attached = self.words[at].literal().and_then(|text| text.split_once('='));
        let attached = attached.map(|(_, value)| Word::Literal(value.to_string()));
        for (flag, role) in roles {
            match (&attached, self.words.get(at + 1).cloned()) {
                (Some(value), _) => self.push_value(*role, at, value.clone(), flag),
                (None, Some(value)) => self.push_value(*role, at + 1, value, flag),
                (None, None) => {}
            }
        }
    }

    /// Adds a text for a shell that is in the same word as its flag.
    fn push_attached_shell_text(&mut self, at: usize, text: &str, flag: &str) {
        if !text.is_empty() {
            self.push_value(ArgRole::Shell, at, Word::Literal(text.to_string()), flag);
        }
    }

    /// Whether a word is a single-dash flag with an attached number.
    fn has_attached_number(&self, name: &str) -> bool {
        let flag = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let value = self.parsed.spec.flag(flag);
        flag.len() < name.len() && matches!(value, Some(FlagValue::Value(ArgRole::Text)))
    }

    /// Parses the next word as the value of a flag.
    fn parse_next_value(&mut self, role: ArgRole, flag: &str) {
        let at = self.at;
        let Some(word) = self.words.get(at) else { return };
        self.at += 1;
        self.parsed.roles[at] = WordRole::Value;
        // If `programs.txt` is wrong and the flag takes no value, the next word may be a flag. So it counts as a risk.
        let is_letter = |c: char| c == '-' || c.is_ascii_alphabetic();
        let may_start_with_dash = match role {
            ArgRole::Mode => word.literal().is_some_and(is_mode),
            ArgRole::LinkerFlags => {
                word.literal().is_some_and(safe_values::are_harmless_linker_flags)
            }
            _ => false,
        };
        if !may_start_with_dash
            && word.prefix().strip_prefix('-').is_some_and(|rest| rest.starts_with(is_letter))
        {
            self.add_word_risk(at, RiskKind::Unlisted);
        }
        if let Word::Dynamic(DynamicWord {
            may_split: true,
            kind:
                DynamicKind::Anything
                | DynamicKind::Number
                | DynamicKind::Commit
                | DynamicKind::Listed(_),
            ..
        }) = word
        {
            // If the word expands to nothing, the next word becomes the value, and the words after it get other roles.
            self.add_word_risk(at, RiskKind::Unlisted);
        }
        self.push_value(role, at, word.clone(), flag);
        self.add_split_operands(at);
        if let Word::Literal(value) = word {
            self.enter_module(role, flag, value);
        }
    }

    /// After a module that `programs.txt` lists, as in `python -m pytest`, continues with its spec. Any other module
    /// gets all remaining words.
    fn enter_module(&mut self, role: ArgRole, flag: &str, value: &str) {
        if role != ArgRole::Module {
            return;
        }
        let name = format!("{} {flag} {value}", self.name);
        match programs::spec(&name) {
            Some(spec) => self.enter_subcommand(spec, name, self.at - 1),
            None => self.pass_through_rest(),
        }
    }

    /// Parses `-abc`, `-ovalue` or `-5`.
    pub(super) fn parse_cluster(&mut self, at: usize, text: &str) {
        self.parsed.roles[at] = WordRole::Flag;
        let spec = self.parsed.spec;
        let letters = &text[1..];
        if spec.traits.number && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        for (offset, letter) in letters.char_indices() {
            let flag = format!("-{letter}");
            let rest = &letters[offset + letter.len_utf8()..];
            // What a rule must contain to allow the flag. The first flag begins the word, so `-o` suffices for
            // `-ofile`. Any other flag is only recognizable in the whole word.
            let text_for_rule = if offset == 0 { flag.as_str() } else { text };
            if rest.is_empty() && offset > 0 {
                self.parsed.flag_clusters.push(at);
            }
            self.note_flag(&flag);
            let value = spec.flag(&flag);
            if !rest.is_empty() && !matches!(value, Some(FlagValue::Nothing) | None) {
                self.note_attached_value_flags(&letters[..offset + letter.len_utf8()]);
            }
            match value {
                Some(FlagValue::Nothing) => {}
                Some(FlagValue::Optional | FlagValue::RiskIfAttached(_)) if rest.is_empty() => {
                    return;
                }
                Some(FlagValue::Optional | FlagValue::RiskIfAttached(_)) => {
                    if let Some(FlagValue::RiskIfAttached(kind)) = value
                        && !is_backup_suffix(rest)
                    {
                        self.add_risk(at, text_for_rule, kind);
                    }
                    let attached = Word::Literal(rest.to_string());
                    return self.push_value(ArgRole::Text, at, attached, &flag);
                }
                Some(FlagValue::Value(role)) if rest.is_empty() => {
                    return self.parse_next_value(role, &flag);
                }
                Some(FlagValue::Value(role)) => {
                    self.push_value(role, at, self.attached_value(role, at, rest), &flag);
                    return self.enter_module(role, &flag, rest);
                }
                Some(FlagValue::Risk(RiskKind::Unlisted)) => {
                    self.add_risk(at, text_for_rule, RiskKind::Unlisted);
                }
                Some(FlagValue::Risk(kind)) => {
                    return self.add_risk(at, text_for_rule, kind);
                }
                Some(FlagValue::RiskWithValue(kind)) => {
                    self.add_risk(at, text_for_rule, kind);
                    if rest.is_empty() {
                        self.parse_next_value(ArgRole::Text, &flag);
                    }
                    return;
                }
                Some(FlagValue::RunsAttached) => {
                    self.add_risk(at, text_for_rule, RiskKind::Runs);
                    return self.push_attached_shell_text(at, rest, &flag);
                }
                Some(FlagValue::Exec) if rest.is_empty() => {
                    return self.parse_exec_command(&flag);
                }
                Some(FlagValue::Exec) => return self.add_risk(at, text_for_rule, RiskKind::Runs),
                Some(FlagValue::Pair(_)) | None => {
                    return self.add_risk(at, text_for_rule, RiskKind::Unlisted);
                }
            }
        }
    }

    /// Records the one-letter flags of a cluster whose last flag has a value in the same word.
    fn note_attached_value_flags(&mut self, letters: &str) {
        self.parsed.attached_value_flags.push_str(letters);
    }

    /// Parses `tar tf archive`: letters first, then their values in order.
    pub(super) fn parse_dashless_flags(&mut self) {
        if !self.parsed.spec.traits.dashless {
            return;
        }
        let text = match self.words.get(1) {
            Some(Word::Literal(text)) if !text.starts_with('-') => text,
            Some(Word::Literal(_)) | None => return,
            Some(Word::Glob(_) | Word::Dynamic(_)) => {
                return self.add_word_risk(1, RiskKind::Unlisted);
            }
        };
        self.parsed.roles[1] = WordRole::Flag;
        self.parsed.flag_clusters.push(1);
        self.at = 2;
        for letter in text.chars() {
            let flag = format!("-{letter}");
            self.note_flag(&flag);
            match self.parsed.spec.flag(&flag) {
                Some(FlagValue::Nothing | FlagValue::Optional) => {}
                Some(FlagValue::Value(role)) => self.parse_next_value(role, &flag),
                Some(FlagValue::Risk(kind) | FlagValue::RiskIfAttached(kind)) => {
                    self.add_word_risk(1, kind)
                }
                Some(FlagValue::RiskWithValue(kind)) => {
                    self.add_word_risk(1, kind);
                    self.parse_next_value(ArgRole::Text, &flag);
                }
                Some(FlagValue::Pair(_) | FlagValue::Exec | FlagValue::RunsAttached) | None => {
                    self.add_word_risk(1, RiskKind::Unlisted);
                }
            }
        }
    }

    /// Parses `-exec program … ;`.
    fn parse_exec_command(&mut self, flag: &str) {
        let start = self.at;
        let end = exec_end(self.words, start, flag);
        self.at = (end + 1).min(self.words.len());
        if let Some(value) = self.words.get(start).filter(|_| start < end) {
            let (value, flag) = (value.clone(), Some(flag.to_string()));
            self.parsed.arguments.push(Argument {
                role: ArgRole::Command,
                word: start,
                value,
                flag,
                end,
            });
        }
        for at in start..end {
            // If a word turns out to be the terminator, the words after it may be flags of `find`.
            let may_be_terminator = match &self.words[at] {
                Word::Literal(_) => false,
                Word::Glob(_) => self.words[at].prefix().is_empty(),
                Word::Dynamic(it) => it.kind == DynamicKind::Anything && it.prefix.is_empty(),
            };
            let may_be_flag = |word: &Word| match word.literal() {
                Some(text) => text.starts_with('-'),
                None => word.prefix().is_empty() || word.prefix().starts_with('-'),
            };
            if may_be_terminator && self.words[at + 1..end].iter().any(may_be_flag) {
                self.add_word_risk(at, RiskKind::Unlisted);
            }
        }
    }
}

/// Whether a text is a symbolic mode like `-u+x,g=w`. No flag of `find` contains `+` or `=`.
fn is_mode(text: &str) -> bool {
    let has_sign = text.contains(['+', '=']);
    has_sign && text.chars().all(|c| "-ugoa+=rwxXst,".contains(c))
}

/// Returns the index at which the command of `-exec` ends: at `;`, or at `+` directly after `{}`.
pub(super) fn exec_end(words: &[Word], start: usize, flag: &str) -> usize {
    let allows_plus = matches!(flag, "-exec" | "-execdir");
    let is_end = |at: &usize| match words[*at].literal() {
        Some(";") => true,
        Some("+") => allows_plus && *at > start && words[*at - 1].literal() == Some("{}"),
        Some(_) | None => false,
    };
    (start..words.len()).find(is_end).unwrap_or(words.len())
}

/// Whether a value only adds an extension to the name of a file, like `.bak`.
fn is_backup_suffix(value: &str) -> bool {
    let extension = value.strip_prefix('.').unwrap_or("");
    !extension.is_empty() && extension.chars().all(|c| c.is_ascii_alphanumeric())
}
