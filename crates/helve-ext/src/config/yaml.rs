//! Parses Markdown with YAML front matter: the fields as nodes with positions, the rest as text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::messages::{self, ProblemText};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position};

/// A Markdown file split into front matter and body.
pub(super) struct MarkdownFile<'a> {
    pub(super) front_matter: FrontMatter,
    pub(super) body: &'a str,
}

pub(super) enum FrontMatter {
    None,
    Fields(ConfigNode),
    Broken { at: Position, why: ProblemText },
}

/// Limits of front matter: size in bytes, nesting depth, and number of values including aliases.
const MAX_BYTES: usize = 32 << 10;
const MAX_DEPTH: usize = 32;
const MAX_VALUES: usize = 10_000;

/// Parses a file. Comments before the front matter are skipped.
pub(super) fn parse(text: &str) -> MarkdownFile<'_> {
    let content = after_comments(text);
    let skipped = text.strip_suffix(content).unwrap_or_default();
    let skipped = skipped.matches('\n').count();
    let start = Position {
        line: u32::try_from(skipped).unwrap_or(u32::MAX).saturating_add(Position::START.line),
        ..Position::START
    };
    let broken =
        |why, body| MarkdownFile { front_matter: FrontMatter::Broken { at: start, why }, body };
    let Some((yaml, body)) = split(content) else {
        return match content.lines().next() {
            Some(first) if first.trim_end() == FENCE => {
                broken(messages::front_matter_is_unclosed(), "")
            }
            Some(_) | None => MarkdownFile { front_matter: FrontMatter::None, body: text },
        };
    };
    if yaml.len() > MAX_BYTES {
        return broken(messages::front_matter_too_long(MAX_BYTES), body);
    }
    // Blank lines in place of the comments keep the line numbers right.
    let placed = |yaml: &str| "\n".repeat(skipped) + yaml;
    let parsed = parse_yaml(&placed(yaml))
        .or_else(|first| parse_yaml(&placed(&quoted(yaml))).map_err(|_| first));
    let front_matter = match parsed {
        Ok(node) if node.data == ConfigValue::Null => FrontMatter::None,
        Ok(node) => FrontMatter::Fields(node),
        Err((at, why)) => FrontMatter::Broken { at, why },
    };
    MarkdownFile { front_matter, body }
}

const FENCE: &str = "---";

/// Maximum number of comments before front matter.
const MAX_COMMENTS: usize = 100;

/// Returns the text after blank lines and comments, if front matter follows them.
fn after_comments(text: &str) -> &str {
    let is_fence = |text: &str| text.lines().next().is_some_and(|line| line.trim_end() == FENCE);
    if is_fence(text) {
        return text;
    }
    let mut rest = text;
    for _ in 0..MAX_COMMENTS {
        rest = rest.trim_start();
        if is_fence(rest) {
            return if starts_with_field(rest) { rest } else { text };
        }
        let after = match rest.strip_prefix("<!--") {
            Some(comment) => comment.split_once("-->").map(|(_, after)| after),
            None => rest.strip_prefix('#').and_then(|line| line.split_once('\n')).map(|it| it.1),
        };
        match after {
            Some(after) => rest = after,
            None => return text,
        }
    }
    text
}

/// Whether a field follows the fence. Otherwise the fence is more likely a line across the page.
fn starts_with_field(text: &str) -> bool {
    let lines = split(text).map(|(yaml, _)| yaml.lines()).into_iter().flatten();
    let mut lines = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let first = lines.next().and_then(|line| line.split_once(':'));
    first.is_some_and(|(key, _)| is_plain_key(key))
}

/// Returns the lines between the first two fences, or an empty text.
pub(super) fn front_matter_text(text: &str) -> &str {
    split(after_comments(text)).map_or("", |(yaml, _)| yaml)
}

/// Returns the lines between the first two fences, and the text after them.
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

fn parse_yaml(yaml: &str) -> Result<ConfigNode, (Position, ProblemText)> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_aliases: 100,
            max_merge_keys: 100,
        },
    };
    match serde_saphyr::from_str_with_options::<Spanned<YamlValue>>(yaml, options) {
        Ok(Spanned { value, referenced, .. }) => {
            Ok(ConfigNode { at: position(referenced), data: value.0 })
        }
        Err(error) => {
            let at = error.location().map_or(Position::START, position);
            Err((at, messages::bad_yaml(&error.to_string())))
        }
    }
}

/// Converts a location in the YAML to one in the file, where the fence takes one line.
fn position(location: serde_saphyr::Location) -> Position {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Position {
        line: number(location.line().max(1)).saturating_add(1),
        column: number(location.column().max(1)),
    }
}

/// Quotes values such as `description: Use this: it is good`, which is invalid YAML that people write. Line numbers do
/// not change.
fn quoted(yaml: &str) -> String {
    let mut result = String::with_capacity(yaml.len() + 16);
    for line in yaml.split_inclusive('\n') {
        let content = line.trim_end();
        match content.split_once(": ") {
            Some((key, value)) if is_plain_key(key) && needs_quotes(value.trim_start()) => {
                let value = value.trim_start().replace('\'', "''");
                result.push_str(&format!("{key}: '{value}'{}", &line[content.len()..]));
            }
            Some(_) | None => result.push_str(line),
        }
    }
    result
}

fn is_plain_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn needs_quotes(value: &str) -> bool {
    (value.contains(": ") || value.ends_with(':'))
        && !value.starts_with(['"', '\'', '[', '{', '|', '>', '&', '*', '!', '#'])
}

struct YamlValue(ConfigValue);

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<YamlValue, E> {
        Ok(YamlValue(ConfigValue::Bool(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<YamlValue, E> {
        Ok(YamlValue(ConfigValue::Number(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<YamlValue, E> {
        Ok(YamlValue(ConfigValue::Number(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<YamlValue, E> {
        Ok(YamlValue(ConfigValue::Number(number.to_string())))
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlValue, E> {
        Ok(YamlValue(ConfigValue::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue(ConfigValue::Null))
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue(ConfigValue::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        YamlValue::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(Spanned { value: YamlValue(data), referenced, .. }) = seq.next_element()? {
            list.push(ConfigNode { at: position(referenced), data });
        }
        Ok(YamlValue(ConfigValue::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let value: Spanned<YamlValue> = map.next_value()?;
            entries.push(ConfigEntry {
                key: key.value,
                at: position(key.referenced),
                value: ConfigNode { at: position(value.referenced), data: value.value.0 },
            });
        }
        Ok(YamlValue(ConfigValue::Map(entries)))
    }
}
