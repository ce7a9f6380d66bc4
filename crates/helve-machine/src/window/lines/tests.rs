//! Tests of windows over text that arrives in blocks of any size.

use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const DEFAULT_WINDOW: WindowRequest = WindowRequest {
    first: 1,
    lines: 100,
    line_bytes: 100,
    max_bytes: 1000,
    timeout: Duration::MAX,
};

fn read_window(text: &[u8], request: WindowRequest, block: usize) -> WindowLines {
    let by_line_feeds = feed_all(LineWindow::new(request), text, block).finish();
    by_line_feeds.unwrap_or_else(|| {
        feed_all(LineWindow::with_carriage_returns(request), text, block)
            .finish()
            .expect("carriage returns end lines")
    })
}

fn feed_all(mut lines: LineWindow, text: &[u8], block: usize) -> LineWindow {
    for block in text.chunks(block) {
        if lines.feed(block) == WindowStatus::Done {
            break;
        }
    }
    lines
}

fn format_window(window_lines: &WindowLines) -> String {
    let mut text = String::new();
    for (index, (line, skipped)) in window_lines.each().enumerate() {
        let number = window_lines.first + index as u64;
        text += &format!(
            "{number}|{}|{}\n",
            line.escape_ascii(),
            if skipped > 0 { format!(" +{skipped}") } else { String::new() }
        );
    }
    text + &format!(
        "{} seen{}\n",
        window_lines.lines_read,
        if window_lines.has_more { ", more" } else { "" }
    )
}

#[track_caller]
fn check(text: &[u8], request: WindowRequest, expected: Expect) {
    let whole = read_window(text, request, text.len().max(1));
    expected.assert_eq(&format_window(&whole));
    for block in 1..=4 {
        assert_eq!(read_window(text, request, block), whole, "in blocks of {block}");
    }
}

