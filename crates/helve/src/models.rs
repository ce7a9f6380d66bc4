//! Finds the model to use: from the configuration, or from the built-in list of providers.

use std::time::Duration;

use helve_agent::http::{ApiKey, Deadlines, Endpoint};
use helve_agent::item::{ModelRef, Protocol};
use helve_agent::model::ActiveModel;
use helve_agent::request::{ModelSettings, Quirks};
use helve_ext::config::{ModelConfig, ModelSection, ProviderConfig};

use crate::toolbox::Toolbox;

/// The context window of a model about which nothing is known.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 32_768;
/// The output limit of a model about which nothing is known.
pub const DEFAULT_OUTPUT_TOKENS: u64 = 4_096;

/// A provider that needs no configuration but a key.
struct KnownProvider {
    id: &'static str,
    protocol: Protocol,
    base_url: &'static str,
    key_variables: &'static [&'static str],
}

const KNOWN_PROVIDERS: &[KnownProvider] = &[
    KnownProvider {
        id: "anthropic",
        protocol: Protocol::Messages,
        base_url: "https://api.anthropic.com",
        key_variables: &["ANTHROPIC_API_KEY"],
    },
    KnownProvider {
        id: "openai",
        protocol: Protocol::Responses,
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
    },
    KnownProvider {
        id: "openrouter",
        protocol: Protocol::Chat,
        base_url: "https://openrouter.ai/api/v1",
        key_variables: &["OPENROUTER_API_KEY"],
    },
    KnownProvider {
        id: "groq",
        protocol: Protocol::Chat,
        base_url: "https://api.groq.com/openai/v1",
        key_variables: &["GROQ_API_KEY"],
    },
    KnownProvider {
        id: "deepseek",
        protocol: Protocol::Chat,
        base_url: "https://api.deepseek.com/v1",
        key_variables: &["DEEPSEEK_API_KEY"],
    },
    KnownProvider {
        id: "mistral",
        protocol: Protocol::Chat,
        base_url: "https://api.mistral.ai/v1",
        key_variables: &["MISTRAL_API_KEY"],
    },
    KnownProvider {
        id: "xai",
        protocol: Protocol::Chat,
        base_url: "https://api.x.ai/v1",
        key_variables: &["XAI_API_KEY"],
    },
    KnownProvider {
        id: "google",
        protocol: Protocol::Chat,
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
    },
    KnownProvider {
        id: "ollama",
        protocol: Protocol::Chat,
        base_url: "http://127.0.0.1:11434/v1",
        key_variables: &[],
    },
];

/// Returns a model at an address, without any configuration. `base_url` does not include the path of the protocol.
pub fn model_at(
    base_url: &str,
    protocol: Protocol,
    name: &str,
    key: Option<ApiKey>,
) -> ActiveModel {
    let quirks = Quirks { takes_images: true, takes_documents: true, ..Quirks::default() };
    ActiveModel {
        model: ModelRef { provider: base_url.into(), model: name.into(), protocol },
        endpoint: Endpoint {
            deadlines: Deadlines::for_url(base_url),
            base_url: base_url.into(),
            protocol,
            key,
            headers: Vec::new(),
        },
        settings: ModelSettings {
            max_output: Some(DEFAULT_OUTPUT_TOKENS),
            quirks,
            ..ModelSettings::default()
        },
        window: DEFAULT_CONTEXT_WINDOW,
        prices: None,
    }
}

/// Why no model can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error(
        "no model is configured; pass --model PROVIDER/MODEL, or set \"model\": \"PROVIDER/MODEL\" in helve.json"
    )]
    NotConfigured,
    #[error("\"{0}\" does not name a provider; write PROVIDER/MODEL, such as openai/gpt-5")]
    NoProviderNamed(String),
    #[error("the provider \"{id}\" is not known; known ones: {}; others need a baseURL in the configuration", known.join(", "))]
    UnknownProvider { id: String, known: Vec<String> },
    #[error("the provider \"{0}\" is switched off in the configuration")]
    SwitchedOff(String),
    #[error(
        "the provider \"{id}\" needs a baseURL: set provider.{id}.options.baseURL in the configuration"
    )]
    NoAddress { id: String },
    #[error("the protocol \"{0}\" is not known; use chat, responses or messages")]
    UnknownProtocol(String),
    #[error("there is no key for the provider \"{id}\"; set {variable}")]
    NoKey { id: String, variable: String },
}

