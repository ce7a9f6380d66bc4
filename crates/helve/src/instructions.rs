//! Builds the system prompt, and finds the instruction files that a model gets: those of the configuration, and those
//! of the subfolders in which it works.

use std::path::Path;

use helve_agent::prompt;
use helve_core::{Action, Part};
use helve_ext::config::{
    ConfigHost, ConfigLayer, Disk, INSTRUCTION_NAMES, InstructionFile, LinkPolicy,
};
use helve_text::visible;
use helve_tools::plan_prompt;

use crate::toolbox::Toolbox;
use crate::tracker::NestedInstructions;
use crate::trust::TrustState;

/// The agent that writes plans.
const PLAN_AGENT: &str = "plan";
/// Maximum size of one instruction file of a subfolder. The rest is cut off.
const MAX_NESTED_BYTES: usize = 8 << 10;
/// Maximum total size of the instruction files of subfolders that are shown. The total starts again when the
/// conversation is summarized.
const MAX_NESTED_TOTAL: usize = 24 << 10;
/// Folders with dependencies or build output. Instruction files in them are not meant for this project.
const FOREIGN_FOLDERS: [&str; 6] =
    ["node_modules", "vendor", "third_party", "target", "site-packages", "dist"];

impl Toolbox {
    /// Returns the system prompt: the agent's own or the general one, the instructions for plans if the agent writes
    /// plans, and the instruction files.
    pub(crate) fn system_prompt(&self) -> Vec<String> {
        let prompt = self.agent_config().and_then(|agent| agent.prompt.as_ref());
        let prompt = prompt.map_or(prompt::BASE, |prompt| prompt.value.as_str());
        let files: Vec<_> = self
            .config
            .instructions
            .iter()
            .filter(|file| self.may_instruct(file))
            .filter_map(|file| {
                let text = String::from_utf8(file.content.as_ref().ok()?.bytes.clone()).ok()?;
                Some((self.display_path(&file.path), visible::strip_invisible(&text).into_owned()))
            })
            .collect();
        let plan = (self.agent_name() == PLAN_AGENT).then(|| plan_prompt(self.session_id()));
        let prompts = [prompt.trim_end().to_string()].into_iter().chain(plan);
        prompts.chain(prompt::instructions(&files)).collect()
    }

    fn may_instruct(&self, file: &InstructionFile) -> bool {
        match file.layer {
            ConfigLayer::User => true,
            ConfigLayer::Project => self.trust == TrustState::Trusted,
        }
    }

    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(self.root()).unwrap_or(path).display().to_string()
    }

    /// Returns the instruction files of subfolders in which the session has read or written files. Leaves out those
    /// that are already in `shown`, and adds the new ones to `shown`.
    pub(crate) async fn new_nested_instructions(
        &self,
        shown: &mut NestedInstructions,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        for folder in self.session().seen_files.folders() {
            let Ok(below) = folder.strip_prefix(self.root()) else { continue };
            let mut outermost_first: Vec<&Path> =
                below.ancestors().filter(|folder| !folder.as_os_str().is_empty()).collect();
            outermost_first.reverse();
            if below.iter().any(is_foreign) {
                continue;
            }
            for folder in outermost_first {
                if shown.bytes < MAX_NESTED_TOTAL
                    && shown.checked.insert(folder.to_path_buf())
                    && let Some(note) = self.nested_instructions(folder).await
                {
                    shown.bytes += note.len();
                    notes.push(note);
                }
            }
        }
        notes
    }

    /// Returns the first instruction file of a folder, if the workspace is trusted and no rule denies reading the file.
    async fn nested_instructions(&self, folder: &Path) -> Option<String> {
        let found = INSTRUCTION_NAMES.iter().find_map(|name| {
            let path = self.root().join(folder).join(name);
            let content = Disk.read(&path, LinkPolicy::Beneath(self.root())).ok()?;
            Some((path, String::from_utf8(content.bytes).ok()?))
        });
        let (path, text) = found?;
        let shown_path = self.display_path(&path);
        let verdict = self.session().gate.judge(&Part::new("read", shown_path.clone())).await;
        if !self.is_trusted_now().await || verdict.action == Action::Deny || text.trim().is_empty()
        {
            return None;
        }
        let text = visible::strip_invisible(text.trim()).into_owned();
        let shown = &text[..text.floor_char_boundary(MAX_NESTED_BYTES)];
        let cut = match text.len() - shown.len() {
            0 => String::new(),
            bytes => format!("\n[{bytes} bytes were left out]"),
        };
        Some(format!("Instructions from: {shown_path}\n{shown}{cut}"))
    }

    /// Whether the workspace is trusted. If it had nothing to trust when the toolbox was built, the
    /// store says whether a person has trusted it since.
    async fn is_trusted_now(&self) -> bool {
        match self.trust {
            TrustState::Trusted => true,
            TrustState::Untrusted | TrustState::Changed => false,
            TrustState::NothingToTrust => {
                let digest = self.store.trusted_digest(self.root()).await;
                digest.ok().flatten().as_deref() == Some(self.config.digest.as_str())
            }
        }
    }
}

fn is_foreign(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || FOREIGN_FOLDERS.contains(&&*name)
}
