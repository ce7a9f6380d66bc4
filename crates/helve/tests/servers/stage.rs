//! Folders and a configuration for one test, whose servers are instances of the script `server.py`.

use std::path::PathBuf;
use std::time::Duration;

use helve::{Builder, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Timeout that no successful step reaches.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The folders of one test.
pub(crate) struct Stage {
    base: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("app")).unwrap();
        std::fs::write(base.path().join("app/hello.txt"), "Hello\n").unwrap();
        Self { base }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.base.path().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        std::fs::write(self.path(relative), text).unwrap();
    }

    /// Returns how often the server that logs to this file was started.
    pub(crate) fn starts(&self, file: &str) -> usize {
        std::fs::read_to_string(self.path(file)).unwrap_or_default().lines().count()
    }

    pub(crate) fn builder(&self, servers: &Value) -> Builder {
        self.write("config.json", &json!({"mcp": servers}).to_string());
        Toolbox::builder()
            .dir(self.path("app"))
            .data(self.path("data"))
            .config(self.path("config.json"))
    }

    /// Returns a toolbox whose person says yes to everything.
    pub(crate) async fn toolbox(&self, servers: &Value) -> Toolbox {
        self.builder(servers).yes().build().await.unwrap()
    }
}

/// Returns the path of the server script.
pub(crate) fn script() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/server.py").to_owned()
}

/// Returns the configuration of a server that runs the script with these arguments.
pub(crate) fn server(args: &[&str]) -> Value {
    let script = script();
    let command: Vec<&str> =
        ["python3", &script].iter().copied().chain(args.iter().copied()).collect();
    json!({"type": "local", "command": command})
}

/// Like [`server`], with further fields of the configuration.
pub(crate) fn server_with(args: &[&str], extra_fields: Value) -> Value {
    let mut server = server(args);
    server.as_object_mut().unwrap().extend(extra_fields.as_object().unwrap().clone());
    server
}

/// Calls a tool and returns the text of its result or error.
pub(crate) async fn call(toolbox: &Toolbox, tool: &str, args: Value) -> String {
    let result =
        tokio::time::timeout(LONG, toolbox.call(tool, args)).await.expect("the call hangs");
    match result.outcome {
        Ok(output) => output.joined_text(),
        Err(error) => format!("! {}", error.full_message()),
    }
}

/// Checks that the built-in tools still work.
pub(crate) async fn check_builtin_tools(toolbox: &Toolbox) {
    let text = call(toolbox, "read", json!({"filePath": "hello.txt"})).await;
    assert!(text.contains("00001| Hello"), "{text}");
}
