//! Templates of commands: prompts with placeholders for arguments, outputs of shell commands, and files.
//!
//! ```text
//! Review @$1 against !`git diff --stat`. $ARGUMENTS
//! ```

use std::ops::Range;

/// A part of a filled-in template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    Text(String),
    /// `` !`git log` ``: the output of a shell command.
    Command(String),
    /// `@src/main.rs`: the content of a file, if there is one of this name.
    File(String),
}

/// Maximum number of pieces. Commands and files after that stay text.
const MAX_PIECES: usize = 200;

/// Fills in a template.
///
/// - `$1`, `$2` … stand for single arguments. Blanks separate arguments, except inside quotes. The highest number that
///   occurs stands for all remaining arguments. A missing argument is empty.
/// - `$ARGUMENTS` stands for all arguments as they were typed.
/// - If the template has neither, the arguments follow it after a blank line.
///
/// The template is divided into pieces before the arguments are filled in, so that no argument can add a shell command
/// or a file.
pub fn fill(template: &str, arguments: &str) -> Vec<TemplatePiece> {
    let arguments = arguments.trim();
    let words = split_arguments(arguments);
    let highest = highest_number(template);
    let fill = |text: &str| substitute(text, arguments, &words, highest);
    let mut pieces: Vec<TemplatePiece> = Vec::new();
    let mut push = |piece: TemplatePiece| match (&piece, pieces.last_mut()) {
        (TemplatePiece::Text(text), Some(TemplatePiece::Text(before))) => before.push_str(text),
        _ => pieces.push(piece),
    };
    for (index, piece) in divide(template).into_iter().enumerate() {
        push(match piece {
            RawPiece::Text(text) => TemplatePiece::Text(fill(text)),
            RawPiece::Command(text) if index < MAX_PIECES => TemplatePiece::Command(fill(text)),
            RawPiece::File(text) if index < MAX_PIECES => TemplatePiece::File(fill(text)),
            RawPiece::Command(text) => TemplatePiece::Text(format!("!`{}`", fill(text))),
            RawPiece::File(text) => TemplatePiece::Text(format!("@{}", fill(text))),
        });
    }
    if highest == 0 && !template.contains(ALL_ARGUMENTS) && !arguments.is_empty() {
        push(TemplatePiece::Text(format!("\n\n{arguments}")));
    }
    pieces
}

const ALL_ARGUMENTS: &str = "$ARGUMENTS";

/// A part of a template before the arguments are filled in.
enum RawPiece<'t> {
    Text(&'t str),
    Command(&'t str),
    File(&'t str),
}

/// Divides a template into text, shell commands and files.
fn divide(template: &str) -> Vec<RawPiece<'_>> {
    let mut pieces = Vec::new();
    let mut text_start = 0;
    let mut at = 0;
    while let Some(offset) = template[at..].find(['!', '@']) {
        let start = at + offset;
        let rest = &template[start..];
        let (piece, length) = match rest.strip_prefix("!`") {
            Some(after) => match after.find('`') {
                Some(end) if end > 0 => (RawPiece::Command(&after[..end]), end + 3),
                Some(_) | None => (RawPiece::Text(""), 0),
            },
            None => match rest.strip_prefix('@').map(file_name) {
                Some(name) if !name.is_empty() && may_precede_file(&template[..start]) => {
                    (RawPiece::File(name), name.len() + 1)
                }
                Some(_) | None => (RawPiece::Text(""), 0),
            },
        };
        if length == 0 {
            at = start + 1;
            continue;
        }
        pieces.push(RawPiece::Text(&template[text_start..start]));
        pieces.push(piece);
        at = start + length;
        text_start = at;
    }
    pieces.push(RawPiece::Text(&template[text_start..]));
    pieces
}

/// Whether `@` after this text may start the name of a file. An `@` in an e-mail address or in code does not.
fn may_precede_file(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"_`@/.".contains(c))
}

/// Returns the name of a file at the start of a text.
fn file_name(text: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || "`,;:!?()[]{}<>\"'|*".contains(c);
    let name = &text[..text.find(is_end).unwrap_or(text.len())];
    name.trim_end_matches('.')
}

/// Returns the highest number after a `$`; 0 if there is none.
fn highest_number(template: &str) -> usize {
    placeholders(template).map(|it| it.number).max().unwrap_or(0)
}

/// A placeholder like `$1`.
struct Placeholder {
    /// Where the placeholder is in the text.
    range: Range<usize>,
    /// The number after the `$`.
    number: usize,
}

