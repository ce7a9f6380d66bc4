//! Loads published opencode plugins on bun and on every supported node.
//!
//! Helve runs with its default settings, inside the sandbox of another Helve, so that the plugins cannot do harm.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{E2eResult, RUN_LIMIT, npm};
use crate::helve::Helve;
use crate::process;

/// npm package, and its program relative to `node_modules`.
const RUNTIMES: &[(&str, &str)] = &[
    ("bun@1.4.4", ".bin/bun"),
    ("node@20", "node/bin/node"),
    ("node@22", "node/bin/node"),
    ("node@24", "node/bin/node"),
];

/// Packages that name `@opencode-ai/plugin` in their `package.json` or have the keyword `opencode-plugin`, and have a
/// file for opencode's server. They were chosen without looking at whether they load.
const PLUGINS: &[&str] = &[
    "@cortexkit/aft-opencode@0.19.6",
    "@different-ai/opencode-browser@4.6.1",
    "@gitlab/opencode-gitlab-auth@1.3.3",
    "@npv12/opencode-memory-md@0.1.0",
    "@tarquinen/opencode-dcp@3.1.14",
    "cc-safety-net@2.4.5",
    "oh-my-openagent@4.19.4",
    "oh-my-opencode-beads@0.0.13",
    "oh-my-opencode-medium@1.0.11",
    "oh-my-opencode-slim@2.2.24",
    "oh-my-opencode@4.19.4",
    "open-trees@1.0.1",
    "opencode-anthropic-auth@0.0.13",
    "opencode-anthropic-oauth@0.4.7",
    "opencode-antigravity-auth@1.6.0",
    "opencode-antigravity-image@0.3.0",
    "opencode-beads@0.3.2",
    "opencode-branch-memory-manager@0.1.9",
    "opencode-caffeinate@0.1.3",
    "opencode-checkpoint-plugin@1.1.0",
    "opencode-checkpoints@1.0.0",
    "opencode-chromium@1.7.2",
    "opencode-codebuddy-oauth@2.2.0",
    "opencode-codex-image@0.2.2",
    "opencode-conductor-plugin@1.32.0",
    "opencode-copilot-auth@0.0.9",
    "opencode-cursor-auth@1.0.16",
    "opencode-gemini-auth@1.3.8",
    "opencode-gemini-image@1.0.4",
    "opencode-gemini-oauth@1.1.4",
    "opencode-gitlab-auth@2.1.0",
    "opencode-google-antigravity-auth@0.2.15",
    "opencode-google-login@1.1.0",
    "opencode-headroom@0.1.0",
    "opencode-image-search@1.4.0",
    "opencode-image-viewer@1.0.0",
    "opencode-kimi-oauth@1.5.1",
    "opencode-litellm-plugin@1.0.0",
    "opencode-llm-usage@0.2.0",
    "opencode-lmstudio@0.3.0",
    "opencode-ollama-multi-auth@1.6.3",
    "opencode-ollama-router@1.0.1",
    "opencode-ollama-websearch@0.1.0",
    "opencode-openai-codex-auth@4.4.0",
    "opencode-orchestrator@1.7.22",
    "opencode-pets@1.0.2",
    "opencode-plugin-litellm@1.2.0",
    "opencode-poe-auth@0.0.1",
    "opencode-pty@0.1.3",
    "opencode-qoder-plugin@0.2.3",
    "opencode-qoder@0.2.1",
    "opencode-qwen-auth-plugin@0.1.4",
    "opencode-qwen-auth@0.3.4",
    "opencode-qwen-cli-auth@1.0.2",
    "opencode-qwen-oauth@2.4.1",
    "opencode-qwencode-auth@1.3.0",
    "opencode-skills@0.1.7",
    "opencode-supermemory@2.0.10",
    "opencode-swarm@5.1.0",
    "opencode-telemetry@0.1.19",
    "opencode-tts@2.0.0",
    "opencode-vibeguard@0.1.0",
    "opencode-wakatime@1.3.9",
    "opencode-workflow-suite@0.3.0",
    "opencode-xai-oauth@1.2.0",
    "qwen-for-opencode@1.0.0",
];

