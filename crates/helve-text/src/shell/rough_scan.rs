//! A rough scan of text that cannot be parsed, and a search for hidden characters.

/// Maximum number of commands that are listed.
pub(super) const MAX_COMMANDS: usize = 400;
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "while", "until", "do", "{", "}", "!", "time", "case", "in",
    "coproc", "fi", "done", "esac", "function",
];

/// Splits a text at separators into commands. Returns the words of each, without quotes and escapes.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest.take().filter(|_| commands.len() < MAX_COMMANDS) {
        rest = scan(text, &mut commands);
    }
    commands.truncate(MAX_COMMANDS);
    commands
}

/// Adds the commands up to the end or to an unclosed quote. Returns the text after that quote.
fn scan<'a>(text: &'a str, commands: &mut Vec<Vec<String>>) -> Option<&'a str> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, '\n')) | None => {}
                Some((_, escaped)) => word.get_or_insert_default().push(escaped),
            },
            // `$'…'` and `$"…"` are strings too.
            '$' if matches!(chars.peek(), Some((_, '\'' | '"'))) => {}
            '\'' | '"' => {
                let after = &text[at + 1..];
                let Some(end) = after.find(c) else {
                    end_command(&mut words, &mut word, commands);
                    return Some(after);
                };
                word.get_or_insert_default().push_str(&after[..end]);
                while chars.next_if(|(offset, _)| *offset <= at + 1 + end).is_some() {}
            }
            '\n' | ';' | '&' | '|' | '(' | ')' | '`' => {
                end_command(&mut words, &mut word, commands)
            }
            ' ' | '\t' | '<' | '>' => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
        if commands.len() >= MAX_COMMANDS {
            return None;
        }
    }
    end_command(&mut words, &mut word, commands);
    None
}

fn end_command(
    words: &mut Vec<String>,
    word: &mut Option<String>,
    commands: &mut Vec<Vec<String>>,
) {
    words.extend(word.take());
    let skipped = words
        .iter()
        .take_while(|word| RESERVED.contains(&word.as_str()) || is_assignment(word))
        .count();
    let command: Vec<String> = words.drain(..).skip(skipped).collect();
    if !command.is_empty() {
        commands.push(command);
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| super::grammar::is_name(name))
}

/// Returns everything in a text that may be a word. The text is split with quotes as separators, and then again with
/// all quotes removed.
pub(super) fn words(text: &str) -> Vec<String> {
    const QUOTES: &[char] = &['"', '\'', '\\'];
    const SEPARATORS: &[char] = &[';', '&', '|', '(', ')', '`', '<', '>', '{', '}', '$', '!'];
    let is_separator = |c: char| c.is_whitespace() || SEPARATORS.contains(&c);
    let split = text.split(|c: char| is_separator(c) || QUOTES.contains(&c));
    let mut words: Vec<String> = split.filter(|it| !it.is_empty()).map(str::to_string).collect();
    if text.contains(QUOTES) {
        let joined = text.replace(QUOTES, "");
        words.extend(joined.split(is_separator).filter(|it| !it.is_empty()).map(str::to_string));
    }
    words
}

/// Replaces the quotes in the source of a word with spaces.
pub(super) fn replace_quotes(shown: &str) -> String {
    shown.replace(['"', '\''], " ")
}

/// Returns the first character that a person cannot see, or that another shell may treat as a blank.
pub(super) fn first_hidden(text: &str) -> Option<char> {
    let is_hidden = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_invisible(c);
    text.chars().find(|c| is_hidden(*c))
}

/// Whether a character is invisible, is a space that the shell does not know, or reverses the text direction.
fn is_invisible(c: char) -> bool {
    (c.is_whitespace() && !c.is_ascii())
        || matches!(
            u32::from(c),
            0xad | 0x34f
                | 0x61c
                | 0x115f..=0x1160
                | 0x17b4..=0x17b5
                | 0x180b..=0x180f
                | 0x200b..=0x200f
                | 0x202a..=0x202e
                | 0x2060..=0x206f
                | 0x3164
                | 0xfe00..=0xfe0e
                | 0xfeff
                | 0xffa0
                | 0xfff9..=0xfffb
                | 0xe_0000..=0xe_0fff
        )
}
