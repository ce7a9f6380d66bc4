//! Implements the engine's tool interface for custom tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use helve_core::event::Progress;
use helve_core::media::{MediaContent, MediaFormat};
use helve_core::validate::ArgumentProblem;
use helve_core::{
    Act, AnyTool, Ask, Audience, BoxFuture, Caller, Content, ErrorKind, Input, InputSpec, Media,
    Part, ToolContext, ToolError, ToolOutput, ToolProperties, ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::cache::{ListedTool, StoredBundle};
use crate::found::ScriptKind;
use crate::program::ProgramRun;
use crate::runtime::{Exchange, HelperProcess};
use crate::script::{Script, ScriptHost};
use crate::wire::{CallAnswer, Incoming, ReportedAttachment, RequestError, ThrownError};

/// Maximum duration of a call.
const CALL_TIME: Duration = Duration::from_secs(60 * 60);
/// How long an aborted tool may take to return before Helve checks whether the process is stuck.
const ABORT_TIME: Duration = Duration::from_millis(500);
/// Maximum size of an attachment in bytes.
const MAX_ATTACHMENT: usize = 10 << 20;
/// Maximum number of attachments.
const MAX_ATTACHMENTS: usize = 20;
/// Only this many requests, the first ones of a call, may ask for a permission. Requests of plugins through their
/// `client` object count, too.
const REQUESTS_THAT_MAY_ASK: usize = 20;
/// How many times a call is repeated in a new process because the old one ended before it read the request.
const MAX_RETRIES: usize = 2;
/// Maximum length of an error message in characters.
const MAX_ERROR: usize = 8_000;

/// A tool that a tool file, a plugin or a program provides.
pub(crate) struct ScriptTool {
    pub(crate) id: String,
    pub(crate) listed: ListedTool,
    pub(crate) script: Arc<Script>,
    pub(crate) host: Arc<ScriptHost>,
}

impl AnyTool for ScriptTool {
    fn spec(&self, _caller: &Caller) -> ToolSpec {
        ToolSpec {
            name: self.id.clone(),
            group: self.id.clone(),
            about: self.listed.description.clone(),
            input: InputSpec::Json(self.listed.schema.clone()),
            properties: ToolProperties { open_world: true, ..ToolProperties::MUTATES },
            audience: Audience::EVERYONE,
        }
    }

    fn invalid(&self, _problems: &[ArgumentProblem]) -> Option<String> {
        None
    }

    fn call<'a>(
        &'a self,
        input: Input,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = match input {
                Input::Json(Value::Object(arguments)) => arguments,
                Input::Json(_) | Input::Raw(_) | Input::Text(_) => Map::new(),
            };
            let grant = ctx.ask(self.ask(&arguments)).await?;
            if !grant.covers(&Act::UseTool(self.id.clone().into())) {
                return Err(ctx.words().not_granted());
            }
            self.run(arguments, ctx).await
        })
    }
}

impl ScriptTool {
    /// Returns the ask for a call. Its subject contains the hash of the sources, so that a lasting approval no longer
    /// applies when they change.
    fn ask(&self, arguments: &Map<String, Value>) -> Ask {
        let subject = format!("{}#{}", self.id, &self.script.hash()[..16]);
        let part = Part::new(self.id.clone(), subject).remember_exactly();
        let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
        Ask::default().add(Act::UseTool(self.id.clone().into()), part).preview(format!(
            "The tool \"{}\" of {}, with arguments:\n{arguments}",
            self.id,
            self.script.path.display()
        ))
    }

