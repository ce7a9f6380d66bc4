//! Values that are harmless to their program.

use super::Word;
use super::grammar::is_name;
use super::names::{self, NameGroup};

/// Whether a setting only chooses how something is printed, or who is named.
pub(super) fn is_harmless_setting(text: &str) -> bool {
    let Some((key, value)) = text.split_once('=') else { return false };
    let key = key.to_ascii_lowercase();
    let section = key.split_inclusive('.').next().unwrap_or("");
    let is_plain = |c: char| c.is_alphanumeric() || " -_.@+".contains(c);
    let chooses = names::is(NameGroup::Setting, &key) || names::is(NameGroup::Setting, section);
    let is_off = matches!(value, "" | "cat" | "false" | "no" | "off" | "0" | "never");
    value.chars().all(is_plain) && (chooses || is_off && names::is(NameGroup::SettingOff, &key))
}

/// Whether an option of ssh's only says how long to wait, and what to print.
pub(super) fn is_harmless_option(text: &str) -> bool {
    let Some((key, value)) = text.split_once('=') else { return false };
    let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric());
    is_plain && names::is(NameGroup::SshOption, &key.to_ascii_lowercase())
}

/// Whether `make` takes this for a variable with a number: that names no program. But to some variables it is a file.
pub(super) fn is_plain_variable((name, value): (&str, &str)) -> bool {
    // `NAME:=1`, `NAME += 1`.
    let name = name.trim_end_matches([':', '+', '?']).trim();
    let is_own = name.starts_with("MAKE") || matches!(name, "GNUMAKEFLAGS" | "SHELL" | "VPATH");
    let is_number = value.starts_with(|c: char| c.is_ascii_digit())
        && value.chars().all(|c| c.is_ascii_digit() || c == '.');
    !is_own && is_name(name) && is_number
}

/// SQL that reads and writes the database only: commands of the client and of the server's machine are left out.
pub(super) fn is_query(text: &str) -> bool {
    const REACHING: &[&str] =
        &["program", "system", "source", "outfile", "infile", "load", "copy", "pager", "edit"];
    let lower = text.to_lowercase();
    !lower.contains(['\\', '!']) && !REACHING.iter().any(|word| lower.contains(word))
}

/// An address on the network: nothing that `curl` would take for a file.
pub(super) fn is_url(word: &Word) -> bool {
    let start = word.prefix();
    let whole = word.literal().is_some();
    let lower = start.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://")) {
        return whole || rest.contains('/') || rest.contains(':') || !rest.is_empty();
    }
    let host_end = start.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'));
    match host_end.map(|end| (&start[..end], &start[end..])) {
        None => whole && !start.is_empty(),
        Some((host, rest)) if !host.is_empty() => {
            rest.starts_with(['/', '?'])
                || rest
                    .strip_prefix(':')
                    .is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
        }
        Some(_) => false,
    }
}

/// Text that is sent as it is: an `@` at its beginning would name a file.
pub(super) fn is_data(word: &Word) -> bool {
    let start = word.prefix();
    !start.starts_with('@') && (word.literal().is_some() || !start.is_empty())
}

/// A field of a form with its value: no file, and nothing of a file after a semicolon.
pub(super) fn is_plain_field(field: &str) -> bool {
    let value = field.split_once('=').map(|(_, value)| value);
    value.is_some_and(|it| !it.starts_with(['@', '<', '(']) && !it.contains(';'))
}
