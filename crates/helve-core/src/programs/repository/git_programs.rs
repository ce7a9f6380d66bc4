//! Which settings and hooks of a repository make git run programs, and during which commands.

use helve_text::git_config::GitSetting;
use helve_text::git_index::HashAlgorithm;

/// Kinds of git commands. The kinds are ordered: a command may run the programs that are configured for its own kind
/// and for every smaller one. For example, a `Remote` command such as `git pull` may also run the filters that
/// `Reading` commands run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GitCommandKind {
    /// Commands that read, such as `git status` and `git diff`. A few of them, such as `git branch`, can also write to
    /// the repository, but they run the same configured programs as commands that only read.
    Reading,
    /// Commands that change something, but contact no other repository.
    Writing,
    /// Commands that contact other repositories, and unknown commands.
    Remote,
}

impl GitCommandKind {
    /// Classifies a subcommand.
    pub(super) fn of_subcommand(subcommand: &str) -> GitCommandKind {
        if READING.contains(&subcommand) {
            GitCommandKind::Reading
        } else if WRITING.contains(&subcommand) {
            GitCommandKind::Writing
        } else {
            GitCommandKind::Remote
        }
    }
}

/// Subcommands of kind [`GitCommandKind::Writing`].
const WRITING: [&str; 24] = [
    "add",
    "am",
    "apply",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "commit-tree",
    "format-patch",
    "init",
    "merge",
    "mv",
    "notes",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stage",
    "stash",
    "switch",
    "symbolic-ref",
    "tag",
    "update-ref",
];

/// Subcommands of kind [`GitCommandKind::Reading`].
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

/// The filters that `git lfs install` sets. They run the installed git-lfs, not a program of the repository, so they
/// are not asked about.
const LFS_FILTERS: [&str; 3] =
    ["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"];

/// Returns the smallest kind of command in which a setting makes git run a program, or use another folder or settings
/// file; `None` if the setting does neither.
pub(super) fn kind_for_setting(setting: &GitSetting) -> Option<GitCommandKind> {
    let (section, rest) = setting.key.split_once('.')?;
    let name = rest.rsplit('.').next().unwrap_or(rest);
    let value = setting.value.as_str();
    let kind = match (section, name) {
        ("filter", "clean" | "smudge" | "process") if LFS_FILTERS.contains(&value) => return None,
        ("filter", "clean" | "smudge" | "process") => GitCommandKind::Reading,
        ("diff", "external" | "command" | "textconv") => GitCommandKind::Reading,
        ("include" | "includeif", "path") => GitCommandKind::Reading,
        ("core", "hookspath") => GitCommandKind::Reading,
        // With this setting git starts itself in submodules, where their own configuration applies.
        ("diff", "submodule") if value != "short" => GitCommandKind::Reading,
        ("status", "submodulesummary") => GitCommandKind::Reading,
        // `git log` runs this program if its format shows signatures. The format can be set outside the repository too.
        ("gpg", "program") => GitCommandKind::Reading,
        ("core", "worktree") => GitCommandKind::Writing,
        ("gpg", "defaultkeycommand") => GitCommandKind::Writing,
        ("core", "gitproxy" | "alternaterefscommand" | "sshcommand") => GitCommandKind::Remote,
        ("credential", "helper") => GitCommandKind::Remote,
        ("remote", "uploadpack" | "receivepack" | "vcs") => GitCommandKind::Remote,
        // These settings replace the address of a remote.
        ("url", "insteadof" | "pushinsteadof") => GitCommandKind::Remote,
        ("remote" | "branch" | "submodule" | "url", _)
            if starts_helper(rest) || starts_helper(value) =>
        {
            GitCommandKind::Remote
        }
        ("protocol", "allow") if value != "never" && !names_builtin_transport(rest) => {
            GitCommandKind::Remote
        }
        ("submodule", "update") | ("alias", _) if value.trim_start().starts_with('!') => {
            GitCommandKind::Remote
        }
        ("sendemail", "tocmd" | "cccmd" | "headercmd" | "sendmailcmd" | "smtpserver")
        | ("imap", "tunnel")
        | ("instaweb", "httpd" | "browser") => GitCommandKind::Remote,
        ("merge", "driver") | ("interactive", "difffilter") | ("tar", "command") => {
            GitCommandKind::Writing
        }
        (
            "trailer" | "difftool" | "mergetool" | "browser" | "man" | "guitool",
            "cmd" | "command" | "path",
        ) => GitCommandKind::Writing,
        ("init", "templatedir") => GitCommandKind::Writing,
        _ if names_program(section, name) => GitCommandKind::Reading,
        _ => return None,
    };
    Some(kind)
}

