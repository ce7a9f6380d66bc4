//! Builds the messages of a request from a transcript.
//!
//! The request is valid even if the session was interrupted: every call has exactly one result, and content that the
//! model does not support is left out.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use helve_text::nesting::json_depth;

use crate::item::StopReason;
use crate::item::{
    AssistantMessage, Block, CallBlock, CallForm, CallResult, Entry, Item, MessagePart, ModelRef,
    Protocol,
};
use crate::request::{
    AssistantPart, CallPart, InputPart, Message, Quirks, ResultPart, ToolDefinition, ToolInput,
};
use crate::words;

/// Maximum number of images in a request. Older images are left out.
const MAX_IMAGES: usize = 20;
/// Maximum length of a tool name that all protocols accept.
const MAX_NAME: usize = 64;
/// Maximum nesting of arguments. Arguments nested deeper are sent as a string, because the providers' parsers limit the
/// depth too.
const MAX_DEPTH: usize = 60;

/// The model and the tools that a request is built for.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub model: &'a ModelRef,
    pub quirks: &'a Quirks,
    pub tools: &'a [ToolDefinition],
}

/// Returns the messages of a request. The same entries always give the same messages.
pub fn messages<'a>(entries: &'a [Entry], target: &Target<'a>) -> Vec<Message<'a>> {
    let view = TranscriptView::new(entries);
    let mut composer = Composer { target: *target, view: &view, messages: Vec::new() };
    for entry in &view.entries {
        composer.add(entry);
    }
    let mut messages = composer.messages;
    if let Some(Message::Assistant(_)) = messages.first() {
        let text = InputPart::Text(Cow::Borrowed(words::CONTINUES));
        messages.insert(0, Message::User(vec![text]));
    }
    limit_images(&mut messages);
    messages
}

/// The entries of a transcript that are sent. Undone and summarized entries are left out.
struct TranscriptView<'a> {
    entries: Vec<&'a Entry>,
    /// Results by the id of the call and the position of the result. An id may be used twice; the result of a call is
    /// the first one after it.
    results: BTreeMap<(&'a str, u64), &'a CallResult>,
    /// Outputs before this position are replaced with one line each.
    cleared_before: u64,
    /// Images and documents that the provider rejected: the position of the item, and the index of the part in it.
    rejected: BTreeSet<(u64, usize)>,
}

impl<'a> TranscriptView<'a> {
    fn new(entries: &'a [Entry]) -> Self {
        let undone = undone_positions(entries);
        let not_undone = || entries.iter().filter(|entry| !undone.contains(&entry.seq));
        let summary = not_undone().rev().find_map(|entry| match &entry.item {
            Item::Summary { kept, tail: tail_start, .. } => Some((entry, kept, *tail_start)),
            _ => None,
        });
        let sent: Vec<&Entry> = match summary {
            Some((summary, kept, tail_start)) => {
                let is_kept = |entry: &&Entry| kept.contains(&entry.seq) && entry.seq < tail_start;
                let is_after = |entry: &&Entry| entry.seq >= tail_start && entry.seq != summary.seq;
                let (kept, after) = (not_undone().filter(is_kept), not_undone().filter(is_after));
                std::iter::once(summary).chain(kept).chain(after).collect()
            }
            None => not_undone().collect(),
        };
        let mut results = BTreeMap::new();
        let mut cleared_before = 0;
        let mut rejected = BTreeSet::new();
        for entry in not_undone() {
            match &entry.item {
                Item::Result(result) => {
                    results.insert((result.call.as_str(), entry.seq), result);
                }
                Item::OutputsCleared { before } => cleared_before = cleared_before.max(*before),
                Item::MediaRejected { seq, part } => {
                    rejected.insert((*seq, *part));
                }
                _ => {}
            }
        }
        Self { entries: sent, results, cleared_before, rejected }
    }

    /// Returns the result of the call in the item at position `seq`, and the position of the result.
    fn result(&self, call: &CallBlock, seq: u64) -> Option<(u64, &'a CallResult)> {
        let after = self.results.range((call.id.as_str(), seq)..);
        let mut same = after.take_while(|((id, _), _)| *id == call.id);
        same.next().map(|((_, at), result)| (*at, *result))
    }
}

/// Returns the entries that are sent. Undone and summarized entries are left out.
pub fn sent_entries(entries: &[Entry]) -> Vec<&Entry> {
    TranscriptView::new(entries).entries
}

/// Returns the positions of items that a person undid and did not redo.
pub(crate) fn undone_positions(entries: &[Entry]) -> BTreeSet<u64> {
    let mut undone: Vec<(u64, u64)> = Vec::new();
    for entry in entries {
        match &entry.item {
            Item::Undone { from, .. } => undone.push((*from, entry.seq)),
            Item::Redone { undone: at } => undone.retain(|(_, seq)| seq != at),
            _ => {}
        }
    }
    let is_undone = |seq: u64| undone.iter().any(|(from, to)| (*from..*to).contains(&seq));
    entries.iter().map(|entry| entry.seq).filter(|seq| is_undone(*seq)).collect()
}

