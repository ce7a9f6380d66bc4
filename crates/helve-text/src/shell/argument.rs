//! Words for programs that nobody knows: whatever in them may be a path.

use super::state::State;
use super::walk::{Walker, unknown};
use super::{Access, Unknown, Word};

/// Notes every path that a word may hold.
pub(super) fn note(walker: &mut Walker<'_>, word: &Word, state: &State, run: usize) {
    match word {
        Word::Literal(text) => {
            for path in paths_in(text) {
                // The shell did not fill in the home folder here, but the program may.
                let home = path.starts_with('~');
                let word = if home { unknown(path) } else { Word::Literal(path.to_string()) };
                walker.touch(&word, Access::Handed, state, Some(run));
            }
        }
        Word::Glob(_) => {
            walker.touch(word, Access::Fill, state, Some(run));
            walker.touch(word, Access::Handed, state, Some(run));
        }
        Word::Dynamic(dynamic) if matches!(dynamic.kind, Unknown::Number | Unknown::Commit) => {}
        Word::Dynamic(_) => walker.touch(word, Access::Handed, state, Some(run)),
    }
}

/// `src`, `--out=/x`, `-I/x`, `/a:/b`: the parts of a word that may be paths.
fn paths_in(text: &str) -> Vec<&str> {
    let flag = text.starts_with('-');
    let mut paths: Vec<&str> = local_address(text).into_iter().collect();
    if !flag {
        paths.push(text);
    }
    let pieces = text.split(['=', ':', ',', '@']);
    paths.extend(pieces.filter(|it| it.starts_with(['/', '~']) || it.starts_with("..")));
    if let Some(at) = text.find('/').filter(|_| flag && !text.contains('=')) {
        paths.push(&text[at..]);
    }
    // `--file=x`, `-fx`, `name=x`, `a@x`.
    paths.extend(text.split_once('=').map(|(_, value)| value));
    paths.extend(text.rsplit_once('@').map(|(_, value)| value));
    if flag && !text.starts_with("--") {
        paths.extend(text.get(2..));
    }
    paths.retain(|path| !path.is_empty() && !is_web(path));
    paths.dedup();
    paths
}

/// The path in `file:///x` and its like, which is absolute whatever host stands before it.
fn local_address(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let schemes = ["file:", "unix:", "sqlite:"].into_iter();
    let rest =
        schemes.filter_map(|scheme| Some(&text[lower.find(scheme)? + scheme.len()..])).next()?;
    let path = rest.trim_start_matches('/');
    (path.len() < rest.len()).then(|| &rest[rest.len() - path.len() - 1..])
}

fn is_web(text: &str) -> bool {
    text.starts_with("//") || text.starts_with("http://") || text.starts_with("https://")
}
