//! Deciding: rules, walls, and what one call wants. Pure; the person comes in with `gate`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_text::wildcard;
use serde::{Deserialize, Serialize};

use crate::files::Resolved;
use crate::process::ProcessId;
use crate::shell::{Command, Decision, Unclear};

/// What a rule says, from lenient to strict: the order is what "the stricter wins" means.
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

/// Which texts a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Written by a person: `*` and `?` are wildcards.
    Wild(String),
    /// The same, whatever the letter case: for names that some file systems fold.
    Folded(String),
    /// Exactly this text. A file called `*` that was approved stays that one file.
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
            Pattern::Folded(pattern) => wildcard::matches(pattern, &text.to_lowercase()),
            Pattern::Exact(exact) => exact == text,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Pattern::Wild(text) | Pattern::Folded(text) | Pattern::Exact(text) => text,
        }
    }

    fn is_any(&self) -> bool {
        matches!(self, Pattern::Wild(text) | Pattern::Folded(text) if text == "*")
    }
}

/// One line of policy, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A permission key, or a wildcard over keys.
    pub permission: String,
    pub pattern: Pattern,
    pub action: Action,
    pub source: Source,
}

/// Where a rule comes from, precise enough to open the file at the line.
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
    /// A person's lasting yes.
    Approved(Scope),
    /// Set by the program that embeds Helve.
    Program,
}

impl Rule {
    pub fn new(permission: &str, pattern: &str, action: Action, source: Source) -> Self {
        let pattern = Pattern::Wild(pattern.into());
        Self { permission: permission.into(), pattern, action, source }
    }

    fn is_for(&self, permission: &str) -> bool {
        wildcard::matches(&self.permission, permission)
    }
}

/// The last rule of one list that matches decides.
pub fn decide<'a>(rules: &'a [Rule], permission: &str, text: &str) -> Option<&'a Rule> {
    rules.iter().rev().find(|rule| rule.is_for(permission) && rule.pattern.matches(text))
}

/// One list of rules. Of several walls the strictest decides, so a further wall can only narrow.
#[derive(Clone, Debug)]
pub struct Wall {
    /// Whose wall it is, for explanations: `user`, `agent plan`, …
    pub name: Cow<'static, str>,
    pub rules: Arc<[Rule]>,
    /// Appended to `rules`, except that they never lift a deny of theirs: a trusted project, `--allow`.
    pub later: Arc<[Rule]>,
    /// The answer where no rule matches.
    pub otherwise: Action,
}

impl Wall {
    /// A wall that narrows where its rules say so and is silent elsewhere.
    pub fn narrowing(name: impl Into<Cow<'static, str>>, rules: Vec<Rule>) -> Self {
        Self {
            name: name.into(),
            rules: rules.into(),
            later: Arc::default(),
            otherwise: Action::Allow,
        }
    }

    fn judge(&self, part: &Part, text: &str) -> Verdict {
        let deciding = |rules: Rules<'_>| weigh(part, |key| rules.last(key, text)).cloned();
        let base = self.verdict(deciding(Rules(&self.rules, &[])));
        if base.action == Action::Deny || self.later.is_empty() {
            return base;
        }
        self.verdict(deciding(Rules(&self.rules, &self.later)))
    }

    fn judge_command(&self, command: &Command) -> Verdict {
        let verdict = |decision: Decision<'_>| Verdict {
            action: decision.action.unwrap_or_else(|| command.otherwise(self.otherwise)),
            rule: decision.rule.cloned(),
            wall: self.name.clone(),
        };
        let base = verdict(command.decide(self.rules.iter()));
        if base.action == Action::Deny || self.later.is_empty() {
            return base;
        }
        verdict(command.decide(self.rules.iter().chain(self.later.iter())))
    }

    fn verdict(&self, rule: Option<Rule>) -> Verdict {
        let action = rule.as_ref().map_or(self.otherwise, |rule| rule.action);
        Verdict { action, rule, wall: self.name.clone() }
    }

    /// Whether everything this part's keys could be about is denied.
    fn forbids(&self, part: &Part) -> bool {
        match weigh(part, |key| Rules(&self.rules, &[]).closing(key)) {
            Some(rule) => rule.action == Action::Deny && rule.pattern.is_any(),
            None => self.otherwise == Action::Deny,
        }
    }
}

/// A list of rules in two pieces.
#[derive(Clone, Copy)]
struct Rules<'a>(&'a [Rule], &'a [Rule]);

impl<'a> Rules<'a> {
    fn newest_first(self) -> impl Iterator<Item = (usize, &'a Rule)> {
        let second = self.1.iter().enumerate().rev().map(|(at, rule)| (self.0.len() + at, rule));
        second.chain(self.0.iter().enumerate().rev())
    }

