//! What the model of a session has already been told.

use std::collections::BTreeSet;
use std::path::PathBuf;

use helve_agent::event::AgentEvent;
use tokio::sync::Mutex;

use crate::skills::FoundSkills;

/// What a session has already been told.
#[derive(Default)]
pub(crate) struct NoteTracker {
    pub(crate) instructions: Mutex<NestedInstructions>,
    /// The skills that the model knows, if they differ from those in the description of the tool.
    pub(crate) skills: parking_lot::Mutex<Option<FoundSkills>>,
    /// Processes that ran in the background when last looked at.
    pub(crate) running: parking_lot::Mutex<BTreeSet<String>>,
}

impl NoteTracker {
    /// Remembers the processes that calls leave running.
    pub(crate) fn observe(&self, event: &AgentEvent) {
        if let AgentEvent::Result { process: Some(process), .. } = event {
            self.running.lock().insert(process.clone());
        }
    }
}

/// The folders whose instruction files were looked for in a session.
#[derive(Debug, Default)]
pub(crate) struct NestedInstructions {
    pub(crate) checked: BTreeSet<PathBuf>,
    /// Size of what was shown.
    pub(crate) bytes: usize,
}
