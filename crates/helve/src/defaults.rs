//! The built-in rules and the values of keys that no configuration sets, for `helve config --defaults`.

use std::collections::HashSet;

use helve_core::process::Network;
use helve_ext::config::{Config, SettingLine, builtin_rules};
use helve_tools::opencode;

use crate::toolbox::Toolbox;
use crate::{build, shell, subagents};

impl Toolbox {
    /// Returns the built-in rules about tools that exist here, and the values of keys that no configuration sets.
    pub fn default_settings(&self) -> Vec<SettingLine> {
        let rules = builtin_rules().into_iter().filter(|line| self.applies_here(line));
        rules.chain(default_values(self.config())).collect()
    }

    /// Whether a line is not a rule, or is a rule about a tool that exists here.
    pub fn applies_here(&self, line: &SettingLine) -> bool {
        let Some(permission) = &line.permission else { return true };
        let tools = self.tools();
        let names: HashSet<&str> =
            tools.specs().flat_map(|spec| [spec.name.as_str(), spec.group.as_str()]).collect();
        permission == "*" || names.contains(permission.as_str())
    }
}

fn default_values(config: &Config) -> Vec<SettingLine> {
    let limits = build::limits(config, &opencode::DIALECT);
    let Config { bash, edit, sandbox, tool_output, .. } = config;
    let network = matches!(sandbox.network(), Network::On);
    let settings: [(bool, &[&str], String); 13] = [
        (config.shell.is_empty(), &["shell"], "bash".into()),
        (bash.timeout.is_none(), &["bash", "timeout"], millis(opencode::DEFAULT_TIMEOUT)),
        (bash.max_timeout.is_none(), &["bash", "max_timeout"], millis(shell::MAX_TIMEOUT)),
        (tool_output.max_lines.is_none(), &["tool_output", "max_lines"], limits.lines.to_string()),
        (tool_output.max_bytes.is_none(), &["tool_output", "max_bytes"], limits.bytes.to_string()),
        (edit.syntax.is_none(), &["edit", "syntax"], "report".into()),
        (edit.matching.is_none(), &["edit", "match"], "safe".into()),
        (edit.hard_links.is_none(), &["files", "hardlinks"], "replace".into()),
        (sandbox.mode.is_none(), &["sandbox"], sandbox.mode().as_str().into()),
        (sandbox.network.is_none(), &["sandbox", "network"], network.to_string()),
        (sandbox.caches.is_none(), &["sandbox", "caches"], sandbox.caches().to_string()),
        (
            config.default_agent.is_none(),
            &["default_agent"],
            helve_ext::config::DEFAULT_AGENT.into(),
        ),
        (
            config.subagent_depth.is_none(),
            &["subagent_depth"],
            subagents::DEFAULT_DEPTH.to_string(),
        ),
    ];
    let unset = settings.into_iter().filter(|(is_unset, ..)| *is_unset);
    unset.map(|(_, key, value)| SettingLine::default_value(key, value)).collect()
}

fn millis(duration: std::time::Duration) -> String {
    duration.as_millis().to_string()
}
