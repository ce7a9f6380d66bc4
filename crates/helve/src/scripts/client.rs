//! Answers what plugins ask of the client of opencode's server.

use std::path::PathBuf;

use helve_core::BoxFuture;
use helve_script::ScriptClient;
use serde_json::{Value, json};

/// Logs and toasts are accepted and not shown. Sessions are known by their id only.
pub(super) struct PluginClient {
    pub(super) root: PathBuf,
}

impl ScriptClient for PluginClient {
    fn request<'a>(&'a self, params: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let method = params.get("method").and_then(Value::as_str).unwrap_or_default();
            let root = self.root.to_string_lossy();
            match method {
                "app.log" | "tui.showToast" => Ok(Value::Bool(true)),
                "path.get" => Ok(json!({"directory": root, "worktree": root})),
                "project.current" => Ok(json!({"id": "helve", "worktree": root})),
                "session.get" => {
                    let id = params.pointer("/path/id").cloned().unwrap_or_default();
                    Ok(json!({"id": id, "directory": root, "title": ""}))
                }
                _ => Err(format!("client.{method} is not available in Helve")),
            }
        })
    }
}
