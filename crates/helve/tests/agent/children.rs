//! Tests of sub-agents: reports, limits, aborts, and continued tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use helve::agent_loop::event::{AgentEvent, BudgetKind, TurnEnd};
use helve::agent_loop::item::{Item, MessagePart, Protocol};
use helve::agent_loop::model::Prices;
use helve::agent_loop::turn::{Compaction, TurnLimits};
use helve::{
    Answer, Ask, BoxFuture, CallRef, Person, Question, Reply, Scope, Toolbox, TurnOptions,
    TurnReport,
};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::PROTOCOLS;
use super::script::{Part, call, model, reply, text};

/// How long a provider that hangs waits before it answers. Every test ends before that.
const HANG: Duration = Duration::from_secs(60);

/// Returns the model's reply to a request. Requests of the main agent contain `ROOT` in their prompt; all others come
/// from sub-agents.
type Replies = dyn Fn(&Request) -> Vec<Part> + Send + Sync;

/// A request to the model, with what the tests need to know about it.
pub(crate) struct Request {
    pub(crate) body: String,
    /// Whether the request comes from the main agent.
    pub(crate) is_root: bool,
    /// Number of results of calls in the request.
    pub(crate) results: usize,
}

impl Request {
    pub(crate) fn of(body: &Value) -> Self {
        let text = body.to_string();
        let markers = ["\"role\":\"tool\"", "\"type\":\"function_call_output\"", "\"tool_result\""];
        let results = markers.iter().map(|marker| text.matches(marker).count()).max().unwrap_or(0);
        Self { is_root: text.contains("ROOT"), results, body: text }
    }
}

/// What one test works with: folders, a scripted provider, a person, and the events so far.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) data: TempDir,
    protocol: Protocol,
    pub(crate) provider: ScriptedProvider,
    pub(crate) person: Arc<TestPerson>,
    pub(crate) events: Arc<Mutex<Vec<AgentEvent>>>,
    pub(crate) limits: TurnLimits,
    pub(crate) prices: Option<Prices>,
}

/// Approves everything unless `refuses` is set, and records who asked.
#[derive(Default)]
pub(crate) struct TestPerson {
    /// For each ask: the agents that asked, outermost first, and what they asked about.
    pub(crate) asked: Mutex<Vec<(Vec<String>, String)>>,
    /// The answers to questions, in order.
    pub(crate) answers: Mutex<Vec<Answer>>,
    /// The questions so far.
    pub(crate) questions: Mutex<Vec<Question>>,
    pub(crate) refuses: Mutex<bool>,
}

/// Lets several toolboxes share a person.
struct SharedPerson(Arc<TestPerson>);

impl Person for SharedPerson {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let what = ask.parts.iter().map(|part| part.subject().to_string()).collect();
        self.0.asked.lock().push((ask.from.clone(), what));
        let reply = match *self.0.refuses.lock() {
            true => Reply::No { note: None },
            false => Reply::Yes(Scope::Once),
        };
        Box::pin(async { reply })
    }

    fn takes_questions(&self) -> bool {
        true
    }

    fn question<'a>(
        &'a self,
        _call: &'a CallRef,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Answer>> {
        self.0.questions.lock().push(question.clone());
        let mut answers = self.0.answers.lock();
        let answer = (!answers.is_empty()).then(|| answers.remove(0));
        Box::pin(async { answer })
    }
}

