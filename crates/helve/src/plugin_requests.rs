//! Answers the requests that plugins send through the `client` object of opencode's SDK, such as
//! `client.session.prompt`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve_agent::item::MessagePart;
use helve_core::BoxFuture;
use helve_core::transcript::TranscriptInfo;
use helve_script::ClientRequestHandler;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::run::TurnOptions;
use crate::scripts::{self, Scripts};
use crate::toolbox::{Toolbox, WeakToolbox, new_session_id};

/// Maximum number of sessions in the answer to `session.list`.
const MAX_SESSIONS: usize = 100;
/// Maximum number of turns that plugins may start in one process, so that they cannot answer each other forever.
const MAX_PROMPTS: usize = 20;

/// Lets plugins use the sessions of a toolbox.
pub(crate) fn answer_plugins(scripts: &Scripts, toolbox: &Toolbox) {
    scripts.set_client_handler(Arc::new(PluginRequestHandler {
        root: toolbox.root().to_path_buf(),
        toolbox: toolbox.downgrade(),
        prompts: AtomicUsize::new(0),
    }));
}

/// Answers the requests of plugins from a toolbox. Logs and toasts are accepted but not shown.
struct PluginRequestHandler {
    root: PathBuf,
    toolbox: WeakToolbox,
    /// Number of turns that plugins have started.
    prompts: AtomicUsize,
}

/// The slot of a session's todo list.
const TODOS: &str = "todos";

impl ClientRequestHandler for PluginRequestHandler {
    fn answer<'a>(&'a self, params: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let method = params.get("method").and_then(Value::as_str).unwrap_or_default();
            let root = self.root.to_string_lossy();
            match method {
                "app.log" | "tui.showToast" => Ok(Value::Bool(true)),
                "path.get" => Ok(json!({"directory": root, "worktree": root})),
                "project.current" => Ok(json!({"id": "helve", "worktree": root})),
                _ => {
                    let toolbox = self.toolbox.upgrade();
                    let toolbox = toolbox.ok_or("Helve is ending")?;
                    self.session_request(&toolbox, method, params).await
                }
            }
        })
    }
}

impl PluginRequestHandler {
    async fn session_request(
        &self,
        toolbox: &Toolbox,
        method: &str,
        params: &Value,
    ) -> Result<Value, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let id = ["/path/id", "/path/sessionID", "/query/sessionID"].iter();
        let id = id.filter_map(|path| params.pointer(path)?.as_str()).next();
        let id = id.unwrap_or(toolbox.session_id()).to_owned();
        match method {
            "config.get" => {
                let model = toolbox.config().models.model.as_ref().map(|model| model.value.clone());
                Ok(json!({"model": model}))
            }
            "session.get" => {
                let info = toolbox.session_info(&id).await.map_err(|error| text(&error))?;
                Ok(info.map_or_else(|| self.new_session(&id, ""), |info| self.session(&info)))
            }
            "session.list" => {
                let all = toolbox.sessions(MAX_SESSIONS).await.map_err(|error| text(&error))?;
                Ok(all.iter().map(|info| self.session(info)).collect())
            }
            "session.messages" => {
                let entries = toolbox.transcript(&id).await.map_err(|error| text(&error))?;
                Ok(scripts::messages(&id, &entries).into())
            }
            "session.todo" => {
                let stored = toolbox.store().get(&id, TODOS).await.map_err(|error| text(&error))?;
                Ok(stored.map_or_else(|| json!([]), |(_, todos)| todos))
            }
            "session.create" => {
                let title = params.pointer("/body/title").and_then(Value::as_str);
                let parent = params.pointer("/body/parentID").and_then(Value::as_str);
                let (id, title) = (new_session_id(), title.unwrap_or("from a plugin"));
                let transcripts = toolbox.transcripts();
                let registered = transcripts.register(&id, &self.root, title, parent).await;
                registered.map_err(|error| text(&error))?;
                Ok(self.new_session(&id, title))
            }
            "session.prompt" | "session.promptAsync" => self.prompt(toolbox, id, params).await,
            _ => Err(format!("client.{method} is not available in Helve")),
        }
    }

    /// Runs a turn in another session. Fails for a session that is running a turn, because a transcript has one writer.
    async fn prompt(&self, toolbox: &Toolbox, id: String, params: &Value) -> Result<Value, String> {
        let parts = params.pointer("/body/parts").and_then(Value::as_array).into_iter().flatten();
        let texts = parts.filter_map(|part| part.get("text")?.as_str());
        let parts: Vec<MessagePart> = texts.map(|text| MessagePart::Text(text.into())).collect();
        if parts.is_empty() {
            return Err("client.session.prompt needs a part with text".into());
        }
        if self.prompts.fetch_add(1, Ordering::Relaxed) >= MAX_PROMPTS {
            return Err(format!("plugins may start at most {MAX_PROMPTS} turns"));
        }
        let (toolbox, session) = (toolbox.with_session(&*id), id.clone());
        // The turn runs in a task of its own, because it may run hooks that wait for this answer.
        let turn_task = tokio::spawn(async move {
            let model = toolbox.model(None).map_err(|error| error.to_string())?;
            let mut agent = toolbox.agent(model).await.map_err(|error| error.to_string())?;
            let (options, cancel) = (TurnOptions::default(), CancellationToken::new());
            let report = agent.run(parts, &options, &|_| {}, cancel).await;
            report.map(|report| report.text).map_err(|error| error.to_string())
        });
        let text = turn_task.await.map_err(|error| error.to_string())??;
        let info = json!({"role": "assistant", "sessionID": session});
        Ok(json!({"info": info, "parts": [{"type": "text", "text": text}]}))
    }

    fn session(&self, info: &TranscriptInfo) -> Value {
        json!({
            "id": info.session,
            "title": info.title,
            "directory": info.root,
            "parentID": info.parent,
            "time": {"created": info.created, "updated": info.updated},
        })
    }

    fn new_session(&self, id: &str, title: &str) -> Value {
        json!({"id": id, "title": title, "directory": self.root, "time": {}})
    }
}
