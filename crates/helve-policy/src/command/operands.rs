//! Stricter matching of paths and URLs in allow rules: a wildcard in them does not match across words.
//!
//! The rule `rm -rf dist/*` allows `rm -rf dist/a dist/b`, but not `rm -rf dist/a src`. Plain wildcard matching would
//! allow both.

use std::borrow::Cow;

use helve_text::shell::WordRole;
use helve_text::wildcard;

/// Maximum number of words that a token other than a path, such as `diff*`, can match.
const MAX_SPAN: usize = 64;

/// Returns the first word of a command that the pattern does not match: `src` in the example above. Returns `None` if
/// the pattern matches all words, or has no path or URL with a wildcard.
pub(super) fn first_unmatched(pattern: &str, words: &[(String, WordRole)]) -> Option<String> {
    let tokens = split_words(pattern);
    if !tokens.iter().any(|token| is_wild_path(token)) {
        return None;
    }
    // `reached[n]`: the tokens so far can match the first n words.
    let mut reached = vec![false; words.len() + 1];
    reached[0] = true;
    let mut farthest = 0;
    for (index, token) in tokens.iter().enumerate() {
        if index + 1 == tokens.len() && is_wild_path(token) {
            return first_unmatched_by_last_path(token, &reached, words);
        }
        reached = advance(token, &reached, words);
        farthest = reached.iter().rposition(|yes| *yes).unwrap_or(farthest);
    }
    if reached[words.len()] {
        return None;
    }
    let unmatched = words.get(farthest).or(words.last());
    Some(unmatched.map_or_else(String::new, |(word, _)| word.clone()))
}

/// Whether a pattern has a path or a URL with a wildcard.
pub(super) fn has_wild_path(pattern: &str) -> bool {
    split_words(pattern).into_iter().any(is_wild_path)
}

/// Like [`first_unmatched`], for a path at the end of the pattern. All remaining operands must match it: `dist/*`
/// matches `dist/a dist/b`. If the path names a program or script, any arguments may follow.
fn first_unmatched_by_last_path(
    token: &str,
    reached: &[bool],
    words: &[(String, WordRole)],
) -> Option<String> {
    let mut unmatched = None;
    for (at, (word, role)) in words.iter().enumerate().filter(|(at, _)| reached[*at]) {
        if !matches_path(token, word) {
            unmatched.get_or_insert(word);
            continue;
        }
        let has_own_arguments = matches!(role, WordRole::Program | WordRole::Script);
        let is_covered = |(word, role): &&(String, WordRole)| match role {
            WordRole::Flag | WordRole::Value => true,
            WordRole::Program | WordRole::Subcommand | WordRole::Operand | WordRole::Script => {
                matches_path(token, word)
            }
        };
        let rest = &words[at + 1..];
        let uncovered = rest.iter().find(|word| !is_covered(word)).filter(|_| !has_own_arguments);
        match uncovered.filter(|_| token.ends_with('*')) {
            // `src/*` also covers further operands, but not this one.
            Some((word, _)) => unmatched = Some(word),
            // Every further word is covered, or there is none.
            None if token.ends_with('*') || rest.is_empty() => return None,
            // A token without `*` at its end covers one word only.
            None => unmatched = rest.first().map(|(word, _)| word),
        }
    }
    Some(unmatched.cloned().unwrap_or_default())
}

/// Returns the new value of `reached` after matching one more token.
fn advance(token: &str, reached: &[bool], words: &[(String, WordRole)]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    if token.bytes().all(|byte| byte == b'*') {
        let first = reached.iter().position(|yes| *yes).unwrap_or(reached.len());
        next.iter_mut().skip(first).for_each(|it| *it = true);
        return next;
    }
    for at in (0..words.len()).filter(|at| reached[*at]) {
        let word = &words[at].0;
        if is_wild_path(token) {
            next[at + 1] |= matches_path(token, word);
            continue;
        }
        next[at + 1] |= wildcard::matches(token, word);
        let mut joined = Cow::Borrowed(word.as_str());
        let may_span_words = token.contains('*');
        for to in (at + 1..words.len()).take(if may_span_words { MAX_SPAN } else { 0 }) {
            joined = Cow::Owned(format!("{joined} {}", words[to].0));
            next[to + 1] |= wildcard::matches(token, &joined);
        }
    }
    next
}