impl World {
    pub(crate) fn new(
        protocol: Protocol,
        config: Value,
        replies: impl Fn(&Request) -> Vec<Part> + Send + Sync + 'static,
    ) -> Self {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("a.txt"), "alpha\n").unwrap();
        std::fs::write(data.path().join("config.json"), config.to_string()).unwrap();
        let replies: Box<Replies> = Box::new(replies);
        let answer = move |_number: usize, body: &Value| -> ScriptedAnswer {
            reply(protocol, &replies(&Request::of(body)))
        };
        World {
            folder,
            data,
            protocol,
            provider: ScriptedProvider::start_answering(answer).unwrap(),
            person: Arc::default(),
            events: Arc::default(),
            limits: TurnLimits::default(),
            prices: None,
        }
    }

    pub(crate) async fn toolbox(&self) -> Toolbox {
        self.builder().build().await.unwrap()
    }

    pub(crate) fn builder(&self) -> helve::Builder {
        Toolbox::builder()
            .dir(self.folder.path())
            .data(self.data.path().join("data"))
            .config(self.data.path().join("config.json"))
            .session("main")
            .flag(helve::PLAN_MODE)
            .person(SharedPerson(self.person.clone()))
    }

    /// Runs a turn of the main agent.
    pub(crate) async fn turn(&self, toolbox: &Toolbox, prompt: &str) -> TurnReport {
        self.turn_with(toolbox, prompt, CancellationToken::new(), |_| {}).await
    }

    pub(crate) async fn turn_with(
        &self,
        toolbox: &Toolbox,
        prompt: &str,
        cancel: CancellationToken,
        watch: impl Fn(&AgentEvent) + Send + Sync,
    ) -> TurnReport {
        let mut agent = toolbox.agent(self.model()).await.unwrap();
        let emit = |event: AgentEvent| {
            watch(&event);
            self.events.lock().push(event);
        };
        let prompt = vec![MessagePart::Text(prompt.into())];
        agent.run(prompt, &self.options(), &emit, cancel).await.unwrap()
    }

    pub(crate) fn model(&self) -> helve::agent_loop::model::ActiveModel {
        let model = model(self.protocol, &self.provider.url);
        helve::agent_loop::model::ActiveModel { prices: self.prices, ..model }
    }

    pub(crate) fn options(&self) -> TurnOptions {
        TurnOptions { limits: self.limits, compaction: Compaction::Automatic, output_schema: None }
    }

    /// The requests of the main agent.
    pub(crate) fn main_requests(&self) -> Vec<Request> {
        self.requests().filter(|request| request.is_root).collect()
    }

    /// The requests of sub-agents.
    pub(crate) fn child_requests(&self) -> Vec<Request> {
        self.requests().filter(|request| !request.is_root).collect()
    }

    fn requests(&self) -> impl Iterator<Item = Request> {
        let all = self.provider.requests();
        all.into_iter().map(|body| Request::of(&body))
    }

    /// The body of the last request of the main agent.
    pub(crate) fn last_main_request(&self) -> String {
        self.main_requests().pop().unwrap().body
    }
}

/// A call of the tool `task`.
pub(crate) fn task(id: &str, agent: &str, prompt: &str) -> Part {
    call(id, "task", json!({"description": "look", "prompt": prompt, "subagent_type": agent}))
}

/// The replies of the model: the main agent starts all tasks at once and then answers; each sub-agent reports.
fn start_and_report(tasks: Vec<Part>) -> impl Fn(&Request) -> Vec<Part> {
    move |request| match (request.is_root, request.results) {
        (true, 0) => tasks.clone(),
        (true, _) => vec![text("done")],
        (false, _) => vec![text("CHILD-REPORT")],
    }
}

/// Returns the states of the tasks in a request, such as `completed`.
fn states(body: &str) -> Vec<String> {
    let states = body.split("state=\\\\\\\"").skip(1).chain(body.split("state=\\\"").skip(1));
    states.map(|rest| rest.chars().take_while(char::is_ascii_alphabetic).collect()).collect()
}

