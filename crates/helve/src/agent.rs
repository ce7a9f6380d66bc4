//! The rules and switches of an agent.

use std::path::{Path, PathBuf};

use helve_core::builtin::{WrittenRules, policy};
use helve_core::{Policy, Rule, ToolSwitch};
use helve_ext::config::{Agent, Config};
use helve_text::near;

use crate::error::BuildError;
use crate::trust::TrustState;

/// What an agent's rules are made from, besides the configuration.
#[derive(Clone)]
pub(crate) struct AgentBasis {
    pub(crate) flags: Vec<Rule>,
    /// Helve's own folders.
    pub(crate) own: Vec<PathBuf>,
}

/// Returns the policy and the tool switches of an agent.
pub(crate) fn policy_and_switches(
    config: &Config,
    trust: TrustState,
    basis: &AgentBasis,
    agent: &Agent,
) -> (Policy, Vec<ToolSwitch>) {
    let written = WrittenRules {
        user: config.user.clone(),
        project: config.project.clone(),
        trusted: trust == TrustState::Trusted,
        flags: basis.flags.clone(),
        agents: vec![
            (agent.name.clone(), agent.rules.clone()),
            (format!("{} (project)", agent.name), agent.project_rules.clone()),
        ],
    };
    let own: Vec<&Path> = basis.own.iter().map(PathBuf::as_path).collect();
    let policy = policy(written, &own);
    let mut switches = config.switches.clone();
    switches.extend(agent.switches.clone());
    let project = [&config.project_switches, &agent.project_switches];
    // An untrusted project can switch tools off but not on.
    let counts = |switch: &&ToolSwitch| trust == TrustState::Trusted || !switch.on;
    switches.extend(project.into_iter().flatten().filter(counts).cloned());
    (policy, switches)
}

/// Returns the named agent, or the default one.
pub(crate) fn find_agent(config: &Config, name: Option<String>) -> Result<Agent, BuildError> {
    let name = name
        .or_else(|| config.default_agent.as_ref().map(|agent| agent.value.clone()))
        .unwrap_or_else(|| "build".into());
    let found = config.agents.iter().find(|agent| agent.name == name);
    found.cloned().ok_or_else(|| {
        let known = config.agents.iter().map(|agent| agent.name.as_str());
        let near = near::nearest(&name, known, 3).into_iter().map(String::from).collect();
        BuildError::NoAgent { name, near }
    })
}
