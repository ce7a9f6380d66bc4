//! `todowrite`: replaces the session's list of things to do.

use helve_core::{Ask, Slot, Tool, ToolContext, ToolError, ToolOutput, Traits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The whole list as it should be from now on
    #[schemars(length(max = 1000))]
    todos: Vec<Todo>,
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Todo {
    /// What is to be done, in a few words
    #[schemars(length(min = 1, max = 10_000))]
    content: String,
    status: Status,
    #[serde(default)]
    priority: Priority,
    /// Your own name for it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

/// The list that a session remembers.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Todos(Vec<Todo>);

impl Slot for Todos {
    const KEY: &'static str = "todos";
}

pub(super) struct TodoWrite;

impl Tool for TodoWrite {
    type Args = Args;
    const NAME: &'static str = "todowrite";
    const ABOUT: &'static str = include_str!("todowrite.txt");
    const TRAITS: Traits = Traits::REMEMBERS;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        ctx.ask(Ask::to_use(Self::NAME)).await?;
        let todos = Todos(args.todos);
        ctx.memory.update(|kept: &mut Todos| *kept = todos.clone()).await?;
        Ok(told(&todos))
    }
}

/// The list as both todo tools give it back.
pub(super) fn told(todos: &Todos) -> ToolOutput {
    let done = |todo: &&Todo| matches!(todo.status, Status::Completed | Status::Cancelled);
    let open = todos.0.len() - todos.0.iter().filter(done).count();
    let value = serde_json::json!(todos);
    // The pretty form of a value that is already JSON cannot fail; `{:#}` is that form.
    ToolOutput::text(format!("{open} todos"), format!("{value:#}")).with("todos", value)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn the_list_is_kept_for_the_session() {
        check(
            r#"
--- call todoread
--- call todowrite {"todos": [{"content": "a", "status": "completed", "priority": "high"}, {"content": "b", "status": "pending", "id": "2"}]}
--- call todoread
"#,
            expect![[r#"
                == 0 todos
                []
                == 1 todos
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
                == 1 todos
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
    fn states_and_priorities_are_checked() {
        check(
            r#"
--- call todowrite {"todos": [{"content": "", "status": "done"}, {"content": 3, "status": "pending", "priority": "urgent"}, {}]}
--- call todoread
"#,
            expect![[r#"
                !! InvalidArgs
                The arguments of todowrite do not fit:
                - todos[0].content: expected a length of at least 1, found 0
                - todos[0].status: expected one of "pending", "in_progress", "completed", "cancelled", found the string "done"
                - todos[1].content: expected a string, found 3
                - todos[1].priority: expected one of "high", "medium", "low", found the string "urgent"
                - todos[2].content: expected a string, found nothing
                - todos[2].status: expected one of "pending", "in_progress", "completed", "cancelled", found nothing
                Correct them and call again.
                == 0 todos
                []
            "#]],
        );
    }
}
