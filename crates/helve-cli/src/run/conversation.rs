//! A conversation at the terminal: prompts, commands, and turns one after the other.

use helve::agent_loop::compose;
use helve::agent_loop::event::AgentEvent;
use helve::agent_loop::item::{Entry, Item, MessagePart};
use helve::agent_loop::model::ActiveModel;
use helve::config::AgentMode;
use helve::{AgentSession, CommandError, CommandInfo, Toolbox, TurnInput, TurnOptions, visible};
use tokio_util::sync::CancellationToken;

use super::editor::{ConversationPrompt, Editor, Entered};
use super::keyboard::abort_on_ctrl_c;
use super::screen::{self, thousands};
use super::{KeyHandler, RunTerminal, Typing, events, options, show_turn, switch_agent};
use crate::Exit;
use crate::args::RunArgs;
use crate::history::ago;
use crate::output::{self, BOLD, DIM, PLAIN};

/// The commands of a conversation, and what they do.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("/undo", "take back your last message and all file changes that followed it"),
    ("/redo", "restore what was taken back"),
    ("/compact", "replace the older part of the conversation with a summary"),
    ("/context", "show how full the context window is, and what the session used"),
    ("/model", "show the model; with PROVIDER/MODEL, use another one"),
    ("/agent", "list the agents; with a name, work as that one"),
    ("/sessions", "list the sessions of this folder; with an ID, continue that one"),
    ("/new", "begin a new session"),
    ("/help", "show this list"),
    ("/exit", "leave; so does Ctrl-D"),
];
/// How many sessions are listed.
const MAX_SESSIONS: usize = 20;
/// How many lines of an earlier message are shown when a session is resumed.
const MAX_RECALLED_LINES: usize = 10;
/// How many characters of a command's description are shown.
const MAX_ABOUT: usize = 100;
/// How many files a message may mention.
const MAX_MENTIONS: usize = 20;

/// What a conversation needs besides its toolbox.
pub(super) struct Setup<'a> {
    pub(super) terminal: &'a RunTerminal,
    pub(super) run: &'a RunArgs,
    pub(super) options: TurnOptions,
    pub(super) model: ActiveModel,
}

/// What to do after an input line.
enum Step {
    Continue,
    /// Another session is opened.
    Switch(String),
    End,
}

/// Talks with a person until they leave. `attached` goes with the first message.
pub(super) async fn converse(
    toolbox: &Toolbox,
    setup: Setup<'_>,
    attached: Vec<MessagePart>,
) -> anyhow::Result<Exit> {
    let mut editor = Editor::new(toolbox.data().join("prompt_history"));
    let mut conversation = Conversation { setup, attached };
    let mut session = toolbox.session_id().to_string();
    let mut previous: Option<String> = None;
    output::note(&format!(
        "{BOLD}helve{PLAIN} in {}  {DIM}/help to list the commands, Ctrl-D to leave{PLAIN}",
        visible::escape_line(&toolbox.root().display().to_string())
    ));
    loop {
        let toolbox = toolbox.with_session(session.clone());
        let mut agent = match (toolbox.agent(conversation.setup.model.clone()).await, &previous) {
            (Ok(agent), _) => agent,
            // Another process may be using the session.
            (Err(error), Some(last)) => {
                output::error(&error.to_string());
                session.clone_from(last);
                previous = None;
                continue;
            }
            (Err(error), None) => return Err(error.into()),
        };
        output::note(&format!("{DIM}session {session}{PLAIN}"));
        recall(agent.entries());
        offer_unsent(&agent, &mut editor);
        let next = conversation.talk(&mut agent, &toolbox, &mut editor).await?;
        drop(agent);
        match next {
            Some(other) => previous = Some(std::mem::replace(&mut session, other)),
            None => return Ok(Exit::Done),
        }
    }
}

/// Puts unsent messages back into the input line.
fn offer_unsent(agent: &AgentSession<'_>, editor: &mut Editor) {
    let unsent = agent.inbox.take().join("\n");
    if !unsent.is_empty() {
        editor.insert(&unsent);
    }
}

/// Shows the last message and the last answer of a resumed session.
fn recall(entries: &[Entry]) {
    let texts = compose::sent_entries(entries).into_iter().filter_map(|entry| match &entry.item {
        Item::User { content } => match content.first() {
            Some(MessagePart::Text(text)) => Some(format!("› {text}")),
            Some(MessagePart::Media { .. }) | None => None,
        },
        Item::Assistant(message) => Some(message.text()),
        Item::Result(_)
        | Item::Note { .. }
        | Item::Summary { .. }
        | Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => None,
    });
    let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    let last_message = texts.iter().rposition(|text| text.starts_with("› ")).unwrap_or(0);
    let is_shown = |index: usize| index == last_message || index + 1 == texts.len();
    for (_, text) in texts.iter().enumerate().filter(|(index, _)| is_shown(*index)) {
        let lines: Vec<&str> = text.lines().collect();
        let shown =
            visible::escape(&lines[..lines.len().min(MAX_RECALLED_LINES)].join("\n")).into_owned();
        let more = if lines.len() > MAX_RECALLED_LINES { "\n…" } else { "" };
        output::note(&format!("{DIM}{shown}{more}{PLAIN}"));
    }
}

