//! Expands tildes, parameters and command substitutions in a word, and splits the word into fields.

use super::ast::{Node, Operator, Parameter, Piece};
use super::braces::Item;
use super::command_output::{prints_commit, prints_cwd, prints_number, prints_repository_top};
use super::fragments::{Fragment, MayBeEmpty, fragment_text};
use super::grammar::is_name;
use super::state::{ShellState, Value};
use super::{DynamicKind, MAX_SCRIPT_BYTES};

/// Returns the fields that the items of a word expand to, each as a list of fragments.
pub(super) fn expand(items: &[Item<'_>], state: &ShellState) -> Vec<Vec<Fragment>> {
    let mut fields = Fields::default();
    let (tilde, rest) = expand_tilde(items, state);
    fields.current.extend(tilde);
    if is_zsh_program_path(items) {
        fields.current.push(unknown_word());
    }
    let equals_sign = assignment_sign(rest);
    for (at, item) in rest.iter().enumerate() {
        match item {
            // Some shells expand this to the home directory.
            Item::Char('~')
                if equals_sign.is_some_and(|sign| sign < at)
                    && matches!(rest[at - 1], Item::Char('=' | ':')) =>
            {
                fields.current.push(unknown_word());
            }
            Item::Char(c) => fields.push_text(&c.to_string(), false),
            Item::Piece(Piece::Text { text, quoted }) => fields.push_text(text, *quoted),
            Item::Piece(Piece::Parameter { parameter, quoted }) => {
                fields.push_parameter(parameter, *quoted, state);
            }
            Item::Piece(Piece::Command { body, quoted }) => {
                fields.push_command_output(body, *quoted, state)
            }
            Item::Piece(Piece::Arithmetic { .. }) => fields.current.push(number_fragment()),
            Item::Piece(Piece::Process { .. }) => fields.current.push(Fragment::Unknown {
                kind: DynamicKind::Pipe,
                splits: false,
                empty: MayBeEmpty::No,
            }),
        }
    }
    fields.finish()
}

/// The fields of a word while it is expanded.
#[derive(Default)]
struct Fields {
    complete: Vec<Vec<Fragment>>,
    current: Vec<Fragment>,
    /// Total length of the parameter values.
    expanded_bytes: usize,
}

impl Fields {
    fn finish(mut self) -> Vec<Vec<Fragment>> {
        if !self.current.is_empty() {
            self.complete.push(self.current);
        }
        self.complete
    }

    fn push_text(&mut self, more: &str, is_quoted: bool) {
        match self.current.last_mut() {
            Some(Fragment::Text { text, quoted }) if *quoted == is_quoted => text.push_str(more),
            _ => self.current.push(Fragment::Text { text: more.to_string(), quoted: is_quoted }),
        }
    }

    fn push_parameter(&mut self, parameter: &Parameter, quoted: bool, state: &ShellState) {
        if let Some(words) = array_elements(parameter, state).filter(|_| quoted) {
            self.expanded_bytes += words.iter().map(String::len).sum::<usize>();
            if self.expanded_bytes <= MAX_SCRIPT_BYTES {
                return self.push_words(&words);
            }
        }
        let fragment = parameter_fragment(parameter, quoted, state);
        self.expanded_bytes += fragment_text(&fragment).len();
        match (fragment, quoted) {
            _ if self.expanded_bytes > MAX_SCRIPT_BYTES => self.current.push(unknown_words()),
            (Fragment::Text { text, .. }, false) => self.split(&text),
            (fragment, _) => self.current.push(fragment),
        }
    }

    /// Adds words, the first of which continues the current field.
    fn push_words(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                self.complete.push(std::mem::take(&mut self.current));
            }
            self.push_text(word, true);
        }
    }

    fn push_command_output(&mut self, body: &Node, quoted: bool, state: &ShellState) {
        let dir = match state.value("PWD") {
            Value::Text(dir) if prints_cwd(body) => Some(dir),
            _ if prints_repository_top(body) => state.repository_top(),
            _ => None,
        };
        match (dir, quoted) {
            (Some(dir), true) => self.push_text(&dir, true),
            (Some(dir), false) => self.split(&dir),
            (None, _) => {
                let kind = match body {
                    body if prints_number(body) => DynamicKind::Number,
                    body if prints_commit(body) => DynamicKind::Commit,
                    _ => DynamicKind::Anything,
                };
                // A command that fails prints nothing, and the word disappears.
                self.current.push(possibly_empty_fragment(kind, !quoted));
            }
        }
    }

    /// Splits the value of an unquoted expansion into fields.
    fn split(&mut self, value: &str) {
        let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n');
        let mut rest = value;
        while let Some(at) = rest.find(is_blank) {
            if at > 0 {
                self.push_text(&rest[..at], false);
            }
            if !self.current.is_empty() {
                self.complete.push(std::mem::take(&mut self.current));
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.push_text(rest, false);
        }
    }
}