#[tokio::test]
async fn a_sub_agent_reports() {
    for protocol in PROTOCOLS {
        let world = World::new(
            protocol,
            json!({}),
            start_and_report(vec![task("c1", "general", "LOOK-1")]),
        );
        let toolbox = world.toolbox().await;
        let report = world.turn(&toolbox, "ROOT").await;
        assert_eq!(report.end, TurnEnd::Answered);
        assert!(
            world.last_main_request().contains("CHILD-REPORT"),
            "{}",
            world.last_main_request()
        );
        let child = &world.child_requests()[0].body;
        assert!(child.contains("LOOK-1") && !child.contains("\"name\":\"task\""), "{child}");
        assert!(!child.contains("plan_exit") && !child.contains("\"name\":\"question\""));
        let root = &world.main_requests()[0].body;
        assert!(root.contains("- explore: ") && root.contains("- general: "), "{root}");
        assert!(!root.contains("- build: "));
        let sessions = toolbox.sessions(10).await.unwrap();
        assert_eq!(sessions.len(), 1, "sessions of sub-agents are not listed");
        let ended = world.events.lock().iter().find_map(|event| match event {
            AgentEvent::ChildEnded(report) => Some(report.clone()),
            _ => None,
        });
        let ended = ended.unwrap();
        assert!(ended.task.starts_with("main/") && ended.text == "CHILD-REPORT", "{ended:?}");
        let info = toolbox.session_info(&ended.task).await.unwrap().unwrap();
        assert_eq!(info.parent.as_deref(), Some("main"));
        assert!(!toolbox.transcript(&ended.task).await.unwrap().is_empty());
        assert!(toolbox.delete_transcript("main").await.unwrap());
        assert!(toolbox.transcript(&ended.task).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn unknown_and_denied_agents_are_refused() {
    let tasks = vec![
        task("c1", "nobody", "x"),
        task("c2", "build", "x"),
        task("c3", "general", "x"),
        call("c4", "task", json!({"prompt": "x"})),
        call("c5", "task", json!({"action": "read"})),
    ];
    let config = json!({"permission": {"task": {"*": "allow", "general": "deny"}}});
    let world = World::new(Protocol::Chat, config, start_and_report(tasks));
    let toolbox = world.toolbox().await;
    world.turn(&toolbox, "ROOT").await;
    let root = &world.main_requests()[0].body;
    assert!(root.contains("- explore: ") && !root.contains("- general: "), "{root}");
    let last = world.last_main_request();
    for expected in [
        "There is no agent nobody",
        "There is no agent build",
        "Known agents: explore, general",
        "subagent_type is missing",
        "task_id is missing",
    ] {
        assert!(last.contains(expected), "{expected}: {last}");
    }
    assert!(world.child_requests().is_empty(), "no sub-agent was started");
}

/// An agent that may start sub-agents of its own.
fn nesting_agent(depth: Option<u64>) -> Value {
    let agent = json!({"mode": "subagent", "description": "n", "permission": {"task": "allow"}});
    let mut config = json!({"agent": {"nest": agent}});
    if let Some(depth) = depth {
        config["subagent_depth"] = json!(depth);
    }
    config
}

#[tokio::test]
async fn nesting_is_limited() {
    for (depth, expected) in [(None, "nested deeper than 1"), (Some(2), "LEAF")] {
        let world = World::new(Protocol::Chat, nesting_agent(depth), |request| {
            let is_leaf = request.body.contains("LEAF-PROMPT") && !request.body.contains("MIDDLE");
            match (request.is_root, request.results) {
                // As many as may run at a time. Each then waits for a sub-agent of its own.
                (true, 0) => (0..4).map(|n| task(&format!("c{n}"), "nest", "MIDDLE")).collect(),
                (true, _) => vec![text("done")],
                (false, _) if is_leaf => vec![text("LEAF")],
                (false, 0) => vec![task("n1", "general", "LEAF-PROMPT")],
                (false, _) => vec![text("middle")],
            }
        });
        let toolbox = world.toolbox().await;
        let report = world.turn(&toolbox, "ROOT").await;
        assert_eq!(report.end, TurnEnd::Answered);
        let answered = world.child_requests().into_iter().filter(|request| request.results > 0);
        let bodies: Vec<String> = answered.map(|request| request.body).collect();
        assert_eq!(bodies.len(), 4);
        assert!(bodies.iter().all(|body| body.contains(expected)), "{depth:?}: {bodies:?}");
    }
}

#[tokio::test]
async fn four_run_at_a_time_and_no_event_is_lost() {
    let (running, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counters = (running.clone(), peak.clone());
    let world = World::new(Protocol::Chat, json!({}), move |request| {
        match (request.is_root, request.results) {
            (true, 0) => {
                (0..17).map(|n| task(&format!("c{n}"), "explore", &format!("P{n}."))).collect()
            }
            (true, _) => vec![text("done")],
            (false, 0) => {
                let (running, peak) = &counters;
                peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                running.fetch_sub(1, Ordering::SeqCst);
                vec![call("r", "read", json!({"filePath": "a.txt"}))]
            }
            (false, _) => vec![text("found it")],
        }
    });
    let toolbox = world.toolbox().await;
    let report = world.turn(&toolbox, "ROOT").await;
    assert_eq!(report.end, TurnEnd::Answered);
    assert!(peak.load(Ordering::SeqCst) <= 4);
    assert_eq!(
        states(&world.last_main_request()).iter().filter(|state| *state == "completed").count(),
        16
    );
    assert!(
        world.last_main_request().contains("No more than 16 tasks"),
        "{}",
        world.last_main_request()
    );
    let events = world.events.lock();
    let count =
        |wanted: fn(&AgentEvent) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, AgentEvent::ChildEnded(_))), 16);
    let inner = |event: &AgentEvent, wanted: fn(&AgentEvent) -> bool| match event {
        AgentEvent::Child { event, .. } => wanted(event),
        _ => false,
    };
    let inner_count = |wanted: fn(&AgentEvent) -> bool| {
        events.iter().filter(|event| inner(event, wanted)).count()
    };
    assert_eq!(inner_count(|event| matches!(event, AgentEvent::Request { .. })), 32);
    assert_eq!(inner_count(|event| matches!(event, AgentEvent::Call { .. })), 16);
    assert_eq!(inner_count(|event| matches!(event, AgentEvent::Result { error: None, .. })), 16);
}

/// The id of the first task in a request.
pub(crate) fn task_id(body: &str) -> String {
    let rest = body.split("task id=\\\"").nth(1).unwrap();
    rest.split('\\').next().unwrap().to_string()
}

#[tokio::test]
async fn a_task_can_be_continued() {
    let world = World::new(Protocol::Chat, json!({}), |request| {
        let again = |id: &str| {
            call(
                "c2",
                "task",
                json!({
                    "description": "more", "prompt": "SECOND", "subagent_type": "general", "task_id": id,
                }),
            )
        };
        match (request.is_root, request.results) {
            (true, 0) => vec![task("c1", "general", "FIRST")],
            (true, 1) => vec![again(&task_id(&request.body))],
            (true, 2) => vec![again("main/00000000000000000000000000000000")],
            (true, 3) => vec![again("main")],
            (true, _) => vec![text("done")],
            (false, _) => vec![text("CHILD-REPORT")],
        }
    });
    let toolbox = world.toolbox().await;
    let report = world.turn(&toolbox, "ROOT").await;
    assert_eq!(report.end, TurnEnd::Answered);
    let children = world.child_requests();
    assert_eq!(children.len(), 2);
    for expected in ["FIRST", "CHILD-REPORT", "SECOND"] {
        assert!(children[1].body.contains(expected), "{expected}");
    }
    assert_eq!(
        world.last_main_request().matches("There is no task").count(),
        2,
        "{}",
        world.last_main_request()
    );
    // Another session cannot continue the task.
    let id = task_id(&world.last_main_request());
    let other = toolbox.with_session("other");
    other.agent(world.model()).await.unwrap();
    let arguments = json!({"prompt": "x", "subagent_type": "general", "task_id": id});
    let error = other.call("task", arguments).await.outcome.unwrap_err();
    assert!(error.message.contains("There is no task"), "{error}");
}

/// Aborts a turn with two sub-agents at each of its events. The session must be usable afterwards in every case.
#[tokio::test]
async fn a_turn_can_be_aborted_at_any_point() {
    for point in 0..40 {
        let world = World::new(Protocol::Chat, json!({"permission": "allow"}), |request| {
            match (request.is_root, request.results, request.body.contains("GO-ON")) {
                (true, _, true) => vec![text("went on")],
                (true, 0, _) => vec![task("c1", "general", "A"), task("c2", "general", "B")],
                (true, ..) => vec![text("done")],
                (false, 0, _) => {
                    vec![call("r", "bash", json!({"command": "true", "description": "x"}))]
                }
                (false, ..) => vec![text("CHILD-REPORT")],
            }
        });
        let toolbox = world.toolbox().await;
        let (cancel, seen) = (CancellationToken::new(), AtomicUsize::new(0));
        let abort = cancel.clone();
        let watch = move |_event: &AgentEvent| {
            if seen.fetch_add(1, Ordering::SeqCst) == point {
                abort.cancel();
            }
        };
        let report = world.turn_with(&toolbox, "ROOT", cancel.clone(), watch).await;
        let was_aborted = report.end == TurnEnd::Aborted;
        let report = world.turn(&toolbox, "ROOT GO-ON").await;
        assert_eq!((&report.end, report.text.as_str()), (&TurnEnd::Answered, "went on"), "{point}");
        let last = world.last_main_request();
        let calls = last.matches("\"name\":\"task\",\"arguments\"").count()
            + last.matches("\",\"name\":\"task\"}").count();
        assert!(calls == 0 || last.matches("\"role\":\"tool\"").count() == 2, "{point}: {last}");
        if !was_aborted && point > 30 {
            break;
        }
    }
}

/// The replies of the model: the second request of each sub-agent is not answered until the test ends.
fn hanging_children(request: &Request) -> Vec<Part> {
    match (request.is_root, request.results) {
        (true, _) if request.body.contains("GO-ON") => vec![text("went on")],
        (true, 0) => (0..6).map(|n| task(&format!("c{n}"), "general", "x")).collect(),
        (true, _) => vec![text("done")],
        (false, 0) => {
            vec![call("w", "write", json!({"filePath": "made.txt", "content": "x"}))]
        }
        (false, _) => {
            std::thread::sleep(HANG);
            Vec::new()
        }
    }
}

#[tokio::test]
async fn an_aborted_sub_agent_reports_its_results_so_far() {
    let world = World::new(Protocol::Chat, json!({"permission": "allow"}), hanging_children);
    let toolbox = world.toolbox().await;
    let cancel = CancellationToken::new();
    let (abort, wrote) = (cancel.clone(), AtomicUsize::new(0));
    let watch = move |event: &AgentEvent| {
        if let AgentEvent::Child { event, .. } = event
            && let AgentEvent::Result { .. } = **event
            && wrote.fetch_add(1, Ordering::SeqCst) == 3
        {
            abort.cancel();
        }
    };
    let report = world.turn_with(&toolbox, "ROOT", cancel, watch).await;
    assert_eq!(report.end, TurnEnd::Aborted);
    let report = world.turn(&toolbox, "ROOT GO-ON").await;
    assert_eq!(report.end, TurnEnd::Answered);
    let last = world.last_main_request();
    // Four sub-agents were running, and two were queued.
    assert_eq!(states(&last).iter().filter(|state| *state == "aborted").count(), 6, "{last}");
    assert!(last.contains("Files changed: made.txt"), "{last}");
}

#[tokio::test]
async fn a_sub_agent_that_reaches_its_time_limit_reports_its_results_so_far() {
    let world = World::new(Protocol::Chat, json!({"permission": "allow"}), |request: &Request| {
        match (request.is_root, request.results) {
            (true, 0) => vec![task("c0", "general", "x")],
            _ => hanging_children(request),
        }
    });
    let toolbox = world.toolbox().await;
    let (sender, mut requested) = tokio::sync::mpsc::unbounded_channel();
    let watch = move |event: &AgentEvent| {
        if let AgentEvent::Child { event, .. } = event
            && let AgentEvent::Request { .. } = **event
        {
            sender.send(()).unwrap();
        }
    };
    let turn = world.turn_with(&toolbox, "ROOT", CancellationToken::new(), watch);
    let later = async {
        // The second request of the sub-agent is not answered.
        requested.recv().await.unwrap();
        requested.recv().await.unwrap();
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31 * 60)).await;
        tokio::time::resume();
    };
    let (report, ()) = tokio::join!(turn, later);
    assert_eq!((&report.end, report.text.as_str()), (&TurnEnd::Answered, "done"));
    let last = world.last_main_request();
    assert!(last.contains("the time limit was reached"), "{last}");
    assert!(last.contains("Files changed: made.txt"), "{last}");
}

