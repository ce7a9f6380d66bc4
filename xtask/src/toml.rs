//! As much TOML as deny.toml and our manifests use: tables, strings, numbers, booleans, arrays, inline tables.

use serde_json::{Map, Value};

/// Reads a document; an error names the line.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let mut document = Map::new();
    let mut table: Vec<String> = Vec::new();
    reader.document(&mut document, &mut table).map_err(|what| {
        let line = text.get(..reader.at).unwrap_or(text).matches('\n').count() + 1;
        format!("line {line}: {what}")
    })?;
    Ok(Value::Object(document))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

const DEEPEST: usize = 16;

impl<'a> Reader<'a> {
    fn document(
        &mut self,
        document: &mut Map<String, Value>,
        table: &mut Vec<String>,
    ) -> Result<(), String> {
        loop {
            self.skip_blank_lines();
            match self.peek() {
                None => return Ok(()),
                Some('[') => *table = self.header(document)?,
                Some(_) => {
                    let (keys, value) = self.pair(0)?;
                    insert(descend(document, table)?, &keys, value)?;
                    self.end_of_line()?;
                }
            }
        }
    }

    /// `[a.b]` or `[[a.b]]`; the latter opens a new element, which `descend` finds as the last one.
    fn header(&mut self, document: &mut Map<String, Value>) -> Result<Vec<String>, String> {
        let repeated = self.rest().starts_with("[[");
        self.at += if repeated { 2 } else { 1 };
        let keys = self.keys()?;
        self.expect(if repeated { "]]" } else { "]" })?;
        self.end_of_line()?;
        if let (true, Some((last, parents))) = (repeated, keys.split_last()) {
            let parent = descend(document, parents)?;
            match parent.entry(last.clone()).or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(elements) => elements.push(Value::Object(Map::new())),
                _ => return Err(format!("`{last}` is no array of tables")),
            }
        } else {
            descend(document, &keys)?;
        }
        Ok(keys)
    }

    fn pair(&mut self, depth: usize) -> Result<(Vec<String>, Value), String> {
        let keys = self.keys()?;
        self.expect("=")?;
        self.skip_spaces();
        Ok((keys, self.value(depth)?))
    }

    fn keys(&mut self) -> Result<Vec<String>, String> {
        let mut keys = Vec::new();
        loop {
            self.skip_spaces();
            keys.push(match self.peek() {
                Some('"' | '\'') => self.string()?,
                _ => self.word(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_').to_owned(),
            });
            if keys.last().is_some_and(String::is_empty) {
                return Err("a key is missing".into());
            }
            self.skip_spaces();
            if self.peek() != Some('.') {
                return Ok(keys);
            }
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err("nested too deeply".into());
        }
        match self.peek() {
            Some('"' | '\'') => self.string().map(Value::String),
            Some('[') => self.array(depth),
            Some('{') => self.inline_table(depth),
            _ => match self.word(|c| c.is_ascii_alphanumeric() || "+-_.".contains(c)) {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                word => word
                    .replace('_', "")
                    .parse::<i64>()
                    .map(Value::from)
                    .or_else(|_| word.parse::<f64>().map(Value::from))
                    .map_err(|_| format!("`{word}` is no value that this reader knows")),
            },
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            self.skip_blank_lines();
            if self.take(']') {
                return Ok(Value::Array(elements));
            }
            elements.push(self.value(depth + 1)?);
            self.skip_blank_lines();
            if !self.take(',') && self.peek() != Some(']') {
                return Err("an array needs `,` or `]` here".into());
            }
        }
    }

    fn inline_table(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut table = Map::new();
        loop {
            self.skip_blank_lines();
            if self.take('}') {
                return Ok(Value::Object(table));
            }
            let (keys, value) = self.pair(depth + 1)?;
            insert(&mut table, &keys, value)?;
            self.skip_blank_lines();
            if !self.take(',') && self.peek() != Some('}') {
                return Err("a table needs `,` or `}` here".into());
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        if self.rest().starts_with("\"\"\"") || self.rest().starts_with("'''") {
            return Err("strings over several lines are not read here".into());
        }
        let literal = self.peek() == Some('\'');
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            match character {
                '\'' if literal => return self.close(offset, text),
                '"' if !literal => return self.close(offset, text),
                '\n' => break,
                '\\' if !literal => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    _ => return Err("an escape that this reader does not know".into()),
                },
                _ => text.push(character),
            }
        }
        Err("a string does not end on its line".into())
    }

    fn close(&mut self, offset: usize, text: String) -> Result<String, String> {
        self.at += offset + 1;
        Ok(text)
    }

    fn word(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn end_of_line(&mut self) -> Result<(), String> {
        self.skip_spaces();
        match self.peek() {
            None | Some('\n' | '\r' | '#') => Ok(()),
            Some(other) => Err(format!("`{other}` is not expected here")),
        }
    }

    fn skip_spaces(&mut self) {
        self.word(|c| c == ' ' || c == '\t');
    }

    fn skip_blank_lines(&mut self) {
        loop {
            self.word(char::is_whitespace);
            if self.peek() != Some('#') {
                return;
            }
            self.word(|c| c != '\n');
        }
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        self.skip_spaces();
        if !self.rest().starts_with(mark) {
            return Err(format!("`{mark}` is missing"));
        }
        self.at += mark.len();
        Ok(())
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(mark);
        self.at += if found { mark.len_utf8() } else { 0 };
        found
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

/// The table that `keys` name, made where it is missing; of an array of tables the last one.
fn descend<'a>(
    mut table: &'a mut Map<String, Value>,
    keys: &[String],
) -> Result<&'a mut Map<String, Value>, String> {
    for key in keys {
        let next = table.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
        let next = match next {
            Value::Array(elements) => elements.last_mut(),
            other => Some(other),
        };
        table =
            next.and_then(Value::as_object_mut).ok_or_else(|| format!("`{key}` is no table"))?;
    }
    Ok(table)
}

fn insert(table: &mut Map<String, Value>, keys: &[String], value: Value) -> Result<(), String> {
    let Some((last, parents)) = keys.split_last() else { return Ok(()) };
    match descend(table, parents)?.insert(last.clone(), value) {
        None => Ok(()),
        Some(_) => Err(format!("`{last}` is set twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_manifests_use() {
        let text = r#"
# a comment
[package]
name = "x" # another
edition.workspace = true

[dependencies]
a = { version = '1.0', features = ["b", # why
  "c",
] }
"quoted-key".path = "../y"

[[bin]]
name = "one"
[[bin]]
name = "two"
"#;
        let expected = json!({
            "package": {"name": "x", "edition": {"workspace": true}},
            "dependencies": {"a": {"version": "1.0", "features": ["b", "c"]}, "quoted-key": {"path": "../y"}},
            "bin": [{"name": "one"}, {"name": "two"}],
        });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, what) in [
            ("a = 1\nb =", "line 2: `` is no value that this reader knows"),
            ("a = 1\na = 2", "line 2: `a` is set twice"),
            ("a = \"open\n", "line 1: a string does not end on its line"),
            ("\n\na = [1 2]", "line 3: an array needs `,` or `]` here"),
            ("a = '''b'''", "line 1: strings over several lines are not read here"),
            ("a = 1 b = 2", "line 1: `b` is not expected here"),
        ] {
            assert_eq!(parse(text), Err(what.to_owned()), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert_eq!(
            parse(&format!("a = {}", "[".repeat(100_000))),
            Err("line 1: nested too deeply".into())
        );
    }

    #[test]
    fn reads_our_own_files() {
        for path in ["Cargo.toml", "deny.toml", "clippy.toml", "xtask/Cargo.toml"] {
            let text = std::fs::read_to_string(crate::repository::root().join(path)).unwrap();
            assert!(parse(&text).is_ok(), "{path}: {:?}", parse(&text));
        }
    }
}
