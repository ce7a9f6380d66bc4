//! Changes on their way: files that move on, neighbours that look at what was written, events.

use std::sync::Arc;

use bytes::Bytes;
use helve_core::CallRef;
use helve_core::event::EventKind;
use helve_core::{
    Action, AfterWrite, Ask, BoxFuture, Diagnostic, Person, Reply, Resolved, Scope, WrittenFile,
};
use helve_testkit::{MemoryMachine, MemoryNode};
use serde_json::json;

use crate::stage::{Setting, Stage, drain, rule};

/// Somebody who saves the file in an editor while the question is open, then says yes.
struct Meddles {
    machine: Arc<MemoryMachine>,
    saves: &'static str,
}

impl Person for Meddles {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        self.machine.write("/w/a.txt", self.saves);
        Box::pin(async { Reply::Yes(Scope::Once) })
    }
}

fn meddled(saves: &'static str) -> Stage {
    let mut setting = Setting::default();
    setting.person = Arc::new(Meddles { machine: setting.machine.clone(), saves });
    let stage = setting.build();
    stage.machine.write("/w/a.txt", "1\n2\n3\n4\n5\n");
    stage
}

fn content(stage: &Stage) -> String {
    match stage.machine.0.lock().get(std::path::Path::new("/w/a.txt")) {
        Some(MemoryNode::File(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

async fn edit(stage: &Stage, old: &str, new: &str) -> String {
    let input = json!({"filePath": "a.txt", "oldString": old, "newString": new});
    match stage.call("edit", input).await.outcome {
        Ok(output) => output.joined(),
        Err(err) => err.full_message(),
    }
}

#[tokio::test]
async fn an_approved_change_is_carried_over_to_a_file_that_moved_on() {
    let stage = meddled("1\n2\n3\n4\nfive\n");
    let said = edit(&stage, "1\n", "one\n").await;
    assert!(said.contains("both changes were kept"), "{said}");
    assert_eq!(content(&stage), "one\n2\n3\n4\nfive\n");
}

#[tokio::test]
async fn where_the_same_lines_changed_nothing_is_written() {
    let stage = meddled("uno\n2\n3\n4\n5\n");
    let said = edit(&stage, "1\n", "one\n").await;
    assert!(said.contains("changed during this call"), "{said}");
    assert_eq!(content(&stage), "uno\n2\n3\n4\n5\n");
}

#[tokio::test]
async fn a_whole_file_is_never_carried_over() {
    let stage = meddled("1\n2\n3\n4\nfive\n");
    stage.read("a.txt").await;
    let input = json!({"filePath": "a.txt", "content": "new\n"});
    let err = stage.call("write", input).await.outcome.unwrap_err();
    assert_eq!(err.kind, helve_core::ErrorKind::Stale);
    assert_eq!(content(&stage), "1\n2\n3\n4\nfive\n");
}

/// Writes everything in capitals and complains about line 1.
struct Loud;

impl AfterWrite for Loud {
    fn format<'a>(&'a self, _path: &'a Resolved, bytes: &'a Bytes) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(async { Some(bytes.to_ascii_uppercase().into()) })
    }

    fn diagnose<'a>(&'a self, written: &'a [WrittenFile]) -> BoxFuture<'a, Vec<Diagnostic>> {
        let each = written.iter().map(|written| Diagnostic {
            shown: written.shown.clone(),
            line: 1,
            message: "too loud".into(),
        });
        let all = each.collect();
        Box::pin(async { all })
    }
}

fn free(setting: &mut Setting) {
    setting.written.user = vec![rule("edit", "*", Action::Allow)];
}

#[tokio::test]
async fn a_formatter_sees_what_was_written_and_its_work_is_ours() {
    let mut setting = Setting::default();
    free(&mut setting);
    setting.after.push(Arc::new(Loud));
    let stage = setting.build();
    stage.machine.write("/w/a.txt", "a\nb\n");
    let said = edit(&stage, "a\n", "c\n").await;
    assert_eq!(content(&stage), "C\nB\n");
    assert!(
        said.contains("reformatted afterwards") && said.contains("a.txt:1: too loud"),
        "{said}"
    );
    // It is no foreign change: the file may be written over without another look.
    let input = json!({"filePath": "a.txt", "content": "new\n"});
    assert!(stage.call("write", input).await.outcome.is_ok());
}

#[tokio::test]
async fn every_file_that_changed_is_told() {
    let mut setting = Setting::default();
    free(&mut setting);
    let stage = setting.build();
    let mut events = stage.engine.recorder.events.subscribe();
    edit(&stage, "hello", "bye").await;
    let seen = drain(&mut events, 4).await;
    let edited = seen.iter().find_map(|event| match &event.what {
        EventKind::Edited { path } => Some(path.clone()),
        _ => None,
    });
    assert_eq!(edited, Some("/w/a.txt".into()));
}
