//! Notebooks: their cells and what came out of them, as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use helve_core::media::Format;
use helve_text::visible;
use serde_json::Value;

/// How much of one output is shown.
const OUTPUT_LINES: usize = 60;
const OUTPUT_BYTES: usize = 8 << 10;
/// How many pictures are attached, and how large one may be as it is written.
const PICTURES: usize = 4;
const PICTURE_BYTES: usize = 8 << 20;

/// A notebook as text.
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) pictures: Vec<Drawn>,
    pub(super) about: String,
}

/// A picture that came out of a cell.
pub(super) struct Drawn {
    /// The line that mentions it, counted from 1.
    pub(super) line: u64,
    pub(super) format: Format,
    pub(super) bytes: Bytes,
}

/// What is not a notebook says why.
pub(super) fn render(bytes: &[u8]) -> Result<Rendered, String> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let notebook: Value = serde_json::from_slice(bytes).map_err(|err| err.to_string())?;
    let cells = cells(&notebook).ok_or("it has no cells")?;
    let mut page = Writer::default();
    for (number, cell) in (1..).zip(&cells) {
        page.cell(number, cell);
    }
    let language = ["/metadata/language_info/name", "/metadata/kernelspec/language"];
    let language = language.iter().find_map(|at| notebook.pointer(at)?.as_str());
    let language = language.map(|name| format!(", {}", visible::strip(name))).unwrap_or_default();
    let count = super::count(cells.len() as u64, "cell", "cells");
    let about =
        format!("Notebook, {count}{language}; line numbers are of this view, not of the file");
    Ok(Rendered { text: page.text, pictures: page.pictures, about })
}

/// Before version 4 cells were kept in sheets.
fn cells(notebook: &Value) -> Option<Vec<&Value>> {
    if let Some(cells) = notebook.get("cells") {
        return Some(cells.as_array()?.iter().collect());
    }
    let sheets = notebook.get("worksheets")?.as_array()?;
    Some(sheets.iter().filter_map(|sheet| sheet.get("cells")?.as_array()).flatten().collect())
}

#[derive(Default)]
struct Writer {
    text: String,
    lines: u64,
    pictures: Vec<Drawn>,
}

impl Writer {
    fn cell(&mut self, number: usize, cell: &Value) {
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("unknown");
        let run = cell.get("execution_count").or_else(|| cell.get("prompt_number"));
        let run = run.and_then(Value::as_u64).map(|run| format!(", run {run}")).unwrap_or_default();
        self.line(&format!("-- cell {number}, {kind}{run} --"));
        let source = cell.get("source").or_else(|| cell.get("input"));
        for line in source.map(joined).unwrap_or_default().lines() {
            self.line(line);
        }
        let outputs = cell.get("outputs").and_then(Value::as_array);
        for output in outputs.into_iter().flatten() {
            self.output(output);
        }
    }

    fn output(&mut self, output: &Value) {
        match output.get("output_type").and_then(Value::as_str).unwrap_or_default() {
            "stream" => {
                let name = output.get("name").and_then(Value::as_str).unwrap_or("stdout");
                self.part(&format!("output, {name}"), &field(output, "text"));
            }
            "error" | "pyerr" => {
                let mut text = field(output, "traceback");
                if text.is_empty() {
                    text = format!("{}: {}", field(output, "ename"), field(output, "evalue"));
                }
                self.part("error", &text);
            }
            // Before version 4 the forms stood in the output itself, under short names.
            _ => self.forms(output.get("data").unwrap_or(output)),
        }
    }

    /// One thing in several forms: the picture and the plain text, whichever there are.
    fn forms(&mut self, data: &Value) {
        for (key, format) in [
            ("image/png", Format::Png),
            ("image/jpeg", Format::Jpeg),
            ("png", Format::Png),
            ("jpeg", Format::Jpeg),
        ] {
            if let Some(encoded) = data.get(key).map(joined) {
                self.picture(format, &encoded);
            }
        }
        let plain = ["text/plain", "text/markdown", "text"].iter().find_map(|key| data.get(key));
        if let Some(plain) = plain {
            return self.part("output", &joined(plain));
        }
        let rich = data.as_object().into_iter().flatten().find(|(key, _)| key.contains("html"));
        if let Some((key, rich)) = rich {
            self.line(&format!("-- output, {key} of {} bytes, not shown --", joined(rich).len()));
        }
    }

    fn picture(&mut self, format: Format, encoded: &str) {
        let mime = format.mime();
        let compact: String = encoded.split_whitespace().collect();
        let bytes = STANDARD.decode(&compact).ok().filter(|_| compact.len() <= PICTURE_BYTES);
        match bytes {
            Some(bytes) if self.pictures.len() < PICTURES => {
                self.line(&format!("-- output, {mime}, picture {} --", self.pictures.len() + 1));
                self.pictures.push(Drawn { line: self.lines, format, bytes: bytes.into() });
            }
            Some(bytes) => {
                self.line(&format!("-- output, {mime} of {} bytes, not shown --", bytes.len()));
            }
            None => self.line(&format!("-- output, {mime}, which cannot be decoded --")),
        }
    }

    fn part(&mut self, name: &str, text: &str) {
        self.line(&format!("-- {name} --"));
        let text = helve_text::lines::collapse(text);
        let mut bytes = 0;
        let fits = |line: &&str| {
            let is_first = bytes == 0;
            bytes += line.len();
            is_first || bytes <= OUTPUT_BYTES
        };
        let kept: Vec<&str> = text.lines().take(OUTPUT_LINES).take_while(fits).collect();
        for line in &kept {
            self.line(line);
        }
        let left = text.lines().count() - kept.len();
        if left > 0 {
            let lines = super::count(left as u64, "more line", "more lines");
            self.line(&format!("(… {lines}, not shown)"));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }
}

fn field(output: &Value, key: &str) -> String {
    output.get(key).map(joined).unwrap_or_default()
}

/// Text is one string, or a list of lines; those of a traceback have no endings.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => {
            let mut text = String::new();
            for piece in pieces.iter().filter_map(Value::as_str) {
                text.push_str(piece);
                if !piece.ends_with('\n') {
                    text.push('\n');
                }
            }
            text
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
