//! The agents that are always there. Their rules narrow what the user allows, and never widen it.

use helve_core::permission::{Action, Rule, Source};

use super::Given;
use super::agent::{Agent, Mode, Origin};

use Action::{Allow, Deny};

struct Builtin {
    name: &'static str,
    mode: Mode,
    description: &'static str,
    /// Permission, pattern, answer; the last match decides. Allow means: as the user's rules say.
    rules: &'static [(&'static str, &'static str, Action)],
}

const ALL: &[Builtin] = &[
    Builtin {
        name: "build",
        mode: Mode::Primary,
        description: "Works on the project with all tools, as far as your rules allow.",
        rules: &[("plan_exit", "*", Deny)],
    },
    Builtin {
        name: "plan",
        mode: Mode::Primary,
        description: "Reads and thinks; writes nothing but plans.",
        rules: &[
            ("plan_enter", "*", Deny),
            ("task", "general", Deny),
            ("edit", "*", Deny),
            ("edit", ".helve/plans/*.md", Allow),
            ("edit", ".opencode/plans/*.md", Allow),
        ],
    },
    Builtin {
        name: "general",
        mode: Mode::Subagent,
        description: "Takes on a task of several steps and reports what came of it.",
        rules: &[
            ("question", "*", Deny),
            ("plan_enter", "*", Deny),
            ("plan_exit", "*", Deny),
            ("todowrite", "*", Deny),
        ],
    },
    Builtin {
        name: "explore",
        mode: Mode::Subagent,
        description: "Looks things up in the project and on the web; changes nothing.",
        rules: &[
            ("*", "*", Deny),
            ("read", "*", Allow),
            ("list", "*", Allow),
            ("glob", "*", Allow),
            ("grep", "*", Allow),
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
    let agent = |one: &Builtin| {
        let mut agent = Agent::new(one.name, Origin::Builtin, Source::Builtin, one.mode);
        let description = one.description.to_owned();
        agent.description = Some(Given::new(description, Source::Builtin));
        (agent, one.rules.iter().map(rule).collect())
    };
    ALL.iter().map(agent).collect()
}