struct Composer<'a, 'v> {
    target: Target<'a>,
    view: &'v TranscriptView<'a>,
    messages: Vec<Message<'a>>,
}

impl<'a> Composer<'a, '_> {
    fn add(&mut self, entry: &'a Entry) {
        match &entry.item {
            Item::User { content } => {
                let parts = self.inputs(content, entry.seq);
                self.add_user(parts);
            }
            Item::Note { text, .. } | Item::Summary { text, .. } => {
                self.add_user(vec![InputPart::Text(Cow::Borrowed(text))]);
            }
            Item::Assistant(message) => self.add_assistant(message, entry.seq),
            // Results are added with their calls.
            Item::Result(_)
            | Item::OutputsCleared { .. }
            | Item::MediaRejected { .. }
            | Item::Undone { .. }
            | Item::Redone { .. } => {}
        }
    }

    fn add_user(&mut self, mut parts: Vec<InputPart<'a>>) {
        parts.retain(|part| !matches!(part, InputPart::Text(text) if text.trim().is_empty()));
        if parts.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(Message::User(last)) => last.extend(parts),
            Some(Message::Assistant(_) | Message::Results(_)) | None => {
                self.messages.push(Message::User(parts))
            }
        }
    }

    fn add_assistant(&mut self, message: &'a AssistantMessage, seq: u64) {
        // If a refusal is sent back, the model tends to refuse again.
        if message.stop == StopReason::Refused {
            return;
        }
        let is_same_model = message.origin == *self.target.model && !message.is_partial;
        let mut parts: Vec<AssistantPart<'a>> = message
            .blocks
            .iter()
            .filter_map(|block| self.assistant_part(block, is_same_model))
            .collect();
        if message.is_partial {
            parts.retain(|part| matches!(part, AssistantPart::Text(_)));
        }
        // Providers require text or a call after reasoning.
        while let Some(AssistantPart::Reasoning(_) | AssistantPart::Phase(_)) = parts.last() {
            parts.pop();
        }
        if parts.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(Message::Assistant(last)) => last.extend(parts),
            Some(Message::User(_) | Message::Results(_)) | None => {
                self.messages.push(Message::Assistant(parts))
            }
        }
        let results: Vec<ResultPart<'a>> =
            message.calls().map(|call| self.result(call, seq)).collect();
        if !results.is_empty() {
            self.messages.push(Message::Results(results));
        }
    }

    fn assistant_part(&self, block: &'a Block, is_same_model: bool) -> Option<AssistantPart<'a>> {
        match block {
            Block::Text(text) if text.trim().is_empty() => None,
            Block::Text(text) => Some(AssistantPart::Text(text)),
            Block::Reasoning { raw: Some(raw), .. } if is_same_model => {
                Some(AssistantPart::Reasoning(raw))
            }
            Block::Phase(phase) if is_same_model => Some(AssistantPart::Phase(phase)),
            Block::Other(raw) if is_same_model => Some(AssistantPart::Other(raw)),
            // If reasoning were sent as text, the model would imitate it.
            Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => None,
            Block::Call(call) => Some(AssistantPart::Call(CallPart {
                id: wire_id(self.target.model.protocol, &call.id),
                name: wire_name(&call.name),
                arguments: self.arguments(call),
                form: self.form(call),
            })),
        }
    }

    /// Returns the form in which a call is sent. Only one protocol supports calls whose input is plain text instead of
    /// JSON.
    fn form(&self, call: &CallBlock) -> CallForm {
        match self.target.model.protocol {
            Protocol::Responses => call.form,
            Protocol::Chat | Protocol::Messages => CallForm::Json,
        }
    }

    /// Returns the arguments of a call: as text for [`CallForm::Text`], otherwise as a JSON object.
    fn arguments(&self, call: &'a CallBlock) -> Cow<'a, str> {
        let text = call.arguments.trim();
        let field = match self.form(call) {
            CallForm::Text => return Cow::Borrowed(&call.arguments),
            CallForm::Json if call.form == CallForm::Text => self.text_field(&call.name),
            CallForm::Json if text.is_empty() => return Cow::Borrowed("{}"),
            CallForm::Json if text.starts_with('{') && is_json(text) => return Cow::Borrowed(text),
            CallForm::Json => "_raw",
        };
        let object = BTreeMap::from([(field, &call.arguments)]);
        Cow::Owned(serde_json::to_string(&object).unwrap_or_default())
    }

    /// Returns the field of the arguments that holds a tool's text input, for protocols that support only objects.
    fn text_field(&self, name: &str) -> &'a str {
        let tool = self.target.tools.iter().find(|tool| tool.name == name);
        match tool.map(|tool| &tool.input) {
            Some(ToolInput::Text { field, .. }) => field,
            Some(ToolInput::Json(_)) | None => "input",
        }
    }

    fn result(&self, call: &'a CallBlock, seq: u64) -> ResultPart<'a> {
        let found = self.view.result(call, seq);
        let content = match found {
            Some((at, result)) if at < self.view.cleared_before => vec![cleared(result)],
            Some((at, result)) => self.inputs(&result.content, at),
            None => vec![InputPart::Text(Cow::Borrowed(words::INTERRUPTED))],
        };
        let is_blank =
            |part: &InputPart<'_>| matches!(part, InputPart::Text(text) if text.trim().is_empty());
        let content = match content.iter().all(is_blank) {
            true => vec![InputPart::Text(Cow::Borrowed(words::NO_OUTPUT))],
            false => content.into_iter().filter(|part| !is_blank(part)).collect(),
        };
        ResultPart {
            call: wire_id(self.target.model.protocol, &call.id),
            form: self.form(call),
            content,
            is_error: found.is_none_or(|(_, result)| result.is_error),
        }
    }

    /// Converts the parts of the item at position `seq`.
    fn inputs(&self, parts: &'a [MessagePart], seq: u64) -> Vec<InputPart<'a>> {
        let input = |(index, part): (usize, &'a MessagePart)| match part {
            MessagePart::Media { .. } if self.view.rejected.contains(&(seq, index)) => {
                InputPart::Text(Cow::Borrowed(words::REJECTED_MEDIA))
            }
            MessagePart::Text(_) | MessagePart::Media { .. } => self.input(part),
        };
        parts.iter().enumerate().map(input).collect()
    }

    /// Converts one part. An image or document that the model does not support is replaced with a sentence.
    fn input(&self, part: &'a MessagePart) -> InputPart<'a> {
        let quirks = self.target.quirks;
        match part {
            MessagePart::Text(text) => InputPart::Text(Cow::Borrowed(text)),
            MessagePart::Media { mime, data, name } => {
                let is_image = mime.starts_with("image/");
                let is_supported =
                    if is_image { quirks.reads_images } else { quirks.reads_documents };
                match is_supported {
                    true => InputPart::Media { mime, data, name: name.as_deref() },
                    false => {
                        let text = words::unreadable_media(name.as_deref(), mime);
                        InputPart::Text(Cow::Owned(text))
                    }
                }
            }
        }
    }
}

/// Returns the line that replaces an old output.
fn cleared(result: &CallResult) -> InputPart<'_> {
    let line_count = |part: &MessagePart| match part {
        MessagePart::Text(text) => text.lines().count(),
        MessagePart::Media { .. } => 0,
    };
    let lines: usize = result.content.iter().map(line_count).sum();
    InputPart::Text(Cow::Owned(words::cleared(&result.title, lines, result.saved.as_deref())))
}

/// Whether arguments are valid JSON that every provider can read.
fn is_json(text: &str) -> bool {
    json_depth(text) <= MAX_DEPTH && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Converts the id of a call to one that the protocol accepts. The same id always gives the same result.
fn wire_id(protocol: Protocol, id: &str) -> Cow<'_, str> {
    let limit = match protocol {
        Protocol::Chat => 40,
        Protocol::Responses | Protocol::Messages => 64,
    };
    if !id.is_empty() && id.len() <= limit && id.bytes().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let hash = blake3::hash(id.as_bytes()).to_hex();
    let plain = id.chars().filter(|c| c.is_ascii() && is_plain(*c as u8)).take(limit - 17);
    Cow::Owned(format!("{}_{}", plain.collect::<String>(), &hash[..16]))
}

fn wire_name(name: &str) -> Cow<'_, str> {
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain = |c: char| if c.is_ascii() && is_plain(c as u8) { c } else { '_' };
    let name: String = name.chars().map(plain).take(MAX_NAME).collect();
    Cow::Owned(if name.is_empty() { "unknown".into() } else { name })
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Replaces all but the newest images with a sentence.
fn limit_images(messages: &mut [Message<'_>]) {
    let mut left = MAX_IMAGES;
    for message in messages.iter_mut().rev() {
        let parts: Vec<&mut InputPart<'_>> = match message {
            Message::User(parts) => parts.iter_mut().rev().collect(),
            Message::Results(results) => results
                .iter_mut()
                .rev()
                .flat_map(|result| result.content.iter_mut().rev())
                .collect(),
            Message::Assistant(_) => Vec::new(),
        };
        for part in parts {
            let is_image =
                matches!(part, InputPart::Media { mime, .. } if mime.starts_with("image/"));
            match (is_image, left) {
                (false, _) => {}
                (true, 0) => {
                    *part = InputPart::Text(Cow::Borrowed(words::OLDER_IMAGE));
                }
                (true, _) => left -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests;
