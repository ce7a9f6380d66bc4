//! Judges a script, and compares what the script did when it ran with what the decision predicts.

use std::collections::BTreeSet;

use helve_policy::shell::{analyze, parts};
use helve_policy::{Action, MatchBy, Part, Policy};
use helve_text::shell::{Doubt, ProgramRun, RiskKind};

use crate::sample_files::{self, SampleFiles, WORKSPACE};
use crate::trace::{Operation, Trace, TraceEvent};

/// The verdict on a script, and the programs and files that the analysis expects it to use.
pub(crate) struct ScriptDecision {
    pub action: Action,
    parts: Vec<Part>,
    runs: Vec<ProgramRun>,
    pub doubts: Vec<Doubt>,
    /// Whether a rule allows every command.
    has_blanket_allow: bool,
}

pub(crate) fn judge(script: &str, policy: &Policy, samples: &SampleFiles) -> ScriptDecision {
    let analysis = analyze(script, &sample_files::context(), samples);
    let parts = parts(script, &analysis, samples);
    ScriptDecision {
        action: policy.judge_all(&[], &parts),
        parts,
        runs: analysis.runs,
        doubts: analysis.doubts,
        has_blanket_allow: allows_every_command(policy),
    }
}

fn allows_every_command(policy: &Policy) -> bool {
    let mut rules = policy.walls.iter().flat_map(|wall| wall.rules.iter());
    rules.any(|rule| {
        rule.permission == "bash" && rule.pattern.as_str() == "*" && rule.action == Action::Allow
    })
}

/// Programs whose actions are not compared with the decision: they do whatever their files say, so a rule that allows
/// such a program allows everything that it does.
const NOT_COMPARED: &[&str] = &[
    // Recipes and scripts of the project.
    "make", "gmake", "npm", "npx", "yarn", "pnpm", "cargo", "go", "uv", "run.sh",
    // Interpreters.
    "node", "nodejs", "python", "python3", "pytest", "perl", "ruby",
    // Their configuration names programs and files.
    "ssh", "man", "top",
];

/// Programs that are scripts or links, and what runs instead. The tracer sees `env`, then the interpreter.
const SCRIPT_PROGRAMS: &[(&str, &str)] = &[
    ("npm", "node"),
    ("npx", "node"),
    ("yarn", "node"),
    ("pnpm", "node"),
    ("pytest", "python"),
    // One of the programs of this name is a script around jq.
    ("yq", "python"),
    // A link.
    ("gmake", "make"),
];

/// Programs with the helper programs that they start.
const HELPERS: &[(&str, &[&str])] = &[
    // Shell scripts around the program.
    ("egrep", &["grep"]),
    ("fgrep", &["grep"]),
    ("zcat", &["gzip"]),
    ("gunzip", &["gzip"]),
    // These pass text to a shell.
    ("watch", &["sh"]),
    ("flock", &["bash"]),
    ("split", &["bash"]),
    ("psql", &["sh"]),
    // A script that parses its arguments and manages a server.
    (
        "fakeroot",
        &["cut", "faked-sysv", "faked-tcp", "getopt", "sed", "kill", "sh", "tail", "head"],
    ),
    // A login shell runs /etc/profile.
    ("bash", &["id"]),
    // Chosen by the extension of the archive or by a flag.
    ("tar", &["sh", "gzip", "bzip2", "xz", "zstd"]),
    // These connect through ssh.
    ("sftp", &["ssh"]),
    ("scp", &["ssh"]),
    // A script that prints messages.
    ("git-submodule", &["basename", "sed", "uname", "git-sh-i18n--envsubst"]),
    // The environment sets the program `false` as the editor.
    ("git", &["git", "git-remote-https", "git-remote-http", "git-submodule", "false"]),
];

/// Programs that git starts to talk to another repository.
const TRANSPORT_PROGRAMS: &[&str] = &["sh", "git-upload-pack", "git-receive-pack", "ssh"];
/// Subcommands of git that talk to another repository.
const TRANSPORT_SUBCOMMANDS: &[&str] = &[
    "fetch",
    "push",
    "pull",
    "ls-remote",
    "remote",
    "clone",
    "send-pack",
    "fetch-pack",
    "archive",
];

