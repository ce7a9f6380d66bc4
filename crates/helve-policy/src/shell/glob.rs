//! Expands globs. Shells differ, so the result contains every name that any shell might expand a glob to.

use std::collections::BTreeSet;

use super::facts::{DirEntry, FileFacts, PathFacts};
use crate::ask::Part;

/// Maximum number of directory entries that are compared with one glob.
const MAX_ENTRIES: usize = 4_000;
/// Maximum number of folder levels that a glob descends.
const MAX_DEPTH: usize = 24;

/// The paths that the target of a file access can refer to.
pub(super) struct ExpandedTarget {
    /// The paths as given. Links are not resolved.
    pub(super) paths: Vec<String>,
    /// Facts about the paths.
    pub(super) resolved: Vec<PathFacts>,
    /// False if a limit was exceeded or something could not be looked up. Then paths may be missing.
    pub(super) is_complete: bool,
    /// Whether a name starts with a dash.
    pub(super) has_flag_like_names: bool,
    /// Whether a name contains blanks or wildcards, so that the shell would split or expand it again.
    pub(super) has_splittable_names: bool,
    /// `external_directory` parts for the folders outside the root that the glob lists.
    pub(super) outside_folder_parts: Vec<Part>,
}

impl ExpandedTarget {
    /// The result for a target that is one path.
    pub(super) fn single(path: &str, facts: PathFacts) -> Self {
        Self {
            paths: vec![path.to_string()],
            resolved: vec![facts],
            is_complete: true,
            has_flag_like_names: false,
            has_splittable_names: false,
            outside_folder_parts: Vec::new(),
        }
    }
}

/// Expands an absolute glob. Returns `None` if nothing is known about the result.
pub(super) fn expand(pattern: &str, facts: &impl FileFacts) -> Option<ExpandedTarget> {
    // In zsh, `***` descends into links.
    if pattern.contains("***") {
        return None;
    }
    let names: Vec<&str> = pattern.split('/').collect();
    let first_wildcard = names.iter().position(|name| has_wildcard(name))?;
    let mut search = GlobSearch {
        facts,
        entries_left: MAX_ENTRIES,
        matches: Vec::new(),
        has_flag_like_names: false,
        folders: BTreeSet::new(),
    };
    let folder: Vec<String> = names[..first_wildcard].iter().map(|name| unescape(name)).collect();
    let folder = folder.join("/");
    let is_searched = search.descend(&folder, &names[first_wildcard..], 0).is_some();
    let parent = |path: &String| {
        path.trim_end_matches('/').rsplit_once('/').map(|(folder, _)| or_slash(folder))
    };
    search.folders.extend(search.matches.iter().filter_map(parent));
    // All folders are queried, even after one fact was missing: missing facts are gathered together, which saves
    // rounds. See `GatheredFacts`.
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
    let mut facts_of_paths: Vec<Option<PathFacts>> =
        paths.iter().map(|path| facts.resolve(path)).collect();
    // Names after the last wildcard were not looked up: `*/x` gives `a/x` and `b/x`. If at least one of them may exist,
    // only those that may are kept.
    let may_exist = |facts: &Option<PathFacts>| facts.as_ref().is_none_or(|facts| facts.exists);
    if facts_of_paths.iter().any(may_exist) {
        (paths, facts_of_paths) =
            paths.into_iter().zip(facts_of_paths).filter(|(_, facts)| may_exist(facts)).unzip();
    }
    // The folder before the first wildcard is always accessed.
    let start = facts.resolve(&or_slash(&folder))?;
    let is_known = |facts: &Option<PathFacts>| facts.is_some();
    let is_complete =
        is_searched && listed.iter().all(is_known) && facts_of_paths.iter().all(is_known);
    let outside = listed.into_iter().flatten().filter_map(|it| it.outside);
    let mut resolved: Vec<PathFacts> = facts_of_paths.into_iter().flatten().collect();
    if start.outside.is_some() {
        // Marked as not existing, so that it does not count as a file that the command may overwrite or delete.
        resolved.push(PathFacts { exists: false, ..start });
    }
    Some(ExpandedTarget {
        paths,
        resolved,
        is_complete,
        has_flag_like_names: search.has_flag_like_names,
        has_splittable_names,
        outside_folder_parts: outside.collect(),
    })
}

