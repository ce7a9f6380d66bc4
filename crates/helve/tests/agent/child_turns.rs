//! Tests of sub-agents over several turns: undo, costs, refusals, and messages while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helve::agent_loop::event::{AgentEvent, BudgetKind, TurnEnd};
use helve::agent_loop::item::{Item, Protocol};
use helve::agent_loop::model::Prices;
use helve::{AgentSession, Toolbox};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::PROTOCOLS;
use crate::children::{Request, World, task, task_id};
use crate::script::{Part, call, text};

fn write(id: &str, path: &str, content: &str) -> Part {
    call(id, "write", json!({"filePath": path, "content": content}))
}

/// The replies of the model: the main agent writes `shared.txt`; a sub-agent changes it and writes `own.txt`; then the
/// main agent changes `shared.txt` again.
fn work_together(request: &Request) -> Vec<Part> {
    let read = |id: &str| call(id, "read", json!({"filePath": "shared.txt"}));
    match (request.is_root, request.results) {
        (true, 0) => vec![write("w1", "shared.txt", "one\n")],
        (true, 1) => vec![task("c1", "general", "CHILD")],
        (true, 2) => vec![read("r1")],
        (true, 3) => vec![write("w2", "shared.txt", "one\ntwo\nthree\n")],
        (true, 4) if request.body.contains("AGAIN") => {
            let id = task_id(&request.body);
            let prompt = json!({"prompt": "MORE", "subagent_type": "general", "task_id": id});
            vec![call("c2", "task", prompt)]
        }
        (true, _) => vec![text("done")],
        (false, 0) => vec![read("r1")],
        (false, 1) => vec![write("w1", "shared.txt", "one\ntwo\n"), write("w2", "own.txt", "x\n")],
        (false, 3) if request.body.contains("MORE") => vec![write("w3", "own.txt", "y\n")],
        (false, _) => vec![text("CHILD-REPORT")],
    }
}

#[tokio::test]
async fn undo_includes_what_sub_agents_changed() {
    for protocol in PROTOCOLS {
        let world = World::new(protocol, json!({"permission": "allow"}), work_together);
        let toolbox = world.toolbox().await;
        let file = |name: &str| std::fs::read_to_string(world.folder.path().join(name)).ok();
        let files =
            || (file("shared.txt").unwrap_or_default(), file("own.txt").unwrap_or_default());
        let expect = |shared: &str, own: &str| assert_eq!(files(), (shared.into(), own.into()));
        assert_eq!(world.turn(&toolbox, "ROOT").await.end, TurnEnd::Answered);
        expect("one\ntwo\nthree\n", "x\n");
        assert_eq!(world.turn(&toolbox, "ROOT AGAIN").await.end, TurnEnd::Answered);
        expect("one\ntwo\nthree\n", "y\n");
        let mut agent: AgentSession<'_> = toolbox.agent(world.model()).await.unwrap();
        // The second turn of the main agent includes only the second turn of the sub-agent.
        agent.undo().await.unwrap();
        expect("one\ntwo\nthree\n", "x\n");
        agent.undo().await.unwrap();
        expect("", "");
        agent.redo().await.unwrap();
        expect("one\ntwo\nthree\n", "x\n");
        agent.redo().await.unwrap();
        expect("one\ntwo\nthree\n", "y\n");
        agent.undo().await.unwrap();
        agent.undo().await.unwrap();
        expect("", "");
        let child = task_id(&world.last_main_request());
        let entries = toolbox.transcript(&child).await.unwrap();
        let undone = entries.iter().filter(|entry| matches!(entry.item, Item::Undone { .. }));
        assert_eq!(undone.count(), 4, "the sub-agent's turns were undone twice each");
    }
}