/// Returns the placeholders in a text.
fn placeholders(text: &str) -> impl Iterator<Item = Placeholder> {
    text.match_indices('$').filter_map(|(start, _)| {
        let digits = text[start + 1..].bytes().take_while(u8::is_ascii_digit).take(3).count();
        let number = text[start + 1..start + 1 + digits].parse().ok().filter(|it| *it > 0)?;
        Some(Placeholder { range: start..start + 1 + digits, number })
    })
}

/// Fills in the placeholders of a text. `highest` is the highest number of a placeholder in the template.
fn substitute(text: &str, arguments: &str, words: &[String], highest: usize) -> String {
    let mut filled = String::new();
    let mut at = 0;
    for Placeholder { range, number } in placeholders(text) {
        filled += &text[at..range.start].replace(ALL_ARGUMENTS, arguments);
        let remaining = words.get(number - 1..).unwrap_or_default();
        let count = if number == highest { remaining.len() } else { remaining.len().min(1) };
        filled += &remaining[..count].join(" ");
        at = range.end;
    }
    filled + &text[at..].replace(ALL_ARGUMENTS, arguments)
}

/// Splits at blanks. Quotes keep words together and are removed.
fn split_arguments(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if matches!(c, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks a filled-in template: commands are shown as `[!…]`, files as `[@…]`.
    #[track_caller]
    fn check(template: &str, arguments: &str, expected: &str) {
        assert_eq!(show(&fill(template, arguments)), expected);
    }

    fn show(pieces: &[TemplatePiece]) -> String {
        let show = |piece: &TemplatePiece| match piece {
            TemplatePiece::Text(text) => text.clone(),
            TemplatePiece::Command(text) => format!("[!{text}]"),
            TemplatePiece::File(text) => format!("[@{text}]"),
        };
        pieces.iter().map(show).collect()
    }

    #[test]
    fn arguments_are_filled_in() {
        check("Fix $1 in $2", "bug file.rs", "Fix bug in file.rs");
        check("Fix $1 in $2", "bug a b c", "Fix bug in a b c");
        check("Fix $1", "a b c", "Fix a b c");
        check("$2 before $1", "a", " before a");
        check("$1$1", "a", "aa");
        check("All: $ARGUMENTS.", " a  'b c' ", "All: a  'b c'.");
        check("$1 and $ARGUMENTS", "'a b' c", "a b c and 'a b' c");
        check("Nothing", "extra words", "Nothing\n\nextra words");
        check("Nothing", "", "Nothing");
        check("Costs $0 and $x", "a", "Costs $0 and $x\n\na");
        check("$1", "\"it's\" \"\" x", "it's  x");
        check("$1", "'open quote", "open quote");
    }

    #[test]
    fn commands_and_files_are_found() {
        check("Log: !`git log -n $1`.", "3", "Log: [!git log -n 3].");
        check("See @src/main.rs, please", "", "See [@src/main.rs], please");
        check("See @README.md.", "", "See [@README.md].");
        check("Review @$1", "a.rs", "Review [@a.rs]");
        check("(@a) \"@b\"", "", "([@a]) \"[@b]\"");
        check("mail me@example.org and `@decorator`", "", "mail me@example.org and `@decorator`");
        check("!`` and !`open", "", "!`` and !`open");
        check("wow! @ home", "", "wow! @ home");
        check("@~/notes.md @/etc/hosts @./x", "", "[@~/notes.md] [@/etc/hosts] [@./x]");
    }

    #[test]
    fn arguments_add_no_commands_and_no_files() {
        check("Say $1", "!`id`", "Say !`id`");
        check("Say $ARGUMENTS", "@secrets !`id`", "Say @secrets !`id`");
        check("!`echo $1`", "`id`", "[!echo `id`]");
        check("Say", "!`id` @x", "Say\n\n!`id` @x");
    }

    proptest! {
        #[test]
        fn pieces_come_from_the_template(template in "[a$!@`1ARGUMENTS ]{0,40}", arguments in ".{0,20}") {
            let with = fill(&template, &arguments);
            let without = fill(&template, "");
            let count = |pieces: &[TemplatePiece]| {
                pieces.iter().filter(|piece| !matches!(piece, TemplatePiece::Text(_))).count()
            };
            prop_assert_eq!(count(&with), count(&without));
        }

        #[test]
        fn any_text_can_be_filled_in(template in ".{0,60}", arguments in ".{0,30}") {
            fill(&template, &arguments);
        }
    }
}
