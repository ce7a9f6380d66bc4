//! Parser for git configuration files.

use std::iter::Peekable;
use std::str::Chars;

/// One configuration variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSetting {
    /// The full name, like `filter.LFS.clean`. It is in lower case, except for the subsection.
    pub key: String,
    pub value: String,
}

/// Returns every setting of a file in order, or `None` if git would refuse the file.
pub fn parse(text: &str) -> Option<Vec<GitSetting>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut rest = text.chars().peekable();
    let mut section = String::new();
    let mut settings = Vec::new();
    loop {
        match rest.next() {
            None => return Some(settings),
            Some('#' | ';') => skip_line(&mut rest),
            Some('[') => section = parse_header(&mut rest)?,
            Some(c) if c.is_ascii_whitespace() => {}
            Some(c) if c.is_ascii_alphabetic() && !section.is_empty() => {
                let name = parse_name(c, &mut rest);
                let value = parse_value(&mut rest)?;
                settings.push(GitSetting { key: format!("{section}.{name}"), value });
            }
            Some(_) => return None,
        }
    }
}

/// The characters that are not parsed yet.
type RestOfFile<'t> = Peekable<Chars<'t>>;

fn skip_line(rest: &mut RestOfFile<'_>) {
    rest.find(|c| *c == '\n');
}

/// Parses a section header after its opening bracket: `core]`, `filter "lfs"]`, or the old form `filter.lfs]`.
fn parse_header(rest: &mut RestOfFile<'_>) -> Option<String> {
    let mut section = String::new();
    loop {
        match rest.next()? {
            ']' => return (!section.is_empty()).then_some(section),
            c if c.is_ascii_alphanumeric() || c == '.' || c == '-' => {
                section.push(c.to_ascii_lowercase());
            }
            ' ' | '\t' => break,
            _ => return None,
        }
    }
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    rest.next_if_eq(&'"')?;
    section.push('.');
    loop {
        match rest.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => section.push(rest.next().filter(|c| *c != '\n')?),
            c => section.push(c),
        }
    }
    rest.next_if_eq(&']')?;
    Some(section)
}

/// Parses the name of a setting after its first character.
fn parse_name(first_char: char, rest: &mut RestOfFile<'_>) -> String {
    let mut name = String::from(first_char.to_ascii_lowercase());
    while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// Parses the value after a name, up to the end of the line. A backslash continues the line. A name without a value
/// means `true`.
fn parse_value(rest: &mut RestOfFile<'_>) -> Option<String> {
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    match rest.next() {
        None | Some('\n') => return Some("true".into()),
        Some('=') => {}
        Some(_) => return None,
    }
    let mut value = String::new();
    // The length of the value without trailing blanks.
    let mut trimmed_len = 0;
    let mut is_quoted = false;
    loop {
        match rest.next() {
            None | Some('\n') if is_quoted => return None,
            None | Some('\n') => break,
            Some('#' | ';') if !is_quoted => {
                skip_line(rest);
                break;
            }
            Some('"') => {
                is_quoted = !is_quoted;
                trimmed_len = value.len();
            }
            Some('\\') => {
                match rest.next()? {
                    '\n' => continue,
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    c @ ('\\' | '"') => value.push(c),
                    _ => return None,
                }
                trimmed_len = value.len();
            }
            Some(c) if c.is_ascii_whitespace() && !is_quoted => {
                if trimmed_len > 0 {
                    value.push(c);
                }
            }
            Some(c) => {
                value.push(c);
                trimmed_len = value.len();
            }
        }
    }
    value.truncate(trimmed_len);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let settings = parse(text).unwrap_or_else(|| panic!("{text:?} was refused"));
        let settings: Vec<_> =
            settings.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
        assert_eq!(settings, expected, "{text:?}");
    }

    #[test]
    fn settings_are_parsed_as_git_does() {
        check("[core]\n\tbare = false\n", &["core.bare=false"]);
        check("[Core] FsMonitor\n", &["core.fsmonitor=true"]);
        check("[filter \"Big X\"]\r\n clean = \"a b\" c # no\r\n", &["filter.Big X.clean=a b c"]);
        check("[diff.X]textconv=a;b\n;c\n", &["diff.x.textconv=a"]);
        check("[a \"q\\\"\\\\\"]\nb = \"x # y\\n\"  \n", &["a.q\"\\.b=x # y\n"]);
        check("[a]\nb = one \\\n  two  \nc =\n", &["a.b=one   two", "a.c="]);
        check("\u{feff}[a]\nb-2=1\n[b \"\"]c=2", &["a.b-2=1", "b..c=2"]);
        check("", &[]);
    }

    #[test]
    fn files_that_git_refuses_are_refused() {
        for broken in [
            "a = 1",
            "[a",
            "[]\n",
            "[a \"b]\n",
            "[a b]\n",
            "[a]\n1 = 2",
            "[a]\nb = \"x\n",
            "[a]\nb c\n",
            "[a]\nb = \\x",
        ] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn quoted_values_round_trip(value in "[ -~\n\t]{0,40}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let parsed = parse(&format!("[a \"b\"]\n\tc = \"{quoted}\"\n"));
            prop_assert_eq!(parsed, Some(vec![GitSetting { key: "a.b.c".into(), value }]));
        }

        #[test]
        fn any_text_is_parsed_without_panic(text in "[\\[\\]a-c\"\\\\=#; \n\r]{0,60}") {
            parse(&text);
        }
    }
}
