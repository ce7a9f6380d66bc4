//! The tree of an agent and its sub-agents: which of them run or wait, and the budget that they share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use helve_agent::event::AgentEvent;
use helve_agent::inbox::Inbox;
use helve_agent::model::ActiveModel;
use helve_agent::turn::TreeBudget;
use helve_core::AnyTool;
use helve_core::agents::{ChildReport, ChildState};
use helve_core::event::Millis;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of sub-agents of a tree that run at the same time. Others wait.
const MAX_RUNNING: usize = 4;
/// Maximum number of sub-agents that a tree may start in one turn.
pub(crate) const MAX_STARTED: usize = 16;
/// If a tree has more tasks than this, tasks that have ended are forgotten, oldest first.
const MAX_REMEMBERED: usize = 64;
/// Once there are this many trees, all those in which nothing runs are forgotten.
const MAX_TREES: usize = 256;

/// The trees of a process, by the id of the outermost session.
#[derive(Default)]
pub(crate) struct AgentTrees {
    trees: Mutex<HashMap<String, Arc<AgentTree>>>,
    /// The tool that starts sub-agents, until it is registered.
    task_tool: Mutex<Option<Arc<dyn AnyTool>>>,
}

impl AgentTrees {
    pub(crate) fn set_task_tool(&self, tool: Arc<dyn AnyTool>) {
        *self.task_tool.lock() = Some(tool);
    }

    /// Takes out the tool that starts sub-agents. Returns `None` if it is registered already.
    pub(crate) fn take_task_tool(&self) -> Option<Arc<dyn AnyTool>> {
        self.task_tool.lock().take()
    }

    /// Returns the tree of an outermost session, and creates it if necessary.
    pub(crate) fn get(&self, root: &str) -> Arc<AgentTree> {
        let mut trees = self.trees.lock();
        if let Some(tree) = trees.get(root) {
            return tree.clone();
        }
        if trees.len() >= MAX_TREES {
            trees.retain(|_, tree| tree.is_active());
        }
        trees.entry(root.into()).or_default().clone()
    }
}

/// One agent with its sub-agents.
pub(crate) struct AgentTree {
    /// One permit for each sub-agent that may run at the same time.
    slots: Arc<Semaphore>,
    state: Mutex<TreeState>,
}

#[derive(Default)]
struct TreeState {
    /// The current turn of the main agent; `None` between turns, or if there is no main agent, as with an MCP client.
    turn: Option<TreeTurn>,
    /// The models of the sessions in which a turn runs.
    models: HashMap<String, ActiveModel>,
    /// The tasks of all sub-agents in the tree, oldest first.
    tasks: Vec<Arc<Task>>,
}

/// The current turn of a main agent.
#[derive(Clone)]
struct TreeTurn {
    budget: Arc<TreeBudget>,
    events: mpsc::UnboundedSender<AgentEvent>,
    /// Number of sub-agents that were started in this turn.
    started: usize,
}

impl Default for AgentTree {
    fn default() -> Self {
        Self { slots: Arc::new(Semaphore::new(MAX_RUNNING)), state: Mutex::default() }
    }
}

impl AgentTree {
    /// Begins a turn of the main agent. Returns the receiver of its sub-agents' events.
    pub(crate) fn begin_turn(
        &self,
        budget: Arc<TreeBudget>,
    ) -> mpsc::UnboundedReceiver<AgentEvent> {
        let (events, receiver) = mpsc::unbounded_channel();
        self.state.lock().turn = Some(TreeTurn { budget, events, started: 0 });
        receiver
    }

    pub(crate) fn end_turn(&self) {
        self.state.lock().turn = None;
    }

    /// Records the model of a turn that begins in a session. `None` when the turn has ended.
    pub(crate) fn set_model(&self, session: &str, model: Option<ActiveModel>) {
        let models = &mut self.state.lock().models;
        match model {
            Some(model) => drop(models.insert(session.into(), model)),
            None => drop(models.remove(session)),
        }
    }

    pub(crate) fn model(&self, session: &str) -> Option<ActiveModel> {
        self.state.lock().models.get(session).cloned()
    }

    /// Returns the budget of the current turn. Without a turn, returns a budget without limits.
    pub(crate) fn budget(&self) -> Arc<TreeBudget> {
        let turn = self.state.lock().turn.as_ref().map(|turn| turn.budget.clone());
        turn.unwrap_or_else(|| Arc::new(TreeBudget::new(Default::default())))
    }

    /// Passes an event of a sub-agent on to whoever watches the main agent.
    pub(crate) fn emit(&self, event: AgentEvent) {
        if let Some(turn) = &self.state.lock().turn {
            // Fails if the turn is ending and nobody receives events any more.
            turn.events.send(event).ok();
        }
    }

    /// Adds a task. Returns false if too many tasks were started in this turn or, without a turn, if too many are
    /// running.
    pub(crate) fn add(&self, task: &Arc<Task>) -> bool {
        let mut state = self.state.lock();
        let running = state.tasks.iter().filter(|task| !task.has_ended()).count();
        let started_or_running = state.turn.as_ref().map_or(running, |turn| turn.started);
        if started_or_running >= MAX_STARTED {
            return false;
        }
        if let Some(turn) = &mut state.turn {
            turn.started += 1;
        }
        state.tasks.retain(|other| other.id != task.id);
        let mut excess = state.tasks.len().saturating_sub(MAX_REMEMBERED);
        state.tasks.retain(|task| {
            let is_forgotten = excess > 0 && task.has_ended();
            excess -= usize::from(is_forgotten);
            !is_forgotten
        });
        state.tasks.push(task.clone());
        true
    }

