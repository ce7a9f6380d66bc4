//! Tests of commits: files that change meanwhile, formatters, and events.

use std::sync::Arc;

use bytes::Bytes;
use expect_test::expect;
use helve_core::CallRef;
use helve_core::event::EventKind;
use helve_core::{
    Action, AfterWrite, Ask, BoxFuture, Diagnostic, DiagnosticReport, DiagnosticSeverity, Person,
    Reply, Resolved, Scope, WrittenFile,
};
use helve_testkit::{MemoryMachine, MemoryNode};
use serde_json::json;

use crate::stage::{Stage, StageBuilder, receive, rule};

/// A person who saves other content to the file while being asked, then approves.
struct EditingPerson {
    machine: Arc<MemoryMachine>,
    saved: &'static str,
}

impl Person for EditingPerson {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        self.machine.write("/w/a.txt", self.saved);
        Box::pin(async { Reply::Yes(Scope::Once) })
    }
}

/// A stage whose person saves this content to the file while being asked.
fn stage_with_editing_person(saved: &'static str) -> Stage {
    let mut builder = StageBuilder::default();
    builder.person = Arc::new(EditingPerson { machine: builder.machine.clone(), saved });
    let stage = builder.build();
    stage.machine.write("/w/a.txt", "1\n2\n3\n4\n5\n");
    stage
}

fn content(stage: &Stage) -> String {
    match stage.machine.nodes.lock().get(std::path::Path::new("/w/a.txt")) {
        Some(MemoryNode::File(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

async fn edit(stage: &Stage, old: &str, new: &str) -> String {
    let input = json!({"filePath": "a.txt", "oldString": old, "newString": new});
    match stage.call("edit", input).await.outcome {
        Ok(output) => output.joined_text(),
        Err(err) => err.full_message(),
    }
}

#[tokio::test]
async fn an_approved_change_is_merged_with_a_change_of_other_lines() {
    let stage = stage_with_editing_person("1\n2\n3\n4\nfive\n");
    let output = edit(&stage, "1\n", "one\n").await;
    assert!(output.contains("both changes were kept"), "{output}");
    assert_eq!(content(&stage), "one\n2\n3\n4\nfive\n");
}

#[tokio::test]
async fn nothing_is_written_if_the_same_lines_changed() {
    let stage = stage_with_editing_person("uno\n2\n3\n4\n5\n");
    let output = edit(&stage, "1\n", "one\n").await;
    expect![[r#"
        a.txt changed during this call, in the same lines. Nothing was written. Changes since then:
        --- a.txt
        +++ a.txt
        @@ -1,4 +1,4 @@
        -1
        +uno
         2
         3
         4
        Read the file again, then redo the change."#]]
    .assert_eq(&output);
    assert_eq!(content(&stage), "uno\n2\n3\n4\n5\n");
}

#[tokio::test]
async fn a_whole_file_write_is_never_merged() {
    let stage = stage_with_editing_person("1\n2\n3\n4\nfive\n");
    stage.read("a.txt").await;
    let input = json!({"filePath": "a.txt", "content": "new\n"});
    let err = stage.call("write", input).await.outcome.unwrap_err();
    assert_eq!(err.kind, helve_core::ErrorKind::Stale);
    expect![[r#"
        a.txt changed during this call, in the same lines. Nothing was written. Changes since then:
        --- a.txt
        +++ a.txt
        @@ -2,4 +2,4 @@
         2
         3
         4
        -5
        +five
        Read the file again, then redo the change."#]]
    .assert_eq(&err.full_message());
    assert_eq!(content(&stage), "1\n2\n3\n4\nfive\n");
}

/// A formatter that writes everything in capitals and reports a problem in line 1.
struct UppercaseFormatter;

impl AfterWrite for UppercaseFormatter {
    fn format<'a>(&'a self, _path: &'a Resolved, bytes: &'a Bytes) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(async { Some(bytes.to_ascii_uppercase().into()) })
    }

    fn diagnose<'a>(&'a self, written: &'a [WrittenFile]) -> BoxFuture<'a, DiagnosticReport> {
        let diagnostics = written.iter().map(|written| Diagnostic {
            display_path: written.display_path.clone(),
            line: 1,
            column: 1,
            severity: DiagnosticSeverity::Error,
            message: "too loud".into(),
            code: Some("E1".into()),
            source: Some("upper".into()),
        });
        let report =
            DiagnosticReport { diagnostics: diagnostics.collect(), ..DiagnosticReport::default() };
        Box::pin(async { report })
    }
}

fn allow_edits(builder: &mut StageBuilder) {
    builder.rules.user = vec![rule("edit", "*", Action::Allow)];
}

#[tokio::test]
async fn formatted_content_counts_as_written_by_the_session() {
    let mut builder = StageBuilder::default();
    allow_edits(&mut builder);
    builder.after_write.push(Arc::new(UppercaseFormatter));
    let stage = builder.build();
    stage.machine.write("/w/a.txt", "a\nb\n");
    let output = edit(&stage, "a\n", "c\n").await;
    assert_eq!(content(&stage), "C\nB\n");
    assert!(
        output.contains("A formatter then changed a.txt:")
            && output.contains("a.txt:1:1: too loud (upper E1)"),
        "{output}"
    );
    // The session may overwrite the formatted file without reading it again.
    let input = json!({"filePath": "a.txt", "content": "new\n"});
    assert!(stage.call("write", input).await.outcome.is_ok());
}

#[tokio::test]
async fn a_changed_file_causes_an_event() {
    let mut builder = StageBuilder::default();
    allow_edits(&mut builder);
    let stage = builder.build();
    let mut events = stage.engine.recorder.events.subscribe();
    edit(&stage, "hello", "bye").await;
    let received = receive(&mut events, 4).await;
    let edited = received.iter().find_map(|event| match &event.kind {
        EventKind::Edited { path } => Some(path.clone()),
        _ => None,
    });
    assert_eq!(edited, Some("/w/a.txt".into()));
}
