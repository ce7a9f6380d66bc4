//! Unified diffs of files, for previews and results.

use helve_text::diff::{DiffLabels, DiffLimits, UnifiedDiff, unified};

/// Compares two states of a file. Content that is not text gives one line with both sizes.
pub(crate) fn difference(shown: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> UnifiedDiff {
    let labels = DiffLabels {
        old: old.map_or("/dev/null", |_| shown),
        new: new.map_or("/dev/null", |_| shown),
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    unified(old, new, labels, DiffLimits::DEFAULT).unwrap_or_else(|_binary| UnifiedDiff {
        text: format!("{shown}: {} bytes become {} bytes (binary)\n", old.len(), new.len()),
        additions: 0,
        deletions: 0,
        cut: false,
    })
}
