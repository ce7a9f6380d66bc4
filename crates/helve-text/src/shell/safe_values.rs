//! Whether an argument value is harmless when it is passed to its program.

use super::Word;
use super::grammar::is_name;
use super::names::{self, NameGroup};

/// Whether a git setting only changes how something is printed, or the name of the author.
pub(super) fn is_harmless_setting(text: &str) -> bool {
    let Some((key, value)) = text.split_once('=') else { return false };
    let key = key.to_ascii_lowercase();
    let section = key.split_inclusive('.').next().unwrap_or("");
    let is_plain = |c: char| c.is_alphanumeric() || " -_.@+".contains(c);
    let is_listed = names::contains(NameGroup::GitSetting, &key)
        || names::contains(NameGroup::GitSetting, section);
    let is_off = matches!(value, "" | "cat" | "false" | "no" | "off" | "0" | "never");
    value.chars().all(is_plain)
        && (is_listed || is_off && names::contains(NameGroup::GitSettingOff, &key))
}

/// Whether an ssh option only changes timeouts or messages.
pub(super) fn is_harmless_option(text: &str) -> bool {
    let Some((key, value)) = text.split_once('=') else { return false };
    let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric());
    is_plain && names::contains(NameGroup::SshOption, &key.to_ascii_lowercase())
}

/// Whether an operand of make is a target, or sets a variable to a number, which cannot name a program.
pub(super) fn is_make_goal(word: &Word) -> bool {
    word.literal().is_some_and(|it| it.split_once('=').is_none_or(is_numeric_variable))
}

fn is_numeric_variable((name, value): (&str, &str)) -> bool {
    // `NAME:=1`, `NAME += 1`.
    let name = name.trim_end_matches([':', '+', '?']).trim();
    let is_special = name.starts_with("MAKE") || matches!(name, "GNUMAKEFLAGS" | "SHELL" | "VPATH");
    let is_number = value.starts_with(|c: char| c.is_ascii_digit())
        && value.chars().all(|c| c.is_ascii_digit() || c == '.');
    !is_special && is_name(name) && is_number
}

/// Whether SQL only accesses the database, and runs no commands in the client or on the server's machine.
pub(super) fn is_safe_query(text: &str) -> bool {
    const UNSAFE_WORDS: &[&str] = &[
        "program",
        "system",
        "source",
        "outfile",
        "infile",
        "load",
        "copy",
        "pager",
        "edit",
        "dumpfile",
        "readfile",
        "writefile",
        "pg_read_",
        "pg_ls_",
        "lo_import",
        "lo_export",
        "attach ",
        "vacuum",
    ];
    let lower = text.to_lowercase();
    let has_command =
        |it: &str| it.trim_start().starts_with('.') || it.trim_start().starts_with("tee");
    !lower.contains(['\\', '!'])
        && !lower.split(['\n', ';']).any(has_command)
        && !UNSAFE_WORDS.iter().any(|word| lower.contains(word))
}

/// Whether a word is a network address that `curl` cannot treat as a file.
pub(super) fn is_safe_url(word: &Word) -> bool {
    let start = word.prefix();
    let is_complete = word.literal().is_some();
    let lower = start.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://")) {
        return is_complete || !rest.is_empty();
    }
    let host_end = start.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'));
    match host_end.map(|end| (&start[..end], &start[end..])) {
        None => is_complete && !start.is_empty(),
        Some((host, rest)) if !host.is_empty() => {
            let starts_with_digit = |it: &str| it.starts_with(|c: char| c.is_ascii_digit());
            rest.starts_with(['/', '?']) || rest.strip_prefix(':').is_some_and(starts_with_digit)
        }
        Some(_) => false,
    }
}

/// Whether `curl -d` sends the text itself. After a leading `@` it would send a file.
pub(super) fn is_safe_data(word: &Word) -> bool {
    let start = word.prefix();
    !start.starts_with('@') && (word.literal().is_some() || !start.is_empty())
}

/// Whether `curl --data-urlencode` sends the text itself. After an `@` without a `=` before it, it would send a file.
pub(super) fn is_encoded_text(word: &Word) -> bool {
    let start = word.prefix();
    match start.find(['@', '=']) {
        Some(sign) => start[sign..].starts_with('='),
        None => word.literal().is_some(),
    }
}

