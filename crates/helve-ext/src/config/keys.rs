//! The keys that configuration files may have (a table), and which of them a wrong one was meant to be.

use helve_text::near;

/// At the top of a file. Most belong to opencode and wait for the part of Helve that uses them.
pub(super) const TOP: &[&str] = &[
    "$schema",
    "agent",
    "attachment",
    "autoshare",
    "autoupdate",
    "bash",
    "command",
    "compaction",
    "default_agent",
    "disabled_providers",
    "edit",
    "enabled_providers",
    "enterprise",
    "environment",
    "experimental",
    "files",
    "formatter",
    "instructions",
    "keybinds",
    "layout",
    "logLevel",
    "lsp",
    "mcp",
    "mode",
    "model",
    "permission",
    "plugin",
    "provider",
    "reference",
    "references",
    "sandbox",
    "server",
    "share",
    "shell",
    "skills",
    "small_model",
    "snapshot",
    "subagent_depth",
    "theme",
    "tool_output",
    "tools",
    "tui",
    "username",
    "watcher",
];

/// Of an agent. Others are options for its model's provider.
pub(super) const AGENT: &[&str] = &[
    "color",
    "description",
    "disable",
    "hidden",
    "maxSteps",
    "mode",
    "model",
    "name",
    "options",
    "permission",
    "prompt",
    "steps",
    "temperature",
    "tools",
    "top_p",
    "variant",
];

/// Of an MCP server.
pub(super) const SERVER: &[&str] = &[
    "codemode",
    "command",
    "cwd",
    "enabled",
    "environment",
    "headers",
    "oauth",
    "timeout",
    "type",
    "url",
];

/// Of `tool_output`.
pub(super) const TOOL_OUTPUT: &[&str] = &["max_bytes", "max_lines"];

/// Of `edit`.
pub(super) const EDIT: &[&str] = &["match", "syntax"];

/// Of `files`.
pub(super) const FILES: &[&str] = &["hardlinks"];

/// Of `bash`.
pub(super) const BASH: &[&str] = &["max_timeout", "timeout"];

/// Of `sandbox`.
pub(super) const SANDBOX: &[&str] = &["mode", "network"];

/// Of `environment`.
pub(super) const ENVIRONMENT: &[&str] = &["exclude", "include", "inherit", "set"];

/// Of `permission`: groups, tools and situations. Tools that users bring have other names.
pub(super) const PERMISSION: &[&str] = &[
    "apply_patch",
    "bash",
    "batch",
    "codesearch",
    "doom_loop",
    "edit",
    "external_directory",
    "glob",
    "grep",
    "list",
    "lsp",
    "multiedit",
    "plan_enter",
    "plan_exit",
    "question",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
    "write",
];

/// The known key that `word` looks like.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    near::nearest(word, known.iter().copied(), 1).first().copied()
}

/// The known key that `word` misspells; `my_read` is a name of its own and no way to write `read`.
pub(super) fn misspelt<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if known.contains(&word) {
        return None;
    }
    nearest(word, known).filter(|near| word.len().abs_diff(near.len()) <= 2)
}
