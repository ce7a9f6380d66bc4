//! Recognizes a quoted text whose accented letters or syllables are encoded differently in the file: composed on one
//! side, decomposed on the other.

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::view::View;

/// Maximum size of a file that is searched, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Returns the lines at which the quoted text is found in another Unicode form.
pub(super) fn find(view: &View<'_>, quoted: &str) -> Option<Range<usize>> {
    let text = view.text();
    if quoted.is_ascii() || text.len() > MAX_BYTES || is_nfc(quoted) && is_nfc(text) {
        return None;
    }
    let composed: String = quoted.trim_matches('\n').nfc().collect();
    let text: String = text.nfc().collect();
    let at = text.find(&composed)?;
    let lines_before = |offset: usize| text[..offset].matches('\n').count();
    Some(lines_before(at)..lines_before(at + composed.len()) + 1)
}

/// Whether two lines differ at most in Unicode form.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.nfc().eq(other.nfc())
}
