//! The policy and the tool switches of an agent.

use std::path::{Path, PathBuf};

use helve_core::builtin::{ConfiguredRules, policy};
use helve_core::{Action, Policy, Rule, Source, ToolSwitch};
use helve_ext::config::{Agent, Config, DEFAULT_AGENT, Skill};
use helve_text::near;

use crate::error::BuildError;
use crate::trust::TrustState;

/// What an agent's policy is built from, besides the configuration.
#[derive(Clone)]
pub(crate) struct PolicyInputs {
    /// Rules of `Builder::allow`.
    pub(crate) allow_rules: Vec<Rule>,
    /// Helve's own data and configuration folders.
    pub(crate) helve_folders: Vec<PathBuf>,
    /// The folder to work in.
    pub(crate) root: PathBuf,
    /// The agent that would be used if the project did not choose another default agent or disable this one. What this
    /// agent forbids stays forbidden.
    pub(crate) replaced_agent: Option<Agent>,
}

/// Returns a rule that allows access to the folder of a skill, which may be outside the workspace. Returns `None` if
/// the path contains a wildcard, because the rule would then match other folders too.
fn skill_folder_rule(skill: &Skill) -> Option<Rule> {
    let folder = skill.folder.to_str().filter(|path| !path.contains(['*', '?']))?;
    let pattern = format!("{folder}/*");
    Some(Rule::new("external_directory", &pattern, Action::Allow, Source::Program))
}

/// Returns the policy and the tool switches of an agent.
pub(crate) fn policy_and_tool_switches(
    config: &Config,
    trust: TrustState,
    inputs: &PolicyInputs,
    agent: &Agent,
) -> (Policy, Vec<ToolSwitch>) {
    let is_trusted = trust == TrustState::Trusted;
    // The agent's rules from files also count as rules of the user. Of its built-in rules, only those that allow
    // editing do: they let the plan agent write its plans.
    let counts_as_user_rule = |rule: &&Rule| match rule.source {
        Source::File { .. } => true,
        _ => rule.permission == "edit" && rule.action == Action::Allow,
    };
    let project_rules = agent.project_rules.iter().filter(|_| is_trusted);
    let configured = ConfiguredRules {
        root: inputs.root.clone(),
        user: config.user_rules.clone(),
        project: config.project_rules.clone(),
        is_project_trusted: is_trusted,
        flag_rules: inputs.allow_rules.clone(),
        agents: [
            (agent.name.clone(), agent.rules.clone()),
            (format!("{} (project)", agent.name), agent.project_rules.clone()),
        ]
        .into_iter()
        .chain(inputs.replaced_agent.iter().map(|it| (it.name.clone(), it.rules.clone())))
        .collect(),
        current_agent: agent
            .rules
            .iter()
            .filter(counts_as_user_rule)
            .chain(project_rules)
            .cloned()
            .chain(config.skills.iter().filter_map(skill_folder_rule))
            .collect(),
    };
    let helve_folders: Vec<&Path> = inputs.helve_folders.iter().map(PathBuf::as_path).collect();
    let policy = policy(configured, &helve_folders);
    let mut switches = agent_switches(config, trust, agent);
    let replaced = inputs.replaced_agent.iter().flat_map(|agent| &agent.tool_switches);
    switches.extend(replaced.filter(|switch| !switch.on).cloned());
    (policy, switches)
}

/// Returns the tool switches of an agent: those of the configuration and its own.
pub(crate) fn agent_switches(config: &Config, trust: TrustState, agent: &Agent) -> Vec<ToolSwitch> {
    let mut tool_switches = config.user_tool_switches.clone();
    tool_switches.extend(agent.tool_switches.clone());
    let project = [&config.project_tool_switches, &agent.project_tool_switches];
    // An untrusted project can switch tools off but not on.
    let is_effective = |switch: &&ToolSwitch| trust == TrustState::Trusted || !switch.on;
    tool_switches.extend(project.into_iter().flatten().filter(is_effective).cloned());
    tool_switches
}

/// Returns the named agent, or the default one.
pub(crate) fn find_agent(config: &Config, name: Option<String>) -> Result<Agent, BuildError> {
    let found = match &name {
        Some(name) => config.agents.iter().find(|agent| agent.name == *name),
        None => config.main_agent(),
    };
    let name = name.unwrap_or_else(|| DEFAULT_AGENT.into());
    found.cloned().ok_or_else(|| {
        let names = config.agents.iter().map(|agent| agent.name.as_str());
        let near = near::nearest(&name, names, 3).into_iter().map(String::from).collect();
        BuildError::NoAgent { name, near }
    })
}
