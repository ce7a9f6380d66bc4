//! Real agents that use Helve's tools over MCP with a scripted model. `helve install` connects them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::model::{ScriptedCall, ScriptedModel};
use super::{E2eResult, FILE, LINE, RUN_LIMIT, npm};
use crate::helve::Helve;
use crate::process;
use crate::scratch::Scratch;

const CODEX: &str = "@openai/codex@0.166.0";
const OPENCODE: &str = "opencode-ai@1.18.33";
/// The line that the agent writes.
const CHANGED: &str = "a line written by an agent";

pub(super) fn codex(helve: &Helve) -> Result<E2eResult, String> {
    let setup = match AgentSetup::new(helve, CODEX)? {
        Ok(setup) => setup,
        Err(skipped) => return Ok(skipped),
    };
    let config = format!(
        "model = \"script\"\nmodel_provider = \"script\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\n\
         [model_providers.script]\nname = \"script\"\nbase_url = \"{}\"\nwire_api = \"responses\"\n\
         experimental_bearer_token = \"none\"\nrequest_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n",
        setup.model.url()
    );
    let mut command = Command::new(setup.modules.join("node/bin/node"));
    command.arg(setup.modules.join(".bin/codex"));
    command.args(["exec", "--skip-git-repo-check", "--json", "go"]);
    setup.run("codex", ".codex/config.toml", &config, &mut command)
}

pub(super) fn opencode(helve: &Helve) -> Result<E2eResult, String> {
    let setup = match AgentSetup::new(helve, OPENCODE)? {
        Ok(setup) => setup,
        Err(skipped) => return Ok(skipped),
    };
    let model = json!({"name": "script", "tool_call": true, "limit": {"context": 1_000_000, "output": 32_000}});
    let config = json!({
        // opencode adds this field if it is missing, but the test expects an unchanged file.
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false, "share": "disabled",
        "model": "script/script", "small_model": "script/script", "enabled_providers": ["script"],
        "provider": {"script": {
            "name": "script", "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": setup.model.url(), "apiKey": "none"}, "models": {"script": model},
        }},
    });
    let mut command = Command::new(opencode_program(&setup.modules));
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
    for feature in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        command.env(format!("OPENCODE_DISABLE_{feature}"), "1");
    }
    setup.run("opencode", "config/opencode/opencode.json", &format!("{config:#}\n"), &mut command)
}

/// Returns the path of opencode. The program is in a separate package if npm does not run install scripts.
fn opencode_program(modules: &Path) -> PathBuf {
    let separate = modules.join("opencode-linux-x64/bin/opencode");
    if separate.exists() { separate } else { modules.join(".bin/opencode") }
}

/// What a test of an agent needs: the installed agent and a scripted model.
struct AgentSetup<'a> {
    helve: &'a Helve,
    model: ScriptedModel,
    modules: PathBuf,
    scratch: Scratch,
}

impl<'a> AgentSetup<'a> {
    fn new(helve: &'a Helve, package: &str) -> Result<Result<Self, E2eResult>, String> {
        if !npm::is_installed() {
            return Ok(Err(E2eResult::Skipped("npm is not installed".into())));
        }
        let modules = npm::install(&[npm::NODE, package])?;
        let edit = json!({"filePath": FILE, "oldString": LINE, "newString": CHANGED});
        let model = ScriptedModel::start(vec![
            ScriptedCall { tool: "read", arguments: json!({"filePath": FILE}) },
            ScriptedCall { tool: "edit", arguments: edit },
        ])?;
        Ok(Ok(AgentSetup { helve, model, modules, scratch: Scratch::new("agent")? }))
    }

    /// Installs Helve in the agent, runs the agent, and removes Helve again.
    fn run(
        &self,
        client: &str,
        file: &str,
        config: &str,
        agent: &mut Command,
    ) -> Result<E2eResult, String> {
        let (home, work) = (self.scratch.folder("home")?, self.scratch.folder("work")?);
        let file = home.join(file);
        let with_path = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(file.parent().unwrap_or(&home))
            .map_err(|error| with_path(&home, error))?;
        fs::write(&file, config).map_err(|error| with_path(&file, error))?;
        fs::write(work.join(FILE), format!("{LINE}\n")).map_err(|error| with_path(&work, error))?;
        let environment = [
            ("HOME", home.clone()),
            ("CODEX_HOME", home.join(".codex")),
            ("XDG_CONFIG_HOME", home.join("config")),
            ("XDG_DATA_HOME", home.join("data")),
            ("XDG_CACHE_HOME", home.join("cache")),
            ("XDG_STATE_HOME", home.join("state")),
        ];
        let install = |options: &[&str]| {
            let mut command = Command::new(self.helve.binary());
            command.envs(environment.clone()).args(["--yes", "install", client]).args(options);
            process::run(&mut command, RUN_LIMIT)?.success("helve install")
        };
        install(&["--permission", "workspace"])?;
        agent.envs(environment.clone()).env("PATH", npm::path(&self.modules)?);
        // Some agents take the working folder from the environment.
        agent.env("PWD", &work).current_dir(&work);
        let finished = process::run(agent.stdin(std::process::Stdio::null()), RUN_LIMIT)?;
        let (out, err) = (finished.stdout.clone(), finished.stderr.clone());
        finished.success(client)?;
        let answers = self.model.tool_results();
        if !answers.first().is_some_and(|answer| answer.contains(LINE)) {
            return Err(format!("tool answers: {answers:?}\n{out}\n{err}"));
        }
        let text = fs::read_to_string(work.join(FILE)).map_err(|error| with_path(&work, error))?;
        if text != format!("{CHANGED}\n") {
            return Err(format!(
                "the file contains {text:?}; tool answers: {answers:?}\n{out}\n{err}"
            ));
        }
        install(&["--remove"])?;
        let config_after = fs::read_to_string(&file).map_err(|error| with_path(&file, error))?;
        if config_after != config {
            return Err(format!("--remove left this configuration: {config_after}"));
        }
        Ok(E2eResult::Passed("installed, file read and edited over MCP, removed again".into()))
    }
}