    /// Returns the tasks that a session started, oldest first.
    pub(crate) fn tasks_of(&self, session: &str) -> Vec<Arc<Task>> {
        let state = self.state.lock();
        state.tasks.iter().filter(|task| task.parent == session).cloned().collect()
    }

    pub(crate) fn task(&self, id: &str) -> Option<Arc<Task>> {
        self.state.lock().tasks.iter().find(|task| task.id == id).cloned()
    }

    /// Returns the background tasks of a session that ended since this function was last called.
    pub(crate) fn take_ended(&self, session: &str) -> Vec<Arc<Task>> {
        let ended = |task: &Arc<Task>| task.has_ended() && task.take_announcement();
        self.tasks_of(session).into_iter().filter(ended).collect()
    }

    /// Aborts all tasks.
    pub(crate) fn abort_all(&self) {
        for task in &self.state.lock().tasks {
            task.cancel.cancel();
        }
    }

    fn is_active(&self) -> bool {
        let state = self.state.lock();
        state.turn.is_some() || state.tasks.iter().any(|task| !task.has_ended())
    }

    /// Waits until a sub-agent may run.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.slots.clone().acquire_owned().await.ok()
    }
}

/// A task: the work of one sub-agent.
pub(crate) struct Task {
    /// The id of the sub-agent's session.
    pub(crate) id: String,
    /// The id of the session that started the task.
    pub(crate) parent: String,
    pub(crate) cancel: CancellationToken,
    pub(crate) slot: RunSlot,
    /// Messages for the sub-agent; set once it runs.
    pub(crate) inbox: OnceLock<Arc<Inbox>>,
    report: watch::Sender<ChildReport>,
    /// The start of the task on the monotonic clock, to measure how long it takes.
    started: Instant,
    /// The start of the task on the system clock, to distinguish its file changes from earlier ones.
    pub(crate) started_at: Millis,
    /// Whether the session that started the task must still be notified of its end.
    must_announce_end: Mutex<bool>,
}

impl Task {
    pub(crate) fn new(
        report: ChildReport,
        parent: &str,
        cancel: CancellationToken,
        in_background: bool,
        started_at: Millis,
    ) -> Self {
        Self {
            id: report.task.clone(),
            parent: parent.into(),
            cancel,
            slot: RunSlot::default(),
            report: watch::Sender::new(report),
            started: Instant::now(),
            inbox: OnceLock::new(),
            started_at,
            must_announce_end: Mutex::new(in_background),
        }
    }

    /// Returns the state of the task and its results so far.
    pub(crate) fn report(&self) -> ChildReport {
        let mut report = self.report.borrow().clone();
        if !report.state.has_ended() {
            report.elapsed = self.started.elapsed();
        }
        report
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.report.borrow().state.has_ended()
    }

    /// Changes the report, and notifies those that wait for it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut ChildReport)) {
        self.report.send_modify(|report| {
            change(report);
            report.elapsed = self.started.elapsed();
        });
    }

    /// Waits until the task has ended.
    pub(crate) async fn ended(&self) {
        let mut report = self.report.subscribe();
        // The sender lives as long as the task.
        report.wait_for(|report| report.state.has_ended()).await.ok();
    }

    /// Returns whether the end of the task is still to be announced. Clears the flag, so that only one caller announces
    /// it.
    pub(crate) fn take_announcement(&self) -> bool {
        std::mem::take(&mut *self.must_announce_end.lock())
    }

    /// Updates the report from an event of the sub-agent.
    pub(crate) fn observe(&self, event: &AgentEvent) {
        match event {
            AgentEvent::Request { step, attempt: 1 } => self.update(|report| {
                report.steps = report.steps.max(*step);
                report.state = ChildState::Running;
                report.text.clear();
            }),
            AgentEvent::Text(text) => self.update(|report| report.text.push_str(text)),
            AgentEvent::Retry { .. } => self.update(|report| report.text.clear()),
            AgentEvent::Call { name, .. } => self.update(|report| {
                report.calls += 1;
                report.activity.clone_from(name);
            }),
            AgentEvent::Usage { tokens, cost, .. } => self.update(|report| {
                report.tokens = report.tokens.saturating_add(tokens.total());
                report.cost = report.cost.zip(*cost).map(|(sum, cost)| sum + cost);
            }),
            AgentEvent::Request { .. }
            | AgentEvent::Reasoning(_)
            | AgentEvent::Progress { .. }
            | AgentEvent::Asked { .. }
            | AgentEvent::Result { .. }
            | AgentEvent::Notice(_)
            | AgentEvent::Todos(_)
            | AgentEvent::Child { .. }
            | AgentEvent::ChildEnded(_) => {}
        }
    }
}

/// The permit of a sub-agent to run. At most [`MAX_RUNNING`] sub-agents of a tree have one. A sub-agent gives it up
/// while it waits for sub-agents of its own.
#[derive(Default)]
pub(crate) struct RunSlot {
    /// `None` while the sub-agent may not run.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Number of the sub-agent's calls that wait for sub-agents of its own.
    waiting: AtomicUsize,
}

impl RunSlot {
    pub(crate) fn set(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.permit.lock() = permit;
    }

    /// Begins a wait for a sub-agent: gives up the permit until [`RunSlot::resume`].
    pub(crate) fn pause(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.set(None);
    }

    /// Ends a wait that [`RunSlot::pause`] began. If it was the agent's last one, waits for a free permit and takes it.
    pub(crate) async fn resume(&self, tree: &AgentTree) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            let permit = tree.acquire().await;
            if self.waiting.load(Ordering::Acquire) == 0 {
                self.set(permit);
            }
        }
    }
}
