//! What a call asks for: parts that rules judge, and acts that an approval permits.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use helve_text::shell::Doubt;
use helve_text::url::WebUrl;
use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::rule::{Action, Pattern, Rule, Scope, Source, Verdict};

/// One thing that a call wants to do. A call can have several parts, and each is judged separately: `cat a > b` runs a
/// command, reads a file and edits a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The permission key that rules name: the group of the tool, such as `edit`, or its id.
    pub permission: Cow<'static, str>,
    /// The tool's id, if it differs from `permission`.
    pub tool: Option<Cow<'static, str>>,
    /// The texts that rules match. All of them must be allowed; the first is shown to the person. A path through a link
    /// has two: the resolved path, then the path as given.
    pub subjects: Vec<String>,
    /// The pattern that a lasting approval remembers; `None` if the part can only be approved once.
    pub remember_as: Option<Pattern>,
    #[serde(skip)]
    pub matched_by: MatchBy,
    /// Whether a shell command does this, rather than a tool like `edit`.
    #[serde(skip)]
    pub via_shell: bool,
    /// For a folder outside the workspace that is reached through a link: the path of the link. A rule can then allow
    /// the folder by its resolved path, or by a path through this link.
    #[serde(skip)]
    pub link: Option<String>,
}

/// The permission key of commands that run outside the sandbox although one is configured.
pub const UNSANDBOXED: &str = "unsandboxed";

/// Prefix of remembered approvals of hosts in the local network.
pub(crate) const LOCAL_PREFIX: &str = "local network: ";

/// How rules match a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MatchBy {
    /// By its subjects.
    #[default]
    Subjects,
    /// By the words of this shell command.
    Command(Box<Command>),
    /// By its subjects. The part is a file that this command accesses without naming it: `grep -r x src` reads the
    /// files below `src`. Built-in rules that ask do not apply if another rule or an approval allows the command.
    UnnamedFile(Box<Command>),
    /// By its subjects. The part is not fully understood, so only a rule that allows every command can allow it.
    Unclear(Unclear),
    /// By these files. The part is a script that is not fully understood and mentions these files, so it may open them.
    /// Only rules that a person wrote apply, and a file that they restrict is asked about.
    Mentioned(MentionedFiles),
    /// By its URL. The host resolves to `address`, which belongs to this machine or to a private network, so only a
    /// rule that names the host can allow it.
    LocalNetwork { address: String },
}

/// The files that a script mentions and may open; see [`MatchBy::Mentioned`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MentionedFiles {
    /// The texts that rules match. A folder is listed twice, with and without a final slash.
    pub subjects: BTreeSet<String>,
    /// The `external_directory` subjects of those files that are outside the workspace.
    pub outside: BTreeSet<String>,
    /// Whether there are more files than these.
    pub is_partial: bool,
}

/// Why a part is not fully understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unclear {
    Doubt(Doubt),
    /// The file is only known when the command runs.
    Target,
    /// A file that a glob matches has a name like a flag, such as `-rf`.
    Flag,
    /// A file name would be split into several words, as by `xargs`.
    WordSplitting,
    /// There was not enough time to check all files below a folder.
    Tree,
}

impl Part {
    pub fn new(permission: impl Into<Cow<'static, str>>, subject: impl Into<String>) -> Self {
        Self {
            permission: permission.into(),
            tool: None,
            subjects: vec![subject.into()],
            remember_as: None,
            matched_by: MatchBy::Subjects,
            via_shell: false,
            link: None,
        }
    }

    /// The part for a command of a script.
    pub fn for_command(command: &Command) -> Self {
        let part = Self::new("bash", command.text()).remember_as(command.approval_pattern());
        part.matched_by(MatchBy::Command(Box::new(command.clone())))
    }

    /// Makes a lasting approval remember exactly the subject that is shown.
    pub fn remember_exactly(mut self) -> Self {
        self.remember_as = self.subjects.first().cloned().map(Pattern::Exact);
        self
    }

    pub fn remember_as(mut self, pattern: Pattern) -> Self {
        self.remember_as = Some(pattern);
        self
    }

    pub fn matched_by(mut self, matched_by: MatchBy) -> Self {
        self.matched_by = matched_by;
        self
    }

    /// Names the tool that asks, if it differs from the permission key.
    pub fn for_tool(mut self, tool: &'static str) -> Self {
        self.tool = (self.permission != tool).then_some(Cow::Borrowed(tool));
        self
    }