#[tokio::test]
async fn a_crash_with_running_sub_agents_leaves_a_valid_session() {
    let world = World::new(Protocol::Chat, json!({"permission": "allow"}), hanging_children);
    {
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
        tokio::select! {
            report = turn => panic!("{report:?}"),
            _ = wrote.recv() => {}
        }
        // The running turn is dropped here, as if the process had ended.
    }
    let toolbox = world.toolbox().await;
    let report = world.turn(&toolbox, "ROOT GO-ON").await;
    assert_eq!((&report.end, report.text.as_str()), (&TurnEnd::Answered, "went on"));
    assert_eq!(world.last_main_request().matches("interrupted: the program ended").count(), 6);
}

#[tokio::test]
async fn asks_of_a_sub_agent_reach_the_person() {
    for refuses in [false, true] {
        let world = World::new(Protocol::Chat, json!({}), |request| {
            match (request.is_root, request.results) {
                (true, 0) => vec![task("c1", "general", "x")],
                (true, _) => vec![text("done")],
                (false, 0) => {
                    vec![call("w", "write", json!({"filePath": "b.txt", "content": "x"}))]
                }
                (false, _) => vec![text("CHILD-REPORT")],
            }
        });
        *world.person.refuses.lock() = refuses;
        let toolbox = world.toolbox().await;
        world.turn(&toolbox, "ROOT").await;
        let asked = world.person.asked.lock().clone();
        assert_eq!(asked, [(vec!["general".to_string()], "b.txt".to_string())]);
        assert_eq!(world.folder.path().join("b.txt").exists(), !refuses);
        let expected = if refuses { "incomplete" } else { "completed" };
        assert_eq!(states(&world.last_main_request()), [expected]);
        assert_eq!(world.last_main_request().contains("Files changed: b.txt"), !refuses);
    }
}

