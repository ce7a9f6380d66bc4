//! The names of files and directories that programs derive from a URL: `wget http://h/a/x.tgz` writes `x.tgz`.

use super::arg_role::ArgRole;
use super::args::Argument;
use super::commands::Invocation;
use super::state::ShellState;
use super::walk::{Walker, unknown};
use super::{AccessKind, Risk, RiskKind, Word};

/// Flags whose value is the directory for downloads.
const DIR_FLAGS: &[&str] = &["-P", "--directory-prefix", "--output-dir"];

/// Records what a command writes if its arguments name no output. For `git clone`, this is the directory that git
/// derives from the address. For other programs, it is `default`.
pub(super) fn record_default_output(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    default: &str,
    state: &ShellState,
) {
    let remote = call.args.arguments.iter().find(|it| it.role == ArgRole::Remote);
    let word = match remote.map(|it| &it.value) {
        Some(Word::Literal(address)) if call.args.spec.traits.clones => {
            Word::Literal(cloned_name(address).unwrap_or_else(|| default.to_string()))
        }
        Some(word) if call.args.spec.traits.clones => unknown(word.shown()),
        Some(_) | None => Word::Literal(default.to_string()),
    };
    let kind = if call.args.writes_tree() { AccessKind::WriteTree } else { AccessKind::Write };
    walker.record_access(&word, kind, state, Some(call.run));
}

/// Records the files that `wget` or `curl -O` writes. Their names are derived from the URLs.
pub(super) fn record_downloads(
    walker: &mut Walker<'_>,
    program: &str,
    call: &Invocation<'_>,
    state: &ShellState,
) {
    let arguments = &call.args.arguments;
    let is_dir = |it: &&Argument| it.flag.as_deref().is_some_and(|it| DIR_FLAGS.contains(&it));
    let dir = arguments.iter().find(is_dir).map_or(Some("."), |it| it.value.literal());
    let addresses: Vec<&Argument> = arguments.iter().filter(|it| it.role == ArgRole::Url).collect();
    let write = |walker: &mut Walker<'_>, word: &Word| {
        walker.record_access(word, AccessKind::Write, state, Some(call.run));
    };
    // With the flags in the table, wget writes all files into one folder. Others may make it create folders named after
    // the URL.
    let unlisted = |risk: &Risk| risk.kind == RiskKind::Unlisted;
    let has_unlisted_flag =
        walker.script.runs.get(call.run).is_some_and(|run| run.risks.iter().any(unlisted));
    if has_unlisted_flag && program == "wget" {
        let folder = dir.map_or_else(|| unknown(""), |dir| Word::Literal(dir.to_string()));
        for kind in [AccessKind::MaybeChangeBelow, AccessKind::FlagOutput] {
            walker.record_access(&folder, kind, state, Some(call.run));
        }
    }
    if addresses.is_empty() {
        write(walker, &Word::Literal(dir.unwrap_or(".").to_string()));
    }
    for address in addresses {
        let shown = address.value.shown();
        let names = address.value.literal().and_then(|address| match program {
            "wget" if has_unlisted_flag => Some(wget_paths(address)),
            "wget" => Some(wget_file_names(address)),
            _ => curl_file_names(address),
        });
        match (dir, names) {
            (Some(dir), Some(names)) => {
                for name in names {
                    let path = if dir == "." { name } else { format!("{dir}/{name}") };
                    write(walker, &Word::Literal(path));
                }
            }
            (None, _) | (_, None) => write(walker, &unknown(shown)),
        }
    }
}

/// Returns the directory that `git clone` creates: `git@h:o/r.git` → `r`.
fn cloned_name(address: &str) -> Option<String> {
    let path = address.split_once("://").map_or(address, |(_, path)| path);
    let path = path.trim_end().trim_end_matches('/');
    let path = path.strip_suffix("/.git").unwrap_or(path).trim_end_matches('/');
    let name = path.rsplit(['/', ':']).next().unwrap_or(path);
    let name = name.strip_suffix(".git").or_else(|| name.strip_suffix(".bundle")).unwrap_or(name);
    (!name.is_empty() && name != "." && name != "..").then(|| name.to_string())
}

/// Returns the names under which wget may save a file, with and without percent-decoding: `http://h/a%20b?c` →
/// `a%20b?c`, `a b?c`.
fn wget_file_names(address: &str) -> Vec<String> {
    let without_fragment = address.split('#').next().unwrap_or(address);
    let (path, query) = match without_fragment.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (without_fragment, String::new()),
    };
    let name = match last_name(path) {
        "" => "index.html",
        name => name,
    };
    with_decoded(format!("{name}{query}"))
}