struct Conversation<'a> {
    setup: Setup<'a>,
    /// Files for the next message.
    attached: Vec<MessagePart>,
}

impl Conversation<'_> {
    /// Talks in one session. Returns the session to continue with, or `None` at the end.
    async fn talk(
        &mut self,
        agent: &mut AgentSession<'_>,
        toolbox: &Toolbox,
        editor: &mut Editor,
    ) -> anyhow::Result<Option<String>> {
        let mut was_interrupted = false;
        loop {
            let entered = editor.read(agent.toolbox(), self.prompt(agent)).await?;
            let was_interrupted_before = std::mem::take(&mut was_interrupted);
            let text = match entered {
                Entered::SwitchMode => {
                    self.setup.terminal.mode.toggle();
                    continue;
                }
                Entered::End => return Ok(None),
                Entered::Interrupt if was_interrupted_before => return Ok(None),
                Entered::Interrupt => {
                    was_interrupted = true;
                    output::note(&format!("{DIM}press Ctrl-C again to leave{PLAIN}"));
                    continue;
                }
                Entered::Text(text) => text,
            };
            match self.step(agent, toolbox, editor, text.trim()).await? {
                Step::Continue => {}
                Step::Switch(session) => return Ok(Some(session)),
                Step::End => return Ok(None),
            }
        }
    }

    fn prompt(&self, agent: &AgentSession<'_>) -> ConversationPrompt {
        let model = &agent.model().reference.name;
        ConversationPrompt {
            accepts_edits: self.setup.terminal.mode.accepts_edits(),
            about: format!("{} · {model}", agent.toolbox().agent_name()),
        }
    }

    async fn step(
        &mut self,
        agent: &mut AgentSession<'_>,
        toolbox: &Toolbox,
        editor: &mut Editor,
        text: &str,
    ) -> anyhow::Result<Step> {
        if text.is_empty() {
            return Ok(Step::Continue);
        }
        if let Some(command) =
            text.strip_prefix('/').filter(|command| is_command(command, &toolbox.commands()))
        {
            let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
            return self.command(agent, toolbox, editor, (name, argument.trim())).await;
        }
        let mut message = vec![MessagePart::Text(text.to_string())];
        message.append(&mut self.attached);
        message.extend(mentioned_files(agent.toolbox(), text).await);
        self.turn(agent, editor, message.into()).await?;
        Ok(Step::Continue)
    }

    /// Runs a turn. Text typed too late for this turn is put back into the input line.
    async fn turn(
        &mut self,
        agent: &mut AgentSession<'_>,
        editor: &mut Editor,
        input: TurnInput,
    ) -> anyhow::Result<()> {
        let RunTerminal { screen, keyboard, .. } = self.setup.terminal;
        let cancel = CancellationToken::new();
        let ctrl_c_task = tokio::spawn(abort_on_ctrl_c(keyboard.clone(), cancel.clone()));
        let typing = Typing::start(KeyHandler {
            keyboard: keyboard.clone(),
            screen: screen.clone(),
            inbox: agent.inbox.clone(),
            cancel: cancel.clone(),
        });
        let report = show_turn(agent, input, &self.setup.options, screen, cancel).await;
        typing.stop().await;
        ctrl_c_task.abort();
        offer_unsent(agent, editor);
        match report {
            Ok(report) => options::write_last_message(self.setup.run, &report.text)?,
            Err(error) => output::error(&format!("{error:#}")),
        }
        Ok(())
    }

    async fn command(
        &mut self,
        agent: &mut AgentSession<'_>,
        toolbox: &Toolbox,
        editor: &mut Editor,
        (name, argument): (&str, &str),
    ) -> anyhow::Result<Step> {
        match (name, argument) {
            ("help", _) => help(toolbox),
            ("exit" | "quit", _) => return Ok(Step::End),
            ("new", _) => return Ok(Step::Switch(options::new_session_id())),
            ("sessions", "") => list_sessions(toolbox).await?,
            ("sessions", id) if toolbox.transcript(id).await?.is_empty() => {
                output::error(&format!("there is no session {id}; /sessions lists them"));
            }
            ("sessions", id) => return Ok(Step::Switch(id.to_string())),
            ("undo", _) => undo(agent, editor).await,
            ("redo", _) => match agent.redo().await {
                Ok(redone) => show_changes("restored", &redone.files),
                Err(error) => output::error(&error.to_string()),
            },
            ("compact", _) => self.compact(agent).await,
            ("context", _) => show_context(agent).await?,
            ("model", "") => output::note(&agent.model().reference.name),
            ("model", model) => match options::named_model(self.setup.run, toolbox, model) {
                Ok(model) => {
                    self.setup.model = model.clone();
                    agent.set_model(model);
                }
                Err(error) => output::error(&format!("{error:#}")),
            },
            ("agent", "") => list_agents(agent.toolbox()),
            ("agent", name) => {
                if let Err(error) = agent.set_agent(name).await {
                    output::error(&error.to_string());
                }
            }
            _ => self.configured_command(agent, editor, (name, argument)).await?,
        }
        Ok(Step::Continue)
    }

    /// Runs a command from the configuration as a turn.
    async fn configured_command(
        &mut self,
        agent: &mut AgentSession<'_>,
        editor: &mut Editor,
        (name, arguments): (&str, &str),
    ) -> anyhow::Result<()> {
        let command = match agent.toolbox().fill_command(name, arguments).await {
            Ok(command) => command,
            Err(CommandError::Unknown { .. }) => {
                output::error(&format!("there is no command /{name}; /help lists the commands"));
                return Ok(());
            }
            Err(error) => {
                output::error(&error.to_string());
                return Ok(());
            }
        };
        let mut command = command;
        command.parts.append(&mut self.attached);
        let (model_before, agent_before) =
            (agent.model().clone(), agent.toolbox().agent_name().to_string());
        if let Some(name) = &command.model {
            match options::named_model(self.setup.run, agent.toolbox(), name) {
                Ok(model) => agent.set_model(model),
                Err(error) => {
                    output::error(&format!("{error:#}"));
                    return Ok(());
                }
            }
        }
        let has_model = command.model.is_some();
        let (input, name) = command.into_turn(agent.toolbox());
        let outcome = match switch_agent(agent, name.as_deref()).await {
            Ok(()) => self.turn(agent, editor, input).await,
            Err(error) => {
                output::error(&error.to_string());
                Ok(())
            }
        };
        // The command's model and agent apply to its turn only, unless the agent was switched during the turn.
        if has_model {
            agent.set_model(model_before);
        }
        if name.as_deref() == Some(agent.toolbox().agent_name()) {
            switch_agent(agent, Some(&agent_before)).await?;
        }
        outcome
    }

    async fn compact(&self, agent: &mut AgentSession<'_>) {
        let screen = &self.setup.terminal.screen;
        let cancel = CancellationToken::new();
        let keyboard = self.setup.terminal.keyboard.clone();
        let ctrl_c_task = tokio::spawn(abort_on_ctrl_c(keyboard, cancel.clone()));
        screen.begin();
        let emit = |event: AgentEvent| match event {
            // The summary is for the model.
            AgentEvent::Text(_) => {}
            event => screen.event(&event),
        };
        let end = screen.watch(agent.compact(&emit, cancel)).await;
        ctrl_c_task.abort();
        screen.finish();
        match end.map(|end| events::describe(&end).1) {
            Ok(None) => output::note("The older part of the conversation is now a summary."),
            Ok(Some(why)) => output::error(&why),
            Err(error) => output::error(&error.to_string()),
        }
    }
}

