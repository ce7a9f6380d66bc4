//! The transcript of a session, in memory and in the store. Items are stored before anything else uses them.

use std::sync::Arc;

use helve_core::store::StoreError;
use helve_core::transcript::{NewItem, RequestRecord, StoredItem, Transcripts};

use crate::compact::item_tokens;
use crate::compose;
use crate::item::{Block, Entry, Item, MessagePart};

/// Maximum number of characters of a call or a result that are searchable.
const MAX_SEARCHABLE_CHARS: usize = 4_000;

/// The transcript of one session.
pub struct Transcript {
    session: Arc<str>,
    entries: Vec<Entry>,
    /// Estimated tokens of each entry.
    tokens: Vec<u64>,
    /// Tokens of the last request and its reply, as reported by the provider, and the `seq` of the last item that they
    /// cover.
    reported: Option<(u64, u64)>,
    store: Arc<dyn Transcripts>,
}

impl Transcript {
    /// Loads a session's transcript; empty for a new session. Items that cannot be read are left out.
    pub async fn load(session: Arc<str>, store: Arc<dyn Transcripts>) -> Result<Self, StoreError> {
        let stored = store.load(&session).await?;
        let entry = |stored: StoredItem| {
            let item = serde_json::from_str(&stored.json).ok()?;
            Some(Entry { seq: stored.seq, item })
        };
        let entries: Vec<Entry> = stored.into_iter().filter_map(entry).collect();
        let tokens = entries.iter().map(|entry| item_tokens(&entry.item)).collect();
        Ok(Self { session, entries, tokens, reported: None, store })
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends items. They are stored when this returns.
    pub async fn append(&mut self, items: Vec<Item>) -> Result<(), StoreError> {
        self.append_and_dequeue(items, None).await
    }

    /// Appends a person's message. `waiting` is its id among the waiting messages, from which it is removed.
    pub(crate) async fn append_message(
        &mut self,
        content: Vec<MessagePart>,
        waiting: Option<String>,
    ) -> Result<(), StoreError> {
        self.append_and_dequeue(vec![Item::User { content }], waiting).await
    }

    async fn append_and_dequeue(
        &mut self,
        items: Vec<Item>,
        delivered_message: Option<String>,
    ) -> Result<(), StoreError> {
        let first = self.entries.last().map_or(1, |entry| entry.seq + 1);
        let new: Vec<Entry> = (first..).zip(items).map(|(seq, item)| Entry { seq, item }).collect();
        let stored = |entry: &Entry| {
            let json = serde_json::to_string(&entry.item).map_err(std::io::Error::other)?;
            let stored = StoredItem { seq: entry.seq, json };
            Ok(NewItem {
                stored,
                words: words(&entry.item),
                delivered_message: delivered_message.clone(),
            })
        };
        let stored = new.iter().map(stored).collect::<Result<Vec<_>, StoreError>>()?;
        self.store.append(&self.session, stored).await?;
        self.tokens.extend(new.iter().map(|entry| item_tokens(&entry.item)));
        if new.iter().any(|entry| is_rewriting(&entry.item)) {
            self.reported = None;
        }
        self.entries.extend(new);
        Ok(())
    }

    /// Records the tokens of a request, without waiting for the store.
    pub fn record_request(&self, request: RequestRecord) {
        self.store.record_request(&self.session, request);
    }

    /// Sets the number of tokens so far, as reported by the provider.
    pub(crate) fn set_reported_tokens(&mut self, tokens: u64) {
        self.reported = Some((tokens, self.entries.last().map_or(0, |entry| entry.seq)));
    }

    /// Discards the provider's number. Called when the model changes, because providers count differently.
    pub fn forget_reported_tokens(&mut self) {
        self.reported = None;
    }

    /// Returns the size of the next request in tokens: the number that the provider reported last plus an estimate for
    /// newer items. `fixed` is the estimate for the system prompt and the tools.
    pub fn context_tokens(&self, fixed: u64) -> u64 {
        match self.reported {
            // Whatever changes earlier items resets `reported`, so the newer ones are simply added.
            Some((reported, up_to)) => {
                let newer = self.entries.iter().zip(&self.tokens).rev();
                let newer = newer.take_while(|(entry, _)| entry.seq > up_to);
                newer.fold(reported, |sum, (_, tokens)| sum.saturating_add(*tokens))
            }
            None => {
                let visible = compose::sent_entries(&self.entries);
                let tokens = visible.iter().map(|entry| self.tokens_at(entry.seq));
                tokens.fold(fixed, u64::saturating_add)
            }
        }
    }

    fn tokens_at(&self, seq: u64) -> u64 {
        let index = self.entries.binary_search_by_key(&seq, |entry| entry.seq);
        index.ok().and_then(|index| self.tokens.get(index)).copied().unwrap_or(0)
    }
}

/// Whether an item changes how earlier items are sent.
fn is_rewriting(item: &Item) -> bool {
    match item {
        Item::Summary { .. }
        | Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => true,
        Item::User { .. } | Item::Assistant(_) | Item::Result(_) | Item::Note { .. } => false,
    }
}

/// Returns the searchable text of an item.
fn words(item: &Item) -> String {
    let texts = |parts: &[MessagePart]| -> String {
        let text = |part: &MessagePart| match part {
            MessagePart::Text(text) => text.clone(),
            MessagePart::Media { name, .. } => name.clone().unwrap_or_default(),
        };
        parts.iter().map(text).collect::<Vec<_>>().join("\n")
    };
    let cut = |text: &str| text.chars().take(MAX_SEARCHABLE_CHARS).collect::<String>();
    match item {
        Item::User { content } => texts(content),
        Item::Assistant(message) => {
            let block = |block: &Block| match block {
                Block::Text(text) => text.clone(),
                Block::Call(call) => format!("{} {}", call.name, cut(&call.arguments)),
                Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => String::new(),
            };
            message.blocks.iter().map(block).collect::<Vec<_>>().join("\n")
        }
        Item::Result(result) => format!("{}\n{}", result.title, cut(&texts(&result.content))),
        Item::Summary { text, .. } => text.clone(),
        Item::Note { .. }
        | Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => String::new(),
    }
}
