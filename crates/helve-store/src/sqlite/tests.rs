//! Tests that run scripts on a store line by line and compare the answers.

mod damage;
mod failures;
mod processes;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use expect_test::{Expect, expect};
use helve_core::ErrorKind;
use helve_core::event::{CallOutcome, Event, EventKind, Progress};
use helve_core::journal::{
    AfterImage, BeforeImage, FileImage, Journal, JournalEntry, RecordedChange,
};
use helve_core::store::{ApprovalScopeRef, Store, StoredApproval};
use helve_core::{Action, Pattern, Rule, Source};
use serde_json::{Map, Value, json};

use super::SqliteStore;

/// A store with a short lock timeout.
fn store(folder: &Path) -> SqliteStore {
    let mut store = SqliteStore::at(folder.into());
    store.timeout = Duration::from_millis(100);
    store
}

fn check(script: &str, answers: Expect) {
    let folder = tempfile::tempdir().unwrap();
    answers.assert_eq(&run_script(folder.path(), script));
}

/// Runs a script on a data folder; its path is shown as `DATA` in the answers.
fn run_script(folder: &Path, script: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut current = store(folder);
    let mut answers = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line == "restart" {
            drop(current);
            current = store(folder);
            continue;
        }
        let answer = runtime.block_on(run_line(&current, line));
        if let Some(answer) = answer {
            let space = if answer.is_empty() || answer.starts_with('\n') { "" } else { " " };
            writeln!(answers, "{line}:{space}{answer}").unwrap();
        }
    }
    answers.replace(folder.to_str().unwrap(), "DATA")
}

async fn run_line(store: &SqliteStore, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["get", session, key] => Some(match store.get(session, key).await.unwrap() {
            Some((version, value)) => format!("{value} (version {version})"),
            None => "nothing".into(),
        }),
        ["put", session, key, version, value] => {
            let value = serde_json::from_str(value).unwrap();
            let put = store.put(session, key, version.parse().unwrap(), value).await.unwrap();
            Some(if put { "done" } else { "refused" }.into())
        }
        ["set", session, key, value] => {
            store.set(session, key, serde_json::from_str(value).unwrap());
            None
        }
        ["trusted", root] => {
            Some(format!("{:?}", store.trusted_digest(Path::new(root)).await.unwrap()))
        }
        ["trust", root, digest] => {
            store.set_trusted_digest(Path::new(root), Some(*digest)).await.unwrap();
            None
        }
        ["distrust", root] => {
            store.set_trusted_digest(Path::new(root), None).await.unwrap();
            None
        }
        ["remember", target, action, permission, kind, pattern] => {
            let rule = rule(action, permission, kind, pattern);
            store.remember(parse_scope(target), &rule).await.unwrap();
            None
        }
        ["remembered", session, root] => {
            let rules = store.approvals(session, Path::new(root)).await.unwrap();
            Some(rules.iter().map(show_rule).collect::<String>())
        }
        ["approvals"] => {
            let approvals = store.all_approvals().await.unwrap();
            let line = |it: &StoredApproval| {
                format!("\n  {} {:?}{}", it.id, it.scope, show_rule(&it.rule))
            };
            Some(approvals.iter().map(line).collect())
        }
        ["revoke", ids @ ..] => {
            let ids: Vec<u64> = ids.iter().map(|id| id.parse().unwrap()).collect();
            Some(store.revoke_approvals(&ids).await.unwrap().to_string())
        }
        ["calls", session] => {
            let session = Some(*session).filter(|session| *session != "*");
            let calls = store.calls(session, 10).await.unwrap();
            Some(calls.iter().fold(String::new(), |all, call| {
                let (output, error) = (call.output.as_deref(), call.error.as_deref());
                let end = output.or(error).unwrap_or("-");
                let status = format!("{:?}", call.status).to_lowercase();
                format!(
                    "{all}\n  {} {} {status} {:?} {} {end}",
                    call.id, call.tool, call.title, call.input
                )
            }))
        }
        ["begin", call, path, before] => {
            store.begin(&entry(call, path, before)).await.unwrap();
            None
        }
        ["edit", call, path, before, after] => {
            let id = store.begin(&entry(call, path, before)).await.unwrap();
            store.mark_applied(id, vec![content(after).map(image)]).await.unwrap();
            None
        }
        ["discard", call, path, before] => {
            let id = store.begin(&entry(call, path, before)).await.unwrap();
            store.discard(id);
            None
        }
        ["change", call] => Some(match store.change(call).await {
            Ok(Some(change)) => show_change(&change),
            Ok(None) => "nothing".into(),
            Err(error) => error.to_string(),
        }),
        ["history", root] => {
            let changes = store.changes(Path::new(root), 10).await.unwrap();
            Some(changes.iter().map(|change| format!("\n  {}", show_change(change))).collect())
        }
        ["warning"] => Some(store.pending_warning().await.unwrap_or_else(|| "none".into())),
        ["flush"] => {
            store.flush().await;
            None
        }
        [what, call, rest @ ..] => {
            let (session, call) = call.split_once('/').unwrap();
            store.append(&event(session, call, parse_event(what, rest)));
            None
        }
        _ => panic!("unknown script line: {line}"),
    }
}

