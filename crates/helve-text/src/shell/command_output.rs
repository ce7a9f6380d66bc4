//! Commands in words whose output is known for what it is.

use super::ast::{Node, Piece, Redirect, RedirectKind, Simple};

/// Whether a command is one of the few that print a number and nothing else.
pub(super) fn prints_number(body: &Node) -> bool {
    let Node::Sequence(nodes) = body else { return false };
    let (last, piped) = match nodes.as_slice() {
        [Node::Pipeline(nodes)] => (nodes.last(), true),
        [node] => (Some(node), false),
        _ => return false,
    };
    let Some(Node::Simple(simple)) = last else { return false };
    let fed = piped || !simple.redirects.is_empty();
    let reads = |it: &Redirect| it.kind == RedirectKind::Read;
    match plain_words(simple).as_slice() {
        ["wc", "-l" | "-c" | "-w" | "-m"] => fed && simple.redirects.iter().all(reads),
        ["nproc"] | ["id", "-u" | "-g"] => !fed,
        ["date", "+%s" | "+%N" | "+%u" | "+%j" | "+%Y"] => !fed,
        _ => false,
    }
}

/// Whether a format of `printf` puts how much was printed into variables: `%n`, with what may stand between.
pub(super) fn sets_variables(format: &str) -> bool {
    let between = |c: char| c.is_ascii_digit() || " #+-.*'hljztLq".contains(c);
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        rest = rest[at + 1..].trim_start_matches(between);
        if rest.starts_with('n') {
            return true;
        }
        // A percent sign after a percent sign begins nothing.
        rest = rest.strip_prefix('%').unwrap_or(rest);
    }
    false
}

/// Whether a command plainly prints text with a wildcard in it.
pub(super) fn prints_wildcard(body: &Node) -> bool {
    let Node::Sequence(nodes) = body else { return false };
    let [Node::Simple(simple)] = nodes.as_slice() else { return false };
    let echoes = matches!(plain_words(simple).first(), Some(&("echo" | "printf")));
    let is_wild =
        |piece: &Piece| matches!(piece, Piece::Text { text, .. } if text.contains(['*', '?', '[']));
    echoes && simple.words.iter().flat_map(|raw| &raw.pieces).any(is_wild)
}

/// Whether a command prints the name of a commit, or nothing.
pub(super) fn prints_commit(body: &Node) -> bool {
    let plain = |it: &str| !it.is_empty() && !it.starts_with('-');
    match only_words(body).as_slice() {
        ["git", "merge-base", one, other] => plain(one) && plain(other),
        _ => false,
    }
}

/// Whether a command prints the folder it is in.
pub(super) fn prints_folder(body: &Node) -> bool {
    only_words(body) == ["pwd"]
}

/// The words of a single command without redirects.
fn only_words(body: &Node) -> Vec<&str> {
    let Node::Sequence(nodes) = body else { return Vec::new() };
    match nodes.as_slice() {
        [Node::Simple(simple)] if simple.redirects.is_empty() => plain_words(simple),
        _ => Vec::new(),
    }
}

/// The words of a command without assignments, each empty that is not plain.
fn plain_words(simple: &Simple) -> Vec<&str> {
    let words = simple.words.iter().map(|raw| raw.bare().unwrap_or(""));
    if simple.assignments.is_empty() { words.collect() } else { Vec::new() }
}