#[tokio::test]
async fn a_no_to_a_call_in_a_batch_ends_the_turn() {
    let world = World::new(Protocol::Chat, json!({}), |request: &Request| {
        let write = json!({"tool": "write", "parameters": {"filePath": "b.txt", "content": "x"}});
        let read = json!({"tool": "read", "parameters": {"filePath": "a.txt"}});
        match request.results {
            0 => vec![call("b", "batch", json!({"tool_calls": [read, write]}))],
            _ => vec![text("went on")],
        }
    });
    *world.person.refuses.lock() = true;
    let report = world.turn(&world.toolbox().await, "ROOT").await;
    assert_eq!(report.end, TurnEnd::NotAllowed);
    *world.person.refuses.lock() = false;
    let report = world.turn(&world.toolbox().await, "ROOT again").await;
    assert_eq!((&report.end, report.text.as_str()), (&TurnEnd::Answered, "went on"));
}

#[tokio::test]
async fn a_sub_agent_cannot_do_more_than_its_parent() {
    let agent = json!({"mode": "subagent", "permission": {"edit": "allow", "bash": "allow"}});
    let config = json!({
        "agent": {"free": agent},
        "permission": {"edit": {"*": "allow", "secret/*": "deny"}, "bash": "deny"},
    });
    let world = World::new(Protocol::Chat, config, |request| {
        let write = |path: &str| json!({"filePath": path, "content": "x"});
        match (request.is_root, request.results) {
            (true, 0) => vec![task("c1", "free", "x"), task("c2", "explore", "x")],
            (true, _) => vec![text("done")],
            (false, 0) => vec![
                call("w1", "write", write("secret/x.txt")),
                call("w2", "write", write("open.txt")),
                call("w3", "bash", json!({"command": "touch touched", "description": "x"})),
            ],
            (false, _) => vec![text("tried")],
        }
    });
    let toolbox = world.toolbox().await;
    world.turn(&toolbox, "ROOT").await;
    assert!(!world.folder.path().join("secret").exists());
    assert!(!world.folder.path().join("touched").exists());
    let changed: Vec<Vec<String>> = world
        .events
        .lock()
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ChildEnded(report) if report.agent == "explore" => {
                Some(report.files.clone())
            }
            _ => None,
        })
        .collect();
    assert_eq!(changed, [Vec::<String>::new()]);
}