fn parse_event(what: &str, rest: &[&str]) -> EventKind {
    match what {
        "start" => EventKind::Started { tool: rest.join(" "), parent: None },
        "run" => EventKind::Running { input: Arc::new(json!({ "with": rest.join(" ") })) },
        "title" => {
            EventKind::Progress(Progress { title: Some(rest.join(" ")), ..Progress::default() })
        }
        "say" => EventKind::Progress(Progress::text(rest.join(" "))),
        "ask" => EventKind::Asked { summary: rest.join(" ") },
        "end" => completed(&rest.join(" ")),
        "fail" => EventKind::Finished(CallOutcome::Failed {
            kind: ErrorKind::Failed,
            error: rest.join(" "),
        }),
        _ => panic!("unknown event: {what}"),
    }
}

fn completed(output: &str) -> EventKind {
    EventKind::Finished(CallOutcome::Completed {
        title: "done".into(),
        metadata: Map::new(),
        output: output.into(),
    })
}

fn event(session: &str, call: &str, kind: EventKind) -> Event {
    let at = super::unsigned(super::now());
    Event { call: call.into(), root_call: call.into(), session: session.into(), at, kind }
}

fn parse_scope(text: &str) -> ApprovalScopeRef<'_> {
    match text.split_once(':') {
        Some(("session", id)) => ApprovalScopeRef::Session(id),
        Some(("project", root)) => ApprovalScopeRef::Project(Path::new(root)),
        _ => ApprovalScopeRef::Everywhere,
    }
}

fn rule(action: &str, permission: &str, kind: &str, pattern: &str) -> Rule {
    let pattern = match kind {
        "wild" => Pattern::Wild(pattern.into()),
        "folded" => Pattern::CaseInsensitive(pattern.into()),
        _ => Pattern::Exact(pattern.into()),
    };
    let action = if action == "allow" { Action::Allow } else { Action::Deny };
    Rule { permission: permission.into(), pattern, action, source: Source::Builtin }
}

/// An entry for one file under `/p`; `-` stands for a missing file.
fn entry(call: &str, path: &str, before: &str) -> JournalEntry {
    JournalEntry {
        call: call.into(),
        session: "s".into(),
        tool: "edit".into(),
        root: "/p".into(),
        at: super::unsigned(super::now()),
        undoes: Vec::new(),
        files: vec![BeforeImage {
            path: path.into(),
            image: content(before).map(image),
            intended: None,
        }],
    }
}

fn image(bytes: Bytes) -> FileImage {
    FileImage::new(bytes, 0o644)
}

fn content(text: &str) -> Option<Bytes> {
    (text != "-").then(|| text.to_owned().into())
}

fn show_change(
    RecordedChange { call, session: _, tool, at: _, undoes: _, files }: &RecordedChange,
) -> String {
    let text = |bytes: &Bytes| format!("{:?}", String::from_utf8_lossy(bytes));
    files.iter().fold(format!("{tool} {call}"), |all, file| {
        let before = file.before.as_ref().map(|image| (text(&image.bytes), image.mode));
        let before = before.map_or("-".into(), |(text, mode)| format!("{text} {mode:o}"));
        let after = match &file.after {
            AfterImage::Known(image) => {
                image.as_ref().map_or("-".into(), |image| text(&image.bytes))
            }
            AfterImage::Intended(None) => "intended: -".into(),
            AfterImage::Intended(Some(hash)) => format!("intended: {hash:?}"),
            AfterImage::Lost => "lost".into(),
        };
        format!("{all} {} {before} > {after}", file.path.display())
    })
}

fn show_rule(rule: &Rule) -> String {
    let Rule { permission, pattern, action, source } = rule;
    format!("\n  {action:?} {permission} {pattern:?} {source:?}")
}

