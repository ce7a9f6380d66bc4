//! File names in search patterns. A pattern that selects a secret file counts as reading that file.

use super::{Word, bracket, fragments, tree_filter};
use crate::secrets::secret_file_examples;
use crate::wildcard;

/// Flags of `find` that select files by name.
const NAME_FLAGS: &[&str] =
    &["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-samefile"];

/// Flags of `find` that select files by regular expression.
const REGEX_FLAGS: &[&str] = &["-regex", "-iregex"];

/// Patterns for all hidden files.
const ALL_HIDDEN: &[&str] = &[".*", ".?*", ".[!.]*", ".[^.]*"];

/// Patterns with more alternatives than this count as selecting everything.
const MAX_ALTERNATIVES: usize = 32;

const MAX_PATH_BYTES: usize = 4_096;

/// Treats `value` as a file name or a glob, as written and in lower case. Returns the named file, or a secret file that
/// the glob matches. A glob that matches nearly everything is ignored.
pub(super) fn files_selected_by(value: &str) -> Vec<Word> {
    if value.starts_with('!') {
        return Vec::new();
    }
    // `--type-add` takes the name of a file type before the glob.
    let typed =
        value.split_once(':').filter(|(kind, _)| kind.bytes().all(|c| c.is_ascii_alphanumeric()));
    files_in_either_case(typed.map_or(value, |(_, pattern)| pattern))
}

/// Returns the files that a name or glob selects, as written and in lower case.
fn files_in_either_case(value: &str) -> Vec<Word> {
    let lower = value.to_ascii_lowercase();
    let lower_file = (lower != value).then(|| file_for(&lower)).flatten();
    file_for(value).into_iter().chain(lower_file).collect()
}

/// Returns the file with this name, or a secret file that a glob matches.
fn file_for(value: &str) -> Option<Word> {
    // No path is this long. A pattern that is too long to examine counts as selecting a secret file.
    if value.len() > MAX_PATH_BYTES {
        return Some(Word::Literal(secret_file_examples()[0].to_string()));
    }
    if !value.contains(['*', '?', '[', '{', '\\']) {
        return Some(Word::Literal(value.to_string()));
    }
    let mut patterns = vec![value.to_ascii_lowercase()];
    while let Some(at) = patterns.iter().position(|it| alternatives(it).is_some()) {
        let more = alternatives(&patterns.swap_remove(at)).unwrap_or_default();
        patterns.extend(more);
        if patterns.len() > MAX_ALTERNATIVES {
            return Some(Word::Literal(secret_file_examples()[0].to_string()));
        }
    }
    patterns.iter().find_map(|pattern| secret_match(pattern))
}

/// Expands `a{b,c}` to `ab` and `ac`. Stops one past the limit, so that the caller sees that there are too many.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let end = pattern.find('}')?;
    let start = pattern[..end].rfind('{')?;
    let (before, after) = (&pattern[..start], &pattern[end + 1..]);
    let inside = pattern[start + 1..end].split(',').take(MAX_ALTERNATIVES + 1);
    Some(inside.map(|it| format!("{before}{it}{after}")).collect())
}

/// Returns a secret file that a glob matches.
fn secret_match(pattern: &str) -> Option<Word> {
    let name_glob = pattern.rsplit('/').next().unwrap_or(pattern);
    let name = simplify_glob(name_glob);
    let has_letters = name.contains(|character: char| character.is_alphanumeric());
    let is_hidden = name.starts_with('.') && !ALL_HIDDEN.contains(&name_glob);
    let is_match = |secret: &&&str| (has_letters || is_hidden) && wildcard::matches(&name, secret);
    secret_file_examples().iter().find(is_match).map(|secret| Word::Literal((*secret).to_string()))
}

/// Returns the secret file whose name a regular expression contains.
fn secret_in_regex(expression: &str) -> Option<Word> {
    const SECRET_PARTS: &[(&str, &str)] =
        &[("env", ".env"), ("id_rsa", "id_rsa"), ("pem", "key.pem")];
    let expression = expression.replace('\\', "").to_ascii_lowercase();
    let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
    let contains = |(part, _): &&(&str, &str)| {
        expression.match_indices(part).any(|(at, _)| is_end(&expression[at + part.len()..]))
    };
    SECRET_PARTS.iter().find(contains).map(|(_, secret)| Word::Literal((*secret).to_string()))
}

