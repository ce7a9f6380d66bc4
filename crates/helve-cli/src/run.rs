//! `helve run`: a model works in this folder until it answers.
#![expect(
    clippy::disallowed_methods,
    reason = "the files that the user names on the command line are the user's own, not the model's"
)]

use std::io::{IsTerminal, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use helve::agent_loop::event::{AgentEvent, BudgetKind, TurnEnd};
use helve::agent_loop::http::{ApiKey, Deadlines, Endpoint};
use helve::agent_loop::item::{MessagePart, ModelRef, Protocol};
use helve::agent_loop::model::ActiveModel;
use helve::agent_loop::reply::Usage;
use helve::agent_loop::request::{ModelSettings, Quirks};
use helve::agent_loop::turn::{Compaction, TurnLimits};
use helve::{
    DEFAULT_CONTEXT_WINDOW, DEFAULT_OUTPUT_TOKENS, Toolbox, TurnOptions, TurnReport, visible,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Exit;
use crate::args::{GlobalArgs, RunArgs, RunProtocol};
use crate::call::on_ctrl_c;
use crate::output::{self, BOLD, DIM, PLAIN, RED};

/// How much is read from standard input.
const MAX_STDIN: u64 = 4 << 20;

pub(crate) async fn run(common: &GlobalArgs, run: &RunArgs) -> anyhow::Result<Exit> {
    let prompt = prompt(run)?;
    let toolbox = common.toolbox().await?;
    let model = model(run, &toolbox)?;
    let toolbox = toolbox.with_session(session_id(&toolbox, common, run).await?);
    let options = TurnOptions {
        limits: run.limits(),
        compaction: Compaction::Automatic,
        output_schema: output_schema(run)?,
    };
    let printer = Printer::new(common.json, run.stream, toolbox.session_id());
    printer.session(&toolbox, &model);
    let cancel = CancellationToken::new();
    let ctrl_c_task = tokio::spawn(on_ctrl_c(cancel.clone()));
    let mut agent = toolbox.agent(model).await?;
    let emit = |event: AgentEvent| printer.event(&event);
    let report = agent.run(vec![MessagePart::Text(prompt)], &options, &emit, cancel).await;
    ctrl_c_task.abort();
    let report = report?;
    printer.end(&report)?;
    if let Some(path) = &run.last_message {
        std::fs::write(path, &report.text)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(warning) = toolbox.store().pending_warning().await {
        output::note(&warning);
    }
    toolbox.close().await;
    Ok(exit(&report.end))
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

/// The session to work in: a new one unless another is named.
async fn session_id(
    toolbox: &Toolbox,
    common: &GlobalArgs,
    run: &RunArgs,
) -> anyhow::Result<String> {
    if let Some(id) = &common.session {
        return Ok(id.clone());
    }
    if !run.continue_last {
        return Ok(format!("run-{}", new_id()));
    }
    let newest = toolbox.sessions(1).await?.into_iter().next();
    match newest {
        Some(info) => Ok(info.session),
        None => bail!("there is no session to continue in {}", toolbox.root().display()),
    }
}

fn new_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_micros(), std::process::id())
}

/// The model at the given address, or a configured one.
fn model(run: &RunArgs, toolbox: &Toolbox) -> anyhow::Result<ActiveModel> {
    let mut model = match &run.base_url {
        Some(base_url) => model_at(base_url, run)?,
        None => toolbox.model(run.model.as_deref())?,
    };
    if let Some(idle) = idle_from_environment() {
        let deadlines = model.endpoint.deadlines;
        model.endpoint.deadlines =
            Deadlines { headers: idle, idle, content: idle * 2, ..deadlines };
    }
    Ok(model)
}

fn model_at(base_url: &str, run: &RunArgs) -> anyhow::Result<ActiveModel> {
    let Some(model) = &run.model else { bail!("pass --model NAME, as the provider calls it") };
    let protocol = match run.protocol {
        RunProtocol::Chat => Protocol::Chat,
        RunProtocol::Responses => Protocol::Responses,
        RunProtocol::Messages => Protocol::Messages,
    };
    let key = match &run.api_key_env {
        Some(name) => match std::env::var(name) {
            Ok(key) if !key.trim().is_empty() => Some(ApiKey::new(key)),
            Ok(_) | Err(_) => {
                bail!("the environment variable {name} has no key; set it, or omit --api-key-env")
            }
        },
        None => None,
    };
    let quirks = Quirks { takes_images: true, takes_documents: true, ..Quirks::default() };
    let settings = ModelSettings {
        max_output: Some(DEFAULT_OUTPUT_TOKENS),
        quirks,
        ..ModelSettings::default()
    };
    let base_url = base_url.to_string();
    Ok(ActiveModel {
        model: ModelRef { provider: base_url.clone(), model: model.clone(), protocol },
        endpoint: Endpoint {
            deadlines: Deadlines::for_url(&base_url),
            base_url,
            protocol,
            key,
            headers: Vec::new(),
        },
        settings,
        window: DEFAULT_CONTEXT_WINDOW,
        is_window_assumed: true,
        prices: None,
    })
}

/// The idle deadline in `HELVE_IDLE_TIMEOUT_MS`, for tests.
fn idle_from_environment() -> Option<Duration> {
    let text = std::env::var("HELVE_IDLE_TIMEOUT_MS").ok()?;
    text.parse().ok().map(Duration::from_millis)
}

fn output_schema(run: &RunArgs) -> anyhow::Result<Option<Box<serde_json::value::RawValue>>> {
    let Some(path) = &run.output_schema else { return Ok(None) };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let schema = serde_json::from_str(&text)
        .with_context(|| format!("{} is not valid JSON", path.display()))?;
    Ok(Some(schema))
}

/// The prompt: the arguments, standard input, or both.
fn prompt(run: &RunArgs) -> anyhow::Result<String> {
    let typed = run.prompt.join(" ");
    let reads_stdin = typed == "-" || typed.is_empty();
    if std::io::stdin().is_terminal() {
        if reads_stdin {
            bail!("pass a prompt: helve run \"what to do\"");
        }
        return Ok(typed);
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
    if prompt.trim().is_empty() {
        bail!("the prompt is empty; pass it as an argument or on standard input");
    }
    Ok(prompt)
}

/// Prints what happens: JSON for programs, the answer for people.
struct Printer {
    json: bool,
    stream: bool,
    session: String,
}

impl Printer {
    fn new(json: bool, stream: bool, session: &str) -> Self {
        Self { json, stream, session: session.into() }
    }

    fn json(&self, kind: &str, fields: Value) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut object = json!({
            "v": 1, "type": kind, "at": now.as_millis() as u64, "session": self.session,
        });
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        // A reader that has gone away does not stop the turn.
        output::print_json(&object).ok();
    }

    fn session(&self, toolbox: &Toolbox, model: &ActiveModel) {
        if self.json {
            let root = toolbox.root().display().to_string();
            self.json("session", json!({"root": root, "model": model.model.model}));
            self.json("turn_start", json!({}));
        } else if std::io::stderr().is_terminal() {
            output::note(&format!("{DIM}session {}{PLAIN}", self.session));
        }
    }

    fn event(&self, event: &AgentEvent) {
        if self.json {
            return self.json_event(event);
        }
        match event {
            AgentEvent::Text(text) if std::io::stdout().is_terminal() => {
                output::print_bytes(visible::escape(text).as_bytes()).ok();
            }
            AgentEvent::Call { name, arguments, .. } => {
                let shown: String = visible::escape_line(arguments).chars().take(120).collect();
                output::note(&format!("{DIM}→{PLAIN} {BOLD}{name}{PLAIN} {DIM}{shown}{PLAIN}"));
            }
            AgentEvent::Result { title, error, .. } => match error {
                Some((_, text)) => {
                    let first = visible::escape_line(text.lines().next().unwrap_or_default());
                    output::note(&format!("  {RED}{first}{PLAIN}"));
                }
                None => output::note(&format!("  {DIM}{}{PLAIN}", visible::escape_line(title))),
            },
            AgentEvent::Retry { attempt, wait, reason } => output::note(&format!(
                "{DIM}attempt {attempt} in {:.1} s: {}{PLAIN}",
                wait.as_secs_f64(),
                visible::escape_line(reason)
            )),
            AgentEvent::Notice(text) => output::note(&visible::escape(text)),
            AgentEvent::Text(_)
            | AgentEvent::Request { .. }
            | AgentEvent::Reasoning(_)
            | AgentEvent::Usage { .. } => {}
        }
    }

    fn json_event(&self, event: &AgentEvent) {
        match event {
            AgentEvent::Request { step, attempt } => {
                self.json("request", json!({"step": step, "attempt": attempt}));
            }
            AgentEvent::Text(text) if self.stream => self.json("text", json!({"text": text})),
            AgentEvent::Reasoning(text) if self.stream => {
                self.json("reasoning", json!({"text": text}));
            }
            AgentEvent::Text(_) | AgentEvent::Reasoning(_) => {}
            AgentEvent::Retry { attempt, wait, reason } => {
                let wait = wait.as_millis() as u64;
                self.json("retry", json!({"attempt": attempt, "waitMs": wait, "reason": reason}));
            }
            AgentEvent::Call { id, name, arguments } => {
                self.json("call", json!({"id": id, "name": name, "arguments": arguments}));
            }
            AgentEvent::Result { id, title, error } => {
                let error = error.as_ref().map(|(kind, text)| json!({"kind": kind, "text": text}));
                self.json("result", json!({"id": id, "title": title, "error": error}));
            }
            AgentEvent::Usage { tokens, is_estimated, cost } => {
                let mut fields = usage(tokens);
                fields["estimated"] = json!(is_estimated);
                fields["cost"] = json!(cost);
                self.json("usage", fields);
            }
            AgentEvent::Notice(text) => self.json("notice", json!({"text": text})),
        }
    }

    fn end(&self, report: &TurnReport) -> anyhow::Result<()> {
        let (reason, explanation) = describe(&report.end);
        if self.json {
            self.json(
                "turn_end",
                json!({
                    "reason": reason,
                    "error": explanation,
                    "usage": usage(&report.usage),
                    "cost": report.cost,
                    "text": report.text,
                }),
            );
        } else if std::io::stdout().is_terminal() {
            output::print("\n")?;
        } else if !report.text.is_empty() {
            output::print_bytes(format!("{}\n", report.text.trim_end()).as_bytes())?;
        }
        if let Some(explanation) = explanation {
            output::error(&explanation);
        }
        Ok(())
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "total": usage.total(),
    })
}

/// A word for programs and, unless the turn succeeded, a sentence for people.
fn describe(end: &TurnEnd) -> (&'static str, Option<String>) {
    let sentence = |text: &str| Some(text.to_string());
    match end {
        TurnEnd::Answered => ("answered", None),
        TurnEnd::Failed(message) => ("failed", Some(message.clone())),
        TurnEnd::NotAllowed => (
            "not_allowed",
            sentence(
                "a call was refused, so the work may be incomplete; allow it with a rule, --allow or --yes",
            ),
        ),
        TurnEnd::OverBudget(BudgetKind::Steps) => {
            ("steps", sentence("the limit of steps is reached; raise it with --max-steps"))
        }
        TurnEnd::OverBudget(BudgetKind::Tokens) => {
            ("tokens", sentence("the limit of tokens is reached; raise it with --max-tokens"))
        }
        TurnEnd::OverBudget(BudgetKind::Cost) => {
            ("cost", sentence("the limit of costs is reached; raise it with --max-cost"))
        }
        TurnEnd::OverBudget(BudgetKind::Time) => {
            ("time", sentence("the time limit is reached; raise it with --timeout"))
        }
        TurnEnd::OverBudget(BudgetKind::OutputLength) => {
            ("length", sentence("the model's replies were cut at the output limit"))
        }
        TurnEnd::Refused => ("refused", sentence("the model refused to answer")),
        TurnEnd::NoAnswer => ("no_answer", sentence("the model answered with nothing")),
        TurnEnd::Loop => ("loop", sentence("the model made the same call again and again")),
        TurnEnd::Aborted => ("aborted", sentence("aborted")),
    }
}

impl RunArgs {
    fn limits(&self) -> TurnLimits {
        TurnLimits {
            steps: self.max_steps,
            tokens: self.max_tokens,
            cost: self.max_cost,
            time: self.timeout.map(Duration::from_secs),
        }
    }
}