    fn last(self, key: &str, text: &str) -> Option<(usize, &'a Rule)> {
        self.newest_first().find(|(_, rule)| rule.is_for(key) && rule.pattern.matches(text))
    }

    /// The rule that settles whether anything gets through at all under a key.
    fn closing(self, key: &str) -> Option<(usize, &'a Rule)> {
        self.newest_first().find(|(_, rule)| {
            rule.is_for(key) && (rule.pattern.is_any() || rule.action != Action::Deny)
        })
    }
}

/// The rule that decides for a part, given how to find one for a key.
///
/// A tool is judged under its own id and under its group; the stricter of the two wins. A rule that
/// is about both (`"*": "ask"`) yields to a later rule about either, as in any list; and what a
/// person wrote about one key is not outweighed by a built-in rule about the other.
fn weigh<'a>(part: &Part, find: impl Fn(&str) -> Option<(usize, &'a Rule)>) -> Option<&'a Rule> {
    let group = find(&part.permission);
    let Some(tool) = part.tool.as_deref() else { return group.map(|(_, rule)| rule) };
    let (Some((group_at, group)), Some((own_at, own))) = (group, find(tool)) else {
        return group.or(find(tool)).map(|(_, rule)| rule);
    };
    if group.is_for(tool) && own_at >= group_at {
        return Some(own);
    }
    if own.is_for(&part.permission) && group_at >= own_at {
        return Some(group);
    }
    match (group.source == Source::Builtin, own.source == Source::Builtin) {
        (true, false) => Some(own),
        (false, true) => Some(group),
        (true, true) | (false, false) => Some(if own.action > group.action { own } else { group }),
    }
}

/// The answer for one part: what, by which rule, in whose wall.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub action: Action,
    pub rule: Option<Rule>,
    pub wall: Cow<'static, str>,
}

/// The first of the strictest; an ask where there is no wall at all.
fn strictest(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let stricter = |so_far: Verdict, next: Verdict| {
        if next.action > so_far.action { next } else { so_far }
    };
    let nothing = Verdict { action: Action::Ask, rule: None, wall: Cow::Borrowed("built-in") };
    verdicts.reduce(stricter).unwrap_or(nothing)
}

/// The strictest wall decides; a person's lasting yes lifts an ask, never a deny.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub walls: Vec<Wall>,
    pub remembered: Vec<Rule>,
}

impl Policy {
    /// `more` are the walls of the sub-agents on the way down.
    pub fn judge(&self, more: &[Wall], part: &Part) -> Verdict {
        let walls = self.walls.iter().chain(more);
        let verdict = match &part.terms {
            Terms::Plain | Terms::Unclear(_) => strictest(
                walls.flat_map(|wall| part.subjects.iter().map(move |text| wall.judge(part, text))),
            ),
            Terms::Command(command) => strictest(walls.map(|wall| wall.judge_command(command))),
        };
        match (verdict.action, &part.terms) {
            (Action::Allow, Terms::Unclear(_)) => {
                Verdict { action: Action::Ask, rule: None, ..verdict }
            }
            (Action::Ask, Terms::Plain | Terms::Command(_)) => self.recall(part).unwrap_or(verdict),
            (Action::Allow, Terms::Plain | Terms::Command(_))
            | (Action::Ask, Terms::Unclear(_))
            | (Action::Deny, _) => verdict,
        }
    }

    pub fn judge_all(&self, more: &[Wall], parts: &[Part]) -> Action {
        let actions = parts.iter().map(|part| self.judge(more, part).action);
        actions.max().unwrap_or(Action::Allow)
    }

    /// A remembered yes counts when it covers the part under every name it goes by.
    fn recall(&self, part: &Part) -> Option<Verdict> {
        let allows = |rule: &&Rule| rule.action == Action::Allow;
        let mut covering = None;
        match &part.terms {
            Terms::Plain | Terms::Unclear(_) => {
                for text in &part.subjects {
                    let rule = decide(&self.remembered, &part.permission, text);
                    covering = Some(rule.filter(allows)?);
                }
            }
            Terms::Command(command) => {
                let decision = command.decide(self.remembered.iter());
                covering = decision.rule.filter(|_| decision.action == Some(Action::Allow));
            }
        }
        covering.map(|rule| Verdict {
            action: Action::Allow,
            rule: Some(rule.clone()),
            wall: Cow::Borrowed("approved"),
        })
    }

    /// Whether a tool is denied outright, whatever it would be called with.
    pub fn forbids(&self, more: &[Wall], tool: &Part) -> bool {
        self.walls.iter().chain(more).any(|wall| wall.forbids(tool))
    }
}