/// Returns the files that an argument of git selects: `HEAD:.env`, `:(top).env`, `'.en?'`.
pub(super) fn files_in_git_argument(text: &str) -> Vec<Word> {
    let Some(path) = path_in_git_argument(text).filter(|path| !path.is_empty()) else {
        return Vec::new();
    };
    // A revision or a line range may contain colons too.
    let after_colon = path.rsplit_once(':').map(|(_, end)| end).filter(|end| !end.is_empty());
    let paths = [Some(path), after_colon].into_iter().flatten();
    if text.starts_with(":(") {
        return paths.flat_map(files_in_either_case).collect();
    }
    paths.filter_map(file_for).collect()
}

/// Returns the path in an argument of git, or `None` if it has no path or excludes one.
fn path_in_git_argument(text: &str) -> Option<&str> {
    if let Some(magic) = text.strip_prefix(":(") {
        let (magic, path) = magic.split_once(')')?;
        return (!magic.split(',').any(|word| word == "exclude")).then_some(path);
    }
    match text.split_once(':') {
        Some(("", rest)) => {
            let staged =
                rest.strip_prefix(['0', '1', '2', '3']).and_then(|it| it.strip_prefix(':'));
            let path = staged.unwrap_or(rest).trim_start_matches('/');
            let is_excluded = staged.is_none() && path.starts_with(['!', '^']);
            (!is_excluded).then_some(path)
        }
        Some((_, path)) => Some(path),
        None => {
            // A file that no longer exists may still be in the history.
            let is_hidden = text.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
            let is_pattern = text.contains(['*', '?', '[', '\\']) && !text.starts_with('^');
            (is_pattern || is_hidden && !text.contains("..")).then_some(text)
        }
    }
}

/// Returns the files that a `find` command selects: the names in its tests, and hidden files among its starting points.
pub(super) fn files_in_find(words: &[Word]) -> Vec<Word> {
    let texts: Vec<&str> = words.iter().map(|word| word.literal().unwrap_or("")).collect();
    let starts = texts.iter().skip(1).take_while(|text| !text.starts_with(['-', '(', '!']));
    let hidden = |text: &&&str| {
        let name = text.rsplit('/').next().unwrap_or(text);
        name.starts_with('.') && name.len() > 1 && name != ".."
    };
    let starts = starts.filter(hidden).map(|text| Word::Literal((*text).to_string()));
    let tests = texts.windows(3).flat_map(|test| match test {
        ["!" | "-not", ..] => Vec::new(),
        [_, flag, value] if NAME_FLAGS.contains(flag) => files_selected_by(value),
        [_, flag, value] if REGEX_FLAGS.contains(flag) => {
            secret_in_regex(value).into_iter().collect()
        }
        _ => Vec::new(),
    });
    starts.chain(tests).collect()
}

/// Returns a glob without escapes and with `?` for each bracket expression.
fn simplify_glob(pattern: &str) -> String {
    let mut simplified = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['[', '\\']) {
        simplified.push_str(&rest[..at]);
        let (sign, inside) = rest[at..].split_at(1);
        if sign == "\\" {
            rest = inside;
            continue;
        }
        let negated = usize::from(inside.starts_with('!'));
        let Some(length) = bracket::length(&inside[negated..], '/') else {
            return simplified + "*";
        };
        simplified.push('?');
        rest = &inside[negated + length..];
    }
    simplified + rest
}

/// The files that a pattern may select. The program, not the shell, expands the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternReach {
    /// A file, or a directory that contains the files at any depth. May be a glob.
    pub(super) base: Word,
    /// Globs for the names of the files. If the list is empty, they may have any name.
    pub(super) names: Vec<String>,
}

impl PatternReach {
    fn all_below(path: &str) -> Self {
        let path = if path.is_empty() { "." } else { path };
        Self { base: Word::Literal(path.to_string()), names: Vec::new() }
    }

    /// Returns the files that a pattern may select if `*` also matches slashes: `src/a*.rs` selects everything below
    /// `src/a*` that ends with `.rs`.
    fn of_glob(pattern: &str) -> Option<Self> {
        if let Some(folder) = pattern.strip_suffix("...") {
            let reach = Self::all_below(folder.trim_end_matches('/'));
            return Some(Self { names: vec!["*.go".into()], ..reach });
        }
        let first_wildcard = pattern.find(WILDCARDS)?;
        let last_wildcard = pattern.rfind(WILDCARDS).unwrap_or(first_wildcard);
        let end = pattern[last_wildcard..].trim_start_matches(WILDCARDS);
        let name = match end.rsplit_once('/') {
            Some((_, name)) => name.to_string(),
            None => format!("*{end}"),
        };
        let is_plain = !pattern.contains(['[', ']', '{', '}', '\\']) && name != "*";
        let names: Vec<String> =
            tree_filter::portable_glob(&name).filter(|_| is_plain).into_iter().collect();
        let start = &pattern[..first_wildcard];
        let (folder, prefix) = start.rsplit_once('/').unwrap_or(("", start));
        if prefix.is_empty() {
            let folder = if start == "/" { "/" } else { folder };
            return Some(Self { names, ..Self::all_below(folder) });
        }
        Some(Self { base: Word::Glob(format!("{}*", fragments::escape(start))), names })
    }
}

