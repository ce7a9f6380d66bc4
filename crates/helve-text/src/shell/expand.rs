//! From a word as written to the words the program gets.

use super::ast::{Operator, Parameter, Piece, RawWord};
use super::braces::{self, Item};
use super::command_output::{prints_commit, prints_folder, prints_number, prints_wildcard};
use super::fragments::{Fragment, MayBeEmpty, fragment_text, is_glob, word};
use super::grammar::is_name;
use super::state::{ShellState, Value};
use super::{DynamicKind, DynamicWord, MAX_SCRIPT_BYTES, Word};

/// The words that a word becomes; `None` where that is too much to spell out.
pub(super) fn words(raw: &RawWord, shown: &str, state: &ShellState) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    for items in braces::expand(&raw.pieces)? {
        words.extend(fields(&items, state).into_iter().map(|fragments| word(&fragments, shown)));
    }
    Some(words)
}

/// Whether braces make something else of a word, in shells that know them.
pub(super) fn has_braces(raw: &RawWord) -> bool {
    let as_it_is: Vec<Item<'_>> = raw.pieces.iter().flat_map(items).collect();
    braces::expand(&raw.pieces).is_none_or(|words| words != [as_it_is])
}

/// Whether shells differ in what becomes of a word: to some, a dollar sign that stands for itself keeps what is filled in
/// before it from being taken apart.
pub(super) fn is_ambiguous(raw: &RawWord) -> bool {
    let lone =
        |piece: &Piece| matches!(piece, Piece::Text { text, quoted: false } if text.contains('$'));
    raw.pieces.iter().any(lone)
        && raw.pieces.iter().any(|piece| !matches!(piece, Piece::Text { .. }))
}

/// Whether a word is written with wildcards.
pub(super) fn has_wildcards(raw: &RawWord) -> bool {
    let wild = |it: &Piece| matches!(it, Piece::Text { text, quoted: false } if is_glob(text));
    raw.pieces.iter().any(wild)
}

/// Patterns in unquoted variables: the names that are filled in are taken apart and filled in once more.
pub(super) fn globs_in_variables(raw: &RawWord, state: &ShellState) -> Vec<String> {
    let pattern = |piece: &Piece| match piece {
        Piece::Parameter { parameter, quoted: false } if parameter.operator == Operator::None => {
            let Value::Glob(pattern) = state.value(&parameter.name) else { return None };
            Some(pattern)
        }
        _ => None,
    };
    raw.pieces.iter().filter_map(pattern).collect()
}

/// The word where braces, splitting and file names play no part: redirects, tests, here-strings.
pub(super) fn single(pieces: &[Piece], shown: &str, state: &ShellState) -> Word {
    let items: Vec<Item<'_>> = pieces.iter().flat_map(items).collect();
    let fragments: Vec<Fragment> = fields(&items, state).into_iter().flatten().collect();
    word(&fragments, shown)
}

/// What an assignment stores.
pub(super) fn value(raw: &RawWord, state: &ShellState) -> Value {
    let quoted: Vec<Piece> = raw.pieces.iter().map(quote).collect();
    let tilde_later = raw
        .pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Text { text, quoted: false } if text.contains(":~")));
    match single(&quoted, "", state) {
        _ if tilde_later => Value::Unknown,
        Word::Literal(text) => Value::Text(text),
        Word::Glob(pattern) => Value::Glob(pattern),
        Word::Dynamic(DynamicWord { kind: DynamicKind::Number, prefix, .. })
            if prefix.is_empty() =>
        {
            let is_printed = |piece: &Piece| match piece {
                Piece::Command { .. } => true,
                Piece::Parameter { parameter, .. } => {
                    state.value(&parameter.name) == Value::NumberOrEmpty
                }
                Piece::Text { .. } | Piece::Arithmetic { .. } | Piece::Process { .. } => false,
            };
            let printed = raw.pieces.iter().any(is_printed);
            if printed { Value::NumberOrEmpty } else { Value::Number }
        }
        Word::Dynamic(DynamicWord { kind: DynamicKind::Commit, .. }) => Value::CommitOrEmpty,
        Word::Dynamic(_) if raw.pieces.iter().any(|piece| has_wildcard(piece, state)) => {
            Value::UnknownGlob
        }
        Word::Dynamic(_) => Value::Unknown,
    }
}

/// Whether names may be filled in for a variable of which it is not known what it holds.
pub(super) fn is_wild(raw: &RawWord, state: &ShellState) -> bool {
    raw.pieces.iter().any(|piece| match piece {
        Piece::Parameter { parameter, quoted: false } => {
            state.value(&parameter.name) == Value::UnknownGlob
                || parameter.operator.fills_in()
                    && parameter.operand.iter().any(|piece| has_wildcard(piece, state))
        }
        Piece::Command { body, quoted: false } => prints_wildcard(body),
        Piece::Parameter { .. }
        | Piece::Text { .. }
        | Piece::Command { .. }
        | Piece::Arithmetic { .. }
        | Piece::Process { .. } => false,
    })
}

