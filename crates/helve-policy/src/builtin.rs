//! Built-in rules: the lowest rules of the user's wall, and two walls of their own.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use helve_text::secrets::{HARMLESS_FILES, SECRET_FILES};

use crate::rule::{Action, Pattern, Rule, Source};
use crate::wall::{Policy, Wall};

/// The rules that apply where nobody wrote one.
pub fn rules() -> Vec<Rule> {
    let mut rules = vec![rule("*", "*", Action::Ask)];
    for free in ["read", "glob", "grep", "list", "todowrite", "todoread", "invalid"] {
        rules.push(rule(free, "*", Action::Allow));
    }
    // Processes of the session itself are free, those of other sessions are asked about.
    rules.push(rule("process", "*", Action::Allow));
    rules.push(rule("process", "foreign *", Action::Ask));
    for file in &SECRET_FILES {
        for pattern in anywhere(file.pattern) {
            rules.push(folded("read", pattern, Action::Ask));
        }
    }
    for harmless in HARMLESS_FILES {
        for pattern in anywhere(harmless) {
            rules.push(folded("read", pattern, Action::Allow));
        }
    }
    // Resources of MCP servers are asked about once per server, like their tools.
    rules.push(rule("read", "mcp:*", Action::Ask));
    rules
}

/// Folders and files that run or configure programs. Writing them is asked about even where edits are allowed.
const PROTECTED_FOLDERS: [&str; 4] = [".git", ".helve", ".opencode", ".vscode"];
const PROTECTED_FILES: [&str; 6] =
    [".mcp.json", ".envrc", "helve.json", "helve.jsonc", "opencode.json", "opencode.jsonc"];

/// The parts of a git directory that run or configure programs. The rest changes with every commit.
const PROTECTED_IN_GIT: [&str; 6] =
    ["commondir", "config", "config.worktree", "hooks", "modules", "worktrees"];

/// Paths below `root` that a sandboxed command must not write: those of [`protected`], except what committing needs.
pub fn protected_paths(root: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for name in PROTECTED_FOLDERS.iter().chain(&PROTECTED_FILES) {
        match *name {
            ".git" => paths.extend(PROTECTED_IN_GIT.map(|part| root.join(name).join(part))),
            _ => paths.push(root.join(name)),
        }
    }
    paths
}

/// The wall of protected files, which no rule of a user lifts.
pub fn protected() -> Wall {
    let mut rules = Vec::new();
    for folder in PROTECTED_FOLDERS {
        for pattern in
            [folder.into(), format!("{folder}/*"), format!("*/{folder}"), format!("*/{folder}/*")]
        {
            rules.push(folded("edit", pattern, Action::Ask));
        }
    }
    for file in PROTECTED_FILES {
        for pattern in anywhere(file) {
            rules.push(folded("edit", pattern, Action::Ask));
        }
    }
    Wall::narrowing("built-in", rules)
}

/// Whether this names a protected file. A protected folder as a whole, or a pattern, does not count: a command names
/// them mostly to exclude them.
pub(crate) fn is_protected(subject: &str) -> bool {
    static RULES: LazyLock<Wall> = LazyLock::new(protected);
    let name = subject.rsplit('/').next().unwrap_or(subject);
    let is_exclusion = PROTECTED_FOLDERS.contains(&name) || subject.contains(['*', '?']);
    !is_exclusion && RULES.rules.iter().any(|rule| rule.pattern.matches(subject))
}

/// The wall of what is always denied: the internals of other processes, devices, and Helve's own folders, so that no
/// tool can change the policy that judges it.
pub fn refused(own_folders: &[&Path]) -> Wall {
    let mut rules = Vec::new();
    for inside in ["environ", "mem", "fd", "fd/*", "fdinfo/*", "task/*/environ", "task/*/mem"] {
        for permission in ["read", "edit"] {
            rules.push(rule(permission, &format!("/proc/*/{inside}"), Action::Deny));
        }
    }
    for permission in ["read", "edit"] {
        rules.push(rule(permission, "/dev/*", Action::Deny));
    }
    for folder in own_folders {
        let folder = folder.to_string_lossy();
        // A wildcard in the folder's own name only makes the rule match more, which is stricter.
        rules.push(rule("edit", &folder, Action::Deny));
        rules.push(rule("edit", &format!("{folder}/*"), Action::Deny));
    }
    Wall::narrowing("built-in", rules)
}

/// Rules that people wrote, by where they wrote them.
#[derive(Clone, Debug, Default)]
pub struct WrittenRules {
    pub user: Vec<Rule>,
    pub project: Vec<Rule>,
    /// Whether a person trusted the folder. Then its rules may lift an ask of the user's rules.
    pub trusted: bool,
    /// `--allow`.
    pub flags: Vec<Rule>,
    /// Lists that only narrow: the rules of the agent, and what a project adds to them.
    pub agents: Vec<(String, Vec<Rule>)>,
}

/// Builds the policy. ARCHITECTURE.md lists its walls.
pub fn policy(written: WrittenRules, own_folders: &[&Path]) -> Policy {
    let mut user = rules();
    user.extend(written.user);
    let mut walls = Vec::new();
    let mut overrides = Vec::new();
    if written.trusted {
        overrides.extend(written.project);
    } else if !written.project.is_empty() {
        walls.push(Wall::narrowing("untrusted project", written.project));
    }
    overrides.extend(written.flags);
    walls.insert(
        0,
        Wall {
            name: "user".into(),
            rules: user.into(),
            overrides: overrides.into(),
            otherwise: Action::Ask,
        },
    );
    walls.push(protected());
    walls.push(refused(own_folders));
    for (name, rules) in written.agents {
        walls.push(Wall::narrowing(format!("agent {name}"), rules));
    }
    Policy { walls, remembered: Vec::new() }
}

/// Patterns for a name at the root and in any folder.
fn anywhere(name: &str) -> Vec<String> {
    if name.starts_with('*') {
        return vec![name.into()];
    }
    vec![name.into(), format!("*/{name}")]
}

fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
    Rule::new(permission, pattern, action, Source::Builtin)
}

fn folded(permission: &str, pattern: String, action: Action) -> Rule {
    Rule {
        permission: permission.into(),
        pattern: Pattern::CaseInsensitive(pattern),
        action,
        source: Source::Builtin,
    }
}
