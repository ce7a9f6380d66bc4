//! Recognizes paths with characters that do not belong to a path: quotes, a Markdown link, a scheme or escapes.

use unicode_normalization::UnicodeNormalization;

use crate::visible::is_invisible;

/// A path after its oddities were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedPath {
    pub path: String,
    /// The first oddity that was removed.
    pub oddity: PathOddity,
}

/// What is odd about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathOddity {
    /// White space around the path or one of its names, or line breaks in it.
    WhiteSpace,
    /// Quotes, backticks, brackets or asterisks around the path, or `@` before it.
    Decoration,
    /// A Markdown link.
    Link,
    /// A label or a comment mark before the path: `File: src/a.rs`.
    Label,
    /// An address: `file:///src/a.rs`.
    Address,
    /// Backslashes between the names.
    Backslashes,
    /// Text after the path: a line number, a remark or punctuation.
    Suffix,
    /// Characters that are not visible.
    Invisible,
    /// Part of a tool call.
    ToolCall,
}

/// If a text is not a plausible path for a new file, returns the path that it probably means: `a.rs` for `"a.rs"`.
/// Returns `None` if the text is plausible.
pub fn cleaned_path(text: &str) -> Option<CleanedPath> {
    let mut path = text.to_owned();
    let mut oddity = None;
    // Oddities can be combined, as in "`src\\a.rs`".
    for _ in 0..MAX_STEPS {
        let Some((cleaned, removed)) =
            REMOVAL_STEPS.iter().find_map(|(step, oddity)| Some((step(&path)?, *oddity)))
        else {
            break;
        };
        oddity.get_or_insert(removed);
        path = cleaned;
    }
    oddity.map(|oddity| CleanedPath { path, oddity })
}

/// Maximum number of oddities that are removed from one path.
const MAX_STEPS: usize = 6;

/// Removes one kind of oddity. Returns `None` if the path does not have it.
type RemovalStep = fn(&str) -> Option<String>;

const REMOVAL_STEPS: &[(RemovalStep, PathOddity)] = &[
    (without_tags, PathOddity::ToolCall),
    (without_host, PathOddity::Address),
    (trimmed, PathOddity::WhiteSpace),
    (without_link, PathOddity::Link),
    (without_quotes, PathOddity::Decoration),
    (without_label, PathOddity::Label),
    (without_scheme, PathOddity::Address),
    (with_slashes, PathOddity::Backslashes),
    (without_suffix, PathOddity::Suffix),
    (visible, PathOddity::Invisible),
];

fn if_changed(path: &str, cleaned: &str) -> Option<String> {
    (cleaned != path && !cleaned.is_empty()).then(|| cleaned.to_owned())
}

fn without_tags(path: &str) -> Option<String> {
    let end = path.find("</").filter(|end| path[*end..].contains('>') && *end > 0)?;
    if_changed(path, path[..end].trim())
}

/// Removes white space at either end of the path and of its names.
fn trimmed(path: &str) -> Option<String> {
    let is_blank = |character: char| character.is_whitespace();
    let names: Vec<&str> = path.split('/').map(|name| name.trim_matches(is_blank)).collect();
    if_changed(path, &names.join("/"))
}

/// Returns the target of a Markdown link, or its text if it has no target.
fn without_link(path: &str) -> Option<String> {
    let (text, target) = path.strip_prefix('[')?.strip_suffix(')')?.split_once("](")?;
    if_changed(path, if target.is_empty() { text } else { target })
}

/// Removes quotes, backticks and similar characters around the path, or at one end of it.
fn without_quotes(path: &str) -> Option<String> {
    const PAIRS: [(char, char); 7] = [
        ('`', '`'),
        ('"', '"'),
        ('\'', '\''),
        ('\u{201c}', '\u{201d}'),
        ('\u{2018}', '\u{2019}'),
        ('<', '>'),
        ('*', '*'),
    ];
    for (open, close) in PAIRS {
        let inner = path.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = inner {
            return if_changed(path, inner.trim_matches([open, close]));
        }
    }
    if_changed(path, path.trim_matches(['`', '"', '\u{201c}', '\u{201d}']))
}

/// Removes a label or a comment mark before the path.
fn without_label(path: &str) -> Option<String> {
    const LABELS: [&str; 5] = ["file", "file path", "filename", "filepath", "path"];
    let plain = match path.split_once(": ") {
        Some((label, plain)) if LABELS.contains(&label.to_ascii_lowercase().as_str()) => plain,
        _ => ["# ", "## ", "### "].iter().find_map(|mark| path.strip_prefix(mark))?,
    };
    if_changed(path, plain.trim())
}

