//! What local servers say about the size of their context window. Pure.

use serde_json::Value;

/// What a local server says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbedServer {
    /// The size of its context window in tokens.
    pub window: Option<u64>,
    /// Whether it silently leaves out the beginning of a prompt that is too long.
    pub cuts_prompts: bool,
}

/// A value outside this range cannot be the size of a context window.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 512..=100_000_000;

fn plausible(value: &Value) -> Option<u64> {
    value.as_u64().filter(|window| PLAUSIBLE.contains(window))
}

/// Finds the window in the answer of llama.cpp's server to `GET /props`.
pub(crate) fn llama_cpp(properties: &Value) -> Option<u64> {
    let nested = plausible(&properties["default_generation_settings"]["n_ctx"]);
    nested.or_else(|| plausible(&properties["n_ctx"]))
}

/// Finds the window of a model in the answer of vLLM to `GET /v1/models`.
pub(crate) fn vllm(models: &Value, name: &str) -> Option<u64> {
    let all = models["data"].as_array()?;
    let named = all.iter().find(|model| model["id"] == name);
    // If the server offers only one model, that is the one, even under another name.
    let model = named.or(if all.len() == 1 { all.first() } else { None })?;
    plausible(&model["max_model_len"])
}

/// Whether `GET /api/version` was answered as Ollama does.
pub(crate) fn is_ollama(version: &Value) -> bool {
    version["version"].is_string() && version.as_object().is_some_and(|members| members.len() == 1)
}

/// Finds the window in the answer of Ollama to `POST /api/show`. Only a configured window counts: without one, Ollama
/// uses a small default, however large the model's own window is.
pub(crate) fn ollama(shown: &Value) -> Option<u64> {
    let parameters = shown["parameters"].as_str()?;
    parameters.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let is_window = words.next() == Some("num_ctx");
        let window = words.next()?.parse().ok().filter(|window| PLAUSIBLE.contains(window));
        window.filter(|_| is_window)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_are_read_from_answers() {
        let properties = json!({"default_generation_settings": {"n_ctx": 8192}});
        assert_eq!(llama_cpp(&properties), Some(8192));
        assert_eq!(llama_cpp(&json!({"n_ctx": 0})), None);
        let models = json!({"data": [{"id": "a", "max_model_len": 4096}, {"id": "b"}]});
        assert_eq!(
            (vllm(&models, "a"), vllm(&models, "b"), vllm(&models, "c")),
            (Some(4096), None, None)
        );
        let one = json!({"data": [{"id": "path/to/a", "max_model_len": 1e5 as u64}]});
        assert_eq!(vllm(&one, "a"), Some(100_000));
        let shown = json!({"parameters": "stop \"x\"\nnum_ctx                        16384\n"});
        assert_eq!(ollama(&shown), Some(16_384));
        assert_eq!(
            ollama(&json!({"parameters": "temperature 1", "model_info": {"x.context_length": 9}})),
            None
        );
        assert!(is_ollama(&json!({"version": "0.9.0"})) && !is_ollama(&json!({"data": []})));
        for lie in [json!(null), json!([]), json!("x"), json!({"data": {}, "n_ctx": -1})] {
            assert_eq!((llama_cpp(&lie), vllm(&lie, "a"), ollama(&lie)), (None, None, None));
        }
    }
}
