//! Runs sub-agents. Each runs in a child session of its own, which the rules of its agent restrict further.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::event::{AgentEvent, BudgetKind, TurnEnd};
use helve_agent::item::MessagePart;
use helve_agent::model::ActiveModel;
use helve_agent::turn::{Compaction, TurnLimits};
use helve_core::agents::{AgentInfo, Agents, ChildError, ChildReport, ChildSpec, ChildState};
use helve_core::event::now;
use helve_core::session::{ChildSession, ParentCall};
use helve_core::{Action, BoxFuture, Caller, Part, Rule, Session, Source, paths};
use helve_ext::config::{Agent, AgentMode};
use tokio_util::sync::CancellationToken;

use crate::agent::{agent_switches, find_agent, policy_and_tool_switches};
use crate::run::{AgentError, TurnOptions, TurnReport};
use crate::toolbox::{Toolbox, WeakToolbox};
use crate::tree::{AgentTree, MAX_STARTED, Task};

/// How many requests a sub-agent may make, unless its agent's `steps` say otherwise.
const DEFAULT_STEPS: u32 = 50;
/// How long a sub-agent may take.
const DEADLINE: Duration = Duration::from_secs(30 * 60);
/// How deep sub-agents may be nested, unless `subagent_depth` says otherwise.
pub(crate) const DEFAULT_DEPTH: u64 = 1;
/// Maximum number of recorded changes that are searched to list the changed files in a report.
const MAX_CHANGES: usize = 1_000;
/// Tools that a sub-agent is not offered unless the rules of its agent name them.
const NOT_INHERITED: [&str; 2] = ["task", "todowrite"];
/// Tools that switch the main agent. A sub-agent is not offered them.
const MAIN_AGENT_ONLY: [&str; 2] = ["plan_enter", "plan_exit"];

/// Runs the sub-agents of a toolbox.
pub(crate) struct SubAgents(pub(crate) WeakToolbox);

impl Agents for SubAgents {
    fn list(&self, caller: &Caller) -> Vec<AgentInfo> {
        let Some(toolbox) = self.0.upgrade() else { return Vec::new() };
        let Ok(agent) = find_agent(&toolbox.config, Some(caller.agent.clone())) else {
            return Vec::new();
        };
        let (policy, _) = policy_and_tool_switches(
            &toolbox.config,
            toolbox.trust,
            &toolbox.policy_inputs,
            &agent,
        );
        let is_allowed =
            |agent: &&Agent| policy.judge(&[], &task_part(&agent.name)).action != Action::Deny;
        let info = |agent: &Agent| AgentInfo {
            name: agent.name.clone(),
            description: agent.description.as_ref().map_or("", |text| &text.value).to_string(),
        };
        let mut list: Vec<AgentInfo> = startable(&toolbox).filter(is_allowed).map(info).collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    fn start<'a>(
        &'a self,
        parent: ParentCall,
        spec: ChildSpec,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<String, ChildError>> {
        Box::pin(async move {
            let unavailable = || ChildError::Unavailable("the program is ending".into());
            let toolbox = self.0.upgrade().ok_or_else(unavailable)?;
            if let Some(task) = running_task(&toolbox, &parent, &spec) {
                if let Some(inbox) = task.inbox.get() {
                    inbox.queue(spec.prompt);
                    return Ok(task.id.clone());
                }
                return Err(ChildError::StillRunning { task: task.id.clone() });
            }
            let child = Child::prepare(&toolbox, parent, spec, cancel).await?;
            let id = child.task.id.clone();
            tokio::spawn(child.run());
            Ok(id)
        })
    }

    fn wait<'a>(
        &'a self,
        session: &'a Session,
        task: &'a str,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<ChildReport, ChildError>> {
        Box::pin(async move {
            let (tree, task) = self.find(session, task)?;
            // If the waiting session is a sub-agent itself, another one may run in the meantime.
            let waiting_task = tree.task(&session.id);
            if let Some(waiting_task) = &waiting_task {
                waiting_task.slot.pause();
            }
            // The result is not needed, because the report says whether the task has ended.
            tokio::time::timeout(timeout, task.ended()).await.ok();
            if let Some(waiting_task) = &waiting_task {
                waiting_task.slot.resume(&tree).await;
            }
            if task.has_ended() {
                // The caller gets the result now, so the end of the task is not announced to it later.
                task.take_announcement();
            }
            Ok(task.report())
        })
    }

