//! What a tool is, what it is given, what it gives back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use helve_text::cut::Keep;
use helve_text::wildcard;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::context::ToolContext;
use crate::input::Input;
use crate::permission::{AskKey, Reply};
use crate::store::Saved;
use crate::validate::Problem;
use crate::{BoxFuture, validate};

/// A tool, typed. One file holds one: arguments, description, what it does, what it says.
pub trait Tool: Send + Sync + 'static {
    /// The arguments; field docs are the parameter descriptions that a model reads.
    type Args: DeserializeOwned + JsonSchema + Send;
    const NAME: &'static str;
    /// The description: `include_str!` of the text file beside the tool.
    const ABOUT: &'static str;
    /// The permission key it is judged under besides its own name.
    const GROUP: &'static str = Self::NAME;
    const TRAITS: Traits = Traits::READ_ONLY;
    const AUDIENCE: Audience = Audience::EVERYONE;

    /// What this caller reads; [`Tool::ABOUT`] unless it depends on agent, model or client.
    fn about(&self, _who: &Caller) -> Cow<'static, str> {
        Cow::Borrowed(Self::ABOUT)
    }

    /// JSON by the schema of [`Tool::Args`], unless the tool takes raw text.
    fn input(&self) -> InputSpec {
        InputSpec::of::<Self::Args>()
    }

    /// The tool's own words for arguments that do not fit; `None` leaves them to the dialect.
    fn invalid(&self, _problems: &[Problem]) -> Option<String> {
        None
    }

    fn run(
        &self,
        args: Self::Args,
        ctx: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The erased form: every [`Tool`], every tool of an MCP server, every script.
pub trait AnyTool: Send + Sync {
    fn spec(&self, who: &Caller) -> ToolSpec;

    /// See [`Tool::invalid`].
    fn invalid(&self, problems: &[Problem]) -> Option<String>;

    /// Runs on input that satisfies the spec.
    fn call<'a>(
        &'a self,
        input: Input,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl<T: Tool> AnyTool for T {
    fn spec(&self, who: &Caller) -> ToolSpec {
        ToolSpec {
            name: T::NAME.into(),
            group: T::GROUP.into(),
            about: self.about(who).into_owned(),
            input: self.input(),
            traits: T::TRAITS,
            audience: T::AUDIENCE,
        }
    }

    fn invalid(&self, problems: &[Problem]) -> Option<String> {
        Tool::invalid(self, problems)
    }

    fn call<'a>(
        &'a self,
        input: Input,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let value = match input {
                Input::Json(value) => value,
                Input::Text(text) | Input::Raw(text) => Value::String(text),
            };
            match serde_json::from_value(value) {
                Ok(args) => self.run(args, ctx).await,
                Err(err) => {
                    let problems = [validate::beyond_schema(&err)];
                    let words = Tool::invalid(self, &problems)
                        .unwrap_or_else(|| ctx.words().invalid(T::NAME, &problems));
                    Err(ToolError::new(ErrorKind::InvalidArgs, words))
                }
            }
        })
    }
}

/// Who will read the specs and make the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub agent: String,
    pub model: String,
    pub provider: String,
    /// The program at the other end: `cli`, or an MCP client's name.
    pub client: String,
    /// Features that were switched on.
    pub flags: BTreeSet<String>,
}

/// Which callers a tool is for. Plain data, so that a list of tools can be read at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audience {
    /// Wildcards, any of which must match; empty means all.
    pub models: &'static [&'static str],
    pub not_models: &'static [&'static str],
    pub providers: &'static [&'static str],
    pub clients: &'static [&'static str],
    /// A feature flag that must be on.
    pub flag: Option<&'static str>,
    /// Callable, but never listed (`invalid`).
    pub hidden: bool,
}

impl Audience {
    pub const EVERYONE: Audience = Audience {
        models: &[],
        not_models: &[],
        providers: &[],
        clients: &[],
        flag: None,
        hidden: false,
    };
    pub const NOBODY: Audience = Audience { hidden: true, ..Audience::EVERYONE };

