//! Finds new files whose text leaves out code of a file that the same patch deletes.

use std::collections::HashSet;

use helve_text::edit::{NewText, TextFault, TextKind};
use helve_text::view::View;

use super::pending::PendingFile;
use crate::ops::change::ChangeError;

/// Refuses a patch that deletes a file and adds it under another path, with a placeholder for the rest of its lines.
pub(super) fn refuse_omissions(files: &[PendingFile]) -> Result<(), ChangeError> {
    let added = files.iter().filter(|file| file.base.is_none() && file.moved_from.is_none());
    for file in added {
        let Some(new) = file.content.as_ref().and_then(|new| std::str::from_utf8(new).ok()) else {
            continue;
        };
        let display_path = file.path.display();
        for old in files.iter().filter(|file| file.content.is_none()).filter_map(base_text) {
            let text = NewText::whole_file(&old, new, TextKind::of(display_path));
            if has_most_lines_of(new, &old)
                && let Some(fault @ TextFault::Placeholder { .. }) = text.fault()
            {
                return Err(ChangeError::Faulty { display_path: display_path.into(), fault });
            }
        }
    }
    Ok(())
}

/// Returns the text that the file has before the patch.
pub(super) fn base_text(file: &PendingFile) -> Option<String> {
    let base = file.base.as_ref().filter(|base| !base.is_link())?;
    Some(View::new(&base.bytes).ok()?.text().to_owned())
}

/// Whether at least half of the lines of the new text are lines of the old text.
fn has_most_lines_of(new: &str, old: &str) -> bool {
    let has_words = |line: &&str| line.contains(char::is_alphanumeric);
    let old: HashSet<&str> = old.lines().map(str::trim).filter(has_words).collect();
    let new: Vec<&str> = new.lines().map(str::trim).filter(has_words).collect();
    let shared = new.iter().filter(|line| old.contains(*line)).count();
    shared > 0 && shared * 2 >= new.len()
}