    fn tasks<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Vec<ChildReport>> {
        Box::pin(async move {
            let Some(toolbox) = self.0.upgrade() else { return Vec::new() };
            let tasks = toolbox.trees.get(session.root_id()).tasks_of(&session.id);
            tasks.iter().map(|task| task.report()).collect()
        })
    }

    fn abort(&self, session: &Session, task: &str) -> Result<(), ChildError> {
        let (_, task) = self.find(session, task)?;
        task.cancel.cancel();
        Ok(())
    }
}

impl SubAgents {
    /// Finds a task that a session started.
    fn find(&self, session: &Session, id: &str) -> Result<(Arc<AgentTree>, Arc<Task>), ChildError> {
        let unavailable = || ChildError::Unavailable("the program is ending".into());
        let toolbox = self.0.upgrade().ok_or_else(unavailable)?;
        let tree = toolbox.trees.get(session.root_id());
        let tasks = tree.tasks_of(&session.id);
        match tasks.iter().find(|task| task.id == id) {
            Some(task) => Ok((tree, task.clone())),
            None => Err(ChildError::UnknownTask {
                task: id.into(),
                known: tasks.iter().map(|task| task.id.clone()).collect(),
            }),
        }
    }
}

fn task_part(agent: &str) -> Part {
    Part::new("task", agent.to_string())
}

/// Returns the agents that can run as sub-agents.
fn startable(toolbox: &Toolbox) -> impl Iterator<Item = &Agent> {
    toolbox.config.agents.iter().filter(|agent| *agent.mode != AgentMode::Primary)
}

/// A sub-agent that is about to run.
struct Child {
    toolbox: Toolbox,
    task: Arc<Task>,
    tree: Arc<AgentTree>,
    model: ActiveModel,
    agent: String,
    title: String,
    prompt: String,
}

impl Child {
    /// Checks that the sub-agent may be started, and opens its session.
    async fn prepare(
        toolbox: &Toolbox,
        parent: ParentCall,
        spec: ChildSpec,
        cancel: CancellationToken,
    ) -> Result<Self, ChildError> {
        let agent = startable(toolbox).find(|agent| agent.name == spec.agent).ok_or_else(|| {
            let mut agent_names: Vec<String> =
                startable(toolbox).map(|agent| agent.name.clone()).collect();
            agent_names.sort();
            ChildError::UnknownAgent { name: spec.agent.clone(), known: agent_names }
        })?;
        let limit =
            toolbox.config.subagent_depth.as_ref().map_or(DEFAULT_DEPTH, |depth| depth.value);
        if parent.session.ancestors().count() as u64 >= limit {
            return Err(ChildError::TooDeep { limit });
        }
        let parent_id = parent.session.id.to_string();
        let root_id = parent.session.root_id().to_string();
        let tree = toolbox.trees.get(&root_id);
        if let Some(task) = &spec.resumes {
            check_resumable(toolbox, &tree, &root_id, task).await?;
        }
        let child = ChildSession {
            id: spec.resumes,
            agent: agent.name.clone(),
            rules: child_rules(agent),
            switches: agent_switches(&toolbox.config, toolbox.trust, agent),
        };
        let session = Session::child(parent, child);
        let toolbox = toolbox.for_child(session);
        let model = child_model(&toolbox, agent, tree.model(&parent_id))?;
        let report = ChildReport {
            task: toolbox.session_id().into(),
            agent: agent.name.clone(),
            description: spec.description.clone(),
            state: ChildState::Queued,
            text: String::new(),
            files: Vec::new(),
            steps: 0,
            calls: 0,
            activity: String::new(),
            tokens: 0,
            cost: model.prices.map(|_| 0.0),
            elapsed: Duration::ZERO,
        };
        let task = Arc::new(Task::new(report, &parent_id, cancel, spec.in_background, now()));
        if !tree.add(&task) {
            return Err(ChildError::TooMany { limit: MAX_STARTED });
        }
        Ok(Self {
            task,
            tree,
            model,
            agent: agent.name.clone(),
            title: format!("{} (@{} subagent)", spec.description, agent.name),
            prompt: spec.prompt,
            toolbox,
        })
    }

