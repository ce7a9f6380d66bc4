//! Removes secret values from a stream of bytes.

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Input, MatchKind as Kind};

/// The replacement for a secret.
pub const REDACTED: &[u8] = b"[redacted]";

/// Replaces secrets with [`REDACTED`]. If several secrets start at the same position, the longest is replaced.
///
/// The result does not depend on how the stream is split: a possible prefix of a secret is held back.
#[derive(Debug)]
pub struct Redactor {
    search: Search,
    secrets: Vec<Secret>,
    /// The end of the input so far, if it is a prefix of at least one secret.
    held: Vec<u8>,
    replacement_count: u64,
}

/// Minimum length of an incomplete secret that is redacted at the end of a text.
const MIN_CUT_PREFIX: usize = 4;

/// Redacts secrets in a text. If the text ends inside a secret because it was cut there, that end is redacted too.
pub fn redact_text(text: &str, secrets: &[impl AsRef<[u8]>]) -> String {
    let (mut redactor, mut out) = (Redactor::new(secrets), Vec::new());
    redactor.push(text.as_bytes(), &mut out);
    if redactor.held.len() >= MIN_CUT_PREFIX {
        out.extend_from_slice(REDACTED);
    } else {
        redactor.finish(&mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Finds positions at which a secret may start.
#[derive(Debug)]
enum Search {
    /// There are no secrets.
    Nothing,
    /// There are few secrets, and the processor supports a SIMD search for them.
    Packed(Searcher),
    /// There are many secrets, or the processor does not support the SIMD search.
    Automaton(AhoCorasick),
    /// There are too many secrets to search for, so all output is redacted.
    Everything,
}

/// Number of bytes of a secret that are searched for. The rest is compared afterwards.
const SEARCHED_PREFIX: usize = 16;

/// A value to redact, prepared for searching.
#[derive(Debug)]
struct Secret {
    bytes: Vec<u8>,
    /// For each prefix length, the longest proper prefix that is also a suffix (the KMP failure function).
    failure: Vec<usize>,
}

/// Whether more bytes may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Open,
    Ended,
}

impl Redactor {
    /// Creates a redactor for these secrets. Empty secrets are ignored.
    pub fn new(secrets: &[impl AsRef<[u8]>]) -> Self {
        let secrets: Vec<_> = secrets
            .iter()
            .map(AsRef::as_ref)
            .filter(|secret| !secret.is_empty())
            .map(Secret::new)
            .collect();
        let search = Search::new(
            secrets.iter().map(|secret| &secret.bytes[..secret.bytes.len().min(SEARCHED_PREFIX)]),
        );
        Self { search, secrets, held: Vec::new(), replacement_count: 0 }
    }

    /// Takes the next piece and appends everything that cannot be part of a secret.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let settled = self.redact_settled(bytes, Stream::Open, out);
            self.held.extend_from_slice(&bytes[settled..]);
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            held.drain(..self.redact_settled(&held, Stream::Open, out));
            self.held = held;
        }
    }

    /// Appends what was held back, at the end of the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.redact_settled(&held, Stream::Ended, out);
    }

    /// Returns the number of replacements so far.
    pub fn replacement_count(&self) -> u64 {
        self.replacement_count
    }

    /// Appends the part of `bytes` that later input cannot change, with secrets replaced. Returns the length of that
    /// part.
    fn redact_settled(&mut self, bytes: &[u8], stream: Stream, out: &mut Vec<u8>) -> usize {
        if matches!(self.search, Search::Everything) {
            if self.replacement_count == 0 && !bytes.is_empty() {
                self.replacement_count = 1;
                out.extend_from_slice(REDACTED);
            }
            return bytes.len();
        }
        // No secret that starts before `settled_end` extends beyond the end of `bytes`. Everything before
        // `appended_end` has been appended.
        let (mut appended_end, mut settled_end) = (0, self.settled_end(bytes, stream));
        let mut from = 0;
        while let Some(at) = self.search.find(bytes, from)
            && at < settled_end
        {
            let matching =
                self.secrets.iter().filter(|secret| bytes[at..].starts_with(&secret.bytes));
            let Some(length) = matching.map(|secret| secret.bytes.len()).max() else {
                from = at + 1;
                continue;
            };
            out.extend_from_slice(&bytes[appended_end..at]);
            out.extend_from_slice(REDACTED);
            self.replacement_count += 1;
            appended_end = at + length;
            from = appended_end;
            if appended_end > settled_end {
                settled_end = appended_end + self.settled_end(&bytes[appended_end..], stream);
            }
        }
        out.extend_from_slice(&bytes[appended_end..settled_end]);
        settled_end
    }

    /// Returns the start of the longest suffix that is a proper prefix of a secret.
    fn settled_end(&self, bytes: &[u8], stream: Stream) -> usize {
        let longest = match stream {
            Stream::Open => self.secrets.iter().map(|secret| secret.prefix_at_end(bytes)).max(),
            Stream::Ended => None,
        };
        bytes.len() - longest.unwrap_or(0)
    }
}

impl Search {
    fn new<'a>(prefixes: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        if prefixes.clone().next().is_none() {
            return Search::Nothing;
        }
        let mut packed = Config::new().match_kind(MatchKind::LeftmostFirst).builder();
        match packed.extend(prefixes.clone()).build() {
            Some(searcher) => Search::Packed(searcher),
            None => match AhoCorasick::builder().match_kind(Kind::LeftmostFirst).build(prefixes) {
                Ok(automaton) => Search::Automaton(automaton),
                Err(_) => Search::Everything,
            },
        }
    }

    /// Returns the first position from `from` on at which a secret may start.
    fn find(&self, bytes: &[u8], from: usize) -> Option<usize> {
        match self {
            Search::Nothing | Search::Everything => None,
            Search::Packed(searcher) => {
                searcher.find_in(bytes, (from..bytes.len()).into()).map(|found| found.start())
            }
            Search::Automaton(automaton) => {
                automaton.find(Input::new(bytes).range(from..)).map(|found| found.start())
            }
        }
    }
}

