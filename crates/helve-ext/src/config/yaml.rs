//! Markdown with YAML front matter: the fields as a tree with places, the rest as text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::tree::{At, Entry, Node, What};
use super::words::{self, Said};

/// A Markdown file in its two parts.
pub(super) struct Note<'a> {
    pub(super) fields: Fields,
    pub(super) body: &'a str,
}

pub(super) enum Fields {
    None,
    Whole(Node),
    Broken { at: At, why: Said },
}

/// How long and how deep front matter may be, and how many values it may hold, repeated ones included.
const LONGEST: usize = 32 << 10;
const DEEPEST: usize = 32;
const MOST_VALUES: usize = 10_000;

pub(super) fn parse(text: &str) -> Note<'_> {
    let Some((matter, body)) = split(text) else {
        let fields = match text.lines().next() {
            Some(first) if first.trim_end() == FENCE => {
                Fields::Broken { at: At::START, why: words::front_matter_is_open() }
            }
            Some(_) | None => return Note { fields: Fields::None, body: text },
        };
        return Note { fields, body: "" };
    };
    if matter.len() > LONGEST {
        let why = words::front_matter_too_long(LONGEST);
        return Note { fields: Fields::Broken { at: At::START, why }, body };
    }
    let fields = match read(matter).or_else(|first| read(&quoted(matter)).map_err(|_| first)) {
        Ok(node) if node.what == What::Null => Fields::None,
        Ok(node) => Fields::Whole(node),
        Err((at, why)) => Fields::Broken { at, why },
    };
    Note { fields, body }
}

const FENCE: &str = "---";

/// The lines between the first two fences, and what follows them.
fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != FENCE {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

fn read(matter: &str) -> Result<Node, (At, Said)> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            flow_nesting_limit: DEEPEST,
            max_nodes: MOST_VALUES,
            max_aliases: 100,
            max_merge_keys: 100,
        },
    };
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(matter, options) {
        Ok(Spanned { value, referenced, .. }) => Ok(Node { at: at(referenced), what: value.0 }),
        Err(error) => {
            let place = error.location().map_or(At::START, at);
            Err((place, words::bad_yaml(&error.to_string())))
        }
    }
}

/// The fence takes one line.
fn at(place: serde_saphyr::Location) -> At {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    At {
        line: number(place.line().max(1)).saturating_add(1),
        column: number(place.column().max(1)),
    }
}

/// People write `description: Use this: it is good`, which is not YAML. Quotes such values; lines stay where they are.
fn quoted(matter: &str) -> String {
    let mut all = String::with_capacity(matter.len() + 16);
    for line in matter.split_inclusive('\n') {
        let content = line.trim_end();
        match content.split_once(": ") {
            Some((key, value)) if is_plain_key(key) && needs_quotes(value.trim_start()) => {
                let value = value.trim_start().replace('\'', "''");
                all.push_str(&format!("{key}: '{value}'{}", &line[content.len()..]));
            }
            Some(_) | None => all.push_str(line),
        }
    }
    all
}

fn is_plain_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn needs_quotes(value: &str) -> bool {
    (value.contains(": ") || value.ends_with(':'))
        && !value.starts_with(['"', '\'', '[', '{', '|', '>', '&', '*', '!', '#'])
}

struct Raw(What);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Raw, E> {
        Ok(Raw(What::Bool(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw(What::Number(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(Raw(What::Number(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw, E> {
        Ok(Raw(What::Number(number.to_string())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw(What::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw(What::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw(What::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(Spanned { value: Raw(what), referenced, .. }) = seq.next_element()? {
            list.push(Node { at: at(referenced), what });
        }
        Ok(Raw(What::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let value: Spanned<Raw> = map.next_value()?;
            entries.push(Entry {
                key: key.value,
                at: at(key.referenced),
                value: Node { at: at(value.referenced), what: value.value.0 },
            });
        }
        Ok(Raw(What::Map(entries)))
    }
}
