//! Wildcard patterns of permission rules: `*` matches any characters, `?` matches one, and nothing else is special.

/// Whether the whole of `text` matches `pattern`.
///
/// `*` matches any run of characters, including `/` and newlines. `?` matches exactly one character. Everything else,
/// including backslashes and brackets, is literal. A trailing ` *` is optional:
/// `git status *` also matches `git status`.
pub fn matches(pattern: &str, text: &str) -> bool {
    alternatives(pattern).any(|pattern| glob(pattern, text))
}

/// Whether `wide` certainly matches every text that `narrow` matches.
///
/// Also returns `false` if the answer could not be determined.
pub fn covers(wide: &str, narrow: &str) -> bool {
    alternatives(narrow).all(|narrow| alternatives(wide).any(|wide| includes(wide, narrow)))
}

/// Returns the patterns that `pattern` stands for: `pattern` itself, and `pattern` without a trailing ` *`.
fn alternatives(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.strip_suffix(" *").into_iter().chain([pattern])
}

/// Matches greedily and backtracks only to the last `*`, so it takes at most pattern length × text length steps.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut pattern_at, mut text_at) = (0, 0);
    let mut last_star = None;
    while text_at < text.len() {
        // A `*` or `?` byte is never part of a longer character, and equal literals have equal bytes.
        match pattern.get(pattern_at) {
            Some(b'*') => {
                pattern_at += 1;
                last_star = Some((pattern_at, text_at));
                continue;
            }
            Some(b'?') => {
                pattern_at += 1;
                text_at = next_char(text, text_at);
                continue;
            }
            Some(byte) if *byte == text[text_at] => {
                pattern_at += 1;
                text_at += 1;
                continue;
            }
            Some(_) | None => {}
        }
        let Some((after_star, from)) = last_star else { return false };
        let from = next_char(text, from);
        (pattern_at, text_at) = (after_star, from);
        last_star = Some((after_star, from));
    }
    pattern[pattern_at..].iter().all(|byte| *byte == b'*')
}

/// Returns the start of the character that follows the character at `at`.
pub(crate) fn next_char(text: &[u8], at: usize) -> usize {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    at + 1 + text[at + 1..].iter().take_while(continues).count()
}

/// A part of a pattern. Adjacent `?` and `*` form one token, because their order does not matter.
enum PatternToken {
    Literal(char),
    AnyChar,
    /// A run of wildcards with a `*`. It matches at least this many characters.
    Gap(usize),
}

fn tokens(pattern: &str) -> Vec<PatternToken> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        let wild_len = rest.find(|c| c != '*' && c != '?').unwrap_or(rest.len());
        if wild_len == 0 {
            tokens.push(PatternToken::Literal(character));
            rest = &rest[character.len_utf8()..];
            continue;
        }
        let (run, after) = rest.split_at(wild_len);
        let singles = run.bytes().filter(|byte| *byte == b'?').count();
        if run.contains('*') {
            tokens.push(PatternToken::Gap(singles));
        } else {
            tokens.extend((0..singles).map(|_| PatternToken::AnyChar));
        }
        rest = after;
    }
    tokens
}

/// Returns the minimum number of characters that a token matches.
fn min_chars(token: &PatternToken) -> usize {
    match token {
        PatternToken::Literal(_) | PatternToken::AnyChar => 1,
        PatternToken::Gap(min) => *min,
    }
}

/// Whether one alternative certainly covers another. Each token of `wide` must match whole tokens of `narrow`.
fn includes(wide: &str, narrow: &str) -> bool {
    let narrow = tokens(narrow);
    // `lengths[n]` is the minimum number of characters that the first n tokens of `narrow` match.
    let mut lengths = vec![0];
    for token in &narrow {
        lengths.push(lengths[lengths.len() - 1] + min_chars(token));
    }
    // `reached[n]` says whether the tokens of `wide` so far cover exactly the first n tokens of `narrow`.
    let mut reached = vec![false; narrow.len() + 1];
    reached[0] = true;
    for token in tokens(wide) {
        reached = match token {
            PatternToken::Literal(wanted) => advance(
                &reached,
                &narrow,
                |token| matches!(token, PatternToken::Literal(c) if *c == wanted),
            ),
            PatternToken::AnyChar => {
                advance(&reached, &narrow, |token| !matches!(token, PatternToken::Gap(_)))
            }
            PatternToken::Gap(min) => {
                let Some(first_reached) = reached.iter().position(|yes| *yes) else { return false };
                let has_enough_chars =
                    |n: usize| n >= first_reached && lengths[n] - lengths[first_reached] >= min;
                (0..reached.len()).map(has_enough_chars).collect()
            }
        };
    }
    reached[narrow.len()]
}

