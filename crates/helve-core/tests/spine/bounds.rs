//! Long output is cut, saved whole, and the notice says how to go on.

use expect_test::{Expect, expect};
use helve_core::{AnyTool, ToolOutput};
use helve_text::cut::Keep;
use serde_json::json;

use crate::stage::{Setting, does};

async fn check(keep: Keep, more: Option<Box<dyn AnyTool>>, expected: Expect) {
    let tool = does("long", move |_ctx| {
        let text: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
        Box::pin(async move { Ok(ToolOutput::text("long", text).keep(keep)) })
    });
    let mut setting = Setting::default().tool(tool);
    setting.tools.extend(more.map(std::sync::Arc::from));
    let stage = setting.build();
    let output = stage.call("long", json!({})).await.outcome.unwrap();
    let text = output.joined();
    let lines: Vec<&str> = text.lines().collect();
    let around = |at: usize| lines[at.saturating_sub(1)..(at + 2).min(lines.len())].join("\n");
    let notice = lines.iter().position(|line| line.starts_with('[')).unwrap();
    let first = lines[0];
    let last = lines[lines.len() - 1];
    let seen = format!("{first}\n…\n{}\n…\n{last}\n{} lines", around(notice), lines.len());
    expected.assert_eq(&seen);
    assert_eq!(output.metadata["truncated"], json!(true));
    let saved = output.saved.unwrap();
    assert_eq!(saved.bytes, 48_893);
    // What was saved can be read without asking.
    let read = stage.read(&saved.path.display().to_string()).await;
    assert_eq!(read, "ok: 00001| line 1");
}

#[tokio::test]
async fn head() {
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
async fn tail() {
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
async fn middle_and_a_sub_agent_to_search_it() {
    let task = does("task", |_ctx| Box::pin(async { Ok(ToolOutput::text("", "")) }));
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
    let tool = does("colours", |_ctx| {
        Box::pin(async { Ok(ToolOutput::text("", "\x1b[31mred\x1b[0m\x07")) })
    });
    let output = Setting::default().tool(tool).build().call("colours", json!({})).await;
    assert_eq!(output.outcome.unwrap().joined(), "red");
}
