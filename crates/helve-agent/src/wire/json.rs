//! JSON that the protocols share: parsing, calls in progress, errors, raw fields.

use std::fmt;

use helve_text::nesting::json_depth;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::failure::{Failure, FailureKind};
use crate::item::{Block, CallBlock, CallForm};
use crate::reply::Delta;

/// Maximum nesting of an event. Deeper blocks could not be sent back.
const MAX_DEPTH: usize = 100;
/// Maximum number of calls in a reply, and of other blocks.
pub(super) const MAX_BLOCKS: usize = 256;

/// Parses the data of an event.
pub(super) fn parse<T: DeserializeOwned>(data: &str) -> Result<T, Failure> {
    if json_depth(data) > MAX_DEPTH {
        let message =
            format!("the provider sent an event that is nested more than {MAX_DEPTH} levels deep");
        return Err(Failure::new(FailureKind::Protocol, message));
    }
    serde_json::from_str(data).map_err(|err| {
        Failure::new(
            FailureKind::Protocol,
            format!("the provider sent an event that is not valid: {err}"),
        )
    })
}

/// Returns the failure for a reply with more blocks than any model needs.
pub(super) fn too_many_blocks() -> Failure {
    let message =
        format!("the provider sent a reply with more than {MAX_BLOCKS} calls or other parts");
    Failure::new(FailureKind::Protocol, message)
}

/// Deserializes a number of tokens. Servers also send fractions and, by mistake, negative numbers, which count as zero.
pub(super) fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = lenient::<_, serde_json::Number>(deserializer)?;
    // The conversion saturates.
    Ok(number.and_then(|number| number.as_u64().or_else(|| number.as_f64().map(|it| it as u64))))
}

/// Deserializes a value that is not essential. Anything unexpected counts as missing.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

/// Returns the schema of a tool that takes text, for protocols that support only objects.
pub(super) fn text_input_schema(field: &str, about: &str) -> Box<RawValue> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {field: {"type": "string", "description": about}},
        "required": [field],
    });
    to_raw_value(&schema).unwrap_or_default()
}

/// The calls of a streamed reply, by the key that the stream uses for them.
#[derive(Debug)]
pub(super) struct Calls<K> {
    calls: Vec<(K, PendingCall)>,
}

impl<K> Default for Calls<K> {
    fn default() -> Self {
        Self { calls: Vec::new() }
    }
}

#[derive(Debug)]
pub(super) struct PendingCall {
    id: String,
    name: String,
    arguments: String,
    form: CallForm,
}

impl<K: PartialEq> Calls<K> {
    /// Returns the call with this key. Creates it if necessary.
    pub(super) fn at(&mut self, key: K, form: CallForm) -> Result<&mut PendingCall, Failure> {
        let position = self.calls.iter().position(|(known, _)| *known == key);
        let position = match position {
            Some(position) => position,
            None if self.calls.len() == MAX_BLOCKS => return Err(too_many_blocks()),
            None => {
                let (id, name, arguments) = (String::new(), String::new(), String::new());
                self.calls.push((key, PendingCall { id, name, arguments, form }));
                self.calls.len() - 1
            }
        };
        Ok(&mut self.calls[position].1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn are_valid_json(&self) -> bool {
        self.calls.iter().all(|(_, call)| call.is_valid())
    }

    pub(super) fn into_blocks(self) -> impl Iterator<Item = Block> {
        self.calls.into_iter().map(|(_, call)| Block::Call(call.into_block()))
    }
}

impl PendingCall {
    /// Sets the id. Servers may repeat it.
    pub(super) fn set_id(&mut self, id: Option<String>) {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            self.id = id;
        }
    }

    /// Sets the name. Servers may repeat it, or send it without the id.
    pub(super) fn set_name(&mut self, name: Option<String>, deltas: &mut Vec<Delta>) {
        if let Some(name) = name.filter(|name| !name.is_empty() && *name != self.name) {
            self.name = name.clone();
            deltas.push(Delta::Call { name });
        }
    }

    pub(super) fn add_arguments(&mut self, more: Option<String>, deltas: &mut Vec<Delta>) {
        if let Some(more) = more.filter(|more| !more.is_empty()) {
            self.arguments.push_str(&more);
            deltas.push(Delta::Arguments(more));
        }
    }

    fn is_valid(&self) -> bool {
        self.form == CallForm::Text || serde_json::from_str::<&RawValue>(&self.arguments).is_ok()
    }

    pub(super) fn into_block(self) -> CallBlock {
        let Self { id, name, arguments, form } = self;
        CallBlock { id, name, arguments, form }
    }
}

/// The fields of an object, with their values exactly as received.
#[derive(Clone, Debug, Default)]
pub(super) struct RawFields(Vec<(String, Box<RawValue>)>);

impl RawFields {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(&mut self, field: &str, value: &(impl Serialize + ?Sized)) {
        if let Ok(value) = to_raw_value(value) {
            self.0.push((field.into(), value));
        }
    }

    pub(super) fn remove(&mut self, field: &str) {
        self.0.retain(|(name, _)| name != field);
    }

    /// Adds the fields of an object.
    pub(super) fn merge(&mut self, raw: &RawValue) {
        if let Ok(fields) = serde_json::from_str::<RawFields>(raw.get()) {
            self.0.extend(fields.0);
        }
    }

    /// Returns the fields as one object; `None` if there are none.
    pub(super) fn into_raw(self) -> Option<Box<RawValue>> {
        if self.0.is_empty() { None } else { to_raw_value(&self).ok() }
    }
}

impl Serialize for RawFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for RawFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