/// Splits a pattern at spaces outside of quotes.
fn split_words(pattern: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut quote = None;
    let mut start = 0;
    for (at, c) in pattern.char_indices() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            (' ', None) => {
                words.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&pattern[start..]);
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a word of a pattern is a path or a URL with a wildcard.
fn is_wild_path(token: &str) -> bool {
    token.contains('/') && token.contains(['*', '?'])
}

/// Whether a word matches a path or a URL. A path must match as written and with `..` resolved.
fn matches_path(token: &str, word: &str) -> bool {
    match (token.split_once("://"), word.split_once("://")) {
        (Some((scheme, rest)), Some((word_scheme, word_rest))) if !scheme.contains('*') => {
            scheme.eq_ignore_ascii_case(word_scheme) && matches_url(rest, word_rest)
        }
        _ => wildcard::matches(token, word) && wildcard::matches(token, &resolve_dot_dot(word)),
    }
}

/// Compares the host and the path of a URL separately, so that a wildcard in the host cannot match a different host:
/// `http://localhost*` does not match `http://localhost.evil/`.
fn matches_url(pattern: &str, url: &str) -> bool {
    let end_of_host = |text: &'_ str, ends: &[char]| text.find(ends).unwrap_or(text.len());
    let (host_pattern, path_pattern) = pattern.split_at(end_of_host(pattern, &['/']));
    let (host, path) = url.split_at(end_of_host(url, &['/', '?', '#']));
    // The host of `http://localhost@evil/` is `evil`. Programs disagree on what a backslash in a URL means.
    if host.contains('@') && !host_pattern.contains('@') || url.contains('\\') {
        return false;
    }
    if !path_pattern.is_empty() {
        return wildcard::matches(host_pattern, host)
            && wildcard::matches(path_pattern, path)
            && wildcard::matches(path_pattern, &resolve_dot_dot(path));
    }
    // The final wildcard stands for the port and the path: `http://localhost*`.
    match host_pattern.strip_suffix('*') {
        Some(name)
            if !name.is_empty() && !name.contains(['*', '?']) && !name.ends_with(['.', '-']) =>
        {
            let port = host.strip_prefix(name).map(|it| it.strip_prefix(':').unwrap_or(it));
            port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
                && (host.len() == name.len()
                    || name.ends_with(':')
                    || host[name.len()..].starts_with(':'))
        }
        Some(_) => wildcard::matches(host_pattern, host),
        None => wildcard::matches(host_pattern, host) && path.is_empty(),
    }
}

/// Resolves `..` in a path without looking at the file system.
fn resolve_dot_dot(path: &str) -> Cow<'_, str> {
    if !path.split('/').any(|name| name == "..") {
        return Cow::Borrowed(path);
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match (name, names.last()) {
            ("..", Some(&last)) if !matches!(last, "" | "." | "..") => {
                names.pop();
            }
            (other, _) => names.push(other),
        }
    }
    Cow::Owned(names.join("/"))
}

#[cfg(test)]
mod tests {
    use helve_text::shell::WordRole;

    use super::first_unmatched;

