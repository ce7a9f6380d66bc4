//! Patterns of permission rules about paths.
//!
//! A pattern is a [`wildcard`] pattern with two additions: `**/` and a final `/**` stand for any number of folders,
//! including none.
//!
//! Paths in the workspace are relative to its root, other paths are absolute. Patterns are converted to the same form:
//! in the workspace `/w`, the patterns `./src/`, `src/` and `/w/src/` all match everything in the folder `src`.

use std::borrow::Cow;

use crate::wildcard;

/// A converted pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern<'p> {
    glob: Cow<'p, str>,
    scope: Scope,
}

/// Which paths a pattern can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Relative and absolute paths.
    All,
    /// Only paths below the root, because the pattern starts with `./` or with the name of the root.
    Inside,
    /// Only absolute paths, because the pattern is an absolute path outside the root.
    Outside,
    /// Any text. The pattern has only the syntax of [`wildcard`].
    Verbatim,
}

/// The literal text that every match of a pattern contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredText<'p> {
    /// The text before the first wildcard.
    pub start: &'p str,
    /// The longest text between two wildcards.
    pub middle: &'p str,
    /// The text after the last wildcard.
    pub end: &'p str,
}

impl<'p> PathPattern<'p> {
    /// Converts a pattern. `root` is the absolute path of the workspace, or empty if the path is unknown.
    pub fn new(pattern: &'p str, root: &str) -> Self {
        let glob = Cow::Borrowed(pattern);
        if !needs_conversion(pattern) {
            return Self { glob, scope: Scope::All };
        }
        // A final ` *` is optional in patterns, see `wildcard::matches`.
        let (path, optional_end) = match pattern.strip_suffix(" *") {
            Some(path) => (path, " *"),
            None => (pattern, ""),
        };
        let mut converted = convert(path, root.trim_end_matches('/'));
        if !optional_end.is_empty() {
            converted.glob.to_mut().push_str(optional_end);
        }
        Self { glob: Cow::Owned(converted.glob.into_owned()), scope: converted.scope }
    }

    /// Uses a pattern without conversion. It matches the same texts as [`wildcard::matches`].
    pub fn verbatim(pattern: &'p str) -> Self {
        Self { glob: Cow::Borrowed(pattern), scope: Scope::Verbatim }
    }

    pub fn into_owned(self) -> PathPattern<'static> {
        PathPattern { glob: Cow::Owned(self.glob.into_owned()), scope: self.scope }
    }

    /// Whether the pattern, as written, matches a path.
    pub fn matches(&self, path: &str) -> bool {
        match self.scope {
            Scope::All | Scope::Outside => matches(&self.glob, path),
            Scope::Inside => !path.starts_with('/') && matches(&self.glob, path),
            Scope::Verbatim => wildcard::matches(&self.glob, path),
        }
    }

    /// Like [`PathPattern::matches`], but an absolute pattern also matches the absolute paths of files in the
    /// workspace: `/home/**/.env` matches `.env`. A pattern without a name, like `/**`, still matches only files
    /// outside.
    pub fn matches_loosely(&self, path: &str, root: &str) -> bool {
        self.matches(path)
            || self.may_reach_into(root) && {
                let absolute = match path {
                    "." => root.to_string(),
                    _ => format!("{}/{path}", root.trim_end_matches('/')),
                };
                !path.starts_with('/') && matches(&self.glob, &absolute)
            }
    }

    /// Returns literal text that every matching path contains: `src/*.rs` → start `src/`, end `.rs`.
    pub fn required_text(&self) -> RequiredText<'_> {
        let has_optional_end = self.glob.ends_with(" *");
        let glob = self.glob.strip_suffix(" *").unwrap_or(&self.glob);
        let mut required = literal_pieces(glob);
        if has_optional_end {
            required.end = "";
        }
        required
    }

    /// Whether the pattern is `*`.
    pub fn is_any(&self) -> bool {
        self.glob == "*" && matches!(self.scope, Scope::All | Scope::Verbatim)
    }

    /// Whether the pattern is a text that matches only itself.
    pub fn is_literal(&self) -> bool {
        !self.glob.contains(['*', '?'])
    }

    /// Whether an absolute pattern may match the absolute paths of files below the root.
    pub fn may_reach_into(&self, root: &str) -> bool {
        let start = &self.glob[..self.glob.find(['*', '?']).unwrap_or(self.glob.len())];
        let has_name = self.glob.contains(|c| !matches!(c, '/' | '*' | '?' | ' '));
        let is_above = root.starts_with(start) || start.strip_prefix(root) == Some("/");
        self.scope == Scope::Outside && has_name && is_above && !self.is_literal()
    }

    /// Returns [`wildcard`] patterns that together match the same paths: `**/a` → `a`, `*/a`. Returns `None` if there
    /// would be too many. A pattern for files inside the root starts with `./`.
    pub fn as_wildcards(&self) -> Option<Vec<String>> {
        let mut expanded = Vec::new();
        let mut pending = vec![(self.glob.to_string(), 0)];
        while let Some((glob, from)) = pending.pop() {
            if expanded.len() + pending.len() > MAX_ALTERNATIVES {
                return None;
            }
            let folders = (from..glob.len()).find(|at| starts_with_folders(glob.as_bytes(), *at));
            if let Some(at) = folders {
                let rest = &glob[at + FOLDERS.len()..];
                pending.push((format!("{}{rest}", &glob[..at]), at));
                pending.push((format!("{}*/{rest}", &glob[..at]), at + 2));
            } else if let Some(start) = glob.strip_suffix(BENEATH) {
                expanded.extend([start.to_string(), format!("{start}/*")]);
            } else {
                expanded.push(glob);
            }
        }
        if self.scope == Scope::Inside {
            expanded.iter_mut().for_each(|glob| glob.insert_str(0, "./"));
        }
        Some(expanded)
    }
}

