//! Files that a person names: reads them for a message, and completes their names.

use std::path::Path;

use helve_agent::item::MessagePart;
use helve_core::{Input, Origin, ToolCall, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::commands::message_parts;
use crate::toolbox::Toolbox;

/// The tool that reads files and images.
const READ: &str = "read";
/// The tool that finds files.
const GLOB: &str = "glob";

impl Toolbox {
    /// Reads a file for a message. The person is not asked for permission, because they named the file, but a rule that
    /// denies reading it applies. Long files are cut as in the tool `read`.
    pub async fn attach(&self, path: &Path) -> Result<Vec<MessagePart>, ToolError> {
        let output = self.call_as_person(READ, json!({"filePath": path.to_string_lossy()})).await?;
        Ok(message_parts(output))
    }

    /// Returns the files, relative to the root, whose name contains `typed`. If `typed` contains a slash, the match
    /// must begin at the start of a path component: `src/ma` finds `lib/src/main.rs`. Ignored files and files that must
    /// not be read are left out.
    pub async fn complete_file(&self, typed: &str) -> Vec<String> {
        // `?` stands for a special character, which cannot be escaped.
        let without_special: String =
            typed.chars().map(|c| if "*?[]{}!\\".contains(c) { '?' } else { c }).collect();
        let pattern = match without_special.contains('/') {
            true => format!("**/{without_special}*"),
            false => format!("**/*{without_special}*"),
        };
        let Ok(output) = self.call_as_person(GLOB, json!({"pattern": pattern})).await else {
            return Vec::new();
        };
        let text = output.joined_text();
        let paths = text.lines().filter_map(|line| Path::new(line).strip_prefix(self.root()).ok());
        let mut files: Vec<String> =
            paths.filter_map(|path| path.to_str()).map(String::from).collect();
        files.sort_by_key(|path| (!path.starts_with(typed), path.len(), path.clone()));
        files
    }

    async fn call_as_person(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let call = ToolCall { origin: Origin::Person, ..ToolCall::new(tool, Input::Json(input)) };
        let tools = self.tools();
        self.engine.call(self.session(), &tools, call, CancellationToken::new()).await.outcome
    }
}
