//! The session's todo list.

use helve_core::{Ask, Session, Slot, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry of the list.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TodoItem {
    pub(crate) content: String,
    pub(crate) status: TodoStatus,
    #[serde(default)]
    pub(crate) priority: TodoPriority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TodoPriority {
    High,
    #[default]
    Medium,
    Low,
}

/// The list as the session stores it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct TodoList(pub(crate) Vec<TodoItem>);

impl Slot for TodoList {
    const KEY: &'static str = "todos";
}

impl TodoList {
    /// The number of entries that are neither completed nor cancelled.
    pub(crate) fn open_count(&self) -> usize {
        let is_open = |item: &&TodoItem| match item.status {
            TodoStatus::Pending | TodoStatus::InProgress => true,
            TodoStatus::Completed | TodoStatus::Cancelled => false,
        };
        self.0.iter().filter(is_open).count()
    }
}

/// Returns the list as text; empty if no entry is open or the list cannot be read.
pub(crate) async fn open_todos(session: &Session) -> String {
    let todos: TodoList = session.recall().await.unwrap_or_default();
    match todos.open_count() {
        0 => String::new(),
        _ => format!("The todo list:\n{:#}", serde_json::json!(todos)),
    }
}

/// Returns the list. `key` is the permission key.
pub(crate) async fn read(ctx: &ToolContext, key: &'static str) -> Result<TodoList, ToolError> {
    ctx.ask(Ask::to_use(key)).await?;
    ctx.memory.recall().await
}

/// Replaces the list. `key` is the permission key.
pub(crate) async fn replace(
    ctx: &ToolContext,
    key: &'static str,
    items: Vec<TodoItem>,
) -> Result<TodoList, ToolError> {
    ctx.ask(Ask::to_use(key)).await?;
    let todos = TodoList(items);
    ctx.memory.update(|stored: &mut TodoList| *stored = todos.clone()).await?;
    Ok(todos)
}
