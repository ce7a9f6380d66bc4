//! Built-in rules. Some are the first rules of the user's wall, where later rules override them. The others form two
//! walls that no rule overrides.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use helve_text::secrets::{HARMLESS_FILES, SECRET_FILES};

use crate::ask::UNSANDBOXED;
use crate::file_name::could_refer_to;
use crate::rule::{Action, Pattern, Rule, Source};
use crate::wall::{Policy, Wall};

/// Returns the default rules, which a person's rules override.
pub fn rules() -> Vec<Rule> {
    let mut rules = vec![rule("*", "*", Action::Ask)];
    for tool in ["read", "glob", "grep", "list", "todowrite", "todoread", "skill", "lsp", "invalid"]
    {
        rules.push(rule(tool, "*", Action::Allow));
    }
    // What a sub-agent does is judged call by call; its questions go to the person anyway.
    for tool in ["task", "question", "plan_enter", "plan_exit"] {
        rules.push(rule(tool, "*", Action::Allow));
    }
    // The text that rules match against begins with `foreign` for a process that another session started.
    rules.push(rule("process", "*", Action::Allow));
    rules.push(rule("process", "foreign *", Action::Ask));
    for file in &SECRET_FILES {
        for pattern in anywhere(file.pattern) {
            rules.push(case_insensitive_rule("read", pattern, Action::Ask));
        }
    }
    for harmless in HARMLESS_FILES {
        for pattern in anywhere(harmless) {
            rules.push(case_insensitive_rule("read", pattern, Action::Allow));
        }
    }
    // Reading a resource of an MCP server, and answering one of its questions, must be approved like a call of its
    // tools.
    rules.push(rule("read", "mcp:*", Action::Ask));
    rules.push(rule("question", "mcp:*", Action::Ask));
    rules
}

/// Folders and files that run or configure programs. Writing to them needs approval even if edits are allowed.
const PROTECTED_FOLDERS: [&str; 4] = [".git", ".helve", ".opencode", ".vscode"];
const PROTECTED_FILES: [&str; 6] =
    [".mcp.json", ".envrc", "helve.json", "helve.jsonc", "opencode.json", "opencode.jsonc"];

/// The entries of a git folder that run or configure programs, or lead to another repository. `rebase-merge` and
/// `rebase-apply` contain steps whose commands a rebase runs. Entries that are not in this list change with every
/// commit.
const PROTECTED_IN_GIT: [&str; 12] = [
    "branches",
    "commondir",
    "config",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "rebase-apply",
    "rebase-merge",
    "remotes",
    "sequencer",
    "worktrees",
];

/// Names that only a sandbox protects, one per line.
const SANDBOX_NAMES: &str = include_str!("sandbox_protected.txt");

/// Returns the paths below `root` that a sandboxed command must not write to: the paths of [`protected_wall`] without
/// the parts of `.git` that a commit changes, plus those in `sandbox_protected.txt`.
pub fn protected_paths(root: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for name in PROTECTED_FOLDERS.iter().chain(&PROTECTED_FILES) {
        match *name {
            ".git" => paths.extend(protected_git_paths(&root.join(name))),
            _ => paths.push(root.join(name)),
        }
    }
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with('#');
    paths.extend(SANDBOX_NAMES.lines().filter(is_name).map(|name| root.join(name)));
    paths
}

/// Returns the paths in a git folder that a sandboxed command must not write to.
pub fn protected_git_paths(git_dir: &Path) -> Vec<PathBuf> {
    PROTECTED_IN_GIT.iter().map(|name| git_dir.join(name)).collect()
}

/// Whether a sandboxed command must not write to this entry of a git folder, under any spelling of its name.
pub fn is_protected_in_git(name: &[u8]) -> bool {
    PROTECTED_IN_GIT.iter().any(|protected| could_refer_to(name, protected))
}

/// The files in protected folders that configure nothing: the plans of the plan agent.
const UNPROTECTED: [&str; 2] = [".helve/plans/*.md", ".opencode/plans/*.md"];

/// Returns the wall that asks before edits of protected files. No rule of a user can override it.
pub fn protected_wall() -> Wall {
    let mut rules = Vec::new();
    for folder in PROTECTED_FOLDERS {
        for pattern in [folder.into(), format!("{folder}/*")] {
            rules.push(case_insensitive_rule("edit", pattern, Action::Ask));
        }
    }
    for pattern in UNPROTECTED {
        rules.push(rule("edit", pattern, Action::Allow));
    }
    // These come later, so that a protected folder below `.helve/plans` is protected.
    for folder in PROTECTED_FOLDERS {
        for pattern in [format!("*/{folder}"), format!("*/{folder}/*")] {
            rules.push(case_insensitive_rule("edit", pattern, Action::Ask));
        }
    }
    for file in PROTECTED_FILES {
        for pattern in anywhere(file) {
            rules.push(case_insensitive_rule("edit", pattern, Action::Ask));
        }
    }
    Wall::restricting("built-in", rules)
}

