//! Selects files by globs with the syntax of `.gitignore` but the opposite meaning, like ripgrep's `--glob`.

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use helve_core::machine::SearchError;

/// Maximum length of a glob.
const MAX_GLOB_BYTES: usize = 4096;
const MAX_GLOBS: usize = 1000;
/// Maximum nesting depth of braces.
const MAX_BRACE_DEPTH: usize = 8;

/// Compiled globs. The last glob that matches decides.
pub(crate) struct Globs {
    set: GlobSet,
    /// The effect of each glob in the set, by index.
    effects: Vec<GlobEffect>,
    has_includes: bool,
    has_excludes: bool,
    /// For each glob that includes files, its leading folders without wildcards; files elsewhere cannot match. Empty if
    /// any folder may match.
    prefixes: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GlobEffect {
    Include,
    Exclude(ExcludeScope),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExcludeScope {
    Any,
    Folders,
}

impl Globs {
    /// Compiles globs. `base` is the folder that paths are relative to; a glob may begin with it.
    pub(crate) fn new(base: &str, globs: &[String]) -> Result<Self, SearchError> {
        if globs.len() > MAX_GLOBS {
            let why = format!("at most {MAX_GLOBS} globs are allowed");
            return Err(SearchError::Glob { glob: String::new(), why });
        }
        let mut builder = GlobSetBuilder::new();
        let (mut effects, mut prefixes, mut all_have_prefix) = (Vec::new(), Vec::new(), true);
        for glob in globs {
            let bad = |why: String| SearchError::Glob { glob: glob.clone(), why };
            for (text, effect) in translate(base, glob).map_err(bad)? {
                let compiled = GlobBuilder::new(&text)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .empty_alternates(true)
                    .allow_unclosed_class(true)
                    .build();
                builder.add(compiled.map_err(|err| bad(err.kind().to_string()))?);
                effects.push(effect);
                if effect == GlobEffect::Include {
                    let prefix = literal_prefix(&text);
                    all_have_prefix &= !prefix.is_empty();
                    prefixes.push(prefix);
                }
            }
        }
        let failed = |err: globset::Error| SearchError::Glob {
            glob: globs.join(" "),
            why: err.kind().to_string(),
        };
        if !all_have_prefix {
            prefixes.clear();
        }
        Ok(Self {
            set: builder.build().map_err(failed)?,
            has_includes: effects.contains(&GlobEffect::Include),
            has_excludes: effects.iter().any(|effect| *effect != GlobEffect::Include),
            effects,
            prefixes,
        })
    }

    /// Whether a glob names `.git` literally, so that the folder is entered.
    pub(crate) fn names_git_folder(&self) -> bool {
        let has_git =
            |prefix: &Vec<u8>| prefix.split(|byte| *byte == b'/').any(|name| name == b".git");
        self.prefixes.iter().any(has_git)
    }

    /// Whether to visit a file.
    pub(crate) fn match_file(&self, path: &[u8]) -> GlobMatch {
        if self.effects.is_empty() {
            return GlobMatch::Included;
        }
        let candidate = Candidate::from_bytes(path);
        if !self.has_excludes {
            return if self.set.is_match_candidate(&candidate) {
                GlobMatch::Included
            } else {
                GlobMatch::NotIncluded
            };
        }
        let decides = |effect: &GlobEffect| *effect != GlobEffect::Exclude(ExcludeScope::Folders);
        match self.last_effect(&candidate, decides) {
            Some(GlobEffect::Include) => GlobMatch::Included,
            Some(GlobEffect::Exclude(_)) => GlobMatch::Excluded,
            None if self.has_includes => GlobMatch::NotIncluded,
            None => GlobMatch::Included,
        }
    }

    /// Whether to enter a folder.
    pub(crate) fn match_folder(&self, path: &[u8]) -> GlobMatch {
        if !self.prefixes.is_empty()
            && !self.prefixes.iter().any(|prefix| is_ancestor_or_descendant(prefix, path))
        {
            return GlobMatch::NotIncluded;
        }
        if !self.has_excludes {
            return GlobMatch::Included;
        }
        match self.last_effect(&Candidate::from_bytes(path), |_| true) {
            Some(GlobEffect::Exclude(_)) => GlobMatch::Excluded,
            Some(GlobEffect::Include) | None => GlobMatch::Included,
        }
    }

    fn last_effect(
        &self,
        candidate: &Candidate<'_>,
        decides: impl Fn(&GlobEffect) -> bool,
    ) -> Option<GlobEffect> {
        let matching = self.set.matches_candidate(candidate);
        matching.into_iter().rev().map(|at| self.effects[at]).find(decides)
    }
}

/// Whether the globs include a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobMatch {
    Included,
    NotIncluded,
    /// Rejected by a glob that begins with `!`.
    Excluded,
}

/// Translates a glob to the syntax of `globset`. One glob may become several.
fn translate(base: &str, glob: &str) -> Result<Vec<(String, GlobEffect)>, String> {
    if glob.len() > MAX_GLOB_BYTES {
        return Err(format!("a glob may have at most {MAX_GLOB_BYTES} bytes"));
    }
    let (text, excludes) = match glob.strip_prefix('!') {
        Some(text) => (text, true),
        None => (glob, false),
    };
    let text = text.strip_prefix(base).filter(|rest| rest.starts_with('/')).unwrap_or(text);
    let is_rooted = text.starts_with('/') || text.starts_with("./");
    let text = text.trim_start_matches("./").trim_start_matches('/');
    let (text, is_folder) = match text.strip_suffix('/') {
        Some(text) => (text.trim_end_matches('/'), true),
        None => (text, false),
    };
    if text.is_empty() {
        return Err("the glob is empty".into());
    }
    check_depth(text)?;
    let matches_in_any_folder = !is_rooted && !text.contains('/') && text != "**";
    let pattern = if matches_in_any_folder { format!("**/{text}") } else { text.to_string() };
    if excludes {
        let scope = if is_folder { ExcludeScope::Folders } else { ExcludeScope::Any };
        return Ok(vec![(pattern, GlobEffect::Exclude(scope))]);
    }
    let pattern = if is_folder { format!("{pattern}/**") } else { pattern };
    let mut all = Vec::new();
    // `[id]` is a character class, but also a common folder name in frameworks with file-based routing.
    if pattern.contains('[') {
        all.push((pattern.replace('[', "\\[").replace(']', "\\]"), GlobEffect::Include));
    }
    all.extend(
        split_list(&pattern, matches_in_any_folder)
            .into_iter()
            .map(|one| (one, GlobEffect::Include)),
    );
    all.push((pattern, GlobEffect::Include));
    Ok(all)
}

/// Splits a list like `*.ts, *.tsx`, often written for `*.{ts,tsx}`. The caller also keeps the unsplit text, because
/// it may be a file name.
fn split_list(glob: &str, matches_in_any_folder: bool) -> Vec<String> {
    if !matches_in_any_folder || !glob.contains(',') || glob.contains(['{', '[', '\\']) {
        return Vec::new();
    }
    let names = glob.trim_start_matches("**/").split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(|name| format!("**/{name}")).collect()
}

/// Limits the nesting of braces, because the glob compiler is recursive.
fn check_depth(glob: &str) -> Result<(), String> {
    let mut depth = 0usize;
    for byte in glob.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_BRACE_DEPTH {
            return Err(format!("braces are nested more than {MAX_BRACE_DEPTH} levels deep"));
        }
    }
    Ok(())
}