    /// Returns why the part is not fully understood; `None` if it is.
    pub fn unclear(&self) -> Option<&Unclear> {
        match &self.matched_by {
            MatchBy::Unclear(why) => Some(why),
            MatchBy::Subjects
            | MatchBy::Command(_)
            | MatchBy::UnnamedFile(_)
            | MatchBy::Mentioned(_)
            | MatchBy::LocalNetwork { .. } => None,
        }
    }

    /// Returns the address of a host in the local network; `None` for other parts.
    pub fn local_address(&self) -> Option<&str> {
        match &self.matched_by {
            MatchBy::LocalNetwork { address } => Some(address),
            MatchBy::Subjects
            | MatchBy::Command(_)
            | MatchBy::UnnamedFile(_)
            | MatchBy::Mentioned(_)
            | MatchBy::Unclear(_) => None,
        }
    }

    /// Returns the known paths that a command may change. Because it is not certain that it changes them, a rule that
    /// denies changing one of them leads to an ask, not to a denial.
    pub fn possible_changes(&self) -> &[String] {
        match &self.matched_by {
            MatchBy::Command(command) => command.possible_changes(),
            MatchBy::Subjects
            | MatchBy::UnnamedFile(_)
            | MatchBy::Unclear(_)
            | MatchBy::Mentioned(_)
            | MatchBy::LocalNetwork { .. } => &[],
        }
    }

    /// Whether the part is a command that needs no rule, like `cd`, or lists the files that a script mentions. Such a
    /// part is only shown if a rule applies to it.
    pub fn is_exempt(&self) -> bool {
        match &self.matched_by {
            MatchBy::Command(command) => command.is_exempt(),
            MatchBy::Mentioned(_) => true,
            MatchBy::Subjects
            | MatchBy::UnnamedFile(_)
            | MatchBy::Unclear(_)
            | MatchBy::LocalNetwork { .. } => false,
        }
    }

    /// Returns the part for running a command outside the sandbox. It can only be approved once.
    pub fn unsandboxed(command: impl Into<String>) -> Self {
        Self::new(UNSANDBOXED, command)
    }

    /// Returns the part for fetching a URL. A lasting approval remembers its origin.
    pub fn for_url(url: &WebUrl) -> Self {
        let origin = Pattern::Wild(format!("{}/*", url.origin()));
        Self::new("webfetch", url.as_str()).remember_as(origin)
    }

    /// Returns the part for fetching a URL whose host has an address in the local network. Its lasting approval is
    /// separate from that for the same host with a public address, because a host name can later resolve to another
    /// address.
    pub fn for_local_url(url: &WebUrl, address: impl Into<String>) -> Self {
        Self::for_url(url).matched_by(MatchBy::LocalNetwork { address: address.into() })
    }

    /// Returns the rules that a lasting approval adds: one for the pattern in `remember_as`, or one for each subject if
    /// that pattern is exact.
    pub fn approval_rules(&self, scope: Scope) -> Vec<Rule> {
        let patterns = match &self.remember_as {
            None => Vec::new(),
            Some(Pattern::Exact(_)) => self.subjects.iter().cloned().map(Pattern::Exact).collect(),
            Some(pattern) if self.local_address().is_some() => {
                vec![Pattern::Wild(format!("{LOCAL_PREFIX}{}", pattern.as_str()))]
            }
            Some(pattern) => vec![pattern.clone()],
        };
        let rule = |pattern| Rule {
            permission: self.permission.to_string(),
            pattern,
            action: Action::Allow,
            source: Source::Approved(scope),
        };
        patterns.into_iter().map(rule).collect()
    }

    /// Returns the text that is shown to the person.
    pub fn subject(&self) -> &str {
        self.subjects.first().map_or("", String::as_str)
    }
}

/// Something that a grant permits. Code that has an effect checks that the grant contains its act.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Act {
    Read(PathBuf),
    Edit(PathBuf),
    Run {
        script: String,
        folder: PathBuf,
    },
    /// Running this script without the sandbox that is configured.
    LeaveSandbox {
        script: String,
    },
    /// Reading from, writing to, signalling and ending this process.
    ControlProcess(ProcessId),
    /// Using the tool of this name. A resource of an MCP server is named by its key.
    UseTool(Cow<'static, str>),
    /// Sending requests to this origin, such as `https://docs.rs`.
    Fetch {
        origin: String,
        /// The address in the local network that may be connected to; `None` for public addresses only.
        local: Option<String>,
    },
}