/// Whether `curl -b` sends the text itself. Without a `=` it would read a file.
pub(super) fn is_cookie_text(word: &Word) -> bool {
    !word.prefix().starts_with('@') && word.prefix().contains('=')
}

/// Whether a form field of `curl` has a plain value, and not the contents of a file.
pub(super) fn is_plain_field(word: &Word) -> bool {
    let value = word.literal().and_then(|field| Some(field.split_once('=')?.1));
    value.is_some_and(|it| !it.starts_with(['@', '<', '(']) && !it.contains(';'))
}

/// Whether a text is fully known and does not name a file with a leading `@`.
pub(super) fn is_literal_text(word: &Word) -> bool {
    word.literal().is_some_and(|it| !it.starts_with('@'))
}

/// Whether a text is fully known and has no control characters.
pub(super) fn is_printable(word: &Word) -> bool {
    word.literal().is_some_and(|it| !it.contains(char::is_control))
}

/// Whether a text is a number or a range of numbers, like `1-5`.
pub(super) fn is_count(word: &Word) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+');
    word.literal().is_some_and(|it| it.chars().all(is_digit))
}

/// Whether a word cannot be the path of a file or module.
pub(super) fn is_bare_name(word: &Word) -> bool {
    word.literal().is_some_and(|it| !it.contains(['/', '.']))
}

/// Whether a word is a name without a slash.
pub(super) fn is_name_without_slash(word: &Word) -> bool {
    word.literal().is_some_and(|it| !it.contains('/'))
}

/// Whether git can sort by this key without checking signatures, for which it runs another program.
pub(super) fn is_safe_sort_key(word: &Word) -> bool {
    word.literal().is_some_and(|it| !it.contains("signature"))
}

/// Whether a git remote cannot make git run another program.
pub(super) fn is_safe_remote(word: &Word) -> bool {
    // A host that starts with a dash would be a flag of the program that connects.
    let is_unsafe = |it: &str| ["::", "://-", "@-"].iter().any(|sign| it.contains(sign));
    word.literal().is_some_and(|it| !is_unsafe(it) && !it.starts_with("file:"))
}

/// Whether a word is the name of a configured remote, and not an address.
pub(super) fn is_remote_name(word: &Word) -> bool {
    word.literal().is_some_and(|it| !it.contains([':', '/', '.', '@']))
}

/// Whether flags for Go's linker only strip symbols or set a variable: `-s -w -X main.version=1`.
pub(super) fn are_harmless_linker_flags(text: &str) -> bool {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./=:+-".contains(c);
        let is_variable = |it: &str| it.contains('=') && it.chars().all(is_plain);
        let is_harmless = match word {
            "-s" | "-w" => true,
            "-X" => words.next().is_some_and(is_variable),
            _ => false,
        };
        if !is_harmless {
            return false;
        }
    }
    true
}

/// Whether a word is a git revision rather than a path: `HEAD~2`, a commit hash. A word with the folder `..` is a path:
/// no name of a branch begins or ends with a slash, and `..` alone means the folder.
pub(super) fn is_plain_revision(text: &str) -> bool {
    if text.split('/').any(|name| name == "..") {
        return false;
    }
    let is_hash = text.len() >= 7 && text.bytes().all(|c| c.is_ascii_hexdigit());
    let is_head = text == "HEAD" || text == "@" || text.ends_with("_HEAD");
    is_hash || is_head || text.contains(['~', '^', '@']) || text.contains("..")
}

/// Whether a refspec neither forces an update nor deletes a branch.
pub(super) fn is_nondestructive_refspec(word: &Word) -> bool {
    word.literal().is_some_and(|it| !it.starts_with(['+', ':']))
}

/// Whether a refspec names a branch. Otherwise git may treat it as the repository to fetch from.
pub(super) fn is_branch_refspec(word: &Word) -> bool {
    let is_address = |it: &str| it.contains("::") || it.starts_with(['/', '.', '~', '-']);
    !word.literal().is_some_and(is_address)
}