#[test]
fn slots_are_replaced_only_with_the_current_version() {
    check(
        r#"
        get a todo
        put a todo 1 "early"
        put a todo 0 [1]
        put a todo 0 [2]
        get a todo
        put a todo 1 {"three":3}
        put a todo 1 "late"
        put a todo 18446744073709551615 "never"
        get a todo
        get b todo
        restart
        get a todo
        "#,
        expect![[r#"
            get a todo: nothing
            put a todo 1 "early": refused
            put a todo 0 [1]: done
            put a todo 0 [2]: refused
            get a todo: [1] (version 1)
            put a todo 1 {"three":3}: done
            put a todo 1 "late": refused
            put a todo 18446744073709551615 "never": refused
            get a todo: {"three":3} (version 2)
            get b todo: nothing
            get a todo: {"three":3} (version 2)
        "#]],
    );
}

#[test]
fn slots_that_are_set_are_visible_to_the_next_query() {
    check(
        r#"
        set a shown 1
        get a shown
        set a shown 3
        set b shown 4
        put a shown 1 "late"
        get a shown
        put a shown 2 "seen"
        set b shown 5
        restart
        get a shown
        get b shown
        "#,
        expect![[r#"
            get a shown: 1 (version 1)
            put a shown 1 "late": refused
            get a shown: 3 (version 2)
            put a shown 2 "seen": done
            get a shown: "seen" (version 3)
            get b shown: 5 (version 2)
        "#]],
    );
}

#[test]
fn approvals_apply_where_they_were_given() {
    check(
        "
        remember everywhere allow webfetch wild *
        remember project:/p allow edit exact *
        remember session:s allow read folded *.env
        remember session:s allow read folded *.env
        remember project:/q allow bash wild git
        remembered s /p
        remembered t /q
        remember everywhere deny webfetch wild *
        restart
        remembered t /nowhere
        remembered s /p
        ",
        expect![[r#"
            remembered s /p:
              Allow webfetch Wild("*") Approved(Everywhere)
              Allow edit Exact("*") Approved(Project)
              Allow read CaseInsensitive("*.env") Approved(Session)
            remembered t /q:
              Allow webfetch Wild("*") Approved(Everywhere)
              Allow bash Wild("git") Approved(Project)
            remembered t /nowhere:
              Deny webfetch Wild("*") Approved(Everywhere)
            remembered s /p:
              Allow edit Exact("*") Approved(Project)
              Allow read CaseInsensitive("*.env") Approved(Session)
              Deny webfetch Wild("*") Approved(Everywhere)
        "#]],
    );
}

#[test]
fn approvals_are_listed_and_revoked() {
    check(
        "
        approvals
        remember everywhere allow webfetch wild *
        remember project:/p allow edit exact a.txt
        remember session:s allow read wild *
        restart
        approvals
        revoke 2 9
        remembered s /p
        revoke 1 3
        approvals
        ",
        expect![[r#"
            approvals:
            approvals:
              1 Everywhere
              Allow webfetch Wild("*") Approved(Everywhere)
              2 Project("/p")
              Allow edit Exact("a.txt") Approved(Project)
              3 Session("s")
              Allow read Wild("*") Approved(Session)
            revoke 2 9: 1
            remembered s /p:
              Allow webfetch Wild("*") Approved(Everywhere)
              Allow read Wild("*") Approved(Session)
            revoke 1 3: 2
            approvals:
        "#]],
    );
}

#[test]
fn trust_is_given_and_withdrawn_by_path() {
    check(
        "
        trusted /p
        trust /p one
        trust /p/q two
        trust /p three
        trusted /p
        restart
        trusted /p
        trusted /p/q
        distrust /p
        trusted /p
        trusted /P/q
        ",
        expect![[r#"
            trusted /p: None
            trusted /p: Some("three")
            trusted /p: Some("three")
            trusted /p/q: Some("two")
            trusted /p: None
            trusted /P/q: None
        "#]],
    );
}

#[test]
fn each_call_is_one_row_that_follows_its_state() {
    check(
        "
        start s/1 read
        calls s
        run s/1 a.txt
        title s/1 halfway
        say s/1 not kept
        ask s/1 not kept
        calls s
        end s/1 two lines
        end s/1 a call ends once
        start t/1 bash
        fail t/1 no
        calls s
        calls *
        start s/1 reused-id
        restart
        calls s
        end s/2 without a beginning
        calls u
        warning
        ",
        expect![[r#"
            calls s:
              1 read pending "" null -
            calls s:
              1 read running "halfway" {"with":"a.txt"} -
            calls s:
              1 read completed "done" {"with":"a.txt"} two lines
            calls *:
              1 bash error "" null no
              1 read completed "done" {"with":"a.txt"} two lines
            calls s:
              1 reused-id error "" null interrupted
              1 read completed "done" {"with":"a.txt"} two lines
            calls u:
            warning: none
        "#]],
    );
}

#[test]
fn changes_are_returned_with_the_contents_before_and_after() {
    check(
        "
        history /p
        change 1
        edit 1 /p/a old new
        edit 2 /p/b - made
        edit 3 /p/b made -
        discard 4 /p/a new
        edit 5 /p/a new new
        begin 6 /p/a new
        change 1
        change 2
        change 3
        change 4
        change 6
        history /p
        history /q
        restart
        change 1
        change 6
        history /p
        warning
        ",
        expect![[r#"
            history /p:
            change 1: nothing
            change 1: edit 1 /p/a "old" 644 > "new"
            change 2: edit 2 /p/b - > "made"
            change 3: edit 3 /p/b "made" 644 > -
            change 4: nothing
            change 6: edit 6 /p/a "new" 644 > intended: -
            history /p:
              edit 6 /p/a "" 644 > intended: -
              edit 5 /p/a "" 644 > ""
              edit 3 /p/b "" 644 > -
              edit 2 /p/b - > ""
              edit 1 /p/a "" 644 > ""
            history /q:
            change 1: edit 1 /p/a "old" 644 > "new"
            change 6: edit 6 /p/a "new" 644 > intended: -
            history /p:
              edit 6 /p/a "" 644 > intended: -
              edit 5 /p/a "" 644 > ""
              edit 3 /p/b "" 644 > -
              edit 2 /p/b - > ""
              edit 1 /p/a "" 644 > ""
            warning: none
        "#]],
    );
}

#[test]
fn nothing_is_created_before_the_first_use() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = store(&data);
    runtime.block_on(store.flush());
    drop(store);
    assert!(!data.exists());
}

#[test]
fn dropping_the_store_waits_for_queued_writes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    for call in 0..500 {
        let id = call.to_string();
        store.append(&event("s", &id, EventKind::Started { tool: "read".into(), parent: None }));
        store.append(&event("s", &id, completed("output")));
    }
    assert_eq!(store.lost_writes(), 0);
    drop(store);
    let connection = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    let count = connection.query_row("SELECT count(*) FROM calls", [], |row| row.get(0));
    assert_eq!(count, Ok(500));
}

#[test]
fn only_a_long_log_is_checkpointed_on_close() {
    let folder = tempfile::tempdir().unwrap();
    let log = || folder.path().join("store.db-wal").metadata().map_or(0, |log| log.len());
    run_script(folder.path(), "put s k 0 1");
    let short = log();
    assert!(short > 0);
    run_script(folder.path(), "put s k 1 2");
    assert!(log() > short);
    run_script(folder.path(), &format!("put s k 2 \"{}\"", "x".repeat(300_000)));
    assert_eq!(log(), 0);
    let value = run_script(folder.path(), "get s k");
    assert!(value.ends_with("x\" (version 3)\n"));
}

#[test]
fn large_values_are_refused_and_large_call_texts_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = store(folder.path());
    let too_large = Value::String("x".repeat(17 << 20));
    let refusal = runtime.block_on(store.put("s", "k", 0, too_large)).unwrap_err();
    expect!["A value of 17825794 bytes is too large to be remembered; the maximum is 16777216."]
        .assert_eq(&refusal.to_string());

    let input = Arc::new(json!({ "filePath": "a", "content": "y".repeat(1 << 20) }));
    store.append(&event("s", "1", EventKind::Started { tool: "write".into(), parent: None }));
    store.append(&event("s", "1", EventKind::Running { input }));
    store.append(&event("s", "1", completed(&"ü".repeat(1 << 20))));
    let calls = runtime.block_on(store.calls(None, usize::MAX)).unwrap();
    let [call] = calls.as_slice() else { panic!("not one call: {calls:?}") };
    let output = call.output.as_ref().unwrap();
    let content = call.input["content"].as_str().unwrap();
    let ends = [output, content].map(|text| text.trim_start_matches(['ü', 'y']));
    let lengths = [output.len(), content.len()];
    expect![[r#"[65560, 1048] ["… (2031616 more bytes)", "… (1047552 more bytes)"] "a""#]]
        .assert_eq(&format!("{lengths:?} {ends:?} {}", call.input["filePath"]));
}

#[cfg(unix)]
#[test]
fn the_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("share/helve");
    let store = store(&data);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(runtime.block_on(store.put("s", "k", 0, json!(1))).unwrap());
    let mode = |name: &str| {
        let path = data.join(name);
        format!("{name} {:o}\n", path.metadata().unwrap().permissions().mode() & 0o7777)
    };
    let mut locks = std::fs::read_dir(data.join("run")).unwrap().map(|entry| entry.unwrap().path());
    let lock = locks.find(|path| path.extension().is_some()).unwrap();
    assert_eq!(lock.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let modes: String = ["", "run", "store.db", "store.db-wal", "store.db-shm"].map(mode).concat();
    expect![[r#"
         700
        run 700
        store.db 600
        store.db-wal 600
        store.db-shm 600
    "#]]
    .assert_eq(&modes);
    drop(store);

    let file = data.join("store.db");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    run_script(&data, "get s k");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
