//! The built-in agents. Their rules only restrict what the user allows.

use helve_core::{Action, Rule, Source};

use super::WithSource;
use super::agent::{Agent, AgentMode, AgentOrigin};

use Action::{Allow, Deny};

/// The agent that is used if no configuration names one.
pub const DEFAULT_AGENT: &str = "build";

struct BuiltinAgent {
    name: &'static str,
    mode: AgentMode,
    description: &'static str,
    /// Permission, pattern, action. The last match decides. `Allow` leaves the decision to the user's rules.
    rules: &'static [(&'static str, &'static str, Action)],
}

const ALL: &[BuiltinAgent] = &[
    BuiltinAgent {
        name: DEFAULT_AGENT,
        mode: AgentMode::Primary,
        description: "Works on the project with all tools that your rules allow.",
        rules: &[("plan_exit", "*", Deny)],
    },
    BuiltinAgent {
        name: "plan",
        mode: AgentMode::Primary,
        description: "Reads and plans; writes only plan files.",
        rules: &[
            ("plan_enter", "*", Deny),
            ("task", "general", Deny),
            ("edit", "*", Deny),
            ("edit", ".helve/plans/*.md", Allow),
            ("edit", ".opencode/plans/*.md", Allow),
        ],
    },
    BuiltinAgent {
        name: "general",
        mode: AgentMode::Subagent,
        description: "Works on a multi-step task and reports the result.",
        rules: &[
            ("question", "*", Deny),
            ("plan_enter", "*", Deny),
            ("plan_exit", "*", Deny),
            ("todowrite", "*", Deny),
        ],
    },
    BuiltinAgent {
        name: "explore",
        mode: AgentMode::Subagent,
        description: "Searches the project and the web; changes nothing.",
        rules: &[
            ("*", "*", Deny),
            ("read", "*", Allow),
            ("list", "*", Allow),
            ("glob", "*", Allow),
            ("grep", "*", Allow),
            ("skill", "*", Allow),
            ("bash", "*", Allow),
            ("webfetch", "*", Allow),
            ("websearch", "*", Allow),
            ("codesearch", "*", Allow),
            ("external_directory", "*", Allow),
            ("doom_loop", "*", Allow),
        ],
    },
];

pub(super) fn agents() -> Vec<(Agent, Vec<Rule>)> {
    let rule =
        |&(permission, pattern, action)| Rule::new(permission, pattern, action, Source::Builtin);
    let agent = |builtin: &BuiltinAgent| {
        let mut agent =
            Agent::new(builtin.name, AgentOrigin::Builtin, Source::Builtin, builtin.mode);
        let description = builtin.description.to_owned();
        agent.description = Some(WithSource::new(description, Source::Builtin));
        (agent, builtin.rules.iter().map(rule).collect())
    };
    ALL.iter().map(agent).collect()
}
