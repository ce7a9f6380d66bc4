//! The known configuration keys, and the nearest known key to an unknown one.

use helve_text::near;

/// Top-level keys. Most belong to opencode and have no effect in Helve yet.
pub(super) const TOP: &[&str] = &[
    "$schema",
    "agent",
    "attachment",
    "autoshare",
    "autoupdate",
    "bash",
    "claude",
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
    "hooks",
    "instructions",
    "javascript",
    "keybinds",
    "layout",
    "logLevel",
    "lsp",
    "mcp",
    "mode",
    "model",
    "opencode",
    "permission",
    "plugin",
    "programs",
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
    "web",
];

/// Top-level keys that other code reads, and `$schema`, which is only for editors.
pub(super) const READ_ELSEWHERE: &[&str] =
    &["$schema", "claude", "instructions", "opencode", "permission", "skills", "tools"];

/// Keys of an agent. Other keys are options for the model's provider.
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

/// Keys of a command.
pub(super) const COMMAND: &[&str] =
    &["agent", "description", "model", "prompt", "subtask", "template", "variant"];

/// Keys of an MCP server.
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

/// Keys of `tool_output`.
pub(super) const TOOL_OUTPUT: &[&str] = &["max_bytes", "max_lines"];

/// Keys of `edit`.
pub(super) const EDIT: &[&str] = &["diagnostics", "diagnostics_timeout", "match", "syntax"];

/// Keys of a language server.
pub(super) const LSP: &[&str] = &["command", "disabled", "env", "extensions", "initialization"];

/// Keys of a formatter.
pub(super) const FORMATTER: &[&str] = &["command", "disabled", "environment", "extensions"];

/// Keys of `files`.
pub(super) const FILES: &[&str] = &["hardlinks"];

/// Keys of `bash`.
pub(super) const BASH: &[&str] = &["max_timeout", "timeout"];

/// Keys of `sandbox`.
pub(super) const SANDBOX: &[&str] =
    &["caches", "file_size", "memory", "mode", "network", "processes", "writable"];

/// Keys of `web`.
pub(super) const WEB: &[&str] = &["ca", "codesearch", "search"];

/// Keys of `javascript`.
pub(super) const JAVASCRIPT: &[&str] = &["hook_timeout", "runtime", "timeout"];

/// Keys of a search service.
pub(super) const WEB_SEARCH: &[&str] = &["key", "provider", "url"];

/// Keys of `environment`.
pub(super) const ENVIRONMENT: &[&str] = &["exclude", "include", "inherit", "set"];

/// Keys of `permission`: groups, tools and special cases. User-defined tools may have other names.
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
    "unsandboxed",
    "webfetch",
    "websearch",
    "write",
];

/// Returns the current name of a permission or tool that has another name in older versions of opencode or in other
/// agents.
pub(super) fn current_name(key: &str) -> &str {
    match key {
        "patch" => "apply_patch",
        "LS" => "list",
        other => other,
    }
}

/// Returns the known key nearest to `key`.
pub(super) fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    near::nearest(key, known.iter().copied(), 1).first().copied()
}

/// Returns the known key that `key` misspells. `my_read` is a different name, not a misspelling of `read`.
pub(super) fn misspelled<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    if known.contains(&key) {
        return None;
    }
    nearest(key, known).filter(|near| key.len().abs_diff(near.len()) <= 2)
}