/// Whether an argument names a protected file, such as `.git/config`. The name of a protected folder (`.git`) or a
/// pattern does not count, because these are mostly exclusions: `zip --exclude .git`.
pub(crate) fn is_protected(subject: &str) -> bool {
    static RULES: LazyLock<Wall> = LazyLock::new(protected_wall);
    let name = subject.rsplit('/').next().unwrap_or(subject);
    let is_exclusion = PROTECTED_FOLDERS.contains(&name) || subject.contains(['*', '?']);
    !is_exclusion && RULES.rules.iter().any(|rule| rule.pattern.matches(subject))
}

/// Whether a path that a command certainly writes to is protected. Here the name of a protected folder counts too.
pub(crate) fn is_protected_output(subject: &str) -> bool {
    static RULES: LazyLock<Wall> = LazyLock::new(protected_wall);
    let last = RULES.rules.iter().rfind(|rule| rule.pattern.matches(subject));
    last.is_some_and(|rule| rule.action != Action::Allow)
}

/// Returns the wall that denies access to the internals of processes, to devices and to Helve's own folders, so that no
/// tool can change the policy that judges it.
pub fn denied_wall(own_folders: &[&Path]) -> Wall {
    let mut rules = Vec::new();
    for name in ["environ", "mem", "fd", "fd/*", "fdinfo/*", "task/*/environ", "task/*/mem"] {
        for permission in ["read", "edit"] {
            rules.push(rule(permission, &format!("/proc/*/{name}"), Action::Deny));
        }
    }
    for permission in ["read", "edit"] {
        rules.push(rule(permission, "/dev/*", Action::Deny));
    }
    for folder in own_folders {
        let folder = folder.to_string_lossy();
        // If the name of the folder contains a wildcard, the rule only denies more.
        rules.push(rule("edit", &folder, Action::Deny));
        rules.push(rule("edit", &format!("{folder}/*"), Action::Deny));
    }
    Wall::restricting("built-in", rules)
}

/// The rules that people wrote, grouped by where they wrote them.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredRules {
    /// Absolute path of the workspace; empty if it is unknown. Patterns may start with it.
    pub root: PathBuf,
    pub user: Vec<Rule>,
    pub project: Vec<Rule>,
    /// Whether a person trusted the folder. If so, the project's rules can allow what the user's rules ask about.
    pub is_project_trusted: bool,
    /// Rules of the flag `--allow`.
    pub flag_rules: Vec<Rule>,
    /// Names and rules of agents, the one in use included. Each is a wall: it can only make a decision stricter.
    pub agents: Vec<(String, Vec<Rule>)>,
    /// The rules of the agent in use, if the user or a trusted project wrote them. Those that allow something override
    /// built-in rules that ask, but no other rules.
    pub current_agent: Vec<Rule>,
}

/// Builds a policy from the built-in rules and those that people wrote. ARCHITECTURE.md lists its walls.
pub fn policy(mut written: ConfiguredRules, own_folders: &[&Path]) -> Policy {
    // Only the user decides what runs outside the sandbox.
    for rules in [&mut written.project, &mut written.current_agent] {
        rules.retain(|rule| rule.action != Action::Allow || rule.permission != UNSANDBOXED);
    }
    let mut user = rules();
    user.extend(written.current_agent.into_iter().filter(|rule| rule.action == Action::Allow));
    user.extend(written.user);
    let mut walls = Vec::new();
    let mut overrides: Vec<Arc<[Rule]>> = Vec::new();
    if written.is_project_trusted {
        overrides.push(written.project.into());
    } else if !written.project.is_empty() {
        walls.push(Wall::restricting("untrusted project", written.project));
    }
    overrides.push(written.flag_rules.into());
    overrides.retain(|rules| !rules.is_empty());
    walls.insert(
        0,
        Wall { name: "user".into(), rules: user.into(), overrides, default_action: Action::Ask },
    );
    walls.push(protected_wall());
    walls.push(denied_wall(own_folders));
    for (name, rules) in written.agents {
        walls.push(Wall::restricting(format!("agent {name}"), rules));
    }
    let root = written.root.to_string_lossy().into_owned();
    Policy { walls, remembered: Vec::new(), root }
}

/// Returns patterns that match a name in any folder: `.env` → `.env`, `*/.env`.
fn anywhere(name: &str) -> Vec<String> {
    if name.starts_with('*') {
        return vec![name.into()];
    }
    vec![name.into(), format!("*/{name}")]
}

fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
    Rule::new(permission, pattern, action, Source::Builtin)
}

fn case_insensitive_rule(permission: &str, pattern: String, action: Action) -> Rule {
    Rule {
        permission: permission.into(),
        pattern: Pattern::CaseInsensitive(pattern),
        action,
        source: Source::Builtin,
    }
}
