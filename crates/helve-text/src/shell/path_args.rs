//! Finds paths in arguments of unknown meaning, such as those of programs that `programs.txt` does not list.

use super::commands::{Invocation, basename};
use super::downloads::{self, percent_decode};
use super::file_patterns;
use super::names::{self, NameGroup};
use super::state::ShellState;
use super::walk::{Walker, unknown};
use super::{AccessKind, DynamicKind, TreeFilter, Word};

/// Records every path that a word may contain.
pub(super) fn record_paths(walker: &mut Walker<'_>, word: &Word, state: &ShellState, run: usize) {
    if let Some(text) = word.literal()
        && targets_other_machine(walker, run)
    {
        return record_host_paths(walker, text, state, run);
    }
    match word {
        Word::Literal(text) => {
            let decoded = text.contains('%').then(|| percent_decode(text)).flatten();
            for text in [Some(text), decoded.as_ref()].into_iter().flatten() {
                for path in paths_in(text) {
                    record_path(walker, path, state, run);
                    record_matches(walker, path, state, run);
                }
            }
            if let Some(name) = downloads::name_in_address(text) {
                record_path(walker, &name, state, run);
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

/// Whether the arguments of a run are about a container or another machine.
fn targets_other_machine(walker: &Walker<'_>, run: usize) -> bool {
    let Some(run) = walker.script.runs.get(run) else { return false };
    // The word after a flag may be its value, and not a subcommand.
    let mut names = run.words.iter().map(Word::shown).take_while(|it| !it.starts_with('-'));
    let mut command = names.next().map_or("", basename).to_string();
    for name in names.take(2) {
        command = format!("{command}:{name}");
        if names::contains(NameGroup::Elsewhere, &command) {
            return true;
        }
    }
    false
}

/// Records files of this machine in an argument about a container or another machine: the source of a mount, the values
/// of some flags, and addresses like `file://x`. Relative paths count too, because the working directory is often
/// mounted in the container.
fn record_host_paths(walker: &mut Walker<'_>, text: &str, state: &ShellState, run: usize) {
    let words = &walker.script.runs[run].words;
    let shown: Vec<&str> = words.iter().map(Word::shown).collect();
    let is_value_of = |group: NameGroup| {
        shown.windows(2).any(|it| it[1] == text && names::contains(group, it[0]))
    };
    let (flag, attached) = match text.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => (flag, Some(value)),
        _ if text.starts_with("-v") => ("-v", Some(&text[2..])),
        _ => (text, None),
    };
    let is_mount = attached.is_some() && names::contains(NameGroup::MountFlag, flag);
    let is_host_path_flag = attached.is_some() && names::contains(NameGroup::HostFlag, flag);
    let lower = text.to_ascii_lowercase();
    let paths: Vec<String> = if is_mount || is_value_of(NameGroup::MountFlag) {
        mount_sources(attached.filter(|_| is_mount).unwrap_or(text)).map(str::to_string).collect()
    } else {
        let is_relative = |it: &&str| !it.starts_with(['/', '~']) && !it.starts_with("..");
        let accepts_absolute = is_host_path_flag
            || is_value_of(NameGroup::HostFlag)
            || lower.contains("file:")
            || lower.contains("fileb:");
        let paths = paths_in(text).into_iter().filter(|it| accepts_absolute || is_relative(it));
        paths.map(str::to_string).collect()
    };
    for path in paths {
        record_path(walker, &path, state, run);
    }
}

/// Returns the files of this machine in `HOST:CONTAINER` or `type=bind,source=HOST,target=CONTAINER`.
fn mount_sources(text: &str) -> impl Iterator<Item = &str> {
    let has_keys =
        text.contains("target=") || text.contains("dst=") || text.contains("destination=");
    let fields = text.split(',').filter(move |_| has_keys);
    let sources = fields.filter_map(|it| {
        let (key, value) = it.split_once('=')?;
        matches!(key, "source" | "src" | "volume-opt").then_some(value)
    });
    sources.chain(text.split(':').next().filter(|_| !has_keys))
}

fn record_path(walker: &mut Walker<'_>, path: &str, state: &ShellState, run: usize) {
    // The shell did not expand the tilde here, but the program may.
    let has_tilde = path.starts_with('~');
    let word = if has_tilde { unknown(path) } else { Word::Literal(path.to_string()) };
    walker.record_access(&word, AccessKind::PassedToUnknown, state, Some(run));
}

/// Records the files that a pattern may select. The program may expand it, as the shell would have done without quotes.
fn record_matches(walker: &mut Walker<'_>, pattern: &str, state: &ShellState, run: usize) {
    for (reach, paths) in file_patterns::reaches_of_argument(pattern) {
        // Programs skip the installed packages, which take long to search.
        let packages = "node_modules";
        let skipped = (!pattern.contains(packages)).then(|| packages.to_string());
        let excluded_dirs = skipped.into_iter().collect();
        let names = reach.names;
        let filter = TreeFilter { names, paths, excluded_dirs, ..TreeFilter::default() };
        let access = (AccessKind::MatchedByUnknown, &filter);
        walker.record_filtered_access(&reach.base, access, state, Some(run));
    }
}

/// Records the paths in the strings of code in another language.
pub(super) fn record_paths_in_code(
    walker: &mut Walker<'_>,
    code: &str,
    state: &ShellState,
    run: usize,
) {
    const MAX_STRINGS: usize = 256;
    let is_path = |it: &&str| {
        !it.is_empty() && it.len() < 256 && !it.contains(char::is_whitespace) && *it != "/"
    };
    let mut strings: Vec<&str> = code.split(['"', '\'', '`']).skip(1).step_by(2).collect();
    // A quote inside a string makes it unclear which pieces are inside quotes. So the other pieces count too.
    strings.extend(code.split(['"', '\'', '`']).skip(2).step_by(2));
    for text in strings.into_iter().filter(is_path).take(MAX_STRINGS) {
        record_path_in_code(walker, text, state, run);
    }
    // Other languages have further ways to quote, so every word that looks like a path counts.
    let is_path_char = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~');
    let words = code.split(|c: char| !is_path_char(c)).filter(is_path);
    let may_be_file = |it: &&str| {
        it.contains(['.', '/'])
            && it.contains(char::is_alphanumeric)
            && (!it.starts_with('~') || it.starts_with("~/"))
    };
    for text in words.filter(may_be_file).take(MAX_STRINGS) {
        record_path_in_code(walker, text, state, run);
    }
}

/// Records a path in code. A tilde stands for the home directory.
fn record_path_in_code(walker: &mut Walker<'_>, path: &str, state: &ShellState, run: usize) {
    let in_home = walker.context.home.as_deref().zip(path.strip_prefix("~/"));
    let word = match in_home {
        Some((home, rest)) => Word::Literal(format!("{home}/{rest}")),
        None if path.starts_with('~') => unknown(path),
        None => Word::Literal(path.to_string()),
    };
    walker.record_access(&word, AccessKind::NamedInCode, state, Some(run));
}

/// Records the paths in the standard input of a program that runs it as code.
pub(super) fn record_paths_in_input(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    state: &ShellState,
) {
    for code in call.known_input() {
        record_paths_in_code(walker, code, state, call.run);
    }
}

/// Records the file that a filter rule of `rsync` names: `merge FILE`, `. FILE`.
pub(super) fn record_filter_rule(
    walker: &mut Walker<'_>,
    word: &Word,
    state: &ShellState,
    run: usize,
) {
    let Some(rule) = word.literal() else { return record_paths(walker, word, state, run) };
    let reads_file = ["merge", "dir-merge", ".", ":"].iter().any(|it| rule.starts_with(it));
    if let Some(at) = rule.find([' ', '_']).filter(|_| reads_file) {
        record_path(walker, &rule[at + 1..], state, run);
    }
}

/// Returns the parts of a word that may be paths: `src`, `--out=/x`, `-I/x`, `/a:/b`, `x.txt#label`.
pub(super) fn paths_in(text: &str) -> Vec<&str> {
    let is_flag = text.starts_with('-') && text != "-";
    // Where a path may begin: `--file=x`, `a@x`, `-fx`, `--out/x`. The rest of the word from there is one candidate.
    // Its pieces between separators (`/a:/b`) are further ones, added below.
    let mut starts: Vec<usize> = match is_flag {
        true => text.find('/').filter(|_| !text.contains('=')).into_iter().collect(),
        false => vec![0],
    };
    if is_flag && text[1..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
        starts.push(2);
    }
    starts.extend([text.find('='), text.rfind('@')].into_iter().flatten().map(|at| at + 1));
    let whole_paths = starts.iter().filter(|at| !host_follows(text, **at)).map(|at| &text[*at..]);
    let addresses = path_in_address(text).into_iter().chain(path_after_host(text));
    let mut paths: Vec<&str> = addresses.chain(whole_paths).collect();
    starts.extend(text.match_indices(SEPARATORS).map(|(at, _)| at + 1));
    for rest in starts.into_iter().filter(|at| !host_follows(text, *at)).map(|at| &text[at..]) {
        paths.push(rest.split(SEPARATORS).next().unwrap_or(rest));
        paths.push(rest.split(is_delimiter).next().unwrap_or(rest));
    }
    // After other delimiters, only files of the workspace are looked for: a pattern like `s#/a#/b#` is not a path.
    let pieces =
        text.split(is_delimiter).filter(|it| !it.starts_with(['/', '~']) && !it.starts_with(".."));
    paths.extend(pieces.filter(|it| !is_flag || !it.starts_with('-')));
    paths.extend(relative_path_in_address(text));
    paths.extend(text.strip_prefix(['+', '%']).map(|it| it.trim_start_matches(['+', '%'])));
    if is_flag {
        paths.extend(attached_values(text));
    }
    paths.retain(|path| !path.is_empty() && !is_web_address(path));
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Characters that separate or precede paths.
const SEPARATORS: [char; 4] = ['=', ':', ',', '@'];

/// Whether a path may end or begin at this character.
fn is_delimiter(c: char) -> bool {
    const OTHER_DELIMITERS: &str = "|#;<>\"'()[]{}?";
    c.is_whitespace() || SEPARATORS.contains(&c) || OTHER_DELIMITERS.contains(c)
}

/// Returns every suffix of a flag that may be its value, like `.env` in `-include.env`.
fn attached_values(text: &str) -> impl Iterator<Item = &str> {
    const MAX_BYTES: usize = 64;
    let is_attached = !text.starts_with("--")
        && text.len() < MAX_BYTES
        && text.contains(['.', '/'])
        && !text.contains(is_delimiter);
    let end = text.find('/').unwrap_or(text.len());
    let starts = text[..end].char_indices().skip(3).map(|(at, _)| at);
    starts.filter(move |_| is_attached).map(|at| &text[at..]).filter(|it| !it.starts_with(".."))
}

/// Returns the path in an address whose first part is not a host, like `fileb://secrets/key.txt`.
fn relative_path_in_address(text: &str) -> Option<&str> {
    let (scheme, path) = text.split_once("://")?;
    let scheme = scheme.rsplit(is_delimiter).next().unwrap_or(scheme);
    const WEB: &[&str] = &["http", "https", "ssh", "git", "ftp", "ftps", "ws", "wss"];
    let is_web = WEB.iter().any(|it| scheme.ends_with(it));
    (!is_web && !path.starts_with(['/', '~']) && !path.starts_with("..")).then_some(path)
}

/// Returns the path in an address as sqlite takes it: `file:x.db?mode=ro` → `x.db`, `file:///x.db` → `/x.db`.
pub(super) fn path_of_file_uri(word: &Word) -> Option<Word> {
    let (Word::Literal(text) | Word::Glob(text)) = word else { return None };
    let rest = text.strip_prefix("file:")?;
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let path = match rest.strip_prefix("//") {
        Some(address) => &address[address.find('/')?..],
        None => rest,
    };
    let path = percent_decode(path).unwrap_or_else(|| path.to_string());
    (!path.is_empty() && path != ":memory:").then_some(Word::Literal(path))
}

/// Whether `//` and a host follow here, after a scheme like `https:`.
fn host_follows(text: &str, at: usize) -> bool {
    let scheme = text[..at].strip_suffix(':');
    text[at..].starts_with("//")
        && !text[at..].starts_with("///")
        && scheme.is_some_and(|it| it.ends_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Returns the absolute path after a scheme like `file:`. In `file://host/x` that is `/host/x`; [`path_after_host`]
/// returns `/x`.
fn path_in_address(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let schemes = ["file:", "fileb:", "unix:", "sqlite:"].into_iter();
    let rest =
        schemes.filter_map(|scheme| Some(&text[lower.find(scheme)? + scheme.len()..])).next()?;
    let path = rest.trim_start_matches('/');
    (path.len() < rest.len()).then(|| &rest[rest.len() - path.len() - 1..])
}

/// Returns the path after the host in an address like `file://localhost/x`.
fn path_after_host(text: &str) -> Option<&str> {
    let at = text.to_ascii_lowercase().find("file://")? + "file://".len();
    let path = text.get(at..)?;
    path.find('/').filter(|slash| *slash > 0).map(|slash| &path[slash..])
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
        check("a b/c", &["a", "a b/c", "b/c"]);
        check("k=b/c h=x", &["b/c", "b/c h", "b/c h=x", "h", "k", "k=b/c h=x", "x"]);
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
