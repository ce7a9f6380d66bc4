//! The hooks with which plugins change a conversation: `chat.message`, `chat.params`, `chat.headers`, and hooks for the
//! system prompt, the messages of a request, the texts of a reply, and the prompt for a summary.

use std::sync::Weak;

use helve_agent::hook::{ChatContext, ChatHook, ChatHookResult};
use helve_agent::item::{Block, Entry, Item, MessagePart};
use helve_agent::request::ModelSettings;
use helve_core::BoxFuture;
use helve_script::Scripts;
use serde_json::{Map, Value, json};

/// Runs the chat hooks of plugins. The reference is weak, so that only the toolbox keeps the scripts alive.
pub(super) struct PluginChatHook(pub(super) Weak<Scripts>);

impl PluginChatHook {
    /// Runs the hooks called `name`. As in opencode, each hook changes its second argument, the `output`, in place: it
    /// begins as `initial_output`, and is returned after the last hook.
    async fn run(
        &self,
        name: &str,
        context: ChatContext<'_>,
        initial_output: Value,
    ) -> Result<Value, String> {
        match self.0.upgrade() {
            Some(scripts) => scripts.run_hooks(name, &hook_input(context), initial_output).await,
            None => Ok(initial_output),
        }
    }
}

fn hook_input(context: ChatContext<'_>) -> Value {
    let ChatContext { session, agent, model } = context;
    let model = json!({"providerID": model.provider, "modelID": model.name});
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
            let original = json!({"message": {"role": "user"}, "parts": before});
            let output = self.run("chat.message", context, original).await?;
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
            let original = json!({
                "temperature": settings.temperature,
                "topP": settings.top_p,
                "maxOutputTokens": settings.max_output,
                "options": {},
            });
            let output = self.run("chat.params", context, original).await?;
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
            let original = json!({"headers": before});
            let output = self.run("chat.headers", context, original).await?;
            if let Some(after) = output.get("headers").and_then(Value::as_object) {
                let text = |(name, value): (&String, &Value)| {
                    Some((name.clone(), value.as_str()?.to_owned()))
                };
                *headers = after.iter().filter_map(text).collect();
            }
            Ok(())
        })
    }

    fn summary<'a>(
        &'a self,
        context: ChatContext<'a>,
        prompt: &'a mut String,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async move {
            let original = json!({"context": [], "prompt": null});
            let output = self.run("experimental.session.compacting", context, original).await?;
            if let Some(replaced) = output.get("prompt").and_then(Value::as_str) {
                *prompt = replaced.into();
            }
            let additions = output.get("context").and_then(Value::as_array);
            for text in additions.into_iter().flatten().filter_map(Value::as_str) {
                *prompt = format!("{prompt}\n\n{text}");
            }
            Ok(())
        })
    }

    fn reply_text<'a>(
        &'a self,
        context: ChatContext<'a>,
        text: &'a mut String,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async move {
            let original = json!({"text": text});
            let output = self.run("experimental.text.complete", context, original).await?;
            if let Some(changed) = output.get("text").and_then(Value::as_str) {
                *text = changed.into();
            }
            Ok(())
        })
    }

    fn entries<'a>(
        &'a self,
        context: ChatContext<'a>,
        entries: &'a mut Vec<Entry>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async move {
            let name = "experimental.chat.messages.transform";
            let has_hook = self.0.upgrade().is_some_and(|scripts| scripts.has_hook(name));
            if !has_hook {
                return Ok(());
            }
            let before = messages(context.session, entries);
            let output = self.run(name, context, json!({"messages": before})).await?;
            if let Some(after) = output.get("messages").and_then(Value::as_array) {
                apply_messages(entries, &before, after);
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
            let original = json!({"system": system});
            let name = "experimental.chat.system.transform";
            let output = self.run(name, context, original).await?;
            if let Some(after) = output.get("system").and_then(Value::as_array) {
                *system = after.iter().filter_map(|it| it.as_str().map(String::from)).collect();
            }
            Ok(())
        })
    }
}

