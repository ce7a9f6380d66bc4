//! Shortens a transcript that no longer fits into the context window, in two stages:
//!
//! 1. Old outputs of tools are left out. They are left out all at once, because each change of old messages invalidates
//!    the provider's prompt cache.
//! 2. The older part of the transcript is replaced with a summary that the model writes.

use crate::compose;
use crate::item::{Block, Entry, Item, MessagePart};
use crate::model::estimate_tokens;

/// Number of newest turns that keep their outputs in the first stage.
const TURNS_WITH_OUTPUTS: usize = 2;
/// Maximum size of the tail: the newest items, which are kept verbatim after a summary.
const MAX_TAIL_TOKENS: u64 = 15_000;
/// The tail takes up at most 1/`TAIL_DIVISOR` of the context window.
const TAIL_DIVISOR: u64 = 4;
/// Maximum number of characters of a result that are passed to the summarizing model.
const MAX_RESULT_CHARS: usize = 2_000;
/// Estimated tokens of an image.
const IMAGE_TOKENS: u64 = 1_500;

/// Estimates the tokens of an item.
pub fn item_tokens(item: &Item) -> u64 {
    let part = |part: &MessagePart| match part {
        MessagePart::Text(text) => estimate_tokens(text),
        MessagePart::Media { .. } => IMAGE_TOKENS,
    };
    match item {
        Item::User { content } => content.iter().map(part).sum(),
        Item::Assistant(message) => message.blocks.iter().map(block_tokens).sum(),
        Item::Result(result) => result.content.iter().map(part).sum::<u64>() + 10,
        Item::Note { text, .. } | Item::Summary { text, .. } => estimate_tokens(text),
        Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => 0,
    }
}

/// Estimates the tokens of a block.
pub fn block_tokens(block: &Block) -> u64 {
    match block {
        Block::Text(text) => estimate_tokens(text),
        Block::Reasoning { text, raw } => {
            raw.as_deref().map_or(estimate_tokens(text), |raw| estimate_tokens(raw.get()))
        }
        Block::Call(call) => estimate_tokens(&call.name) + estimate_tokens(&call.arguments) + 10,
        Block::Phase(phase) => estimate_tokens(phase),
        Block::Other(raw) => estimate_tokens(raw.get()),
    }
}

/// Plans the first stage. Returns the item to append and the number of tokens that it saves, or `None` if it saves
/// nothing.
pub fn plan_clearing(entries: &[Entry]) -> Option<(Item, u64)> {
    let visible = compose::sent_entries(entries);
    let is_user = |entry: &&&Entry| matches!(entry.item, Item::User { .. });
    let before = visible.iter().rev().filter(is_user).nth(TURNS_WITH_OUTPUTS - 1)?.seq;
    let cleared_before = visible.iter().filter_map(|entry| match &entry.item {
        Item::OutputsCleared { before } => Some(*before),
        _ => None,
    });
    let cleared_before = cleared_before.max().unwrap_or(0);
    let outputs = visible.iter().filter(|entry| {
        matches!(entry.item, Item::Result(_)) && (cleared_before..before).contains(&entry.seq)
    });
    let saved: u64 = outputs.map(|entry| item_tokens(&entry.item).saturating_sub(20)).sum();
    (saved > 0).then_some((Item::OutputsCleared { before }, saved))
}

/// Which items a summary replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryPlan {
    /// The part to be summarized, as text.
    pub text: String,
    /// Positions of the user's messages in the current turn, which are kept verbatim.
    pub kept: Vec<u64>,
    /// Position of the first item after the summarized part. It and all later items are kept verbatim.
    pub tail_start: u64,
}

/// Returns how many tokens are kept verbatim in a context window of this size.
pub fn max_tail(window: u64) -> u64 {
    MAX_TAIL_TOKENS.min(window / TAIL_DIVISOR)
}

/// Plans the second stage. `max_tail` is the number of tokens that are kept verbatim. Returns `None` if there is
/// nothing to summarize.
pub fn plan_summary(entries: &[Entry], max_tail: u64) -> Option<SummaryPlan> {
    let visible = compose::sent_entries(entries);
    let end = entries.last().map_or(0, |entry| entry.seq + 1);
    let mut tail_start = end;
    let mut tokens = 0;
    for entry in visible.iter().rev() {
        tokens += item_tokens(&entry.item);
        if tokens > max_tail {
            break;
        }
        // Results stay with their calls.
        if matches!(entry.item, Item::Assistant(_)) {
            tail_start = entry.seq;
        }
    }
    let is_user = |entry: &&&Entry| matches!(entry.item, Item::User { .. });
    let newest_prompt = visible.iter().rev().find(is_user).map_or(end, |entry| entry.seq);
    let old: Vec<&&Entry> = visible.iter().filter(|entry| entry.seq < tail_start).collect();
    let text: String = old.iter().map(|entry| transcribed(&entry.item)).collect();
    let kept = old.iter().filter(|entry| is_user(entry) && entry.seq >= newest_prompt);
    let kept: Vec<u64> = kept.map(|entry| entry.seq).collect();
    let is_worth_it = old.iter().any(|entry| matches!(entry.item, Item::Assistant(_)));
    is_worth_it.then_some(SummaryPlan { text, kept, tail_start })
}

