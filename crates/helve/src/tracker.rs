//! Remembers which notes the model of a session has already been given.

use std::collections::BTreeSet;
use std::path::PathBuf;

use helve_agent::event::AgentEvent;
use tokio::sync::Mutex;

use crate::skills::FoundSkills;

/// What the model of a session already knows, so that it gets notes only about what is new.
#[derive(Default)]
pub(crate) struct NoteTracker {
    pub(crate) instructions: Mutex<NestedInstructions>,
    /// The skills that existed when the model last got a note about them; `None` before the first note, when it knows
    /// only those in the description of the tool `skill`.
    pub(crate) skills: parking_lot::Mutex<Option<FoundSkills>>,
    /// Ids of the background processes whose end has not been reported yet.
    pub(crate) running: parking_lot::Mutex<BTreeSet<String>>,
}

impl NoteTracker {
    /// Records the process that a call leaves running.
    pub(crate) fn observe(&self, event: &AgentEvent) {
        if let AgentEvent::Result { process: Some(process), .. } = event {
            self.running.lock().insert(process.clone());
        }
    }
}

/// The instruction files of subfolders that were shown in a session.
#[derive(Debug, Default)]
pub(crate) struct NestedInstructions {
    /// The folders in which instruction files were looked for.
    pub(crate) checked: BTreeSet<PathBuf>,
    /// Total size of the notes that were shown.
    pub(crate) bytes: usize,
}