/// What a plugin needs in order to do something: the package, options, a file below `project` or `home` and its text.
const NEEDS: &[(&str, &str, &str, &str)] = &[
    ("opencode-headroom", r#"{"enabled": true}"#, "", ""),
    ("opencode-ollama-multi-auth", r#"{"ollamaMultiAuth": {"keys": ["a", "b"]}}"#, "", ""),
    (
        "opencode-skills",
        "null",
        "project/.opencode/skills/example/SKILL.md",
        "---\nname: example\ndescription: An example of a skill for this test.\n---\nText.\n",
    ),
    (
        "opencode-ollama-router",
        "null",
        "home/.config/opencode/ollama-router.json",
        r#"{"keys": ["a", "b"]}"#,
    ),
    ("opencode-vibeguard", "null", "project/vibeguard.config.json", r#"{"enabled": true}"#),
];

/// Plugins that load but give nothing on Linux, in opencode too: the package and the reason.
const GIVES_NOTHING: &[(&str, &str)] = &[("opencode-caffeinate", "it gives hooks on macOS only")];

/// Known failures: the package and the reason. They count as failures.
const KNOWN_FAILURES: &[(&str, &str)] = &[(
    "opencode-checkpoint-plugin",
    "its package better-sqlite3 must be compiled, and does not work on bun",
)];

/// A plugin that uses `bun:sqlite` need not load on node 20, which has no SQLite. Its error says so.
const NEEDS_SQLITE: &str = "bun:sqlite needs bun, or node 22.5 and later";

const NOT_LISTED: &str = "it is missing in the list of plugins";

/// At least this share of the plugins must load on each runtime.
const MIN_LOADED: f64 = 0.97;

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    if !npm::is_installed() {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    }
    let mut counts = Vec::new();
    let mut is_enough = true;
    for (package, program) in RUNTIMES {
        let runtime = npm::install(&[package])?.join(program);
        let (mut loaded, mut tried) = (0, PLUGINS.len());
        for plugin in PLUGINS {
            let may_give_nothing =
                GIVES_NOTHING.iter().any(|(empty, _)| *empty == package_name(plugin));
            let judge = if may_give_nothing { judge_empty } else { judge };
            match load(helve, package, plugin, &runtime).and_then(|found| judge(&found)) {
                Ok(()) => loaded += 1,
                Err(why) if why.contains(NEEDS_SQLITE) && *package == "node@20" => {
                    println!("   set aside on {package}: {plugin}: {why}");
                    tried -= 1;
                }
                Err(why) => println!("   {}: {why}", title(package, plugin)),
            }
        }
        is_enough &= f64::from(loaded) >= MIN_LOADED * tried as f64;
        counts.push(format!("{loaded} of {tried} on {package}"));
    }
    let report = format!("published plugins that load: {}", counts.join(", "));
    if is_enough { Ok(E2eResult::Passed(report)) } else { Err(report) }
}

/// Says whether a failure is known.
fn title(package: &str, plugin: &str) -> String {
    let known = KNOWN_FAILURES.iter().find(|(failed, _)| *failed == package_name(plugin));
    match known {
        Some((_, why)) => format!("known failure on {package}: {plugin} ({why})"),
        None => format!("FAILED on {package}: {plugin}"),
    }
}

/// Loads a plugin into a new project. Returns the findings of `helve doctor`.
fn load(helve: &Helve, package: &str, plugin: &str, runtime: &Path) -> Result<Value, String> {
    let modules = npm::install_without_scripts(plugin)?;
    let name = package_name(plugin);
    let inner = helve.with_workspace(&format!("plugins/{package}/{name}"))?;
    let mut git = Command::new("git");
    let project = inner.workspace.join("project");
    process::run(git.args(["init", "--quiet"]).arg(&project), RUN_LIMIT)?.success("git init")?;
    let needs = NEEDS.iter().find(|(needing, ..)| *needing == name);
    let mut entry = json!(name);
    if let Some((_, options, file, text)) = needs {
        let options: Value = serde_json::from_str(options).map_err(|error| error.to_string())?;
        if options.is_object() {
            entry = json!([name, options]);
        }
        if !file.is_empty() {
            write(&inner.workspace.join(file), text)?;
        }
    }
    // A package is looked up from the folder of the file that names it.
    let config = modules.with_file_name("helve.json");
    write(&config, &json!({"plugin": [entry], "javascript": {"runtime": runtime}}).to_string())?;
    confined(&inner, &format!("--config '{}' doctor", config.display()))
}

/// Runs `helve --json ARGUMENTS` in the folder `project` of a workspace, with `home` as its home, as a command of
/// another Helve, whose sandbox allows writing only in the workspace. Returns what it prints.
fn confined(helve: &Helve, arguments: &str) -> Result<Value, String> {
    let folder = &helve.workspace;
    for name in ["home/.config", "project"] {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let config = folder.with_extension("sandbox.json");
    write(&config, r#"{"sandbox": {"mode": "workspace-write", "network": true}}"#)?;
    let script = format!(
        "env -u XDG_CONFIG_HOME -u XDG_DATA_HOME -u XDG_CACHE_HOME -u XDG_STATE_HOME HOME=\"$PWD/home\" \
         '{}' --json --dir project {arguments} > printed.json",
        helve.binary().display()
    );
    let call = json!({"command": script}).to_string();
    let called =
        helve.run(&["--config", &config.to_string_lossy(), "--yes", "call", "bash", &call])?;
    let printed = folder.join("printed.json");
    let text = fs::read_to_string(&printed).unwrap_or_default();
    serde_json::from_str(&text)
        .map_err(|error| format!("{}: {error}: {text}{called:?}", printed.display()))
}

/// Judges the findings of `helve doctor`: the plugin must have given something, and its own function must not have
/// failed.
fn judge(findings: &Value) -> Result<(), String> {
    let findings: Vec<&Value> = findings.as_array().into_iter().flatten().collect();
    let messages = |check: &'static str| {
        let found = findings.iter().filter(move |it| it["check"] == check);
        found.filter_map(|it| it["message"].as_str())
    };
    let mut problems = messages("custom tools");
    let gave = messages("plugin").any(|message| !message.ends_with("no hooks and no tools"));
    if !gave {
        let problem = problems.next().or(messages("plugin").next());
        return Err(problem.unwrap_or(NOT_LISTED).into());
    }
    // Every function that a file exports is called as a plugin. Helpers among them may fail.
    match problems.find(|problem| !is_of_helper(problem)) {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

/// Like [`judge`], for a plugin that gives nothing: it must be listed, and nothing may have failed.
fn judge_empty(findings: &Value) -> Result<(), String> {
    let mut findings = findings.as_array().into_iter().flatten();
    let problem = findings.clone().find(|it| it["check"] == "custom tools");
    match (problem, findings.find(|it| it["check"] == "plugin")) {
        (Some(problem), _) => Err(problem["message"].to_string()),
        (None, Some(_)) => Ok(()),
        (None, None) => Err(NOT_LISTED.into()),
    }
}

/// Whether a problem is the failure of an exported function that is not a plugin by its name.
fn is_of_helper(problem: &str) -> bool {
    let name = problem.split_once("the export \"").and_then(|(_, rest)| rest.split_once('"'));
    name.is_some_and(|(name, _)| {
        let name = name.to_lowercase();
        name != "default" && name != "server" && !name.ends_with("plugin")
    })
}

/// `name@1.2.3` → `name`.
fn package_name(plugin: &str) -> &str {
    plugin.rsplit_once('@').map_or(plugin, |(name, _)| name)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, text));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(findings: &[(&str, &str)], expected: Result<(), &str>) {
        let findings: Vec<Value> = findings
            .iter()
            .map(|(check, message)| json!({"check": check, "message": message}))
            .collect();
        assert_eq!(judge(&Value::from(findings)), expected.map_err(String::from));
    }

    #[test]
    fn a_plugin_must_give_something_and_not_fail() {
        let nothing = "/p.js: no hooks and no tools";
        let failed = "/p.js: the export \"P\" failed: broken";
        let helper = "/p.js: the export \"parse\" failed: broken";
        let own = "/p.js: the export \"MyPlugin\" failed: broken";
        check(&[("plugin", "/p.js: hooks: event")], Ok(()));
        check(&[("plugin", "/p.js: without effect: auth")], Ok(()));
        check(&[("plugin", "/p.js: hooks: event"), ("custom tools", helper)], Ok(()));
        check(&[("plugin", "/p.js: hooks: event"), ("custom tools", own)], Err(own));
        check(&[("plugin", nothing)], Err(nothing));
        check(&[("custom tools", failed)], Err(failed));
        check(&[], Err(NOT_LISTED));
    }

    #[test]
    fn a_plugin_that_gives_nothing_must_be_listed_and_not_fail() {
        let finding = |check: &str| json!([{"check": check, "message": "/p.js: x"}]);
        assert_eq!(judge_empty(&finding("plugin")), Ok(()));
        assert!(judge_empty(&finding("custom tools")).is_err());
        assert_eq!(judge_empty(&json!([])), Err(NOT_LISTED.to_owned()));
    }
}