    #[track_caller]
    fn check(pattern: &str, covered: &[&str], other: &[&str]) {
        let is_covered = |command: &str| {
            let role = |(at, word): (usize, &str)| match (at, word) {
                (0, _) => (word.to_string(), WordRole::Program),
                (_, word) if word.starts_with('-') => (word.to_string(), WordRole::Flag),
                (_, word) if word.ends_with(".py") => (word.to_string(), WordRole::Script),
                _ => (word.to_string(), WordRole::Operand),
            };
            let words: Vec<_> = command.split(' ').enumerate().map(role).collect();
            first_unmatched(pattern, &words).is_none()
        };
        for command in covered {
            assert!(is_covered(command), "{pattern} should cover {command}");
        }
        for command in other {
            assert!(!is_covered(command), "{pattern} should not cover {command}");
        }
    }

    #[test]
    fn a_path_at_the_end_matches_one_or_more_operands() {
        check(
            "rm -rf dist/*",
            &["rm -rf dist/x", "rm -rf dist/x dist/y", "rm -rf dist/x -v", "rm -rf dist/"],
            &[
                "rm -rf dist/x src",
                "rm -rf dist/x / dist/y",
                "rm -rf dist/../src",
                "rm -rf dist/x dist/../../y",
            ],
        );
        check(
            "git push origin feature/*",
            &["git push origin feature/x", "git push origin feature/x feature/y"],
            &["git push origin feature/x main", "git push origin feature/x :main"],
        );
        check(
            "cp src/* dist/",
            &["cp src/a dist/"],
            &["cp src/a /etc/passwd dist/", "cp src/a dist/ x"],
        );
        check("mv a/?.txt b/*", &["mv a/x.txt b/x"], &["mv a/x.txt b/x c", "mv a/x.txt y b/x"]);
        check("chmod +x bin/*", &["chmod +x bin/a bin/b"], &["chmod +x bin/a /etc/b"]);
        check("deploy */prod", &["deploy a/prod"], &["deploy x a/prod", "deploy a/prod y"]);
    }

    #[test]
    fn programs_and_scripts_take_arguments() {
        check("./scripts/*", &["./scripts/x", "./scripts/x a b"], &["./scripts/../x a"]);
        check("python3 tools/*", &["python3 tools/x.py a b"], &["python3 tools/../x.py"]);
        check("*/bin/tool *", &["/usr/bin/tool a b"], &["x /usr/bin/tool a"]);
    }

    #[test]
    fn other_wildcards_may_span_words() {
        check(
            "git diff* src/*",
            &["git diff src/a", "git diff --stat src/a"],
            &["git diff a src/../b"],
        );
        check("git diff*", &["git diff a b", "git difftool x"], &[]);
        check("* dist/* *", &["rm -rf dist/a b c"], &["rm -rf a"]);
    }

    #[test]
    fn wildcards_in_a_host_do_not_lead_to_another_host() {
        check(
            "curl http://localhost*",
            &[
                "curl http://localhost",
                "curl http://localhost:80/x",
                "curl http://localhost/a?b",
                "curl http://localhost?x",
            ],
            &[
                "curl http://localhost@evil/",
                "curl http://localhost:80@evil/",
                "curl http://localhost.evil/",
                "curl http://localhostevil/",
                "curl http://localhost http://evil/",
                "curl https://localhost/",
                "curl http://localhost\\@evil/",
            ],
        );
        check(
            "curl http://localhost:*",
            &["curl http://localhost:3000/x"],
            &["curl http://localhost:a@evil/"],
        );
        check(
            "curl https://*.example.com/*",
            &["curl https://api.example.com/x"],
            &[
                "curl https://evil/.example.com/x",
                "curl https://evil#.example.com/x",
                "curl https://a@b.example.com/",
            ],
        );
        check(
            "curl https://api.*",
            &["curl https://api.example.com/x"],
            &["curl https://api.a@evil/"],
        );
        check(
            "curl https://h/a/*",
            &["curl https://h/a/b"],
            &["curl https://h/a/../b", "curl https://h.evil/a/b"],
        );
        check(
            "curl https://*",
            &["curl https://h/x", "curl https://h"],
            &["curl https://a@h/x", "curl http://h"],
        );
    }
}
