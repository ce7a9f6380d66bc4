//! Finds lines that still have the line numbers of a listing, which a tool like `read` prints.

use std::collections::HashSet;

use super::NewText;
use crate::edit::text_kind::TextKind;

/// A line with a number in front.
struct NumberedLine<'a> {
    number: usize,
    text: &'a str,
    /// Whether the number is padded to a fixed width or followed by an arrow, as only in listings.
    is_padded: bool,
}

/// Maximum distance between a line number and the line at which the text is written.
const MAX_DISTANCE: usize = 3;

/// Returns the first numbered line, if the new text was copied from a listing.
pub(super) fn find<'a>(text: &NewText<'a>) -> Option<&'a str> {
    let lines = || text.new.lines().filter(|line| !line.trim().is_empty() && !is_frame(line));
    // Most texts have no numbered line, and the function returns here. A text that replaces the whole file is a listing
    // only if its first line has a number.
    let first_numbered = if text.is_whole_file() {
        lines().next().filter(|line| parse(line).is_some())?
    } else {
        lines().find(|line| parse(line).is_some())?
    };
    if text.old.lines().any(|line| parse(line).is_some_and(|line| line.is_padded)) {
        return None;
    }
    let numbered: Vec<NumberedLine<'a>> = lines().filter_map(parse).collect();
    let is_complete = numbered.len() == lines().count();
    let is_consecutive = numbered
        .windows(2)
        .all(|pair| pair[0].number < pair[1].number && pair[1].number - pair[0].number <= 2);
    let is_padded = numbered.iter().any(|line| line.is_padded);
    let range = text.first_line.saturating_sub(MAX_DISTANCE)
        ..=text.first_line + text.new.lines().count().max(text.old.lines().count()) + MAX_DISTANCE;
    let is_near_target = numbered.iter().any(|line| line.is_padded && range.contains(&line.number));
    let is_listing = match (is_padded, is_complete && is_consecutive) {
        (true, true) => text.kind != TextKind::Prose || is_near_target,
        (true, false) => is_near_target || text.kind.is_code() && !has_listing(text.file),
        (false, true) => numbered.len() > 1 && is_unpadded_listing(text, &numbered),
        (false, false) => false,
    };
    is_listing.then_some(first_numbered)
}

/// Whether lines with plain numbers come from a listing: without the numbers, they are lines of the file.
fn is_unpadded_listing(text: &NewText<'_>, numbered: &[NumberedLine<'_>]) -> bool {
    if text.file.is_empty() {
        return text.kind.is_code() && numbered[0].number == 1;
    }
    let old: HashSet<&str> =
        text.old.lines().map(str::trim).filter(|line| line.len() > 1).collect();
    let is_numbered = text.old.lines().any(|line| parse(line).is_some());
    !is_numbered && numbered.iter().any(|line| old.contains(line.text.trim()))
}

fn has_listing(file: &str) -> bool {
    file.lines().any(|line| parse(line.trim_start()).is_some_and(|line| line.is_padded))
}

/// Whether a line is one that tools print before or after a listing.
fn is_frame(line: &str) -> bool {
    let line = line.trim();
    matches!(line, "<file>" | "</file>" | "<content>" | "</content>")
        || line.starts_with("(End of file")
        || line.starts_with("(Showing lines")
        || line.starts_with("<path>")
        || line.starts_with("<type>")
}

/// Parses a line number at the start of a line, in one of the formats that tools use.
fn parse(line: &str) -> Option<NumberedLine<'_>> {
    let unpadded = line.trim_start_matches(' ');
    let blanks = line.len() - unpadded.len();
    if blanks > 6 {
        return None;
    }
    let after_letter = unpadded.strip_prefix('L').unwrap_or(unpadded);
    let digits = after_letter.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 7 {
        return None;
    }
    let (number, rest) = after_letter.split_at(digits);
    let has_letter = after_letter.len() != unpadded.len();
    let number_value = number.parse().ok()?;
    let separators: &[&str] =
        if has_letter { &[": ", ":"] } else { &["| ", "|", " | ", " |", "\u{2192}", "\t", ": "] };
    let (separator, text) = separators.iter().find_map(|separator| {
        let text = rest.strip_prefix(separator)?;
        // A separator without a trailing blank counts only at the end of the line; elsewhere it is part of the text.
        (separator.ends_with([' ', '\t', '\u{2192}']) || text.is_empty())
            .then_some((*separator, text))
    })?;
    let is_zero_padded =
        blanks == 0 && digits >= 5 && number.starts_with('0') && separator.starts_with('|');
    let is_right_aligned = blanks > 0
        && (5..=7).contains(&(blanks + digits))
        && matches!(separator, "\t" | "\u{2192}");
    Some(NumberedLine {
        number: number_value,
        text,
        is_padded: is_zero_padded || is_right_aligned || separator == "\u{2192}",
    })
}
