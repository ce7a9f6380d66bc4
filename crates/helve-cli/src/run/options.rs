//! What the arguments of `helve run` mean: the model, the session, the message, the limits.
#![expect(
    clippy::disallowed_methods,
    reason = "the files that the user names on the command line are the user's own, not the model's"
)]

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use helve::agent_loop::http::{ApiKey, Timeouts};
use helve::agent_loop::item::{MessagePart, Protocol};
use helve::agent_loop::model::ActiveModel;
use helve::agent_loop::turn::TurnLimits;
use helve::{Toolbox, TurnInput, TurnOptions};

use crate::args::{GlobalArgs, RunArgs, RunProtocol};

/// How much is read from standard input.
const MAX_STDIN: u64 = 4 << 20;
/// Maximum number of attached files.
const MAX_ATTACHMENTS: usize = 20;

/// Where the prompt comes from.
pub(super) enum PromptSource {
    Given(String),
    /// A person types at the terminal.
    Conversation,
}

/// The prompt: the arguments, standard input, or both.
pub(super) fn prompt(common: &GlobalArgs, run: &RunArgs) -> anyhow::Result<PromptSource> {
    let typed = run.prompt.join(" ");
    // A command needs no arguments.
    let reads_stdin = typed == "-" || typed.is_empty() && run.command.is_none();
    if std::io::stdin().is_terminal() {
        let is_all_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        return match reads_stdin {
            true if typed.is_empty() && is_all_terminal && !common.json => {
                Ok(PromptSource::Conversation)
            }
            true => bail!("pass a prompt: helve run \"what to do\""),
            false => Ok(PromptSource::Given(typed)),
        };
    }
    let mut piped = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_STDIN)
        .read_to_string(&mut piped)
        .context("cannot read standard input")?;
    let prompt = match (reads_stdin, piped.trim().is_empty()) {
        (true, _) => piped,
        (false, true) => typed,
        (false, false) => format!("{typed}\n\n<stdin>\n{piped}\n</stdin>"),
    };
    if prompt.trim().is_empty() && run.command.is_none() {
        bail!("the prompt is empty; pass it as an argument or on standard input");
    }
    Ok(PromptSource::Given(prompt))
}

/// What a run begins with.
pub(super) struct FirstTurn {
    pub(super) input: TurnInput,
    pub(super) model: ActiveModel,
    /// The agent that works on it, if a command names one.
    pub(super) agent: Option<String>,
}

/// The first turn: the prompt with its attachments, or the command of `--command` with the prompt as its arguments. A
/// command may name a model and an agent of its own.
pub(super) async fn first_turn(
    toolbox: &Toolbox,
    (common, run): (&GlobalArgs, &RunArgs),
    prompt: String,
    attached: Vec<MessagePart>,
    model: ActiveModel,
) -> anyhow::Result<FirstTurn> {
    let Some(name) = &run.command else {
        let parts = [MessagePart::Text(prompt)].into_iter().chain(attached).collect();
        return Ok(FirstTurn { input: TurnInput::Message(parts), model, agent: None });
    };
    let mut command = toolbox.fill_command(name.trim_start_matches('/'), &prompt).await?;
    command.parts.extend(attached);
    let model = match &command.model {
        Some(name) if run.model.is_none() => named_model(run, toolbox, name)?,
        Some(_) | None => model,
    };
    let (input, agent) = command.into_turn(toolbox);
    Ok(FirstTurn { input, model, agent: agent.filter(|_| common.agent.is_none()) })
}

/// The files named with `-f`, as parts of the message.
pub(super) async fn attachments(
    toolbox: &Toolbox,
    run: &RunArgs,
) -> anyhow::Result<Vec<MessagePart>> {
    if run.file.len() > MAX_ATTACHMENTS {
        bail!("{} files are attached; the limit is {MAX_ATTACHMENTS}", run.file.len());
    }
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    let mut parts = Vec::new();
    for file in &run.file {
        parts.extend(attach(toolbox, &here.join(file)).await?);
    }
    Ok(parts)
}

async fn attach(toolbox: &Toolbox, file: &Path) -> anyhow::Result<Vec<MessagePart>> {
    let metadata =
        std::fs::metadata(file).with_context(|| format!("cannot attach {}", file.display()))?;
    if metadata.is_dir() {
        bail!("cannot attach {}: it is a folder; attach files", file.display());
    }
    toolbox.attach(file).await.map_err(|error| {
        anyhow::anyhow!("cannot attach {}: {}", file.display(), error.full_message())
    })
}

