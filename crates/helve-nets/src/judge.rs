//! The decision on a script, and whether what it then did was listed in it.

use std::collections::BTreeSet;

use helve_policy::shell::{analyze, parts};
use helve_policy::{Action, Part, Policy, Terms};
use helve_text::shell::{Doubt, Run};

use crate::event::{Event, Traced, What};
use crate::world::{self, ROOT, World};

/// A decision, with everything it lists.
pub(crate) struct Judged {
    pub action: Action,
    parts: Vec<Part>,
    runs: Vec<Run>,
    pub doubts: Vec<Doubt>,
}

pub(crate) fn judge(script: &str, policy: &Policy, world: &World) -> Judged {
    let analyzed = analyze(script, &world::around(), world);
    let parts = parts(script, &analyzed, world);
    Judged {
        action: policy.judge_all(&[], &parts),
        parts,
        runs: analyzed.runs,
        doubts: analyzed.doubts,
    }
}

/// Programs that do what their files say; a rule that allows one allows that.
pub(crate) const OPAQUE: &[&str] = &[
    // Recipes and scripts of the project.
    "make", "gmake", "npm", "npx", "yarn", "pnpm", "cargo", "go", "uv", "run.sh",
    // Interpreters.
    "node", "nodejs", "python", "python3", "pytest", "perl", "ruby",
    // Their configuration names programs and files; what they may touch is theirs.
    "ssh", "man", "top",
];

/// Programs that are scripts themselves: the tracer sees `env`, and then what reads them.
const INTERPRETED: &[(&str, &str)] =
    &[("npm", "node"), ("npx", "node"), ("yarn", "node"), ("pnpm", "node"), ("pytest", "python")];

/// A program and those that it starts to do its work.
const HELPERS: &[(&str, &[&str])] = &[
    // Scripts around the program.
    ("egrep", &["grep"]),
    ("fgrep", &["grep"]),
    ("zcat", &["gzip"]),
    ("gunzip", &["gzip"]),
    // Text for a shell is given to one.
    ("watch", &["sh"]),
    ("flock", &["bash"]),
    // A script that takes its own words apart, starts its server and ends it.
    (
        "fakeroot",
        &["cut", "faked-sysv", "faked-tcp", "getopt", "sed", "kill", "sh", "tail", "head"],
    ),
    // A login shell, for /etc/profile.
    ("bash", &["id"]),
    // By the ending of the archive, or the flag for it.
    ("tar", &["sh", "gzip", "bzip2", "xz", "zstd"]),
    // They speak through it.
    ("sftp", &["ssh"]),
    ("scp", &["ssh"]),
    // A script with its messages.
    ("git-submodule", &["basename", "sed", "uname", "git-sh-i18n--envsubst"]),
    // `false` is the editor that is given to it.
    ("git", &["git", "git-remote-https", "git-remote-http", "git-submodule", "false"]),
];

/// What git starts to speak with another repository, and the subcommands that are there for it.
const SPEAKERS: &[&str] = &["sh", "git-upload-pack", "git-receive-pack", "ssh"];
const SPEAKING: &[&str] = &["fetch", "push", "pull", "ls-remote", "remote", "clone"];

