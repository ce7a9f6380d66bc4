//! Which settings and hooks of a repository are programs, and when git runs them.

use helve_text::git_config::GitSetting;
use helve_text::git_index::HashAlgorithm;

/// When git runs something, from the more to the less harmless command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// Already when it looks: `git status`, `git diff`.
    Looking,
    /// When it changes or sends something, or nobody knows.
    Changing,
}

impl Moment {
    /// That of a subcommand.
    pub(super) fn of(subcommand: &str) -> Moment {
        match LOOKING.contains(&subcommand) {
            true => Moment::Looking,
            false => Moment::Changing,
        }
    }
}

const LOOKING: [&str; 31] = [
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

/// What `git lfs install` sets; the program is the user's own.
const LARGE_FILES: [&str; 3] =
    ["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"];

/// Whether a setting makes git run something, or work or look for settings elsewhere.
pub(super) fn runs(setting: &GitSetting) -> Option<Moment> {
    let (section, rest) = setting.key.split_once('.')?;
    let name = rest.rsplit('.').next().unwrap_or(rest);
    let value = setting.value.as_str();
    let moment = match (section, name) {
        ("filter", "clean" | "smudge" | "process") if LARGE_FILES.contains(&value) => return None,
        ("filter", "clean" | "smudge" | "process") => Moment::Looking,
        ("diff", "external" | "command" | "textconv") => Moment::Looking,
        ("include" | "includeif", "path") => Moment::Looking,
        ("core", "hookspath") => Moment::Looking,
        // Then it looks into submodules that only its history knows.
        ("diff", "submodule") if value != "short" => Moment::Looking,
        ("status", "submodulesummary") => Moment::Looking,
        // A format, wherever it is set, may ask for signatures.
        ("gpg", "program") => Moment::Looking,
        ("core", "worktree" | "gitproxy" | "alternaterefscommand") => Moment::Changing,
        ("gpg", "defaultkeycommand") => Moment::Changing,
        ("credential", "helper") => Moment::Changing,
        ("remote", "uploadpack" | "receivepack" | "vcs") => Moment::Changing,
        ("remote" | "url" | "submodule", _) if rest.contains("::") || value.contains("::") => {
            Moment::Changing
        }
        ("submodule", "update") | ("alias", _) if value.trim_start().starts_with('!') => {
            Moment::Changing
        }
        ("merge", "driver") | ("interactive", "difffilter") | ("tar", "command") => {
            Moment::Changing
        }
        (
            "trailer" | "difftool" | "mergetool" | "browser" | "man" | "guitool",
            "cmd" | "command" | "path",
        ) => Moment::Changing,
        _ => return None,
    };
    Some(moment)
}

/// Whether a setting makes git fetch what is missing when it comes to it.
pub(super) fn is_partial(setting: &GitSetting) -> bool {
    let ends = |end: &str| setting.key.ends_with(end);
    ends(".promisor") || ends(".partialclone") || ends(".partialclonefilter")
}

/// What a repository with these settings names its objects by.
pub(super) fn naming(settings: &[GitSetting]) -> HashAlgorithm {
    let named = settings.iter().rfind(|it| it.key == "extensions.objectformat");
    match named.is_some_and(|it| it.value == "sha256") {
        true => HashAlgorithm::Sha256,
        false => HashAlgorithm::Sha1,
    }
}

/// Whether git runs a file of this name in its folder of hooks.
pub(super) fn hook(name: &str) -> Option<Moment> {
    match name {
        // Whenever it notes down what it saw.
        "post-index-change" => Some(Moment::Looking),
        // Whenever a branch comes or goes.
        "reference-transaction" => Some(Moment::Looking),
        _ => HOOKS.contains(&name).then_some(Moment::Changing),
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
        let moment =
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
            assert_eq!(moment(key, value), Some(Moment::Looking), "{key}");
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
            assert_eq!(moment(key, value), Some(Moment::Changing), "{key}");
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
            assert_eq!(moment(key, value), None, "{key}");
        }
        assert_eq!(hook("pre-commit.sample"), None);
    }
}