/// Whether what is assigned has a wildcard in it, quoted or not.
fn has_wildcard(piece: &Piece, state: &ShellState) -> bool {
    match piece {
        Piece::Text { text, .. } => text.contains(['*', '?', '[']),
        Piece::Parameter { parameter, .. } => state.value(&parameter.name).is_wild(),
        Piece::Command { body, .. } => prints_wildcard(body),
        Piece::Arithmetic { .. } | Piece::Process { .. } => false,
    }
}

/// An assigned value is not split, and wildcards in it are not filled in yet.
fn quote(piece: &Piece) -> Piece {
    match piece {
        Piece::Text { text, quoted: false } if text.starts_with(['~', '=']) => piece.clone(),
        Piece::Text { text, .. } => Piece::Text { text: text.clone(), quoted: true },
        Piece::Parameter { parameter, .. } => {
            Piece::Parameter { parameter: parameter.clone(), quoted: true }
        }
        Piece::Command { body, .. } => Piece::Command { body: body.clone(), quoted: true },
        Piece::Arithmetic { inside, .. } => {
            Piece::Arithmetic { inside: inside.clone(), quoted: true }
        }
        Piece::Process { .. } => piece.clone(),
    }
}

fn items(piece: &Piece) -> Vec<Item<'_>> {
    match piece {
        Piece::Text { text, quoted: false } => text.chars().map(Item::Char).collect(),
        piece => vec![Item::Piece(piece)],
    }
}

