//! Detects escapes that belong to a string, a pattern or a path rather than to the layout of lines.

/// Whether unescaping `new` would put a line break into a string or pattern, or a tab into a line although `old` has no
/// such tab.
pub(super) fn damages_content(old: &str, new: &str) -> bool {
    let has_inner_tab = |text| escapes(text).iter().any(Escape::is_inner_tab);
    escapes(new).iter().any(Escape::is_inner_newline) || has_inner_tab(new) && !has_inner_tab(old)
}

/// An escaped newline or tab, with the parts of its line before and after it.
struct Escape<'a> {
    letter: char,
    before: &'a str,
    after: &'a str,
}

impl Escape<'_> {
    fn is_inner_tab(&self) -> bool {
        self.letter == 't' && !self.before.replace("\\t", "").trim().is_empty()
    }

    fn is_inner_newline(&self) -> bool {
        self.letter == 'n'
            && (is_in_string(self.before, self.after) || is_in_pattern(self.before, self.after))
    }
}

/// Whether a position in a line, with the text before and after it, is inside a string.
pub(in crate::edit) fn is_in_string(before: &str, after: &str) -> bool {
    ['"', '\'', '`'].iter().any(|quote| {
        count_delimiters(before, *quote) % 2 == 1 && count_delimiters(after, *quote) % 2 == 1
    })
}

/// Whether a position is between slashes without white space, as in a regular expression. Slashes of comments do not
/// count.
pub(in crate::edit) fn is_in_pattern(before: &str, after: &str) -> bool {
    let before = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let after = after.split(char::is_whitespace).next().unwrap_or_default();
    before.contains('/')
        && after.contains('/')
        && !before.ends_with("*/")
        && !after.starts_with("//")
        && !after.starts_with("/*")
}

fn escapes(text: &str) -> Vec<Escape<'_>> {
    // Start and end of each line ending, escaped or not.
    let mut line_endings = Vec::new();
    let mut tabs = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at..] {
            [b'\\', b'n', ..] => line_endings.push((at, at + 2)),
            [b'\\', b't', ..] => tabs.push((at, at + 2)),
            [b'\n', ..] => line_endings.push((at, at + 1)),
            _ => {}
        }
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    let line_around = |start: usize, end: usize| {
        let before = line_endings.partition_point(|(_, ending_end)| *ending_end <= start);
        let from = before.checked_sub(1).map_or(0, |last| line_endings[last].1);
        let next = line_endings.partition_point(|(ending_start, _)| *ending_start < end);
        let to = line_endings.get(next).map_or(text.len(), |(ending_start, _)| *ending_start);
        (&text[from..start], &text[end..to])
    };
    let escape = |letter: char| {
        move |&(start, end): &(usize, usize)| {
            let (before, after) = line_around(start, end);
            Escape { letter, before, after }
        }
    };
    let escaped = line_endings.iter().filter(|(start, end)| end - start == 2).map(escape('n'));
    escaped.chain(tabs.iter().map(escape('t'))).collect()
}

/// Counts the quotes that delimit strings, without apostrophes and Rust lifetimes.
fn count_delimiters(text: &str, quote: char) -> usize {
    let is_delimiter = |(at, _): &(usize, &str)| {
        let mut before = text[..*at].chars().rev();
        let (last, second_last) = (before.next(), before.next());
        let after = text[at + quote.len_utf8()..].chars().next();
        let letter = |side: Option<char>| side.is_some_and(char::is_alphanumeric);
        // As in `b'x'`.
        let is_prefixed = last.is_some_and(|c| "bBfFLrRuU".contains(c)) && !letter(second_last);
        let is_apostrophe = letter(last) && letter(after) && !is_prefixed;
        quote != '\'' || !(is_apostrophe || matches!(last, Some('&' | '<')))
    };
    text.match_indices(quote).filter(is_delimiter).count()
}