/// Subcommands of git that change the working tree.
const CHANGES_WORKING_TREE: &[&str] = &[
    "checkout",
    "switch",
    "merge",
    "pull",
    "rebase",
    "stash",
    "cherry-pick",
    "revert",
    "reset",
    "restore",
    "rm",
    "mv",
    "clone",
    "init",
    "worktree",
    "clean",
    "apply",
    "am",
    "submodule",
    "format-patch",
];

/// Subcommands of git that change the configuration: which branch tracks which, or a harmless setting.
const CHANGES_CONFIG: &[&str] = &["branch", "push", "fetch", "config"];

/// Programs that use the network.
const NETWORK: &[&str] =
    &["curl", "wget", "scp", "sftp", "git", "rsync", "psql", "mysql", "mariadb", "ftp", "telnet"];

/// Files that must not be read unless the decision predicts them.
const PRIVATE: &[&str] = &["/w/other/", "/w/app-two/", "/h/.ssh/"];

impl ScriptDecision {
    /// Whether the script is allowed because it is understood. A blanket allow also covers scripts that are not
    /// understood; nothing is claimed about what those do.
    pub(crate) fn is_understood_and_allowed(&self) -> bool {
        let is_plain = |run: &ProgramRun| {
            let is_unclear =
                |kind| matches!(kind, RiskKind::Unlisted | RiskKind::Runs | RiskKind::Code);
            !run.risks.iter().any(|risk| is_unclear(risk.kind))
        };
        self.action == Action::Allow
            && self.parts.iter().all(|part| part.unclear().is_none())
            && (!self.has_blanket_allow || self.runs.iter().all(is_plain))
    }

    /// Returns the names of the programs that the decision predicts.
    pub(crate) fn programs(&self) -> BTreeSet<&str> {
        self.runs
            .iter()
            .filter_map(|run| run.words.first())
            .map(|word| base(word.shown()))
            .collect()
    }

    /// Returns a line for each operation of a script that the decision does not predict.
    pub(crate) fn unpredicted(&self, trace: &Trace, samples: &SampleFiles) -> Vec<String> {
        let mut failures = Vec::new();
        for event in trace.events.iter().filter(|event| !self.predicts(event, trace, samples)) {
            let by = event.program_chain.join(" < ");
            failures.push(format!("{:?} {} by {by}", event.operation, event.path));
        }
        failures
    }

    /// Whether the decision predicts an operation.
    fn predicts(&self, event: &TraceEvent, trace: &Trace, samples: &SampleFiles) -> bool {
        if self.is_done_by_excluded_program(event) {
            return true;
        }
        match event.operation {
            // The shell tries to execute a directory like any other name, and fails. The directory may be one of the
            // samples, part of the system, or created by the script.
            Operation::Execute => {
                let is_creation = |it: &TraceEvent| {
                    it.operation == Operation::CreateFolder && it.path == event.path
                };
                self.predicts_program(event)
                    || samples.has_folder(&event.path)
                    || std::path::Path::new(&event.path).is_dir()
                    || trace.events.iter().any(is_creation)
            }
            Operation::Read | Operation::ReadNoFollow => {
                let real = match event.operation {
                    Operation::ReadNoFollow => None,
                    _ => samples.real(&event.path),
                };
                let real = real.unwrap_or_else(|| event.path.clone());
                !PRIVATE.iter().any(|start| real.starts_with(start))
                    || self.predicts_file(
                        &real,
                        samples,
                        &["read", "external_directory"],
                        PathReach::Below,
                    )
            }
            Operation::Write => self.predicts_write(event, trace, samples, PathReach::Below),
            Operation::CreateFolder => {
                self.predicts_write(event, trace, samples, PathReach::BelowAndParents)
            }
            Operation::ConnectOrBind => {
                // Programs connect to a local server to look up user names. The sandbox has none.
                let is_user_lookup = ["nscd", "systemd"].iter().any(|it| event.path.contains(it));
                is_user_lookup && event.path.starts_with("socket")
                    || event.program_chain.iter().any(|by| NETWORK.contains(&&**by))
                    || event.program_chain.iter().any(|by| by.starts_with("git-remote"))
            }
        }
    }

