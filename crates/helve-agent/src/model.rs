//! The model of a session: where it is, what it takes, what it costs.

use serde_json::value::to_raw_value;

use helve_core::registry::ToolSet;
use helve_core::spec::InputSpec;

use crate::http::Endpoint;
use crate::item::ModelRef;
use crate::request::{ModelSettings, ToolDefinition, ToolInput};

/// Bytes of English text or code per token, for estimates.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Bytes of other text per token.
const OTHER_BYTES_PER_TOKEN: f64 = 2.5;

/// A model that can be asked.
#[derive(Clone, Debug)]
pub struct ActiveModel {
    pub model: ModelRef,
    pub endpoint: Endpoint,
    pub settings: ModelSettings,
    /// The size of the context window in tokens.
    pub window: u64,
}

/// The tools of a session as a model sees them, sorted by name.
pub fn tool_definitions(tools: &ToolSet) -> Vec<ToolDefinition> {
    let input = |spec: &InputSpec| match spec {
        InputSpec::Json(schema) => ToolInput::Json(to_raw_value(schema).unwrap_or_default()),
        InputSpec::Text { grammar, field, about } => ToolInput::Text {
            grammar: grammar.to_string(),
            field: field.to_string(),
            about: about.to_string(),
        },
    };
    let definition = |spec: &helve_core::spec::ToolSpec| ToolDefinition {
        name: spec.name.clone(),
        about: spec.about.clone(),
        input: input(&spec.input),
    };
    tools.specs().map(definition).collect()
}

/// Estimates the tokens of a text.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as f64;
    let other = text.len() as f64 - ascii;
    (ascii / BYTES_PER_TOKEN + other / OTHER_BYTES_PER_TOKEN).ceil() as u64
}