/// Takes back the last message. Its text is put back into the input line.
async fn undo(agent: &mut AgentSession<'_>, editor: &mut Editor) {
    let undone = match agent.undo().await {
        Ok(undone) => undone,
        Err(error) => return output::error(&error.to_string()),
    };
    show_changes("taken back", &undone.files);
    for command in &undone.commands {
        let command = visible::escape_line(command).into_owned();
        output::note(&format!("{DIM}not undone, because it was a command: {command}{PLAIN}"));
    }
    editor.insert(&undone.prompt);
}

/// Shows what a command did to files.
fn show_changes(what: &str, changes: &str) {
    output::note(&format!("{BOLD}{what}{PLAIN}"));
    if !changes.trim().is_empty() {
        output::note(screen::bounded_diff(changes).trim_end());
    }
}

async fn show_context(agent: &AgentSession<'_>) -> anyhow::Result<()> {
    let context = agent.context().await?;
    let share = context.tokens * 100 / context.window.max(1);
    output::note(&format!(
        "{} of {} tokens ({share} %); older parts are summarized at {}",
        thousands(context.tokens),
        thousands(context.window),
        thousands(context.limit)
    ));
    let cost = context.cost.filter(|_| context.requests > 0);
    let cost = cost.map(|cost| format!(", {}", screen::dollars(cost))).unwrap_or_default();
    output::note(&format!(
        "this session: {}, {} tokens{cost}",
        output::count(usize::try_from(context.requests).unwrap_or(usize::MAX), "request"),
        thousands(context.used.total())
    ));
    Ok(())
}

