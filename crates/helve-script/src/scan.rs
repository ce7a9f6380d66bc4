//! Finds the specifiers that a source file may import, without parsing it.
//!
//! Files are scanned before they are trusted, so this does not use a parser, which hostile code could make recurse
//! deeply. The scan may find too much, such as an import in a comment, but finds every import that is written as a
//! plain string.

/// Maximum length of a specifier in bytes.
const MAX_SPECIFIER: usize = 1_000;
/// Maximum number of specifiers of one file.
const MAX_SPECIFIERS: usize = 2_000;

/// Returns the strings that follow `from`, `import` or `require`, each once, in order.
pub(crate) fn imported_specifiers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in ["from", "import", "require"] {
        for (at, _) in text.match_indices(word) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(is_word) {
                continue;
            }
            let rest = skip_space(&text[at + word.len()..]);
            let rest = match word {
                "from" => rest,
                _ => skip_space(rest.strip_prefix('(').unwrap_or(rest)),
            };
            let Some(specifier) = quoted_text(rest) else { continue };
            if found.len() < MAX_SPECIFIERS && !found.iter().any(|it| it == specifier) {
                found.push(specifier.to_owned());
            }
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '.'
}

/// Skips white space and comments.
fn skip_space(mut text: &str) -> &str {
    loop {
        let trimmed = text.trim_start();
        text = if let Some(rest) = trimmed.strip_prefix("//") {
            rest.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(rest) = trimmed.strip_prefix("/*") {
            rest.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            return trimmed;
        };
    }
}

fn quoted_text(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let end = text[1..].find([quote, '\n'])?;
    let content = &text[1..1 + end];
    (text[1 + end..].starts_with(quote) && !content.is_empty() && end <= MAX_SPECIFIER)
        .then_some(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(imported_specifiers(text), expected, "{text}");
    }

    #[test]
    fn every_form_of_import_is_found() {
        check("import a from './a'", &["./a"]);
        check("import{a}from\"./a\"", &["./a"]);
        check("import {\n  a, // x\n  b\n} from /* y */ './a.js'", &["./a.js"]);
        check("import 'x'; import './x'", &["x", "./x"]);
        check("export * from './a'; export { b } from './b'", &["./a", "./b"]);
        check("await import('./a'); await import( /* c */ `./b`)", &["./a", "./b"]);
        check("const a = require('./a')", &["./a"]);
        check("import type { A } from './types'", &["./types"]);
        check("import a = require('./a')", &["./a"]);
        check("import text from './a.md' with { type: 'text' }", &["./a.md"]);
    }

    #[test]
    fn other_words_are_ignored_and_templates_kept_verbatim() {
        check("Array.from('abc'); arrayfrom './a'; x.import('b')", &[]);
        check("import(name); require(`./${name}`)", &["./${name}"]);
        check("from ''; from 'a\nb'", &[]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_scanned(text in "\\PC{0,200}") {
            imported_specifiers(&text);
            imported_specifiers(&format!("import {text}"));
            imported_specifiers(&format!("from '{text}"));
        }
    }
}
