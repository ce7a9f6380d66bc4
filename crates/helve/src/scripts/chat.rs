//! Hooks of plugins that see a conversation: `chat.message`, `chat.params`, `chat.headers` and the system prompt.

use std::sync::Weak;

use helve_agent::hook::{ChatContext, ChatHook, ChatHookResult};
use helve_agent::item::MessagePart;
use helve_agent::request::ModelSettings;
use helve_core::BoxFuture;
use helve_script::Scripts;
use serde_json::{Map, Value, json};

/// Does not keep the scripts alive, because a toolbox holds its hooks.
pub(super) struct PluginChatHook(pub(super) Weak<Scripts>);

impl PluginChatHook {
    async fn run(
        &self,
        name: &str,
        context: ChatContext<'_>,
        output: Value,
    ) -> Result<Value, String> {
        match self.0.upgrade() {
            Some(scripts) => scripts.run_hooks(name, &input(context), output).await,
            None => Ok(output),
        }
    }
}

fn input(context: ChatContext<'_>) -> Value {
    let ChatContext { session, agent, model } = context;
    let model = json!({"providerID": model.provider, "modelID": model.model});
    json!({"sessionID": session, "agent": agent, "model": model})
}

impl ChatHook for PluginChatHook {
    fn message<'a>(
        &'a self,
        context: ChatContext<'a>,
        parts: &'a mut Vec<MessagePart>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async move {
            let texts = parts.iter().filter_map(|part| match part {
                MessagePart::Text(text) => Some(json!({"type": "text", "text": text})),
                MessagePart::Media { .. } => None,
            });
            let before: Vec<Value> = texts.collect();
            let given = json!({"message": {"role": "user"}, "parts": before});
            let output = self.run("chat.message", context, given).await?;
            let after = output.get("parts").and_then(Value::as_array).unwrap_or(&before);
            if *after != before {
                let texts = after.iter().filter_map(|part| part.get("text")?.as_str());
                let mut changed: Vec<MessagePart> =
                    texts.map(|text| MessagePart::Text(text.into())).collect();
                let is_media = |part: &MessagePart| matches!(part, MessagePart::Media { .. });
                changed.extend(parts.drain(..).filter(is_media));
                *parts = changed;
            }
            Ok(())
        })
    }

    fn params<'a>(
        &'a self,
        context: ChatContext<'a>,
        settings: &'a mut ModelSettings,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async move {
            let given = json!({
                "temperature": settings.temperature,
                "topP": settings.top_p,
                "maxOutputTokens": settings.max_output,
                "options": {},
            });
            let output = self.run("chat.params", context, given).await?;
            settings.temperature = output.get("temperature").and_then(Value::as_f64);
            settings.top_p = output.get("topP").and_then(Value::as_f64);
            settings.max_output = output.get("maxOutputTokens").and_then(Value::as_u64);
            Ok(())
        })
    }

    fn headers<'a>(
        &'a self,
        context: ChatContext<'a>,
        headers: &'a mut Vec<(String, String)>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async move {
            let before: Map<String, Value> = headers
                .iter()
                .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
                .collect();
            let given = json!({"headers": before});
            let output = self.run("chat.headers", context, given).await?;
            if let Some(after) = output.get("headers").and_then(Value::as_object) {
                let text = |(name, value): (&String, &Value)| {
                    Some((name.clone(), value.as_str()?.to_owned()))
                };
                *headers = after.iter().filter_map(text).collect();
            }
            Ok(())
        })
    }

    fn system<'a>(
        &'a self,
        context: ChatContext<'a>,
        system: &'a mut Vec<String>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async move {
            let given = json!({"system": system});
            let name = "experimental.chat.system.transform";
            let output = self.run(name, context, given).await?;
            if let Some(after) = output.get("system").and_then(Value::as_array) {
                *system = after.iter().filter_map(|it| it.as_str().map(String::from)).collect();
            }
            Ok(())
        })
    }
}
