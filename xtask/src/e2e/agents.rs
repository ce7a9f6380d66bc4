//! Real agents, put to a scripted model, that use Helve's tools through MCP; `helve install` connects them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::model::{Model, Step};
use super::{FILE, LINE, RUN_LIMIT, Said, npm};
use crate::helve::Helve;
use crate::process;
use crate::scratch::Scratch;

const CODEX: &str = "@openai/codex@0.166.0";
const OPENCODE: &str = "opencode-ai@1.18.33";
const CHANGED: &str = "a line that an agent wrote";

pub(super) fn codex(helve: &Helve) -> Result<Said, String> {
    let stage = match Stage::new(helve, CODEX)? {
        Ok(stage) => stage,
        Err(skipped) => return Ok(skipped),
    };
    let config = format!(
        "model = \"script\"\nmodel_provider = \"script\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\n\
         [model_providers.script]\nname = \"script\"\nbase_url = \"{}\"\nwire_api = \"responses\"\n\
         experimental_bearer_token = \"none\"\nrequest_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n",
        stage.model.address()
    );
    let mut command = Command::new(stage.modules.join("node/bin/node"));
    command.arg(stage.modules.join(".bin/codex"));
    command.args(["exec", "--skip-git-repo-check", "--json", "go"]);
    stage.run("codex", ".codex/config.toml", &config, &mut command)
}

pub(super) fn opencode(helve: &Helve) -> Result<Said, String> {
    let stage = match Stage::new(helve, OPENCODE)? {
        Ok(stage) => stage,
        Err(skipped) => return Ok(skipped),
    };
    let model = json!({"name": "script", "tool_call": true, "limit": {"context": 1_000_000, "output": 32_000}});
    let config = json!({
        // It would be added, and is not what this is about.
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false, "share": "disabled",
        "model": "script/script", "small_model": "script/script", "enabled_providers": ["script"],
        "provider": {"script": {
            "name": "script", "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": stage.model.address(), "apiKey": "none"}, "models": {"script": model},
        }},
    });
    let mut command = Command::new(program(&stage.modules));
    command.args([
        "run",
        "--auto",
        "--format",
        "json",
        "-m",
        "script/script",
        "--title",
        "e2e",
        "go",
    ]);
    for off in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        command.env(format!("OPENCODE_DISABLE_{off}"), "1");
    }
    stage.run("opencode", "config/opencode/opencode.json", &format!("{config:#}\n"), &mut command)
}

/// Where npm runs no scripts of packages, the program lies in a package beside.
fn program(modules: &Path) -> PathBuf {
    let beside = modules.join("opencode-linux-x64/bin/opencode");
    if beside.exists() { beside } else { modules.join(".bin/opencode") }
}

struct Stage<'a> {
    helve: &'a Helve,
    model: Model,
    modules: PathBuf,
    scratch: Scratch,
}

impl<'a> Stage<'a> {
    fn new(helve: &'a Helve, package: &str) -> Result<Result<Self, Said>, String> {
        if !npm::is_there() {
            return Ok(Err(Said::Skipped("there is no npm".into())));
        }
        let modules = npm::install(&[npm::NODE, package])?;
        let edit = json!({"filePath": FILE, "oldString": LINE, "newString": CHANGED});
        let model = Model::start(vec![
            Step { tool: "read", arguments: json!({"filePath": FILE}) },
            Step { tool: "edit", arguments: edit },
        ])?;
        Ok(Ok(Stage { helve, model, modules, scratch: Scratch::new("agent")? }))
    }

    /// Connects the agent with `helve install`, lets it work, takes Helve out again.
    fn run(
        &self,
        client: &str,
        file: &str,
        config: &str,
        agent: &mut Command,
    ) -> Result<Said, String> {
        let (home, work) = (self.scratch.folder("home")?, self.scratch.folder("work")?);
        let file = home.join(file);
        let wrong = |path: &Path| format!("{} cannot be used", path.display());
        fs::create_dir_all(file.parent().unwrap_or(&home)).map_err(|_| wrong(&home))?;
        fs::write(&file, config).map_err(|_| wrong(&file))?;
        fs::write(work.join(FILE), format!("{LINE}\n")).map_err(|_| wrong(&work))?;
        let environment = [
            ("HOME", home.clone()),
            ("CODEX_HOME", home.join(".codex")),
            ("XDG_CONFIG_HOME", home.join("config")),
            ("XDG_DATA_HOME", home.join("data")),
            ("XDG_CACHE_HOME", home.join("cache")),
            ("XDG_STATE_HOME", home.join("state")),
        ];
        let install = |more: &[&str]| {
            let mut command = Command::new(self.helve.binary());
            command.envs(environment.clone()).args(["--yes", "install", client]).args(more);
            process::finish(&mut command, RUN_LIMIT)?.good("helve install")
        };
        install(&["--permission", "workspace"])?;
        agent.envs(environment.clone()).env("PATH", npm::path(&self.modules)?);
        // Some take the folder from the environment.
        agent.env("PWD", &work).current_dir(&work);
        let finished = process::finish(agent.stdin(std::process::Stdio::null()), RUN_LIMIT)?;
        let (out, err) = (finished.stdout.clone(), finished.stderr.clone());
        finished.good(client)?;
        let answers = self.model.answers();
        if !answers.first().is_some_and(|answer| answer.contains(LINE)) {
            return Err(format!("read answered {answers:?}\n{out}\n{err}"));
        }
        let text = fs::read_to_string(work.join(FILE)).map_err(|_| wrong(&work))?;
        if text != format!("{CHANGED}\n") {
            return Err(format!(
                "edit answered {answers:?}; the file holds {text:?}\n{out}\n{err}"
            ));
        }
        install(&["--remove"])?;
        let left = fs::read_to_string(&file).map_err(|_| wrong(&file))?;
        if left != config {
            return Err(format!("--remove left {left}"));
        }
        Ok(Said::Passed("installed, read and edited through MCP, taken out exactly".into()))
    }
}
