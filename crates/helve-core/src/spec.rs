//! How a tool is advertised, and to whom.

use std::collections::BTreeSet;

use helve_policy::{Part, Source};
use helve_text::wildcard;
use schemars::JsonSchema;
use serde_json::Value;

/// The agent, model and program that tools are offered to, and that call them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Name of the dialect that the caller speaks. Tools of other dialects are not offered.
    pub dialect: String,
    pub agent: String,
    pub model: String,
    pub provider: String,
    /// The program at the other end: `cli`, or an MCP client's name.
    pub client: String,
    /// Names of the features that are switched on.
    pub flags: BTreeSet<String>,
}

/// Which callers a tool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audience {
    /// Wildcards for models, one of which must match; empty means all models. The same holds for `providers` and
    /// `clients`.
    pub models: &'static [&'static str],
    /// Wildcards for models that the tool is not for.
    pub not_models: &'static [&'static str],
    pub providers: &'static [&'static str],
    pub clients: &'static [&'static str],
    /// A feature flag that must be on.
    pub flag: Option<&'static str>,
    /// Whether the tool can be called but is never listed, like `invalid`.
    pub hidden: bool,
    /// Whether the tool is only offered where a person answers questions.
    pub needs_person: bool,
}

impl Audience {
    pub const EVERYONE: Audience = Audience {
        models: &[],
        not_models: &[],
        providers: &[],
        clients: &[],
        flag: None,
        hidden: false,
        needs_person: false,
    };
    pub const HIDDEN: Audience = Audience { hidden: true, ..Audience::EVERYONE };

    /// Whether the tool is for this caller.
    pub fn admits(&self, caller: &Caller) -> bool {
        let matches_any =
            |list: &[&str], text: &str| list.iter().any(|pattern| wildcard::matches(pattern, text));
        let is_empty_or_matches =
            |list: &[&str], text: &str| list.is_empty() || matches_any(list, text);
        is_empty_or_matches(self.models, &caller.model)
            && !matches_any(self.not_models, &caller.model)
            && is_empty_or_matches(self.providers, &caller.provider)
            && is_empty_or_matches(self.clients, &caller.client)
            && self.flag.is_none_or(|flag| caller.flags.contains(flag))
    }
}

/// A tool as it is advertised.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    /// A second permission key under which the tool is judged; often the same as the name.
    pub group: String,
    /// The description that a model reads.
    pub about: String,
    pub input: InputSpec,
    pub properties: ToolProperties,
    pub audience: Audience,
}

impl ToolSpec {
    /// Returns the part for judging the tool as a whole, regardless of its arguments.
    pub fn part_for_any_arguments(&self) -> Part {
        let mut part = Part::new(self.group.clone(), "*");
        part.tool = (self.group != self.name).then(|| self.name.clone().into());
        part
    }
}

/// The input that a tool takes.
#[derive(Clone, Debug, PartialEq)]
pub enum InputSpec {
    /// An object that satisfies this JSON schema.
    Json(Value),
    /// Raw text that follows a grammar. Protocols that can only carry objects wrap it in an object with this `field`.
    Text { grammar: &'static str, field: &'static str, about: &'static str },
}

impl InputSpec {
    /// Returns the schema of a type, without the title and description that models do not need.
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
        let mut schema = schema.to_value();
        simplify(&mut schema);
        InputSpec::Json(schema)
    }
}

/// Turns `["integer", "null"]` into `"integer"`, and removes formats of numbers such as `uint64`.
///
/// Null is accepted for every optional member anyway (see [`restore_arguments`](crate::schema::restore_arguments)), and
/// some MCP clients do not support lists of types. The formats are names of Rust types, about which other clients warn.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = &mut types[..] {
                    let only = only.take();
                    members.insert("type".into(), only);
                }
            }
            let kind = members.get("type").and_then(Value::as_str);
            if matches!(kind, Some("integer" | "number")) {
                members.shift_remove("format");
            }
            members.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Properties of a tool that the engine and MCP clients rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolProperties {
    /// Whether the tool changes nothing.
    pub read_only: bool,
    /// Whether a call may run in parallel with other calls of the same message.
    pub parallel: bool,
    /// Whether the tool may remove or overwrite something.
    pub destructive: bool,
    /// Whether the tool reaches beyond this machine.
    pub open_world: bool,
    /// Whether a call can show what it would change without changing it.
    pub previews: bool,
}

impl ToolProperties {
    pub const READ_ONLY: ToolProperties = ToolProperties {
        read_only: true,
        parallel: true,
        destructive: false,
        open_world: false,
        previews: false,
    };
    /// For tools that change only the session's memory.
    pub const SESSION_STATE_ONLY: ToolProperties = ToolProperties {
        read_only: false,
        parallel: false,
        destructive: false,
        open_world: false,
        previews: false,
    };
    pub const MUTATES: ToolProperties = ToolProperties {
        read_only: false,
        parallel: false,
        destructive: true,
        open_world: false,
        previews: false,
    };
    /// For tools that change files and can show the change first.
    pub const CHANGES_FILES: ToolProperties =
        ToolProperties { previews: true, ..ToolProperties::MUTATES };
}

/// An entry of the configuration's `tools` map, which switches tools on or off. The last entry that matches decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSwitch {
    /// A tool's name, or a wildcard.
    pub pattern: String,
    pub on: bool,
    pub source: Source,
}
