//! Unified diffs of files, for previews and results.

use helve_text::diff::{DiffLabels, DiffLimits, UnifiedDiff, unified};

/// First line of the preview of a change to a file that may only be opened after the person agrees.
pub(crate) const NOT_OPENED_YET: &str =
    "The file is opened only if you agree. This is what the call requests:\n";

/// Compares two states of a file. Content that is not text gives one line with both sizes.
pub(crate) fn difference(
    display_path: &str,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
) -> UnifiedDiff {
    let labels = DiffLabels {
        old: old.map_or("/dev/null", |_| display_path),
        new: new.map_or("/dev/null", |_| display_path),
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    unified(old, new, labels, DiffLimits::DEFAULT).unwrap_or_else(|_binary| UnifiedDiff {
        text: format!("{display_path}: {} bytes become {} bytes (binary)\n", old.len(), new.len()),
        additions: 0,
        deletions: 0,
        cut: false,
    })
}
