//! Compiles a pattern, or reports where it is invalid.

use std::ops::Range;
use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use helve_core::machine::{
    BadPattern, CaseMode, Multiline, PatternSyntax, SearchError, SearchRequest,
};

/// Maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 64 * 1024;
/// Maximum nesting depth of groups.
const MAX_GROUP_DEPTH: u32 = 100;
/// Maximum size of a compiled pattern, and of the lazy DFA cache of each thread.
const MAX_COMPILED_BYTES: usize = 10 << 20;
const MAX_CACHE_BYTES: usize = 8 << 20;

/// A compiled pattern.
#[derive(Clone)]
pub(super) struct CompiledPattern {
    pub(super) matcher: Arc<RegexMatcher>,
    pub(super) line_terminator: LineTerminator,
    pub(super) multiline: Multiline,
    /// Whether the pattern is literal ASCII, which has the same bytes in every supported single-byte encoding.
    pub(super) is_literal_ascii: bool,
}

pub(super) fn compile(request: &SearchRequest) -> Result<CompiledPattern, SearchError> {
    let pattern = &request.pattern;
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(invalid(
            whole_pattern(pattern),
            format!("a pattern has at most {MAX_PATTERN_BYTES} bytes"),
        ));
    }
    if request.syntax == PatternSyntax::Regex {
        check(pattern)?;
    }
    // `$` also matches before `\r\n`, unless the pattern mentions `\r` itself.
    let is_regex = request.syntax == PatternSyntax::Regex;
    let crlf =
        is_regex && pattern.contains('$') && !pattern.contains("\\r") && !pattern.contains('\r');
    let line_terminator = if crlf { LineTerminator::crlf() } else { LineTerminator::byte(b'\n') };
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .crlf(crlf)
        .fixed_strings(!is_regex)
        .case_insensitive(request.case == CaseMode::Insensitive)
        .nest_limit(MAX_GROUP_DEPTH)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_CACHE_BYTES);
    let compiled = match request.multiline {
        Multiline::On => {
            let multi_line = builder.line_terminator(None).dot_matches_new_line(true);
            multi_line.build(pattern).map(|matcher| (matcher, Multiline::On))
        }
        Multiline::Off => {
            if !crlf {
                builder.line_terminator(Some(b'\n'));
            }
            match builder.build(pattern) {
                Err(err) if matches!(err.kind(), ErrorKind::NotAllowed(_)) => {
                    let multi_line = builder.line_terminator(None);
                    multi_line.build(pattern).map(|matcher| (matcher, Multiline::On))
                }
                built => built.map(|matcher| (matcher, Multiline::Off)),
            }
        }
    };
    let (matcher, multiline) =
        compiled.map_err(|err| invalid(whole_pattern(pattern), describe(&err)))?;
    let is_literal_ascii =
        pattern.is_ascii() && (!is_regex || regex_syntax::escape(pattern) == *pattern);
    Ok(CompiledPattern { matcher: Arc::new(matcher), line_terminator, multiline, is_literal_ascii })
}

/// Parses the pattern first, because the parser reports the position of an error.
fn check(pattern: &str) -> Result<(), SearchError> {
    let mut parser = regex_syntax::ParserBuilder::new();
    parser.nest_limit(MAX_GROUP_DEPTH).multi_line(true).utf8(false);
    match parser.build().parse(pattern) {
        Ok(_) => Ok(()),
        Err(regex_syntax::Error::Parse(err)) => {
            Err(invalid(span_range(err.span()), err.kind().to_string()))
        }
        Err(regex_syntax::Error::Translate(err)) => {
            Err(invalid(span_range(err.span()), err.kind().to_string()))
        }
        Err(err) => Err(invalid(whole_pattern(pattern), err.to_string())),
    }
}

fn span_range(span: &regex_syntax::ast::Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

fn whole_pattern(pattern: &str) -> Range<usize> {
    0..pattern.len()
}

fn invalid(at: Range<usize>, message: String) -> SearchError {
    SearchError::Pattern(BadPattern { at, message })
}

fn describe(err: &grep_regex::Error) -> String {
    match err.to_string() {
        text if text.contains("size limit") => "the compiled pattern is too large".into(),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check_bad(pattern: &str, expect: Expect) {
        let Err(SearchError::Pattern(bad)) = check(pattern) else { panic!("{pattern} is valid") };
        expect.assert_eq(&format!("{:?}: {}", &pattern[bad.at], bad.message));
    }

    #[test]
    fn errors_are_reported_with_their_position() {
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
        let is_too_deep = |bad: &BadPattern| bad.message.contains("nested");
        assert!(matches!(check(&deep), Err(SearchError::Pattern(bad)) if is_too_deep(&bad)));
    }
}