    /// Runs the tool once it has been permitted.
    async fn run(
        &self,
        arguments: Map<String, Value>,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        if self.script.kind == ScriptKind::Program {
            return tokio::select! {
                result = self.run_program(arguments, ctx) => result,
                () = ctx.cancel.cancelled() => Err(ctx.words().aborted()),
            };
        }
        let mut retries = 0;
        loop {
            let (bundle, answer) = self.attempt(&arguments, ctx).await;
            return match answer {
                Ok(answer) => self.to_output(answer).await,
                Err(RequestError::Aborted) => Err(ctx.words().aborted()),
                // The process had ended before it read the request, so a new one is tried.
                Err(RequestError::NotBegun(_)) if retries < MAX_RETRIES => {
                    retries += 1;
                    continue;
                }
                Err(error) => Err(self.to_error(&error, bundle.as_deref())),
            };
        }
    }

    /// Makes the script ready and calls it. Also returns the bundle, from which errors get their location in the
    /// source.
    async fn attempt(
        &self,
        arguments: &Map<String, Value>,
        ctx: &ToolContext,
    ) -> (Option<Arc<StoredBundle>>, Result<CallAnswer, RequestError>) {
        let ready = tokio::select! {
            ready = self.host.prepare(&self.script) => ready,
            () = ctx.cancel.cancelled() => Err(RequestError::Aborted),
        };
        match ready {
            Ok((process, bundle)) => {
                let request = self.request(&bundle, arguments, ctx);
                let answer = self.exchange(request, &process, ctx).await;
                (Some(bundle), answer)
            }
            Err(error) => (None, Err(error)),
        }
    }

    /// Sends the request that runs the tool, and handles the messages about it.
    async fn exchange(
        &self,
        request: Value,
        process: &HelperProcess,
        ctx: &ToolContext,
    ) -> Result<CallAnswer, RequestError> {
        let exchange = process.begin(self.host.runtime.new_id(), request).await?;
        self.converse(exchange, process, ctx).await
    }

    /// Runs a program with the arguments as JSON on its standard input. What it prints is the answer: a text, or an
    /// object with `output`.
    async fn run_program(
        &self,
        arguments: Map<String, Value>,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let refreshed = self.host.refresh(&self.script).await;
        refreshed.map_err(|error| self.to_error(&RequestError::Script(error), None))?;
        let root = &self.host.runtime.settings.root;
        let run = ProgramRun {
            command: self.script.program_command(),
            input: Value::Object(arguments).to_string().into_bytes(),
            variables: vec![
                ("HELVE_DIRECTORY".into(), root.into()),
                ("HELVE_SESSION_ID".into(), (&*ctx.call.session).into()),
                ("HELVE_CALL_ID".into(), (&*ctx.call.id).into()),
                ("HELVE_AGENT".into(), ctx.call.agent.to_string().into()),
            ],
            limit: CALL_TIME,
            about: self.id.clone(),
        };
        let output = self.host.runtime.settings.run_program(run).await;
        let output = output.map_err(|error| self.to_error(&error, None))?;
        if output.code != Some(0) {
            let how = match output.code {
                Some(code) => format!("exit code {code}"),
                None => "it was ended by a signal".into(),
            };
            let message = format!("The tool {} failed: {how}\n{}", self.id, output.failure_text());
            return Err(ToolError::new(ErrorKind::Failed, truncate(message)));
        }
        let object = serde_json::from_str::<Value>(output.stdout.trim()).ok();
        let object = object.filter(|it| it.get("output").is_some_and(Value::is_string));
        let answer = object.and_then(|object| serde_json::from_value(object).ok());
        let answer =
            answer.unwrap_or_else(|| CallAnswer { output: output.stdout, ..CallAnswer::default() });
        self.to_output(answer).await
    }

    fn request(
        &self,
        bundle: &StoredBundle,
        arguments: &Map<String, Value>,
        ctx: &ToolContext,
    ) -> Value {
        let root = self.host.runtime.settings.root.to_string_lossy();
        let context = json!({
            "sessionID": &*ctx.call.session,
            "messageID": format!("msg_{}", ctx.call.root_call),
            "callID": &*ctx.call.id,
            "agent": ctx.call.agent,
            "directory": root,
            "worktree": root,
        });
        let mut request =
            json!({"name": self.listed.export, "args": arguments, "context": context});
        match self.script.is_plugin() {
            true => {
                request["op"] = "pluginTool".into();
                request["plugin"] = self.script.key().into();
            }
            false => {
                request["op"] = "call".into();
                request["url"] = bundle.url.as_str().into();
            }
        }
        request
    }