/// Returns the leading folders of a glob that contain no wildcard.
fn literal_prefix(glob: &str) -> Vec<u8> {
    let is_literal = |part: &&str| !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let parts: Vec<&str> = glob.split('/').collect();
    let folders = parts[..parts.len() - 1].iter().copied().take_while(is_literal);
    folders.collect::<Vec<_>>().join("/").into_bytes()
}

/// Whether one of the paths is an ancestor of the other, or equal to it.
fn is_ancestor_or_descendant(prefix: &[u8], folder: &[u8]) -> bool {
    let (short, long) =
        if prefix.len() < folder.len() { (prefix, folder) } else { (folder, prefix) };
    long.starts_with(short) && (long.len() == short.len() || long[short.len()] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(globs: &[&str], included: &[&str], not_included: &[&str]) {
        let globs: Vec<String> = globs.iter().map(|glob| (*glob).into()).collect();
        let compiled = Globs::new("/w", &globs).unwrap();
        let is_reached = |path: &str| {
            let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
            ends.into_iter()
                .all(|folder| compiled.match_folder(folder.as_bytes()) == GlobMatch::Included)
        };
        let is_included = |path: &str| {
            is_reached(path) && compiled.match_file(path.as_bytes()) == GlobMatch::Included
        };
        for path in included {
            assert!(is_included(path), "{globs:?} should include {path}");
        }
        for path in not_included {
            assert!(!is_included(path), "{globs:?} should not include {path}");
        }
    }

    #[test]
    fn globs_match_names_or_paths() {
        check(&[], &["a", "a/b", ".x"], &[]);
        check(&["*.rs"], &["a.rs", "x/y/a.rs", ".h/a.rs", ".rs"], &["a.rsx", "a"]);
        check(&["src/*.rs"], &["src/a.rs"], &["a.rs", "x/src/a.rs", "src/x/a.rs"]);
        check(&["/*.rs", "./b/*"], &["a.rs", "b/x"], &["x/a.rs", "b/x/y"]);
        check(&["/w/src/**/*.rs"], &["src/a.rs", "src/x/y/a.rs"], &["a.rs"]);
        check(&["src/**"], &["src/a", "src/x/y"], &["a", "srcx/a"]);
        check(&["src/"], &["src/a", "x/src/y/z"], &["src", "a"]);
        check(&["**"], &["a", "x/y"], &[]);
        check(&["**/test/**/*.ts"], &["test/a.ts", "x/test/y/z.ts"], &["a.ts", "test.ts"]);
    }

    #[test]
    fn braces_classes_and_lists_are_alternatives() {
        check(&["*.{ts,tsx}"], &["a.ts", "x/a.tsx"], &["a.js"]);
        check(&["{a,b}{c,}"], &["ac", "b"], &["c"]);
        check(&["[ab].c"], &["a.c", "[ab].c"], &["c.c"]);
        check(&["app/[id]/*.tsx"], &["app/[id]/p.tsx", "app/i/p.tsx"], &["app/x/p.tsx"]);
        check(&["*.ts, *.tsx"], &["a.ts", "x/a.tsx", "*.ts, *.tsx"], &["a.js"]);
        check(&["a\\*"], &["a*"], &["ab"]);
        check(&["[a"], &["[a"], &["a"]);
    }

    #[test]
    fn the_last_matching_glob_decides() {
        check(&["!*.rs"], &["a"], &["a.rs", "x/a.rs"]);
        check(&["*.rs", "!test/"], &["a.rs", "x/a.rs"], &["test/a.rs", "x/test/a.rs"]);
        check(&["!test/"], &["test", "a"], &["test/a"]);
        check(&["*.rs", "!a.rs", "x/a.rs"], &["x/a.rs", "b.rs"], &["a.rs"]);
    }

    #[test]
    fn pathological_globs_are_harmless() {
        let many = "{a,b}".repeat(20);
        check(&[&many], &["abababababababababab"], &["a"]);
        check(&[&("**/".repeat(300) + "x")], &["x", "a/b/x"], &["y"]);
        check(&[&("*a".repeat(300) + "b")], &[], &[&"a".repeat(250)]);
        check(&[&"?".repeat(1000)], &[], &["x"]);
    }

    #[test]
    fn invalid_globs_are_explained() {
        let why = |glob: &str| match Globs::new("/w", &[glob.into()]) {
            Err(SearchError::Glob { why, .. }) => why,
            _ => String::new(),
        };
        assert_eq!(why(&"{".repeat(20_000)), "a glob may have at most 4096 bytes");
        assert_eq!(why(&"{".repeat(20)), "braces are nested more than 8 levels deep");
        assert!(why("{a").contains("unclosed"), "{}", why("{a"));
        assert_eq!([why(""), why("!"), why("/"), why("./")], ["the glob is empty"; 4]);
    }

    #[test]
    fn only_folders_that_can_contain_matches_are_entered() {
        let globs = Globs::new("/w", &["a/b/*.rs".into(), "c/**".into()]).unwrap();
        let entered = |path: &&str| globs.match_folder(path.as_bytes()) == GlobMatch::Included;
        let all = ["a", "a/b", "a/b/c", "c", "c/d", "b", "ab", "a/c"];
        let folders: Vec<&str> = all.into_iter().filter(entered).collect();
        assert_eq!(folders, ["a", "a/b", "a/b/c", "c", "c/d"]);
        assert!(Globs::new("/w", &[".git/hooks/*".into()]).unwrap().names_git_folder());
        assert!(!Globs::new("/w", &["*.git/*".into()]).unwrap().names_git_folder());
    }
}