/// Subcommands of git that are there to change the work tree.
const CHANGING: &[&str] = &[
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

/// Subcommands of git that note in its configuration which branch follows which.
const TRACKING: &[&str] = &["branch", "push", "fetch"];

/// Programs that are there to use the network.
const NETWORK: &[&str] =
    &["curl", "wget", "scp", "sftp", "git", "rsync", "psql", "mysql", "mariadb", "ftp", "telnet"];

/// What must not be read unless the decision says so.
const PRIVATE: &[&str] = &["/w/other/", "/w/app-two/", "/h/.ssh/"];

impl Judged {
    /// The programs that the decision lists, by their names.
    pub(crate) fn programs(&self) -> BTreeSet<&str> {
        self.runs
            .iter()
            .filter_map(|run| run.words.first())
            .map(|word| base(word.shown()))
            .collect()
    }

    /// What a run did besides, each in a line; nothing if all of it was listed.
    pub(crate) fn unlisted(&self, traced: &Traced, world: &World) -> Vec<String> {
        let mut faults = Vec::new();
        for event in traced.events.iter().filter(|event| !self.lists(event, traced, world)) {
            let by = event.by.join(" < ");
            faults.push(format!("{:?} {} by {by}", event.what, event.path));
        }
        faults
    }

    fn lists(&self, event: &Event, traced: &Traced, world: &World) -> bool {
        if self.is_opaque(event) {
            return true;
        }
        match event.what {
            // The shell tries a folder like any other name, and fails: one that was there, one of the system's, which are
            // the same inside, or one that the script made.
            What::Execute => {
                let made = |it: &Event| it.what == What::MakeFolder && it.path == event.path;
                self.lists_program(event)
                    || world.has_folder(&event.path)
                    || std::path::Path::new(&event.path).is_dir()
                    || traced.events.iter().any(made)
            }
            What::Read | What::ReadItself => {
                let real = match event.what {
                    What::ReadItself => None,
                    _ => world.real(&event.path),
                };
                let real = real.unwrap_or_else(|| event.path.clone());
                !PRIVATE.iter().any(|start| real.starts_with(start))
                    || self.lists_file(&real, world, &["read", "external_directory"], Reach::Below)
            }
            What::Write => self.lists_write(event, traced, world, Reach::Below),
            What::MakeFolder => self.lists_write(event, traced, world, Reach::Above),
            What::Connect => {
                // Names of users are asked of a server that is not there.
                let users = ["nscd", "systemd"].iter().any(|it| event.path.contains(it));
                users && event.path.starts_with("socket")
                    || event.by.iter().any(|by| NETWORK.contains(&&**by))
                    || event.by.iter().any(|by| by.starts_with("git-remote"))
            }
        }
    }

    /// Whether a program did it, or one that it started, that does what its files say, and the decision lists it.
    fn is_opaque(&self, event: &Event) -> bool {
        let programs = self.programs();
        // The same program goes by names with and without its version.
        let listed = |by: &String| {
            is_opaque_name(by) && programs.iter().any(|it| versionless(it) == versionless(by))
        };
        let by_script = |by: &String| {
            let reads = |(name, reader): &(&str, &str)| {
                programs.contains(name) && (by == "env" || versionless(by) == *reader)
            };
            INTERPRETED.iter().any(reads)
        };
        // A script is known by its name only until its interpreter starts.
        let interpreted = self.has_stranger()
            && event.by.first().is_some_and(|by| !is_shell(by) && !programs.contains(&**by));
        event.by.iter().any(|by| listed(by) || by_script(by) || self.is_stranger(by)) || interpreted
    }

    /// Whether a run proves anything: programs that do as they like are left to their rules.
    pub(crate) fn is_predictable(&self) -> bool {
        !self.has_stranger() && !self.programs().iter().any(|name| is_opaque_name(name))
    }

    /// Programs that are not in the table follow their rule, whatever they do.
    fn has_stranger(&self) -> bool {
        self.runs.iter().any(|run| !run.is_known)
    }

    fn is_stranger(&self, name: &str) -> bool {
        let called = |run: &Run| run.words.first().is_some_and(|word| base(word.shown()) == name);
        self.runs.iter().any(|run| !run.is_known && called(run))
    }

    fn has_git(&self, subcommands: &[&str]) -> bool {
        let words = |run: &Run| -> Vec<String> {
            run.words.iter().map(|word| word.shown().to_string()).collect()
        };
        self.runs.iter().map(words).any(|words| {
            words.first().is_some_and(|it| base(it) == "git")
                && words.iter().any(|it| subcommands.contains(&&**it))
        })
    }

    fn lists_program(&self, event: &Event) -> bool {
        let name = base(&event.path);
        let helps = |(program, helpers): &(&str, &[&str])| {
            event.by.iter().any(|by| by == program) && helpers.contains(&name)
        };
        let speaks = SPEAKERS.contains(&name)
            && event.by.iter().any(|by| by == "git")
            && self.has_git(SPEAKING);
        // The shell itself is what the script was given to.
        event.by.is_empty() || speaks || self.programs().contains(name) || HELPERS.iter().any(helps)
    }

    fn lists_write(&self, event: &Event, traced: &Traced, world: &World, reach: Reach) -> bool {
        let path = &event.path;
        // They try for writing what turns out to be the folder itself, and fail.
        let folder = path == ROOT && event.by.iter().any(|by| matches!(&**by, "shasum" | "tar"));
        let device =
            folder || ["/dev/null", "/dev/tty", "/dev/zero", "/dev/full"].contains(&&**path);
        if device
            || path.starts_with("/dev/fd/")
            || path.starts_with("/dev/std")
            || path.starts_with("/proc/")
        {
            return true;
        }
        let gone =
            !traced.left.contains(path) && world.real(path).is_some_and(|real| !world.has(&real));
        let passing = gone && (path.starts_with("/tmp/") || self.lists_neighbour(path, world));
        let gits = event.by.iter().any(|by| by == "git") && self.is_gits(path);
        let real = match path.rsplit_once('/') {
            Some((folder, name)) => {
                let folder = world.real(folder).unwrap_or_else(|| folder.to_string());
                format!("{folder}/{name}")
            }
            None => path.clone(),
        };
        let followed = world.real(path).unwrap_or_else(|| path.clone());
        // It adds letters to the name that is listed.
        let pieces = event.by.iter().any(|by| by == "split")
            && self.parts.iter().any(|part| {
                part.permission == "edit"
                    && part
                        .subjects
                        .iter()
                        .any(|it| real.starts_with(&absolute(it.trim_end_matches("xaa"))))
            });
        // A name for a file is made up, and the file with it.
        let temporary = path.starts_with("/tmp/") && event.by.iter().any(|by| by == "mktemp");
        passing
            || temporary
            || pieces
            || gits
            || self.lists_file(&real, world, &["edit"], reach)
            || self.lists_file(&followed, world, &["edit"], reach)
    }

    /// What git writes by itself: its own folder, and the work tree where a subcommand is there for that.
    fn is_gits(&self, path: &str) -> bool {
        let own = path.contains("/.git/") || path.ends_with("/.git");
        if path.contains("/.git/hooks") {
            // Samples of its own, which it does not run.
            let sample = path.ends_with("/hooks") || path.ends_with(".sample");
            return sample && self.has_git(&["init", "clone"]);
        }
        if path.contains("/.git/config") {
            return self.has_git(TRACKING) || self.has_git(CHANGING);
        }
        let inside = path == ROOT || path.starts_with("/w/app/");
        own || inside && self.has_git(CHANGING)
    }

    /// A file that is written beside its target and then takes its name.
    fn lists_neighbour(&self, path: &str, world: &World) -> bool {
        let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(it, _)| it.into());
        let folder_of = |part: &Part| {
            let subject = part.subjects.first().map_or("", String::as_str);
            world.real(&absolute(subject)).map(|real| folder(&real))
        };
        let mut edits = self.parts.iter().filter(|part| part.permission == "edit");
        edits.any(|part| folder_of(part) == Some(folder(path)))
    }

    fn lists_file(&self, real: &str, world: &World, permissions: &[&str], reach: Reach) -> bool {
        let parts = self.parts.iter().filter(|part| permissions.contains(&&*part.permission));
        let clear = parts.filter(|part| matches!(part.terms, Terms::Plain));
        clear.flat_map(|part| &part.subjects).any(|subject| {
            let subject = subject.strip_suffix("/*").unwrap_or(subject);
            let path = absolute(subject);
            let path = world.real(&path).unwrap_or(path);
            real == path
                || real.starts_with(&format!("{path}/"))
                || reach == Reach::Above && path.starts_with(&format!("{real}/"))
        })
    }
}

/// How far a listed path reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Below,
    /// Folders on the way to it, too.
    Above,
}

/// The file that a rule's subject means.
fn absolute(subject: &str) -> String {
    match subject {
        "." => ROOT.to_string(),
        subject if subject.starts_with('/') => subject.to_string(),
        subject => format!("{ROOT}/{subject}"),
    }
}

fn is_opaque_name(name: &str) -> bool {
    OPAQUE.contains(&name) || OPAQUE.contains(&versionless(name))
}

/// `python3.11` is `python`.
fn versionless(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn is_shell(name: &str) -> bool {
    matches!(name, "bash" | "sh" | "dash")
}

/// Where a name ends in a slash, nothing can be run; the tracer tells it without.
fn base(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}