    /// Handles the progress and the requests of a call until its answer arrives. Aborts the call if it is cancelled or
    /// takes too long.
    async fn converse(
        &self,
        mut exchange: Exchange<'_>,
        process: &HelperProcess,
        ctx: &ToolContext,
    ) -> Result<CallAnswer, RequestError> {
        let deadline = tokio::time::Instant::now() + CALL_TIME;
        let mut requests = 0;
        loop {
            let message = tokio::select! {
                message = exchange.next() => message?,
                () = ctx.cancel.cancelled() => {
                    self.abort(exchange, process).await;
                    return Err(RequestError::Aborted);
                }
                () = tokio::time::sleep_until(deadline) => {
                    self.abort(exchange, process).await;
                    return Err(RequestError::TimedOut(CALL_TIME));
                }
            };
            if let Some(error) = message.error {
                return Err(RequestError::Thrown(error));
            }
            if let Some(value) = message.ok {
                return serde_json::from_value(value).map_err(|error| {
                    RequestError::Process(format!("the answer cannot be read: {error}"))
                });
            }
            if let Some(reported) = message.metadata {
                let metadata = reported.metadata.unwrap_or_default();
                ctx.progress(Progress { title: reported.title, metadata, ..Progress::default() });
            } else if let Some(number) = message.request {
                requests += 1;
                let answer = self.answer(message, requests, ctx).await;
                let answer = match answer {
                    Ok(value) => json!({"op": "answer", "request": number, "ok": value}),
                    Err(why) => json!({"op": "answer", "request": number, "error": why}),
                };
                process.send(&answer).await;
            }
        }
    }

    /// Aborts a call. If the tool does not return and the process is stuck, ends the process.
    async fn abort(&self, mut exchange: Exchange<'_>, process: &HelperProcess) {
        process.send(&json!({"op": "abort", "id": exchange.id})).await;
        let returned = async {
            loop {
                match exchange.next().await {
                    Ok(message) if message.ok.is_none() && message.error.is_none() => {}
                    Ok(_) | Err(_) => return,
                }
            }
        };
        if tokio::time::timeout(ABORT_TIME, returned).await.is_err() {
            process.end_if_stuck(self.host.runtime.new_id()).await;
        }
    }

    /// Answers a request of the running tool. `number` counts the requests of the call from 1.
    async fn answer(
        &self,
        message: Incoming,
        number: usize,
        ctx: &ToolContext,
    ) -> Result<Value, String> {
        match message.method.as_deref() {
            Some("ask") if number > REQUESTS_THAT_MAY_ASK => Err(format!(
                "only the first {REQUESTS_THAT_MAY_ASK} requests of a call may ask for a permission"
            )),
            Some("ask") => {
                let permission = message.params.get("permission").and_then(Value::as_str);
                let permission = permission.unwrap_or(&self.id).to_owned();
                let patterns = message.params.get("patterns").and_then(Value::as_array);
                let patterns: Vec<&str> =
                    patterns.into_iter().flatten().filter_map(Value::as_str).take(50).collect();
                let patterns = if patterns.is_empty() { vec!["*"] } else { patterns };
                let parts = patterns.iter().map(|it| Part::new(permission.clone(), *it));
                let preview = format!(
                    "The tool \"{}\" asks for {permission}: {}",
                    self.id,
                    patterns.join(", ")
                );
                let ask = Ask { parts: parts.collect(), preview, ..Ask::default() };
                ctx.ask(ask).await.map(|_| Value::Null).map_err(|error| error.message)
            }
            Some("client") => self.host.answer_client(&message.params).await,
            _ => Err("Helve does not know this request".into()),
        }
    }

