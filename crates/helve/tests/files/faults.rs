//! Any file operation of a tool may fail, with any error: every file is old or new, and nothing lies around.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve::{Host, ToolResult, Toolbox};
use helve_machine::{InjectedFaults, LocalMachine};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::stage::{Stage, Tree};

const ERRORS: [Errno; 5] = [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::INTR, Errno::MFILE];

/// A call, after the calls that lead to it.
struct Case {
    tool: &'static str,
    input: Value,
    first: Vec<(&'static str, Value)>,
}

fn case(tool: &'static str, input: Value) -> Case {
    Case { tool, input, first: Vec::new() }
}

fn edit() -> Value {
    json!({"filePath": "a.txt", "oldString": "one", "newString": "1"})
}

fn patch() -> Value {
    let text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Add File: new/deep/d.txt\n+d\n*** Delete File: b.txt\n*** Update File: c.sh\n*** Move to: moved/c.sh\n-echo c\n+echo d\n*** End Patch";
    json!({ "patchText": text })
}

fn stage() -> Stage {
    let stage = Stage::new();
    for (name, text, mode) in
        [("a.txt", "one\ntwo\n", 0o644), ("b.txt", "b\n", 0o600), ("c.sh", "echo c\n", 0o755)]
    {
        stage.put(name, text, mode);
    }
    stage
}

/// A host with these files and no processes.
pub(crate) fn files_of(machine: LocalMachine) -> Host {
    Host::new(Arc::new(machine), Vec::new(), None)
}

async fn toolbox(stage: &Stage, faults: InjectedFaults) -> Toolbox {
    let machine = LocalMachine::with_faults(stage.data.path().join("locks"), faults);
    stage.builder().host(files_of(machine)).build().await.unwrap()
}

/// Which operation fails, counted from when it is armed.
#[derive(Clone)]
struct Plan {
    armed: Arc<AtomicUsize>,
    seen: Arc<AtomicUsize>,
}

const NEVER: usize = usize::MAX;

impl Plan {
    fn new() -> Self {
        Self { armed: Arc::new(AtomicUsize::new(NEVER)), seen: Arc::new(AtomicUsize::new(0)) }
    }

    /// Lets the nth operation from now on fail.
    fn arm(&self, nth: usize) {
        self.seen.store(0, Ordering::Relaxed);
        self.armed.store(nth, Ordering::Relaxed);
    }

    fn faults(&self, errno: Errno) -> InjectedFaults {
        let Self { armed, seen } = self.clone();
        InjectedFaults::by_number(move |operation| {
            let at = seen.fetch_add(1, Ordering::Relaxed);
            let fails = at == armed.load(Ordering::Relaxed);
            // A read that is interrupted is made again further down, where nobody can interfere.
            let again = errno == Errno::INTR && matches!(operation, "locate" | "load" | "list");
            (fails && !again).then(|| errno.raw_os_error())
        })
    }
}

/// A toolbox whose file operations can fail, right before the call.
struct Ready {
    stage: Stage,
    toolbox: Toolbox,
    plan: Plan,
    before: Tree,
}

impl Ready {
    async fn new(case: &Case, errno: Errno) -> Self {
        let (stage, plan) = (stage(), Plan::new());
        let toolbox = toolbox(&stage, plan.faults(errno)).await;
        for (tool, input) in &case.first {
            toolbox.call(tool, input.clone()).await.outcome.unwrap();
        }
        let before = stage.tree();
        Self { stage, toolbox, plan, before }
    }

    /// Makes the call, the nth operation of which fails, and one more that must not.
    async fn call(&self, case: &Case, nth: usize) -> (ToolResult, usize) {
        self.plan.arm(nth);
        let result = self.toolbox.call(case.tool, case.input.clone()).await;
        let operations = self.plan.seen.load(Ordering::Relaxed);
        self.plan.arm(NEVER);
        let next = self.toolbox.call("read", json!({"filePath": "."})).await;
        assert!(next.outcome.is_ok(), "{} at {nth}: {:?}", case.tool, next.outcome);
        (result, operations)
    }
}

/// Lets the nth operation fail, for every n and every error.
async fn sweep(case: Case) {
    let tool = case.tool;
    let whole = Ready::new(&case, Errno::IO).await;
    let (result, operations) = whole.call(&case, NEVER).await;
    result.outcome.unwrap();
    assert!(operations > 10, "{tool}: only {operations} operations");
    let new = whole.stage.tree();
    for errno in ERRORS {
        let mut ready = Ready::new(&case, errno).await;
        for nth in 0..operations {
            let (result, _) = ready.call(&case, nth).await;
            let what = format!("{tool}, {errno:?} at {nth}: {:?}", result.outcome);
            assert!(errno != Errno::INTR || result.outcome.is_ok(), "{what}");
            if result.outcome.is_ok() {
                assert_eq!(ready.stage.tree(), new, "{what}");
                ready = Ready::new(&case, errno).await;
            } else {
                assert_eq!(ready.stage.tree(), ready.before, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn an_operation_of_write_fails() {
    sweep(case("write", json!({"filePath": "new/w.txt", "content": "new\n"}))).await;
    let over = case("write", json!({"filePath": "a.txt", "content": "all new\n"}));
    sweep(Case { first: vec![("read", json!({"filePath": "a.txt"}))], ..over }).await;
}

#[tokio::test]
async fn an_operation_of_edit_fails() {
    sweep(case("edit", edit())).await;
    let edits = json!([
        {"oldString": "one", "newString": "1"}, {"oldString": "two", "newString": "2"}
    ]);
    sweep(case("multiedit", json!({"filePath": "a.txt", "edits": edits}))).await;
}

#[tokio::test]
async fn an_operation_of_apply_patch_fails() {
    sweep(case("apply_patch", patch())).await;
}

#[tokio::test]
async fn an_operation_of_undo_fails() {
    sweep(Case { first: vec![("edit", edit())], ..case("undo", json!({})) }).await;
    sweep(Case { first: vec![("apply_patch", patch())], ..case("undo", json!({})) }).await;
}