    /// Whether the operation was done by a program of the script whose actions are not compared, or by a program that
    /// it started.
    fn is_done_by_excluded_program(&self, event: &TraceEvent) -> bool {
        let programs = self.programs();
        // A program can have two names, with and without its version.
        let is_listed = |by: &String| {
            !is_compared(by) && programs.iter().any(|it| without_version(it) == without_version(by))
        };
        let is_interpreter = |by: &String| {
            let runs = |(name, interpreter): &(&str, &str)| {
                programs.contains(name) && (by == "env" || without_version(by) == *interpreter)
            };
            SCRIPT_PROGRAMS.iter().any(runs)
        };
        // A program that is a script appears under its own name only until its interpreter starts.
        let is_unknown_script = self.has_unknown_program()
            && event
                .program_chain
                .first()
                .is_some_and(|by| !is_shell(by) && !programs.contains(&**by));
        event
            .program_chain
            .iter()
            .any(|by| is_listed(by) || is_interpreter(by) || self.is_unknown_program(by))
            || is_unknown_script
    }

    /// Whether the decision predicts the effects of all programs of the script. Unknown programs, and those in
    /// [`NOT_COMPARED`], may do anything.
    pub(crate) fn has_only_known_effects(&self) -> bool {
        !self.has_unknown_program() && self.programs().iter().all(|name| is_compared(name))
    }

    /// Whether the script runs a program that is not in the table. A rule that allows such a program allows all it
    /// does.
    fn has_unknown_program(&self) -> bool {
        self.runs.iter().any(|run| !run.is_known)
    }

    fn is_unknown_program(&self, name: &str) -> bool {
        let has_name =
            |run: &ProgramRun| run.words.first().is_some_and(|word| base(word.shown()) == name);
        self.runs.iter().any(|run| !run.is_known && has_name(run))
    }

    /// Whether the script runs git with one of these subcommands.
    fn runs_git(&self, subcommands: &[&str]) -> bool {
        let words = |run: &ProgramRun| -> Vec<String> {
            run.words.iter().map(|word| word.shown().to_string()).collect()
        };
        self.runs.iter().map(words).any(|words| {
            words.first().is_some_and(|it| base(it) == "git")
                && words.iter().any(|it| subcommands.contains(&&**it))
        })
    }

    fn predicts_program(&self, event: &TraceEvent) -> bool {
        let name = base(&event.path);
        let is_helper = |(program, helpers): &(&str, &[&str])| {
            event.program_chain.iter().any(|by| by == program) && helpers.contains(&name)
        };
        let is_transport = TRANSPORT_PROGRAMS.contains(&name)
            && event.program_chain.iter().any(|by| by == "git")
            && self.runs_git(TRANSPORT_SUBCOMMANDS);
        // The first execution is that of the shell that runs the script.
        event.program_chain.is_empty()
            || is_transport
            || self.programs().contains(name)
            || HELPERS.iter().any(is_helper)
    }

    fn predicts_write(
        &self,
        event: &TraceEvent,
        trace: &Trace,
        samples: &SampleFiles,
        reach: PathReach,
    ) -> bool {
        let path = &event.path;
        // `shasum` and `tar` try to open the working directory for writing, and fail.
        let is_root_probe = path == WORKSPACE
            && event.program_chain.iter().any(|by| matches!(&**by, "shasum" | "tar"));
        let is_harmless_target =
            is_root_probe || ["/dev/null", "/dev/tty", "/dev/zero", "/dev/full"].contains(&&**path);
        if is_harmless_target
            || path.starts_with("/dev/fd/")
            || path.starts_with("/dev/std")
            || path.starts_with("/proc/")
        {
            return true;
        }
        let is_gone = !trace.remaining_files.contains(path)
            && samples.real(path).is_some_and(|real| !samples.has(&real));
        let is_temporary =
            is_gone && (path.starts_with("/tmp/") || self.is_next_to_predicted(path, samples));
        let by_git =
            event.program_chain.iter().any(|by| by == "git") && self.is_written_by_git(path);
        let path_in_real_folder = match path.rsplit_once('/') {
            Some((folder, name)) => {
                let folder = samples.real(folder).unwrap_or_else(|| folder.to_string());
                format!("{folder}/{name}")
            }
            None => path.clone(),
        };
        let real = samples.real(path).unwrap_or_else(|| path.clone());
        // `split` appends letters to the predicted name.
        let by_split = event.program_chain.iter().any(|by| by == "split")
            && self.parts.iter().any(|part| {
                part.permission == "edit"
                    && part.subjects.iter().any(|it| {
                        path_in_real_folder.starts_with(&absolute(it.trim_end_matches("xaa")))
                    })
            });
        // `mktemp` creates a file with a random name.
        let by_mktemp =
            path.starts_with("/tmp/") && event.program_chain.iter().any(|by| by == "mktemp");
        let may_change = self.parts.iter().flat_map(Part::possible_changes).any(|changed| {
            let changed = absolute(changed.trim_end_matches('/'));
            changed != WORKSPACE && (real == changed || real.starts_with(&format!("{changed}/")))
        });
        is_temporary
            || may_change
            || by_mktemp
            || by_split
            || by_git
            || self.predicts_file(&path_in_real_folder, samples, &["edit"], reach)
            || self.predicts_file(&real, samples, &["edit"], reach)
    }

