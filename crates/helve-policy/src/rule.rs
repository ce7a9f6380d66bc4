//! Rules. Each maps a permission key and a pattern to an action: `edit`, `src/*` → allow.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use helve_text::path_pattern::PathPattern;
use helve_text::shell::RiskKind;
use helve_text::url::{UrlPattern, WebUrl};
use helve_text::wildcard;
use serde::{Deserialize, Serialize};

/// What a rule decides, ordered from lenient to strict.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Allow,
    #[default]
    Ask,
    Deny,
}

/// Which texts a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// A text with the wildcards `*` and `?`.
    Wild(String),
    /// A wildcard pattern, in lower case, that is matched against the text in lower case. Used for file names, because
    /// some file systems ignore case.
    #[serde(rename = "folded")]
    CaseInsensitive(String),
    /// Exactly this text. Approving a file called `*` approves only that file.
    Exact(String),
}

impl Pattern {
    /// The pattern that matches everything.
    pub fn any() -> Self {
        Pattern::Wild("*".into())
    }

    pub fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Wild(pattern) => wildcard::matches(pattern, text),
            Pattern::CaseInsensitive(pattern) => wildcard::matches(pattern, &text.to_lowercase()),
            Pattern::Exact(exact) => exact == text,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Pattern::Wild(text) | Pattern::CaseInsensitive(text) | Pattern::Exact(text) => text,
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        let is_any = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte == b'*');
        matches!(self, Pattern::Wild(text) | Pattern::CaseInsensitive(text) if is_any(text))
    }
}

/// What the subjects of a part are. This decides how patterns are compared with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectKind {
    Text,
    /// The path of a file or folder: relative to the workspace if it is inside, otherwise absolute.
    Path,
    /// A folder outside the workspace, written as `/folder/*`.
    OutsideFolder,
    /// A URL in normal form.
    Url,
}

impl SubjectKind {
    /// Returns the kind of the subjects under a permission key.
    pub(crate) fn of(permission: &str) -> Self {
        match permission {
            "read" | "edit" | "list" => SubjectKind::Path,
            "external_directory" => SubjectKind::OutsideFolder,
            "webfetch" => SubjectKind::Url,
            _ => SubjectKind::Text,
        }
    }
}

/// One rule, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A permission key, or a wildcard pattern that matches keys.
    pub permission: String,
    pub pattern: Pattern,
    pub action: Action,
    pub source: Source,
}

/// Where a rule was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Builtin,
    File {
        path: Arc<Path>,
        line: u32,
        column: u32,
    },
    /// `--allow …`, as typed.
    Flag(String),
    /// An approval that a person gave for longer than one call.
    Approved(Scope),
    /// Set by the program that embeds Helve.
    Program,
}

/// How long an approval lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Once,
    Session,
    Project,
    Everywhere,
}

impl Rule {
    pub fn new(permission: &str, pattern: &str, action: Action, source: Source) -> Self {
        let pattern = Pattern::Wild(pattern.into());
        Self { permission: permission.into(), pattern, action, source }
    }

    /// Whether the rule's pattern matches the subject of a part. Rules that ask or deny are matched loosely. `root` is
    /// the absolute path of the workspace.
    pub(crate) fn matches(&self, kind: SubjectKind, subject: &str, root: &str) -> bool {
        let matches_path = |path: &str| match (&self.pattern, self.action) {
            (Pattern::Exact(exact), _) => exact == path,
            // Built-in patterns are written in the form that paths have, so they need no conversion.
            (_, _) if self.source == Source::Builtin => self.pattern.matches(path),
            (Pattern::Wild(pattern), Action::Allow) => {
                PathPattern::new(pattern, root).matches(path)
            }
            (Pattern::Wild(pattern), Action::Ask | Action::Deny) => {
                PathPattern::new(pattern, root).matches_loosely(path, root)
            }
            (Pattern::CaseInsensitive(_), _) => self.pattern.matches(path),
        };
        match (kind, self.action) {
            (SubjectKind::Text, _) => self.pattern.matches(subject),
            (SubjectKind::Url, _) => self.matches_url(subject),
            (SubjectKind::Path, _) | (SubjectKind::OutsideFolder, Action::Allow) => {
                matches_path(subject)
            }
            // A rule that denies `/opt` also denies `/opt/x/*`.
            (SubjectKind::OutsideFolder, Action::Ask | Action::Deny) => {
                let folder = subject.strip_suffix("/*").unwrap_or(subject);
                matches_path(subject)
                    || Path::new(folder).ancestors().any(|it| it.to_str().is_some_and(matches_path))
            }
        }
    }