/// Returns the path of a file in a repository on the web, or of an address like `vscode://file/src/a.rs`.
fn without_host(path: &str) -> Option<String> {
    let (scheme, rest) = path.split_once("://")?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if scheme.is_empty() || scheme.eq_ignore_ascii_case("file") || !scheme.bytes().all(is_scheme) {
        return None;
    }
    let (host, names) = rest.split_once('/')?;
    // As in `github.com/owner/name/blob/branch/src/a.rs`.
    let in_repository = ["blob/", "raw/", "tree/", "edit/"].iter().find_map(|kind| {
        let (_, names) = names.split_once(&format!("/{kind}"))?;
        names.split_once('/').map(|(_branch, names)| names)
    });
    let raw = (host == "raw.githubusercontent.com").then(|| names.splitn(4, '/').nth(3)).flatten();
    let names = in_repository.or(raw).unwrap_or(names);
    if_changed(path, names.split(['?', '#']).next().unwrap_or(names))
}

/// Returns the path of a `file:` address.
fn without_scheme(path: &str) -> Option<String> {
    let rest = path.strip_prefix("file:").or_else(|| path.strip_prefix("FILE:"))?;
    let rest = rest.strip_prefix("//localhost").unwrap_or(rest);
    let slashes = rest.len() - rest.trim_start_matches('/').len();
    // In `file://src/a.rs` the host is missing: `src` is a folder.
    if_changed(path, if slashes == 2 { &rest[2..] } else { &rest[slashes.saturating_sub(1)..] })
}

/// Replaces backslashes with slashes. A control character was once a backslash and a letter: the `\n` of `src\new.rs`
/// was decoded to a line break.
fn with_slashes(path: &str) -> Option<String> {
    const CONTROLS: [(char, &str); 7] = [
        ('\n', "/n"),
        ('\t', "/t"),
        ('\r', "/r"),
        ('\u{8}', "/b"),
        ('\u{c}', "/f"),
        ('\u{7}', "/a"),
        ('\u{b}', "/v"),
    ];
    if !path.contains(|character| {
        character == '\\' || CONTROLS.iter().any(|(control, _)| *control == character)
    }) {
        return None;
    }
    let mut with_slashes = path.replace("\\\\", "/").replace('\\', "/");
    for (control, text) in CONTROLS {
        with_slashes = with_slashes.replace(control, text);
    }
    // A drive letter has no meaning here.
    let drive = with_slashes.as_bytes();
    let without_drive = match drive {
        [letter, b':', b'/', ..] if letter.is_ascii_alphabetic() => &with_slashes[3..],
        _ => with_slashes.as_str(),
    };
    if_changed(path, without_drive)
}

/// Removes a line number, a remark in parentheses, asterisks or punctuation after a name with an extension.
fn without_suffix(path: &str) -> Option<String> {
    let has_extension = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=8).contains(&extension.len())
                && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let without_stars = path.trim_end_matches('*').trim_end();
    if without_stars != path && path.ends_with("**") {
        return if_changed(path, without_stars);
    }
    let without_punctuation =
        path.trim_end_matches([',', ';', ':', '.', '!', '\u{2026}', '\'', '"', '`']);
    if without_punctuation != path && has_extension(without_punctuation) && !path.ends_with("..") {
        return if_changed(path, without_punctuation);
    }
    // As in addresses: `a.rs#L10-L20`.
    if let Some((before, lines)) = path.rsplit_once("#L")
        && lines.starts_with(|first: char| first.is_ascii_digit())
        && lines.bytes().all(|byte| byte.is_ascii_digit() || b"-LC".contains(&byte))
    {
        return has_extension(before).then(|| before.to_owned());
    }
    let digits = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    if let Some((before, number)) = path.rsplit_once(':')
        && digits(number)
    {
        let before = before
            .rsplit_once(':')
            .filter(|(_, number)| digits(number))
            .map_or(before, |(before, _)| before);
        return has_extension(before).then(|| before.to_owned());
    }
    let (before, remark) = path.strip_suffix(')')?.rsplit_once(" (")?;
    let is_remark = ["new", "create", "created", "modified", "updated", "deleted", "existing"]
        .iter()
        .any(|word| remark.to_ascii_lowercase().starts_with(word));
    (is_remark && has_extension(before)).then(|| before.to_owned())
}

