//! Any file operation of a tool may fail, with any error: every file is old or new, and nothing lies around.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "these tests need real folders and files")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve::{ToolResult, Toolbox};
use helve_machine::{Faults, Local};
use rustix::io::Errno;
use serde_json::{Value, json};
use tempfile::TempDir;

const ERRORS: [Errno; 5] = [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::INTR, Errno::MFILE];

/// Each tool with a call that changes something, after the calls that lead to it.
fn calls() -> Vec<(&'static str, Value, Vec<(&'static str, Value)>)> {
    let edit = json!({"filePath": "a.txt", "oldString": "one", "newString": "1"});
    let patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Add File: new/deep/d.txt\n+d\n*** Delete File: b.txt\n*** Update File: c.sh\n*** Move to: moved/c.sh\n-echo c\n+echo d\n*** End Patch";
    let patch = json!({ "patchText": patch });
    vec![
        ("write", json!({"filePath": "new/w.txt", "content": "new\n"}), Vec::new()),
        (
            "write",
            json!({"filePath": "a.txt", "content": "all new\n"}),
            vec![("read", json!({"filePath": "a.txt"}))],
        ),
        ("edit", edit.clone(), Vec::new()),
        (
            "multiedit",
            json!({"filePath": "a.txt", "edits": [
                {"oldString": "one", "newString": "1"}, {"oldString": "two", "newString": "2"}
            ]}),
            Vec::new(),
        ),
        ("apply_patch", patch.clone(), Vec::new()),
        ("undo", json!({}), vec![("edit", edit)]),
        ("undo", json!({}), vec![("apply_patch", patch)]),
    ]
}

type Tree = BTreeMap<PathBuf, (Vec<u8>, u32)>;

struct World {
    root: TempDir,
    data: TempDir,
}

impl World {
    fn new() -> Self {
        // In memory, where syncing costs nothing.
        let folder = || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let world = Self { root: folder(), data: folder() };
        for (name, text) in [("a.txt", "one\ntwo\n"), ("b.txt", "b\n"), ("c.sh", "echo c\n")] {
            fs::write(world.root.path().join(name), text).unwrap();
        }
        let script = world.root.path().join("c.sh");
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        world
    }

    async fn toolbox(&self, faults: Faults) -> Toolbox {
        let machine = Local::failing(self.data.path().join("locks"), faults);
        let builder = Toolbox::builder().dir(self.root.path()).data(self.data.path());
        builder.machine(machine).allow("edit").build().await.unwrap()
    }

    /// Files with content and mode, and folders.
    fn tree(&self) -> Tree {
        let mut tree = BTreeMap::new();
        collect(self.root.path(), &mut tree);
        tree
    }
}

fn collect(folder: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        if path.is_dir() {
            collect(&path, tree);
        } else {
            tree.insert(path.clone(), (fs::read(&path).unwrap(), mode));
        }
        if path.is_dir() {
            tree.insert(path, (Vec::new(), mode));
        }
    }
}

/// What fails: from the nth operation on, and how many of them.
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

    fn faults(&self, errno: Errno) -> Faults {
        let Self { armed, seen } = self.clone();
        Faults::by_number(move |operation| {
            let at = seen.fetch_add(1, Ordering::Relaxed);
            let fails = at == armed.load(Ordering::Relaxed);
            // A read that is interrupted is made again further down, where nobody can interfere.
            let again = errno == Errno::INTR && matches!(operation, "locate" | "load" | "list");
            (fails && !again).then(|| errno.raw_os_error())
        })
    }
}

struct Played {
    world: World,
    result: ToolResult,
    before: Tree,
    operations: usize,
}

async fn play(
    tool: &str,
    input: &Value,
    first: &[(&'static str, Value)],
    errno: Errno,
    nth: usize,
) -> Played {
    let (world, plan) = (World::new(), Plan::new());
    let toolbox = world.toolbox(plan.faults(errno)).await;
    for (tool, input) in first {
        toolbox.call(tool, input.clone()).await.outcome.unwrap();
    }
    let before = world.tree();
    plan.arm(nth);
    let result = toolbox.call(tool, input.clone()).await;
    let operations = plan.seen.load(Ordering::Relaxed);
    plan.arm(NEVER);
    // The next call works.
    let next = toolbox.call("read", json!({"filePath": "a.txt"})).await;
    assert!(next.outcome.is_ok(), "{tool}, {errno:?} at {nth}: {:?}", next.outcome);
    toolbox.close().await;
    Played { world, result, before, operations }
}

#[tokio::test]
async fn one_operation_fails() {
    for (tool, input, first) in calls() {
        let whole = play(tool, &input, &first, Errno::IO, NEVER).await;
        whole.result.outcome.unwrap();
        assert!(whole.operations > 10, "{tool}: only {} operations", whole.operations);
        let new = relative(&whole.world, whole.world.tree());
        for errno in ERRORS {
            for nth in 0..whole.operations {
                let played = play(tool, &input, &first, errno, nth).await;
                let old = relative(&played.world, played.before);
                let now = relative(&played.world, played.world.tree());
                let what = format!("{tool}, {errno:?} at {nth}: {:?}", played.result.outcome);
                match &played.result.outcome {
                    Ok(_) => assert_eq!(now, new, "{what}"),
                    Err(_) => assert_eq!(now, old, "{what}"),
                }
                assert!(errno != Errno::INTR || played.result.outcome.is_ok(), "{what}");
            }
        }
    }
}

fn relative(world: &World, tree: Tree) -> Tree {
    let root = world.root.path();
    tree.into_iter().map(|(path, it)| (path.strip_prefix(root).unwrap().into(), it)).collect()
}
