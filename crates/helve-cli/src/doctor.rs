//! `helve doctor`: checks that everything Helve needs works, and says what to do if not.

use helve::config::Severity;
use helve::scripts::PluginSummary;
use helve::{Support, TrustState, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::GlobalArgs;
use crate::output::{self, BOLD, GREEN, PLAIN, RED, YELLOW};

/// The result of one check.
struct Finding {
    name: &'static str,
    health: Health,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    Note,
    Bad,
}

pub(crate) async fn run(common: &GlobalArgs) -> anyhow::Result<Exit> {
    let toolbox = common.builder().client("cli").inspect().build().await?;
    let mut findings = vec![
        Finding::new("helve", Health::Good, format!("version {}", env!("CARGO_PKG_VERSION"))),
        Finding::new("folder", Health::Good, toolbox.root().display().to_string()),
    ];
    findings.push(store(&toolbox).await);
    findings.push(configuration(&toolbox));
    findings.extend(unused_keys(&toolbox));
    findings.push(agent(&toolbox));
    findings.push(trust(&toolbox));
    toolbox.load_scripts().await;
    findings.extend(scripts(&toolbox).await);
    findings.extend(languages(&toolbox).await);
    findings.push(tools(&toolbox));
    findings.extend(sandbox(&toolbox).await);
    toolbox.close().await;
    if common.json {
        let all = findings.iter().map(|finding| {
            json!({"check": finding.name, "status": health_name(finding.health), "message": finding.message})
        });
        output::print_json(&Value::from(all.collect::<Vec<_>>()))?;
    } else {
        for finding in &findings {
            let colour = match finding.health {
                Health::Good => GREEN,
                Health::Note => YELLOW,
                Health::Bad => RED,
            };
            let message = visible::escape(&finding.message);
            let health = health_name(finding.health);
            output::print(&format!(
                "{colour}{health:4}{PLAIN} {BOLD}{}{PLAIN}: {message}\n",
                finding.name
            ))?;
        }
    }
    let has_bad = findings.iter().any(|finding| finding.health == Health::Bad);
    Ok(if has_bad { Exit::Failed } else { Exit::Done })
}

impl Finding {
    fn new(name: &'static str, health: Health, message: impl Into<String>) -> Self {
        Self { name, health, message: message.into() }
    }
}

fn health_name(health: Health) -> &'static str {
    match health {
        Health::Good => "ok",
        Health::Note => "note",
        Health::Bad => "bad",
    }
}

async fn store(toolbox: &helve::Toolbox) -> Finding {
    let folder = toolbox.data().display();
    let result = toolbox.store().calls(None, 1).await;
    let warning = toolbox.store().pending_warning().await;
    let (health, message) = match (result, warning) {
        (_, Some(warning)) => (Health::Bad, warning),
        (Err(err), None) => (Health::Bad, format!("{folder}: {err}")),
        (Ok(_), None) => (Health::Good, format!("data in {folder}")),
    };
    Finding::new("store", health, message)
}

fn configuration(toolbox: &helve::Toolbox) -> Finding {
    let config = toolbox.config();
    let of = |severity| config.problems.iter().filter(move |it| it.severity == severity).count();
    let errors = of(Severity::Error);
    let warnings = of(Severity::Warning) + config.warnings_about_rules().len();
    let health = match (errors, warnings) {
        (0, 0) => Health::Good,
        (0, _) => Health::Note,
        (_, _) => Health::Bad,
    };
    let files = config.sources.len();
    let count = output::count;
    let mut message = format!(
        "{} read, {}, {}",
        count(files, "file"),
        count(errors, "error"),
        count(warnings, "warning")
    );
    if health != Health::Good {
        message.push_str("; run `helve config` to see them");
    }
    Finding::new("configuration", health, message)
}

fn trust(toolbox: &helve::Toolbox) -> Finding {
    let (health, message) = match toolbox.trust() {
        TrustState::NothingToTrust => (Health::Good, "the folder has no configuration to trust"),
        TrustState::Trusted => (Health::Good, "the folder is trusted"),
        TrustState::Untrusted => (
            Health::Note,
            "the folder is not trusted: its rules can forbid but not allow (run `helve trust`)",
        ),
        TrustState::Changed => (
            Health::Note,
            "the folder's configuration changed since it was trusted (run `helve trust` again)",
        ),
    };
    Finding::new("trust", health, message)
}

