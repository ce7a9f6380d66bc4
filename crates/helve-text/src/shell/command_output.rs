//! Recognizes commands whose output is predictable, like `nproc` in `$(nproc)`.

use super::ast::{Node, Piece, Redirect, RedirectKind, SimpleCommand};

/// Whether a command prints a number and nothing else.
pub(super) fn prints_number(body: &Node) -> bool {
    let Node::Sequence(nodes) = body else { return false };
    let (last, piped) = match nodes.as_slice() {
        [Node::Pipeline(nodes)] => (nodes.last(), true),
        [node] => (Some(node), false),
        _ => return false,
    };
    let Some(Node::Simple(simple)) = last else { return false };
    let has_input = piped || !simple.redirects.is_empty();
    let is_read = |it: &Redirect| it.kind == RedirectKind::Read;
    match unquoted_words(simple).as_slice() {
        ["wc", "-l" | "-c" | "-w" | "-m"] => has_input && simple.redirects.iter().all(is_read),
        ["nproc"] | ["id", "-u" | "-g"] => !has_input,
        ["date", "+%s" | "+%N" | "+%u" | "+%j" | "+%Y"] => !has_input,
        _ => false,
    }
}

/// Whether a format of `printf` contains `%n`, which stores the number of printed characters in a variable.
pub(super) fn printf_format_sets_variable(format: &str) -> bool {
    let is_modifier = |c: char| c.is_ascii_digit() || " #+-.*'hljztLq".contains(c);
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        rest = rest[at + 1..].trim_start_matches(is_modifier);
        if rest.starts_with('n') {
            return true;
        }
        // `%%` is a literal percent sign.
        rest = rest.strip_prefix('%').unwrap_or(rest);
    }
    false
}

/// Whether a command prints text that contains a wildcard.
pub(super) fn prints_wildcard(body: &Node) -> bool {
    let Node::Sequence(nodes) = body else { return false };
    let [Node::Simple(simple)] = nodes.as_slice() else { return false };
    let prints = matches!(unquoted_words(simple).first(), Some(&("echo" | "printf")));
    let has_wildcard =
        |piece: &Piece| matches!(piece, Piece::Text { text, .. } if text.contains(['*', '?', '[']));
    prints && simple.words.iter().flat_map(|raw| &raw.pieces).any(has_wildcard)
}

/// Whether a command prints a commit hash or nothing.
pub(super) fn prints_commit(body: &Node) -> bool {
    let is_operand = |it: &str| !it.is_empty() && !it.starts_with('-');
    match single_command_words(body).as_slice() {
        ["git", "merge-base", one, other] => is_operand(one) && is_operand(other),
        _ => false,
    }
}

/// Whether a command prints the working directory.
pub(super) fn prints_cwd(body: &Node) -> bool {
    single_command_words(body) == ["pwd"]
}

/// Whether a command prints the top folder of a git repository.
pub(super) fn prints_repository_top(body: &Node) -> bool {
    single_command_words(body) == ["git", "rev-parse", "--show-toplevel"]
}

/// Returns the words of a body that is one command without redirects. Returns no words for any other body.
fn single_command_words(body: &Node) -> Vec<&str> {
    let Node::Sequence(nodes) = body else { return Vec::new() };
    match nodes.as_slice() {
        [Node::Simple(simple)] if simple.redirects.is_empty() => unquoted_words(simple),
        _ => Vec::new(),
    }
}

/// Returns the words of a command, or no words if it has assignments. A word with quotes or expansions becomes empty.
fn unquoted_words(simple: &SimpleCommand) -> Vec<&str> {
    let words = simple.words.iter().map(|raw| raw.unquoted_text().unwrap_or(""));
    if simple.assignments.is_empty() { words.collect() } else { Vec::new() }
}
