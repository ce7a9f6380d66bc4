//! Checks with a server that starts, loads and answers slowly, on a paused clock.

mod fake_server;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helve_core::commit::HardLinks;
use helve_core::language::{
    CodeAnswer, CodeIntelligence, CodeOperation, CodePosition, CodeQuery, CodeReply,
};
use helve_core::{Diagnostic, DiagnosticReport, Host, WrittenFile};
use helve_testkit::MemoryMachine;
use tokio::time::sleep;

use crate::table::{ServerOverride, server_definitions};
use crate::{LanguageLimits, LanguageQueries, LanguageServers, LanguagesSetup};
use fake_server::{FakeBehaviour, FakeProcesses, LoadingSignal};

/// A server that starts, loads and answers without delay.
const AT_ONCE: FakeBehaviour = FakeBehaviour {
    start: Duration::ZERO,
    load: Duration::ZERO,
    signal: LoadingSignal::Progress,
    is_pulled: false,
    answer: Duration::ZERO,
};
/// The ways in which servers report that they are loading.
const SIGNALS: [LoadingSignal; 2] = [LoadingSignal::Status, LoadingSignal::Progress];

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A project in memory with a fake server.
struct FakeProject {
    machine: Arc<MemoryMachine>,
    processes: Arc<FakeProcesses>,
    servers: Arc<LanguageServers>,
}

impl FakeProject {
    fn new(behaviour: FakeBehaviour) -> Self {
        let processes = FakeProcesses::new(behaviour);
        let machine = Arc::new(MemoryMachine {
            processes: Some(processes.clone()),
            ..MemoryMachine::default()
        });
        machine.write("/bin/fake", "");
        let entry = ServerOverride {
            id: "fake".into(),
            command: vec!["fake".into()],
            extensions: vec![".fake".into()],
            ..ServerOverride::default()
        };
        let mut servers = server_definitions(&[entry]);
        servers.retain(|server| server.id == "fake");
        servers[0].reports_readiness = behaviour.signal == LoadingSignal::Status;
        let servers = LanguageServers::new(LanguagesSetup {
            host: Host::new(machine.clone(), Vec::new(), None),
            root: "/w".into(),
            trust: Arc::new(|| Box::pin(async { true })),
            servers,
            environment: vec![("PATH".into(), "/bin".into())],
            secrets: Vec::new(),
            sandbox: None,
            limits: LanguageLimits::default(),
            reports_warnings: false,
        });
        Self { machine, processes, servers }
    }

    /// Writes a file.
    fn write(&self, name: &str, before: Option<&str>, after: &str) -> WrittenFile {
        let path = Path::new("/w").join(name);
        self.machine.write(&path, after.to_owned());
        WrittenFile {
            path,
            display_path: name.into(),
            before: before.map(|text| text.to_owned().into()),
            bytes: Some(after.to_owned().into()),
            moved_from: None,
            rebased: false,
            hard_links: 1,
            link_mode: HardLinks::Replace,
            before_formatting: None,
        }
    }

    /// Writes a file and returns the report in one line, such as `this a:2 x ERR; earlier b:1 ERR; fake: Loading`.
    async fn change(&self, name: &str, before: Option<&str>, after: &str) -> String {
        let written = self.write(name, before, after);
        describe(&self.servers.check_written(&[written]).await)
    }
}

fn describe(report: &DiagnosticReport) -> String {
    let line = |origin: &str, it: &Diagnostic| {
        format!("{origin} {}:{} {}", it.display_path, it.line, it.message)
    };
    let mut parts: Vec<String> = report.diagnostics.iter().map(|it| line("this", it)).collect();
    parts.extend(report.earlier.iter().map(|it| line("earlier", it)));
    parts.extend(report.unchecked.iter().map(|it| format!("{}: {:?}", it.program, it.reason)));
    parts.join("; ")
}

