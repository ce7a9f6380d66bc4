//! Expanding globs to every name that some shell might expand them to, erring on the side of too many.

use std::collections::BTreeSet;

use super::facts::{DirEntry, FileFacts, PathFacts};
use crate::ask::Part;

/// The most directory entries that are matched for one glob.
const MAX_ENTRIES: usize = 4_000;
/// The deepest level of folders that a glob descends to.
const MAX_DEPTH: usize = 24;

/// The paths that a target stands for.
pub(super) struct ExpandedTarget {
    /// Before links are followed.
    pub(super) paths: Vec<String>,
    /// `None` if one of the paths cannot be looked up.
    pub(super) resolved: Option<Vec<PathFacts>>,
    /// Whether a name starts with a dash.
    pub(super) has_flag_like_names: bool,
    /// Whether an expanded name contains spaces or wildcards.
    pub(super) has_splittable_names: bool,
    /// Parts for the folders outside the root that the glob lists.
    pub(super) listed: Vec<Part>,
}

impl ExpandedTarget {
    pub(super) fn single(path: &str, facts: PathFacts) -> Self {
        Self {
            paths: vec![path.to_string()],
            resolved: Some(vec![facts]),
            has_flag_like_names: false,
            has_splittable_names: false,
            listed: Vec::new(),
        }
    }
}

/// Expands an absolute glob. `None` if the result is unknown.
pub(super) fn expand(pattern: &str, facts: &impl FileFacts) -> Option<ExpandedTarget> {
    // zsh follows links with `***`.
    if pattern.contains("***") {
        return None;
    }
    let names: Vec<&str> = pattern.split('/').collect();
    let first_wild = names.iter().position(|name| is_wild(name))?;
    let mut search = GlobSearch {
        facts,
        entries_left: MAX_ENTRIES,
        matches: Vec::new(),
        has_flag_like_names: false,
        folders: BTreeSet::new(),
    };
    let folder: Vec<String> = names[..first_wild].iter().map(|name| unescape(name)).collect();
    let folder = folder.join("/");
    search.descend(&folder, &names[first_wild..], 0)?;
    let parent = |path: &String| {
        path.trim_end_matches('/').rsplit_once('/').map(|(folder, _)| or_root(folder))
    };
    search.folders.extend(search.matches.iter().filter_map(parent));
    // All folders are queried before an unknown fact ends the expansion, so that facts are gathered in few rounds.
    let listed: Vec<Option<PathFacts>> =
        search.folders.iter().map(|folder| facts.resolve(folder)).collect();
    let mut paths = search.matches;
    let has_splittable_names = paths
        .iter()
        .any(|path| path[folder.len()..].contains([' ', '\t', '\n', '*', '?', '[', '\\']));
    if paths.is_empty() {
        // Without a match the program receives the pattern itself.
        paths.push(unescape(pattern));
    }
    let mut resolved: Option<Vec<PathFacts>> =
        paths.iter().map(|path| facts.resolve(path)).collect();
    // The folder before the first wildcard is always accessed.
    let start = facts.resolve(&or_root(&folder));
    let listed: Option<Vec<PathFacts>> = listed.into_iter().collect();
    let (start, listed) = (start?, listed?.into_iter().filter_map(|it| it.outside));
    if let (Some(resolved), true) = (&mut resolved, start.outside.is_some()) {
        resolved.push(PathFacts { exists: false, ..start });
    }
    Some(ExpandedTarget {
        paths,
        resolved,
        has_flag_like_names: search.has_flag_like_names,
        has_splittable_names,
        listed: listed.collect(),
    })
}

struct GlobSearch<'f, F> {
    facts: &'f F,
    entries_left: usize,
    matches: Vec<String>,
    has_flag_like_names: bool,
    /// The folders whose entries were matched.
    folders: BTreeSet<String>,
}

