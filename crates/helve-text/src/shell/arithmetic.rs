//! Recognizes arithmetic that has no side effects beyond assigning numbers.

use super::ast::{Operator, Piece};
use super::grammar::is_name;
use super::state::ShellState;

/// Returns the variables that an expression may assign, or `None` if it may do more than calculate.
///
/// The shell evaluates the text of a variable recursively, including array indices and the commands in them. So every
/// variable must hold a number, or the script must never have set it.
pub(super) fn assigned_names(pieces: &[Piece], state: &ShellState) -> Option<Vec<String>> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text { text: more, .. } => text.push_str(more),
            Piece::Arithmetic { inside, .. } => {
                assigned_names(inside, state)?;
                text.push('0');
            }
            Piece::Parameter { parameter, .. } => {
                let is_number = match parameter.operator {
                    Operator::Length => true,
                    Operator::None => {
                        parameter.index.is_none() && state.value(&parameter.name).is_number()
                    }
                    Operator::Default
                    | Operator::Assign
                    | Operator::Edit
                    | Operator::Slice
                    | Operator::Indirect => false,
                };
                if !is_number {
                    return None;
                }
                text.push('0');
            }
            Piece::Command { .. } | Piece::Process { .. } => return None,
        }
    }
    if !has_operators_between(&text) {
        return None;
    }
    let is_supported =
        |c: char| c.is_ascii_alphanumeric() || "_ \t\n+-*/%<>=!&|^~?:,();".contains(c);
    if !text.chars().all(is_supported) {
        return None;
    }
    let may_assign = text.contains('=') || text.contains("++") || text.contains("--");
    let mut names = Vec::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        if !state.is_number_or_inherited(word) {
            return None;
        }
        if may_assign {
            names.push(word.to_string());
        }
    }
    Some(names)
}

/// Whether an arithmetic command would only assign a variable if a shell took it for two nested subshells: `((x=1+1))`.
pub(super) fn is_plain_assignment(pieces: &[Piece]) -> bool {
    let [Piece::Text { text, .. }] = pieces else { return false };
    let Some((name, value)) = text.trim().split_once('=') else { return false };
    let is_value = |c: char| c.is_ascii_digit() || "+-*".contains(c);
    is_name(name) && !value.is_empty() && value.chars().all(is_value)
}

/// Whether evaluating an expression may fail, so that the shell skips the rest of the line.
pub(super) fn may_fail(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Text { text, .. } => {
            let may_be_invalid =
                text.contains(['/', '%', '[', '#', '"', '\'']) || text.contains("**");
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            // A word with a leading zero may be an invalid octal number.
            may_be_invalid || words.into_iter().any(|word| word.len() > 1 && word.starts_with('0'))
        }
        Piece::Arithmetic { inside, .. } => may_fail(inside),
        Piece::Parameter { parameter, .. } => {
            !matches!(parameter.operator, Operator::None | Operator::Length)
        }
        Piece::Command { .. } | Piece::Process { .. } => true,
    })
}

/// Whether an operator stands between every two operands. Otherwise the text may be a command with arguments.
fn has_operators_between(text: &str) -> bool {
    let is_operand = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut previous = None;
    let mut after_blank = false;
    for c in text.chars() {
        if c.is_whitespace() {
            after_blank = true;
            continue;
        }
        if after_blank && is_operand(c) && previous.is_some_and(is_operand) {
            return false;
        }
        (previous, after_blank) = (Some(c), false);
    }
    true
}

/// Returns the variable names in an expression.
pub(super) fn variable_names(pieces: &[Piece]) -> impl Iterator<Item = &str> {
    let is_separator = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Text { text, .. } => Some(text.as_str()),
        Piece::Parameter { .. }
        | Piece::Command { .. }
        | Piece::Arithmetic { .. }
        | Piece::Process { .. } => None,
    });
    let words = texts.flat_map(move |text| text.split(is_separator));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}
