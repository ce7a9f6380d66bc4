//! Which settings and hooks of a repository run programs, and when.

use helve_text::git_config::GitSetting;
use helve_text::git_index::HashAlgorithm;

/// The commands during which git runs something, from harmless to less harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GitPhase {
    /// Even read-only commands: `git status`, `git diff`.
    Reading,
    /// Commands that change or send something, and unknown ones.
    Writing,
}

impl GitPhase {
    /// Classifies a subcommand.
    pub(super) fn of(subcommand: &str) -> GitPhase {
        match READING.contains(&subcommand) {
            true => GitPhase::Reading,
            false => GitPhase::Writing,
        }
    }
}

const READING: [&str; 31] = [
    "status",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "log",
    "show",
    "shortlog",
    "reflog",
    "rev-list",
    "rev-parse",
    "blame",
    "annotate",
    "grep",
    "ls-files",
    "ls-tree",
    "cat-file",
    "describe",
    "name-rev",
    "merge-base",
    "branch",
    "show-ref",
    "show-branch",
    "range-diff",
    "update-index",
    "for-each-ref",
    "check-ignore",
    "check-attr",
    "count-objects",
    "version",
    "help",
];

/// The filters that `git lfs install` sets. The program is the user's own.
const LFS_FILTERS: [&str; 3] =
    ["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"];

/// Whether a setting makes git run a program, or use another folder or settings file.
pub(super) fn runs(setting: &GitSetting) -> Option<GitPhase> {
    let (section, rest) = setting.key.split_once('.')?;
    let name = rest.rsplit('.').next().unwrap_or(rest);
    let value = setting.value.as_str();
    let phase = match (section, name) {
        ("filter", "clean" | "smudge" | "process") if LFS_FILTERS.contains(&value) => return None,
        ("filter", "clean" | "smudge" | "process") => GitPhase::Reading,
        ("diff", "external" | "command" | "textconv") => GitPhase::Reading,
        ("include" | "includeif", "path") => GitPhase::Reading,
        ("core", "hookspath") => GitPhase::Reading,
        // With this setting git reads submodules that only the history contains.
        ("diff", "submodule") if value != "short" => GitPhase::Reading,
        ("status", "submodulesummary") => GitPhase::Reading,
        // A log format, set anywhere, may verify signatures.
        ("gpg", "program") => GitPhase::Reading,
        ("core", "worktree" | "gitproxy" | "alternaterefscommand") => GitPhase::Writing,
        ("gpg", "defaultkeycommand") => GitPhase::Writing,
        ("credential", "helper") => GitPhase::Writing,
        ("remote", "uploadpack" | "receivepack" | "vcs") => GitPhase::Writing,
        ("remote" | "url" | "submodule", _) if rest.contains("::") || value.contains("::") => {
            GitPhase::Writing
        }
        ("submodule", "update") | ("alias", _) if value.trim_start().starts_with('!') => {
            GitPhase::Writing
        }
        ("merge", "driver") | ("interactive", "difffilter") | ("tar", "command") => {
            GitPhase::Writing
        }
        (
            "trailer" | "difftool" | "mergetool" | "browser" | "man" | "guitool",
            "cmd" | "command" | "path",
        ) => GitPhase::Writing,
        _ => return None,
    };
    Some(phase)
}

/// Whether a setting makes the repository a partial clone, which fetches missing objects on demand.
pub(super) fn is_partial(setting: &GitSetting) -> bool {
    let ends = |end: &str| setting.key.ends_with(end);
    ends(".promisor") || ends(".partialclone") || ends(".partialclonefilter")
}

/// Returns the hash function that names the objects of a repository.
pub(super) fn naming(settings: &[GitSetting]) -> HashAlgorithm {
    let findings = settings.iter().rfind(|it| it.key == "extensions.objectformat");
    match findings.is_some_and(|it| it.value == "sha256") {
        true => HashAlgorithm::Sha256,
        false => HashAlgorithm::Sha1,
    }
}

/// Whether git runs a hook of this name.
pub(super) fn hook(name: &str) -> Option<GitPhase> {
    match name {
        // Runs whenever git writes the index.
        "post-index-change" => Some(GitPhase::Reading),
        // Runs whenever a branch is created or deleted.
        "reference-transaction" => Some(GitPhase::Reading),
        _ => HOOKS.contains(&name).then_some(GitPhase::Writing),
    }
}

const HOOKS: [&str; 27] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_programs_is_known() {
        let phase =
            |key: &str, value: &str| runs(&GitSetting { key: key.into(), value: value.into() });
        for (key, value) in [
            ("filter.x.clean", "./x"),
            ("filter.a.b.process", "git-lfs filter-process; ./x"),
            ("diff.external", "./x"),
            ("diff.x.textconv", "./x"),
            ("include.path", "../x"),
            ("includeif.gitdir:~/.path", "x"),
            ("core.hookspath", ".husky/_"),
            ("gpg.program", "./x"),
            ("diff.submodule", "diff"),
            ("diff.submodule", "log"),
            ("status.submodulesummary", "true"),
            ("gpg.ssh.program", "./x"),
        ] {
            assert_eq!(phase(key, value), Some(GitPhase::Reading), "{key}");
        }
        for (key, value) in [
            ("core.worktree", "/home/user"),
            ("credential.https://host.helper", "store"),
            ("remote.origin.uploadpack", "./x"),
            ("remote.origin.url", "ext::./x"),
            ("url.ext::x.insteadof", "https://"),
            ("alias.st", "!./x"),
            ("merge.x.driver", "./x"),
            ("gpg.ssh.defaultkeycommand", "./x"),
        ] {
            assert_eq!(phase(key, value), Some(GitPhase::Writing), "{key}");
        }
        for (key, value) in [
            ("filter.lfs.clean", "git-lfs clean -- %f"),
            ("core.bare", "false"),
            ("remote.origin.url", "https://host/x.git"),
            ("alias.st", "status"),
            ("diff.renames", "true"),
            ("submodule.x.url", "../x"),
            ("diff.submodule", "short"),
            ("format.pretty", "oneline"),
            ("pretty.x", "format:%+G?"),
        ] {
            assert_eq!(phase(key, value), None, "{key}");
        }
        assert_eq!(hook("pre-commit.sample"), None);
    }
}
