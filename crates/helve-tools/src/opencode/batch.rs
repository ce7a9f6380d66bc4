//! `batch`: makes several calls at once.

use helve_core::{
    Content, ErrorKind, Input, Tool, ToolContext, ToolError, ToolOutput, ToolProperties, ToolResult,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::words::count;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The calls, in order
    #[schemars(length(min = 1, max = 25))]
    tool_calls: Vec<CallArgs>,
}

#[derive(Deserialize, JsonSchema)]
struct CallArgs {
    /// The name of the tool
    #[schemars(length(min = 1))]
    tool: String,
    /// The arguments of the tool
    #[serde(default)]
    parameters: Map<String, Value>,
}

pub(super) struct Batch;

impl Tool for Batch {
    type Args = Args;
    const NAME: &'static str = "batch";
    const ABOUT: &'static str = include_str!("batch.txt");
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::MUTATES };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let is_batch = |call: &CallArgs| call.tool.eq_ignore_ascii_case(Self::NAME);
        if args.tool_calls.iter().any(is_batch) {
            let message = "A batch cannot contain batch. Put its calls into this batch.";
            return Err(ToolError::new(ErrorKind::InvalidArgs, message));
        }
        let names: Vec<String> = args.tool_calls.iter().map(|call| call.tool.clone()).collect();
        let calls = args.tool_calls.into_iter();
        let calls = calls.map(|call| (call.tool, Input::Json(Value::Object(call.parameters))));
        let results = ctx.call_all_nested(calls.collect()).await;
        if ctx.cancel.is_cancelled() {
            return Err(ctx.words().aborted());
        }
        Ok(answer(&names, results))
    }
}

/// Returns all results in the order of the calls. A failed call does not make the batch fail.
fn answer(names: &[String], results: Vec<ToolResult>) -> ToolOutput {
    let (mut text, mut attached, mut details) = (String::new(), Vec::new(), Vec::new());
    // Another agent that takes over after this call, for example after `plan_exit`.
    let mut handover = None;
    for (name, result) in names.iter().zip(results) {
        let (status, body) = match result.outcome {
            Ok(output) => {
                handover = output.handover.clone().or(handover);
                let body = output.joined_text();
                let is_text = |content: &Content| matches!(content, Content::Text(_));
                attached.extend(output.content.into_iter().filter(|it| !is_text(it)));
                ("completed", body)
            }
            Err(error) => ("error", error.full_message()),
        };
        details.push(json!({"tool": name, "call": result.call, "status": status}));
        let name = name.replace(['"', '<', '>', '\n'], "");
        text += &format!("<result tool=\"{name}\" status=\"{status}\">\n{body}\n</result>\n");
    }
    let failed = details.iter().filter(|it| it["status"] == "error").count();
    let calls = count(details.len() as u64, "call", "calls");
    let title = match failed {
        0 => calls,
        failed => format!("{calls}, {failed} failed"),
    };
    let mut output = ToolOutput::text(title, text.trim_end()).with_metadata("calls", details);
    output.content.extend(attached);
    output.handover = handover;
    output
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn results_come_in_order_and_failures_stop_nothing() {
        check(
            r#"
--- file a.txt
one
--- rule edit * allow
--- call batch {"tool_calls": [{"tool": "read", "parameters": {"filePath": "nope"}}, {"tool": "write", "parameters": {"filePath": "b.txt", "content": "two\n"}}, {"tool": "read", "parameters": {"filePath": "b.txt"}}, {"tool": "frob", "parameters": {}}, {"tool": "glob", "parameters": {"pattern": "*.txt"}}]}
"#,
            expect![[r#"
                == 5 calls, 2 failed
                <result tool="read" status="error">
                nope does not exist.
                </result>
                <result tool="write" status="completed">
                Created b.txt: 1 line added, 0 removed.

                </result>
                <result tool="read" status="completed">
                <file>
                00001| two

                (End of file, 1 line)
                </file>
                </result>
                <result tool="frob" status="error">
                There is no tool "frob". Available tools: apply_patch, bash, batch, edit, glob, grep, list, multiedit, process, read, todoread, todowrite, write.
                </result>
                <result tool="glob" status="completed">
                /w/a.txt
                /w/b.txt
                </result>
                >> b.txt
                two
            "#]],
        );
    }

    #[test]
    fn each_call_needs_its_own_permission() {
        check(
            r#"
--- file a.txt
one
--- rule read a.txt deny
--- call batch {"tool_calls": [{"tool": "read", "parameters": {"filePath": "a.txt"}}, {"tool": "write", "parameters": {"filePath": "b.txt", "content": "x"}}]}
"#,
            expect![[r#"
                edit b.txt by write [lasting approval: exactly this]
                --- /dev/null
                +++ b.txt
                @@ -0,0 +1 @@
                +x
                \ No newline at end of file
                -> Unanswered
                == 2 calls, 2 failed
                <result tool="read" status="error">
                A rule forbids this: read a.txt (rule read "a.txt": deny, set by the program). It cannot be approved.
                Continue without it, or tell the user which rule blocks it.
                </result>
                <result tool="write" status="error">
                This needs permission, and nobody can be asked here: edit b.txt (no rule allows it).
                The user can allow it with --allow 'edit:b.txt', or {"permission": {"edit": {"b.txt": "allow"}}} in their helve.json. --yes approves every such request.
                </result>
            "#]],
        );
    }

    #[test]
    fn batches_are_limited_and_not_nested() {
        check(
            r#"
--- call batch {"tool_calls": [{"tool": "Batch", "parameters": {}}]}
--- call batch {"tool_calls": []}
--- call batch {"tool_calls": [{"parameters": {}}, {"tool": "todoread"}]}
--- call batch {"tool_calls": [{"tool": "todoread"}]}
"#,
            expect![[r#"
                !! InvalidArgs
                A batch cannot contain batch. Put its calls into this batch.
                !! InvalidArgs
                Invalid arguments for batch:
                - tool_calls: expected a length of at least 1, found 0
                Correct the arguments and call again.
                !! InvalidArgs
                Invalid arguments for batch:
                - tool_calls[0].tool: expected a string, found nothing
                Correct the arguments and call again.
                == 1 call
                <result tool="todoread" status="completed">
                []
                </result>
            "#]],
        );
        let call = r#"{"tool": "todoread", "parameters": {}}"#;
        let calls = vec![call; 26].join(", ");
        check(
            &format!("--- call batch {{\"tool_calls\": [{calls}]}}\n"),
            expect![[r#"
            !! InvalidArgs
            Invalid arguments for batch:
            - tool_calls: expected a length of at most 25, found 26
            Correct the arguments and call again.
        "#]],
        );
    }
}
