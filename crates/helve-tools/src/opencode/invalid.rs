//! `invalid`: answers calls of tools that do not exist. It is never offered.

use helve_core::{Audience, ErrorKind, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The name that was called.
    #[expect(dead_code, reason = "part of the wire format; the error already names it")]
    tool: String,
    /// What was wrong with it.
    error: String,
}

pub(super) struct Invalid;

impl Tool for Invalid {
    type Args = Args;
    const NAME: &'static str = "invalid";
    const ABOUT: &'static str = include_str!("invalid.txt");
    const AUDIENCE: Audience = Audience::HIDDEN;

    async fn run(&self, args: Args, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new(ErrorKind::InvalidArgs, args.error))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn unknown_tools_get_similar_names() {
        check(
            "--- call todo_write {}\n",
            expect![[r#"
                !! UnknownTool
                There is no tool "todo_write". Did you mean todowrite, write?
            "#]],
        );
        check(
            "--- call frobnicate {}\n",
            expect![[r#"
                !! UnknownTool
                There is no tool "frobnicate". Available tools: apply_patch, bash, batch, edit, glob, grep, list, multiedit, process, read, todoread, todowrite, write.
            "#]],
        );
    }

    #[test]
    fn tool_names_ignore_case() {
        check(
            "--- file a\nx\n--- call READ {\"filePath\": \"a\"}\n",
            expect![[r#"
                == a
                <file>
                00001| x

                (End of file, 1 line)
                </file>
            "#]],
        );
    }
}