#[tokio::test]
async fn an_agent_and_its_sub_agents_share_a_budget() {
    let script = |request: &Request| match (request.is_root, request.body.contains("last step")) {
        (true, false) if request.results == 0 => vec![task("c1", "general", "x")],
        (true, _) => vec![text("done")],
        (false, _) => vec![call("r", "read", json!({"filePath": "a.txt"}))],
    };
    for (limits, kind) in [
        (TurnLimits { steps: Some(2), ..TurnLimits::default() }, BudgetKind::Steps),
        (TurnLimits { tokens: Some(1), ..TurnLimits::default() }, BudgetKind::Tokens),
    ] {
        let mut world = World::new(Protocol::Chat, json!({"permission": "allow"}), script);
        world.limits = limits;
        let toolbox = world.toolbox().await;
        let report = world.turn(&toolbox, "ROOT").await;
        assert_eq!(report.end, TurnEnd::OverBudget(kind));
        assert!(world.child_requests().is_empty(), "the budget was used up by the main agent");
    }
    let mut world = World::new(Protocol::Chat, json!({"permission": "allow"}), script);
    world.limits.steps = Some(4);
    let toolbox = world.toolbox().await;
    let report = world.turn(&toolbox, "ROOT").await;
    assert_eq!(report.end, TurnEnd::OverBudget(BudgetKind::Steps));
    assert_eq!((world.child_requests().len(), report.text.as_str()), (2, "done"));
    assert!(
        world.last_main_request().contains("the step limit was reached"),
        "{}",
        world.last_main_request()
    );
}