    /// Waits until the sub-agent may run, and runs it. Its task ends in every case, and the sub-agents that it started
    /// are aborted.
    async fn run(self) {
        let permit = tokio::select! {
            permit = self.tree.acquire() => permit,
            () = self.task.cancel.cancelled() => None,
        };
        if self.task.cancel.is_cancelled() {
            return self.end(ChildState::Aborted, None).await;
        }
        self.task.slot.set(permit);
        self.task.update(|report| report.state = ChildState::Running);
        let (state, text) = match self.turn().await {
            Ok(report) => (child_state(&report.end), Some(report.text)),
            Err(error) => (ChildState::Failed(error.to_string()), None),
        };
        self.task.slot.set(None);
        for nested in self.tree.tasks_of(&self.task.id) {
            nested.cancel.cancel();
        }
        self.end(state, text).await;
    }

    /// Runs the turn of the sub-agent, with its limits on steps and time.
    async fn turn(&self) -> Result<TurnReport, AgentError> {
        let (model, budget) = (self.model.clone(), self.tree.budget());
        let mut session = self.toolbox.child_agent(model, self.title.clone(), budget).await?;
        self.task.inbox.get_or_init(|| session.inbox.clone());
        let last = session.entries().last().map_or(0, |entry| entry.seq);
        self.toolbox.record_child_turn(last).await?;
        let configured_steps = self.toolbox.agent_config().and_then(|agent| agent.steps.as_ref());
        let limits = TurnLimits {
            steps: Some(
                configured_steps
                    .map_or(DEFAULT_STEPS, |steps| u32::try_from(steps.value).unwrap_or(u32::MAX)),
            ),
            time: Some(DEADLINE),
            ..TurnLimits::default()
        };
        let options =
            TurnOptions { limits, compaction: Compaction::Automatic, output_schema: None };
        let emit = |event: AgentEvent| {
            self.task.observe(&event);
            self.tree.emit(AgentEvent::Child {
                task: self.task.id.clone(),
                agent: self.agent.clone(),
                event: Box::new(event),
            });
        };
        let prompt = vec![MessagePart::Text(self.prompt.clone())];
        let cancel = self.task.cancel.clone();
        let mut running = pin!(session.run(prompt, &options, &emit, cancel.clone()));
        tokio::select! {
            report = &mut running => return report,
            // A turn checks its time limit only between requests.
            () = tokio::time::sleep(DEADLINE) => cancel.cancel(),
        }
        Ok(TurnReport { end: TurnEnd::OverBudget(BudgetKind::Time), ..running.await? })
    }

    /// Completes the report of the task, and announces its end.
    async fn end(&self, state: ChildState, text: Option<String>) {
        let files = self.changed_files().await;
        self.task.update(|report| {
            report.files = files;
            if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                report.text = text;
            }
            report.activity.clear();
            report.state = state;
        });
        self.tree.emit(AgentEvent::ChildEnded(Box::new(self.task.report())));
    }

    /// Returns the files that the sub-agent and its own sub-agents have changed since it was started.
    async fn changed_files(&self) -> Vec<String> {
        let changes = self.toolbox.history(MAX_CHANGES).await.unwrap_or_default();
        let nested = format!("{}/", self.task.id);
        let is_in_task = |session: &str| session == self.task.id || session.starts_with(&nested);
        let root = self.toolbox.root();
        let mut files: Vec<String> = changes
            .iter()
            .filter(|change| is_in_task(&change.session) && change.at >= self.task.started_at)
            .flat_map(|change| &change.files)
            .map(|file| file.path.strip_prefix(root).unwrap_or(&file.path))
            .map(|path| paths::display(path).into_owned())
            .collect();
        files.sort();
        files.dedup();
        files
    }
}