    async fn to_output(&self, answer: CallAnswer) -> Result<ToolOutput, ToolError> {
        if let Some(problems) = answer.invalid {
            let lines: Vec<String> =
                problems.iter().map(|it| format!("- {}: {}", it.path, it.message)).collect();
            let message = format!(
                "The {} tool was called with invalid arguments:\n{}\nPlease rewrite the input so it satisfies the expected schema.",
                self.id,
                lines.join("\n")
            );
            return Err(ToolError::new(ErrorKind::InvalidArgs, message));
        }
        let title = answer.title.unwrap_or_else(|| self.id.clone());
        let mut output = ToolOutput::text(title, answer.output);
        output.metadata = answer.metadata.unwrap_or_default();
        for (index, attachment) in answer.attachments.into_iter().flatten().enumerate() {
            let content = match index < MAX_ATTACHMENTS {
                true => decode_attachment(&*self.host.media, &attachment).await,
                false => break,
            };
            output.content.push(content);
        }
        Ok(output)
    }

    fn to_error(&self, error: &RequestError, bundle: Option<&StoredBundle>) -> ToolError {
        let kind = match error {
            RequestError::TimedOut(_) => ErrorKind::TimedOut,
            RequestError::Thrown(_)
            | RequestError::Process(_)
            | RequestError::NotBegun(_)
            | RequestError::Script(_)
            | RequestError::Aborted => ErrorKind::Failed,
        };
        let message = match error {
            RequestError::Thrown(thrown) => self.host.message_with_location(thrown, bundle),
            RequestError::Process(_)
            | RequestError::NotBegun(_)
            | RequestError::TimedOut(_)
            | RequestError::Script(_)
            | RequestError::Aborted => format!("The tool {} failed: {error}", self.id),
        };
        ToolError::new(kind, self.host.redact(&truncate(message)))
    }
}

impl ScriptHost {
    /// Returns the message of an error with its location in the source.
    pub(crate) fn message_with_location(
        &self,
        thrown: &ThrownError,
        bundle: Option<&StoredBundle>,
    ) -> String {
        let location = bundle.and_then(|bundle| bundle.source_location(&thrown.stack));
        match location {
            Some((file, line)) => {
                format!("{}\n(at {}:{line})", thrown.message, self.display_path(file).display())
            }
            None => thrown.message.clone(),
        }
    }

    /// Returns a path relative to the root if it is below the root.
    pub(crate) fn display_path(&self, file: PathBuf) -> PathBuf {
        file.strip_prefix(&self.runtime.settings.root).map(PathBuf::from).unwrap_or(file)
    }
}

fn truncate(text: String) -> String {
    match text.char_indices().nth(MAX_ERROR) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Decodes an attachment. If that fails, returns a line of text that says why.
async fn decode_attachment(media: &dyn Media, attachment: &ReportedAttachment) -> Content {
    let mime: String = attachment.mime.chars().take(100).collect();
    let omit = |why: &str| Content::Text(format!("[attachment {mime} omitted: {why}]"));
    let data = attachment.url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
    let Some((_, data)) = data else { return omit("it is not a data: URL with base64") };
    if data.len() / 4 * 3 > MAX_ATTACHMENT {
        return omit("it is too large");
    }
    let Ok(bytes) = STANDARD.decode(data) else { return omit("it is not base64") };
    let bytes = Bytes::from(bytes);
    let Some(format) = MediaFormat::of_content(&bytes) else {
        return omit("it is not an image or a document");
    };
    match media.decode(bytes.clone(), format).await {
        Ok(MediaContent::Picture(picture)) => {
            Content::Media { mime: picture.mime.into(), data: picture.bytes }
        }
        Ok(MediaContent::Document(_)) => Content::Media { mime: format.mime().into(), data: bytes },
        Err(why) => omit(&why.to_string()),
    }
}