/// Maximum number of wildcard patterns that one pattern is expanded to.
const MAX_ALTERNATIVES: usize = 16;

/// At the start of a pattern or after a slash: any number of folders, including none.
const FOLDERS: &str = "**/";
/// At the end of a pattern: the folder and everything below it.
const BENEATH: &str = "/**";

/// Whether conversion would change a pattern.
fn needs_conversion(pattern: &str) -> bool {
    let is_address = pattern.starts_with("mcp:") || pattern.contains("://");
    !is_address
        && (pattern.starts_with(['.', '/'])
            || pattern.ends_with('/')
            || pattern.ends_with("/.")
            || ["**", "//", "/./", "/.."].iter().any(|it| pattern.contains(it)))
}

/// Converts a pattern to the form of the paths that it is compared with.
fn convert(pattern: &str, root: &str) -> PathPattern<'static> {
    let mut is_absolute = pattern.starts_with('/');
    let is_anchored = pattern.starts_with("./") || pattern.starts_with("../");
    let is_folder = pattern.ends_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in pattern.split('/') {
        match (name, names.last()) {
            ("" | ".", _) | ("**", Some(&"**")) => {}
            ("..", None) if is_absolute => {}
            ("..", None) if !root.is_empty() => {
                // The parent of the root.
                is_absolute = true;
                names.extend(root.split('/').filter(|it| !it.is_empty()));
                names.pop();
            }
            ("..", Some(last)) if *last != ".." && !last.contains(['*', '?']) => {
                names.pop();
            }
            (other, _) => names.push(other),
        }
    }
    let is_folder = is_folder && names.last() != Some(&"**");
    let mut glob = names.join("/");
    let mut scope = if is_anchored { Scope::Inside } else { Scope::All };
    if is_absolute {
        glob.insert(0, '/');
        scope = Scope::Outside;
        let beneath = glob.strip_prefix(root).filter(|_| !root.is_empty());
        if let Some(beneath) = beneath.filter(|it| it.is_empty() || it.starts_with('/')) {
            glob = beneath.trim_start_matches('/').to_string();
            scope = Scope::Inside;
        }
    }
    match (glob.as_str(), is_folder) {
        ("", true) if scope == Scope::Inside => glob.push('*'),
        ("", _) => glob.push('.'),
        ("/", true) => glob.push_str("**"),
        (_, true) => glob.push_str(BENEATH),
        (_, false) => {}
    }
    PathPattern { glob: Cow::Owned(glob), scope }
}

fn matches(glob: &str, path: &str) -> bool {
    if !glob.contains("**") {
        return wildcard::matches(glob, path);
    }
    glob.strip_suffix(" *").into_iter().chain([glob]).any(|glob| path_glob(glob, path))
}