/// The session to work in: a new one unless another is named.
pub(super) async fn session_id(
    toolbox: &Toolbox,
    common: &GlobalArgs,
    run: &RunArgs,
) -> anyhow::Result<String> {
    let is_named = common.session.is_some() || run.continue_last;
    if run.fork && !is_named {
        bail!("--fork needs a session to fork: add -c or --session ID");
    }
    if let Some(id) = &common.session {
        return Ok(id.clone());
    }
    if !run.continue_last {
        return Ok(new_session_id());
    }
    let newest = toolbox.sessions(1).await?.into_iter().next();
    match newest {
        Some(info) => Ok(info.session),
        None => bail!("there is no session to continue in {}", toolbox.root().display()),
    }
}

pub(super) fn new_session_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("run-{:x}-{:x}", now.as_micros(), std::process::id())
}

/// The model at the given URL, or a configured one.
pub(super) fn model(run: &RunArgs, toolbox: &Toolbox) -> anyhow::Result<ActiveModel> {
    let model = match (&run.base_url, &run.model) {
        (Some(base_url), Some(model)) => model_at(base_url, run, model)?,
        (Some(_), None) => bail!("pass --model NAME, as the provider calls it"),
        (None, model) => toolbox.model(model.as_deref())?,
    };
    Ok(with_timeouts_from_env(model))
}

/// Finds the model that a person names during a conversation: one at the URL in `--base-url`, or a configured one.
pub(super) fn named_model(
    run: &RunArgs,
    toolbox: &Toolbox,
    name: &str,
) -> anyhow::Result<ActiveModel> {
    let model = match &run.base_url {
        Some(base_url) => model_at(base_url, run, name)?,
        None => toolbox.model(Some(name))?,
    };
    Ok(with_timeouts_from_env(model))
}

/// Shortens the timeouts if `HELVE_IDLE_TIMEOUT_MS` is set, as tests do.
fn with_timeouts_from_env(mut model: ActiveModel) -> ActiveModel {
    if let Some(idle) = idle_timeout_from_env() {
        let timeouts = model.endpoint.timeouts;
        model.endpoint.timeouts = Timeouts {
            headers: idle,
            idle,
            content: idle * 2,
            first_retry_wait: timeouts.first_retry_wait.min(idle),
            ..timeouts
        };
    }
    model
}

fn model_at(base_url: &str, run: &RunArgs, model: &str) -> anyhow::Result<ActiveModel> {
    let protocol = match run.protocol {
        RunProtocol::Chat => Protocol::Chat,
        RunProtocol::Responses => Protocol::Responses,
        RunProtocol::Messages => Protocol::Messages,
    };
    let key = match &run.api_key_env {
        Some(name) => match std::env::var(name) {
            Ok(key) if !key.trim().is_empty() => Some(ApiKey::new(key)),
            Ok(_) | Err(_) => {
                bail!(
                    "the environment variable {name} is not set or empty; set it, or omit --api-key-env"
                )
            }
        },
        None => None,
    };
    Ok(helve::model_at(base_url, protocol, model, key))
}

/// The idle timeout from `HELVE_IDLE_TIMEOUT_MS`. It also limits the wait before the first retry.
fn idle_timeout_from_env() -> Option<Duration> {
    let text = std::env::var("HELVE_IDLE_TIMEOUT_MS").ok()?;
    text.parse().ok().map(Duration::from_millis)
}

pub(super) fn turn_options(run: &RunArgs) -> anyhow::Result<TurnOptions> {
    Ok(TurnOptions {
        limits: TurnLimits {
            steps: run.max_steps,
            tokens: run.max_tokens,
            cost: run.max_cost,
            time: run.timeout.map(Duration::from_secs),
        },
        output_schema: output_schema(run)?,
        ..TurnOptions::default()
    })
}

fn output_schema(run: &RunArgs) -> anyhow::Result<Option<Box<serde_json::value::RawValue>>> {
    let Some(path) = &run.output_schema else { return Ok(None) };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let schema = serde_json::from_str(&text)
        .with_context(|| format!("{} is not valid JSON", path.display()))?;
    Ok(Some(schema))
}

/// Writes the model's last message to the file of `--last-message`.
pub(super) fn write_last_message(run: &RunArgs, text: &str) -> anyhow::Result<()> {
    let Some(path) = &run.last_message else { return Ok(()) };
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
