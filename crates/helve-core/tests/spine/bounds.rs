//! Tests that long output is cut and saved in full, with a notice of how to read the rest.

use expect_test::{Expect, expect};
use helve_core::{AnyTool, ToolOutput};
use helve_text::cut::Keep;
use serde_json::json;

use crate::stage::{StageBuilder, tool_from_fn};

/// Calls a tool with 5000 lines of output and compares the first line, the notice with its neighbours, and the last
/// line.
async fn check(keep: Keep, extra_tool: Option<Box<dyn AnyTool>>, expected: Expect) {
    let tool = tool_from_fn("long", move |_ctx| {
        let text: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
        Box::pin(async move { Ok(ToolOutput::text("long", text).keep(keep)) })
    });
    let mut builder = StageBuilder::default().tool(tool);
    builder.tools.extend(extra_tool.map(std::sync::Arc::from));
    let stage = builder.build();
    let output = stage.call("long", json!({})).await.outcome.unwrap();
    let text = output.joined_text();
    let lines: Vec<&str> = text.lines().collect();
    let with_neighbours =
        |at: usize| lines[at.saturating_sub(1)..(at + 2).min(lines.len())].join("\n");
    let notice = lines.iter().position(|line| line.starts_with('[')).unwrap();
    let first = lines[0];
    let last = lines[lines.len() - 1];
    let summary =
        format!("{first}\n…\n{}\n…\n{last}\n{} lines", with_neighbours(notice), lines.len());
    expected.assert_eq(&summary);
    assert_eq!(output.metadata["truncated"], json!(true));
    let saved = output.saved.unwrap();
    assert_eq!(saved.bytes, 48_893);
    // The saved output can be read without asking.
    let read = stage.read(&saved.path.display().to_string()).await;
    assert_eq!(read, "ok: 00001| line 1");
}

#[tokio::test]
async fn the_head_is_kept() {
    check(
        Keep::Head,
        None,
        expect![[r#"
            line 1
            …

            [3000 lines (30000 bytes) omitted here. The full output is saved in /data/outputs/s/1.txt. Search it with grep, or read it with offset and limit.]
            …
            [3000 lines (30000 bytes) omitted here. The full output is saved in /data/outputs/s/1.txt. Search it with grep, or read it with offset and limit.]
            2002 lines"#]],
    )
    .await;
}

#[tokio::test]
async fn the_tail_is_kept() {
    check(
        Keep::Tail,
        None,
        expect![[r#"
            [3000 lines (28893 bytes) omitted here. The full output is saved in /data/outputs/s/1.txt. Search it with grep, or read it with offset and limit.]
            …
            [3000 lines (28893 bytes) omitted here. The full output is saved in /data/outputs/s/1.txt. Search it with grep, or read it with offset and limit.]

            …
            line 5000
            2002 lines"#]],
    )
    .await;
}

#[tokio::test]
async fn head_and_tail_are_kept_and_a_sub_agent_is_suggested() {
    let task = tool_from_fn("task", |_ctx| Box::pin(async { Ok(ToolOutput::text("", "")) }));
    check(
        Keep::BothEnds,
        Some(Box::new(task)),
        expect![[r#"
            line 1
            …

            [3000 lines (30000 bytes) omitted here. The full output is saved in /data/outputs/s/1.txt. Have a sub-agent search it with grep and read (task tool), so that it does not fill this conversation.]

            …
            line 5000
            2003 lines"#]],
    )
    .await;
}

#[tokio::test]
async fn control_sequences_do_not_reach_the_model() {
    let tool = tool_from_fn("colours", |_ctx| {
        Box::pin(async { Ok(ToolOutput::text("", "\x1b[31mred\x1b[0m\x07")) })
    });
    let output = StageBuilder::default().tool(tool).build().call("colours", json!({})).await;
    assert_eq!(output.outcome.unwrap().joined_text(), "red");
}
