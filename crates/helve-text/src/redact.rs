//! Values that must not be told, taken out of a stream of bytes.

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Input, MatchKind as Kind};

/// What stands where a secret stood.
pub const REDACTED: &[u8] = b"[redacted]";

/// Replaces each of some values by [`REDACTED`]: of those that begin at one place the longest.
///
/// How the stream was cut into pieces changes nothing: what may be the beginning of a value is held back.
#[derive(Debug)]
pub struct Redactor {
    search: Search,
    secrets: Vec<Secret>,
    /// What was not passed on yet: the beginning of at least one secret.
    held: Vec<u8>,
    replaced: u64,
}

/// So much of a secret counts as one where a text ends.
const CUT_OFF: usize = 4;

/// A text without some values. Where it ends it may have been cut, in the middle of one.
pub fn redacted(text: &str, secrets: &[impl AsRef<[u8]>]) -> String {
    let (mut redactor, mut out) = (Redactor::new(secrets), Vec::new());
    redactor.push(text.as_bytes(), &mut out);
    if redactor.held.len() >= CUT_OFF {
        out.extend_from_slice(REDACTED);
    } else {
        redactor.finish(&mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Finds where a secret may begin.
#[derive(Debug)]
enum Search {
    /// There is nothing to hide.
    Nothing,
    /// By looking at many bytes together: a few secrets on most processors.
    Packed(Searcher),
    Automaton(AhoCorasick),
    /// There is more than can be searched for, so nothing is told at all.
    Everything,
}

/// So many bytes of a secret are searched for; the rest is compared.
const SEARCHED: usize = 16;

#[derive(Debug)]
struct Secret {
    bytes: Vec<u8>,
    /// For each length of a beginning: the longest shorter beginning that it ends with.
    shorter: Vec<usize>,
}

/// Whether more may come after some bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    May,
    Never,
}

impl Redactor {
    /// Empty secrets are none.
    pub fn new(secrets: &[impl AsRef<[u8]>]) -> Self {
        let secrets: Vec<_> = secrets
            .iter()
            .map(AsRef::as_ref)
            .filter(|it| !it.is_empty())
            .map(Secret::new)
            .collect();
        let search =
            Search::new(secrets.iter().map(|it| &it.bytes[..it.bytes.len().min(SEARCHED)]));
        Self { search, secrets, held: Vec::new(), replaced: 0 }
    }

    /// Takes in the next piece and appends what is certain by now.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let passed = self.pass(bytes, More::May, out);
            self.held.extend_from_slice(&bytes[passed..]);
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            held.drain(..self.pass(&held, More::May, out));
            self.held = held;
        }
    }

    /// Appends what was held back: nothing follows.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, More::Never, out);
    }

    /// How often a secret was replaced so far.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Passes on as much of `bytes` as is certain, and tells how much that was.
    fn pass(&mut self, bytes: &[u8], more: More, out: &mut Vec<u8>) -> usize {
        if matches!(self.search, Search::Everything) {
            if self.replaced == 0 && !bytes.is_empty() {
                self.replaced = 1;
                out.extend_from_slice(REDACTED);
            }
            return bytes.len();
        }
        // No secret that begins before `open` goes on beyond the end; all before `done` was passed on.
        let (mut done, mut open) = (0, self.open(bytes, more));
        let mut from = 0;
        while let Some(at) = self.search.find(bytes, from)
            && at < open
        {
            let here = self.secrets.iter().filter(|it| bytes[at..].starts_with(&it.bytes));
            let Some(length) = here.map(|secret| secret.bytes.len()).max() else {
                from = at + 1;
                continue;
            };
            out.extend_from_slice(&bytes[done..at]);
            out.extend_from_slice(REDACTED);
            self.replaced += 1;
            done = at + length;
            from = done;
            if done > open {
                open = done + self.open(&bytes[done..], more);
            }
        }
        out.extend_from_slice(&bytes[done..open]);
        open
    }

    /// Where the longest end that is the beginning of a secret, and not the whole of it, starts.
    fn open(&self, bytes: &[u8], more: More) -> usize {
        let longest = match more {
            More::May => self.secrets.iter().map(|secret| secret.begun(bytes)).max(),
            More::Never => None,
        };
        bytes.len() - longest.unwrap_or(0)
    }
}

