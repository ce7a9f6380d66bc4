//! Loose matching, for rules that ask or deny. The command may have more words than the rule, in another order and in
//! another spelling.
//!
//! The rule `git push --force` matches `git push origin --force`, `Git push -q --force` and `git -C . push --force x`.

use helve_text::shell::{ProgramRun, RiskKind, WordRole};
use helve_text::wildcard;

use super::quote_text;
use crate::rule::Pattern;

/// Maximum length of a cluster of short flags that contains a risky one. A longer word is the name of one flag.
const MAX_CLUSTER: usize = 4;

/// A spelling of a command, prepared for loose matching.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LooseForm {
    words: Vec<(String, WordRole)>,
    /// The text of the command, with and without quotes.
    texts: Vec<String>,
    /// The letters of all one-letter flags: `-rf -v` → `rfv`.
    letters: String,
    /// Whether the analysis knows the program and its arguments.
    is_known: bool,
    /// Indices of unknown flags. Such a flag may be an abbreviation, and the next word may be its value.
    unknown_flags: Vec<usize>,
}

impl LooseForm {
    /// Prepares the words of `run`. Some of them may be spelled differently in `words`, but none may be added or
    /// removed.
    pub(super) fn new(words: Vec<(String, WordRole)>, run: &ProgramRun) -> Self {
        let bare: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
        let quote =
            |word: &&str| match word.is_empty() || word.contains([' ', '\t', '\n', '\'', '"']) {
                true => quote_text(word),
                false => word.to_string(),
            };
        let quoted: Vec<String> = bare.iter().map(quote).collect();
        let mut texts = vec![bare.join(" "), quoted.join(" ")];
        texts.dedup();
        let mut form = Self {
            words,
            texts,
            letters: String::new(),
            is_known: run.is_known,
            unknown_flags: Vec::new(),
        };
        let unknown = run.risks.iter().filter(|risk| risk.kind == RiskKind::Unlisted);
        form.unknown_flags = unknown.map(|risk| risk.word).collect();
        let clusters = run.flag_clusters.iter().filter_map(|at| run.words.get(*at));
        // The first flags of `tar xf` have no dash.
        let cluster_letters = clusters.flat_map(|word| {
            let text = word.shown();
            text.strip_prefix('-').unwrap_or(text).chars()
        });
        // The analysis stops at a risky flag, so `flag_clusters` lacks the clusters that contain one.
        let risky = run.risks.iter().filter_map(|risk| run.words.get(risk.word));
        let risky_letters = risky.filter_map(|word| word.shown().strip_prefix('-'));
        let risky_letters = risky_letters
            .filter(|it| it.len() <= MAX_CLUSTER && it.bytes().all(|c| c.is_ascii_alphanumeric()))
            .flat_map(str::chars);
        let letters = cluster_letters.chain(run.attached_value_flags.chars()).chain(risky_letters);
        form.letters = letters.chain(form.flag_letters()).collect();
        form
    }

    /// Prepares a command that does the same as `run`. It may have other words.
    pub(super) fn of_equivalent(words: Vec<(String, WordRole)>, run: &ProgramRun) -> Self {
        let mut form = Self::new(words, run);
        // The indices refer to the words of `run`. In `words`, the unknown flags may be anywhere.
        if !form.unknown_flags.is_empty() {
            form.unknown_flags = (0..form.words.len()).collect();
        }
        form
    }