/// Replaces typographic spaces and removes invisible characters.
fn visible(path: &str) -> Option<String> {
    let visible_text: String = path
        .chars()
        .map(|character| if character.is_whitespace() { ' ' } else { character })
        .filter(|character| !is_invisible(*character))
        .collect();
    if_changed(path, visible_text.trim())
}

/// Returns a form of a name for finding similar names: kinds of spaces, quotes and dashes are the same, and accents are
/// dropped. Unlike [`normalized_spelling`], it does not tell `é` from `e`.
pub fn folded_name(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '\u{300}'..='\u{36f}'))
        .filter(|character| character.is_whitespace() || !is_invisible(*character))
        .map(|character| match character {
            '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
            '\u{201c}'..='\u{201f}' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            character if character.is_whitespace() => ' ',
            character => base_letter(character),
        })
        .collect()
}

/// Returns the normalized spelling of a name: composed accents, ordinary spaces, straight quotes. Names with the same
/// normalized spelling look the same.
pub fn normalized_spelling(name: &str) -> String {
    name.nfc()
        .map(|character| match character {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            character => character,
        })
        .collect()
}

/// Whether another name can have the same normalized spelling.
pub fn has_other_spellings(name: &str) -> bool {
    !name.is_ascii() || name.contains([' ', '\'', '"'])
}

