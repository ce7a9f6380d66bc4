//! `helve run`: a model works in this folder until it answers.

mod conversation;
mod editor;
mod events;
mod keyboard;
mod options;
mod person;
mod screen;
pub(crate) mod trust;

use std::io::IsTerminal;
use std::sync::Arc;

use helve::agent_loop::event::{AgentEvent, TurnEnd};
use helve::{
    AUTO_BACKGROUND, AgentSession, PLAN_MODE, Toolbox, TurnInput, TurnOptions, TurnReport,
};
use tokio_util::sync::CancellationToken;

use crate::Exit;
use crate::args::{GlobalArgs, RunArgs};
use crate::call::on_ctrl_c;
use crate::output::{self, DIM, PLAIN};
use events::JsonEvents;
use keyboard::{KeyHandler, Keyboard, Typing};
use options::{FirstTurn, PromptSource};
use person::{EditMode, RunPerson};
use screen::Screen;
use trust::TrustDecision;

pub(crate) async fn run(common: &GlobalArgs, run: &RunArgs) -> anyhow::Result<Exit> {
    let prompt = options::prompt(common, run)?;
    let terminal = RunTerminal::default();
    let toolbox = toolbox(common, run, &terminal).await?;
    let model = options::model(run, &toolbox)?;
    let mut session = options::session_id(&toolbox, common, run).await?;
    if run.fork {
        session = toolbox.fork_session(&session).await?;
    }
    let toolbox = toolbox.with_session(session);
    let options = options::turn_options(run)?;
    let attached = options::attachments(&toolbox, run).await?;
    let exit = match prompt {
        PromptSource::Given(text) => {
            let args = (common, run);
            let first = options::first_turn(&toolbox, args, text, attached, model).await?;
            let report = run_once(args, &toolbox, first, &options, &terminal.screen).await?;
            options::write_last_message(run, &report.text)?;
            exit(&report.end)
        }
        PromptSource::Conversation => {
            let setup = conversation::Setup { terminal: &terminal, run, options, model };
            conversation::converse(&toolbox, setup, attached).await?
        }
    };
    if let Some(warning) = toolbox.store().pending_warning().await {
        output::note(&warning);
    }
    toolbox.close().await;
    Ok(exit)
}

/// What the terminal of a run consists of.
#[derive(Default)]
struct RunTerminal {
    screen: Arc<Screen>,
    keyboard: Arc<Keyboard>,
    mode: Arc<EditMode>,
}

/// Builds the toolbox. Asks about trust first, where that makes a difference.
async fn toolbox(
    common: &GlobalArgs,
    run: &RunArgs,
    terminal: &RunTerminal,
) -> anyhow::Result<Toolbox> {
    let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let build = || {
        let builder = common.builder().client("cli").flag(AUTO_BACKGROUND).flag(PLAN_MODE);
        let builder = run.api_key_env.iter().fold(builder, helve::Builder::secret_variable);
        match can_ask && !common.yes {
            true => builder.person(RunPerson {
                screen: terminal.screen.clone(),
                keyboard: terminal.keyboard.clone(),
                mode: terminal.mode.clone(),
                asking: tokio::sync::Mutex::default(),
                waiting: person::WaitingAsks::default(),
            }),
            false => builder,
        }
    };
    let mut toolbox = build().build().await?;
    if trust::ask(common, &toolbox).await? == TrustDecision::Given {
        toolbox.close().await;
        toolbox = build().build().await?;
    }
    output::summarize_problems(&toolbox);
    Ok(toolbox)
}

/// Runs the only turn of a run that got its prompt from the command line.
async fn run_once(
    (common, run): (&GlobalArgs, &RunArgs),
    toolbox: &Toolbox,
    FirstTurn { input, model, agent: name }: FirstTurn,
    options: &TurnOptions,
    screen: &Screen,
) -> anyhow::Result<TurnReport> {
    let session = toolbox.session_id().to_string();
    let cancel = CancellationToken::new();
    let ctrl_c_task = tokio::spawn(on_ctrl_c(cancel.clone()));
    let report = if common.json {
        let events = JsonEvents { stream: run.stream, session };
        events.begin(toolbox, &model);
        let mut agent = toolbox.agent(model).await?;
        switch_agent(&mut agent, name.as_deref()).await?;
        let emit = |event: AgentEvent| events.event(&event);
        let report = agent.run(input, options, &emit, cancel).await?;
        events.end(&report);
        if let Some(explanation) = events::describe(&report.end).1 {
            output::error(&explanation);
        }
        report
    } else {
        if std::io::stderr().is_terminal() {
            output::note(&format!("{DIM}session {session}{PLAIN}"));
        }
        let mut agent = toolbox.agent(model).await?;
        switch_agent(&mut agent, name.as_deref()).await?;
        show_turn(&mut agent, input, options, screen, cancel).await?
    };
    ctrl_c_task.abort();
    Ok(report)
}

/// Switches to the named agent, unless it is the current one.
async fn switch_agent(agent: &mut AgentSession<'_>, name: Option<&str>) -> anyhow::Result<()> {
    match name.filter(|name| *name != agent.toolbox().agent_name()) {
        Some(name) => Ok(agent.set_agent(name).await?),
        None => Ok(()),
    }
}

/// Runs a turn and shows it to a person.
async fn show_turn(
    agent: &mut AgentSession<'_>,
    input: TurnInput,
    options: &TurnOptions,
    screen: &Screen,
    cancel: CancellationToken,
) -> anyhow::Result<TurnReport> {
    screen.begin();
    let emit = |event: AgentEvent| screen.event(&event);
    let report = screen.watch(agent.run(input, options, &emit, cancel)).await;
    let report = report.inspect_err(|_| screen.finish())?;
    screen.end(&report)?;
    Ok(report)
}

fn exit(end: &TurnEnd) -> Exit {
    match end {
        TurnEnd::Answered => Exit::Done,
        TurnEnd::Failed(_) => Exit::Failed,
        TurnEnd::NotAllowed => Exit::Refused,
        TurnEnd::OverBudget(_) | TurnEnd::Loop => Exit::OverBudget,
        TurnEnd::Refused | TurnEnd::NoAnswer => Exit::NoAnswer,
        TurnEnd::Aborted => Exit::Interrupted,
    }
}