#[tokio::test]
async fn tasks_in_the_background_are_announced() {
    let has_reported = AtomicBool::new(false);
    let world = World::new(Protocol::Chat, json!({}), move |request| {
        let action = |action: &str, id: &str| {
            call("a", "task", json!({"action": action, "task_id": id, "timeout": 50}))
        };
        let background = |id: &str, prompt: &str| {
            call(
                id,
                "task",
                json!({
                    "description": "look", "prompt": prompt, "subagent_type": "general",
                    "run_in_background": true,
                }),
            )
        };
        match (request.is_root, request.results) {
            (true, 0) => vec![background("b1", "SLOW")],
            (true, 1) => vec![action("list", ""), action("wait", &task_id(&request.body))],
            (true, 3) => vec![action("cancel", &task_id(&request.body))],
            (true, 4) => vec![background("b2", "FAST")],
            (true, 5) => {
                // The child ends while this request waits.
                while !has_reported.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                std::thread::sleep(Duration::from_millis(500));
                vec![call("r", "todoread", json!({}))]
            }
            (true, _) => vec![text("done")],
            (false, _) if request.body.contains("SLOW") => {
                std::thread::sleep(HANG);
                Vec::new()
            }
            (false, _) => {
                has_reported.store(true, Ordering::SeqCst);
                vec![text("BACKGROUND-REPORT")]
            }
        }
    });
    let toolbox = world.toolbox().await;
    let report = world.turn(&toolbox, "ROOT").await;
    assert_eq!(report.end, TurnEnd::Answered);
    let last = world.last_main_request();
    let found = states(&last);
    assert!(found.contains(&"aborted".to_string()) && found.contains(&"running".to_string()));
    assert!(last.contains("A task in the background has ended."), "{last}");
    assert!(last.contains("BACKGROUND-REPORT"), "{last}");
}

#[tokio::test]
async fn the_todo_list_survives_a_summary() {
    let world = World::new(Protocol::Chat, json!({}), |request| {
        let todos = json!([
            {"content": "TODO-ONE", "status": "completed"},
            {"content": "TODO-TWO", "status": "in_progress"},
        ]);
        match request.results {
            _ if request.body.contains("for another agent that will continue") => {
                vec![text("SUMMARY")]
            }
            0 if !request.body.contains("GO-ON") => {
                vec![call("t", "todowrite", json!({"todos": todos}))]
            }
            _ => vec![text("done")],
        }
    });
    let toolbox = world.toolbox().await;
    world.turn(&toolbox, "ROOT").await;
    let shown = world.events.lock().iter().any(|event| match event {
        AgentEvent::Todos(todos) => todos.len() == 2 && todos[1].status == "in_progress",
        _ => false,
    });
    assert!(shown);
    let mut agent = toolbox.agent(world.model()).await.unwrap();
    agent.compact(&|_event| {}, CancellationToken::new()).await.unwrap();
    drop(agent);
    let after = world.turn(&toolbox, "ROOT GO-ON").await;
    assert_eq!(after.end, TurnEnd::Answered);
    let last = world.last_main_request();
    assert!(last.contains("SUMMARY") && last.contains("TODO-TWO"), "{last}");
}

