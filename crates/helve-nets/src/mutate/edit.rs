//! Mutations of the white space, words and characters of a script.

use crate::random::Random;

pub(super) fn replace_spaces(text: &str, random: &mut Random) -> String {
    let blank = random.pick(&[
        "  ", "\t", " \t ", " \\\n ", "\\\n ", "${IFS}", "$IFS", "\u{a0}", "\u{2003}", "\u{b}",
        "\u{c}", "\r",
    ]);
    match random.below(3) {
        0 => text.replace(' ', blank),
        1 => text.replacen(' ', blank, 1),
        _ => replace_one(text, ' ', random, |_| blank.to_string()),
    }
}

/// Returns the words of a text with their offsets. A word consists of characters without a special meaning.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let mut all = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, is_word(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                all.push((from, &text[from..at]));
                start = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    all
}

/// Replaces a random word with what `change` makes of it.
pub(super) fn change_word(
    text: &str,
    random: &mut Random,
    change: impl FnOnce(&str, &mut Random) -> String,
) -> String {
    let words = words(text);
    if words.is_empty() {
        return text.to_string();
    }
    let (at, word) = words[random.below(words.len())];
    let changed = change(word, random);
    format!("{}{changed}{}", &text[..at], &text[at + word.len()..])
}

/// Splits a word at a random offset. Words are ASCII, so every offset is a character boundary.
pub(super) fn split_at_random<'a>(word: &'a str, random: &mut Random) -> (&'a str, &'a str) {
    word.split_at(random.below(word.len() + 1))
}

pub(super) fn quote_word(text: &str, random: &mut Random) -> String {
    change_word(text, random, |word, random| {
        let (one, two) = split_at_random(word, random);
        match random.below(9) {
            0 => format!("'{word}'"),
            1 => format!("\"{word}\""),
            2 => format!("\\{word}"),
            3 => format!("{one}''{two}"),
            4 => format!("{one}\"\"{two}"),
            5 => format!("{one}\"{two}\""),
            6 => format!("'{one}'\"{two}\""),
            7 => word.chars().flat_map(|c| ['\\', c]).collect(),
            _ => format!("$\"{word}\""),
        }
    })
}

pub(super) fn dollar_quote(text: &str, random: &mut Random) -> String {
    change_word(text, random, |word, random| {
        let (one, two) = split_at_random(word, random);
        let escaped = |form: usize| -> String {
            two.bytes()
                .map(|byte| match form {
                    0 => format!("\\x{byte:02x}"),
                    1 => format!("\\{byte:o}"),
                    2 => format!("\\u{byte:04x}"),
                    _ => format!("\\U{byte:08x}"),
                })
                .collect()
        };
        match random.below(6) {
            form @ 0..=3 => format!("{one}$'{}'", escaped(form)),
            4 => format!("{one}$'{two}'"),
            _ => format!("{one}$'{two}\\x00junk'"),
        }
    })
}

pub(super) fn insert_expansion(text: &str, random: &mut Random) -> String {
    change_word(text, random, |word, random| {
        let (one, two) = split_at_random(word, random);
        let between = random.pick(&[
            "$x", "${x}", "$@", "$*", "${x:-}", "$()", "``", "${x#a}", "${@}", "$((0))", "~",
            "{,}", "$1",
        ]);
        format!("{one}{between}{two}")
    })
}

pub(super) fn continue_line(text: &str, random: &mut Random) -> String {
    let at = random_boundary(text, random);
    format!("{}{}{}", &text[..at], random.pick(&["\\\n", "\n", "\\\r\n", "\\\n\\\n"]), &text[at..])
}

pub(super) fn add_braces(text: &str, random: &mut Random) -> String {
    change_word(text, random, |word, random| {
        let (one, two) = split_at_random(word, random);
        match random.below(5) {
            0 => format!("{{{word},}}"),
            1 => format!("{one}{{{two},}}"),
            2 => format!("{{,{word}}}"),
            3 => format!("{{{one},x}}{two}"),
            _ => format!("{one}{{{two},{two}}}"),
        }
    })
}

pub(super) fn add_glob(text: &str, random: &mut Random) -> String {
    change_word(text, random, |word, random| {
        let (one, two) = split_at_random(word, random);
        let rest = two.get(1..).unwrap_or("");
        match random.below(6) {
            0 => format!("{one}?{rest}"),
            1 => format!("{one}*"),
            2 => format!("{one}[{}]{rest}", two.get(..1).unwrap_or("a")),
            3 => format!("/usr/bin/{one}?{rest}"),
            4 => format!("/*/*/{word}"),
            _ => format!("./{word}*"),
        }
    })
}