/// Checks which kinds of confinement are available, and whether one is configured.
async fn sandbox(toolbox: &helve::Toolbox) -> [Finding; 3] {
    let available = toolbox.sandbox_support().await;
    let mode = toolbox.config().sandbox.mode();
    let is_configured = mode != helve::Sandbox::default();
    let (health, message) = match available.writes {
        Support::Yes(mechanism) if is_configured => {
            (Health::Good, format!("{}, using {mechanism}", mode.as_str()))
        }
        Support::Yes(mechanism) => (Health::Good, format!("off; available using {mechanism}")),
        Support::No(why) if is_configured => {
            (Health::Bad, format!("{} is configured but not available: {why}", mode.as_str()))
        }
        Support::No(why) => (Health::Note, format!("off; not available: {why}")),
    };
    let processes = match available.processes {
        Support::Yes(mechanism) => {
            Finding::new("processes", Health::Good, format!("limited by {mechanism}"))
        }
        Support::No(why) => Finding::new("processes", Health::Note, format!("not limited: {why}")),
    };
    let limit = toolbox.config().sandbox.limits().memory;
    let memory = match (limit, available.memory) {
        (Some(limit), Support::Yes(mechanism)) if is_configured => {
            let limit = limit >> 20;
            Finding::new("memory", Health::Good, format!("limited to {limit} MiB by {mechanism}"))
        }
        (_, Support::Yes(mechanism)) => Finding::new(
            "memory",
            Health::Good,
            format!("not limited; `sandbox.memory` can limit it by {mechanism}"),
        ),
        (_, Support::No(why)) => {
            Finding::new("memory", Health::Note, format!("not limited: {why}"))
        }
    };
    [Finding::new("sandbox", health, message), processes, memory]
}

/// Checks custom tools and plugins, if there are any.
async fn scripts(toolbox: &helve::Toolbox) -> Vec<Finding> {
    let scripts = toolbox.scripts();
    let mut findings = Vec::new();
    let suspended = scripts.suspended().len();
    if suspended > 0 {
        let files = output::count(suspended, "file");
        let message =
            format!("{files} not loaded because the folder is not trusted (run `helve trust`)");
        findings.push(Finding::new("custom tools", Health::Note, message));
    }
    if !scripts.is_empty() {
        findings.push(match scripts.start().await {
            Ok(info) => {
                let message =
                    format!("{} {} ({})", info.name, info.version, info.program.display());
                Finding::new("javascript", Health::Good, message)
            }
            Err(why) => Finding::new("javascript", Health::Bad, why),
        });
    }
    findings.extend(scripts.plugins().iter().map(plugin));
    let problems = scripts.problems();
    let problems =
        problems.iter().map(|it| Finding::new("custom tools", Health::Bad, it.to_string()));
    findings.extend(problems);
    findings
}

/// Says what a plugin provides.
fn plugin(summary: &PluginSummary) -> Finding {
    let PluginSummary { file, hooks, tools, unused } = summary;
    let parts = [("hooks", hooks), ("tools", tools), ("without effect", unused)];
    let provided = parts.iter().filter(|(_, names)| !names.is_empty());
    let provided: Vec<String> =
        provided.map(|(kind, names)| format!("{kind}: {}", names.join(", "))).collect();
    let health = match hooks.is_empty() && tools.is_empty() {
        true => Health::Note,
        false => Health::Good,
    };
    let provided =
        if provided.is_empty() { "no hooks and no tools".into() } else { provided.join("; ") };
    Finding::new("plugin", health, format!("{}: {provided}", file.display()))
}

/// Lists the keys of the configuration that have no effect, each once.
fn unused_keys(toolbox: &helve::Toolbox) -> Option<Finding> {
    let mut shown: Vec<(&str, String)> = Vec::new();
    for key in &toolbox.config().unused_keys {
        if !shown.iter().any(|(name, _)| *name == key.value) {
            shown.push((&key.value, output::describe_source(&key.source)));
        }
    }
    let keys: Vec<String> =
        shown.iter().map(|(key, source)| format!("\"{key}\" ({source})")).collect();
    let message = format!("these keys have no effect: {}", keys.join(", "));
    (!keys.is_empty()).then(|| Finding::new("configuration", Health::Note, message))
}

fn agent(toolbox: &helve::Toolbox) -> Finding {
    let name = toolbox.agent_name();
    let exists = toolbox.config().agents.iter().any(|agent| agent.name == name);
    if exists {
        return Finding::new("agent", Health::Good, name);
    }
    let message = "no agent can be started; enable one, or name one with --agent".to_owned();
    Finding::new("agent", Health::Bad, message)
}

/// Lists the language servers that fit the files of the folder.
async fn languages(toolbox: &helve::Toolbox) -> Vec<Finding> {
    let languages = toolbox.languages();
    let is_trusted = languages.is_trusted().await;
    let survey = languages.survey().await;
    let findings = survey.into_iter().map(|server| {
        let (health, message) = match (server.program, is_trusted) {
            (Some(program), true) => {
                (Health::Good, format!("{}: {}", server.id, program.display()))
            }
            (Some(_), false) => (
                Health::Note,
                format!(
                    "{} is installed but not used: the folder is not trusted (run `helve trust`)",
                    server.id
                ),
            ),
            (None, _) => {
                (Health::Note, format!("{} is not installed: {}", server.id, server.install))
            }
        };
        Finding::new("language server", health, message)
    });
    findings.collect()
}

fn tools(toolbox: &helve::Toolbox) -> Finding {
    Finding::new("tools", Health::Good, toolbox.tools().names().join(", "))
}
