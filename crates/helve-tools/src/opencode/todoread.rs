//! `todoread`: returns the session's todo list.

use helve_core::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::todowrite::answer;
use crate::ops::todo;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

pub(super) struct TodoRead;

impl Tool for TodoRead {
    type Args = Args;
    const NAME: &'static str = "todoread";
    const ABOUT: &'static str = include_str!("todoread.txt");

    async fn run(&self, _args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(answer(&todo::read(ctx, Self::NAME).await?))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn a_denied_tool_is_not_offered() {
        check(
            "--- rule todoread * deny\n--- call todoread\n",
            expect![[r#"
                !! Denied
                The tool "todoread" is denied by a rule, or switched off in the configuration.
                It cannot be approved; use another tool.
            "#]],
        );
    }
}