impl Search {
    fn new<'a>(beginnings: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        if beginnings.clone().next().is_none() {
            return Search::Nothing;
        }
        let mut packed = Config::new().match_kind(MatchKind::LeftmostFirst).builder();
        match packed.extend(beginnings.clone()).build() {
            Some(searcher) => Search::Packed(searcher),
            None => {
                match AhoCorasick::builder().match_kind(Kind::LeftmostFirst).build(beginnings) {
                    Ok(automaton) => Search::Automaton(automaton),
                    Err(_) => Search::Everything,
                }
            }
        }
    }

    /// The first place from `from` on where a secret may begin.
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
        let mut shorter = vec![0; bytes.len()];
        for end in 1..bytes.len() {
            let mut length = shorter[end - 1];
            while length > 0 && bytes[length] != bytes[end] {
                length = shorter[length - 1];
            }
            shorter[end] = length + usize::from(bytes[length] == bytes[end]);
        }
        Self { bytes: bytes.to_vec(), shorter }
    }

    /// How many of its bytes, but not all, `text` ends with. Takes time as the secret is long, whatever the text.
    fn begun(&self, text: &[u8]) -> usize {
        let tail = &text[text.len().saturating_sub(self.bytes.len() - 1)..];
        let Some(start) = memchr::memchr(self.bytes[0], tail) else { return 0 };
        let mut length = 0;
        for byte in &tail[start..] {
            while length > 0 && self.bytes[length] != *byte {
                length = self.shorter[length - 1];
            }
            // The tail is shorter than the secret, so that the whole of it is never reached.
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
        (String::from_utf8(out).unwrap(), redactor.replaced())
    }

    #[track_caller]
    fn check(secrets: &[&str], pieces: &[&str], expect: Expect) {
        let (text, replaced) = redact(secrets, pieces.iter().copied());
        expect.assert_eq(&format!("{text} {replaced}"));
    }

    #[test]
    fn secrets_go() {
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
    fn the_longest_goes_first() {
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
    fn only_a_beginning_is_held_back() {
        let (mut redactor, mut out) = (Redactor::new(&["hunter22"]), Vec::new());
        redactor.push(b"the hunt", &mut out);
        assert_eq!(out, b"the ");
        redactor.push(b" is on", &mut out);
        assert_eq!(out, b"the hunt is on");
    }

    #[test]
    fn long_secrets_cost_little() {
        let secret = "a".repeat(100_000);
        let output = "a".repeat(99_999);
        let (text, replaced) = redact(&[&secret], [output.as_str(); 9]);
        assert_eq!((text.len(), replaced), (8 * REDACTED.len() + 99_991, 8));
    }

    /// At each place the longest secret that begins there is replaced, else one character is told.
    fn naive(secrets: &[&str], text: &str) -> (String, u64) {
        let (mut out, mut replaced, mut rest) = (String::new(), 0, text);
        while let Some(first) = rest.chars().next() {
            let here = secrets.iter().filter(|it| !it.is_empty() && rest.starts_with(**it));
            let length = match here.map(|secret| secret.len()).max() {
                Some(length) => {
                    out.push_str("[redacted]");
                    replaced += 1;
                    length
                }
                None => {
                    out.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        (out, replaced)
    }

    #[test]
    fn a_text_may_end_in_the_middle_of_a_secret() {
        let check = |text: &str, expected: &str| {
            assert_eq!(redacted(text, &["hunter22", "hunter22andmore"]), expected);
        };
        check("ls -l", "ls -l");
        check("login hunter22 --now", "login [redacted] --now");
        check("login hunter22", "login [redacted]");
        check("login hunt", "login [redacted]");
        check("touch h", "touch h");
        assert_eq!(redacted("anything", &[] as &[&str]), "anything");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn does_what_it_says(secrets in prop::collection::vec("[ab]{0,5}", 0..4), pieces in prop::collection::vec("[abc]{0,6}", 0..8)) {
            let secrets: Vec<_> = secrets.iter().map(String::as_str).collect();
            let told = redact(&secrets, pieces.iter().map(String::as_str));
            prop_assert_eq!(told, naive(&secrets, &pieces.concat()));
        }
    }
}