impl Secret {
    fn new(bytes: &[u8]) -> Self {
        let mut failure = vec![0; bytes.len()];
        for end in 1..bytes.len() {
            let mut length = failure[end - 1];
            while length > 0 && bytes[length] != bytes[end] {
                length = failure[length - 1];
            }
            failure[end] = length + usize::from(bytes[length] == bytes[end]);
        }
        Self { bytes: bytes.to_vec(), failure }
    }

    /// Returns the length of the longest proper prefix of the secret that `text` ends with. The time depends only on
    /// the secret.
    fn prefix_at_end(&self, text: &[u8]) -> usize {
        let tail = &text[text.len().saturating_sub(self.bytes.len() - 1)..];
        let Some(start) = memchr::memchr(self.bytes[0], tail) else { return 0 };
        let mut length = 0;
        for byte in &tail[start..] {
            while length > 0 && self.bytes[length] != *byte {
                length = self.failure[length - 1];
            }
            // The tail is shorter than the secret, so a full match is impossible.
            length += usize::from(self.bytes[length] == *byte);
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn redact<'a>(secrets: &[&str], pieces: impl IntoIterator<Item = &'a str>) -> (String, u64) {
        let (mut redactor, mut out) = (Redactor::new(secrets), Vec::new());
        for piece in pieces {
            redactor.push(piece.as_bytes(), &mut out);
        }
        redactor.finish(&mut out);
        (String::from_utf8(out).unwrap(), redactor.replacement_count())
    }

    #[track_caller]
    fn check(secrets: &[&str], pieces: &[&str], expect: Expect) {
        let (text, replacement_count) = redact(secrets, pieces.iter().copied());
        expect.assert_eq(&format!("{text} {replacement_count}"));
    }

    #[test]
    fn secrets_are_replaced() {
        check(&["hunter22"], &["is hunter22.", "hunter22"], expect!["is [redacted].[redacted] 2"]);
        check(
            &["hunter22"],
            &["is hun", "te", "r22, hunter2"],
            expect!["is [redacted], hunter2 1"],
        );
        check(&[], &["nothing"], expect!["nothing 0"]);
        check(&[""], &["nothing"], expect!["nothing 0"]);
    }

    #[test]
    fn the_longest_secret_at_a_position_is_replaced() {
        check(&["abc", "abcdef"], &["abcdef abc", "d"], expect!["[redacted] [redacted]d 2"]);
        check(&["cde", "abcdefgh"], &["abcde", "fgh abcde"], expect!["[redacted] ab[redacted] 2"]);
        check(&["aab"], &["aaa", "ab"], expect!["aa[redacted] 1"]);
    }

    #[test]
    fn many_secrets_are_searched_for() {
        let secrets: Vec<_> = (0..500).map(|number| format!("{number}-secret-{number}")).collect();
        let secrets: Vec<_> = secrets.iter().map(String::as_str).collect();
        check(&secrets, &["77-secret-7", "7 499-secret-499"], expect!["[redacted] [redacted] 2"]);
    }

    #[test]
    fn only_a_prefix_of_a_secret_is_held_back() {
        let (mut redactor, mut out) = (Redactor::new(&["hunter22"]), Vec::new());
        redactor.push(b"the hunt", &mut out);
        assert_eq!(out, b"the ");
        redactor.push(b" is on", &mut out);
        assert_eq!(out, b"the hunt is on");
    }

    #[test]
    fn long_secrets_are_replaced() {
        let secret = "a".repeat(100_000);
        let output = "a".repeat(99_999);
        let (text, replacement_count) = redact(&[&secret], [output.as_str(); 9]);
        assert_eq!((text.len(), replacement_count), (8 * REDACTED.len() + 99_991, 8));
    }

    /// Reference implementation: replaces the longest secret at each position, or copies one character.
    fn reference(secrets: &[&str], text: &str) -> (String, u64) {
        let (mut out, mut replacement_count, mut rest) = (String::new(), 0, text);
        while let Some(character) = rest.chars().next() {
            let matching =
                secrets.iter().filter(|secret| !secret.is_empty() && rest.starts_with(**secret));
            let length = match matching.map(|secret| secret.len()).max() {
                Some(length) => {
                    out.push_str("[redacted]");
                    replacement_count += 1;
                    length
                }
                None => {
                    out.push(character);
                    character.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        (out, replacement_count)
    }

    #[test]
    fn a_text_may_end_in_the_middle_of_a_secret() {
        let check = |text: &str, expected: &str| {
            assert_eq!(redact_text(text, &["hunter22", "hunter22andmore"]), expected);
        };
        check("ls -l", "ls -l");
        check("login hunter22 --now", "login [redacted] --now");
        check("login hunter22", "login [redacted]");
        check("login hunt", "login [redacted]");
        check("touch h", "touch h");
        assert_eq!(redact_text("anything", &[] as &[&str]), "anything");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn redaction_agrees_with_the_reference(secrets in prop::collection::vec("[ab]{0,5}", 0..4), pieces in prop::collection::vec("[abc]{0,6}", 0..8)) {
            let secrets: Vec<_> = secrets.iter().map(String::as_str).collect();
            let redacted_output = redact(&secrets, pieces.iter().map(String::as_str));
            prop_assert_eq!(redacted_output, reference(&secrets, &pieces.concat()));
        }
    }
}