    /// Prepares the words of a command that could not be parsed. A word with a leading dash counts as a flag.
    pub(super) fn of_unparsed_words<'w>(
        program: &str,
        arguments: impl Iterator<Item = &'w String>,
    ) -> Self {
        let with_role = |word: &String| match word.starts_with('-') {
            true => (word.clone(), WordRole::Flag),
            false => (word.clone(), WordRole::Operand),
        };
        let mut words = vec![(program.to_string(), WordRole::Program)];
        words.extend(arguments.map(with_role));
        let bare: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
        let texts = vec![bare.join(" ")];
        let (letters, unknown_flags) = (String::new(), Vec::new());
        let mut form = Self { words, texts, letters, is_known: false, unknown_flags };
        form.letters = form.flag_letters().collect();
        form
    }

    pub(super) fn add_texts(&mut self, texts: impl Iterator<Item = String>) {
        self.texts.extend(texts);
    }

    /// Returns the letters of the one-letter flags among the words. A longer word is a cluster of letters only if the
    /// program is unknown: `find` has the flag `-delete`.
    fn flag_letters(&self) -> impl Iterator<Item = char> {
        let is_cluster = |(at, word): &(usize, &str)| {
            word.starts_with('-')
                && !word.starts_with("--")
                && (word.len() == 2 || !self.is_known || self.unknown_flags.contains(at))
        };
        let clusters = self.flags().filter(is_cluster);
        clusters.flat_map(|(_, word)| word.chars().skip(1)).collect::<Vec<_>>().into_iter()
    }

    /// Whether the pattern of a rule that asks or denies matches this spelling.
    pub(super) fn matches_loosely(&self, pattern: &Pattern) -> bool {
        self.texts.iter().any(|text| pattern.matches(text)) || self.has_words_of(pattern)
    }

    /// Whether the command has all words of a pattern. The flags can be anywhere and in any spelling; the operands must
    /// be in the same order. The command may have more words.
    fn has_words_of(&self, pattern: &Pattern) -> bool {
        let text = match pattern {
            Pattern::Wild(text) | Pattern::CaseInsensitive(text) => text,
            Pattern::Exact(_) => return false,
        };
        let mut tokens = text.split_whitespace();
        let Some(program) = tokens.next() else { return false };
        let name = self.words.first().map_or("", |(word, _)| word);
        let is_same_program = match program.contains(['*', '?']) {
            true => wildcard::matches(&program.to_ascii_lowercase(), &name.to_ascii_lowercase()),
            false => program.eq_ignore_ascii_case(name),
        };
        if !is_same_program {
            return false;
        }
        // Words are compared without quotes.
        let tokens: Vec<&str> = tokens.map(|token| token.trim_matches(['\'', '"'])).collect();
        let is_flag = |token: &str| token.len() > 1 && token.starts_with('-');
        let (flags, operands): (Vec<&str>, Vec<&str>) =
            tokens.iter().partition(|token| is_flag(token));
        if !flags.iter().all(|flag| self.has_flag(flag)) {
            return false;
        }
        if self.has_operands(&operands) {
            return true;
        }
        // A word after a flag of the pattern may be the value of the flag: `kubectl -n prod delete`.
        let is_value = |at: usize| at > 0 && is_flag(tokens[at - 1]) && !is_flag(tokens[at]);
        let (values, others): (Vec<usize>, Vec<usize>) =
            (0..tokens.len()).filter(|at| !is_flag(tokens[*at])).partition(|at| is_value(*at));
        let has_value = |at: &usize| self.has_flag_value(tokens[*at - 1], tokens[*at]);
        let others: Vec<&str> = others.into_iter().map(|at| tokens[at]).collect();
        !values.is_empty() && values.iter().all(has_value) && self.has_operands(&others)
    }

    fn flags(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_flag = |role: WordRole| role == WordRole::Flag;
        let words = self.words.iter().enumerate().filter(move |(_, (_, role))| is_flag(*role));
        words.map(|(at, (word, _))| (at, word.as_str()))
    }

    /// Whether the command has a flag, in any spelling: `-rf` is also found in `-f -r`.
    fn has_flag(&self, wanted: &str) -> bool {
        if self.flags().any(|(at, flag)| self.is_wanted_flag(at, flag, wanted)) {
            return true;
        }
        if let Some((name, value)) = wanted.split_once('=') {
            return self.has_flag_value(name, value);
        }
        // With a `*` at the end, the command may have further letters: `-rf*` also matches `-fr`, `-r -f` and `-vrf`.
        let letters = wanted.strip_prefix('-').unwrap_or("").trim_end_matches('*');
        let is_cluster = letters.bytes().all(|c| c.is_ascii_alphanumeric()) && !letters.is_empty();
        let has_letter = |letter: char| {
            let is_long = |flag: &str| flag.starts_with("--") && flag[2..].starts_with(letter);
            self.letters.contains(letter)
                || !self.is_known && self.flags().any(|(_, flag)| is_long(flag))
        };
        is_cluster && letters.chars().all(has_letter)
    }

    /// Whether a word of the command is the wanted flag. The wanted flag `--force` is also found in `--force=x`, and in
    /// an unknown flag `--for`, which may be an abbreviation.
    fn is_wanted_flag(&self, at: usize, flag: &str, wanted: &str) -> bool {
        let name = flag.split('=').next().unwrap_or(flag);
        let is_abbreviation =
            || flag.len() > 2 && flag.starts_with("--") && self.unknown_flags.contains(&at);
        wildcard::matches(wanted, flag)
            || name == wanted
            || is_abbreviation() && !wanted.contains(['*', '?']) && wanted.starts_with(name)
    }

    /// Whether the command has a flag with this value: `-n x`, `-nx` or `-n=x`.
    fn has_flag_value(&self, flag: &str, value: &str) -> bool {
        self.flags().any(|(at, word)| {
            let next = self.words.get(at + 1).map_or("", |(word, _)| word);
            let attached = word.strip_prefix(flag).map(|it| it.strip_prefix('=').unwrap_or(it));
            word == flag && wildcard::matches(value, next)
                || attached.is_some_and(|it| !it.is_empty() && wildcard::matches(value, it))
        })
    }

    /// Whether the command has operands that match these patterns in this order. Between two of them, the command may
    /// have more operands, but not another subcommand.
    fn has_operands(&self, operands: &[&str]) -> bool {
        // `reached[n]`: the patterns so far can match operands in order, the last one being the word at index n - 1.
        let mut reached = vec![false; self.words.len() + 1];
        reached[1.min(self.words.len())] = true;
        let (mut is_after_star, mut matched) = (false, 0);
        for pattern in operands {
            // A lone `*` stands for any number of words.
            if pattern.bytes().all(|byte| byte == b'*') {
                is_after_star = true;
                continue;
            }
            let mut next = vec![false; reached.len()];
            // Whether all words between a match of the previous pattern and the current word can be skipped.
            let mut is_reachable = false;
            for (at, (word, role)) in self.words.iter().enumerate().skip(1) {
                is_reachable |= reached[at];
                let is_operand = match role {
                    WordRole::Flag | WordRole::Value => false,
                    WordRole::Program
                    | WordRole::Subcommand
                    | WordRole::Operand
                    | WordRole::Script => true,
                };
                next[at + 1] = is_reachable && is_operand && matches_operand(pattern, word);
                is_reachable &= is_after_star || !is_operand || self.can_skip(at, *role, matched);
            }
            reached = next;
            is_after_star = false;
            matched += 1;
        }
        reached.iter().any(|yes| *yes)
    }

    /// Whether the command may have this operand although the rule does not. `matched` is the number of operands of the
    /// rule that have matched so far.
    fn can_skip(&self, at: usize, role: WordRole, matched: usize) -> bool {
        // The operand may be the value of the flag.
        let is_after_unknown_flag = self.words.get(at - 1).is_some_and(|(_, role)| {
            *role == WordRole::Flag && (!self.is_known || self.unknown_flags.contains(&(at - 1)))
        });
        let is_plain_operand = match role {
            // The first operand of an unknown program may be a subcommand.
            WordRole::Operand => self.is_known || matched > 0,
            WordRole::Program
            | WordRole::Subcommand
            | WordRole::Flag
            | WordRole::Value
            | WordRole::Script => false,
        };
        is_plain_operand || is_after_unknown_flag
    }
}

/// Whether an operand matches a pattern. A leading `./` means nothing: `src*` also matches `./src`.
fn matches_operand(pattern: &str, word: &str) -> bool {
    let leading_dot_len = |text: &str| -> usize {
        let mut rest = text;
        while let Some(shorter) = rest.strip_prefix("./").filter(|it| !it.is_empty()) {
            rest = shorter.trim_start_matches('/');
        }
        text.len() - rest.len()
    };
    wildcard::matches(pattern, word)
        || wildcard::matches(&pattern[leading_dot_len(pattern)..], &word[leading_dot_len(word)..])
}