/// Returns an item as text for the summarizing model.
fn transcribed(item: &Item) -> String {
    let joined = |parts: &[MessagePart]| -> String {
        let part = |part: &MessagePart| match part {
            MessagePart::Text(text) => text.clone(),
            MessagePart::Media { mime, .. } => format!("({mime})"),
        };
        parts.iter().map(part).collect::<Vec<_>>().join("\n")
    };
    match item {
        Item::User { content } => format!("[User]: {}\n\n", joined(content)),
        Item::Assistant(message) => {
            let block = |block: &Block| match block {
                Block::Text(text) => format!("[Assistant]: {text}\n\n"),
                Block::Call(call) => format!("[Call]: {} {}\n\n", call.name, call.arguments),
                Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => String::new(),
            };
            message.blocks.iter().map(block).collect()
        }
        Item::Result(result) => {
            let text = joined(&result.content);
            let cut: String = text.chars().take(MAX_RESULT_CHARS).collect();
            let mark = if cut.len() < text.len() { " …" } else { "" };
            format!("[Result]: {cut}{mark}\n\n")
        }
        Item::Note { text, .. } => format!("[Note]: {text}\n\n"),
        Item::Summary { text, .. } => format!("[Earlier summary]: {text}\n\n"),
        Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::StopReason;
    use crate::item::{AssistantMessage, CallBlock, CallForm, CallResult, ModelRef, Protocol};

    /// In `kinds`, `u` is a user message, and `a` is an assistant message with a call, followed by a result of `size`
    /// characters.
    fn entries(kinds: &str, size: usize) -> Vec<Entry> {
        let mut items = Vec::new();
        for (at, kind) in kinds.chars().enumerate() {
            let id = format!("c{at}");
            match kind {
                'u' => {
                    items.push(Item::User { content: vec![MessagePart::Text(format!("u{at}"))] })
                }
                _ => {
                    let call = CallBlock {
                        id: id.clone(),
                        name: "read".into(),
                        arguments: "{}".into(),
                        form: CallForm::Json,
                    };
                    items.push(Item::Assistant(AssistantMessage {
                        blocks: vec![Block::Call(call)],
                        origin: ModelRef {
                            provider: "p".into(),
                            name: "m".into(),
                            protocol: Protocol::Chat,
                        },
                        stop: StopReason::ToolUse,
                        is_partial: false,
                    }));
                    items.push(Item::Result(CallResult {
                        call: id,
                        title: "a".into(),
                        content: vec![MessagePart::Text("x".repeat(size))],
                        is_error: false,
                        saved: None,
                    }));
                }
            }
        }
        (1..).zip(items).map(|(seq, item)| Entry { seq, item }).collect()
    }

    #[test]
    fn old_outputs_are_cleared_once() {
        assert!(plan_clearing(&entries("ua", 4_000)).is_none());
        let mut all = entries("uauaua", 4_000);
        let Some((Item::OutputsCleared { before }, saved)) = plan_clearing(&all) else {
            panic!("nothing to clear")
        };
        assert_eq!((before, saved), (4, 990));
        all.push(Entry { seq: 20, item: Item::OutputsCleared { before } });
        assert!(plan_clearing(&all).is_none());
    }

    #[test]
    fn the_tail_begins_at_an_assistant_message() {
        let all = entries("uaaaa", 20_000);
        let plan = plan_summary(&all, 15_000).unwrap();
        assert!(
            matches!(all[plan.tail_start as usize - 1].item, Item::Assistant(_)),
            "{}",
            plan.tail_start
        );
        assert_eq!((plan.kept, plan.tail_start), (vec![1], 6));
        let plan = plan_summary(&all, 0).unwrap();
        assert_eq!((plan.kept, plan.tail_start), (vec![1], 10));
        assert!(plan.text.starts_with("[User]: u0\n\n[Call]: read {}\n\n[Result]: xxx"));
        assert!(plan_summary(&entries("u", 1), 15_000).is_none());
    }
}
