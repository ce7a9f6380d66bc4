//! Finds the image or document that a provider rejected. Pure.

use serde_json::Value;

use crate::compose;
use crate::item::{Entry, Item, MessagePart};

/// Words with which providers speak about media.
const MEDIA_WORDS: [&str; 6] = ["image", "media", "document", "pdf", "base64", "picture"];
/// Fields of a request that contain the conversation.
const CONVERSATIONS: [&str; 2] = ["messages", "input"];
/// Maximum depth of a path in a message.
const MAX_PATH: usize = 16;

/// An image or document in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediaPlace<'a> {
    pub(crate) seq: u64,
    pub(crate) part: usize,
    data: &'a str,
}

impl MediaPlace<'_> {
    /// The transcript item that makes requests contain a sentence instead of this media.
    pub(crate) fn rejection_item(&self) -> Item {
        Item::MediaRejected { seq: self.seq, part: self.part }
    }
}

/// All media that are still sent, oldest first.
pub(crate) fn sent(entries: &[Entry]) -> Vec<MediaPlace<'_>> {
    let visible = compose::sent_entries(entries);
    let is_rejected = |place: &MediaPlace<'_>| {
        visible.iter().any(|entry| match entry.item {
            Item::MediaRejected { seq, part } => (seq, part) == (place.seq, place.part),
            _ => false,
        })
    };
    let mut places = Vec::new();
    for entry in &visible {
        let parts: &[MessagePart] = match &entry.item {
            Item::User { content } => content,
            Item::Result(result) => &result.content,
            _ => &[],
        };
        for (part, content) in parts.iter().enumerate() {
            if let MessagePart::Media { data, .. } = content {
                places.push(MediaPlace { seq: entry.seq, part, data });
            }
        }
    }
    places.retain(|place| !is_rejected(place));
    places
}

/// The image or document that an error message is about: the one at the path that it names, or the newest one.
pub(crate) fn find_rejected<'a>(
    message: &str,
    body: &Value,
    entries: &'a [Entry],
) -> Option<MediaPlace<'a>> {
    let lower = message.to_lowercase();
    if !MEDIA_WORDS.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let mut places = sent(entries);
    let named = named_value(message, body);
    let is_named = |place: &MediaPlace<'_>| named.is_some_and(|value| holds(value, place.data));
    match places.iter().position(is_named) {
        Some(index) => Some(places.swap_remove(index)),
        None => places.pop(),
    }
}

/// The value at a path such as `messages.3.content.1` or `input[2].output[0]` in a message.
fn named_value<'a>(message: &str, body: &'a Value) -> Option<&'a Value> {
    let starts = CONVERSATIONS.iter().filter_map(|name| Some((*name, message.find(name)?)));
    starts.filter_map(|(name, at)| value_at(&message[at + name.len()..], body.get(name)?)).next()
}

/// Follows a path as far as it leads. `None` if it does not even name an element.
fn value_at<'a>(path: &str, from: &'a Value) -> Option<&'a Value> {
    let end = path.find(|c: char| !c.is_ascii_alphanumeric() && !"._[]".contains(c));
    let path = &path[..end.unwrap_or(path.len())];
    let steps = path.split(['.', '[', ']']).filter(|step| !step.is_empty()).take(MAX_PATH);
    let (mut value, mut taken) = (from, 0);
    for step in steps {
        let next = match step.parse::<usize>() {
            Ok(index) => value.get(index),
            Err(_) => value.get(step),
        };
        let Some(next) = next else { break };
        (value, taken) = (next, taken + 1);
    }
    (taken > 0).then_some(value)
}

/// Whether a value contains this data, alone or in a data URL.
fn holds(value: &Value, data: &str) -> bool {
    match value {
        Value::String(text) => text.ends_with(data),
        Value::Array(items) => items.iter().any(|item| holds(item, data)),
        Value::Object(members) => members.values().any(|member| holds(member, data)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries() -> Vec<Entry> {
        let image = |data: &str| MessagePart::Media {
            mime: "image/png".into(),
            data: data.into(),
            name: None,
        };
        let user = |parts| Item::User { content: parts };
        let items = vec![
            user(vec![MessagePart::Text("a".into()), image("AAAA")]),
            user(vec![image("BBBB"), image("CCCC")]),
        ];
        (1..).zip(items).map(|(seq, item)| Entry { seq, item }).collect()
    }

    #[track_caller]
    fn check(message: &str, expected: Option<(u64, usize)>) {
        let body = json!({"messages": [
            {"content": [{"text": "a"}, {"image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"content": [{"source": {"data": "BBBB"}}, {"source": {"data": "CCCC"}}]},
        ]});
        let entries = entries();
        let found = find_rejected(message, &body, &entries);
        assert_eq!(found.map(|place| (place.seq, place.part)), expected);
    }

    #[test]
    fn the_named_image_is_found() {
        check("messages.0.content.1.image.source.base64: too large", Some((1, 1)));
        check("Invalid image at messages[1].content[0]", Some((2, 0)));
        check("messages.1.content.1.image_url: bad image", Some((2, 1)));
        check("messages.9.content.9.image: bad", Some((2, 1)));
        check("Could not process image", Some((2, 1)));
        check("messages.0: roles must alternate", None);
    }
}
