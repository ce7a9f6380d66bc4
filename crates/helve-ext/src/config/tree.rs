//! A parsed file as values that know where they were written, whatever the syntax.

/// A place in a file: line and column in characters, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub line: u32,
    pub column: u32,
}

impl At {
    pub(super) const START: At = At { line: 1, column: 1 };
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Null,
    Bool(bool),
    /// As written, because nobody may need it.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file, repeated keys included.
    Map(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: At,
    pub(super) value: Node,
}

/// The place of a byte offset, for offsets that only grow, so that a file of one long line costs one pass.
pub(super) struct Places<'a> {
    text: &'a str,
    offset: usize,
    at: At,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0, at: At::START }
    }

    pub(super) fn of(&mut self, offset: usize) -> At {
        let passed = self.text.get(self.offset..).unwrap_or_default();
        for (here, c) in passed.char_indices() {
            if self.offset + here >= offset {
                self.offset += here;
                return self.at;
            }
            if c == '\n' {
                self.at = At { line: self.at.line.saturating_add(1), column: 1 };
            } else {
                self.at.column = self.at.column.saturating_add(1);
            }
        }
        self.offset = self.text.len();
        self.at
    }
}

/// Every entry whose key was there before, with the first of that key.
pub(super) fn repeated(entries: &[Entry]) -> Vec<(&Entry, &Entry)> {
    let mut first = std::collections::HashMap::new();
    let mut again = Vec::new();
    for entry in entries {
        match first.entry(entry.key.as_str()) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(entry);
            }
            std::collections::hash_map::Entry::Occupied(slot) => again.push((entry, *slot.get())),
        }
    }
    again
}
