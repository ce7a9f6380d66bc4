//! Rules: each maps a permission key and a text pattern to an action.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

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

/// The texts that a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Written by a person: `*` and `?` are wildcards.
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
        matches!(self, Pattern::Wild(text) | Pattern::CaseInsensitive(text) if text == "*")
    }
}

/// One rule, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A permission key, or a wildcard over keys.
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

    /// Whether the rule applies to a permission key.
    pub(crate) fn covers_key(&self, permission: &str) -> bool {
        wildcard::matches(&self.permission, permission)
    }
}

/// Returns the last matching rule of one list, which is the one that decides.
pub fn decide<'a>(rules: &'a [Rule], permission: &str, text: &str) -> Option<&'a Rule> {
    rules.iter().rev().find(|rule| rule.covers_key(permission) && rule.pattern.matches(text))
}

/// The answer for one part: the action, the rule that decided, and the wall it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub action: Action,
    pub rule: Option<Rule>,
    pub wall: Cow<'static, str>,
}

impl Verdict {
    /// Whether no rule of a person decided.
    pub fn is_builtin(&self) -> bool {
        self.rule.as_ref().is_none_or(|rule| rule.source == Source::Builtin)
    }
}
