//! Converts the result of a server's tool into a tool output.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use helve_core::media::{MediaContent, MediaFormat};
use helve_core::validate::{self, ArgumentProblem, Expected, FoundValue};
use helve_core::{Content, ErrorKind, Media, ToolError, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// Maximum size of an attachment after decoding, in bytes.
const MAX_BYTES: usize = 10 << 20;
/// Maximum number of attachments per result.
const MAX_ATTACHED: usize = 20;
/// Maximum size of structured content as JSON, in bytes.
const MAX_STRUCTURED: usize = 256 << 10;

/// Converts a result: joins its texts, checks its images, and attaches audio, links and structured content.
pub(super) async fn to_output(
    server: &str,
    tool: &str,
    result: CallToolResult,
    media: &dyn Media,
) -> Result<ToolOutput, ToolError> {
    let failed = result.is_error == Some(true);
    let mut collector = ContentCollector { texts: Vec::new(), attached: Vec::new(), media };
    for block in result.content {
        collector.add(block).await;
    }
    let ContentCollector { mut texts, attached, .. } = collector;
    let structured = result.structured_content;
    if texts.is_empty()
        && attached.is_empty()
        && let Some(structured) = &structured
    {
        texts.push(serde_json::to_string_pretty(structured).unwrap_or_default());
    }
    let text = texts.join("\n\n");
    if failed {
        let text = if text.trim().is_empty() {
            format!("The tool {tool} of the MCP server \"{server}\" failed without a message.")
        } else {
            truncate(text)
        };
        return Err(ToolError::new(ErrorKind::Failed, text));
    }
    let mut output = ToolOutput::text(format!("{server}: {tool}"), text)
        .with_metadata("server", server)
        .with_metadata("tool", tool)
        // Text from a server is data, never instructions.
        .with_metadata("untrusted", true);
    match structured {
        Some(value) if value.to_string().len() <= MAX_STRUCTURED => {
            output.metadata.insert("structuredContent".into(), value);
        }
        Some(_) => {
            output.metadata.insert("structuredContentOmitted".into(), Value::Bool(true));
        }
        None => {}
    }
    output.content.extend(attached);
    Ok(output)
}

/// Returns how a successful result breaks the output schema of its tool. A result that is too large is not checked.
pub(super) fn output_problems(schema: &Value, result: &CallToolResult) -> Vec<ArgumentProblem> {
    if result.is_error == Some(true) {
        return Vec::new();
    }
    match &result.structured_content {
        Some(value) if value.to_string().len() > MAX_STRUCTURED => Vec::new(),
        Some(value) => validate::check(schema, value),
        None => vec![ArgumentProblem {
            path: String::new(),
            expected: Expected::Types(vec!["object".into()]),
            found: FoundValue::Nothing,
            near: None,
        }],
    }
}

/// Cuts an error message, since the engine does not apply the session's limits to errors.
fn truncate(text: String) -> String {
    const MAX: usize = 8_000;
    match text.char_indices().nth(MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

struct ContentCollector<'a> {
    texts: Vec<String>,
    attached: Vec<Content>,
    media: &'a dyn Media,
}

impl ContentCollector<'_> {
    async fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => {
                self.add_bytes("image", &image.mime_type, &image.data).await
            }
            ContentBlock::Audio(audio) => {
                self.add_bytes("audio", &audio.mime_type, &audio.data).await
            }
            ContentBlock::ResourceLink(link) => {
                let (uri, name) = (link.uri.clone(), link.name.clone());
                self.texts.push(format!("[resource {name}: {uri}]"));
                self.attach(Content::Link { uri, name });
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    self.texts.push(format!("Resource: {uri}\n{text}"));
                }
                ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                    let mime = mime_type.unwrap_or_default();
                    self.add_bytes("resource", &mime, &blob).await;
                }
                _ => self.texts.push("[unknown kind of resource]".into()),
            },
            _ => self.texts.push("[unknown kind of content]".into()),
        }
    }

    async fn add_bytes(&mut self, what: &str, mime: &str, data: &str) {
        let mime: String = mime.chars().take(100).collect();
        let omit = |why: &str| format!("[{what} {mime} omitted: {why}]");
        if data.len() / 4 * 3 > MAX_BYTES {
            return self.texts.push(omit("it is too large"));
        }
        let Ok(bytes) = STANDARD.decode(data) else {
            return self.texts.push(omit("it is not base64"));
        };
        let bytes = Bytes::from(bytes);
        if let Some(format) = MediaFormat::of_content(&bytes) {
            match self.media.decode(bytes.clone(), format).await {
                Ok(MediaContent::Picture(picture)) => {
                    self.attach(Content::Media { mime: picture.mime.into(), data: picture.bytes })
                }
                Ok(MediaContent::Document(_)) => {
                    self.attach(Content::Media { mime: format.mime().into(), data: bytes });
                }
                Err(why) => self.texts.push(omit(&why.to_string())),
            }
        } else if what == "audio" && mime.starts_with("audio/") {
            self.attach(Content::Media { mime, data: bytes });
        } else {
            self.texts.push(omit("it is not an image or a document"));
        }
    }

    fn attach(&mut self, content: Content) {
        match self.attached.len() {
            count if count < MAX_ATTACHED => self.attached.push(content),
            MAX_ATTACHED => self.texts.push("[further attachments omitted]".into()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use helve_core::NoMedia;
    use serde_json::json;

    use super::*;

    async fn check(result: Value, expected: Expect) {
        let result = serde_json::from_value(result).unwrap();
        let converted = to_output("files", "get", result, &NoMedia).await;
        expected.assert_eq(&match converted {
            Ok(output) => {
                let attached = output.content.iter().filter_map(|content| match content {
                    Content::Text(_) => None,
                    Content::Media { mime, data } => Some(format!("\n+ {mime} {}", data.len())),
                    Content::Link { uri, name } => Some(format!("\n+ {name} {uri}")),
                });
                let attached: String = attached.collect();
                let structured = output.metadata.get("structuredContent");
                let structured = structured.map(|value| format!("\n= {value}")).unwrap_or_default();
                format!("{}{attached}{structured}", output.joined_text())
            }
            Err(error) => format!("! {}", error.message),
        });
    }

    #[tokio::test]
    async fn converts_every_kind_of_content() {
        check(
            json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two"},
                {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
                {"type": "image", "mimeType": "image/png", "data": "bm8="},
                {"type": "image", "mimeType": "image/png", "data": "!"},
                {"type": "resource_link", "uri": "db://1", "name": "row"},
                {"type": "resource", "resource": {"uri": "db://2", "text": "inside"}},
            ], "structuredContent": {"a": 1}}),
            expect![[r#"
                one

                two

                [image image/png omitted: it is not an image or a document]

                [image image/png omitted: it is not base64]

                [resource row: db://1]

                Resource: db://2
                inside
                + audio/wav 4
                + row db://1
                = {"a":1}"#]],
        )
        .await;
    }

    #[tokio::test]
    async fn structured_content_replaces_missing_text() {
        check(
            json!({"content": [], "structuredContent": {"a": [1]}}),
            expect![[r#"
            {
              "a": [
                1
              ]
            }
            = {"a":[1]}"#]],
        )
        .await;
    }

    #[test]
    fn a_result_is_compared_with_its_schema() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        let problems = |result: Value| {
            let result: CallToolResult = serde_json::from_value(result).unwrap();
            output_problems(&schema, &result).len()
        };
        assert_eq!(problems(json!({"content": [], "structuredContent": {"a": 1, "b": 2}})), 0);
        assert_eq!(problems(json!({"content": [], "structuredContent": {"a": "1"}})), 1);
        assert_eq!(problems(json!({"content": []})), 1);
        assert_eq!(problems(json!({"content": [], "isError": true})), 0);
        let large = "x".repeat(MAX_STRUCTURED);
        assert_eq!(problems(json!({"content": [], "structuredContent": {"x": large}})), 0);
    }

    #[tokio::test]
    async fn an_error_has_the_servers_message() {
        check(
            json!({"content": [{"type": "text", "text": "no such row"}], "isError": true}),
            expect!["! no such row"],
        )
        .await;
        check(
            json!({"content": [], "isError": true}),
            expect![[r#"! The tool get of the MCP server "files" failed without a message."#]],
        )
        .await;
    }
}