/// One thing to be judged. A call has one or many, of several permissions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The key that is shown and remembered: the tool's group, or its id.
    pub permission: Cow<'static, str>,
    /// The tool's own id, where it differs from `permission`.
    pub tool: Option<Cow<'static, str>>,
    /// Every text the thing goes by, the one to show first: a path as resolved and as given.
    pub subjects: Vec<String>,
    /// What a lasting yes would remember; `None` where it can only be given once.
    pub always: Option<Pattern>,
    /// How rules are matched with it.
    #[serde(skip)]
    pub terms: Terms,
}

/// How rules match a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Terms {
    /// By its texts.
    #[default]
    Plain,
    /// By the words of a shell command.
    Command(Box<Command>),
    /// No rule allows what is not understood; a rule may still refuse it.
    Unclear(Unclear),
}

impl Part {
    pub fn new(permission: impl Into<Cow<'static, str>>, subject: impl Into<String>) -> Self {
        Self {
            permission: permission.into(),
            tool: None,
            subjects: vec![subject.into()],
            always: None,
            terms: Terms::Plain,
        }
    }

    /// Offers to remember exactly what is shown.
    pub fn always_exactly(mut self) -> Self {
        self.always = self.subjects.first().cloned().map(Pattern::Exact);
        self
    }

    pub fn always(mut self, pattern: Pattern) -> Self {
        self.always = Some(pattern);
        self
    }

    pub(crate) fn under(mut self, terms: Terms) -> Self {
        self.terms = terms;
        self
    }

    /// Says which tool asks, where that is not the permission's own name.
    pub fn by(mut self, tool: &'static str) -> Self {
        self.tool = (self.permission != tool).then_some(Cow::Borrowed(tool));
        self
    }

    /// Why no rule can allow it, in a phrase; `None` where one can.
    pub fn doubt(&self) -> Option<&'static str> {
        match &self.terms {
            Terms::Unclear(why) => Some(why.about()),
            Terms::Plain | Terms::Command(_) => None,
        }
    }

    /// The text that a person is shown.
    pub fn subject(&self) -> &str {
        self.subjects.first().map_or("", String::as_str)
    }
}

/// What a yes lets happen; the effect checks it. Patterns are for rules, these are for acts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Let {
    Read(PathBuf),
    Edit(PathBuf),
    Run {
        script: String,
        folder: PathBuf,
    },
    /// Reading, typing into, signalling and ending this program.
    Steer(ProcessId),
    Use(Cow<'static, str>),
}

/// Everything one call wants, in one question.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ask {
    pub parts: Vec<Part>,
    pub lets: Vec<Let>,
    /// A diff or a command, as the person will see it.
    pub preview: String,
    /// The sub-agents on whose behalf it is asked, outermost first.
    pub from: Vec<String>,
    /// What the rules say of each part; the gate fills it in.
    #[serde(skip)]
    pub verdicts: Vec<Action>,
}

impl Ask {
    /// Use of a tool that touches neither files nor programs.
    pub fn to_use(tool: &'static str) -> Self {
        let part = Part::new(tool, "*").always(Pattern::any());
        Ask::default().and(Let::Use(Cow::Borrowed(tool)), part)
    }

    pub fn to_read(path: &Resolved) -> Self {
        Ask::default().read(path)
    }

    /// A path brings its own `external_directory` part along.
    pub fn read(mut self, path: &Resolved) -> Self {
        self.parts.extend(path.outside());
        self.and(Let::Read(path.real()), path.part("read"))
    }

    pub fn and(mut self, act: Let, part: Part) -> Self {
        self.lets.push(act);
        self.parts.push(part);
        self
    }

    pub fn preview(mut self, text: impl Into<String>) -> Self {
        self.preview = text.into();
        self
    }

    /// Identity of exactly what is shown: an answer to another question does not count.
    pub fn key(&self) -> AskKey {
        let mut hasher = blake3::Hasher::new();
        let shown = (&self.parts, &self.lets, &self.preview, &self.from);
        match serde_json::to_writer(&mut hasher, &shown) {
            Ok(()) => {}
            // A path that is not UTF-8 has no JSON form; its debug form is as exact.
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
        /// A word to the model.
        word: Option<String>,
    },
    /// There was nobody to ask.
    Unanswered,
}

/// How long a yes lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Once,
    Session,
    Project,
    Everywhere,
}

/// Proof of a yes, for these acts. Only the gate makes one; it cannot outlive its call.
#[derive(Debug)]
pub struct Grant<'call> {
    lets: Vec<Let>,
    _call: std::marker::PhantomData<&'call ()>,
}

impl Grant<'_> {
    pub(crate) fn of(ask: Ask) -> Self {
        Self { lets: ask.lets, _call: std::marker::PhantomData }
    }

    /// Whether this very act was granted.
    pub fn covers(&self, act: &Let) -> bool {
        self.lets.contains(act)
    }
}

#[cfg(test)]
pub(crate) mod tests;
