//! `task`: starts sub-agents, and follows those in the background.

use helve_core::ForeignParameters;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use helve_core::agents::{AgentInfo, Agents, ChildReport, ChildSpec, ChildState};
use helve_core::{
    Act, Ask, Caller, ErrorKind, Part, Pattern, Progress, Tool, ToolContext, ToolError, ToolOutput,
    ToolProperties,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::foreign;
use crate::words::clip;
use crate::words::task::{child_error, report_text, state_word, status_line};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What the task is about, in three to five words
    description: Option<String>,
    /// What to do, in full
    prompt: Option<String>,
    /// The agent to use
    subagent_type: Option<String>,
    /// The task to continue, wait for, read or cancel
    task_id: Option<String>,
    /// Do not wait for the result
    #[serde(default)]
    run_in_background: bool,
    /// The default is start
    #[serde(default)]
    action: Action,
    /// Milliseconds to wait, default 30000
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Start,
    List,
    Wait,
    Read,
    Cancel,
}

const DEFAULT_WAIT: Duration = Duration::from_secs(30);
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Interval at which a waiting call reports the progress of the sub-agent.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long to wait for a cancelled sub-agent, so that its report is complete.
const CANCEL_TIME: Duration = Duration::from_secs(5);
/// Maximum length of a prompt in bytes.
const MAX_PROMPT: usize = 200_000;

pub(super) struct TaskTool {
    pub(super) agents: Arc<dyn Agents>,
}

impl Tool for TaskTool {
    type Args = Args;
    const NAME: &'static str = "task";
    const ABOUT: &'static str = include_str!("task.txt");
    const FOREIGN: ForeignParameters = foreign::TASK;
    const PROPERTIES: ToolProperties =
        ToolProperties { parallel: true, open_world: true, ..ToolProperties::MUTATES };

    fn about(&self, caller: &Caller) -> Cow<'static, str> {
        let line = |agent: &AgentInfo| match agent.description.trim() {
            "" => format!("- {}", agent.name),
            text => format!("- {}: {}", agent.name, clip_description(text)),
        };
        let agents: Vec<String> = self.agents.list(caller).iter().map(line).collect();
        format!("{}\nAgents for subagent_type:\n{}\n", Self::ABOUT, agents.join("\n")).into()
    }

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let tasks = ctx.tasks(&*self.agents);
        let id = || {
            let no_id = || {
                missing("task_id", "the id from an earlier answer; the action `list` shows all ids")
            };
            args.task_id.as_deref().ok_or_else(no_id)
        };
        match args.action {
            Action::Start => self.start(args, ctx).await,
            Action::List => {
                ctx.ask(Ask::to_use(Self::NAME)).await?;
                Ok(list_text(&tasks.list().await))
            }
            Action::Wait => {
                let timeout =
                    args.timeout.map_or(DEFAULT_WAIT, Duration::from_millis).min(MAX_WAIT);
                Ok(output(&tasks.wait(id()?, timeout).await.map_err(child_error)?))
            }
            Action::Read => {
                Ok(output(&tasks.wait(id()?, Duration::ZERO).await.map_err(child_error)?))
            }
            Action::Cancel => {
                tasks.abort(id()?).map_err(child_error)?;
                Ok(output(&tasks.wait(id()?, CANCEL_TIME).await.map_err(child_error)?))
            }
        }
    }
}

impl TaskTool {
    async fn start(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agent =
            args.subagent_type.ok_or_else(|| missing("subagent_type", "the agent to use"))?;
        let prompt = args.prompt.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or_else(|| missing("prompt", "what the sub-agent is to do"))?;
        if prompt.len() > MAX_PROMPT {
            let text = format!("The prompt is longer than {MAX_PROMPT} bytes.");
            return Err(ToolError::new(ErrorKind::InvalidArgs, text)
                .hint("Write long material to a file, and name the file in the prompt."));
        }
        let description = args.description.unwrap_or_else(|| clip(&prompt));
        let part = Part::new(Self::NAME, agent.clone()).remember_as(Pattern::any());
        let ask = Ask::default().add(Act::UseTool(Cow::Borrowed(Self::NAME)), part);
        ctx.ask(ask.preview(format!("{description}\n\n{prompt}"))).await?;
        let spec = ChildSpec {
            agent,
            description,
            prompt,
            resumes: args.task_id,
            in_background: args.run_in_background,
        };
        let tasks = ctx.tasks(&*self.agents);
        let id = tasks.start(spec).await.map_err(child_error)?;
        if args.run_in_background {
            return Ok(output(&tasks.wait(&id, Duration::ZERO).await.map_err(child_error)?));
        }
        loop {
            let report = tasks.wait(&id, HEARTBEAT).await.map_err(child_error)?;
            if report.state.has_ended() || ctx.cancel.is_cancelled() {
                return Ok(output(&report));
            }
            ctx.progress(Progress::text(status_line(&report)));
        }
    }
}

fn output(report: &ChildReport) -> ToolOutput {
    let title = match &report.state {
        ChildState::Completed => report.description.clone(),
        state => format!("{} ({})", report.description, state_word(state)),
    };
    ToolOutput::text(title, report_text(report))
        .with_metadata("sessionId", report.task.clone())
        .with_metadata("agent", report.agent.clone())
        .with_metadata("state", state_word(&report.state))
        .with_metadata("files", report.files.clone())
        .with_metadata("tokens", report.tokens)
        .with_metadata("cost", report.cost)
}

fn list_text(reports: &[ChildReport]) -> ToolOutput {
    let lines: Vec<String> =
        reports.iter().map(|report| format!("{}: {}", report.task, status_line(report))).collect();
    let text = match lines.is_empty() {
        true => "No task was started in this session.".into(),
        false => lines.join("\n"),
    };
    ToolOutput::text("tasks", text).with_metadata("count", reports.len())
}

fn missing(parameter: &str, meaning: &str) -> ToolError {
    let text = format!("The parameter {parameter} is missing: {meaning}.");
    ToolError::new(ErrorKind::InvalidArgs, text).hint("Set it and call again.")
}

/// Shortens the description of an agent. It may come from a file of the project, so its length is not trusted.
fn clip_description(text: &str) -> String {
    const MAX_DESCRIPTION: usize = 500;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    helve_text::lines::clip(&line, MAX_DESCRIPTION).0.to_string()
}
