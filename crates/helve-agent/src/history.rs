//! Plans undo and redo of turns, and finds calls that have no result because the session was interrupted. Nothing here
//! does I/O.

use std::collections::BTreeSet;

use crate::compose;
use crate::item::{CallBlock, Entry, Item, MessagePart};

/// The plan to undo the last message of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoPlan {
    /// The position of the message. It is undone together with everything after it.
    pub from: u64,
    /// The text of the message.
    pub prompt: String,
    /// The calls after the message, oldest first.
    pub calls: Vec<TranscriptCall>,
}

/// A call in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptCall {
    /// The position of the message that made it.
    pub seq: u64,
    pub call: CallBlock,
}

/// The plan to redo what was undone last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedoPlan {
    /// The position of the `Undone` item.
    pub undone: u64,
    /// The call that restored changed files.
    pub call: Option<String>,
}

/// Returns the entries that are not undone, including those that a summary replaces.
pub fn shown(entries: &[Entry]) -> Vec<&Entry> {
    let undone_positions = compose::undone_positions(entries);
    entries.iter().filter(|entry| !undone_positions.contains(&entry.seq)).collect()
}

/// Plans to undo the last message of the user. Returns `None` if there is none.
pub fn plan_undo(entries: &[Entry]) -> Option<UndoPlan> {
    plan_undo_of(entries, 1)
}

/// Plans to undo the last `messages` messages of the user, at least one. Returns `None` if there are fewer.
pub fn plan_undo_of(entries: &[Entry], messages: usize) -> Option<UndoPlan> {
    let undone_positions = compose::undone_positions(entries);
    let is_shown = |entry: &&Entry| !undone_positions.contains(&entry.seq);
    let mut user_messages =
        entries.iter().rev().filter(is_shown).filter_map(|entry| match &entry.item {
            Item::User { content } => Some((entry.seq, content)),
            _ => None,
        });
    let (from, content) = user_messages.nth(messages.checked_sub(1)?)?;
    let text = |part: &MessagePart| match part {
        MessagePart::Text(text) => Some(text.clone()),
        MessagePart::Media { .. } => None,
    };
    let prompt = content.iter().filter_map(text).collect::<Vec<_>>().join("\n");
    let later = entries.iter().filter(|entry| entry.seq > from).filter(is_shown);
    Some(UndoPlan { from, prompt, calls: later.flat_map(made_calls).collect() })
}

/// Plans to redo what was undone last. Returns `None` if nothing was undone, or if the conversation has continued
/// since.
pub fn plan_redo(entries: &[Entry]) -> Option<RedoPlan> {
    let redone: BTreeSet<u64> = entries
        .iter()
        .filter_map(|entry| match &entry.item {
            Item::Redone { undone } => Some(*undone),
            _ => None,
        })
        .collect();
    let plan = entries.iter().rev().find_map(|entry| match &entry.item {
        Item::Undone { call, .. } if !redone.contains(&entry.seq) => {
            Some(RedoPlan { undone: entry.seq, call: call.clone() })
        }
        _ => None,
    })?;
    let undone_positions = compose::undone_positions(entries);
    let has_continued = entries.iter().any(|entry| {
        let is_conversation = matches!(
            entry.item,
            Item::User { .. } | Item::Assistant(_) | Item::Result(_) | Item::Summary { .. }
        );
        is_conversation && entry.seq > plan.undone && !undone_positions.contains(&entry.seq)
    });
    (!has_continued).then_some(plan)
}

/// Returns the entries that come back if the `Undone` item at a position is redone.
pub fn redone_entries(entries: &[Entry], undone: u64) -> Vec<&Entry> {
    let from = entries.iter().find_map(|entry| match entry.item {
        Item::Undone { from, .. } if entry.seq == undone => Some(from),
        _ => None,
    });
    let Some(from) = from else { return Vec::new() };
    // What was undone before that stays undone.
    let earlier: Vec<Entry> = entries.iter().filter(|entry| entry.seq < undone).cloned().collect();
    let undone_positions = compose::undone_positions(&earlier);
    let is_redone = |entry: &&Entry| {
        (from..undone).contains(&entry.seq) && !undone_positions.contains(&entry.seq)
    };
    entries.iter().filter(is_redone).collect()
}

/// Returns the calls without a result, oldest first.
pub fn unanswered(entries: &[Entry]) -> Vec<TranscriptCall> {
    let undone_positions = compose::undone_positions(entries);
    let mut open: Vec<TranscriptCall> = Vec::new();
    for entry in entries.iter().filter(|entry| !undone_positions.contains(&entry.seq)) {
        match &entry.item {
            Item::Assistant(_) => open.extend(made_calls(entry)),
            Item::Result(result) => open.retain(|made| made.call.id != result.call),
            Item::User { .. }
            | Item::Note { .. }
            | Item::Summary { .. }
            | Item::OutputsCleared { .. }
            | Item::MediaRejected { .. }
            | Item::Undone { .. }
            | Item::Redone { .. } => {}
        }
    }
    open
}

fn made_calls(entry: &Entry) -> Vec<TranscriptCall> {
    match &entry.item {
        Item::Assistant(message) => {
            let made = |call: &CallBlock| TranscriptCall { seq: entry.seq, call: call.clone() };
            message.calls().map(made).collect()
        }
        Item::User { .. }
        | Item::Result(_)
        | Item::Note { .. }
        | Item::Summary { .. }
        | Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => Vec::new(),
    }
}