/// A `*` or `**/` of the pattern, which can match texts of different lengths.
#[derive(Clone, Copy)]
struct Gap {
    /// Offset in the pattern after the gap.
    after: usize,
    /// Offset in the text at which the pattern after the gap is tried.
    from: usize,
    /// Whether the gap is `**/`, which matches only whole folders.
    is_folders: bool,
}

/// Lets each gap match as little as possible, and backtracks only to the last gap. This finds every match: the text
/// after a gap is matched as early as possible, and the next gap can skip whatever a later match would have skipped.
fn path_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut pattern_at, mut text_at) = (0, 0);
    let mut last_gap: Option<Gap> = None;
    while text_at < text.len() {
        if starts_with_folders(pattern, pattern_at) {
            pattern_at += FOLDERS.len();
            last_gap = Some(Gap { after: pattern_at, from: text_at, is_folders: true });
            continue;
        }
        if pattern.get(pattern_at..) == Some(BENEATH.as_bytes()) && text[text_at] == b'/' {
            return true;
        }
        match pattern.get(pattern_at) {
            Some(b'*') => {
                pattern_at += 1;
                last_gap = Some(Gap { after: pattern_at, from: text_at, is_folders: false });
                continue;
            }
            Some(b'?') => {
                pattern_at += 1;
                text_at = wildcard::next_char(text, text_at);
                continue;
            }
            Some(byte) if *byte == text[text_at] => {
                pattern_at += 1;
                text_at += 1;
                continue;
            }
            Some(_) | None => {}
        }
        let Some(gap) = last_gap.as_mut() else { return false };
        gap.from = match gap.is_folders {
            false => wildcard::next_char(text, gap.from),
            true => match text[gap.from..].iter().position(|byte| *byte == b'/') {
                Some(slash) => gap.from + slash + 1,
                None => return false,
            },
        };
        (pattern_at, text_at) = (gap.after, gap.from);
    }
    matches_nothing(pattern, pattern_at)
}

/// Whether the rest of a pattern matches the empty text.
fn matches_nothing(pattern: &[u8], mut at: usize) -> bool {
    while at < pattern.len() {
        match &pattern[at..] {
            b"/**" => return true,
            _ if starts_with_folders(pattern, at) => at += FOLDERS.len(),
            [b'*', ..] => at += 1,
            _ => return false,
        }
    }
    true
}

/// Whether the pattern has `**/` at this offset, at the start of a name.
fn starts_with_folders(pattern: &[u8], at: usize) -> bool {
    let starts_name = at == 0 || pattern[at - 1] == b'/';
    starts_name && pattern[at..].starts_with(FOLDERS.as_bytes())
}

