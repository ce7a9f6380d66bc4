//! Records the files that `test`, `[` and `[[` access, and values that they may evaluate.

use super::grammar::is_name;
use super::state::ShellState;
use super::walk::Walker;
use super::{AccessKind, DoubtKind, DynamicKind, ShellLanguage, Word};

/// Operators that compare numbers.
const NUMERIC: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Operators that compare files.
const FILE_COMPARISON: &[&str] = &["-nt", "-ot", "-ef"];
/// Letters of the operators that test one file, like `-f`.
const FILE_TESTS: &str = "abcdefghkprstuwxGLNOS";
/// Other operators and delimiters that follow an operand.
const INFIX_OPERATORS: &[&str] =
    &["=", "==", "=~", "!=", "<", ">", "&&", "||", "-a", "-o", "-nt", "-ot", "-ef", "]", ")"];

/// Records the effects of a test. `run` is `None` for `[[`, which is not a command.
pub(super) fn record_test(
    walker: &mut Walker<'_>,
    words: &[Word],
    state: &ShellState,
    run: Option<usize>,
) {
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let previous = at.checked_sub(1).and_then(|at| words.get(at));
        // `[[` only recognizes operators that are written out.
        let is_evaluated = may_be_operator("-v", word, next)
            || walker.has_more_arithmetic() && may_be_operator("-t", word, next);
        if run.is_some() && is_evaluated {
            walker.add_doubt(DoubtKind::Indirect, word.shown());
        }
        let Some(text) = word.literal() else { continue };
        let sides = [previous, next].into_iter().flatten();
        if text == "-v" || text == "-R" {
            if let Some(name) = next.filter(|it| !it.literal().is_some_and(is_name)) {
                walker.add_doubt(DoubtKind::Indirect, name.shown());
            }
        } else if text == "-t" && walker.has_more_arithmetic() {
            let is_last = at + 2 == words.len();
            let is_end = |it: &Word| run.is_some() && is_last && it.literal() == Some("]");
            for operand in next.iter().filter(|it| !is_number(it) && !is_end(it)) {
                walker.add_doubt(DoubtKind::Arithmetic, operand.shown());
            }
        } else if NUMERIC.contains(&text) {
            // In bash, `[` reports an error for a value that is not a number, but `[[` evaluates it.
            let evaluates = run.is_none() || walker.language != ShellLanguage::Bash;
            let is_safe = |it: &Word| is_number(it) || !evaluates && it.literal().is_none();
            for side in sides.filter(|it| !is_safe(it)) {
                walker.add_doubt(DoubtKind::Arithmetic, side.shown());
            }
        } else if FILE_COMPARISON.contains(&text) {
            for side in sides {
                walker.record_access(side, AccessKind::Stat, state, run);
            }
        } else if is_file_test(text, previous)
            && let Some(file) = next
        {
            walker.record_access(file, AccessKind::Stat, state, run);
        }
    }
}

fn is_file_test(text: &str, previous: Option<&Word>) -> bool {
    let is_operator = text.len() == 2 && text.starts_with('-') && FILE_TESTS.contains(&text[1..]);
    // After an operand, `-a` means "and".
    is_operator && (text != "-a" || previous.is_none_or(begins_expression))
}

/// Whether a new expression begins after this word.
fn begins_expression(previous: &Word) -> bool {
    previous.literal().is_none_or(|it| matches!(it, "!" | "(" | "-a" | "-o" | "&&" | "||"))
}

/// Whether a word may turn out to be an operator that evaluates the word after it.
fn may_be_operator(operator: &str, word: &Word, next: Option<&Word>) -> bool {
    let Word::Dynamic(dynamic) = word else { return false };
    let is_operator = |next: &Word| {
        next.literal().is_some_and(|it| INFIX_OPERATORS.contains(&it) || NUMERIC.contains(&it))
    };
    dynamic.kind == DynamicKind::Anything
        && operator.starts_with(&*dynamic.prefix)
        && (dynamic.may_split || next.is_some_and(|next| !is_operator(next)))
}

pub(super) fn is_number(word: &Word) -> bool {
    match word {
        Word::Literal(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        Word::Glob(_) => false,
        Word::Dynamic(dynamic) => dynamic.kind == DynamicKind::Number,
    }
}