/// Whether a setting may name a program that git runs in any of its commands.
pub(super) fn may_name_program(setting: &GitSetting) -> bool {
    const OTHERS: [&str; 6] = [
        "core.fsmonitor",
        "core.editor",
        "core.pager",
        "core.askpass",
        "core.sshcommand",
        "sequence.editor",
    ];
    let key = setting.key.as_str();
    OTHERS.contains(&key) || key.starts_with("pager.") || kind_for_setting(setting).is_some()
}

/// Whether a setting names a program by the convention for such settings, as `lfs.extension.x.clean` does. This covers
/// settings of git extensions and of later versions of git.
fn names_program(section: &str, name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["clean", "smudge", "process", "command", "cmd", "path", "textconv", "exec"];
    const ENDINGS: [&str; 6] = ["command", "cmd", "hook", "program", "driver", "helper"];
    // An alias may have any name; a submodule has a path in the working tree. The others are classified above.
    const OTHER_SECTIONS: [&str; 5] = ["alias", "submodule", "url", "color", "advice"];
    !OTHER_SECTIONS.contains(&section)
        && (NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending)))
}

/// The transports that git itself implements.
const TRANSPORTS: [&str; 9] =
    ["http", "https", "git", "ssh", "git+ssh", "ssh+git", "ftp", "ftps", "file"];

/// Whether git starts a helper program for an address: `ext::command`, or `name://…` with a name that it does not know.
fn starts_helper(address: &str) -> bool {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    address.contains("::")
        || scheme.is_some_and(|it| !TRANSPORTS.contains(&it.to_ascii_lowercase().as_str()))
}

/// Whether the key `protocol.NAME.allow` names a transport that git itself implements. `rest` is the key without
/// `protocol.`.
fn names_builtin_transport(rest: &str) -> bool {
    rest.strip_suffix(".allow").is_some_and(|name| TRANSPORTS.contains(&name))
}

/// Whether a setting makes the repository a partial clone, which fetches missing objects when they are needed.
pub(super) fn is_partial_clone(setting: &GitSetting) -> bool {
    let key = &setting.key;
    key.ends_with(".promisor")
        || key.ends_with(".partialclone")
        || key.ends_with(".partialclonefilter")
}

/// Returns the hash function of a repository's object ids.
pub(super) fn object_hash_algorithm(settings: &[GitSetting]) -> HashAlgorithm {
    let object_format = settings.iter().rfind(|setting| setting.key == "extensions.objectformat");
    match object_format.is_some_and(|setting| setting.value == "sha256") {
        true => HashAlgorithm::Sha256,
        false => HashAlgorithm::Sha1,
    }
}

/// Returns the smallest kind of command in which git runs a hook of this name; `None` if there is no such hook.
pub(super) fn kind_for_hook(name: &str) -> Option<GitCommandKind> {
    match name {
        // Runs whenever git writes the index.
        "post-index-change" => Some(GitCommandKind::Reading),
        // Runs whenever a branch is created or deleted.
        "reference-transaction" => Some(GitCommandKind::Reading),
        _ => HOOKS.contains(&name).then_some(GitCommandKind::Writing),
    }
}

/// Returns the names of all hooks.
pub(super) fn hook_names() -> impl Iterator<Item = &'static str> {
    HOOKS.into_iter().chain(["post-index-change", "reference-transaction"])
}