#[tokio::test]
async fn a_sub_agent_that_crosses_the_cost_limit_ends_the_turn() {
    let mut world = World::new(Protocol::Chat, json!({"permission": "allow"}), |request| {
        match (request.is_root, request.results) {
            (true, 0) => vec![task("c1", "general", "x")],
            (true, _) => vec![text("done")],
            (false, n) => {
                let read = json!({"filePath": "a.txt", "limit": n + 1});
                vec![text("CHILD-TEXT"), call(&format!("r{n}"), "read", read)]
            }
        }
    });
    world.prices = Some(Prices::flat(1.0, 1.0, 1.0, 1.0));
    // More than the first request costs, and less than fifty requests of the sub-agent.
    world.limits.cost = Some(0.05);
    let toolbox = world.toolbox().await;
    let report = world.turn(&toolbox, "ROOT").await;
    assert_eq!(report.end, TurnEnd::OverBudget(BudgetKind::Cost));
    assert_eq!(world.main_requests().len(), 1);
    assert!(world.child_requests().len() < 49, "{}", world.child_requests().len());
    let stored = format!("{:?}", toolbox.transcript("main").await.unwrap());
    assert!(stored.contains("the cost limit was reached"), "{stored}");
    assert!(stored.contains("CHILD-TEXT"), "{stored}");
}

#[tokio::test]
async fn a_refusal_to_a_sub_agent_is_reported_by_the_turn() {
    for protocol in PROTOCOLS {
        let world =
            World::new(protocol, json!({}), |request| match (request.is_root, request.results) {
                (true, 0) => vec![task("c1", "general", "x")],
                (true, _) => vec![text("done")],
                (false, 0) => vec![write("w", "b.txt", "x")],
                (false, _) => vec![text("could not")],
            });
        let data = world.data.path().join("data");
        let builder = Toolbox::builder().dir(world.folder.path()).data(data).session("main");
        let toolbox = builder.build().await.unwrap();
        let report = world.turn(&toolbox, "ROOT").await;
        assert_eq!((report.end, report.text.as_str()), (TurnEnd::NotAllowed, "done"));
        let child = world.child_requests().pop().unwrap().body;
        assert!(child.contains("nobody can be asked here") && child.contains("--allow"), "{child}");
    }
}

#[tokio::test]
async fn a_sub_agent_without_an_answer_is_reported() {
    for protocol in PROTOCOLS {
        let world = World::new(protocol, json!({"permission": "allow"}), |request| {
            match (request.is_root, request.results) {
                (true, 0) => vec![task("c1", "general", "x")],
                (true, _) => vec![text("done")],
                (false, 0) => vec![write("w", "b.txt", "x")],
                (false, _) => Vec::new(),
            }
        });
        let toolbox = world.toolbox().await;
        assert_eq!(world.turn(&toolbox, "ROOT").await.end, TurnEnd::Answered);
        let last = world.last_main_request();
        assert!(last.contains("state=\\\"error") && last.contains("task_error"), "{last}");
        assert!(last.contains("Files changed: b.txt"), "{last}");
    }
}

#[tokio::test]
async fn a_running_sub_agent_gets_a_message() {
    let is_continued = AtomicBool::new(false);
    let world = World::new(Protocol::Chat, json!({}), move |request| {
        let task_arguments = |fields: serde_json::Value| {
            let mut arguments = json!({"description": "look", "subagent_type": "general"});
            let fields = fields.as_object().unwrap().clone();
            arguments.as_object_mut().unwrap().extend(fields);
            arguments
        };
        match (request.is_root, request.results) {
            (true, 0) => {
                let start = task_arguments(json!({"prompt": "FIRST", "run_in_background": true}));
                vec![call("b1", "task", start)]
            }
            (true, 1) => {
                is_continued.store(true, Ordering::SeqCst);
                let id = task_id(&request.body);
                vec![call("b2", "task", task_arguments(json!({"prompt": "SECOND", "task_id": id})))]
            }
            (true, _) => vec![text("done")],
            (false, _) if request.body.contains("SECOND") => vec![text("BOTH-SEEN")],
            (false, _) => {
                while !is_continued.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                // The message arrives meanwhile.
                std::thread::sleep(Duration::from_millis(500));
                vec![text("ONE-SEEN")]
            }
        }
    });
    let toolbox = world.toolbox().await;
    assert_eq!(world.turn(&toolbox, "ROOT").await.end, TurnEnd::Answered);
    let requests = world.child_requests();
    assert_eq!(requests.len(), 2, "one sub-agent made both requests");
    assert!(requests[1].body.contains("ONE-SEEN") && requests[1].body.contains("SECOND"));
    assert!(world.last_main_request().contains("BOTH-SEEN"), "{}", world.last_main_request());
}

