//! Paths in the arguments of programs that are not in the table.

use super::state::ShellState;
use super::walk::{Walker, unknown};
use super::{AccessKind, DynamicKind, Word};

/// Records every path that a word may contain.
pub(super) fn record_paths(walker: &mut Walker<'_>, word: &Word, state: &ShellState, run: usize) {
    match word {
        Word::Literal(text) => {
            for path in paths_in(text) {
                // The shell did not expand the tilde here, but the program may.
                let has_tilde = path.starts_with('~');
                let word = if has_tilde { unknown(path) } else { Word::Literal(path.to_string()) };
                walker.record_access(&word, AccessKind::PassedToUnknown, state, Some(run));
            }
        }
        Word::Glob(_) => {
            walker.record_access(word, AccessKind::Expand, state, Some(run));
            walker.record_access(word, AccessKind::PassedToUnknown, state, Some(run));
        }
        Word::Dynamic(dynamic)
            if matches!(dynamic.kind, DynamicKind::Number | DynamicKind::Commit) => {}
        Word::Dynamic(_) => {
            walker.record_access(word, AccessKind::PassedToUnknown, state, Some(run))
        }
    }
}

/// Returns the parts of a word that may be paths: `src`, `--out=/x`, `-I/x`, `/a:/b`.
pub(super) fn paths_in(text: &str) -> Vec<&str> {
    let is_flag = text.starts_with('-') && text != "-";
    // Where a path may begin: `--file=x`, `a@x`, `-fx`, `--out/x`. From there the rest of the word is taken as one
    // path, because a path may contain separators; below, it is also split at them.
    let mut starts: Vec<usize> = match is_flag {
        true => text.find('/').filter(|_| !text.contains('=')).into_iter().collect(),
        false => vec![0],
    };
    if is_flag && text[1..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
        starts.push(2);
    }
    starts.extend([text.find('='), text.rfind('@')].into_iter().flatten().map(|at| at + 1));
    let whole_paths = starts.iter().filter(|at| !is_host(text, **at)).map(|at| &text[*at..]);
    let mut paths: Vec<&str> = path_in_address(text).into_iter().chain(whole_paths).collect();
    starts.extend(text.match_indices(SEPARATORS).map(|(at, _)| at + 1));
    for rest in starts.into_iter().filter(|at| !is_host(text, *at)).map(|at| &text[at..]) {
        paths.push(rest.split(SEPARATORS).next().unwrap_or(rest));
    }
    paths.retain(|path| !path.is_empty() && !is_web_address(path));
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Characters that separate or precede paths.
const SEPARATORS: [char; 4] = ['=', ':', ',', '@'];

/// Whether `//` and a host follow here, after a scheme like `https:`.
fn is_host(text: &str, at: usize) -> bool {
    let scheme = text[..at].strip_suffix(':');
    text[at..].starts_with("//")
        && !text[at..].starts_with("///")
        && scheme.is_some_and(|it| it.ends_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Returns the path in an address like `file:///x`. It is absolute even if a host precedes it.
fn path_in_address(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let schemes = ["file:", "unix:", "sqlite:"].into_iter();
    let rest =
        schemes.filter_map(|scheme| Some(&text[lower.find(scheme)? + scheme.len()..])).next()?;
    let path = rest.trim_start_matches('/');
    (path.len() < rest.len()).then(|| &rest[rest.len() - path.len() - 1..])
}

fn is_web_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::paths_in;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(paths_in(text), expected, "{text:?}");
    }

    #[test]
    fn possible_paths_are_found() {
        check("src", &["src"]);
        check("//etc/x", &["//etc/x"]);
        check("--in=//etc/x", &["//etc/x"]);
        check("-f//etc/x", &["//etc/x"]);
        check(".env:/x", &[".env", ".env:/x", "/x"]);
        check("--files=a,.env", &[".env", "a", "a,.env"]);
        check("-Isrc", &["src"]);
        check("file:///x", &["///x", "/x", "file", "file:///x"]);
        check("dir:///x", &["///x", "dir", "dir:///x"]);
        check("me@.env", &[".env", "me", "me@.env"]);
        check("-é", &[]);
        check("-//x/y", &["//x/y"]);
        check("-cover=./...", &["./...", "over", "over=./..."]);
    }

    #[test]
    fn web_addresses_are_not_paths() {
        check("https://h/x", &["https"]);
        check("-Lhttps://h/x", &["https"]);
        check("--url=https://h/x", &["https"]);
        check("git+ssh://h/x", &["git+ssh", "git+ssh://h/x"]);
    }
}
