//! Renders the cells and outputs of a notebook as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use helve_core::media::MediaFormat;
use helve_text::visible;
use serde_json::Value;

/// Maximum number of lines shown per output.
const MAX_OUTPUT_LINES: usize = 60;
/// Maximum number of bytes shown per output. Its first line is always shown.
const MAX_OUTPUT_BYTES: usize = 8 << 10;
/// Maximum number of pictures shown. Further pictures are only mentioned.
const MAX_PICTURES: usize = 4;
/// Maximum size of a picture in its base64 form.
const MAX_PICTURE_BYTES: usize = 8 << 20;

/// A notebook as text.
pub(super) struct RenderedNotebook {
    pub(super) text: String,
    pub(super) pictures: Vec<PictureOutput>,
    pub(super) cells: usize,
    pub(super) language: Option<String>,
}

/// A picture in the output of a cell.
pub(super) struct PictureOutput {
    /// The line of the text that mentions the picture, counted from 1.
    pub(super) line: u64,
    pub(super) format: MediaFormat,
    pub(super) bytes: Bytes,
}

/// Renders a notebook. The error says why the bytes are not a notebook.
pub(super) fn render(bytes: &[u8]) -> Result<RenderedNotebook, String> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let notebook: Value = serde_json::from_slice(bytes).map_err(|err| err.to_string())?;
    let cells = cells(&notebook).ok_or("the file has no cells")?;
    let mut writer = NotebookWriter::default();
    for (number, cell) in (1..).zip(&cells) {
        writer.write_cell(number, cell);
    }
    let pointers = ["/metadata/language_info/name", "/metadata/kernelspec/language"];
    let language = pointers.iter().find_map(|pointer| notebook.pointer(pointer)?.as_str());
    let language = language.map(|name| visible::strip_invisible(name).into_owned());
    let NotebookWriter { text, pictures, .. } = writer;
    Ok(RenderedNotebook { text, pictures, cells: cells.len(), language })
}

/// Returns the cells of a notebook. Before format version 4 they were grouped in worksheets.
fn cells(notebook: &Value) -> Option<Vec<&Value>> {
    if let Some(cells) = notebook.get("cells") {
        return Some(cells.as_array()?.iter().collect());
    }
    let sheets = notebook.get("worksheets")?.as_array()?;
    Some(sheets.iter().filter_map(|sheet| sheet.get("cells")?.as_array()).flatten().collect())
}

#[derive(Default)]
struct NotebookWriter {
    text: String,
    lines: u64,
    pictures: Vec<PictureOutput>,
}

impl NotebookWriter {
    fn write_cell(&mut self, number: usize, cell: &Value) {
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("unknown");
        // The key `prompt_number` is from before format version 4.
        let execution_count = cell.get("execution_count").or_else(|| cell.get("prompt_number"));
        let execution = match execution_count.and_then(Value::as_u64) {
            Some(count) => format!(", execution {count}"),
            None => String::new(),
        };
        self.write_line(&format!("-- cell {number}, {kind}{execution} --"));
        let source = cell.get("source").or_else(|| cell.get("input"));
        for line in source.map(joined).unwrap_or_default().lines() {
            self.write_line(line);
        }
        let outputs = cell.get("outputs").and_then(Value::as_array);
        for output in outputs.into_iter().flatten() {
            self.write_output(output);
        }
    }

    fn write_output(&mut self, output: &Value) {
        match output.get("output_type").and_then(Value::as_str).unwrap_or_default() {
            "stream" => {
                let name = output.get("name").and_then(Value::as_str).unwrap_or("stdout");
                self.write_part(&format!("output, {name}"), &field(output, "text"));
            }
            "error" | "pyerr" => {
                let mut text = field(output, "traceback");
                if text.is_empty() {
                    text = format!("{}: {}", field(output, "ename"), field(output, "evalue"));
                }
                self.write_part("error", &text);
            }
            // Before format version 4 the output itself had the representations, under short names.
            _ => self.write_representations(output.get("data").unwrap_or(output)),
        }
    }

    /// Writes the picture and the plain text of an output that has several representations.
    fn write_representations(&mut self, data: &Value) {
        for (key, format) in [
            ("image/png", MediaFormat::Png),
            ("image/jpeg", MediaFormat::Jpeg),
            ("png", MediaFormat::Png),
            ("jpeg", MediaFormat::Jpeg),
        ] {
            if let Some(encoded) = data.get(key).map(joined) {
                self.write_picture(format, &encoded);
            }
        }
        let plain = ["text/plain", "text/markdown", "text"].iter().find_map(|key| data.get(key));
        if let Some(plain) = plain {
            return self.write_part("output", &joined(plain));
        }
        let rich = data.as_object().into_iter().flatten().find(|(key, _)| key.contains("html"));
        if let Some((key, rich)) = rich {
            self.write_line(&format!(
                "-- output, {key} of {} bytes, not shown --",
                joined(rich).len()
            ));
        }
    }

    fn write_picture(&mut self, format: MediaFormat, encoded: &str) {
        let mime = format.mime();
        let compact: String = encoded.split_whitespace().collect();
        if compact.len() > MAX_PICTURE_BYTES {
            return self.write_line(&format!(
                "-- output, {mime} of {} base64 characters, too large to show --",
                compact.len()
            ));
        }
        match STANDARD.decode(&compact).ok() {
            Some(bytes) if self.pictures.len() < MAX_PICTURES => {
                self.write_line(&format!(
                    "-- output, {mime}, picture {} --",
                    self.pictures.len() + 1
                ));
                self.pictures.push(PictureOutput { line: self.lines, format, bytes: bytes.into() });
            }
            Some(bytes) => {
                self.write_line(&format!(
                    "-- output, {mime} of {} bytes, not shown --",
                    bytes.len()
                ));
            }
            None => self.write_line(&format!("-- output, {mime}, cannot be decoded --")),
        }
    }

    fn write_part(&mut self, name: &str, text: &str) {
        self.write_line(&format!("-- {name} --"));
        let text = helve_text::lines::collapse_overwritten(text);
        let mut bytes = 0;
        let fits = |line: &&str| {
            let is_first = bytes == 0;
            bytes += line.len();
            is_first || bytes <= MAX_OUTPUT_BYTES
        };
        let kept: Vec<&str> = text.lines().take(MAX_OUTPUT_LINES).take_while(fits).collect();
        for line in &kept {
            self.write_line(line);
        }
        let omitted = text.lines().count() - kept.len();
        if omitted > 0 {
            let lines =
                if omitted == 1 { "1 more line".into() } else { format!("{omitted} more lines") };
            self.write_line(&format!("(… {lines}, not shown)"));
        }
    }

    fn write_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }
}

fn field(output: &Value, key: &str) -> String {
    output.get(key).map(joined).unwrap_or_default()
}

/// Joins a text that is one string or a list of lines. Lines of a traceback have no line endings.
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