struct GlobSearch<'f, F> {
    facts: &'f F,
    entries_left: usize,
    matches: Vec<String>,
    has_flag_like_names: bool,
    /// The folders that were listed.
    folders: BTreeSet<String>,
}

impl<F: FileFacts> GlobSearch<'_, F> {
    /// Adds the matches of `names`, the rest of the pattern, below a folder; `None` if a limit is exceeded or a fact is
    /// missing.
    fn descend(&mut self, folder: &str, names: &[&str], depth: usize) -> Option<()> {
        let Some((name, rest)) = names.split_first() else {
            self.matches.push(or_slash(folder));
            return Some(());
        };
        if depth > MAX_DEPTH {
            return None;
        }
        if !has_wildcard(name) {
            let next = format!("{folder}/{}", unescape(name));
            return self.descend(&next, rest, depth + 1);
        }
        if is_recursive(name) && !rest.is_empty() {
            self.descend(folder, rest, depth + 1)?;
        }
        self.folders.insert(or_slash(folder));
        // Older shells also expand to `..`.
        if matches(name, "..") && matches_hidden(name) {
            self.descend(&format!("{folder}/.."), rest, depth + 1)?;
        }
        for entry in self.facts.list(&or_slash(folder))? {
            self.entries_left = self.entries_left.checked_sub(1)?;
            self.match_entry(folder, &entry, names, depth)?;
        }
        Some(())
    }

    /// Adds the matches of one directory entry, if it matches the first of `names`.
    fn match_entry(
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
        // Nothing is below a plain file.
        let is_folder = || match entry.is_link {
            true => self.facts.resolve(&next).is_none_or(|facts| facts.is_folder),
            false => entry.is_folder,
        };
        if names.len() > 1 && !is_folder() {
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

/// Returns `/` for an empty path, which stands for the root.
fn or_slash(folder: &str) -> String {
    if folder.is_empty() { "/".to_string() } else { folder.to_string() }
}

fn has_wildcard(name: &str) -> bool {
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
    AnyText,
    OneChar,
    Literal(char),
}

/// Whether a name may match a pattern. A bracket expression matches any one character.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => Token::AnyText,
            '?' => Token::OneChar,
            '[' => {
                let rest: Vec<char> = chars.clone().collect();
                match bracket_end(&rest) {
                    Some(end) => {
                        chars.by_ref().take(end + 1).for_each(drop);
                        Token::OneChar
                    }
                    None => Token::Literal('['),
                }
            }
            '\\' => Token::Literal(chars.next().unwrap_or('\\')),
            c => Token::Literal(c),
        });
    }
    let name: Vec<char> = name.chars().collect();
    // `reached[n]`: the tokens so far match the first n characters.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for token in tokens {
        let mut next = vec![false; name.len() + 1];
        match token {
            Token::AnyText => {
                let first = reached.iter().position(|yes| *yes).unwrap_or(reached.len());
                next[first..].fill(true);
            }
            Token::OneChar => next[1..].copy_from_slice(&reached[..name.len()]),
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

/// Returns the index of the `]` that ends a bracket expression. `rest` starts after its `[`. The brackets in `!]` and
/// `[:lower:]` do not end it.
fn bracket_end(rest: &[char]) -> Option<usize> {
    let mut at = usize::from(matches!(rest.first(), Some('!' | '^')));
    at += usize::from(rest.get(at) == Some(&']'));
    while let Some(c) = rest.get(at) {
        match (c, rest.get(at + 1)) {
            (']', _) => return Some(at),
            ('[', Some(kind @ (':' | '.' | '='))) => {
                let closes = |pair: &[char]| pair == [*kind, ']'];
                let class = rest.get(at + 2..)?.windows(2).position(closes);
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
    fn matches_everything_that_a_shell_would_match() {
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
