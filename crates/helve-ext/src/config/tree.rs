//! Parsed configuration values with their positions, independent of the syntax.

/// A position in a file: line and column in characters, both starting at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Position {
    pub(super) const START: Position = Position { line: 1, column: 1 };
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfigNode {
    pub(super) at: Position,
    pub(super) data: ConfigValue,
}

/// Maximum depth of a value that is converted to JSON.
const MAX_JSON_DEPTH: usize = 20;

impl ConfigNode {
    /// Converts a value to JSON. Values that are nested too deeply become `null`.
    pub(super) fn to_json(&self) -> serde_json::Value {
        to_json(self, 0)
    }
}

fn to_json(node: &ConfigNode, depth: usize) -> serde_json::Value {
    use serde_json::Value;
    if depth > MAX_JSON_DEPTH {
        return Value::Null;
    }
    match &node.data {
        ConfigValue::Null => Value::Null,
        ConfigValue::Bool(value) => Value::Bool(*value),
        ConfigValue::Number(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        ConfigValue::Text(text) => Value::from(text.as_str()),
        ConfigValue::List(items) => items.iter().map(|item| to_json(item, depth + 1)).collect(),
        ConfigValue::Map(entries) => {
            let members =
                entries.iter().map(|entry| (entry.key.clone(), to_json(&entry.value, depth + 1)));
            Value::Object(members.collect())
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConfigValue {
    Null,
    Bool(bool),
    /// As written. Parsed only when needed.
    Number(String),
    Text(String),
    List(Vec<ConfigNode>),
    /// In the order of the file, including repeated keys.
    Map(Vec<ConfigEntry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfigEntry {
    pub(super) key: String,
    pub(super) at: Position,
    pub(super) value: ConfigNode,
}

impl ConfigNode {
    /// Whether two values are equal, wherever they are written.
    pub(super) fn is_same(&self, other: &ConfigNode) -> bool {
        match (&self.data, &other.data) {
            (ConfigValue::List(ours), ConfigValue::List(theirs)) => {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.is_same(b))
            }
            (ConfigValue::Map(ours), ConfigValue::Map(theirs)) => {
                let is_same = |(a, b): (&ConfigEntry, &ConfigEntry)| {
                    a.key == b.key && a.value.is_same(&b.value)
                };
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_same)
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

/// Converts increasing byte offsets to positions in a single pass over the text.
pub(super) struct PositionTracker<'a> {
    text: &'a str,
    offset: usize,
    at: Position,
}

impl<'a> PositionTracker<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0, at: Position::START }
    }

    pub(super) fn position(&mut self, offset: usize) -> Position {
        let rest = self.text.get(self.offset..).unwrap_or_default();
        for (index, c) in rest.char_indices() {
            if self.offset + index >= offset {
                self.offset += index;
                return self.at;
            }
            if c == '\n' {
                self.at = Position { line: self.at.line.saturating_add(1), column: 1 };
            } else {
                self.at.column = self.at.column.saturating_add(1);
            }
        }
        self.offset = self.text.len();
        self.at
    }
}

/// Returns every entry whose key occurred before, with the first entry of that key.
pub(super) fn repeated(entries: &[ConfigEntry]) -> Vec<(&ConfigEntry, &ConfigEntry)> {
    let mut first_by_key = std::collections::HashMap::new();
    let mut repetitions = Vec::new();
    for entry in entries {
        match first_by_key.entry(entry.key.as_str()) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(entry);
            }
            std::collections::hash_map::Entry::Occupied(slot) => {
                repetitions.push((entry, *slot.get()))
            }
        }
    }
    repetitions
}