/// Advances by one token of `narrow`, which must satisfy `is_covered`.
fn advance(
    reached: &[bool],
    narrow: &[PatternToken],
    is_covered: impl Fn(&PatternToken) -> bool,
) -> Vec<bool> {
    let stepped = reached.iter().zip(narrow).map(|(yes, token)| *yes && is_covered(token));
    std::iter::once(false).chain(stepped).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{covers, matches};

    /// Checks that a pattern matches the texts in `matching` and does not match those in `other`.
    #[track_caller]
    fn check(pattern: &str, matching: &[&str], other: &[&str]) {
        for text in matching {
            assert!(matches(pattern, text), "{pattern:?} should match {text:?}");
        }
        for text in other {
            assert!(!matches(pattern, text), "{pattern:?} should not match {text:?}");
        }
    }

    #[test]
    fn literals_stand_for_themselves() {
        check("", &[""], &["a"]);
        check("git status", &["git status"], &["git statu", "git status ", "Git status"]);
        check(r"a\*b", &[r"a\b", r"a\xyb"], &["a*b"]);
        check("[ab].{c,d}", &["[ab].{c,d}"], &["a.c", "b.d"]);
        check("naïve/日本", &["naïve/日本"], &["naive/日本"]);
    }

    #[test]
    fn star_matches_any_run() {
        check("*", &["", "a", "a/b\nc"], &[]);
        check("src/*.rs", &["src/.rs", "src/a.rs", "src/a/b.rs"], &["src/a.rsx", "rc/a.rs"]);
        check("*a*b*", &["ab", "xaxbx", "aab"], &["ba", ""]);
        check("a**b", &["ab", "axb"], &["a"]);
    }

    #[test]
    fn question_mark_matches_one_character() {
        check("?", &["a", "é", "日", "\n", "/"], &["", "ab", "日本"]);
        check("a?c", &["abc", "a日c"], &["ac", "abbc"]);
        check("*?", &["a", "日本"], &[""]);
        check("??*日", &["日日日", "ab日"], &["a日", "日日"]);
    }

    #[test]
    fn trailing_space_star_is_optional() {
        check(
            "git status *",
            &["git status", "git status -s", "git status "],
            &["git statuses", "git"],
        );
        check("ls ?*", &["ls a"], &["ls", "ls "]);
        check(" *", &["", " x"], &["x"]);
        check("npm *-test *", &["npm unit-test", "npm unit-test --all"], &["npm unit-tests"]);
    }

    #[test]
    fn matching_time_is_not_exponential() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!matches(&pattern, &"a".repeat(20_000)));
        assert!(!covers(&pattern, &("a".repeat(2_000) + "*")));
    }

    #[test]
    fn wide_patterns_cover_narrow_ones() {
        for (wide, narrow) in [
            ("*", ""),
            ("*", "git *"),
            ("git *", "git *"),
            ("git *", "git status *"),
            ("git *", "git"),
            ("git*", "git *"),
            ("?*", "*?"),
            ("?*", "*a"),
            ("* *", "anything"),
            ("*.rs", "src/*.rs"),
            ("a?c*", "abcd?"),
            ("*a?*", "*ab*"),
            ("??*??", "?*???"),
        ] {
            assert!(covers(wide, narrow), "{wide:?} covers {narrow:?}");
        }
    }

    #[test]
    fn narrow_patterns_do_not_cover_wide_ones() {
        for (wide, narrow) in [
            ("git status *", "git *"),
            ("git ?*", "git *"),
            ("git *", "git*"),
            ("?*", "*"),
            ("a*b", "a*"),
            ("*.rs", "*.?s"),
            ("?", "*"),
            ("", "*"),
        ] {
            assert!(!covers(wide, narrow), "{wide:?} does not cover {narrow:?}");
        }
    }

    /// Reference implementation of matching.
    fn reference(pattern: &str, text: &str) -> bool {
        fn plain(pattern: &[char], text: &[char]) -> bool {
            match pattern {
                [] => text.is_empty(),
                ['*', rest @ ..] => (0..=text.len()).any(|n| plain(rest, &text[n..])),
                ['?', rest @ ..] => !text.is_empty() && plain(rest, &text[1..]),
                [literal, rest @ ..] => text.first() == Some(literal) && plain(rest, &text[1..]),
            }
        }
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        plain(&chars(pattern), &chars(text))
            || pattern.strip_suffix(" *").is_some_and(|bare| plain(&chars(bare), &chars(text)))
    }

    /// Returns all texts of up to five characters over this alphabet: the characters of the patterns below, and one
    /// other.
    fn all_texts() -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..5 {
            let to = all.len();
            for n in from..to {
                all.extend(['a', 'é', ' ', 'z'].map(|c| format!("{}{c}", all[n])));
            }
            from = to;
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn matching_agrees_with_the_reference(pattern in "[aé *?]{0,8}", text in "[aéz \n]{0,12}") {
            prop_assert_eq!(matches(&pattern, &text), reference(&pattern, &text));
        }

        #[test]
        fn a_text_without_wildcards_matches_only_itself(text in "[^*?]{0,10}", other in "[^*?]{0,10}") {
            prop_assert!(matches(&text, &text));
            prop_assert_eq!(matches(&text, &other), text == other);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn covers_has_no_false_positives(wide in "[aé *?]{0,5}", narrow in "[aé *?]{0,5}") {
            let counterexample = all_texts().into_iter().find(|t| matches(&narrow, t) && !matches(&wide, t));
            prop_assert!(!covers(&wide, &narrow) || counterexample.is_none(), "{counterexample:?}");
        }

        #[test]
        fn covers_has_no_false_negatives_for_short_patterns(wide in "[aé *?]{0,3}", narrow in "[aé *?]{0,3}") {
            let counterexample = all_texts().into_iter().find(|t| matches(&narrow, t) && !matches(&wide, t));
            prop_assert!(covers(&wide, &narrow) || counterexample.is_some());
        }

        #[test]
        fn every_pattern_covers_itself(pattern in "[aé *?\\\\\\[]{0,12}") {
            prop_assert!(covers(&pattern, &pattern));
            prop_assert!(covers("*", &pattern));
        }
    }
}
