//! The built-in list of model providers.

use helve_agent::item::Protocol;
use helve_ext::config::{ModelSection, ProviderConfig};

/// A provider that can be used without configuration. Most need a key.
pub(crate) struct BuiltinProvider {
    pub(crate) id: &'static str,
    pub(crate) protocol: Protocol,
    pub(crate) base_url: &'static str,
    pub(crate) key_variables: &'static [&'static str],
}

pub(crate) const BUILTIN_PROVIDERS: &[BuiltinProvider] = &[
    BuiltinProvider {
        id: "anthropic",
        protocol: Protocol::Messages,
        base_url: "https://api.anthropic.com",
        key_variables: &["ANTHROPIC_API_KEY"],
    },
    BuiltinProvider {
        id: "openai",
        protocol: Protocol::Responses,
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
    },
    BuiltinProvider {
        id: "openrouter",
        protocol: Protocol::Chat,
        base_url: "https://openrouter.ai/api/v1",
        key_variables: &["OPENROUTER_API_KEY"],
    },
    BuiltinProvider {
        id: "groq",
        protocol: Protocol::Chat,
        base_url: "https://api.groq.com/openai/v1",
        key_variables: &["GROQ_API_KEY"],
    },
    BuiltinProvider {
        id: "deepseek",
        protocol: Protocol::Chat,
        base_url: "https://api.deepseek.com/v1",
        key_variables: &["DEEPSEEK_API_KEY"],
    },
    BuiltinProvider {
        id: "mistral",
        protocol: Protocol::Chat,
        base_url: "https://api.mistral.ai/v1",
        key_variables: &["MISTRAL_API_KEY"],
    },
    BuiltinProvider {
        id: "xai",
        protocol: Protocol::Chat,
        base_url: "https://api.x.ai/v1",
        key_variables: &["XAI_API_KEY"],
    },
    BuiltinProvider {
        id: "google",
        protocol: Protocol::Chat,
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
    },
    BuiltinProvider {
        id: "ollama",
        protocol: Protocol::Chat,
        base_url: "http://127.0.0.1:11434/v1",
        key_variables: &[],
    },
];

/// Returns the environment variables in which a provider's key is looked for.
pub(crate) fn key_variables<'a>(
    provider: &'a ProviderConfig,
    builtin: Option<&BuiltinProvider>,
) -> Vec<&'a str> {
    let configured = provider.key_variables.iter().map(|variable| variable.value.as_str());
    let variables = builtin.map_or(&[][..], |builtin| builtin.key_variables);
    configured.chain(variables.iter().copied()).collect()
}

/// Returns the ids of all providers, built-in and configured, with the environment variables of their keys.
pub(crate) fn all_providers(section: &ModelSection) -> Vec<(String, Vec<String>)> {
    let owned = |variables: Vec<&str>| variables.into_iter().map(String::from).collect();
    let no_config = ProviderConfig::default();
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for builtin in BUILTIN_PROVIDERS {
        let provider = section.providers.iter().find(|provider| provider.id == builtin.id);
        let variables = key_variables(provider.unwrap_or(&no_config), Some(builtin));
        all.push((builtin.id.into(), owned(variables)));
    }
    for provider in &section.providers {
        if !all.iter().any(|(id, _)| *id == provider.id) {
            all.push((provider.id.clone(), owned(key_variables(provider, None))));
        }
    }
    all
}
