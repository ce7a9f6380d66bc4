//! Makes each file operation fail with each error, and checks that every file then has its old or its new content, and
//! that no temporary files are left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve::{Host, ToolResult, Toolbox};
use helve_machine::{InjectedFaults, LocalMachine};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::stage::{Stage, TreeState};

const ERRORS: [Errno; 5] = [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::INTR, Errno::MFILE];

/// A call, and the calls that prepare it.
struct Case {
    tool: &'static str,
    input: Value,
    setup: Vec<(&'static str, Value)>,
}

fn case(tool: &'static str, input: Value) -> Case {
    Case { tool, input, setup: Vec::new() }
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

/// Returns a host that has files but cannot run processes.
pub(crate) fn host_without_processes(machine: LocalMachine) -> Host {
    Host::new(Arc::new(machine), Vec::new(), None)
}

async fn toolbox(stage: &Stage, faults: InjectedFaults) -> Toolbox {
    let machine = LocalMachine::with_faults(stage.data.path().join("locks"), faults);
    stage.builder().host(host_without_processes(machine)).build().await.unwrap()
}

/// Decides which operation fails, counted from the last call of `arm`.
#[derive(Clone)]
struct FaultPlan {
    /// Number of the operation that fails.
    failing: Arc<AtomicUsize>,
    count: Arc<AtomicUsize>,
}

const NEVER: usize = usize::MAX;

impl FaultPlan {
    fn new() -> Self {
        Self { failing: Arc::new(AtomicUsize::new(NEVER)), count: Arc::new(AtomicUsize::new(0)) }
    }

    /// Makes the nth operation from now on fail.
    fn arm(&self, nth: usize) {
        self.count.store(0, Ordering::Relaxed);
        self.failing.store(nth, Ordering::Relaxed);
    }

    /// Returns faults that make the planned operation fail with `errno`.
    fn faults(&self, errno: Errno) -> InjectedFaults {
        let Self { failing, count } = self.clone();
        InjectedFaults::from_fn(move |operation| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            let fails = number == failing.load(Ordering::Relaxed);
            // Interrupted reads are retried below the point of injection, so the retry would not be tested.
            let is_retried =
                errno == Errno::INTR && matches!(operation, "locate" | "load" | "list");
            (fails && !is_retried).then(|| errno.raw_os_error())
        })
    }
}

/// A toolbox whose file operations can fail, ready for the call.
struct PreparedCase {
    stage: Stage,
    toolbox: Toolbox,
    plan: FaultPlan,
    before: TreeState,
}

impl PreparedCase {
    async fn new(case: &Case, errno: Errno) -> Self {
        let (stage, plan) = (stage(), FaultPlan::new());
        let toolbox = toolbox(&stage, plan.faults(errno)).await;
        for (tool, input) in &case.setup {
            toolbox.call(tool, input.clone()).await.outcome.unwrap();
        }
        let before = stage.tree();
        Self { stage, toolbox, plan, before }
    }

    /// Makes the call with the nth operation failing, then another call, which must succeed. Returns the result of the
    /// first call and how many operations it made.
    async fn call(&self, case: &Case, nth: usize) -> (ToolResult, usize) {
        self.plan.arm(nth);
        let result = self.toolbox.call(case.tool, case.input.clone()).await;
        let operations = self.plan.count.load(Ordering::Relaxed);
        self.plan.arm(NEVER);
        let next = self.toolbox.call("read", json!({"filePath": "."})).await;
        assert!(next.outcome.is_ok(), "{} at {nth}: {:?}", case.tool, next.outcome);
        (result, operations)
    }
}

/// Repeats the call with each operation failing with each error.
async fn fail_each_operation(case: Case) {
    let tool = case.tool;
    let reference = PreparedCase::new(&case, Errno::IO).await;
    let (result, operations) = reference.call(&case, NEVER).await;
    result.outcome.unwrap();
    assert!(operations > 10, "{tool}: only {operations} operations");
    let changed_tree = reference.stage.tree();
    for errno in ERRORS {
        let mut prepared = PreparedCase::new(&case, errno).await;
        for nth in 0..operations {
            let (result, _) = prepared.call(&case, nth).await;
            let context = format!("{tool}, {errno:?} at {nth}: {:?}", result.outcome);
            assert!(errno != Errno::INTR || result.outcome.is_ok(), "not retried: {context}");
            if result.outcome.is_ok() {
                assert_eq!(prepared.stage.tree(), changed_tree, "{context}");
                prepared = PreparedCase::new(&case, errno).await;
            } else {
                assert_eq!(prepared.stage.tree(), prepared.before, "{context}");
            }
        }
    }
}

#[tokio::test]
async fn write_survives_any_fault() {
    fail_each_operation(case("write", json!({"filePath": "new/w.txt", "content": "new\n"}))).await;
    let overwrite = case("write", json!({"filePath": "a.txt", "content": "all new\n"}));
    fail_each_operation(Case { setup: vec![("read", json!({"filePath": "a.txt"}))], ..overwrite })
        .await;
}

#[tokio::test]
async fn edit_survives_any_fault() {
    fail_each_operation(case("edit", edit())).await;
    let edits = json!([
        {"oldString": "one", "newString": "1"}, {"oldString": "two", "newString": "2"}
    ]);
    fail_each_operation(case("multiedit", json!({"filePath": "a.txt", "edits": edits}))).await;
}

#[tokio::test]
async fn apply_patch_survives_any_fault() {
    fail_each_operation(case("apply_patch", patch())).await;
}

#[tokio::test]
async fn undo_survives_any_fault() {
    fail_each_operation(Case { setup: vec![("edit", edit())], ..case("undo", json!({})) }).await;
    fail_each_operation(Case { setup: vec![("apply_patch", patch())], ..case("undo", json!({})) })
        .await;
}