/// Returns the letter below the accent of a common Latin character.
fn base_letter(character: char) -> char {
    const LETTERS: [(&str, char); 14] = [
        ("àáâãäåāăą", 'a'),
        ("ÀÁÂÃÄÅĀĂĄ", 'A'),
        ("çćĉċč", 'c'),
        ("ÇĆĈĊČ", 'C'),
        ("èéêëēĕėęě", 'e'),
        ("ÈÉÊËĒĔĖĘĚ", 'E'),
        ("ìíîïĩīĭį", 'i'),
        ("ÌÍÎÏĨĪĬĮ", 'I'),
        ("ñńņň", 'n'),
        ("òóôõöōŏő", 'o'),
        ("ÒÓÔÕÖŌŎŐ", 'O'),
        ("ùúûüũūŭůűų", 'u'),
        ("ÙÚÛÜŨŪŬŮŰŲ", 'U'),
        ("ýÿ", 'y'),
    ];
    if character.is_ascii() {
        return character;
    }
    LETTERS
        .iter()
        .find(|(accented, _)| accented.contains(character))
        .map_or(character, |(_, base)| *base)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{cleaned_path, folded_name, has_other_spellings, normalized_spelling};

    #[test]
    fn odd_paths_are_cleaned() {
        for (odd, cleaned) in [
            ("`src/a.rs`", "src/a.rs"),
            ("\"src/a.rs\"", "src/a.rs"),
            ("'a.py'", "a.py"),
            ("\u{201c}a.py\u{201d}", "a.py"),
            ("src/a.rs`", "src/a.rs"),
            ("a.txt ", "a.txt"),
            ("a.txt\n", "a.txt"),
            (" src/a.txt", "src/a.txt"),
            ("src /a.txt", "src/a.txt"),
            ("src\\a.txt", "src/a.txt"),
            ("src\n.txt", "src/n.txt"),
            ("src\\\\a.txt", "src/a.txt"),
            ("C:\\proj\\n.txt", "proj/n.txt"),
            ("file:/srv/a.txt", "/srv/a.txt"),
            ("file:///srv/a.txt", "/srv/a.txt"),
            ("file://src/a.txt", "src/a.txt"),
            ("[n.txt](n.txt)", "n.txt"),
            ("[n.txt](src/n.txt)", "src/n.txt"),
            ("<src/a.rs>", "src/a.rs"),
            ("**src/a.rs**", "src/a.rs"),
            ("new.rs ***", "new.rs"),
            ("src/a.rs:12", "src/a.rs"),
            ("src/a.rs:12:5", "src/a.rs"),
            ("src/a.rs,", "src/a.rs"),
            ("src/a.rs (new file)", "src/a.rs"),
            ("a.rs</filePath>", "a.rs"),
            ("a\u{a0}b.txt", "a b.txt"),
            ("a\u{200b}.txt", "a.txt"),
            ("File: src/a.md", "src/a.md"),
            ("path: src/a.yml", "src/a.yml"),
            ("**File: `src/a.md`**", "src/a.md"),
            ("# src/a.py", "src/a.py"),
            ("src/a.py',", "src/a.py"),
            ("src/a.py\u{2026}", "src/a.py"),
            ("src/a.py#L1-L5", "src/a.py"),
            ("src/a.py#L10", "src/a.py"),
            ("src/a.py#L10C2-L20C3", "src/a.py"),
            ("https://github.com/a/b/blob/main/src/a.py", "src/a.py"),
            ("https://github.com/a/b/blob/main/src/a.py#L3", "src/a.py"),
            ("https://gitlab.com/a/b/-/blob/main/src/a.py?ref=x", "src/a.py"),
            ("https://raw.githubusercontent.com/a/b/main/src/a.py", "src/a.py"),
            ("vscode://file/src/a.py", "src/a.py"),
            ("vscode://file/src/a.py:12:3", "src/a.py"),
            ("`src\\a.rs` ", "src/a.rs"),
        ] {
            assert_eq!(cleaned_path(odd).map(|it| it.path).as_deref(), Some(cleaned), "{odd:?}");
        }
    }

    #[test]
    fn ordinary_names_are_plausible() {
        for plausible in [
            "src/main.rs",
            "app/[slug]/page.tsx",
            "app/(group)/@modal/page.tsx",
            "routes/$id.tsx",
            "[...all].vue",
            "+page.svelte",
            "my file.md",
            "don't.txt",
            "report (1).txt",
            "Makefile",
            ".env.example",
            "a..b",
            "日本語.md",
            "naïve.txt",
            "#scratch#",
            "a&b=c.txt",
            "C#/x.cs",
            "{{cookiecutter.name}}/x.py",
            "./a.rs",
            "../a.rs",
            "/srv/a.rs",
            "~/notes.md",
            "v1.2.3",
            "12:30.log",
            "foo...",
            "a*b.txt",
            "[slug].tsx",
            "$id.ts",
            "C++.md",
            "#notes.md",
            "a#b.txt",
            "a#L.txt",
            "notes#L2",
            "profile: a.txt",
            "File.md",
            "path/file: x",
            "a.tar.gz",
            "o'clock.md",
            "http/a.rs",
        ] {
            assert_eq!(cleaned_path(plausible), None, "{plausible:?}");
        }
    }

    #[test]
    fn look_alike_names_are_folded() {
        for (one, other) in [
            ("a\u{a0}b", "a b"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("it\u{2019}s", "it's"),
            ("a\u{2013}b", "a-b"),
        ] {
            assert_eq!(folded_name(one), folded_name(other));
        }
        assert_ne!(folded_name("日本"), folded_name("日木"));
    }

    #[test]
    fn only_names_that_look_the_same_have_the_same_normalized_spelling() {
        for (one, other) in [
            ("caf\u{e9}.txt", "cafe\u{301}.txt"),
            ("\u{ac00}", "\u{1100}\u{1161}"),
            ("10.30\u{202f}AM.png", "10.30 AM.png"),
            ("a\u{a0}b", "a b"),
            ("it\u{2019}s", "it's"),
            ("\u{201c}a\u{201d}", "\"a\""),
        ] {
            assert_eq!(normalized_spelling(one), normalized_spelling(other));
            assert!(has_other_spellings(one) && has_other_spellings(other));
        }
        for (one, other) in
            [("café", "cafe"), ("a–b", "a-b"), ("A", "a"), ("ﬁ", "fi"), ("a  b", "a b")]
        {
            assert_ne!(normalized_spelling(one), normalized_spelling(other));
        }
    }

    proptest! {
        #[test]
        fn has_other_spellings_is_true_for_names_with_the_same_normalized_spelling(name in "[a-c'\" ]{0,3}", other in "\\PC{0,3}") {
            prop_assert_eq!(normalized_spelling(&name), name.clone());
            if normalized_spelling(&other) == name && other != name {
                prop_assert!(has_other_spellings(&name) && has_other_spellings(&other));
            }
        }

        #[test]
        fn a_cleaned_path_is_not_empty(odd in "[\\PC\n\t]{1,20}") {
            if let Some(cleaned) = cleaned_path(&odd) {
                prop_assert!(!cleaned.path.is_empty());
                prop_assert_ne!(cleaned.path, odd);
            }
        }
    }
}