fn possibly_empty_fragment(kind: DynamicKind, splits: bool) -> Fragment {
    Fragment::Unknown { kind, splits, empty: MayBeEmpty::Yes }
}

/// Returns unknown text that stays one word.
fn unknown_word() -> Fragment {
    possibly_empty_fragment(DynamicKind::Anything, false)
}

/// Returns unknown text that the shell may split into several words.
fn unknown_words() -> Fragment {
    possibly_empty_fragment(DynamicKind::Anything, true)
}

fn number_fragment() -> Fragment {
    Fragment::Unknown { kind: DynamicKind::Number, splits: false, empty: MayBeEmpty::No }
}

/// Returns the text of items that are all unquoted characters.
fn plain_text(items: &[Item<'_>]) -> Option<String> {
    items
        .iter()
        .map(|item| match item {
            Item::Char(c) => Some(*c),
            Item::Piece(_) => None,
        })
        .collect()
}

/// Returns the position of the `=` in a word that looks like an assignment.
fn assignment_sign(items: &[Item<'_>]) -> Option<usize> {
    let sign = items.iter().position(|item| *item == Item::Char('='))?;
    plain_text(&items[..sign]).filter(|name| is_name(name)).map(|_| sign)
}

/// Whether zsh would expand `=name` to the path of a program.
fn is_zsh_program_path(items: &[Item<'_>]) -> bool {
    let is_other = |item: &Item<'_>| !matches!(item, Item::Char('=' | '~'));
    items.first() == Some(&Item::Char('=')) && items.iter().any(is_other)
}

/// Expands a leading `~`. Returns the result and the remaining items.
fn expand_tilde<'i, 'p>(
    items: &'i [Item<'p>],
    state: &ShellState,
) -> (Option<Fragment>, &'i [Item<'p>]) {
    if items.first() != Some(&Item::Char('~')) {
        return (None, items);
    }
    let end = items.iter().position(|item| *item == Item::Char('/')).unwrap_or(items.len());
    let name = plain_text(&items[1..end]);
    let variable = match name.as_deref() {
        // Shells differ on a tilde prefix with quotes in it.
        None => "",
        Some("") => "HOME",
        Some("+") => "PWD",
        Some("-") => "OLDPWD",
        Some(_) => "",
    };
    let fragment = match state.value(variable).text() {
        Some(text) => Fragment::Text { text: text.to_string(), quoted: true },
        None => unknown_word(),
    };
    (Some(fragment), &items[if name.is_some() { end } else { 1 }..])
}

/// Returns the elements of an array that a parameter like `${a[@]}` stands for, if they are known.
pub(super) fn array_elements(parameter: &Parameter, state: &ShellState) -> Option<Vec<String>> {
    let is_whole_array = matches!(
        parameter.index.as_deref(),
        Some([Piece::Text { text, .. }]) if text == "@"
    );
    match state.value(&parameter.name) {
        Value::Words(words) if is_whole_array && parameter.operator == Operator::None => {
            Some(words)
        }
        _ => None,
    }
}

fn parameter_fragment(parameter: &Parameter, quoted: bool, state: &ShellState) -> Fragment {
    let is_single_index = |index: &[Piece]| matches!(index, [Piece::Text { text, .. }] if text.bytes().all(|it| it.is_ascii_digit()));
    let is_list = parameter.name == "@"
        || parameter.index.as_deref().is_some_and(|index| !is_single_index(index));
    let unknown = if !quoted || is_list { unknown_words() } else { unknown_word() };
    if parameter.index.is_some() || is_list {
        return match parameter.operator {
            Operator::Length => number_fragment(),
            _ => unknown,
        };
    }
    match (parameter.operator, state.value(&parameter.name)) {
        (Operator::Length, _) | (Operator::None, Value::Number) => number_fragment(),
        (Operator::None, Value::NumberOrEmpty) => {
            possibly_empty_fragment(DynamicKind::Number, !quoted)
        }
        (Operator::None, Value::CommitOrEmpty) => {
            possibly_empty_fragment(DynamicKind::Commit, !quoted)
        }
        (Operator::None, Value::Listed(listing)) => {
            let kind = DynamicKind::Listed(listing);
            Fragment::Unknown { kind, splits: !quoted, empty: MayBeEmpty::No }
        }
        (Operator::None, Value::Text(text)) => Fragment::Text { text, quoted },
        (Operator::None, Value::Glob(pattern)) => Fragment::Glob(pattern),
        (
            Operator::None,
            Value::NumberOrInherited | Value::Words(_) | Value::Unknown | Value::UnknownGlob,
        )
        | (
            Operator::Default
            | Operator::Assign
            | Operator::Edit
            | Operator::Slice
            | Operator::Indirect,
            _,
        ) => unknown,
    }
}