/// Handle of a started process: short, and unique among all Helve processes of a user.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId(pub String);

/// One act and the parts that must be approved for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub act: Act,
    pub parts: Vec<Part>,
}

/// Everything that one call asks for, in one question.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ask {
    pub parts: Vec<Part>,
    pub acts: Vec<Act>,
    /// A diff or a command, as the person will see it.
    pub preview: String,
    /// The sub-agents that the call comes from, outermost first.
    pub from: Vec<String>,
    /// What the policy decided about each part. The gate fills this in.
    #[serde(skip)]
    pub actions: Vec<Action>,
    /// The reason for each of `actions`, as a clause; empty for parts that are allowed. The gate fills this in.
    #[serde(skip)]
    pub reasons: Vec<String>,
    /// For each part, whether `--allow PERMISSION` would allow it. The gate fills this in.
    #[serde(skip)]
    pub can_be_allowed_by_option: Vec<bool>,
    /// The hook that requires a person to be asked, even if all parts are allowed.
    #[serde(skip)]
    pub required_by: Option<Arc<str>>,
}

impl Ask {
    /// Asks to use a tool that touches neither files nor processes.
    pub fn to_use(tool: &'static str) -> Self {
        let part = Part::new(tool, "*").remember_as(Pattern::any());
        Ask::default().add(Act::UseTool(Cow::Borrowed(tool)), part)
    }

    /// Asks for one act.
    pub fn for_request(request: Request) -> Self {
        Ask::default().add_request(request)
    }

    /// Adds an act and those of its parts that the ask does not have yet.
    pub fn add_request(mut self, request: Request) -> Self {
        self.acts.push(request.act);
        for part in request.parts {
            if !self.parts.contains(&part) {
                self.parts.push(part);
            }
        }
        self
    }

    pub fn add(mut self, act: Act, part: Part) -> Self {
        self.acts.push(act);
        self.parts.push(part);
        self
    }

    pub fn preview(mut self, text: impl Into<String>) -> Self {
        self.preview = text.into();
        self
    }

    /// Returns a hash of everything that is shown to the person. An answer is accepted only for the ask with the same
    /// key.
    pub fn key(&self) -> AskKey {
        let mut hasher = blake3::Hasher::new();
        let shown = (&self.parts, &self.acts, &self.preview, &self.from);
        match serde_json::to_writer(&mut hasher, &shown) {
            Ok(()) => {}
            // A path that is not UTF-8 has no JSON form; its debug form is equally precise.
            Err(_) => {
                hasher.update(format!("{shown:?}").as_bytes());
            }
        }
        AskKey(hasher.finalize().to_hex()[..32].to_string())
    }
}

/// See [`Ask::key`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AskKey(pub String);

/// The answer to an ask. All answers but `Yes` refuse the call; they differ in who decided, and the model gets
/// different messages (see [`Refusal`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Yes(Scope),
    /// A person saw the ask and said no.
    No {
        /// The person's message to the model.
        note: Option<String>,
    },
    /// The client declined, perhaps without showing the question to anybody.
    Declined,
    /// Nobody could be asked.
    Unanswered,
}

/// Rules that would allow a call without asking, as a suggestion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// Rules for the end of the user's configuration; empty if rules there do not help.
    pub config: Vec<AdvisedRule>,
    /// Rules for `--allow`; empty if that does not help.
    pub flags: Vec<AdvisedRule>,
}

/// A permission key and a pattern to allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisedRule {
    pub permission: String,
    pub pattern: String,
}

impl AdvisedRule {
    /// Whether the rule allows everything under its key.
    pub fn allows_all(&self) -> bool {
        self.pattern == "*"
    }
}

/// What a refused call would have needed.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingApproval {
    /// The parts that need an approval.
    pub parts: Vec<(Part, Verdict)>,
    /// The rules that would allow all of them.
    pub advice: Advice,
}

/// Why an ask was not granted.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// A rule denies this part. No person can override it.
    Forbidden(Box<(Part, Verdict)>),
    /// These parts need an approval and nobody could be asked.
    Unanswered(MissingApproval),
    /// The client declined, perhaps without showing the question to anybody.
    Declined(MissingApproval),
    /// The person said no.
    Rejected { note: Option<String> },
    /// The call was only judged, for `helve why`.
    ExplainOnly,
}
