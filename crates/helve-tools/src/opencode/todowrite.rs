//! `todowrite`: replaces the session's todo list.

use helve_core::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ops::todo::{self, TodoItem, TodoList, TodoPriority, TodoStatus};
use crate::words::count;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The complete new list
    #[schemars(length(max = 1000))]
    todos: Vec<TodoArgs>,
}

#[derive(Deserialize, JsonSchema)]
struct TodoArgs {
    /// What to do, in a few words
    #[schemars(length(min = 1, max = 10_000))]
    content: String,
    status: TodoStatus,
    #[serde(default)]
    priority: TodoPriority,
    /// Your own id for this todo
    #[serde(default)]
    id: Option<String>,
}

pub(super) struct TodoWrite;

impl Tool for TodoWrite {
    type Args = Args;
    const NAME: &'static str = "todowrite";
    const ABOUT: &'static str = include_str!("todowrite.txt");
    const PROPERTIES: ToolProperties = ToolProperties::SESSION_STATE_ONLY;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let item = |todo: TodoArgs| {
            let TodoArgs { content, status, priority, id } = todo;
            TodoItem { content, status, priority, id }
        };
        let items = args.todos.into_iter().map(item).collect();
        Ok(answer(&todo::replace(ctx, Self::NAME, items).await?))
    }
}

/// Returns the list as JSON, which is the answer of both todo tools.
pub(super) fn answer(todos: &TodoList) -> ToolOutput {
    let value = serde_json::json!(todos);
    let title = count(todos.open_count() as u64, "open todo", "open todos");
    ToolOutput::text(title, format!("{value:#}")).with_metadata("todos", value)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn the_list_lasts_for_the_session() {
        check(
            r#"
--- call todoread
--- call todowrite {"todos": [{"content": "a", "status": "completed", "priority": "high"}, {"content": "b", "status": "pending", "id": "2"}]}
--- call todoread
"#,
            expect![[r#"
                == 0 open todos
                []
                == 1 open todo
                [
                  {
                    "content": "a",
                    "status": "completed",
                    "priority": "high"
                  },
                  {
                    "content": "b",
                    "status": "pending",
                    "priority": "medium",
                    "id": "2"
                  }
                ]
                == 1 open todo
                [
                  {
                    "content": "a",
                    "status": "completed",
                    "priority": "high"
                  },
                  {
                    "content": "b",
                    "status": "pending",
                    "priority": "medium",
                    "id": "2"
                  }
                ]
            "#]],
        );
    }

    #[test]
    fn statuses_and_priorities_are_validated() {
        check(
            r#"
--- call todowrite {"todos": [{"content": "", "status": "done"}, {"content": 3, "status": "pending", "priority": "urgent"}, {}]}
--- call todoread
"#,
            expect![[r#"
                !! InvalidArgs
                Invalid arguments for todowrite:
                - todos[0].content: expected a length of at least 1, found 0
                - todos[0].status: expected one of "pending", "in_progress", "completed", "cancelled", found the string "done"
                - todos[1].content: expected a string, found 3
                - todos[1].priority: expected one of "high", "medium", "low", found the string "urgent"
                - todos[2].content: expected a string, found nothing
                - todos[2].status: expected one of "pending", "in_progress", "completed", "cancelled", found nothing
                Correct the arguments and call again.
                == 0 open todos
                []
            "#]],
        );
    }
}