/// Returns the files that an unknown program may select with an argument, if it expands patterns itself: for each
/// pattern the folder that is searched, and globs for the paths, in which `*` also matches slashes. An argument with
/// blanks is not taken for a pattern, and neither is one without letters and digits, such as `*`: it is often a regular
/// expression.
pub(super) fn reaches_of_argument(text: &str) -> Vec<(PatternReach, Vec<String>)> {
    let is_pattern = text.contains(['*', '?', '[', '{', '('])
        && !text.starts_with(['!', '~'])
        && !text.contains(char::is_whitespace)
        && text.len() <= MAX_PATH_BYTES;
    if !is_pattern {
        return Vec::new();
    }
    let mut patterns = vec![without_groups(text)];
    while let Some(at) = patterns.iter().position(|it| alternatives(it).is_some()) {
        let more = alternatives(&patterns.swap_remove(at)).unwrap_or_default();
        patterns.extend(more);
        if patterns.len() > MAX_ALTERNATIVES {
            return vec![(PatternReach::all_below("."), Vec::new())];
        }
    }
    let has_letters = |it: &String| it.contains(char::is_alphanumeric);
    patterns.iter().map(|it| simplify_glob(it)).filter(has_letters).map(reach_with_paths).collect()
}

/// Returns a pattern with `*` for each group like `@(a|b)` or `(a|b)`.
fn without_groups(pattern: &str) -> String {
    let mut text = pattern.to_string();
    while let Some(end) = text.find(')')
        && let Some(start) = text[..end].rfind('(')
    {
        let before = text[..start].trim_end_matches(['@', '+', '?', '!', '*']).len();
        text.replace_range(before..=end, "*");
    }
    text
}

/// Returns the files that a pattern selects, or that are below a folder that it selects, and globs for their paths.
fn reach_with_paths(pattern: String) -> (PatternReach, Vec<String>) {
    let pattern = pattern.trim_start_matches("./");
    let Some(mut reach) = PatternReach::of_glob(pattern) else {
        return (PatternReach::all_below(pattern), Vec::new());
    };
    // A pattern with an extension rarely selects a folder.
    reach.names.retain(|name| name.rfind('.').is_some_and(|at| at > 0));
    let is_relative = !pattern.starts_with('/') && !pattern.contains("..");
    let glob = pattern.replace("**/", "*");
    let paths = if is_relative {
        vec![format!("{}/*", glob.trim_end_matches('/')), glob]
    } else {
        Vec::new()
    };
    (reach, paths)
}

const WILDCARDS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Returns the files that a pattern like `'src/**/*.js'` may select. The program expands the pattern, not the
/// shell. Returns `None` for a plain path.
pub(super) fn reach_of_pattern(text: &str) -> Option<PatternReach> {
    PatternReach::of_glob(text)
}

/// A flag of git with which paths and patterns match names in any case.
pub(super) const ANY_CASE_FLAG: &str = "--icase-pathspecs";

/// Returns a word as git gets it. An unquoted pattern like `:src*` selects no file of that name, so that the shell does
/// not replace it.
pub(super) fn as_pathspec(word: &Word) -> Word {
    match word {
        Word::Glob(pattern) if pattern.starts_with(':') => Word::Literal(pattern.clone()),
        word => word.clone(),
    }
}

/// Whether a pathspec of git excludes files.
pub(super) fn is_exclusion(text: &str) -> bool {
    text.starts_with(':') && path_in_git_argument(text).is_none()
}