#[test]
fn every_line_ending_is_recognized() {
    check(b"", DEFAULT_WINDOW, expect![["0 seen\n"]]);
    check(
        b"a",
        DEFAULT_WINDOW,
        expect![[r"
        1|a|
        1 seen
    "]],
    );
    check(
        b"a\n",
        DEFAULT_WINDOW,
        expect![[r"
        1|a|
        1 seen
    "]],
    );
    check(
        b"\n\n",
        DEFAULT_WINDOW,
        expect![[r"
        1||
        2||
        2 seen
    "]],
    );
    check(
        b"a\r\nb\rc\n\r\n\r\r\nd\r",
        DEFAULT_WINDOW,
        expect![[r"
        1|a|
        2|b\rc|
        3||
        4|\r|
        5|d\r|
        5 seen
    "]],
    );
    check(
        b"\0\xff\nb",
        DEFAULT_WINDOW,
        expect![[r"
        1|\x00\xff|
        2|b|
        2 seen
    "]],
    );
}

#[test]
fn the_window_starts_and_ends_at_the_requested_lines() {
    let text = b"a\nb\nc\n";
    check(
        text,
        WindowRequest { first: 2, lines: 1, ..DEFAULT_WINDOW },
        expect![[r"
        2|b|
        2 seen, more
    "]],
    );
    check(
        text,
        WindowRequest { first: 2, lines: 2, ..DEFAULT_WINDOW },
        expect![[r"
        2|b|
        3|c|
        3 seen
    "]],
    );
    check(
        b"a\nb\nc",
        WindowRequest { first: 3, ..DEFAULT_WINDOW },
        expect![[r"
        3|c|
        3 seen
    "]],
    );
    check(
        text,
        WindowRequest { first: 0, lines: 1, ..DEFAULT_WINDOW },
        expect![[r"
        1|a|
        1 seen, more
    "]],
    );
    check(text, WindowRequest { first: 4, ..DEFAULT_WINDOW }, expect![["3 seen\n"]]);
    check(b"a\nb\nc", WindowRequest { first: 9, ..DEFAULT_WINDOW }, expect![["3 seen\n"]]);
    check(
        text,
        WindowRequest { first: u64::MAX, lines: u64::MAX, ..DEFAULT_WINDOW },
        expect![["3 seen\n"]],
    );
    check(text, WindowRequest { lines: 0, ..DEFAULT_WINDOW }, expect![["0 seen, more\n"]]);
    check(text, WindowRequest { first: 4, lines: 0, ..DEFAULT_WINDOW }, expect![["3 seen\n"]]);
}

#[test]
fn long_lines_are_cut_between_characters() {
    let request = WindowRequest { line_bytes: 4, ..DEFAULT_WINDOW };
    check(
        b"12345\n1234\r\n12345\r\n123",
        request,
        expect![[r"
        1|1234| +1
        2|1234|
        3|1234| +1
        4|123|
        4 seen
    "]],
    );
    check(
        "aéöü\n€€\n123🙂x\n🙂\n".as_bytes(),
        request,
        expect![[r"
        1|a\xc3\xa9| +4
        2|\xe2\x82\xac| +3
        3|123| +5
        4|\xf0\x9f\x99\x82|
        4 seen
    "]],
    );
    check(
        b"123\xe9\xe9\n\x80\x80\x80\x80\x80\n123\xffx\n",
        request,
        expect![[r"
        1|123| +2
        2|\x80\x80\x80\x80| +1
        3|123\xff| +1
        3 seen
    "]],
    );
    check(
        b"1\n1234\r",
        request,
        expect![[r"
        1|1|
        2|1234| +1
        2 seen
    "]],
    );
    check(
        "é\n\n".as_bytes(),
        WindowRequest { line_bytes: 0, ..DEFAULT_WINDOW },
        expect![[r"
        1|| +2
        2||
        2 seen
    "]],
    );
}

#[test]
fn the_window_ends_before_the_line_that_exceeds_the_limit() {
    let request = WindowRequest { max_bytes: 4, ..DEFAULT_WINDOW };
    check(
        b"12\n34\n5\n",
        request,
        expect![[r"
        1|12|
        2|34|
        2 seen, more
    "]],
    );
    check(
        b"12\n34\r\n\n\n",
        request,
        expect![[r"
        1|12|
        2|34|
        3||
        4||
        4 seen
    "]],
    );
    check(
        b"12\n345\n",
        request,
        expect![[r"
        1|12|
        1 seen, more
    "]],
    );
    check(
        b"123456\n\n7",
        request,
        expect![[r"
        1|123456|
        1 seen, more
    "]],
    );
    check(
        b"1\n23456789012345",
        request,
        expect![[r"
        1|1|
        1 seen, more
    "]],
    );
    check(
        b"1\n2\n3456789",
        WindowRequest { first: 2, ..request },
        expect![[r"
        2|2|
        2 seen, more
    "]],
    );
}

#[test]
fn empty_lines_count_towards_the_limit() {
    let text = vec![b'\n'; 3_000_000];
    let window_lines =
        read_window(&text, WindowRequest { lines: u64::MAX, ..DEFAULT_WINDOW }, 1 << 16);
    assert_eq!(
        (window_lines.lines.len(), window_lines.lines_read, window_lines.has_more),
        (1 << 20, 1 << 20, true)
    );
}

/// A slow reference implementation that works on the whole text at once.
fn reference(text: &[u8], request: WindowRequest) -> WindowLines {
    let ending = if text.contains(&b'\n') { b'\n' } else { b'\r' };
    let mut all: Vec<&[u8]> = text.split(|byte| *byte == ending).collect();
    let is_ended = all.last() == Some(&b"".as_slice());
    if is_ended {
        all.pop();
    }
    let first = request.first.max(1);
    let before = usize::try_from(first - 1).unwrap().min(all.len());
    let (mut bytes, mut lines, mut has_more) = (Vec::new(), Vec::new(), false);
    for (index, line) in all.iter().enumerate().skip(before) {
        let has_newline = is_ended || index + 1 < all.len();
        let line = if has_newline && ending == b'\n' {
            line.strip_suffix(b"\r").unwrap_or(line)
        } else {
            line
        };
        let mut kept = line.len().min(request.line_bytes);
        if kept < line.len() {
            kept = complete_characters_len(&line[..kept]);
        }
        if lines.len() as u64 == request.lines
            || (!lines.is_empty() && bytes.len() + kept > request.max_bytes)
        {
            has_more = true;
            break;
        }
        bytes.extend_from_slice(&line[..kept]);
        lines.push(LineSpan { end: bytes.len(), skipped: (line.len() - kept) as u64 });
    }
    let lines_read = (before + lines.len()) as u64;
    let until = |count: usize| {
        let lengths = all.iter().take(count).map(|line| line.len() + 1);
        lengths.sum::<usize>().min(text.len()) as u64
    };
    let range = until(before)..until(before + lines.len());
    let (bytes, sample) = (bytes.into(), Bytes::new());
    WindowLines {
        bytes,
        lines,
        first,
        has_more,
        lines_read,
        later_lines: (!has_more).then_some(0),
        size: 0,
        range,
        fingerprint: ContentFingerprint::Nothing,
        whole: None,
        sample,
    }
}

proptest! {
    #[test]
    fn every_window_matches_the_reference_in_blocks_of_any_size(
        text in proptest::collection::vec(proptest::sample::select(b"aa\xc3\xa9\r\n\n".to_vec()), 0..60),
        first in 0u64..12, lines in 0u64..8, line_bytes in 0usize..9, max_bytes in 0usize..20, block in 1usize..20,
    ) {
        let request = WindowRequest { first, lines, line_bytes, max_bytes, timeout: Duration::MAX };
        prop_assert_eq!(read_window(&text, request, block), reference(&text, request));
    }

    #[test]
    fn cut_lines_are_valid_utf_8(text in any::<String>(), line_bytes in 0usize..9) {
        let window_lines = read_window(text.as_bytes(), WindowRequest { line_bytes, ..DEFAULT_WINDOW }, 7);
        for (line, _) in window_lines.each() {
            prop_assert!(std::str::from_utf8(line).is_ok());
        }
    }
}
