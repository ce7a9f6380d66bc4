//! From a pattern to something that finds it, or to the place where it is wrong.

use std::ops::Range;
use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use helve_core::machine::{BadPattern, Case, Reach, Search, SearchError, Syntax};

/// Longer patterns are refused.
const LONGEST: usize = 64 * 1024;
/// Groups within groups.
const DEEPEST: u32 = 100;
/// What a compiled pattern may take, and what each thread may remember while it runs.
const MOST_COMPILED: usize = 10 << 20;
const MOST_REMEMBERED: usize = 8 << 20;

/// A compiled pattern.
#[derive(Clone)]
pub(super) struct Pattern {
    pub(super) matcher: Arc<RegexMatcher>,
    pub(super) ends: LineTerminator,
    pub(super) reach: Reach,
    /// ASCII that stands for itself, so that its bytes are the same in every encoding that has them.
    pub(super) is_plain: bool,
}

pub(super) fn compile(want: &Search) -> Result<Pattern, SearchError> {
    let pattern = &want.pattern;
    if pattern.len() > LONGEST {
        return Err(bad(whole(pattern), format!("{LONGEST} bytes are the most")));
    }
    if want.syntax == Syntax::Regex {
        check(pattern)?;
    }
    // Where `$` is meant to be the end of a line, it is so before `\r\n` too; `\r` asks for the character itself.
    let is_regex = want.syntax == Syntax::Regex;
    let crlf =
        is_regex && pattern.contains('$') && !pattern.contains("\\r") && !pattern.contains('\r');
    let ends = if crlf { LineTerminator::crlf() } else { LineTerminator::byte(b'\n') };
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .crlf(crlf)
        .fixed_strings(!is_regex)
        .case_insensitive(want.case == Case::Ignored)
        .nest_limit(DEEPEST)
        .size_limit(MOST_COMPILED)
        .dfa_size_limit(MOST_REMEMBERED);
    let compiled = match want.reach {
        Reach::ManyLines => {
            let built = builder.line_terminator(None).dot_matches_new_line(true);
            built.build(pattern).map(|matcher| (matcher, Reach::ManyLines))
        }
        Reach::OneLine => {
            if !crlf {
                builder.line_terminator(Some(b'\n'));
            }
            match builder.build(pattern) {
                Err(err) if matches!(err.kind(), ErrorKind::NotAllowed(_)) => {
                    let across = builder.line_terminator(None);
                    across.build(pattern).map(|matcher| (matcher, Reach::ManyLines))
                }
                built => built.map(|matcher| (matcher, Reach::OneLine)),
            }
        }
    };
    let (matcher, reach) = compiled.map_err(|err| bad(whole(pattern), words(&err)))?;
    let is_plain = pattern.is_ascii() && (!is_regex || regex_syntax::escape(pattern) == *pattern);
    Ok(Pattern { matcher: Arc::new(matcher), ends, reach, is_plain })
}

/// The parser is asked first, because it knows the place.
fn check(pattern: &str) -> Result<(), SearchError> {
    let mut parser = regex_syntax::ParserBuilder::new();
    parser.nest_limit(DEEPEST).multi_line(true).utf8(false);
    match parser.build().parse(pattern) {
        Ok(_) => Ok(()),
        Err(regex_syntax::Error::Parse(err)) => Err(bad(place(err.span()), err.kind().to_string())),
        Err(regex_syntax::Error::Translate(err)) => {
            Err(bad(place(err.span()), err.kind().to_string()))
        }
        Err(err) => Err(bad(whole(pattern), err.to_string())),
    }
}

fn place(span: &regex_syntax::ast::Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

fn whole(pattern: &str) -> Range<usize> {
    0..pattern.len()
}

fn bad(at: Range<usize>, what: String) -> SearchError {
    SearchError::Pattern(BadPattern { at, what })
}

fn words(err: &grep_regex::Error) -> String {
    match err.to_string() {
        said if said.contains("size limit") => "it becomes too large when it is compiled".into(),
        said => said,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check_bad(pattern: &str, expect: Expect) {
        let Err(SearchError::Pattern(bad)) = check(pattern) else { panic!("{pattern} is good") };
        expect.assert_eq(&format!("{:?}: {}", &pattern[bad.at], bad.what));
    }

    #[test]
    fn the_place_of_a_mistake_is_told() {
        check_bad("foo(bar", expect![[r#""(": unclosed group"#]]);
        check_bad(
            "a{2,1}",
            expect![[r#""{2,1}": invalid repetition count range, the start must be <= the end"#]],
        );
        check_bad(
            "x[z-a]",
            expect![[r#""z-a": invalid character class range, the start must be <= the end"#]],
        );
        check_bad(
            "(?=x)",
            expect![[
                r#""(?=": look-around, including look-ahead and look-behind, is not supported"#
            ]],
        );
        check_bad(r"(a)\1", expect![[r#""\\1": backreferences are not supported"#]]);
        check_bad(r"\p{Nope}", expect![[r#""\\p{Nope}": Unicode property not found"#]]);
        check_bad("*x", expect![[r#""": repetition operator missing expression"#]]);
        let deep = "(".repeat(200) + &")".repeat(200);
        let nests = |bad: &BadPattern| bad.what.contains("nested");
        assert!(matches!(check(&deep), Err(SearchError::Pattern(bad)) if nests(&bad)));
    }
}
