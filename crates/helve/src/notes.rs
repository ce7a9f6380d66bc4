//! The notes that a model gets about its session, besides the results of its calls.

use helve_agent::item::NoteKind;
use helve_agent::turn::SessionState;
use helve_core::BoxFuture;
use helve_core::process::ProcessState;
use helve_tools::SkillAccess;

use crate::environment;
use crate::skills::{FoundSkills, SKILL};
use crate::toolbox::Toolbox;
use crate::tracker::NestedInstructions;

/// Maximum number of changes listed after a summary of the transcript.
const MAX_LISTED_CHANGES: usize = 200;

impl SessionState for Toolbox {
    /// Describes what must not get lost when the transcript is summarized: the to-do list, the files changed in the
    /// session, and the tasks that still run. Instruction files of subfolders and notes on skills will be shown again
    /// afterwards.
    fn describe_after_summary(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            // The summary may leave out the instruction files of subfolders and notes on skills.
            *self.notes.instructions.lock().await = NestedInstructions::default();
            *self.notes.skills.lock() = None;
            let changes = self.history(MAX_LISTED_CHANGES).await.unwrap_or_default();
            let mut files: Vec<String> = changes
                .iter()
                .filter(|change| change.session == self.session_id())
                .flat_map(|change| change.files.iter().map(|file| file.path.display().to_string()))
                .collect();
            files.sort();
            files.dedup();
            let files = match files.is_empty() {
                true => String::new(),
                false => format!("Files changed in this session:\n{}", files.join("\n")),
            };
            let parts = [
                helve_tools::open_todos(self.session()).await,
                files,
                self.describe_running_tasks(),
            ];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            parts.join("\n\n")
        })
    }

    fn environment(&self) -> BoxFuture<'_, String> {
        Box::pin(environment::describe(self))
    }

    fn new_notes(&self) -> BoxFuture<'_, Vec<(NoteKind, String)>> {
        Box::pin(async {
            let mut shown = self.notes.instructions.lock().await;
            let files = self.new_nested_instructions(&mut shown).await;
            let files = files.into_iter().map(|text| (NoteKind::Instructions, text));
            let ended = self.ended_processes().await;
            let tasks = self.tree().take_ended(self.session_id());
            let tasks = tasks.iter().map(|task| helve_tools::task_ended(&task.report()));
            let ended = ended.into_iter().chain(tasks).map(|text| (NoteKind::Finished, text));
            let skills = self.note_on_skills(&mut self.notes.skills.lock());
            let skills = skills.map(|text| (NoteKind::Skills, text));
            files.chain(skills).chain(ended).collect()
        })
    }
}

impl Toolbox {
    /// Returns a note about the skills that changed since the last note. `last_noted` is the state at the last note;
    /// `None` if the model knows only the skills in the description of the tool.
    fn note_on_skills(&self, last_noted: &mut Option<FoundSkills>) -> Option<String> {
        let now = self.skills.find();
        if last_noted.as_ref() == Some(&now) {
            return None;
        }
        let listed = self.skills.listed();
        let access = if listed.is_empty() { SkillAccess::Reading } else { SkillAccess::Tool };
        let before = last_noted.replace(now.clone()).unwrap_or_else(|| FoundSkills::listed(listed));
        let changes = now.changes_since(&before, self.root());
        // If the model should load skills with the tool, but the tool is not offered, a rule denies it.
        let is_tool_denied = || access == SkillAccess::Tool && self.tools().find(SKILL).is_none();
        if changes.is_empty() || is_tool_denied() {
            return None;
        }
        Some(helve_tools::skills_changed(&changes, access))
    }

    /// Describes the sub-agents that have not ended; empty if there are none.
    fn describe_running_tasks(&self) -> String {
        let tasks = self.tree().tasks_of(self.session_id());
        let running: Vec<_> =
            tasks.iter().filter(|task| !task.has_ended()).map(|task| task.report()).collect();
        match running.is_empty() {
            true => String::new(),
            false => helve_tools::tasks_running(&running),
        }
    }

    /// Describes the background processes that ended since this function was last called.
    async fn ended_processes(&self) -> Vec<String> {
        let was_running = self.notes.running.lock().clone();
        let Some(processes) = self.workspace.host().processes() else { return Vec::new() };
        if was_running.is_empty() {
            return Vec::new();
        }
        let mut all = processes.list().await;
        all.retain(|process| {
            let has_ended = process.state != ProcessState::Running && process.children.is_empty();
            was_running.contains(&process.id.0) && has_ended
        });
        let mut tracked = self.notes.running.lock();
        all.iter().for_each(|process| {
            tracked.remove(&process.id.0);
        });
        all.iter().map(helve_tools::process_ended).collect()
    }
}