impl Toolbox {
    /// Returns the model with this name, `PROVIDER/MODEL`, or the one configured for the agent or for all.
    pub fn model(&self, name: Option<&str>) -> Result<ActiveModel, ModelError> {
        let environment = |variable: &str| std::env::var(variable).ok();
        let agent = self.agent_config();
        let of_agent = agent.and_then(|agent| agent.model.as_ref()).map(|name| name.value.as_str());
        let mut model = find(&self.config().models, name.or(of_agent), &environment)?;
        if let Some(agent) = agent {
            model.settings.temperature = agent.temperature.as_ref().map(|given| given.value);
            model.settings.top_p = agent.top_p.as_ref().map(|given| given.value);
        }
        Ok(model)
    }
}

fn find(
    section: &ModelSection,
    name: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<ActiveModel, ModelError> {
    let configured = section.model.as_ref().map(|model| model.value.as_str());
    let name = name.or(configured).ok_or(ModelError::NotConfigured)?;
    let split = name.split_once('/').filter(|(id, model)| !id.is_empty() && !model.is_empty());
    let (id, model) = split.ok_or_else(|| ModelError::NoProviderNamed(name.into()))?;
    let known = KNOWN_PROVIDERS.iter().find(|known| known.id == id);
    let provider = section.providers.iter().find(|provider| provider.id == id);
    if known.is_none() && provider.is_none() {
        let known = KNOWN_PROVIDERS.iter().map(|known| known.id.to_string());
        let configured = section.providers.iter().map(|provider| provider.id.clone());
        let known = known.chain(configured).collect();
        return Err(ModelError::UnknownProvider { id: id.into(), known });
    }
    let is_named =
        |list: &[helve_ext::config::WithSource<String>]| list.iter().any(|name| name.value == id);
    let is_enabled = section.enabled.as_deref().is_none_or(is_named);
    if !is_enabled || is_named(&section.disabled) {
        return Err(ModelError::SwitchedOff(id.into()));
    }
    let nothing = ProviderConfig::default();
    let provider = provider.unwrap_or(&nothing);
    let base_url = provider.base_url.as_ref().map(|url| url.value.clone());
    let base_url = base_url.or(known.map(|known| known.base_url.to_string()));
    let base_url = base_url.ok_or_else(|| ModelError::NoAddress { id: id.into() })?;
    let protocol = protocol(provider, known)?;
    let mut deadlines = Deadlines::for_url(&base_url);
    if let Some(idle) = &provider.idle_timeout {
        deadlines.idle = Duration::from_millis(idle.value);
    }
    let headers = provider.headers.iter();
    let endpoint = Endpoint {
        key: key(id, provider, known, environment)?,
        headers: headers.map(|(name, value)| (name.clone(), value.value.clone())).collect(),
        base_url,
        protocol,
        deadlines,
    };
    let config = provider.models.iter().find(|known| known.name == model);
    Ok(active_model(id, model, config, endpoint))
}

fn active_model(
    provider: &str,
    name: &str,
    config: Option<&ModelConfig>,
    endpoint: Endpoint,
) -> ActiveModel {
    let sent = config.and_then(|config| config.id.as_ref()).map(|id| id.value.as_str());
    let window = config.and_then(|config| config.context.as_ref()).map(|limit| limit.value);
    let output = config.and_then(|config| config.output.as_ref()).map(|limit| limit.value);
    let takes = |modality: &str| {
        config.is_some_and(|config| config.modalities.iter().any(|known| known.value == modality))
    };
    // A model that is not described is assumed to see images, as most do today.
    let is_described = config.is_some_and(|config| !config.modalities.is_empty());
    let quirks = Quirks {
        is_openai: endpoint.base_url.starts_with("https://api.openai.com"),
        takes_images: !is_described || takes("image"),
        takes_documents: is_described && takes("pdf"),
        ..Quirks::default()
    };
    ActiveModel {
        model: ModelRef {
            provider: provider.into(),
            model: sent.unwrap_or(name).into(),
            protocol: endpoint.protocol,
        },
        endpoint,
        settings: ModelSettings {
            max_output: Some(output.unwrap_or(DEFAULT_OUTPUT_TOKENS)),
            quirks,
            ..ModelSettings::default()
        },
        window: window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
        prices: None,
    }
}

fn protocol(
    provider: &ProviderConfig,
    known: Option<&KnownProvider>,
) -> Result<Protocol, ModelError> {
    if let Some(protocol) = &provider.protocol {
        return match protocol.value.as_str() {
            "chat" => Ok(Protocol::Chat),
            "responses" => Ok(Protocol::Responses),
            "messages" => Ok(Protocol::Messages),
            other => Err(ModelError::UnknownProtocol(other.into())),
        };
    }
    let of_package = provider.npm.as_ref().map(|npm| match npm.value.as_str() {
        "@ai-sdk/openai" => Protocol::Responses,
        "@ai-sdk/anthropic" => Protocol::Messages,
        _ => Protocol::Chat,
    });
    Ok(of_package.or(known.map(|known| known.protocol)).unwrap_or(Protocol::Chat))
}

/// The key: from the configuration, or from the environment. A provider at a configured address may need none.
fn key(
    id: &str,
    provider: &ProviderConfig,
    known: Option<&KnownProvider>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ApiKey>, ModelError> {
    if let Some(key) = &provider.key {
        return Ok(Some(ApiKey::new(key.value.as_str())));
    }
    let configured = provider.key_variables.iter().map(|variable| variable.value.as_str());
    let built_in = known.map_or(&[][..], |known| known.key_variables);
    let variables: Vec<&str> = configured.chain(built_in.iter().copied()).collect();
    let set = variables.iter().filter_map(|variable| environment(variable));
    let mut set = set.filter(|key| !key.trim().is_empty());
    match (set.next(), variables.first()) {
        (Some(key), _) => Ok(Some(ApiKey::new(key))),
        (None, Some(variable)) if provider.base_url.is_none() => {
            Err(ModelError::NoKey { id: id.into(), variable: variable.to_string() })
        }
        (None, _) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use helve_core::Source;
    use helve_ext::config::WithSource;

    use super::*;

    fn value<T>(value: T) -> WithSource<T> {
        WithSource::new(value, Source::Builtin)
    }

    fn section() -> ModelSection {
        let local = ProviderConfig {
            id: "local".into(),
            base_url: Some(value("http://127.0.0.1:1/v1".into())),
            models: vec![ModelConfig {
                name: "qwen".into(),
                id: Some(value("qwen3-coder".into())),
                context: Some(value(64_000)),
                output: Some(value(8_000)),
                modalities: vec![value("text".into())],
            }],
            ..ProviderConfig::default()
        };
        let claude = ProviderConfig {
            id: "proxy".into(),
            npm: Some(value("@ai-sdk/anthropic".into())),
            base_url: Some(value("http://127.0.0.1:2".into())),
            key_variables: vec![value("PROXY_KEY".into())],
            ..ProviderConfig::default()
        };
        let named = ProviderConfig { id: "nowhere".into(), ..ProviderConfig::default() };
        ModelSection {
            model: Some(value("local/qwen".into())),
            providers: vec![local, claude, named],
            disabled: vec![value("groq".into())],
            ..ModelSection::default()
        }
    }

    /// Shows the model that a name stands for, with `OPENAI_API_KEY` set.
    #[track_caller]
    fn check(section: &ModelSection, name: Option<&str>, expected: &str) {
        let environment =
            |variable: &str| (variable == "OPENAI_API_KEY").then(|| "sk-secret".to_string());
        let found = match find(section, name, &environment) {
            Ok(active) => format!(
                "{} {:?} {} key {} window {} images {}",
                active.model.model,
                active.model.protocol,
                active.endpoint.base_url,
                active.endpoint.key.is_some(),
                active.window,
                active.settings.quirks.takes_images,
            ),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn models_are_found_in_the_configuration_and_in_the_list() {
        let section = section();
        check(
            &section,
            None,
            "qwen3-coder Chat http://127.0.0.1:1/v1 key false window 64000 images false",
        );
        check(
            &section,
            Some("proxy/claude-x"),
            "claude-x Messages http://127.0.0.1:2 key false window 32768 images true",
        );
        check(
            &section,
            Some("openai/gpt-5"),
            "gpt-5 Responses https://api.openai.com/v1 key true window 32768 images true",
        );
        check(
            &section,
            Some("openrouter/a/b"),
            "there is no key for the provider \"openrouter\"; set OPENROUTER_API_KEY",
        );
    }

    #[test]
    fn mistakes_are_explained() {
        let section = section();
        let none = ModelSection::default();
        check(&none, None, &ModelError::NotConfigured.to_string());
        check(
            &section,
            Some("gpt-5"),
            "\"gpt-5\" does not name a provider; write PROVIDER/MODEL, such as openai/gpt-5",
        );
        check(
            &section,
            Some("groq/x"),
            "the provider \"groq\" is switched off in the configuration",
        );
        check(
            &section,
            Some("nowhere/x"),
            "the provider \"nowhere\" needs a baseURL: set provider.nowhere.options.baseURL in the configuration",
        );
        let only = ModelSection { enabled: Some(vec![value("local".into())]), ..section };
        check(
            &only,
            Some("openai/x"),
            "the provider \"openai\" is switched off in the configuration",
        );
    }
}