impl<F: FileFacts> GlobSearch<'_, F> {
    fn descend(&mut self, folder: &str, names: &[&str], depth: usize) -> Option<()> {
        let Some((name, rest)) = names.split_first() else {
            self.matches.push(or_root(folder));
            return Some(());
        };
        if depth > MAX_DEPTH {
            return None;
        }
        if !is_wild(name) {
            let next = format!("{folder}/{}", unescape(name));
            return self.descend(&next, rest, depth + 1);
        }
        if is_recursive(name) && !rest.is_empty() {
            self.descend(folder, rest, depth + 1)?;
        }
        self.folders.insert(or_root(folder));
        // Older shells also expand to `..`.
        if matches(name, "..") && matches_hidden(name) {
            self.descend(&format!("{folder}/.."), rest, depth + 1)?;
        }
        for entry in self.facts.list(&or_root(folder))? {
            self.entries_left = self.entries_left.checked_sub(1)?;
            self.entry(folder, &entry, names, depth)?;
        }
        Some(())
    }

    /// Matches one entry against the first of `names`, and goes on below it.
    fn entry(
        &mut self,
        folder: &str,
        entry: &DirEntry,
        names: &[&str],
        depth: usize,
    ) -> Option<()> {
        let name = names[0];
        if entry.name.starts_with('.') && !matches_hidden(name) {
            return Some(());
        }
        let next = format!("{folder}/{}", entry.name);
        if is_recursive(name) && entry.is_folder && !entry.is_link {
            self.descend(&next, names, depth + 1)?;
        }
        if !matches(name, &entry.name) {
            return Some(());
        }
        self.has_flag_like_names |= entry.name.starts_with('-');
        self.descend(&next, &names[1..], depth + 1)
    }
}

fn is_recursive(name: &str) -> bool {
    name.contains("**")
}

/// Whether a pattern matches names that start with a dot.
fn matches_hidden(pattern: &str) -> bool {
    pattern.starts_with('.') || pattern.starts_with("\\.")
}

/// An empty folder name stands for the root.
fn or_root(folder: &str) -> String {
    if folder.is_empty() { "/".to_string() } else { folder.to_string() }
}

fn is_wild(name: &str) -> bool {
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

fn unescape(name: &str) -> String {
    let mut text = String::new();
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

enum Token {
    Any,
    One,
    Literal(char),
}

/// Whether a name may match. A bracket expression counts as any one character.
fn matches(pattern: &str, name: &str) -> bool {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => Token::Any,
            '?' => Token::One,
            '[' => {
                let rest: Vec<char> = chars.clone().collect();
                match bracket_end(&rest) {
                    Some(end) => {
                        chars.by_ref().take(end + 1).for_each(drop);
                        Token::One
                    }
                    None => Token::Literal('['),
                }
            }
            '\\' => Token::Literal(chars.next().unwrap_or('\\')),
            c => Token::Literal(c),
        });
    }
    let name: Vec<char> = name.chars().collect();
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for token in tokens {
        let mut next = vec![false; name.len() + 1];
        match token {
            Token::Any => {
                let first = reached.iter().position(|yes| *yes).unwrap_or(reached.len());
                next[first..].fill(true);
            }
            Token::One => next[1..].copy_from_slice(&reached[..name.len()]),
            Token::Literal(c) => {
                for at in 0..name.len() {
                    next[at + 1] = reached[at] && name[at] == c;
                }
            }
        }
        reached = next;
    }
    reached[name.len()]
}

/// Finds the end of a bracket expression after its `[`. `!]` and `[:lower:]` do not end it.
fn bracket_end(rest: &[char]) -> Option<usize> {
    let mut at = usize::from(matches!(rest.first(), Some('!' | '^')));
    at += usize::from(rest.get(at) == Some(&']'));
    while let Some(c) = rest.get(at) {
        match (c, rest.get(at + 1)) {
            (']', _) => return Some(at),
            ('[', Some(sign @ (':' | '.' | '='))) => {
                let close = |pair: &[char]| pair == [*sign, ']'];
                let class = rest.get(at + 2..)?.windows(2).position(close);
                at += class.map_or(1, |length| length + 4);
            }
            ('\\', _) => at += 2,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn matching_is_at_least_as_wide_as_a_shells() {
        for (pattern, name) in [
            ("*", "a"),
            ("*.rs", "a.rs"),
            ("?.rs", "é.rs"),
            ("[ab]*", "ax"),
            ("\\*", "*"),
            ("a[!b]c", "axc"),
            ("[]x]", "x"),
            ("[!]x]y", "ay"),
            ("[[:lower:]]ink", "link"),
            ("[^[:upper:]_]ink", "link"),
            (".?", ".."),
            (".[.]", ".."),
            ("a[", "a["),
            ("**", "abc"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.rs", "a.r"), ("\\*", "a"), ("?", ""), ("a", "b")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
