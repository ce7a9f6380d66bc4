//! What a call asks for: parts to be judged, and the acts that a yes permits.

use std::borrow::Cow;
use std::path::PathBuf;

use helve_text::shell::Doubt;
use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::rule::{Action, Pattern, Rule, Scope, Source, Verdict};

/// One thing to be judged. A call has one or many, under several permissions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The key that is shown and remembered: the tool's group, or its id.
    pub permission: Cow<'static, str>,
    /// The tool's own id, where it differs from `permission`.
    pub tool: Option<Cow<'static, str>>,
    /// All names of the thing. The first one is shown; for a path it is the resolved one, then the one given.
    pub subjects: Vec<String>,
    /// The pattern that a lasting approval remembers; `None` if the part can only be approved once.
    pub remember_as: Option<Pattern>,
    #[serde(skip)]
    pub matched_by: MatchBy,
}

/// How rules match a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MatchBy {
    /// By its subjects.
    #[default]
    Subjects,
    /// By the words of a shell command.
    Command(Box<Command>),
    /// By its subjects: a file below a directory that this command reads recursively. Where a person's rule allows the
    /// command, built-in asks about single files do not count.
    Beneath(Box<Command>),
    /// No rule can allow it, because it is not fully understood. A rule may still deny it.
    Unclear(Unclear),
}

/// Why no rule can allow a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unclear {
    Doubt(Doubt),
    /// The file is only known when the command runs.
    Target,
    /// A file name from an expansion would act as a flag.
    Flag,
    /// A file name from an expansion would be split into several words.
    WordSplitting,
}

impl Part {
    pub fn new(permission: impl Into<Cow<'static, str>>, subject: impl Into<String>) -> Self {
        Self {
            permission: permission.into(),
            tool: None,
            subjects: vec![subject.into()],
            remember_as: None,
            matched_by: MatchBy::Subjects,
        }
    }

    /// Lets a lasting approval remember exactly what is shown.
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

    /// Why no rule can allow it; `None` if one can.
    pub fn unclear(&self) -> Option<&Unclear> {
        match &self.matched_by {
            MatchBy::Unclear(why) => Some(why),
            MatchBy::Subjects | MatchBy::Command(_) | MatchBy::Beneath(_) => None,
        }
    }

    /// The rules that a lasting approval leaves behind: the pattern that was shown, or every name of the thing.
    pub fn approval_rules(&self, scope: Scope) -> Vec<Rule> {
        let patterns = match &self.remember_as {
            None => Vec::new(),
            Some(Pattern::Exact(_)) => self.subjects.iter().cloned().map(Pattern::Exact).collect(),
            Some(wide) => vec![wide.clone()],
        };
        let rule = |pattern| Rule {
            permission: self.permission.to_string(),
            pattern,
            action: Action::Allow,
            source: Source::Approved(scope),
        };
        patterns.into_iter().map(rule).collect()
    }

    /// The text that a person is shown.
    pub fn subject(&self) -> &str {
        self.subjects.first().map_or("", String::as_str)
    }
}

/// Something that a grant permits. Rules judge the texts of parts; the grant lists exact acts, and each effect checks
/// that its own act is among them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Act {
    Read(PathBuf),
    Edit(PathBuf),
    Run {
        script: String,
        folder: PathBuf,
    },
    /// Reading, typing into, signalling and ending this process.
    ControlProcess(ProcessId),
    Use(Cow<'static, str>),
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
    /// The sub-agents on whose behalf it is asked, outermost first.
    pub from: Vec<String>,
    /// The verdict on each part, filled in by the gate.
    #[serde(skip)]
    pub verdicts: Vec<Action>,
}

impl Ask {
    /// Asks to use a tool that touches neither files nor processes.
    pub fn to_use(tool: &'static str) -> Self {
        let part = Part::new(tool, "*").remember_as(Pattern::any());
        Ask::default().add(Act::Use(Cow::Borrowed(tool)), part)
    }

    /// Asks for one act.
    pub fn for_request(request: Request) -> Self {
        Ask::default().add_request(request)
    }

    /// Adds an act. Parts that the ask already has are not repeated.
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

    /// Identifies exactly what is shown: an answer to another ask does not count.
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

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Yes(Scope),
    No {
        /// A message to the model.
        note: Option<String>,
    },
    /// There was nobody to ask.
    Unanswered,
}

/// Why an ask was not granted.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// A rule denies a part; that is final.
    Forbidden(Box<(Part, Verdict)>),
    /// These parts need an approval and nobody could be asked.
    Unanswered {
        parts: Vec<(Part, Verdict)>,
    },
    Rejected {
        note: Option<String>,
    },
    /// `helve why`: judged, never granted.
    Explained,
}