/// Returns the paths under which wget may save a file if it creates folders: with the host or without, and with or
/// without the first folders of the URL, like `h/a/x`, `a/x` and `x` for `http://h/a/x`.
fn wget_paths(address: &str) -> Vec<String> {
    const MAX_FOLDERS: usize = 16;
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let path = address.split(['#', '?']).next().unwrap_or(address);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folders: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    let mut paths = Vec::new();
    for name in wget_file_names(address) {
        for first in 0..=folders.len().min(MAX_FOLDERS) {
            let path = folders[first..].iter().copied().chain([name.as_str()]);
            let path = path.collect::<Vec<_>>().join("/");
            let decoded = percent_decode(&path).filter(|it| *it != path);
            paths.extend(decoded);
            paths.push(path);
        }
    }
    paths
}

/// Returns the names under which `curl -O` may save a file. Returns `None` for a URL with a pattern like `{a,b}`, which
/// stands for several URLs.
fn curl_file_names(address: &str) -> Option<Vec<String>> {
    if address.contains(['{', '}', '[', ']']) {
        return None;
    }
    let path = address.split(['?', '#']).next().unwrap_or(address);
    Some(last_name(path)).filter(|it| !it.is_empty()).map(|it| with_decoded(it.to_string()))
}

/// Returns the last segment of the path of a URL; empty if the URL has no path or ends with a slash.
fn last_name(address: &str) -> &str {
    let path = address.split_once("://").map_or(address, |(_, path)| path);
    path.split_once('/').map_or("", |(_, path)| path.rsplit('/').next().unwrap_or(path))
}

/// Returns a name, and its percent-decoded form if that is different.
fn with_decoded(name: String) -> Vec<String> {
    let decoded = percent_decode(&name).filter(|it| *it != name && !it.contains('/'));
    std::iter::once(name).chain(decoded).collect()
}

/// Decodes `%2e` to `.` and so on. Returns `None` if the result is not valid UTF-8.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let code = code.filter(|it| it.bytes().all(|c| c.is_ascii_hexdigit()));
        match code.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            Some(_) | None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the name of the folder that a command like `svn checkout` creates from a URL.
pub(super) fn checkout_name(address: &str) -> Option<String> {
    const SCHEMES: [&str; 6] = ["http", "https", "ssh", "git", "svn", "svn+ssh"];
    let (scheme, _) = address.split_once("://")?;
    SCHEMES.contains(&scheme).then(|| name_in_address(address)).flatten()
}

/// Returns the percent-decoded name of the file that a program may create from a URL: `https://h/o/r.git` → `r`.
pub(super) fn name_in_address(text: &str) -> Option<String> {
    let (_, path) = text.split_once("://")?;
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let (_, path) = path.split_once('/')?;
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/.git").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    percent_decode(name.strip_suffix(".git").unwrap_or(name)).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_as_the_programs_do() {
        let wget = |address: &str| wget_file_names(address).pop().unwrap_or_default();
        assert_eq!(wget("http://h/a/x.tgz"), "x.tgz");
        assert_eq!(wget("http://h/%2emcp.json"), ".mcp.json");
        assert_eq!(wget("http://h/%2Emcp%2ejson"), ".mcp.json");
        assert_eq!(wget("http://h/.mcp.json#x"), ".mcp.json");
        assert_eq!(wget("http://h/x?y=1#z"), "x?y=1");
        assert_eq!(wget("http://h/a/"), "index.html");
        assert_eq!(wget("h/x"), "x");
        assert_eq!(wget("http://h"), "index.html");
        let curl = |address: &str| curl_file_names(address).and_then(|mut names| names.pop());
        assert_eq!(curl("http://h/.envrc?x#y").as_deref(), Some(".envrc"));
        assert_eq!(curl("http://h/.env#rc").as_deref(), Some(".env"));
        assert_eq!(curl("http://h/{a,b}"), None);
        assert_eq!(curl("http://h/"), None);
        for (address, name) in [
            ("http://h/.opencode/.git", ".opencode"),
            ("./tmpl/.vscode", ".vscode"),
            ("git@h:o/.vscode.git", ".vscode"),
            ("h:x", "x"),
            ("https://h/o/r.git/", "r"),
            ("o/r", "r"),
            ("/srv/x.bundle", "x"),
        ] {
            assert_eq!(cloned_name(address).as_deref(), Some(name), "{address}");
        }
        assert_eq!(cloned_name("."), None);
    }

    #[test]
    fn text_is_decoded() {
        assert_eq!(percent_decode("a%2Fb%zz%").as_deref(), Some("a/b%zz%"));
        assert_eq!(percent_decode("%ff"), None);
        assert_eq!(name_in_address("http://h/a/.mcp.json?x").as_deref(), Some(".mcp.json"));
        assert_eq!(name_in_address("https://h"), None);
    }
}