    pub fn admits(&self, who: &Caller) -> bool {
        let any = |list: &[&str], text: &str| list.iter().any(|one| wildcard::matches(one, text));
        let listed = |list: &[&str], text: &str| list.is_empty() || any(list, text);
        listed(self.models, &who.model)
            && !any(self.not_models, &who.model)
            && listed(self.providers, &who.provider)
            && listed(self.clients, &who.client)
            && self.flag.is_none_or(|flag| who.flags.contains(flag))
    }
}

/// A tool as it is advertised.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub group: String,
    pub about: String,
    pub input: InputSpec,
    pub traits: Traits,
    pub audience: Audience,
}

/// What a tool takes.
#[derive(Clone, Debug, PartialEq)]
pub enum InputSpec {
    /// An object that satisfies this JSON schema.
    Json(Value),
    /// Raw text under a grammar; `field` names it for doors that carry only objects.
    Text { grammar: &'static str, field: &'static str, about: &'static str },
}

impl InputSpec {
    /// The schema of a type, without the parts that only tools for humans read.
    pub fn of<A: JsonSchema>() -> Self {
        let mut schema = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            })
            .into_generator()
            .into_root_schema_for::<A>();
        schema.remove("title");
        schema.remove("description");
        InputSpec::Json(schema.to_value())
    }
}

/// Facts about a tool that doors and the engine act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    pub read_only: bool,
    /// May run beside other calls of the same message.
    pub parallel: bool,
    pub destructive: bool,
    /// Reaches beyond this machine.
    pub open_world: bool,
}

impl Traits {
    pub const READ_ONLY: Traits =
        Traits { read_only: true, parallel: true, destructive: false, open_world: false };
    /// Changes only what the session remembers.
    pub const REMEMBERS: Traits =
        Traits { read_only: false, parallel: false, destructive: false, open_world: false };
    pub const MUTATES: Traits =
        Traits { read_only: false, parallel: false, destructive: true, open_world: false };
}

/// A call as it came from a model, a person or another call.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub input: Input,
    pub origin: Origin,
    /// Answers that came along: a retry after a question that could not wait.
    pub answers: HashMap<AskKey, Reply>,
}

impl ToolCall {
    /// A model's call, with a new id.
    pub fn new(name: impl Into<String>, input: impl Into<Input>) -> Self {
        Self {
            id: format!("call_{}", uuid::Uuid::now_v7().simple()),
            name: name.into(),
            input: input.into(),
            origin: Origin::Model,
            answers: HashMap::new(),
        }
    }
}

/// Why a call exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Model,
    /// A person named the thing itself, so an ask about it is already answered.
    Person,
    Inside {
        parent: String,
    },
}

/// What a tool gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// A few words for a person: the path, the command.
    pub title: String,
    pub content: Vec<Content>,
    /// For programs; never shown to the model.
    pub metadata: Map<String, Value>,
    /// Which end matters when the text is too long.
    pub keep: Keep,
    /// Where the whole output is, when the tool or the engine saved it.
    pub saved: Option<Saved>,
}

impl ToolOutput {
    pub fn text(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            content: vec![Content::Text(text.into())],
            metadata: Map::new(),
            keep: Keep::Head,
            saved: None,
        }
    }

    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// All text, as a model would read it.
    pub fn joined(&self) -> String {
        let mut all = String::new();
        for content in &self.content {
            if let Content::Text(text) = content {
                if !all.is_empty() {
                    all.push('\n');
                }
                all.push_str(text);
            }
        }
        all
    }
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    /// An attachment: an image, a PDF.
    Media {
        mime: String,
        data: bytes::Bytes,
    },
    Link {
        uri: String,
        name: String,
    },
}

/// A failure: a kind for code, a sentence for the model, the next step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// For programs: the state a streamed call had reached, the problems found.
    pub metadata: BTreeMap<String, Value>,
}

impl ToolError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, metadata: BTreeMap::new() }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the model reads: the sentence and the next step.
    pub fn words(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message.clone(),
        }
    }
}

/// What went wrong, for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    UnknownTool,
    InvalidArgs,
    NotFound,
    /// The file is not what the call took it for.
    Stale,
    Denied,
    Cancelled,
    TimedOut,
    Failed,
    /// `helve why`: judged, not run.
    Explained,
}