fn fields(items: &[Item<'_>], state: &ShellState) -> Vec<Vec<Fragment>> {
    let mut fields: Vec<Vec<Fragment>> = Vec::new();
    let mut fragments: Vec<Fragment> = Vec::new();
    let (tilde, rest) = tilde(items, state);
    fragments.extend(tilde);
    if names_program(items) {
        fragments.push(Fragment::Unknown {
            kind: DynamicKind::Anything,
            splits: false,
            empty: MayBeEmpty::Yes,
        });
    }
    let mut filled_in = 0_usize;
    let assigned = assigned(rest);
    for (at, item) in rest.iter().enumerate() {
        match item {
            // Some shells fill in the home folder here.
            Item::Char('~') if assigned.is_some_and(|sign| sign < at && opens(&rest[at - 1])) => {
                fragments.push(Fragment::Unknown {
                    kind: DynamicKind::Anything,
                    splits: false,
                    empty: MayBeEmpty::Yes,
                });
            }
            Item::Char(c) => text(&mut fragments, &c.to_string(), false),
            Item::Piece(Piece::Text { text: it, quoted }) => text(&mut fragments, it, *quoted),
            Item::Piece(Piece::Parameter { parameter, quoted }) => {
                let fragment = parameter_fragment(parameter, *quoted, state);
                filled_in += fragment_text(&fragment).len();
                match (fragment, quoted) {
                    _ if filled_in > MAX_SCRIPT_BYTES => {
                        fragments.push(Fragment::Unknown {
                            kind: DynamicKind::Anything,
                            splits: true,
                            empty: MayBeEmpty::Yes,
                        });
                    }
                    (Fragment::Text { text: it, .. }, false) => {
                        split(&it, &mut fragments, &mut fields)
                    }
                    (fragment, _) => fragments.push(fragment),
                }
            }
            Item::Piece(Piece::Command { body, quoted }) => {
                match (prints_folder(body), state.value("PWD"), quoted) {
                    (true, Value::Text(it), true) => text(&mut fragments, &it, true),
                    (true, Value::Text(it), false) => split(&it, &mut fragments, &mut fields),
                    _ => {
                        let kind = match body {
                            body if prints_number(body) => DynamicKind::Number,
                            body if prints_commit(body) => DynamicKind::Commit,
                            _ => DynamicKind::Anything,
                        };
                        // Where it fails it prints nothing, and the word is gone.
                        fragments.push(Fragment::Unknown {
                            kind,
                            splits: !quoted,
                            empty: MayBeEmpty::Yes,
                        });
                    }
                }
            }
            Item::Piece(Piece::Arithmetic { .. }) => {
                fragments.push(Fragment::Unknown {
                    kind: DynamicKind::Number,
                    splits: false,
                    empty: MayBeEmpty::No,
                });
            }
            Item::Piece(Piece::Process { .. }) => {
                fragments.push(Fragment::Unknown {
                    kind: DynamicKind::Pipe,
                    splits: false,
                    empty: MayBeEmpty::No,
                });
            }
        }
    }
    if !fragments.is_empty() {
        fields.push(fragments);
    }
    fields
}

/// Where the sign is, in a word that looks like an assignment.
fn assigned(items: &[Item<'_>]) -> Option<usize> {
    let sign = items.iter().position(|item| *item == Item::Char('='))?;
    let name: Option<String> = items[..sign]
        .iter()
        .map(|item| match item {
            Item::Char(c) => Some(*c),
            Item::Piece(_) => None,
        })
        .collect();
    name.filter(|name| is_name(name)).map(|_| sign)
}

fn opens(item: &Item<'_>) -> bool {
    matches!(item, Item::Char('=' | ':'))
}

fn text(fragments: &mut Vec<Fragment>, more: &str, is_quoted: bool) {
    match fragments.last_mut() {
        Some(Fragment::Text { text, quoted }) if *quoted == is_quoted => text.push_str(more),
        _ => fragments.push(Fragment::Text { text: more.to_string(), quoted: is_quoted }),
    }
}

/// A known value that stands unquoted becomes as many words as it has.
fn split(value: &str, fragments: &mut Vec<Fragment>, fields: &mut Vec<Vec<Fragment>>) {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n');
    let mut rest = value;
    while let Some(at) = rest.find(blank) {
        if at > 0 {
            text(fragments, &rest[..at], false);
        }
        if !fragments.is_empty() {
            fields.push(std::mem::take(fragments));
        }
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() {
        text(fragments, rest, false);
    }
}

/// `=name` at the start of a word is the path of a program in zsh.
fn names_program(items: &[Item<'_>]) -> bool {
    let other = |item: &Item<'_>| !matches!(item, Item::Char('=' | '~'));
    items.first() == Some(&Item::Char('=')) && items.iter().any(other)
}

/// `~` at the start of a word, and what is left after it.
fn tilde<'i, 'p>(items: &'i [Item<'p>], state: &ShellState) -> (Option<Fragment>, &'i [Item<'p>]) {
    if items.first() != Some(&Item::Char('~')) {
        return (None, items);
    }
    let end = items.iter().position(|item| *item == Item::Char('/')).unwrap_or(items.len());
    let name: Option<String> = items[1..end]
        .iter()
        .map(|item| match item {
            Item::Char(c) => Some(*c),
            Item::Piece(_) => None,
        })
        .collect();
    let variable = match name.as_deref() {
        // With quotes in it, some shells leave it as it is and some do not.
        None => "",
        Some("") => "HOME",
        Some("+") => "PWD",
        Some("-") => "OLDPWD",
        Some(_) => "",
    };
    let fragment = match state.value(variable).text() {
        Some(text) => Fragment::Text { text: text.to_string(), quoted: true },
        None => {
            Fragment::Unknown { kind: DynamicKind::Anything, splits: false, empty: MayBeEmpty::Yes }
        }
    };
    (Some(fragment), &items[if name.is_some() { end } else { 1 }..])
}

fn parameter_fragment(parameter: &Parameter, quoted: bool, state: &ShellState) -> Fragment {
    let several = parameter.name == "@"
        || parameter.index.as_deref().is_some_and(|index| {
            !matches!(index, [Piece::Text { text, .. }] if text.bytes().all(|it| it.is_ascii_digit()))
        });
    let splits = !quoted || several;
    let hole = Fragment::Unknown { kind: DynamicKind::Anything, splits, empty: MayBeEmpty::Yes };
    let number =
        Fragment::Unknown { kind: DynamicKind::Number, splits: false, empty: MayBeEmpty::No };
    if parameter.index.is_some() || several {
        return match parameter.operator {
            Operator::Length => number,
            _ => hole,
        };
    }
    match (parameter.operator, state.value(&parameter.name)) {
        (Operator::Length, _) | (Operator::None, Value::Number) => number,
        (Operator::None, Value::NumberOrEmpty) => {
            Fragment::Unknown { kind: DynamicKind::Number, splits: !quoted, empty: MayBeEmpty::Yes }
        }
        (Operator::None, Value::CommitOrEmpty) => {
            Fragment::Unknown { kind: DynamicKind::Commit, splits: !quoted, empty: MayBeEmpty::Yes }
        }
        (Operator::None, Value::Text(text)) => Fragment::Text { text, quoted },
        (Operator::None, Value::Glob(pattern)) => Fragment::Glob(pattern),
        (Operator::None, Value::NumberOrInherited | Value::Unknown | Value::UnknownGlob)
        | (
            Operator::Default
            | Operator::Assign
            | Operator::Edit
            | Operator::Slice
            | Operator::Indirect,
            _,
        ) => hole,
    }
}