    /// Whether git itself writes this path: its own directory, or the working tree for a subcommand that changes it.
    fn is_written_by_git(&self, path: &str) -> bool {
        let is_git_dir = path.contains("/.git/") || path.ends_with("/.git");
        if path.contains("/.git/hooks") {
            // Sample hooks, which git does not run.
            let sample = path.ends_with("/hooks") || path.ends_with(".sample");
            return sample && self.runs_git(&["init", "clone"]);
        }
        if path.contains("/.git/config") {
            return self.runs_git(CHANGES_CONFIG) || self.runs_git(CHANGES_WORKING_TREE);
        }
        let is_in_root = path == WORKSPACE || path.starts_with("/w/app/");
        is_git_dir || is_in_root && self.runs_git(CHANGES_WORKING_TREE)
    }

    /// Whether a file is in the same directory as a file that the decision allows to be edited. Programs write a
    /// temporary file there and rename it.
    fn is_next_to_predicted(&self, path: &str, samples: &SampleFiles) -> bool {
        let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(it, _)| it.into());
        let folder_of = |part: &Part| {
            let subject = part.subjects.first().map_or("", String::as_str);
            samples.real(&absolute(subject)).map(|real| folder(&real))
        };
        let mut edits = self.parts.iter().filter(|part| part.permission == "edit");
        edits.any(|part| folder_of(part) == Some(folder(path)))
    }

    fn predicts_file(
        &self,
        real: &str,
        samples: &SampleFiles,
        permissions: &[&str],
        reach: PathReach,
    ) -> bool {
        let parts = self.parts.iter().filter(|part| permissions.contains(&&*part.permission));
        let covers = |part: &Part, subject: &String| {
            if subject == "/*" {
                return part.matched_by == MatchBy::Subjects;
            }
            let subject = subject.strip_suffix("/*").unwrap_or(subject);
            let path = absolute(subject);
            let path = samples.real(&path).unwrap_or(path);
            let covers_others = || {
                real.starts_with(&format!("{path}/"))
                    || reach == PathReach::BelowAndParents && path.starts_with(&format!("{real}/"))
            };
            match part.matched_by {
                MatchBy::Subjects => real == path || covers_others(),
                // This file alone: nothing below it is covered.
                MatchBy::UnnamedFile(_) => real == path,
                MatchBy::Command(_)
                | MatchBy::Unclear(_)
                | MatchBy::Mentioned(_)
                | MatchBy::LocalNetwork { .. } => false,
            }
        };
        parts
            .flat_map(|part| part.subjects.iter().map(move |it| (part, it)))
            .any(|(part, it)| covers(part, it))
    }
}

/// Which paths a predicted path covers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathReach {
    /// The path and everything below it.
    Below,
    /// Also its parent directories.
    BelowAndParents,
}

/// Returns the absolute path of a part's subject.
fn absolute(subject: &str) -> String {
    match subject {
        "." => WORKSPACE.to_string(),
        subject if subject.starts_with('/') => subject.to_string(),
        subject => format!("{WORKSPACE}/{subject}"),
    }
}

/// Whether the actions of a program are compared with the decision: it is not in [`NOT_COMPARED`], with or without its
/// version.
pub(crate) fn is_compared(name: &str) -> bool {
    !NOT_COMPARED.contains(&name) && !NOT_COMPARED.contains(&without_version(name))
}

/// Turns `python3.11` into `python`.
fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn is_shell(name: &str) -> bool {
    matches!(name, "bash" | "sh" | "dash")
}

/// Returns the last part of a path. Ignores trailing slashes, because the tracer drops them too.
fn base(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}