/// A server that loads the project for seven seconds, in all its forms.
fn loading_servers() -> Vec<FakeBehaviour> {
    let forms = SIGNALS.iter().flat_map(|signal| [(*signal, true), (*signal, false)]);
    forms
        .map(|(signal, is_pulled)| FakeBehaviour { load: seconds(7), signal, is_pulled, ..AT_ONCE })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_loads_is_not_believed_to_find_no_errors() {
    for behaviour in loading_servers() {
        let project = FakeProject::new(FakeBehaviour { load: seconds(2), ..behaviour });
        let report = project.change("a.fake", Some("ERR\nb\n"), "ERR\nx ERR\n").await;
        assert_eq!(report, "this a.fake:2 x ERR", "{behaviour:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_checked_late_is_reported_with_the_next_one() {
    let mut servers = loading_servers();
    servers.push(FakeBehaviour { start: seconds(7), ..AT_ONCE });
    for behaviour in servers {
        let unchecked = match behaviour.start {
            Duration::ZERO => "fake: Loading",
            _ => "fake: Starting",
        };
        let check = async |steps: &[(&str, Option<&str>, &str, &str)]| {
            let project = FakeProject::new(behaviour);
            for (name, before, after, expected) in steps {
                if *expected != unchecked {
                    sleep(seconds(10)).await;
                }
                let report = project.change(name, *before, after).await;
                assert_eq!(report, *expected, "{behaviour:?}, {after:?}");
            }
        };
        let (first, second) = ("ERR old\nx ERR\n", "new ERR\nERR old\nx ERR\n");
        let start = ("a.fake", Some("ERR old\nb\n"), first, unchecked);
        // The same error is reported once, for the change that introduced it.
        check(&[start, ("a.fake", Some(first), "ERR old\nx ERR\n\n", "earlier a.fake:2 x ERR")])
            .await;
        let both = "this a.fake:1 new ERR; earlier a.fake:3 x ERR";
        check(&[start, ("a.fake", Some(first), second, both), ("a.fake", Some(second), first, "")])
            .await;
        check(&[start, ("a.fake", Some(first), "ERR old\nfixed\n", "")]).await;
        // The next change is in another file.
        let other = "this b.fake:1 ERR b; earlier a.fake:2 x ERR";
        check(&[start, ("b.fake", None, "ERR b\n", other), ("b.fake", Some("ERR b\n"), "\n", "")])
            .await;
        // Two changes in a row are not checked in time.
        let late = "earlier a.fake:1 new ERR; earlier a.fake:3 x ERR";
        let third = "new ERR\nERR old\nx ERR\n\n";
        let again = ("a.fake", Some(first), second, unchecked);
        check(&[start, again, ("a.fake", Some(second), third, late)]).await;
        // A new file.
        let new = ("n.fake", None, "ERR n\n", unchecked);
        check(&[new, ("n.fake", Some("ERR n\n"), "ERR n\n\n", "earlier n.fake:1 ERR n")]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_until_the_server_has_loaded_the_project() {
    let mut servers = loading_servers();
    servers.push(FakeBehaviour { load: seconds(7), signal: LoadingSignal::None, ..AT_ONCE });
    for behaviour in servers {
        let project = FakeProject::new(behaviour);
        project.machine.write("/w/a.fake", "a\n");
        let query = CodeQuery {
            operation: CodeOperation::References,
            path: "/w/a.fake".into(),
            position: CodePosition { line: 1, column: 1, symbol: None },
            text: String::new(),
        };
        let answer = LanguageQueries(project.servers.clone()).ask(query).await;
        let Ok(CodeReply { answer: CodeAnswer::Places { places, .. }, .. }) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(places.len(), 3, "{behaviour:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_many_files_is_checked_in_part() {
    let project = FakeProject::new(FakeBehaviour { is_pulled: true, ..AT_ONCE });
    let written: Vec<WrittenFile> = (0..60)
        .map(|number| project.write(&format!("{number}.fake"), Some("a\n"), "ERR\n"))
        .collect();
    let report = project.servers.check_written(&written).await;
    // At most 30 files are checked, and at most 20 diagnostics are listed.
    assert_eq!((report.diagnostics.len(), report.left_out), (20, 10));
    assert_eq!(report.unchecked, []);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_changed_meanwhile_is_not_reported() {
    let project = FakeProject::new(FakeBehaviour { load: seconds(5), ..AT_ONCE });
    assert_eq!(project.change("a.fake", Some("a\n"), "ERR\n").await, "fake: Loading");
    sleep(seconds(10)).await;
    project.machine.write("/w/a.fake", "changed by hand\n");
    assert_eq!(project.change("b.fake", None, "b\n").await, "");
}

#[tokio::test(start_paused = true)]
async fn the_server_learns_what_other_programs_wrote() {
    let project = FakeProject::new(AT_ONCE);
    for name in ["a.fake", "b.fake"] {
        project.change(name, None, "old\n").await;
    }
    assert_eq!(project.processes.documents(), ["a.fake=old", "b.fake=old"]);
    project.machine.write("/w/a.fake", "by a command\n");
    project.machine.nodes.lock().remove(Path::new("/w/b.fake"));
    project.change("c.fake", None, "new\n").await;
    assert_eq!(project.processes.documents(), ["a.fake=by a command", "c.fake=new"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_reported_with_the_next_change() {
    let fast = FakeBehaviour { is_pulled: true, ..AT_ONCE };
    let project = FakeProject::new(fast);
    assert_eq!(project.change("a.fake", Some("a\n"), "ERR\n").await, "this a.fake:1 ERR");
    project.processes.set_behaviour(FakeBehaviour { answer: seconds(2), ..fast });
    assert_eq!(project.change("b.fake", Some("b\n"), "b ERR\n").await, "fake: NoAnswer");
    project.processes.set_behaviour(fast);
    sleep(seconds(2)).await;
    let report = project.change("a.fake", Some("ERR\n"), "ERR\nERR 2\n").await;
    assert_eq!(report, "this a.fake:2 ERR 2; earlier b.fake:1 b ERR");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_loads_for_long_is_not_ended() {
    let behaviour = FakeBehaviour { load: seconds(60), signal: LoadingSignal::Status, ..AT_ONCE };
    let project = FakeProject::new(behaviour);
    for _ in 0..6 {
        assert_eq!(project.change("a.fake", Some("a\n"), "ERR\n").await, "fake: Loading");
    }
    sleep(seconds(60)).await;
    assert_eq!(project.change("a.fake", Some("ERR\n"), "ERR\n\n").await, "earlier a.fake:1 ERR");
    assert_eq!(project.processes.started.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_is_stopped_after_ten_minutes_without_use() {
    let project = FakeProject::new(AT_ONCE);
    assert_eq!(project.processes.running(), 0);
    project.change("a.fake", Some("a\n"), "b\n").await;
    for (wait, running) in [(599, 1), (2, 0)] {
        sleep(seconds(wait)).await;
        assert_eq!(project.processes.running(), running, "{wait}");
    }
    // The next change starts it again. A use in between keeps it running.
    assert_eq!(project.change("a.fake", Some("b\n"), "ERR\n").await, "this a.fake:1 ERR");
    sleep(seconds(500)).await;
    project.change("a.fake", Some("ERR\n"), "c\n").await;
    for (wait, running) in [(500, 1), (101, 0)] {
        sleep(seconds(wait)).await;
        assert_eq!(project.processes.running(), running, "{wait}");
    }
    assert_eq!(project.processes.started.load(Ordering::Relaxed), 2);
}