#[tokio::test]
async fn questions_are_answered_by_the_person() {
    let asking = || {
        json!({"questions": [
            {"question": "Which?", "header": "H", "options": [{"label": "red", "description": "d"}]},
            {"question": "And?", "header": "H", "options": [], "multiple": true},
        ]})
    };
    let script = move |request: &Request| match request.results {
        0 => vec![call("q", "question", asking())],
        _ => vec![text("done")],
    };
    for (answers, expected) in [
        (
            vec![Answer(vec!["red".into()]), Answer(vec!["x".into(), "y".into()])],
            "User has answered your questions: \\\"Which?\\\"=\\\"red\\\", \\\"And?\\\"=\\\"x, y\\\". You can now",
        ),
        (vec![Answer(vec!["red".into()]), Answer::default()], "\\\"And?\\\"=\\\"Unanswered\\\""),
    ] {
        let world = World::new(Protocol::Chat, json!({}), script);
        *world.person.answers.lock() = answers;
        let toolbox = world.toolbox().await;
        let report = world.turn(&toolbox, "ROOT").await;
        assert_eq!(report.end, TurnEnd::Answered);
        assert!(world.last_main_request().contains(expected), "{}", world.last_main_request());
        assert!(world.person.questions.lock()[1].accepts_text);
    }
    let world = World::new(Protocol::Chat, json!({}), script);
    let toolbox = world.toolbox().await;
    assert_eq!(world.turn(&toolbox, "ROOT").await.end, TurnEnd::NotAllowed, "dismissed");
    let world = World::new(Protocol::Chat, json!({}), script);
    let (folder, data) = (world.folder.path(), world.data.path().join("data"));
    let toolbox = Toolbox::builder().dir(folder).data(data).build().await.unwrap();
    assert_eq!(world.turn(&toolbox, "ROOT").await.end, TurnEnd::Answered);
    assert!(!world.main_requests()[0].body.contains("\"name\":\"question\""));
    assert!(
        world.last_main_request().contains("Nobody can answer questions here."),
        "{}",
        world.last_main_request()
    );
}

#[tokio::test]
async fn a_plan_is_carried_out_once_a_person_agrees() {
    let script = |request: &Request| {
        let plan = request.body.split("only file that you may write is the plan, ").nth(1);
        let file = plan.map(|rest| rest.split(".md").next().unwrap().to_string() + ".md");
        let write = |path: &str| json!({"filePath": path, "content": "PLAN-TEXT"});
        match (file, request.results) {
            (_, _) if request.body.contains("I approved the plan") => vec![text("built")],
            (None, 0) => vec![call("e", "plan_enter", json!({}))],
            (Some(_), 1) => {
                vec![call("x0", "plan_exit", json!({})), call("x1", "write", write("other.txt"))]
            }
            (Some(file), 3) => vec![call("w", "write", write(&file))],
            (Some(_), 4) => {
                let exit = json!({"tool_calls": [{"tool": "plan_exit", "parameters": {}}]});
                match request.body.contains("IN-A-BATCH") {
                    true => vec![call("x2", "batch", exit)],
                    false => vec![call("x2", "plan_exit", json!({}))],
                }
            }
            (Some(_), _) => vec![text("planning goes on")],
            (None, _) => vec![text("without a plan")],
        }
    };
    let yes = || Answer(vec!["Yes".into()]);
    let no = || Answer(vec!["No".into()]);
    for (prompt, answers, end, reply_text, switches) in [
        ("ROOT", vec![yes(), yes()], TurnEnd::Answered, "built", 2),
        ("ROOT IN-A-BATCH", vec![yes(), yes()], TurnEnd::Answered, "built", 2),
        ("ROOT", vec![yes(), no()], TurnEnd::NotAllowed, "", 1),
        ("ROOT", vec![no()], TurnEnd::Answered, "without a plan", 0),
    ] {
        let world = World::new(Protocol::Chat, json!({}), script);
        *world.person.answers.lock() = answers.clone();
        let toolbox = world.toolbox().await;
        let report = world.turn(&toolbox, prompt).await;
        assert_eq!(
            (&report.end, report.text.as_str()),
            (&end, reply_text),
            "{}",
            world.last_main_request()
        );
        assert!(!world.folder.path().join("other.txt").exists());
        assert!(world.person.asked.lock().is_empty(), "writing the plan needs no approval");
        let last = world.last_main_request();
        if answers.len() == 2 {
            assert!(last.contains("There is no plan in "), "{last}");
            assert_eq!(world.person.questions.lock()[1].preview, "PLAN-TEXT");
        }
        let entries = toolbox.transcript("main").await.unwrap();
        let is_switch = |item: &Item| match item {
            Item::Note { text, .. } => text.contains("switched from the agent"),
            _ => false,
        };
        assert_eq!(entries.iter().filter(|entry| is_switch(&entry.item)).count(), switches);
    }
}
