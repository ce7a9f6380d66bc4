//! What is read with a folder: everything beneath it.

use helve_text::shell::{AccessKind, FileAccess, FileTarget};

use super::transfer::Landed;
use super::{Ground, Unclear, Wants};

/// With more names than these, what a command reads is not told.
const MOST_NAMES: usize = 500;

impl<G: Ground> Wants<'_, G> {
    /// Judges every file beneath what a command reads. Links are followed; where they go round, there are too many names.
    pub(super) fn touch_beneath(&mut self, touch: &FileAccess, landed: &[Landed]) {
        let Some(places) = self.places(&touch.target) else { return };
        let (FileTarget::Path(shown) | FileTarget::Glob(shown) | FileTarget::Unknown(shown)) =
            &touch.target;
        // What the script puts there itself is not seen.
        let all = if landed.is_empty() { self.beneath(&places.paths) } else { None };
        let Some(all) = all else {
            return self.unclear(touch.kind, shown, Unclear::Target);
        };
        for path in all {
            self.touch(&FileAccess {
                target: FileTarget::Path(path),
                kind: AccessKind::Read,
                run: None,
            });
        }
    }

    /// The paths of everything beneath these; `None` if there are too many, or it cannot be told.
    fn beneath(&self, paths: &[String]) -> Option<Vec<String>> {
        let mut left = paths.to_vec();
        let mut all = Vec::new();
        let mut complete = true;
        while let Some(folder) = left.pop() {
            // What is outside is asked about as it is, and not looked into.
            let is_outside = self.ground.resolve(&folder).map(|it| it.outside.is_some());
            let entries = match is_outside {
                Some(true) => Some(Vec::new()),
                Some(false) => self.ground.list(&folder),
                None => None,
            };
            // All are asked for before any is missed, so that answers are gathered in few rounds.
            complete &= entries.is_some();
            for entry in entries.unwrap_or_default() {
                let path = format!("{}/{}", folder.trim_end_matches('/'), entry.name);
                if entry.folder || entry.link {
                    left.push(path.clone());
                }
                all.push(path);
            }
            if all.len() > MOST_NAMES {
                return None;
            }
        }
        complete.then_some(all)
    }
}