/// The hooks that run only when git changes something. The others are in [`kind_for_hook`].
const HOOKS: [&str; 26] = [
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
    fn settings_that_name_programs_are_recognised() {
        let kind = |key: &str, value: &str| {
            kind_for_setting(&GitSetting { key: key.into(), value: value.into() })
        };
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
            ("lfs.extension.x.clean", "./x"),
            ("lfs.extension.x.smudge", "./x"),
            ("lfs.customtransfer.x.path", "./x"),
            ("gc.recentobjectshook", "./x"),
            ("hook.x.command", "./x"),
            ("new.x.process", "./x"),
            ("new.somecmd", "./x"),
        ] {
            assert_eq!(kind(key, value), Some(GitCommandKind::Reading), "{key}");
        }
        for (key, value) in [
            ("core.worktree", "/home/user"),
            ("init.templatedir", "./x"),
            ("merge.x.driver", "./x"),
            ("gpg.ssh.defaultkeycommand", "./x"),
        ] {
            assert_eq!(kind(key, value), Some(GitCommandKind::Writing), "{key}");
        }
        for (key, value) in [
            ("credential.helper", "!./x"),
            ("credential.https://host.helper", "store"),
            ("remote.origin.uploadpack", "./x"),
            ("remote.origin.receivepack", "./x"),
            ("remote.origin.vcs", "x"),
            ("remote.origin.url", "ext::./x"),
            ("remote.origin.pushurl", "ext::sh -c ./x"),
            ("remote.origin.url", "strange://host/x"),
            ("remote.pushdefault", "ext::./x"),
            ("branch.main.remote", "ext::sh -c ./x"),
            ("branch.main.pushremote", "fd::7"),
            ("url.ext::x.insteadof", "https://"),
            ("url.https://evil/.insteadof", "https://host/"),
            ("url./tmp/x.pushinsteadof", "https://"),
            ("protocol.allow", "always"),
            ("protocol.ext.allow", "always"),
            ("protocol.ext.allow", "user"),
            ("core.sshcommand", "./x"),
            ("core.gitproxy", "./x"),
            ("submodule.lib.url", "ext::./x"),
            ("submodule.lib.update", "!./x"),
            ("alias.st", "!./x"),
            ("sendemail.tocmd", "./x"),
            ("imap.tunnel", "./x"),
        ] {
            assert_eq!(kind(key, value), Some(GitCommandKind::Remote), "{key}");
        }
        for (key, value) in [
            ("filter.lfs.clean", "git-lfs clean -- %f"),
            ("core.bare", "false"),
            ("remote.origin.url", "https://host/x.git"),
            ("remote.origin.url", "git@host:x/y.git"),
            ("remote.origin.url", "../x"),
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("branch.main.remote", "origin"),
            ("branch.main.merge", "refs/heads/main"),
            ("protocol.ext.allow", "never"),
            ("protocol.file.allow", "always"),
            ("protocol.version", "2"),
            ("alias.st", "status"),
            ("alias.command", "status"),
            ("submodule.x.path", "x"),
            ("lfs.url", "https://host/x"),
            ("lfs.repositoryformatversion", "0"),
            ("remote.origin.partialclonefilter", "blob:none"),
            ("merge.tool", "vimdiff"),
            ("core.autocrlf", "input"),
            ("diff.renames", "true"),
            ("submodule.x.url", "../x"),
            ("diff.submodule", "short"),
            ("format.pretty", "oneline"),
            ("pretty.x", "format:%+G?"),
        ] {
            assert_eq!(kind(key, value), None, "{key}");
        }
        assert_eq!(kind_for_hook("pre-commit.sample"), None);
        assert_eq!(GitCommandKind::of_subcommand("commit"), GitCommandKind::Writing);
        for subcommand in ["fetch", "pull", "push", "ls-remote", "submodule", "new-command"] {
            assert_eq!(GitCommandKind::of_subcommand(subcommand), GitCommandKind::Remote);
        }
    }
}
