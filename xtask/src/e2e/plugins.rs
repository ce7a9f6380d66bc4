//! Loads published opencode plugins on bun and node, in the sandbox.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{E2eResult, RUN_LIMIT, npm};
use crate::helve::Helve;
use crate::process;

const RUNTIMES: &[(&str, &str)] =
    &[("bun@1.4.4", ".bin/bun"), ("node@20", "node/bin/node"), ("node@24", "node/bin/node")];

/// Plugins with sources in TypeScript, compiled ones and bundles, with and without dependencies.
const PLUGINS: &[&str] = &[
    "@different-ai/opencode-browser@4.6.1",
    "@gitlab/opencode-gitlab-auth@1.3.3",
    "@tarquinen/opencode-dcp@3.1.14",
    "cc-safety-net@2.4.5",
    "oh-my-opencode-slim@2.2.24",
    "open-trees@1.0.1",
    "opencode-anthropic-auth@0.0.13",
    "opencode-anthropic-oauth@0.4.7",
    "opencode-antigravity-auth@1.6.0",
    "opencode-beads@0.3.2",
    "opencode-checkpoint@1.0.0",
    "opencode-conductor-plugin@1.32.0",
    "opencode-copilot-auth@0.0.9",
    "opencode-cursor-auth@1.0.16",
    "opencode-gemini-auth@1.3.8",
    "opencode-gitlab-auth@2.1.0",
    "opencode-google-antigravity-auth@0.2.15",
    "opencode-openai-codex-auth@4.4.0",
    "opencode-orchestrator@1.7.22",
    "opencode-pty@0.1.3",
    "opencode-qwen-auth@0.3.4",
    "opencode-qwencode-auth@1.3.0",
    "opencode-skills@0.1.7",
    "opencode-supermemory@2.0.10",
    "opencode-swarm@5.1.0",
    "opencode-telemetry@0.1.19",
    "opencode-tts@2.0.0",
    "opencode-vibeguard@0.1.0",
    "opencode-wakatime@1.3.9",
];

/// Plugins that only bun can load, because they use a part of it that node lacks.
const ONLY_ON_BUN: &[&str] =
    &["opencode-cursor-auth@1.0.16", "opencode-pty@0.1.3", "opencode-telemetry@0.1.19"];

/// At least this share of the plugins must load on each runtime.
const MIN_LOADED: f64 = 0.97;

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    if !npm::is_installed() {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    }
    let mut counts = Vec::new();
    for (package, program) in RUNTIMES {
        let runtime = npm::install(&[package])?.join(program);
        let is_bun = package.starts_with("bun");
        let plugins: Vec<&&str> =
            PLUGINS.iter().filter(|plugin| is_bun || !ONLY_ON_BUN.contains(plugin)).collect();
        let mut failures = Vec::new();
        for plugin in &plugins {
            failures.extend(load(helve, plugin, &runtime)?);
        }
        let loaded = plugins.len() - failures.len();
        if (loaded as f64) < MIN_LOADED * plugins.len() as f64 {
            let total = plugins.len();
            return Err(format!("{loaded} of {total} load on {package}\n{}", failures.join("\n")));
        }
        counts.push(format!("{loaded} of {} on {package}", plugins.len()));
    }
    Ok(E2eResult::Passed(format!("published plugins that load: {}", counts.join(", "))))
}

/// Loads a plugin and returns why that failed.
fn load(helve: &Helve, plugin: &str, runtime: &Path) -> Result<Option<String>, String> {
    let modules = npm::install_without_scripts(plugin)?;
    let name = plugin.rsplit_once('@').map_or(plugin, |(name, _)| name);
    let config = json!({
        "plugin": [name],
        "javascript": {"runtime": runtime},
        "sandbox": "workspace-write",
    });
    // A package is looked up from the folder of the file that names it.
    let file = modules.with_file_name("helve.json");
    fs::write(&file, config.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut command = Command::new(helve.binary());
    command.envs(helve.environment()).current_dir(&helve.workspace);
    // Some plugins write to the home folder while they load, so it must be one that the sandbox can write to.
    command.env("HOME", &helve.workspace);
    command.arg("--dir").arg(&helve.workspace).arg("--config").arg(&file);
    let printed = process::run(command.args(["--json", "doctor"]), RUN_LIMIT)?.stdout;
    let findings: Value =
        serde_json::from_str(&printed).map_err(|error| format!("{plugin}: {error}: {printed}"))?;
    let findings = findings.as_array().cloned().unwrap_or_default();
    let is_checked = findings.iter().any(|it| it["check"] == "javascript" && it["status"] == "ok");
    let mut problems = findings.iter().filter(|it| {
        let is_of_plugin = it["check"] == "custom tools" && it["status"] == "bad";
        // Every function that a file exports is called as a plugin. Helpers among them may fail.
        is_of_plugin && !it["message"].to_string().contains("the export")
    });
    Ok(match problems.next() {
        Some(problem) => Some(format!("{plugin}: {}", problem["message"])),
        None if !is_checked => Some(format!("{plugin}: no runtime was started: {printed}")),
        None => None,
    })
}
