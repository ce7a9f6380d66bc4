//! `todoread`: gives back the session's list of things to do.

use helve_core::{Ask, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::todowrite::{Todos, told};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

pub(super) struct TodoRead;

impl Tool for TodoRead {
    type Args = Args;
    const NAME: &'static str = "todoread";
    const ABOUT: &'static str = include_str!("todoread.txt");

    async fn run(&self, _args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        ctx.ask(Ask::to_use(Self::NAME)).await?;
        Ok(told(&ctx.memory.recall::<Todos>().await?))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn it_can_be_denied() {
        // Denied outright, it is not even offered.
        check(
            "--- rule todoread * deny\n--- call todoread\n",
            expect![[r#"
                !! UnknownTool
                There is no tool "todoread". Did you mean read?
            "#]],
        );
    }
}