pub(super) fn replace_with_look_alike(text: &str, random: &mut Random) -> String {
    let pairs = [
        (' ', "\u{2000}"),
        ('-', "\u{2013}"),
        ('-', "\u{2212}"),
        (';', "\u{37e}"),
        ('a', "\u{430}"),
        ('\'', "\u{2019}"),
        ('"', "\u{201d}"),
        ('/', "\u{2044}"),
        ('.', "\u{2024}"),
        ('o', "\u{43e}"),
        ('c', "\u{441}"),
        ('&', "\u{ff06}"),
        ('|', "\u{ff5c}"),
        ('$', "\u{ff04}"),
    ];
    let (c, look_alike) = pairs[random.below(pairs.len())];
    replace_one(text, c, random, |_| look_alike.to_string())
}

pub(super) fn insert_invisible(text: &str, random: &mut Random) -> String {
    let at = random_boundary(text, random);
    let inserted = random.pick(&[
        "\u{200b}",
        "\u{202e}",
        "\u{ad}",
        "\0",
        "\u{1b}[2K",
        "\u{8}",
        "\r",
        "\u{7f}",
        "\u{2028}",
        "\u{85}",
        "\u{feff}",
    ]);
    format!("{}{inserted}{}", &text[..at], &text[at..])
}

pub(super) fn drop_char(text: &str, random: &mut Random) -> String {
    let at = random_boundary(text, random);
    let mut rest = text[at..].chars();
    rest.next();
    format!("{}{}", &text[..at], rest.as_str())
}

pub(super) fn double_char(text: &str, random: &mut Random) -> String {
    let at = random_boundary(text, random);
    let c = text[at..].chars().next().map(String::from).unwrap_or_default();
    format!("{}{c}{}", &text[..at], &text[at..])
}

pub(super) fn swap_chars(text: &str, random: &mut Random) -> String {
    let mut all: Vec<char> = text.chars().collect();
    if all.len() > 1 {
        let at = random.below(all.len() - 1);
        all.swap(at, at + 1);
    }
    all.into_iter().collect()
}

pub(super) fn insert_metacharacter(text: &str, random: &mut Random) -> String {
    let at = random_boundary(text, random);
    let inserted = random.pick(&[
        "'", "\"", "`", "\\", "$", ";", "&", "|", "<", ">", "(", ")", "{", "}", "[", "]", "#", "*",
        "?", "~", "!", "=", "\n", " ", "$(", "${", "$((", "<<E\n", "<<<", ">|", "<>", ">&", "&>",
        "&>>", ">>", "<(", ">(", ";;", "&&", "||", "[[", "]]", "((", "))", "$'", "\\\n", "+=",
        "@(", "!(", "\\'", "\\\"", " #", "%",
    ]);
    format!("{}{inserted}{}", &text[..at], &text[at..])
}

/// Inserts a word before another one: a flag, the end of the flags (`--`), or standard input (`-`).
pub(super) fn insert_word(text: &str, random: &mut Random) -> String {
    change_word(text, random, |word, random| {
        let inserted = random.pick(&["--", "--", "-", "-n", "-0", "+1", "''", "--help"]);
        format!("{inserted} {word}")
    })
}

pub(super) fn respell_word(text: &str, random: &mut Random) -> String {
    change_word(text, random, |word, random| match random.below(3) {
        0 => word.to_uppercase(),
        1 => format!("{word}."),
        _ => format!("./{word}"),
    })
}

pub(super) fn replace_newlines(text: &str, random: &mut Random) -> String {
    text.replace('\n', random.pick(&["\r\n", ";", "\n\n", " \n", "\\\n"]))
}

/// Removes a range, or copies it to another offset.
pub(super) fn splice(text: &str, random: &mut Random) -> String {
    let (one, two) = (random_boundary(text, random), random_boundary(text, random));
    let (start, end) = (one.min(two), one.max(two));
    let to = random_boundary(text, random);
    match random.below(2) {
        0 => format!("{}{}", &text[..start], &text[end..]),
        _ => format!("{}{}{}", &text[..to], &text[start..end], &text[to..]),
    }
}

/// Returns the offset of a random character boundary.
fn random_boundary(text: &str, random: &mut Random) -> usize {
    let mut at = random.below(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Replaces a random occurrence of a character.
fn replace_one(
    text: &str,
    c: char,
    random: &mut Random,
    change: impl FnOnce(char) -> String,
) -> String {
    let offsets: Vec<usize> = text.match_indices(c).map(|(at, _)| at).collect();
    if offsets.is_empty() {
        return text.to_string();
    }
    let at = offsets[random.below(offsets.len())];
    format!("{}{}{}", &text[..at], change(c), &text[at + c.len_utf8()..])
}
