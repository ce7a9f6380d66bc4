//! The tools: operations (`ops`), the wording that dialects share (`words`), and one module per dialect.
//!
//! A dialect has argument types, limits and descriptions. It turns arguments into the input of an operation and the
//! operation's value or error into text. It contains no algorithm and no effect.

pub mod opencode;
mod ops;
pub mod undo;
mod words;

use std::sync::Arc;
use std::time::Duration;

use helve_core::{AnyTool, Dialect, Media, Session};

pub use ops::change::{EditSettings, SyntaxPolicy};
pub use ops::skill::{LoadableSkills, SkillInfo, SkillSource};
pub use words::plan::{PLAN_MODE, plan_prompt};
pub use words::reason::reason;
pub use words::shell::process_ended;
pub use words::skill::{SkillAccess, SkillChange, skills_changed};
pub use words::task::{reported_tasks, task_ended, tasks_running};

/// Makes the tools of a dialect. The last parameter is the default timeout of commands.
pub type MakeTools = fn(Arc<dyn Media>, EditSettings, Duration) -> Vec<Arc<dyn AnyTool>>;

/// A dialect with its tools.
pub struct DialectTools {
    pub dialect: &'static Dialect,
    pub tools: MakeTools,
    /// Tools that a host without processes does not offer.
    pub needs_processes: &'static [&'static str],
}

/// Every dialect, the default first.
pub static DIALECTS: &[DialectTools] = &[DialectTools {
    dialect: &opencode::DIALECT,
    tools: opencode::tools_with,
    needs_processes: &["bash", "process"],
}];

/// Returns the to-do list of a session as a text for the model; empty if no entry is open.
pub async fn open_todos(session: &Session) -> String {
    ops::todo::open_todos(session).await
}

/// Returns the unified diff of two states of a file. `None` stands for a file that does not exist.
pub fn difference(display_path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    ops::change::diff::difference(display_path, before, after).text
}