/// Returns the task that `spec` resumes, if it is still running.
fn running_task(toolbox: &Toolbox, parent: &ParentCall, spec: &ChildSpec) -> Option<Arc<Task>> {
    let tree = toolbox.trees.get(parent.session.root_id());
    tree.task(spec.resumes.as_deref()?).filter(|task| !task.has_ended())
}

/// Checks that a task can be resumed, which requires that it is a sub-agent of the same tree.
async fn check_resumable(
    toolbox: &Toolbox,
    tree: &AgentTree,
    root: &str,
    task: &str,
) -> Result<(), ChildError> {
    let info = toolbox.transcripts.info(task).await;
    let info = info.map_err(|error| ChildError::Unavailable(error.to_string()))?;
    let is_child = info.is_some_and(|info| info.parent.is_some());
    match is_child && task.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')) {
        true => Ok(()),
        false => {
            let known = tree.tasks_of(root).iter().map(|task| task.id.clone()).collect();
            Err(ChildError::UnknownTask { task: task.into(), known })
        }
    }
}

/// Returns the rules that restrict a sub-agent, in addition to those of its parent: the rules of its agent, and rules
/// that deny tools which sub-agents do not get. Each list becomes a wall of its own, so it can forbid more than the
/// parent's rules, but never allow more.
fn child_rules(agent: &Agent) -> Vec<Vec<Rule>> {
    let deny = |tool: &str| Rule::new(tool, "*", Action::Deny, Source::Builtin);
    let is_named = |tool: &str| {
        let mut rules = agent.rules.iter().chain(&agent.project_rules);
        rules.any(|rule| rule.permission == tool)
    };
    let not_inherited = NOT_INHERITED.iter().filter(|tool| !is_named(tool));
    let denied = not_inherited.chain(&MAIN_AGENT_ONLY).map(|tool| deny(tool)).collect();
    vec![agent.rules.clone(), agent.project_rules.clone(), denied]
}

/// Returns the model of a sub-agent: its agent's model, or else the model of the session that starts it, or else the
/// configured model.
fn child_model(
    toolbox: &Toolbox,
    agent: &Agent,
    inherited: Option<ActiveModel>,
) -> Result<ActiveModel, ChildError> {
    match inherited.filter(|_| agent.model.is_none()) {
        Some(mut model) => {
            if let Some(temperature) = &agent.temperature {
                model.settings.temperature = Some(temperature.value);
            }
            if let Some(top_p) = &agent.top_p {
                model.settings.top_p = Some(top_p.value);
            }
            Ok(model)
        }
        None => toolbox.model(None).map_err(|error| ChildError::Unavailable(error.to_string())),
    }
}

fn child_state(end: &TurnEnd) -> ChildState {
    let incomplete = |why: &str| ChildState::Incomplete(why.into());
    match end {
        TurnEnd::Answered => ChildState::Completed,
        TurnEnd::Failed(why) => ChildState::Failed(why.clone()),
        TurnEnd::NotAllowed => incomplete("a call was not allowed"),
        TurnEnd::OverBudget(BudgetKind::Steps) => incomplete("the step limit was reached"),
        TurnEnd::OverBudget(BudgetKind::Tokens) => incomplete("the token limit was reached"),
        TurnEnd::OverBudget(BudgetKind::Cost) => incomplete("the cost limit was reached"),
        TurnEnd::OverBudget(BudgetKind::Time) => incomplete("the time limit was reached"),
        TurnEnd::OverBudget(BudgetKind::OutputLength) => {
            incomplete("its replies were cut at the output limit")
        }
        TurnEnd::Refused => ChildState::Failed("the model refused to answer".into()),
        TurnEnd::NoAnswer => ChildState::Failed("the model gave an empty answer".into()),
        TurnEnd::Loop => incomplete("it made the same call again and again"),
        TurnEnd::Aborted => ChildState::Aborted,
    }
}