/// Returns the literal text around the wildcards of a glob.
fn literal_pieces(glob: &str) -> RequiredText<'_> {
    let bytes = glob.as_bytes();
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        let gap = match &bytes[at..] {
            b"/**" => 3,
            _ if starts_with_folders(bytes, at) => FOLDERS.len(),
            [b'*' | b'?', ..] => 1,
            _ => 0,
        };
        if gap == 0 {
            at += 1;
            continue;
        }
        pieces.push(&glob[start..at]);
        at += gap;
        start = at;
    }
    pieces.push(&glob[start..]);
    match pieces.as_slice() {
        [] => RequiredText::default(),
        [whole] => RequiredText { start: whole, middle: "", end: whole },
        [start, inner @ .., end] => {
            let middle = inner.iter().max_by_key(|piece| piece.len()).unwrap_or(&"");
            RequiredText { start, middle, end }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PathPattern;

    const ROOT: &str = "/w/app";

    /// Checks that a pattern matches the paths in `matching` and does not match those in `other`.
    #[track_caller]
    fn check(pattern: &str, matching: &[&str], other: &[&str]) {
        let converted = PathPattern::new(pattern, ROOT);
        for path in matching {
            assert!(converted.matches(path), "{pattern:?} should match {path:?}: {converted:?}");
        }
        for path in other {
            assert!(
                !converted.matches(path),
                "{pattern:?} should not match {path:?}: {converted:?}"
            );
        }
    }

    #[test]
    fn two_stars_stand_for_any_number_of_folders() {
        check("**/*.env*", &[".env", "a/.env", "a/b/.env.local", "x.env", "/h/.env"], &["env"]);
        check("**/secret", &["secret", "a/secret", "/secret"], &["asecret", "secret/a"]);
        check(
            "src/**/gen/*",
            &["src/gen/x", "src/a/gen/x", "src/a/b/gen/x/y"],
            &["src/xgen/x", "gen/x"],
        );
        check("src/**/*.rs", &["src/a.rs", "src/a/b.rs"], &["src.rs", "a.rs", "src/a.rsx"]);
        check(
            "a/**/b/**/c",
            &["a/b/c", "a/x/b/c", "a/b/y/c", "a/x/b/y/z/c"],
            &["a/c", "a/bc", "ab/c"],
        );
        check("a/**/**/b", &["a/b", "a/x/y/b"], &["ab", "a/xb"]);
        check("a**/b", &["a/b", "axx/b", "a/x/b"], &["ab"]);
        check("**", &["", "a", "a/b", "/etc/x"], &[]);
        check("a/b**", &["a/b", "a/bc", "a/b/c"], &["a/c"]);
        check("**/?", &["a", "x/y"], &["ab", "x/yz"]);
        check("**/日*", &["日本", "a/日"], &["a日"]);
    }

    #[test]
    fn a_final_slash_or_two_stars_name_a_folder_with_everything_beneath() {
        for pattern in
            ["private/", "private/**", "./private/", "private//", "/w/app/private/", "private/**/"]
        {
            check(
                pattern,
                &["private", "private/a", "private/a/b"],
                &["privates", "a/private", "/private/a"],
            );
        }
        check("*/build/", &["a/build", "a/build/x", "a/b/build/x"], &["build", "build/x"]);
        check("**/build/", &["build", "build/x", "a/build", "a/build/x"], &["rebuild/x"]);
        check("/", &["/", "/etc/passwd"], &["a", "."]);
        check("/etc/", &["/etc", "/etc/*", "/etc/ssh/x"], &["/etcetera", "etc"]);
    }

    #[test]
    fn patterns_are_relative_to_the_root() {
        check(
            "./private/*",
            &["private/a", "private/a/b"],
            &["private", "/x/private/a", "a/private/b"],
        );
        check("./*", &["a", "a/b", "."], &["/etc/passwd"]);
        check(".", &["."], &["a", ".a"]);
        check("./", &[".", "a", "a/b"], &["/a"]);
        check("./src/./a.rs", &["src/a.rs"], &["src/./a.rs"]);
        check("src//a.rs", &["src/a.rs"], &[]);
        check("src/../a.rs", &["a.rs"], &["src/a.rs"]);
        check("/w/app/private/*", &["private/a"], &["/private/a", "/w/app/private/a"]);
        check("/w/app", &["."], &["a", "/w/app/a"]);
        check("/w/app/", &[".", "a/b"], &["/w/application"]);
        check("/w/app/*", &["a", "a/b"], &["/etc/passwd", "/w/other"]);
        check("/w/application/*", &["/w/application/x"], &["x", "lication/x"]);
        check("../other/*", &["/w/other/a"], &["other/a", "../other/a"]);
        check("../../x", &["/x"], &["x"]);
        check("../../../../x", &["/x"], &["x"]);
        check("../app/a", &["a"], &["/w/app/a"]);
        check("*/../a", &["*/../a", "b/../a"], &["a"]);
    }

    #[test]
    fn patterns_without_path_syntax_match_as_wildcards() {
        check("*.env", &[".env", "a/.env", "/x/.env"], &[".env.local"]);
        check("src/*", &["src/a", "src/a/b"], &["src", "/w/app/src/a", "a/src/b"]);
        check("*", &["", "a", "/etc/x"], &[]);
        check("/etc/*", &["/etc/hosts", "/etc/ssh/x"], &["etc/hosts"]);
        check("a *", &["a", "a b"], &["ab"]);
        check("mcp:docs:file:///a//b/*", &["mcp:docs:file:///a//b/c"], &["mcp:docs:file:/a/b/c"]);
        check("...", &["..."], &["."]);
        check(".env", &[".env"], &["a/.env"]);
        check(".*/x", &[".a/x"], &["a/x"]);
    }

    #[test]
    fn absolute_patterns_match_files_below_the_root_only_loosely() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let converted = PathPattern::new(pattern, ROOT);
            assert_eq!(converted.matches_loosely(path, ROOT), expected, "{pattern} {path}");
            assert!(!converted.matches(path), "{pattern} {path}");
        };
        check("/w/**/.env", ".env", true);
        check("/w/**/.env", "a/.env", true);
        check("/w/*", "a", true);
        check("/w/**", ".", true);
        check("/w/*/src/x", "src/x", true);
        check("/**/.env", ".env", true);
        check("/*", "a", false);
        check("/**", "a/b", false);
        check("/w/other/*", "a", false);
        check("/x/**/.env", ".env", false);
    }

    /// Reference implementation: replaces each `**/` and each final `/**` with both texts that it may stand for, and
    /// tries every possible match.
    fn reference(pattern: &str, path: &str) -> bool {
        fn plain(pattern: &[char], text: &[char]) -> bool {
            match pattern {
                [] => text.is_empty(),
                ['*', rest @ ..] => (0..=text.len()).any(|n| plain(rest, &text[n..])),
                ['?', rest @ ..] => !text.is_empty() && plain(rest, &text[1..]),
                [literal, rest @ ..] => text.first() == Some(literal) && plain(rest, &text[1..]),
            }
        }
        fn expand(names: &[&str]) -> Vec<Vec<String>> {
            let Some((first, rest)) = names.split_first() else { return vec![Vec::new()] };
            let mut all = Vec::new();
            for tail in expand(rest) {
                let with = |name: &str| [vec![name.to_string()], tail.clone()].concat();
                if *first == "**" {
                    all.push(tail.clone());
                }
                all.push(with(if *first == "**" { "*" } else { first }));
            }
            all
        }
        let mut names: Vec<&str> =
            pattern.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if pattern.ends_with('/') {
            names.push("**");
        }
        let text: Vec<char> = path.chars().collect();
        expand(&names).into_iter().any(|names| {
            let glob: Vec<char> = names.join("/").chars().collect();
            plain(&glob, &text) && !(glob.is_empty() && text.is_empty())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn matching_agrees_with_the_reference(
            pattern in "(a|b|\\*|\\*\\*|\\?|ab\\*|\\*a|\\.)(/(a|b|\\*|\\*\\*|\\?|ab\\*|\\*b|\\.|)){0,4}/?",
            path in "[ab]{1,2}(/[ab]{1,2}){0,4}",
        ) {
            // Patterns about the root itself are listed above.
            prop_assume!(pattern.split('/').any(|name| !matches!(name, "" | ".")));
            prop_assert_eq!(PathPattern::new(&pattern, ROOT).matches(&path), reference(&pattern, &path));
        }

        #[test]
        fn absolute_and_relative_patterns_agree(pattern in "[ab*?/]{1,8}", path in "[ab]{1,2}(/[ab]{1,2}){0,3}") {
            let relative = format!("./{pattern}");
            let absolute = format!("{ROOT}/{pattern}");
            prop_assert_eq!(
                PathPattern::new(&relative, ROOT).matches(&path),
                PathPattern::new(&absolute, ROOT).matches(&path)
            );
        }

        #[test]
        fn a_match_contains_the_required_text(pattern in "[ab*?/. ]{0,8}", path in "[ab/. ]{0,8}") {
            let converted = PathPattern::new(&pattern, ROOT);
            let required = converted.required_text();
            if converted.matches(&path) {
                prop_assert!(path.starts_with(required.start), "{required:?}");
                prop_assert!(path.contains(required.middle), "{required:?}");
                prop_assert!(path.ends_with(required.end), "{required:?}");
            }
        }

        #[test]
        fn wildcards_of_a_pattern_match_the_same_paths(pattern in "[ab*/]{1,8}", path in "[ab]{1,2}(/[ab]{1,2}){0,3}") {
            let converted = PathPattern::new(&pattern, ROOT);
            if let Some(all) = converted.as_wildcards() {
                let matched = all.iter().any(|glob| crate::wildcard::matches(glob, &path));
                prop_assert_eq!(matched, converted.matches(&path), "{:?}", all);
            }
        }

        #[test]
        fn any_pattern_can_be_converted(pattern in ".{0,20}", path in ".{0,20}", root in ".{0,10}") {
            let converted = PathPattern::new(&pattern, &root);
            converted.matches(&path);
            converted.matches_loosely(&path, &root);
            converted.required_text();
            converted.as_wildcards();
        }
    }
}