/// Lists the agents that a person can work with.
fn list_agents(toolbox: &Toolbox) {
    let agents = toolbox.config().agents.iter();
    for agent in agents.filter(|agent| *agent.mode != AgentMode::Subagent && !*agent.hidden) {
        let current_mark = if agent.name == toolbox.agent_name() { " (this one)" } else { "" };
        let about = agent.description.as_ref().map_or("", |about| about.value.as_str());
        output::note(&format!(
            "  {BOLD}{}{PLAIN}{current_mark}  {DIM}{}{PLAIN}",
            visible::escape_line(&agent.name),
            visible::escape_line(about)
        ));
    }
}

/// Whether a text after a slash is a command, and not a path such as `/etc/hosts`.
fn is_command(text: &str, known: &[CommandInfo]) -> bool {
    let name = text.split(char::is_whitespace).next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphabetic() || c == '-';
    !name.is_empty() && name.chars().all(is_plain)
        || known.iter().any(|command| command.name == name)
}

fn help(toolbox: &Toolbox) {
    for (name, about) in COMMANDS {
        output::note(&format!("  {BOLD}{name:<10}{PLAIN} {about}"));
    }
    for command in toolbox.commands() {
        let name = format!("/{}", visible::escape_line(&command.name));
        let about: String =
            visible::escape_line(&command.description).chars().take(MAX_ABOUT).collect();
        output::note(&format!("  {BOLD}{name:<10}{PLAIN} {about}"));
    }
    output::note(&format!(
        "{DIM}  @file attaches a file, Tab completes; Alt-Enter or a final \\ begins a new line;\n  \
         Shift-Tab switches between asking about edits and accepting them.\n  \
         While the model works: type to tell it something, Esc or Ctrl-C aborts.{PLAIN}"
    ));
}

async fn list_sessions(toolbox: &Toolbox) -> anyhow::Result<()> {
    let sessions = toolbox.sessions(MAX_SESSIONS).await?;
    if sessions.is_empty() {
        output::note("There is no session in this folder yet.");
    }
    for info in sessions {
        let current_mark = if info.session == toolbox.session_id() { "  (this one)" } else { "" };
        output::note(&format!(
            "  {BOLD}{}{PLAIN}  {DIM}{}{PLAIN}  {}{current_mark}",
            info.session,
            ago(info.updated),
            visible::escape_line(&info.title)
        ));
    }
    Ok(())
}

/// Returns the files that a message mentions as `@path`. Prints a note for each one that cannot be attached.
async fn mentioned_files(toolbox: &Toolbox, text: &str) -> Vec<MessagePart> {
    let mut parts = Vec::new();
    for path in mentions(text) {
        match toolbox.attach(&toolbox.root().join(path)).await {
            Ok(attached) => parts.extend(attached),
            Err(error) => {
                let why = error.message.lines().next().unwrap_or_default().to_string();
                output::note(&format!(
                    "{DIM}@{path} is not attached: {}{PLAIN}",
                    visible::escape_line(&why)
                ));
            }
        }
    }
    parts
}

/// The paths after `@` at the beginning of words, without punctuation that follows them.
fn mentions(text: &str) -> Vec<&str> {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let paths = words.map(|word| word.trim_end_matches([',', ';', ':', '?', '!', ')', '.']));
    let mut found: Vec<&str> = Vec::new();
    for path in paths.filter(|path| !path.is_empty()).take(MAX_MENTIONS) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use helve::CommandKind;

    use super::*;

    #[test]
    fn files_are_mentioned_with_an_at_sign() {
        for (text, expected) in [
            ("look at @src/main.rs, and @README.md.", vec!["src/main.rs", "README.md"]),
            ("@a @a", vec!["a"]),
            ("me@example.org @", vec![]),
            ("is it (@a/b)?", vec![]),
        ] {
            assert_eq!(mentions(text), expected, "{text}");
        }
    }

    #[test]
    fn a_path_is_not_a_command() {
        for (text, expected) in
            [("help", true), ("model x/y", true), ("etc/hosts", false), ("", false), ("x.y", false)]
        {
            assert_eq!(is_command(text, &[]), expected, "{text}");
        }
        let name = "sub/x.y".to_string();
        let known = CommandInfo { name, description: String::new(), kind: CommandKind::Configured };
        assert!(is_command("sub/x.y a b", &[known]));
    }
}
