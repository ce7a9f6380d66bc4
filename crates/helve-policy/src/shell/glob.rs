//! Which files a pattern in a script stands for: all that any shell would fill in, rather too many than too few.

use std::collections::BTreeSet;

use super::facts::{Entry, Ground, Resolution};
use crate::ask::Part;

/// More names than this are not looked at.
const MOST: usize = 4_000;

/// What a target stands for.
pub(super) struct Places {
    /// As given, before links are followed.
    pub(super) paths: Vec<String>,
    /// `None` if one of them cannot be looked up.
    pub(super) resolutions: Option<Vec<Resolution>>,
    /// A name starts with a dash.
    pub(super) flags: bool,
    /// A name that was filled in has blanks or wildcards in it.
    pub(super) apart: bool,
    /// What must be asked because names are filled in from outside the root.
    pub(super) listed: Vec<Part>,
}

/// Expands an absolute pattern. `None` if that cannot be told.
pub(super) fn expand(pattern: &str, ground: &impl Ground) -> Option<Places> {
    // Some shell follows links there.
    if pattern.contains("***") {
        return None;
    }
    let names: Vec<&str> = pattern.split('/').collect();
    let wild = names.iter().position(|name| is_wild(name))?;
    let mut search =
        Search { ground, left: MOST, matches: Vec::new(), flags: false, folders: BTreeSet::new() };
    let folder: Vec<String> = names[..wild].iter().map(|name| unescape(name)).collect();
    search.within(&folder.join("/"), &names[wild..], 0)?;
    let parent = |path: &String| {
        path.trim_end_matches('/').rsplit_once('/').map(|(folder, _)| non_empty(folder))
    };
    search.folders.extend(search.matches.iter().filter_map(parent));
    // All are asked for before any is missed, so that answers are gathered in few rounds.
    let listed: Vec<Option<Resolution>> =
        search.folders.iter().map(|folder| ground.resolve(folder)).collect();
    let mut paths = search.matches;
    let fixed = folder.join("/").len();
    let apart =
        paths.iter().any(|path| path[fixed..].contains([' ', '\t', '\n', '*', '?', '[', '\\']));
    if paths.is_empty() {
        // The program gets the pattern as it stands.
        paths.push(unescape(pattern));
    }
    let mut resolutions: Option<Vec<Resolution>> =
        paths.iter().map(|path| ground.resolve(path)).collect();
    // What stands before the wildcards is looked at in any case.
    let looked_at = ground.resolve(&non_empty(&folder.join("/")));
    let listed: Option<Vec<Resolution>> = listed.into_iter().collect();
    let (looked_at, listed) = (looked_at?, listed?.into_iter().filter_map(|it| it.outside));
    if let (Some(resolutions), true) = (&mut resolutions, looked_at.outside.is_some()) {
        resolutions.push(Resolution { exists: false, ..looked_at });
    }
    Some(Places { paths, resolutions, flags: search.flags, apart, listed: listed.collect() })
}

struct Search<'g, G> {
    ground: &'g G,
    left: usize,
    matches: Vec<String>,
    flags: bool,
    /// Those that names are filled in from.
    folders: BTreeSet<String>,
}

impl<G: Ground> Search<'_, G> {
    fn within(&mut self, folder: &str, names: &[&str], depth: usize) -> Option<()> {
        const DEEPEST: usize = 24;
        let Some((name, rest)) = names.split_first() else {
            self.matches.push(non_empty(folder));
            return Some(());
        };
        if depth > DEEPEST {
            return None;
        }
        if !is_wild(name) {
            let next = format!("{folder}/{}", unescape(name));
            return self.within(&next, rest, depth + 1);
        }
        let deep = name.contains("**");
        if deep && !rest.is_empty() {
            self.within(folder, rest, depth + 1)?;
        }
        self.folders.insert(non_empty(folder));
        // Older shells fill in the folder above, too.
        if matches(name, "..") && names_hidden(name) {
            self.within(&format!("{folder}/.."), rest, depth + 1)?;
        }
        for entry in self.ground.list(&non_empty(folder))? {
            self.left = self.left.checked_sub(1)?;
            self.entry(folder, &entry, name, names, deep, depth)?;
        }
        Some(())
    }

    fn entry(
        &mut self,
        folder: &str,
        entry: &Entry,
        name: &str,
        names: &[&str],
        deep: bool,
        depth: usize,
    ) -> Option<()> {
        if entry.name.starts_with('.') && !names_hidden(name) {
            return Some(());
        }
        let next = format!("{folder}/{}", entry.name);
        if deep && entry.folder && !entry.link {
            self.within(&next, names, depth + 1)?;
        }
        if !matches(name, &entry.name) {
            return Some(());
        }
        self.flags |= entry.name.starts_with('-');
        self.within(&next, &names[1..], depth + 1)
    }
}

/// Whether a pattern stands for names that start with a dot.
fn names_hidden(pattern: &str) -> bool {
    pattern.starts_with('.') || pattern.starts_with("\\.")
}

fn non_empty(folder: &str) -> String {
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

/// Whether a name may match. A bracket counts as any one character.
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

/// Where a bracket ends, after its `[`: `!]` and `[:lower:]` do not end it.
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
    fn names_match_as_in_a_shell_or_wider() {
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