/// Returns a conversation in opencode's format for plugins, in which a result is part of the message that contains its
/// call.
pub(crate) fn messages(session: &str, entries: &[Entry]) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for Entry { seq, item } in entries {
        let (role, parts) = match item {
            Item::User { content } => ("user", content.iter().filter_map(text_part).collect()),
            Item::Assistant(message) => {
                ("assistant", message.blocks.iter().filter_map(block_part).collect())
            }
            Item::Result(result) => {
                let is_call = |part: &&mut Value| part["callID"] == *result.call;
                let parts = messages.iter_mut().rev().filter_map(|it| it["parts"].as_array_mut());
                if let Some(part) = parts.flatten().find(is_call) {
                    let status = if result.is_error { "error" } else { "completed" };
                    part["state"]["status"] = status.into();
                    part["state"]["output"] = result.text().into();
                }
                continue;
            }
            Item::Note { .. }
            | Item::Summary { .. }
            | Item::OutputsCleared { .. }
            | Item::MediaRejected { .. }
            | Item::Undone { .. }
            | Item::Redone { .. } => continue,
        };
        let parts: Vec<Value> = parts;
        let info = json!({"id": format!("msg_{seq}"), "role": role, "sessionID": session});
        messages.push(json!({"info": info, "parts": parts}));
    }
    messages
}

fn text_part(part: &MessagePart) -> Option<Value> {
    match part {
        MessagePart::Text(text) => Some(json!({"type": "text", "text": text})),
        MessagePart::Media { .. } => None,
    }
}

fn block_part(block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => Some(json!({"type": "text", "text": text})),
        Block::Reasoning { text, .. } => Some(json!({"type": "reasoning", "text": text})),
        Block::Call(call) => {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            let state = json!({"status": "running", "input": input});
            Some(json!({"type": "tool", "tool": call.name, "callID": call.id, "state": state}))
        }
        Block::Phase(_) | Block::Other(_) => None,
    }
}

/// Applies the changes of plugins: removes the messages that they removed, and replaces the texts that they changed.
/// Calls stay as they are.
fn apply_messages(entries: &mut Vec<Entry>, before: &[Value], after: &[Value]) {
    let id =
        |message: &Value| message.pointer("/info/id").and_then(Value::as_str).map(String::from);
    for old in before {
        let Some(name) = id(old) else { continue };
        let seq: Option<u64> = name.strip_prefix("msg_").and_then(|seq| seq.parse().ok());
        let Some(index) = entries.iter().position(|entry| Some(entry.seq) == seq) else { continue };
        match after.iter().find(|message| id(message).as_ref() == Some(&name)) {
            None => {
                entries.remove(index);
            }
            Some(new) if new != old => change_texts(&mut entries[index].item, &texts(new)),
            Some(_) => {}
        }
    }
}

fn texts(message: &Value) -> Vec<String> {
    let parts = message.get("parts").and_then(Value::as_array).into_iter().flatten();
    let texts = parts.filter(|part| part.get("type").and_then(Value::as_str) == Some("text"));
    texts.filter_map(|part| Some(part.get("text")?.as_str()?.to_owned())).collect()
}

fn change_texts(item: &mut Item, texts: &[String]) {
    let mut texts = texts.iter();
    match item {
        Item::User { content } => {
            content.retain_mut(|part| match part {
                MessagePart::Text(text) => texts.next().map(|new| text.clone_from(new)).is_some(),
                MessagePart::Media { .. } => true,
            });
            content.extend(texts.map(|text| MessagePart::Text(text.clone())));
        }
        Item::Assistant(message) => message.blocks.retain_mut(|block| match block {
            Block::Text(text) => texts.next().map(|new| text.clone_from(new)).is_some(),
            Block::Call(_) | Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => true,
        }),
        Item::Result(_)
        | Item::Note { .. }
        | Item::Summary { .. }
        | Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => {}
    }
}
