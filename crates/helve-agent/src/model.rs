//! The model of a session: its endpoint, settings, context window and prices.

use serde_json::value::to_raw_value;

use helve_core::registry::ToolSet;
use helve_core::spec::InputSpec;

use crate::http::Endpoint;
use crate::item::ModelRef;
use crate::reply::Usage;
use crate::request::{ModelSettings, ToolDefinition, ToolInput};

/// Bytes of English text or code per token, for estimates.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Bytes of other text per token.
const OTHER_BYTES_PER_TOKEN: f64 = 2.5;

/// A model with everything that is needed to send requests to it.
#[derive(Clone, Debug)]
pub struct ActiveModel {
    pub reference: ModelRef,
    pub endpoint: Endpoint,
    pub settings: ModelSettings,
    /// The size of the context window in tokens.
    pub window: u64,
    /// Whether `window` is only an assumption. In that case, a local server is asked for the real size.
    pub is_window_assumed: bool,
    /// `None` if the price is not known.
    pub prices: Option<Prices>,
}

/// What a model costs, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub base: PriceTier,
    /// Other prices for requests with more input tokens than this number.
    pub long_context: Option<(u64, PriceTier)>,
}

/// The prices of one tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceTier {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Prices {
    /// Returns prices that do not depend on the length of a request.
    pub fn flat(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Self {
        Self { base: PriceTier { input, output, cache_read, cache_write }, long_context: None }
    }

    /// Returns the cost of a request in dollars. Reasoning costs as much as output.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let tier = match &self.long_context {
            Some((above, tier)) if input > *above => tier,
            Some(_) | None => &self.base,
        };
        let output = usage.output.saturating_add(usage.reasoning);
        let priced = [
            (usage.input, tier.input),
            (usage.cache_read, tier.cache_read),
            (usage.cache_write, tier.cache_write),
            (output, tier.output),
        ];
        priced.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum()
    }
}

/// Returns the definitions of the tools that are sent to the model, sorted by name.
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

/// Estimates the tokens of the part of a request that does not change: the system prompt and the tools.
pub fn fixed_tokens(system: &[String], tools: &[ToolDefinition]) -> u64 {
    let tool = |tool: &ToolDefinition| {
        let input = match &tool.input {
            ToolInput::Json(schema) => estimate_tokens(schema.get()),
            ToolInput::Text { grammar, about, .. } => {
                estimate_tokens(grammar) + estimate_tokens(about)
            }
        };
        estimate_tokens(&tool.name) + estimate_tokens(&tool.about) + input
    };
    let system: u64 = system.iter().map(|text| estimate_tokens(text)).sum();
    tools.iter().map(tool).fold(system, u64::saturating_add)
}

/// Estimates the tokens of a text.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as f64;
    let other = text.len() as f64 - ascii;
    (ascii / BYTES_PER_TOKEN + other / OTHER_BYTES_PER_TOKEN).ceil() as u64
}