/// Returns the files that a pathspec of git, such as `'*.rs'`, `:/src` or `:(top,icase)src`, may select. Returns `None`
/// for a plain path. A pathspec that excludes files selects everything, because git then selects all other files.
pub(super) fn reach_of_pathspec(text: &str) -> Option<PatternReach> {
    let Some(magic) = text.strip_prefix(':') else { return PatternReach::of_glob(text) };
    let (words, path) = match magic.strip_prefix('(') {
        Some(long) => long.split_once(')')?,
        None => {
            let path = magic.trim_start_matches(['/', '!', '^']);
            (&magic[..magic.len() - path.len()], path.strip_prefix(':').unwrap_or(path))
        }
    };
    if words.contains(['!', '^']) || words.split(',').any(|it| it == "exclude") {
        return Some(PatternReach::all_below("."));
    }
    if words.split(',').any(|it| it == "icase") {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_plain = path == name && !name.is_empty() && !name.contains(WILDCARDS);
        return Some(if is_plain {
            PatternReach::all_below(&path.to_ascii_lowercase())
        } else {
            PatternReach::all_below(".")
        });
    }
    let is_literal = words.split(',').any(|it| it == "literal");
    let glob = PatternReach::of_glob(path).filter(|_| !is_literal);
    Some(glob.unwrap_or_else(|| PatternReach::all_below(path.trim_end_matches('/'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let files = files_in_git_argument(text);
        let files: Vec<&str> = files.iter().map(Word::shown).collect();
        assert_eq!(files, expected, "{text:?}");
    }

    #[test]
    fn paths_in_git_arguments_are_found() {
        check("HEAD:A/B", &["A/B"]);
        check("HEAD:3rdparty/.env", &["3rdparty/.env"]);
        check("HEAD:1", &["1"]);
        check("HEAD:!x", &["!x"]);
        check("HEAD:.EN?", &[".env"]);
        check(":2:.env", &[".env"]);
        check(":2:!x", &["!x"]);
        check(":3rd", &["3rd"]);
        check(":/.env", &[".env"]);
        check(":/:.env", &[":.env", ".env"]);
        check(":name:.env", &["name:.env", ".env"]);
        check("HEAD^{/fix: it}:.env", &[" it}:.env", ".env"]);
        check(":(top).env", &[".env"]);
        check(":(icase)A/B", &["A/B", "a/b"]);
        check("old/.env", &["old/.env"]);
        for text in ["HEAD:", ":/!.env", ":^.env", ":(exclude,top).env", "main..", "^v1.*", "a"] {
            check(text, &[]);
        }
    }

    #[test]
    fn pathspecs_reach_files() {
        let check = |text: &str, word: &str, names: &[&str]| {
            let reach = reach_of_pathspec(text).unwrap_or_else(|| panic!("{text} is a plain path"));
            assert_eq!(
                (reach.base.shown(), reach.names.as_slice()),
                (word, names.iter().map(|it| it.to_string()).collect::<Vec<_>>().as_slice()),
                "{text}"
            );
        };
        check("*.tf", ".", &["*.tf"]);
        check("secr*", "secr*", &[]);
        check("secr*/*", "secr*", &[]);
        check("i*/main.tf", "i*", &["main.tf"]);
        check("in*n.tf", "in*", &["*n.tf"]);
        check("src/*.rs", "src", &["*.rs"]);
        check("src/[ab].rs", "src", &[]);
        check("/*", "/", &[]);
        check(":/", ".", &[]);
        check(":", ".", &[]);
        check(":/secrets", "secrets", &[]);
        check(":/*.tf", ".", &["*.tf"]);
        check(":(top)infra/", "infra", &[]);
        check(":(glob)secrets/**", "secrets", &[]);
        check(":(literal)a*", "a*", &[]);
        check(":(icase)INFRA", "infra", &[]);
        check(":(icase)a/B", ".", &[]);
        check(":!src", ".", &[]);
        check(":(exclude,top)src", ".", &[]);
        check("./infra/...", "./infra", &["*.go"]);
        for text in ["src/a.rs", ".", "HEAD:a", "v1"] {
            assert_eq!(reach_of_pathspec(text), None, "{text}");
        }
    }

    #[test]
    fn names_also_select_files_in_lower_case() {
        let files = |value| {
            files_selected_by(value).iter().map(|it| it.shown().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(files("A.txt"), ["A.txt", "a.txt"]);
        assert_eq!(files("web:*.ENV"), [".env", ".env"]);
        assert!(files("!.env").is_empty() && files("*.rs").is_empty());
    }

    #[test]
    fn patterns_that_are_too_large_count_as_secret_files() {
        let start = std::time::Instant::now();
        let many = format!("HEAD:{{{}}}{}", ",".repeat(64_000), "x".repeat(64_000));
        check(&many, &[".env"]);
        check(&format!("HEAD:{}", "{a}".repeat(1_300)), &[]);
        check(&format!("HEAD:{{{}}}x", ",".repeat(33)), &[".env"]);
        assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    }
}