/// The replies of the model: two sub-agents write a file each; their next requests are not answered until `is_killed`
/// is set.
fn write_and_hang(request: &Request, is_batch: bool, is_killed: &AtomicBool) -> Vec<Part> {
    let in_batch = |prompt: &str| {
        let task = json!({"description": "look", "prompt": prompt, "subagent_type": "general"});
        json!({"tool": "task", "parameters": task})
    };
    match (request.is_root, request.results) {
        (true, 0) if is_batch => {
            let calls = json!([in_batch("CHILD-A"), in_batch("CHILD-B")]);
            vec![call("c", "batch", json!({"tool_calls": calls}))]
        }
        (true, 0) => vec![task("c1", "general", "CHILD-A"), task("c2", "general", "CHILD-B")],
        (true, _) => vec![text("went on")],
        (false, 0) if request.body.contains("CHILD-A") => {
            vec![write("w", "a-made.txt", "x\n")]
        }
        (false, 0) => vec![write("w", "b-made.txt", "x\n")],
        (false, _) => {
            while !is_killed.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
            }
            Vec::new()
        }
    }
}

/// Whether each of the two files of `write_and_hang` exists.
fn written_files(world: &World) -> (bool, bool) {
    let exists = |name: &str| world.folder.path().join(name).exists();
    (exists("a-made.txt"), exists("b-made.txt"))
}

#[test]
fn undo_finds_sub_agents_whose_results_were_never_stored() {
    for (is_batch, goes_on) in [(false, false), (false, true), (true, false)] {
        let is_killed = Arc::new(AtomicBool::new(false));
        let killed = is_killed.clone();
        let replies = move |request: &Request| write_and_hang(request, is_batch, &killed);
        let world = World::new(Protocol::Chat, json!({"permission": "allow"}), replies);
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        // The runtime is dropped with everything in it, as if the process had been killed.
        runtime().unwrap().block_on(async {
            let toolbox = world.toolbox().await;
            let (sender, mut wrote) = tokio::sync::mpsc::unbounded_channel();
            let watch = move |event: &AgentEvent| {
                if let AgentEvent::Child { event, .. } = event
                    && let AgentEvent::Result { .. } = **event
                {
                    sender.send(()).unwrap();
                }
            };
            let turn = world.turn_with(&toolbox, "ROOT", CancellationToken::new(), watch);
            let both = async {
                wrote.recv().await;
                wrote.recv().await;
            };
            tokio::select! {
                report = turn => panic!("{report:?}"),
                () = both => {}
            }
        });
        is_killed.store(true, Ordering::SeqCst);
        assert_eq!(written_files(&world), (true, true));
        runtime().unwrap().block_on(async {
            let toolbox = world.toolbox().await;
            let mut agent = toolbox.agent(world.model()).await.unwrap();
            if goes_on {
                drop(agent);
                world.turn(&toolbox, "ROOT GO-ON").await;
                agent = toolbox.agent(world.model()).await.unwrap();
                agent.undo().await.unwrap();
                assert_eq!(written_files(&world), (true, true), "they belong to the turn before");
            }
            let undone = agent.undo().await.unwrap();
            assert_eq!(undone.prompt, "ROOT");
            assert_eq!(written_files(&world), (false, false));
            agent.redo().await.unwrap();
            assert_eq!(written_files(&world), (true, true));
            agent.undo().await.unwrap();
            assert_eq!(written_files(&world), (false, false));
        });
    }
}