    /// Whether the rule's pattern matches a URL in normal form.
    fn matches_url(&self, subject: &str) -> bool {
        let pattern = match &self.pattern {
            Pattern::Exact(exact) => return exact == subject,
            pattern if pattern.is_any() => return true,
            Pattern::Wild(pattern) | Pattern::CaseInsensitive(pattern) => pattern,
        };
        match (UrlPattern::parse(pattern), WebUrl::parse(subject), self.action) {
            (Ok(pattern), Ok(url), Action::Allow) => pattern.matches(&url),
            (Ok(pattern), Ok(url), Action::Ask | Action::Deny) => pattern.matches_loosely(&url),
            (_, _, Action::Allow) => false,
            // A pattern that is not a URL pattern, such as `*secret*`.
            (_, _, Action::Ask | Action::Deny) => wildcard::matches(pattern, subject),
        }
    }

    /// Whether the rule's pattern names the host of a URL, rather than matching any host.
    pub(crate) fn names_host(&self) -> bool {
        match &self.pattern {
            Pattern::Exact(_) => true,
            Pattern::Wild(pattern) | Pattern::CaseInsensitive(pattern) => {
                UrlPattern::parse(pattern).is_ok_and(|pattern| pattern.names_host())
            }
        }
    }

    /// Whether this is the built-in rule that asks about everything.
    pub(crate) fn is_builtin_default(&self) -> bool {
        self.source == Source::Builtin && self.permission == "*" && self.pattern.is_any()
    }

    /// Whether the rule applies to a permission key.
    pub(crate) fn covers_key(&self, permission: &str) -> bool {
        wildcard::matches(&self.permission, permission)
    }
}

/// Returns the last rule whose pattern matches the text as it is. Walls also match other forms, see `Rule::matches`.
pub fn decide<'a>(rules: &'a [Rule], permission: &str, text: &str) -> Option<&'a Rule> {
    rules.iter().rev().find(|rule| rule.covers_key(permission) && rule.pattern.matches(text))
}

/// The decision about one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub action: Action,
    /// The rule that decided; `None` if no rule matches.
    pub rule: Option<Rule>,
    /// Name of the wall that decided.
    pub wall: Cow<'static, str>,
    pub reason: Reason,
}

impl Verdict {
    /// Whether the deciding rule matches every subject, or no rule decided.
    pub(crate) fn is_from_catch_all(&self) -> bool {
        self.reason == Reason::Rule
            && self.rule.as_ref().is_none_or(|rule| rule.pattern.as_str() == "*")
    }
}

/// The reason for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// The rule decided alone, or no rule matches.
    #[default]
    Rule,
    /// The part is not fully understood; see [`crate::Part::unclear`].
    Unclear,
    /// A rule that allows the command matches, but does not spell out this risky word.
    Risk { word: String, kind: RiskKind },
    /// A rule that allows the command matches, but does not spell out this assignment before it.
    Assignment(String),
    /// A rule that allows the command matches, but none of its paths matches this operand: `rm dist/*` does not match
    /// the operand `src` of `rm dist/a src`.
    Operand(String),
    /// A rule that allows the command matches, but the program or script is a link to another file. Holds the command
    /// with the path of that file.
    LinkedProgram(String),
    /// The command may start this program, which the rule denies.
    MayStart(String),
    /// The command may change this file, and the rule forbids changing it.
    MayChange(String),
    /// The command may print this file, and the rule forbids reading it.
    MayRead(String),
    /// The script is not fully understood and mentions this file, and a rule asks about or denies the file.
    MayOpen(String),
    /// The command only reads files inside the workspace.
    OnlyReads,
    /// A rule allows the URL without naming its host, and the host is in the local network.
    LocalNetwork,
    /// The command would run outside the sandbox, and no rule about that permission matches.
    OutsideSandbox,
    /// The rules allow it, but this hook wants a person to be asked.
    Hook(String),
}

impl Verdict {
    /// Whether a built-in rule decided, or no rule did.
    pub fn is_builtin(&self) -> bool {
        self.rule.as_ref().is_none_or(|rule| rule.source == Source::Builtin)
    }
}
